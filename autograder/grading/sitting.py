"""One submission in front of the suite: its workers, its cells, its questions."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from autograder.course import Limits
from autograder.errors import (
    HostFailed,
    StudentCrashed,
    StudentError,
    StudentMissing,
    StudentTimeout,
    SuiteFault,
)
from autograder.grading.loaded_suite import LoadedSuite
from autograder.grading.outcomes import Verdict, judge
from autograder.intake.matching import cell_of
from autograder.model import Cell, CellOutcome, Submission
from autograder.sandbox.bounds import memory_bound, time_bound
from autograder.sandbox.host import HostClient
from autograder.sandbox.stand_ins import StandIns
from autograder.sandbox.student import Student
from autograder.sandbox.worker import Worker
from autograder.suite.calls import Call, CallLog, current_log, weight
from autograder.suite.collect import SuiteQuestion, SuiteTest
from autograder.text import clean

HANGS_BEFORE_GIVING_UP = 2
LARGEST_KEPT = 4 << 20
"""Bytes of an answer that is kept until the submission is graded."""
SLOW_CELL_SECONDS = 1.0
_WORDS = re.compile(r"\w+")
_BOUND = re.compile(
    r"^\s*(?:async\s+)?(?:def|class)\s+(\w+)|\bimport\s+(.+)$|^\s*([\w.\[\], ]+?)\s*(?::[^=\n]*)?=(?!=)", re.M
)
RUNS_WHEN_GRADING = ("given", "question", "extra")


@dataclass(frozen=True, slots=True)
class TestRun:
    """One test on one submission: the verdict, every call that the test made, and how far values were apart.

    Attributes:
        refusing, answering: names of functions and methods that raised what the test asked for, and that answered.
        suspect: what is to be said where not the answers, but the suite is why the test could not work with them.
    """

    __test__ = False

    name: str
    verdict: Verdict
    calls: tuple[Call, ...]
    distances: tuple[float, ...] = ()
    refusing: frozenset[str] = frozenset()
    answering: frozenset[str] = frozenset()
    suspect: SuiteFault | None = None

    @property
    def answered(self) -> bool:
        """Whether there is an answer at all, right or wrong: the function is there, and written."""
        last = self.calls[-1].fault if self.calls else None
        unwritten = isinstance(last, StudentError) and last.type_name == "NotImplementedError"
        return bool(self.calls) and not unwritten and not isinstance(last, StudentMissing)


@dataclass(slots=True)
class Stopwatch:
    """Wall time by stage. Every second counts for one stage only, so that they add up.

    run         forks, walls, and the submission's cells
    tests       the suite's tests, without the time in which they wait for `run`
    diagnosis   known mistakes, their forks and tests
    carry       failed questions once more with stand-ins, their forks and tests
    """

    seconds: dict[str, float] = field(default_factory=dict)
    _open: list[tuple[str, bool]] = field(default_factory=list)
    _since: float = 0.0

    @contextlib.contextmanager
    def stage(self, name: str, *, whole: bool = False) -> Iterator[None]:
        """Time what runs inside. `whole`: stages inside this one count for it."""
        if self._open and self._open[-1][1]:
            yield
            return
        self._count()
        self._open.append((name, whole))
        try:
            yield
        finally:
            self._count()
            self._open.pop()

    def _count(self) -> None:
        now = time.monotonic()
        if self._open:
            name, _ = self._open[-1]
            self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now


class Sitting:
    """Runs questions of a suite on one submission.

    Args:
        client: gives workers.
        suite: the collected suite; its fixtures are set for every test.
        submission: what was handed in.
    """

    def __init__(self, client: HostClient, limits: Limits, suite: LoadedSuite, submission: Submission) -> None:
        self._client, self._limits, self._suite = client, limits, suite
        self._submission = submission
        self._deadline = time.monotonic() + limits.submission_seconds
        self._outcomes: dict[str, CellOutcome] = {}
        self._left_out: set[str] = set()
        self._worker: Worker | None = None
        self.watch = Stopwatch()

    @property
    def cells(self) -> tuple[CellOutcome, ...]:
        """What happened to each cell that ran, in order; cells run when the first question needs them."""
        if not self._outcomes:
            self._open(())
            self.close()
        return tuple(self._outcomes[cell.id] for cell in self._runnable() if cell.id in self._outcomes)

    def run_all(self, questions: Sequence[SuiteQuestion]) -> dict[str, dict[str, TestRun]]:
        """Run every question, one after the other in one worker as long as their tests pass.

        A question that does not pass in a worker that has served another runs once more in a fresh one, and that is
        what counts: nothing that one question does to its process costs another points.
        """
        runs: dict[str, dict[str, TestRun]] = {}
        for question in questions:
            runs[question.name] = self._passed_in_turn(question) or self.run(question, keep_worker=True)
        self.close()
        return runs

    def _passed_in_turn(self, question: SuiteQuestion) -> dict[str, TestRun]:
        """The runs of a question in the worker that is there; none where there is no such worker, or a test does not
        pass. The time of an attempt that does not count is given back to the submission.
        """
        started = time.monotonic()
        runs: dict[str, TestRun] = {}
        if self._turns_to(question):
            for test in question.tests:
                runs |= self.run(question, (test.name,), keep_worker=True)
                if runs[test.name].verdict.outcome != "passed":
                    break
            else:
                return runs
        self.close()
        self._deadline += time.monotonic() - started
        return {}

    def _turns_to(self, question: SuiteQuestion) -> bool:
        """Whether the worker goes on with this question. A function outside torch is forbidden before the cells run, or
        they may have it under another name.
        """
        outside_torch = any(not name.startswith("torch.") for name in question.forbidden)
        if self._worker is None or outside_torch:
            return False
        return self._worker.turn_to(question.forbidden)

    def run(
        self,
        question: SuiteQuestion,
        tests: tuple[str, ...] | None = None,
        stand_ins: tuple[str, ...] = (),
        *,
        keep_worker: bool = False,
        keep_calls: bool = False,
    ) -> dict[str, TestRun]:
        """Run a question's tests (all, or those named) with some of its prerequisites stood in for.

        The calls of tests that fail are kept, and with `keep_calls` those of all.
        """
        runs: dict[str, TestRun] = {}
        hangs = 0
        student = self._student(question, stand_ins)
        for test in question.tests:
            if tests is not None and test.name not in tests:
                continue
            if hangs >= HANGS_BEFORE_GIVING_UP:
                runs[test.name] = TestRun(
                    test.name, Verdict("timeout", "Not run: two tests of this question hung."), ()
                )
                continue
            raised, log = self._test(question, test, student)
            runs[test.name] = self._judged(test, raised, log, keep_calls)
            hangs += isinstance(raised, StudentTimeout)
        if not keep_worker:
            self.close()
        return runs

    def _test(self, question: SuiteQuestion, test: SuiteTest, student: Any) -> tuple[BaseException | None, CallLog]:
        """Run one test on this `student`: what it raised, and what it asked.

        Raises:
            HostFailed: the machine failed, and not the student.
        """
        self._suite.fixtures.student = student
        bounds = memory_bound(self._limits.memory_mb), time_bound(self._limits.submission_seconds)
        with self.watch.stage("tests"), bounds[0], bounds[1]:
            raised = self._suite.run(question.name, test.name)
        if (fault := self._fault) is not None:
            raise fault
        return raised, current_log()

    @property
    def _fault(self) -> HostFailed | None:
        """What the machine did wrong meanwhile: no test is to blame, whatever it raised, or swallowed."""
        return self._client.fault

    def _judged(self, test: SuiteTest, raised: BaseException | None, log: CallLog, keep_calls: bool) -> TestRun:
        verdict = judge(raised, log, test)
        own = [call for call in log.calls if not call.of_suite]
        return TestRun(
            test.name,
            verdict,
            _kept(log) if verdict.outcome != "passed" or keep_calls else (),
            tuple(log.distances),
            frozenset(_function(call) for call in own if call.refused),
            frozenset(_function(call) for call in own if call.fault is None),
            self._suite.fault(test.name, raised) if raised is not None and verdict.cause == "unfit" else None,
        )

    def open_worker(self) -> Worker:
        """A worker that has run the submission's cells; `close` ends it."""
        return self._open(())

    def go_on_with(self, submission: Submission, cells: Sequence[Cell]) -> None:
        """Exchange the submission for one that differs from it by these cells: a worker that was kept runs only them.

        For known answers, which come from the course and leave each other alone.
        """
        self._submission = submission
        self._outcomes, self._left_out = {}, set()
        self._deadline = time.monotonic() + self._limits.submission_seconds
        if self._worker is None or not self._worker.alive:
            return
        self._worker.until = self._deadline
        answers = self._worker.load(_texts(cells), self._limits.cell_seconds, "the cell")
        with contextlib.suppress(StudentTimeout, StudentCrashed):  # it is dead then, and the next call opens another
            for cell in cells:
                self._outcomes[cell.id] = _outcome(cell, next(answers).header)

    # workers

    def _student(self, question: SuiteQuestion, stand_ins: tuple[str, ...]) -> Student:
        sources: dict[str, str] = {}
        if (cell := cell_of(self._submission, question.name)) is not None:
            sources[question.name] = cell.source

        def worker() -> Worker:
            if self._worker is None or not self._worker.alive:
                self._worker = self._open(question.forbidden, stand_ins)
            return self._worker

        seconds = min(self._limits.call_seconds, max(self._deadline - time.monotonic(), 0.05))
        return Student(worker, seconds, sources, self._why_missing)

    def _open(self, forbidden: tuple[str, ...], stand_ins: tuple[str, ...] = ()) -> Worker:
        """A worker that has run the submission's cells, those that end the process left out."""
        with self.watch.stage("run"):
            while True:
                if time.monotonic() > self._deadline:
                    raise StudentTimeout(
                        f"the time for the whole submission ({self._limits.submission_seconds:g} s) is used up."
                    )
                worker = Worker(self._client, self._limits, self._deadline)
                if self._load(worker, forbidden):
                    break
            if stand_ins:
                answers = StandIns(self._stand_ins(stand_ins), self._limits)
                worker.stand_ins = answers
                worker.request(answers.request(), {}, self._limits.call_seconds, "stand-ins")
            self._worker = worker
            return worker

    def _stand_ins(self, names: tuple[str, ...]) -> dict[str, Any]:
        """What a worker may ask of the answer key: these functions, and not the one that it is graded for."""
        reference = self._suite.fixtures.reference
        return {name: reference[name] for name in names if name in reference}

    def _load(self, worker: Worker, forbidden: tuple[str, ...]) -> bool:
        """Run the cells in order. False where one killed the worker: it is left out from now on.

        A slow cell of the student's own that gives no name to the others (an experiment, a plot) runs only once.
        """
        cells = [cell for cell in self._runnable() if cell.id not in self._left_out]
        what = ["cell " + cell.id for cell in cells]
        answers = worker.load(_texts(cells), self._limits.cell_seconds, "the cell", forbidden)
        for cell, name in zip(cells, what, strict=True):
            started = time.monotonic()
            try:
                answer = next(answers).header
            except (StudentTimeout, StudentCrashed) as fault:
                self._left_out.add(cell.id)
                text = str(fault).replace("the cell", name, 1)
                self._outcomes[cell.id] = CellOutcome(cell.id, fault.outcome, text)
                return False
            self._outcomes.setdefault(cell.id, _outcome(cell, answer))
            if time.monotonic() - started > SLOW_CELL_SECONDS and self._gives_nothing(cell):
                self._left_out.add(cell.id)
        return True

    def _runnable(self) -> list[Cell]:
        return [cell for cell in self._submission.cells if cell.role in RUNS_WHEN_GRADING]

    def _gives_nothing(self, cell: Cell) -> bool:
        if cell.role != "extra":
            return False
        bound = {word for groups in _BOUND.findall(cell.source) for group in groups for word in _WORDS.findall(group)}
        elsewhere = {word for other in self._runnable() if other is not cell for word in _WORDS.findall(other.source)}
        return "import *" not in cell.source and not bound & elsewhere

    def close(self) -> None:
        """End the worker, if there is one."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def _why_missing(self, name: str) -> str:
        bad = [o for o in self._outcomes.values() if o.outcome in ("error", "timeout", "crashed")]
        own = next((o for o in bad if o.id == name), None)
        if own is not None:
            return f"`{name}` is not defined: its cell did not run. {own.message}"
        if bad:
            return f"`{name}` is not defined. Cell {bad[0].id} did not run: {bad[0].message}"
        return f"`{name}` is not defined anywhere in the notebook."


def _texts(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    return [(cell.id, cell.source) for cell in cells]


def _kept(log: CallLog) -> tuple[Call, ...]:
    """The calls of a test that diagnosis may ask for. Large answers are let go: one hostile worker sends hundreds."""
    for call in log.calls:
        if weight([call.result, call.gradients]) > LARGEST_KEPT:
            call.result, call.gradients, call.let_go = None, [], True
    return tuple(log.calls)


def _function(call: Call) -> str:
    """The function's name, or the method's alone: what its class is called is the student's affair."""
    return call.name.rpartition(".")[2]


def _outcome(cell: Cell, answer: dict[str, Any]) -> CellOutcome:
    error = answer.get("error")
    if answer.get("ok") is True or not isinstance(error, dict):
        restored = cell.role == "given" and bool(cell.note)
        return CellOutcome(cell.id, "restored" if restored else "ok", cell.note)
    raised = f"{clean(str(error.get('type')), 100)}: {clean(str(error.get('message', '')), 400)}"
    frames = error.get("frames")
    last = f"\n  {clean(str(frames[-1]), 300)}" if isinstance(frames, list) and frames else ""
    note = f"{cell.note}\n" if cell.note else ""
    return CellOutcome(cell.id, "error", f"{note}{raised}{last}")
