"""Proves a hidden suite with answers whose worth is known.

* The answer key gets full marks, the untouched release none.
* Every alternate gets full marks on its question.
* Every mistake loses points on its own question. It can lose none elsewhere but where it is used: a question's
  answer calls others only where it says so (`uses`), which is checked on the answer key's own text, and the rest of
  the answer key does not change with the mistake.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograder.course import Assignment, Course
from autograder.errors import KitError, NotProven
from autograder.grading.batch import Bench, extras_for
from autograder.grading.pool import Pool
from autograder.model import FoundSubmission
from autograder.sandbox.host import HostClient
from autograder.suite.known import KnownAnswer

FEWEST_ALTERNATES = 2


@dataclass(frozen=True, slots=True)
class _Job:
    """One thing to grade: the answer key, the release, or the key with a known answer in it."""

    kind: str
    answer: KnownAnswer | None = None


def verify_command(course: Course, names: Sequence[str], workers: int | None = None) -> list[str]:
    """Verify the named assignments, or all.

    Raises:
        NotProven: what is not as it should be, of all of them together.
    """
    assignments = [course.assignment(name) for name in dict.fromkeys(names)] or course.assignments()
    lines: list[str] = []
    problems: list[str] = []
    for assignment in assignments:
        said, wrong = verify(course, assignment, workers)
        lines += said
        problems += [f"{assignment.name}: {problem}" for problem in wrong]
    if problems:
        raise NotProven("\n".join(problems))
    return lines


def verify(course: Course, assignment: Assignment, workers: int | None = None) -> tuple[list[str], list[str]]:
    """What was proven, in words, and what was not."""
    extras = extras_for(assignment, (), course.limits)
    with Bench(course, assignment, "auto", workers or os.cpu_count() or 1, extras) as bench:
        mistakes, alternates = bench.suite.mistakes, bench.suite.known_answers("alternates.py")
        jobs = [_Job("key"), _Job("release"), *(_Job(answer.name, answer) for answer in [*mistakes, *alternates])]
        problems = [
            *_undeclared(bench),
            *_unknown(bench, [*mistakes, *alternates]),
            *_too_few(bench, mistakes, alternates),
        ]
        if not problems:
            work = _Examiner(bench)
            for job, message in Pool(bench.host.clients, jobs, work.examine).run():
                problems += json.loads(message) if message is not None else [f"{job.kind}: the grader process ended"]
    said = (
        f"{assignment.name}: proven behind {bench.isolation} walls; answer key {bench.suite.suite.max_score:g} points, "
        f"release 0, {len(mistakes)} mistakes caught, {len(alternates)} alternates pass"
    )
    return ([] if problems else [said]), sorted(problems)


class _Examiner:
    """Grades one job in a pool's process and says what is wrong, as a JSON list."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def examine(self, client: HostClient, job: _Job) -> bytes:
        try:
            problems = list(self._known(client, job) if job.answer else self._whole(client, job.kind))
        except KitError as error:
            problems = [str(error)]
        return json.dumps(problems).encode()

    def _whole(self, client: HostClient, kind: str) -> Iterable[str]:
        grader = self._bench.suite
        path = grader.assignment.solution if kind == "key" else grader.assignment.release
        graded = grader.grade(client, self._bench.isolation, FoundSubmission(kind, path))
        if graded.result is None:
            yield f"{kind}: {graded.problem}"
            return
        for question in graded.result.questions:
            for test in question.tests:
                if kind == "key" and test.outcome != "passed":
                    yield f"the answer key fails {question.name}: {test.name}: {test.message}"
                if kind == "release" and test.points > 0:
                    yield f"the untouched release passes {question.name}: {test.name} ({test.points:g} points)"

    def _known(self, client: HostClient, job: _Job) -> Iterable[str]:
        assert job.answer is not None
        answer, grader = job.answer, self._bench.suite
        runs = grader.run_known(client, answer)
        worth = {test.name: test.points for test in grader.questions[answer.question].tests}
        failed = [run for run in runs.values() if run.verdict.outcome != "passed"]
        if answer.is_mistake and not any(worth[run.name] > 0 for run in failed):
            yield f"mistake {answer.question}/{answer.name} is not caught by any test"
        if not answer.is_mistake:
            for run in failed:
                yield f"alternate {answer.question}/{answer.name} fails {run.name}: {run.verdict.message}"


def _undeclared(bench: Bench) -> Iterable[str]:
    """Calls between questions of the answer key that the suite does not declare with `uses`."""
    calls = {cell.id: _names_in(cell.source) for cell in bench.suite.key().cells if cell.role == "question"}
    questions = bench.suite.questions
    for name, names in calls.items():
        if name not in questions:
            continue
        for other in sorted(names & questions.keys() - {name, *questions[name].uses}):
            yield f"the answer to {name} calls {other}: say so in test_{name}.py (uses({other!r}))"
    for name, question in questions.items():
        for other in question.uses:
            if other not in questions:
                yield f"test_{name}.py: uses({other!r}), which is no question"


def _names_in(source: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


def _unknown(bench: Bench, answers: Sequence[KnownAnswer]) -> Iterable[str]:
    for answer in answers:
        if answer.question not in bench.suite.questions:
            yield f"{answer.name} answers {answer.question!r}, which is no question"
        if answer.name in bench.suite.suite.bench.reference:
            yield f"known answer {answer.name} is named like something in the notebook"


def _too_few(bench: Bench, mistakes: Sequence[KnownAnswer], alternates: Sequence[KnownAnswer]) -> Iterable[str]:
    for name in bench.suite.questions:
        if not any(answer.question == name for answer in mistakes):
            yield f"{name} has no mistake in mistakes.py"
        count = sum(answer.question == name for answer in alternates)
        if count < FEWEST_ALTERNATES:
            yield f"{name} has {count} alternates in alternates.py; at least {FEWEST_ALTERNATES} prove a suite"
