"""Observes how a class's nameless answers behave: runs their questions again behind walls."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.definitions import defined_functions
from autograder.basics.errors import KitError, StudentFault
from autograder.diagnosis.known_runs import KnownRuns
from autograder.diagnosis.known_sitting import Departures, list_departures
from autograder.grading.bench import Bench
from autograder.grading.grader import Failure
from autograder.intake.cell_matching import find_answer_cell
from autograder.intake.notebook import read_submission
from autograder.proof.trials import examine_jobs
from autograder.records.submission import FoundSubmission, Submission
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.kit_program import run_program
from autograder.sitting.agreement import describe_form
from autograder.sitting.sitting import TestRun

_CUTTER = Path(__file__).with_name("answer_text.py")
_CUTTER_SECONDS = 10.0
_WAYS = {
    "dtype": "another dtype",
    "changed": "changes its arguments",
    "gradient": "wrong gradients",
}


@dataclass(frozen=True, slots=True)
class NamelessSubmission:
    """A submission with questions that lost points which no known mistake explains.

    Attributes:
        sha256: the hash of the notebook that was graded.
        questions: each with the failed tests that a slip explains, as the result says.
        people: words and phrases that name the people who handed in.
    """

    file: FoundSubmission
    sha256: str
    questions: Mapping[str, tuple[str, ...]]
    people: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FailedTest:
    """How one test fails on one answer.

    Attributes:
        departures: of each call the ways in which it departs from the answer key's, sorted.
    """

    name: str
    outcome: str
    departures: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class NamelessAnswer:
    """One student's wrong answer to one question, observed.

    Attributes:
        tests: the failed tests that no slip explains.
        ways: how it differs from right answers, in words.
        message: what the student reads about the failed test with the most points.
        faults: how many tests fail, with those that a slip explains.
        code: the answer as code, without comments and names; "" where none can be cut out.
        problem: why the answer cannot become a known mistake; "" where it can.
    """

    student: str
    question: str
    tests: tuple[FailedTest, ...]
    ways: tuple[str, ...]
    message: str
    faults: int
    code: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Observed:
    """The observed answers of one submission."""

    answers: tuple[NamelessAnswer, ...]


class RunStore:
    """The failed runs of students' answers, in a folder that graders write and the driver reads."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        course = dataclasses.replace(bench.course, root=folder)
        self._runs = KnownRuns(course, bench.assignment, bench.grader.sha256)

    def save(self, student: str, question: str, failure: Failure) -> None:
        """Store an answer's failed runs, and the answer key's runs of the same tests."""
        self._runs.save(f"{question} of {student}", list(failure.runs.values()))
        self._runs.save(f"the answer key's {question}", list(failure.key_runs.values()))

    def load(self, answer: NamelessAnswer) -> Mapping[str, TestRun | None]:
        """The failed runs of an answer; None for those that cannot be stored, such as hangs."""
        name = f"{answer.question} of {answer.student}"
        return {test.name: self._runs.load(name, test.name) for test in answer.tests}

    def load_key(self, answer: NamelessAnswer) -> Mapping[str, TestRun | None]:
        """The answer key's runs of the tests that an answer fails."""
        name = f"the answer key's {answer.question}"
        return {test.name: self._runs.load(name, test.name) for test in answer.tests}


def observe_class(
    bench: Bench, submissions: Sequence[NamelessSubmission], store: RunStore
) -> tuple[list[NamelessAnswer], list[str]]:
    """The nameless answers of a class, by student, and a line for each submission that could not be
    run again.
    """

    def observe(client: HostClient, job: NamelessSubmission) -> _Observed:
        grader = bench.grader
        submission = read_submission(job.file, grader.release, bench.course.limits)
        if submission.sha256 != job.sha256:
            raise KitError("another notebook has been handed in since; grade it first")
        failures = grader.run_failures(client, submission, job.questions)
        answers = []
        for name, failure in failures.items():
            if failure.runs.keys() <= set(job.questions[name]):
                continue
            store.save(submission.student, name, failure)
            answers.append(
                _observe_answer(bench, client, job, submission, name, failure)
            )
        return _Observed(tuple(answers))

    answers: list[NamelessAnswer] = []
    problems = []
    for job, observed, problem in examine_jobs(bench, submissions, observe, _Observed):
        if observed is None:
            problems.append(f"{job.file.student}: {problem}")
        else:
            answers += observed.answers
    return answers, problems


def _observe_answer(
    bench: Bench,
    client: HostClient,
    job: NamelessSubmission,
    submission: Submission,
    question: str,
    failure: Failure,
) -> NamelessAnswer:
    points = {test.name: test.points for test in bench.grader.questions[question].tests}
    tests = []
    ways: dict[str, None] = {}
    unexplained = [test for test in failure.runs if test not in job.questions[question]]
    for name in unexplained:
        run = failure.runs[name]
        departures = list_departures(run, failure.key_runs[name])
        listed = tuple(tuple(sorted(departure)) for departure in departures)
        tests.append(FailedTest(name, run.verdict.outcome, listed))
        ways |= dict.fromkeys(_describe_ways(run, failure.key_runs[name], departures))
    dearest = max(unexplained, key=lambda name: points[name])
    code, problem = cut_code(bench, client, submission, question, job.people)
    if any(test.outcome in ("timeout", "crashed") for test in tests):
        # its runs are not stored: each diagnosis of the question would wait for it
        problem = "it hangs or crashes, and would do so whenever an answer is compared with it"
    return NamelessAnswer(
        submission.student,
        question,
        tuple(tests),
        tuple(ways),
        failure.runs[dearest].verdict.text,
        len(failure.runs),
        code,
        problem,
    )


def _describe_ways(run: TestRun, key_run: TestRun, departures: Departures) -> list[str]:
    """How the calls of a failed test differ from the answer key's, in words."""
    words = []
    for call, key_call, ways in zip(run.calls, key_run.calls, departures, strict=False):
        for way in sorted(ways):
            if way == "fault" and call.fault is not None:
                type_name = getattr(call.fault, "type_name", "") or call.fault.outcome
                words.append(f"{type_name} where an answer is right")
            elif way == "fault":
                words.append("an answer where ValueError is right")
            elif way == "value" and describe_form(call.result) != describe_form(
                key_call.result
            ):
                words.append("another shape or type")
            elif way == "value":
                words.append("wrong values")
            elif way.startswith("cost of "):
                words.append(f"more {way.removeprefix('cost of ')} than needed")
            else:
                words.append(_WAYS[way])
    return words or [f"test ends as {run.verdict.outcome}"]


def cut_code(
    bench: Bench,
    client: HostClient,
    submission: Submission,
    question: str,
    people: Sequence[str],
) -> tuple[str, str]:
    """A student's answer as code, and why there is none. The text is parsed in a worker."""
    answer_cell = find_answer_cell(submission, question)
    if answer_cell is None:
        return "", "no cell answers the question"
    cells = [cell for cell in submission.cells if cell.role in ("question", "extra")]
    released = defined_functions(bench.grader.suite.released[question])
    wanted = sorted(released & defined_functions(answer_cell.source)) or [question]
    request = json.dumps(
        {
            "cells": [cell.source for cell in cells],
            "answer_cell": cells.index(answer_cell) if answer_cell in cells else -1,
            "wanted": wanted,
            "known": sorted(set(bench.grader.reference) - set(wanted)),
            "people": list(people),
        }
    )
    try:
        with run_program(
            _CUTTER, client, bench.course.limits, _CUTTER_SECONDS
        ) as program:
            reply = json.loads(program.cut_answer(request))
    except (StudentFault, ValueError) as fault:
        return "", f"it could not be read: {type(fault).__name__}"
    return reply.get("code", ""), reply.get("problem", "")
