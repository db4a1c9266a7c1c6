"""Where a submission's code runs: a worker that has run its cells, opened when it is needed, and anew after a kill."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from autograder.course import Limits
from autograder.errors import StudentCrashed, StudentTimeout
from autograder.model import Cell, CellOutcome, Submission
from autograder.sandbox.host import HostClient
from autograder.sandbox.stand_ins import StandIns
from autograder.sandbox.stopwatch import Stopwatch
from autograder.sandbox.worker import Worker
from autograder.text import clean

SLOW_CELL_SECONDS = 1.0
_WORDS = re.compile(r"\w+")
_BOUND = re.compile(
    r"^\s*(?:async\s+)?(?:def|class)\s+(\w+)|\bimport\s+(.+)$|^\s*([\w.\[\], ]+?)\s*(?::[^=\n]*)?=(?!=)", re.M
)
RUNS_WHEN_GRADING = ("given", "question", "extra")


class Workplace:
    """The one worker of a submission at a time.

    Args:
        client: gives workers.
        reference: the answer key's names, with which stand-ins answer.
        watch: forks and cells count for its stage "run".

    Attributes:
        submission: whose cells run.
        deadline: when all must be over (`time.monotonic()`).
    """

    def __init__(
        self,
        client: HostClient,
        limits: Limits,
        submission: Submission,
        reference: Mapping[str, Any],
        watch: Stopwatch,
    ) -> None:
        self._client, self._limits, self._reference, self._watch = client, limits, reference, watch
        self.submission = submission
        self.deadline = time.monotonic() + limits.submission_seconds
        self._outcomes: dict[str, CellOutcome] = {}
        self._left_out: set[str] = set()
        self._forbidden: tuple[str, ...] = ()
        self._stand_ins: tuple[str, ...] = ()
        self._worker: Worker | None = None

    @property
    def cells(self) -> tuple[CellOutcome, ...]:
        """What happened to each cell that ran, in order; cells run when a worker is first needed."""
        if not self._outcomes:
            self.prepare(())
            self.worker()
            self.close()
        return tuple(self._outcomes[cell.id] for cell in self._runnable() if cell.id in self._outcomes)

    def prepare(self, forbidden: tuple[str, ...], stand_ins: tuple[str, ...] = ()) -> None:
        """Say what the next worker that is opened may not call, and which prerequisites are stood in for there."""
        self._forbidden, self._stand_ins = forbidden, stand_ins

    def left(self) -> float:
        """Seconds until the deadline; never nothing, so that a call ends by its own limit."""
        return max(self.deadline - time.monotonic(), 0.05)

    def turn_to(self, forbidden: tuple[str, ...]) -> bool:
        """Go on with another question in the worker that is there. False where there is none, or it does not answer."""
        return self._worker is not None and self._worker.turn_to(forbidden)

    def go_on_with(self, submission: Submission, cells: Sequence[Cell]) -> None:
        """Exchange the submission for one that differs from it by these cells: a worker that was kept runs only them.

        For known answers, which come from the course and leave each other alone.
        """
        self.submission = submission
        self._outcomes, self._left_out = {}, set()
        self.deadline = time.monotonic() + self._limits.submission_seconds
        if self._worker is None or not self._worker.alive:
            return
        self._worker.until = self.deadline
        answers = self._worker.load(
            _texts(cells), self._limits.cell_seconds, "the cell", functions=_questions(submission.cells)
        )
        with contextlib.suppress(StudentTimeout, StudentCrashed):  # it is dead then, and the next call opens another
            for cell in cells:
                self._outcomes[cell.id] = _outcome(cell, next(answers).header)

    def worker(self) -> Worker:
        """The worker, which has run the submission's cells, those that end the process left out.

        Raises:
            StudentTimeout: the time for the submission is used up.
            HostFailed: no worker can be had.
        """
        if self._worker is None or not self._worker.alive:
            self._worker = self._opened()
        return self._worker

    def _opened(self) -> Worker:
        with self._watch.stage("run"):
            while True:
                if time.monotonic() > self.deadline:
                    raise StudentTimeout(
                        f"the time for the whole submission ({self._limits.submission_seconds:g} s) is used up."
                    )
                worker = Worker(self._client, self._limits, self.deadline)
                if self._load(worker):
                    break
            if self._stand_ins:
                # these functions, and not the one that the student is graded for
                key = {name: self._reference[name] for name in self._stand_ins if name in self._reference}
                answers = StandIns(key, self._limits)
                worker.stand_ins = answers
                worker.request(answers.request(), {}, self._limits.call_seconds, "stand-ins")
            return worker

    def _load(self, worker: Worker) -> bool:
        """Run the cells in order. False where one killed the worker: it is left out from now on.

        A slow cell of the student's own that gives no name to the others (an experiment, a plot) runs only once.
        """
        cells = [cell for cell in self._runnable() if cell.id not in self._left_out]
        what = ["cell " + cell.id for cell in cells]
        answers = worker.load(_texts(cells), self._limits.cell_seconds, "the cell", self._forbidden, _questions(cells))
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
        return [cell for cell in self.submission.cells if cell.role in RUNS_WHEN_GRADING]

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

    def why_missing(self, name: str) -> str:
        """What to tell a student whose function is not there."""
        bad = [o for o in self._outcomes.values() if o.outcome in ("error", "timeout", "crashed")]
        own = next((o for o in bad if o.id == name), None)
        if own is not None:
            return f"`{name}` is not defined: its cell did not run. {own.message}"
        if bad:
            return f"`{name}` is not defined. Cell {bad[0].id} did not run: {bad[0].message}"
        return f"`{name}` is not defined anywhere in the notebook."


def _texts(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    return [(cell.id, cell.source) for cell in cells]


def _questions(cells: Sequence[Cell]) -> list[str]:
    return [cell.id for cell in cells if cell.role == "question"]


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
