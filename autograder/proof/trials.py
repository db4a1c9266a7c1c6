"""Answers whose worth is known, in front of a suite: trials and their outcomes, on every core."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from autograder.basics.errors import HostFailed, KitError, SuiteFault
from autograder.basics.stored_json import decode_line, encode_line
from autograder.grading.bench import Bench
from autograder.grading.pool import Pool
from autograder.intake.notebook import read_submission
from autograder.proof.wrapped import Observed, observe
from autograder.records.model import FoundSubmission, Submission
from autograder.sandbox.host_process import HostClient
from autograder.sitting.sitting import Sitting, TestRun
from autograder.suite.calls import CallLog
from autograder.suite.collection import SuiteQuestion, SuiteTest
from autograder.suite.known_answers import KnownAnswer

Kind = Literal["key", "release", "mistake", "alternate", "mutant", "trivial"]
HANG_SECONDS = 3.0
"""How long one call of a mutant may take, where the answer key takes less than a quarter of it."""
_Answer = TypeVar("_Answer")
_Record = TypeVar("_Record")


@dataclass(frozen=True, slots=True)
class Trial:
    """One answer to one question, to be graded.

    Attributes:
        cell: the question's cell for a mutant or a trivial answer, the cell of a known answer; else
            "".
        draw: which draw of the random inputs.
        keeps: the share of the points that a mistake keeps, whatever its tests say.
    """

    kind: Kind
    question: str
    name: str
    cell: str = ""
    draw: int = 0
    keeps: float = 0.0


@dataclass(frozen=True, slots=True)
class Checked:
    """What one test said.

    Attributes:
        distances: between values compared, as multiples of what is allowed.
        seconds: wall time.
        tolerance: the least that a comparison allowed, where that was less than the default.
    """

    name: str
    outcome: str
    message: str
    distances: tuple[float, ...]
    seconds: float
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a trial.

    Attributes:
        tests: in the order in which they ran. A mutant, or an answer tried with another draw, stops
            at the first loss.
        observed: what the suite asked of the answer key's functions.
        carried: tests whose points come back with stand-ins for what the question builds on.
        problem: why there is nothing to say, for the author of the suite.
    """

    trial: Trial
    tests: tuple[Checked, ...] = ()
    observed: tuple[Observed, ...] = ()
    carried: tuple[str, ...] = ()
    problem: str = ""

    @property
    def failed(self) -> frozenset[str]:
        """Names of the tests that did not pass."""
        return frozenset(test.name for test in self.tests if test.outcome != "passed")


def known_trial(answer: KnownAnswer) -> Trial:
    """A known answer as one to be tried."""
    kind: Kind = "mistake" if answer.is_mistake else "alternate"
    return Trial(kind, answer.question, answer.name, answer.cell, keeps=answer.keeps)


class Proctor:
    """Runs trials on every core.

    Args:
        seconds: what the answer key's tests took, by question and test, for trials that may stop
            early: quick tests run first, and what takes far longer counts as hanging.
        earlier: the same trials with another draw; tests that failed there run before all others.
    """

    def __init__(
        self,
        bench: Bench,
        seconds: Mapping[str, Mapping[str, float]],
        earlier: Iterable[Tried] = (),
    ) -> None:
        self._bench, self._seconds = bench, seconds
        self._failed = {(one.trial.question, one.trial.name): one.failed for one in earlier}
        self._release: Submission | None = None

    def run(self, trials: Sequence[Trial]) -> list[Tried]:
        """The outcome of every trial, in their order."""
        examined = examine_each(self._bench, trials, self._try, Tried)
        return [tried or Tried(trial, problem=problem) for trial, tried, problem in examined]

    def _try(self, client: HostClient, trial: Trial) -> Tried:
        grader = self._bench.grader
        question = grader.questions[trial.question]
        hasty = trial.kind == "mutant" or trial.draw > 0
        limits = self._hasty_limits(question) if trial.kind == "mutant" else grader.course.limits
        sitting = Sitting(client, limits, grader.suite, self._submission(trial))
        grader.suite.fixtures.draw = trial.draw
        runs = list(self._runs(sitting, question, trial, hasty))
        for run, _ in runs:
            if trial.kind == "key" and run.suite_fault is not None:
                raise run.suite_fault
        if trial.kind == "mistake" and not hasty:
            grader.known_runs.save(trial.name, [run for run, _ in runs])
        carried: Sequence[str] = ()
        if not hasty:
            settled = grader.settle(sitting, {question.name: {run.name: run for run, _ in runs}})[
                question.name
            ]
            carried = sorted(settled.carried)
            runs = [(settled.runs[run.name], seconds) for run, seconds in runs]
        tests = tuple(
            Checked(
                run.name,
                run.verdict.outcome,
                run.verdict.text,
                run.distances,
                seconds,
                run.tolerance,
            )
            for run, seconds in runs
        )
        observed: Sequence[Observed] = ()
        if trial.kind == "key":
            names = CallLog(grader.reference).parameter_names
            observed = observe((call for run, _ in runs for call in run.calls), names)
        return Tried(trial, tests, tuple(observed), tuple(carried))

    def _runs(
        self, sitting: Sitting, question: SuiteQuestion, trial: Trial, hasty: bool
    ) -> Iterator[tuple[TestRun, float]]:
        """The question's tests on one answer, each with its wall time."""
        if not hasty and trial.kind != "key":
            yield from ((run, 0.0) for run in sitting.run(question).values())
            return
        try:
            for test in self._in_order(question, trial) if hasty else question.tests:
                started = time.monotonic()
                run = sitting.run(
                    question, (test.name,), keep_worker=True, keep_calls=trial.kind == "key"
                )[test.name]
                yield run, time.monotonic() - started
                if hasty and run.verdict.outcome != "passed" and test.points > 0:
                    return
        finally:
            sitting.close()

    def _in_order(self, question: SuiteQuestion, trial: Trial) -> list[SuiteTest]:
        seconds = self._seconds.get(question.name, {})
        failed = self._failed.get((question.name, trial.name), frozenset())
        return sorted(
            question.tests, key=lambda test: (test.name not in failed, seconds.get(test.name, 0.0))
        )

    def _hasty_limits(self, question: SuiteQuestion) -> Any:
        limits = self._bench.course.limits
        slowest = max(self._seconds.get(question.name, {}).values(), default=0.0)
        return dataclasses.replace(
            limits, call_seconds=min(limits.call_seconds, max(HANG_SECONDS, 4 * slowest))
        )

    def _submission(self, trial: Trial) -> Submission:
        grader = self._bench.grader
        if trial.kind == "key":
            return grader.key.submission
        if trial.kind == "release":
            if self._release is None:
                found = FoundSubmission("release", grader.assignment.release)
                self._release = read_submission(found, grader.release, grader.course.limits)
            return self._release
        if trial.kind in ("mistake", "alternate"):
            return grader.key.with_answer(KnownAnswer(trial.question, trial.name, "", trial.cell))
        cells = tuple(
            dataclasses.replace(cell, source=trial.cell) if cell.id == trial.question else cell
            for cell in grader.key.submission.cells
        )
        return dataclasses.replace(grader.key.submission, student=trial.name, cells=cells)


def examine_each(
    bench: Bench,
    answers: Sequence[_Answer],
    examine: Callable[[HostClient, _Answer], _Record],
    kind: type[_Record],
) -> list[tuple[_Answer, _Record | None, str]]:
    """Each answer with its record, or None and what went wrong, in the order of the answers. On
    every core.

    Args:
        examine: makes the record of one answer; runs in a grader's process.
        kind: the type of the records, which pass between processes as lines of JSON.
    """

    def encoded(client: HostClient, answer: _Answer) -> bytes:
        try:
            return encode_line((examine(client, answer), ""))
        except HostFailed:
            raise
        except SuiteFault as fault:
            return encode_line((None, f"{fault}\n{fault.trace}"))
        except KitError as error:
            return encode_line((None, str(error)))

    outcomes: dict[int, tuple[_Record | None, str]] = {}
    outcome: Any = tuple[kind | None, str]  # type: ignore[valid-type]
    for ended in Pool(bench, answers, encoded).run():
        outcomes[id(ended.job)] = (
            (None, ended.fault) if ended.answer is None else decode_line(ended.answer, outcome)
        )
    return [(answer, *outcomes[id(answer)]) for answer in answers]


def seconds_of(tried: Iterable[Tried]) -> dict[str, dict[str, float]]:
    """What the tests took, by question and test."""
    return {one.trial.question: {test.name: test.seconds for test in one.tests} for one in tried}
