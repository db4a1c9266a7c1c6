"""Trials: known answers, mutants and answers without an idea, graded by a suite on every core."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from autograder.basics.errors import HostFailed, KitError, SuiteFault
from autograder.basics.stored_json import decode_line, encode_line
from autograder.course import Limits
from autograder.diagnosis.answer_key import AnswerKey
from autograder.grading.bench import Bench
from autograder.grading.carried_points import settle_questions
from autograder.grading.pool import Pool
from autograder.intake.notebook import read_submission
from autograder.proof.code_mutants import Variant
from autograder.proof.equivalent import NamedAnswer
from autograder.proof.wrappers import ObservedFunction, observe, reachable_names
from autograder.records.model import QuestionResult
from autograder.records.submission import FoundSubmission, Submission
from autograder.sandbox.host_process import HostClient
from autograder.sitting.pricing import has_memory_fault
from autograder.sitting.sitting import Sitting, TestRun
from autograder.suite.calls import CallLog
from autograder.suite.collection import SuiteQuestion, SuiteTest
from autograder.suite.known_answers import KnownAnswer

TrialKind = Literal[
    "key",
    "release",
    "mistake",
    "alternate",
    "mutant",
    "trivial",
]
HANG_SECONDS = 3.0
"""How long one call of a mutant may take, where the answer key takes less than a quarter of it."""
Replacement = KnownAnswer | Variant
_Job = TypeVar("_Job")
_Answer = TypeVar("_Answer", bound=NamedAnswer)
_Record = TypeVar("_Record")


@dataclass(frozen=True, slots=True)
class Trial:
    """An answer to a question, to be graded.

    Attributes:
        cell: the cell of a known answer, or the question's cell of a variant; "" for the answer key
            and the release.
        draw: the number of the draw of random inputs.
        keeps: the share of the points that a mistake keeps, whatever its tests say.
    """

    kind: TrialKind
    question: str
    name: str
    cell: str = ""
    draw: int = 0
    keeps: float = 0.0

    @property
    def title(self) -> str:
        """The answer's name in messages."""
        is_notebook = self.kind in ("key", "release")
        return self.question if is_notebook else f"{self.question}/{self.name}"

    @property
    def is_hasty(self) -> bool:
        """Whether the first loss ends the trial: of mutants and of further draws no more is asked
        than whether they lose points.
        """
        return self.kind == "mutant" or self.draw > 0


@dataclass(frozen=True, slots=True)
class TrialTest:
    """The outcome of one test in a trial.

    Attributes:
        distances: between values compared, as multiples of what is allowed.
        seconds: wall time; 0 where nobody needs it.
        tolerance: the least that a comparison allowed, where that was less than the default.
        has_memory_fault: whether a kernel touched memory that it may not.
    """

    name: str
    outcome: str
    message: str
    distances: tuple[float, ...]
    seconds: float
    tolerance: float | None = None
    has_memory_fault: bool = False


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """A trial after grading.

    Attributes:
        tests: in the order in which they ran; a hasty trial has none after the first loss.
        observed: the answer key's functions that the suite calls.
        carried: tests whose points come back with stand-ins for prerequisites.
        problem: why grading failed, for the author of the suite; else "".
    """

    trial: Trial
    tests: tuple[TrialTest, ...] = ()
    observed: tuple[ObservedFunction, ...] = ()
    carried: tuple[str, ...] = ()
    problem: str = ""

    @property
    def failed(self) -> frozenset[str]:
        """Names of the tests that did not pass."""
        return frozenset(test.name for test in self.tests if test.outcome != "passed")


def known_trial(answer: KnownAnswer) -> Trial:
    """The trial of a mistake or an alternate."""
    kind: TrialKind = "mistake" if answer.is_mistake else "alternate"
    return Trial(kind, answer.question, answer.name, answer.cell, keeps=answer.keeps)


class Proctor:
    """Runs trials on every core.

    Args:
        keys: the answer key's outcomes. Hasty trials run quick tests first, and a mutant hangs that
            takes far longer than the answer key.
        earlier: the same trials with another draw; tests that failed with it run first.
    """

    def __init__(
        self,
        bench: Bench,
        keys: Iterable[TrialOutcome] = (),
        earlier: Iterable[TrialOutcome] = (),
    ) -> None:
        self._bench = bench
        self._seconds: dict[str, dict[str, float]] = {}
        for key in keys:
            seconds = {test.name: test.seconds for test in key.tests}
            self._seconds[key.trial.question] = seconds
        self._failed = {outcome.trial.title: outcome.failed for outcome in earlier}

    def run(self, trials: Sequence[Trial]) -> list[TrialOutcome]:
        """The outcome of every trial, in the order of the trials."""
        examined = examine_jobs(self._bench, trials, self._try, TrialOutcome)
        return [
            outcome or TrialOutcome(trial, problem=problem)
            for trial, outcome, problem in examined
        ]

    def _try(self, client: HostClient, trial: Trial) -> TrialOutcome:
        grader = self._bench.grader
        question = grader.questions[trial.question]
        submission = self._submission(trial)
        sitting = Sitting(client, self._limits(trial), grader.suite, submission)
        grader.suite.fixtures.draw = trial.draw
        runs, seconds = self._run_tests(sitting, question, trial)
        observed: Sequence[ObservedFunction] = ()
        if trial.kind == "key":
            for run in runs.values():
                if run.suite_fault is not None:
                    raise run.suite_fault
            calls = [call for run in runs.values() for call in run.calls]
            answers = grader.key.cells
            key = grader.key.submission
            given = [cell.source for cell in key.cells if cell.role == "given"]
            given += key.companions.values()
            reachable = reachable_names(answers.values(), given)
            observed = observe(calls, CallLog(grader.reference).signature, reachable)
        carried: Sequence[str] = ()
        if not trial.is_hasty:
            if trial.kind == "mistake":
                grader.known_runs.save(trial.name, list(runs.values()))
            settled = settle_questions(
                sitting, {question.name: runs}, grader.questions, grader.reference
            )[question.name]
            runs, carried = dict(settled.runs), sorted(settled.carried)
        tests = []
        for name, run in runs.items():
            test = TrialTest(
                name,
                run.verdict.outcome,
                run.verdict.text,
                run.distances,
                seconds.get(name, 0.0),
                run.tolerance,
                has_memory_fault(run),
            )
            tests.append(test)
        return TrialOutcome(trial, tuple(tests), tuple(observed), tuple(carried))

    def _run_tests(
        self, sitting: Sitting, question: SuiteQuestion, trial: Trial
    ) -> tuple[dict[str, TestRun], dict[str, float]]:
        """The question's tests on one answer; with the wall time of each, where that is needed."""
        is_key = trial.kind == "key"
        if not trial.is_hasty and not is_key:
            return sitting.run(question), {}
        failed = self._failed.get(trial.title, frozenset())
        key_seconds = self._seconds.get(question.name, {})
        runs: dict[str, TestRun] = {}
        seconds: dict[str, float] = {}

        def rank(test: SuiteTest) -> tuple[bool, float]:
            return test.name not in failed, key_seconds.get(test.name, 0.0)

        with contextlib.closing(sitting):
            for test in sorted(question.tests, key=rank):
                started = time.monotonic()
                runs |= sitting.run(
                    question, (test.name,), keep_worker=True, keep_calls=is_key
                )
                seconds[test.name] = time.monotonic() - started
                is_lost = not runs[test.name].passed and test.points > 0
                if trial.is_hasty and is_lost:
                    break
        return runs, seconds

    def _limits(self, trial: Trial) -> Limits:
        limits = self._bench.course.limits
        if trial.kind != "mutant":
            return limits
        key_seconds = self._seconds.get(trial.question, {})
        slowest = max(key_seconds.values(), default=0.0)
        hang_seconds = max(HANG_SECONDS, 4 * slowest)
        call_seconds = min(limits.call_seconds, hang_seconds)
        return dataclasses.replace(limits, call_seconds=call_seconds)

    def _submission(self, trial: Trial) -> Submission:
        key = self._bench.grader.key
        if trial.kind == "key":
            return key.submission
        if trial.kind == "release":
            return self._release
        if trial.kind in ("mistake", "alternate"):
            known = KnownAnswer(trial.question, trial.name, "", trial.cell)
            return key.with_answer(known)
        variant = Variant(trial.question, trial.name, trial.cell)
        return with_answer(key, variant)

    @functools.cached_property
    def _release(self) -> Submission:
        """The untouched release as a submission, read once in each grader's process."""
        grader = self._bench.grader
        release = FoundSubmission("release", grader.assignment.release)
        return read_submission(release, grader.release, grader.course.limits)


def with_answer(key: AnswerKey, answer: Replacement) -> Submission:
    """The answer key with one answer exchanged."""
    if isinstance(answer, KnownAnswer):
        return key.with_answer(answer)
    cells = []
    for cell in key.submission.cells:
        if cell.id != answer.question:
            cells.append(cell)
        elif answer.cell:
            cells.append(dataclasses.replace(cell, source=answer.cell))
    return dataclasses.replace(key.submission, student=answer.name, cells=tuple(cells))


def grade_answer(
    bench: Bench, client: HostClient, answer: Replacement, questions: Sequence[str]
) -> tuple[QuestionResult, ...]:
    """The results of some questions of the answer key with one answer exchanged, graded like a
    student's submission.
    """
    submission = with_answer(bench.grader.key, answer)
    result, _ = bench.grader.grade_submission(client, submission, questions)
    return result.questions


def examine_each(
    bench: Bench,
    answers: Sequence[_Answer],
    examine: Callable[[HostClient, _Answer], _Record],
    kind: type[_Record],
) -> tuple[list[_Record], list[str]]:
    """A record of each answer that could be graded, and the problems of the others.

    Args:
        examine: makes the record of one answer; runs in a grader's process.
        kind: the type of the records, which pass between processes as lines of JSON.
    """
    records, problems = [], []
    for answer, record, problem in examine_jobs(bench, answers, examine, kind):
        if record is None:
            problems.append(f"{answer.question}/{answer.name}: {problem}")
        else:
            records.append(record)
    return records, problems


def examine_jobs(
    bench: Bench,
    jobs: Sequence[_Job],
    examine: Callable[[HostClient, _Job], _Record],
    kind: type[_Record],
) -> list[tuple[_Job, _Record | None, str]]:
    """Each job with its record, or None and the problem, in the order of the jobs. On every
    core.

    Args:
        examine, kind: as in `examine_each`.
    """

    def encoded(client: HostClient, job: _Job) -> bytes:
        try:
            return encode_line((examine(client, job), ""))
        except HostFailed:
            raise
        except SuiteFault as fault:
            return encode_line((None, f"{fault}\n{fault.trace}"))
        except KitError as error:
            return encode_line((None, str(error)))

    outcomes: dict[int, tuple[_Record | None, str]] = {}
    outcome_type: Any = tuple[kind | None, str]  # type: ignore[valid-type]
    for ended in Pool(bench, jobs, encoded).run():
        if ended.answer is None:
            outcomes[id(ended.job)] = None, ended.fault
        else:
            outcomes[id(ended.job)] = decode_line(ended.answer, outcome_type)
    return [(job, *outcomes[id(job)]) for job in jobs]
