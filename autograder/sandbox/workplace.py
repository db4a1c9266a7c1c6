"""Where a submission's code runs: a worker that has run its cells, opened when it is needed, and
anew after a kill.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from autograder.basics.errors import StudentCrashed, StudentTimeout, SubmissionOver
from autograder.basics.safe_text import clean
from autograder.course import Limits
from autograder.records.model import Cell, CellOutcome, Submission
from autograder.sandbox.clocks import Account, WorkerTime, most_for
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.stand_in_answers import StandIns
from autograder.sandbox.stopwatch import Stopwatch
from autograder.sandbox.worker_process import Worker

RUN_AGAIN_TIMES = 2
"""How many times the limit of a submission's processor time may be spent on what does not count for
it: running its cells again in further workers, and attempts at questions that are then answered in
a fresh worker. Asleep it may be then for as long as in what counts.
"""
SLOWER_AGAIN_TIMES = 2
"""How many times its limit a cell may take that has run to its end before: whether it runs is
decided once.
"""
RUNS_WHEN_GRADING = ("given", "question", "extra")


class Workplace:
    """The one worker of a submission at a time.

    Args:
        client: gives workers.
        reference: the answer key's names, with which stand-ins answer.
        watch: forks and cells count for its stage "run".

    Attributes:
        submission: whose cells run.
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
        self._open_accounts()
        self._outcomes: dict[str, CellOutcome] = {}
        self._left_out: set[str] = set()
        self._forbidden: tuple[str, ...] = ()
        self._stand_ins: tuple[str, ...] = ()
        self._worker: Worker | None = None

    @property
    def cells(self) -> tuple[CellOutcome, ...]:
        """What happened to each cell that ran, in order; cells run when a worker is first
        needed.
        """
        if not self._outcomes:
            self.prepare(())
            # which stands beside the cell in which it happened
            with contextlib.suppress(SubmissionOver):
                self.worker()
            self.close()
        return tuple(
            self._outcomes[cell.id] for cell in self._runnable() if cell.id in self._outcomes
        )

    def prepare(self, forbidden: tuple[str, ...], stand_ins: tuple[str, ...] = ()) -> None:
        """Say what the next worker that is opened may not call, and which prerequisites are stood
        in for there.
        """
        self._forbidden, self._stand_ins = forbidden, stand_ins

    def _open_accounts(self) -> None:
        """All the time of the submission is before it."""
        most = most_for(self._limits.submission_seconds)
        self._account = Account(most, "the whole submission")
        self._run_again = Account(
            WorkerTime(
                RUN_AGAIN_TIMES * most.processor, most.asleep, RUN_AGAIN_TIMES * most.in_all
            ),
            "running the notebook's cells again",
        )

    @property
    def left(self) -> float:
        """Seconds of processor time that the submission has left."""
        return self._account.left

    @property
    def spent(self) -> WorkerTime:
        """What the submission has been charged so far."""
        return self._account.spent

    def charge(self, seconds: float) -> None:
        """Charge processor time of the trusted side: what checking the submission's answers
        took.
        """
        self._account.charge(WorkerTime(seconds))

    def charge_apart(self, since: WorkerTime) -> None:
        """Let an attempt not count that began when so much was spent. There is an end to what does
        not count, too.
        """
        self._run_again.charge(self._account.spent - since)
        self._account.spent = since

    @property
    def may_attempt(self) -> bool:
        """Whether there is time left for what may turn out not to count."""
        return not self._run_again.past()

    def turn_to(self, forbidden: tuple[str, ...]) -> bool:
        """Go on with another question in the worker that is there. False where there is none, or it
        does not answer.
        """
        return self._worker is not None and self._worker.turn_to(forbidden)

    def go_on_with(self, submission: Submission, cells: Sequence[Cell]) -> None:
        """Exchange the submission for one that differs from it by these cells: a worker that was
        kept runs only them.

        For known answers, which come from the course and leave each other alone.
        """
        self.submission = submission
        self._outcomes, self._left_out = {}, set()
        self._open_accounts()
        if self._worker is None or not self._worker.alive:
            return
        self._worker.account = self._account
        answers = self._worker.load(
            _texts(cells),
            self._limits.cell_seconds,
            "the cell",
            functions=_questions(submission.cells),
        )
        # it is dead then, and the next call opens another
        with contextlib.suppress(StudentTimeout, StudentCrashed):
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
                for account in (self._account, self._run_again):
                    if clock := account.past():
                        raise SubmissionOver(account.describe(clock))
                worker = Worker(self._client, self._limits, self._account)
                if self._load(worker):
                    break
            if self._stand_ins:
                # these functions, and not the one that the student is graded for
                key = {
                    name: self._reference[name]
                    for name in self._stand_ins
                    if name in self._reference
                }
                answers = StandIns(key, self._limits)
                worker.stand_ins = answers
                worker.request(answers.request(), {}, self._limits.call_seconds, "stand-ins")
            return worker

    def _load(self, worker: Worker) -> bool:
        """Run the cells in order. False where one killed the worker: it is left out from now on.

        The first run of a cell is charged to the submission, and its limit decides. Any further run
        of the same text says nothing new: it is not charged, and its limit is wider.

        Raises:
            SubmissionOver: the time for all cells is used up.
        """
        cells = [cell for cell in self._runnable() if cell.id not in self._left_out]
        seconds = [
            self._limits.cell_seconds * (SLOWER_AGAIN_TIMES if self._has_run(cell) else 1)
            for cell in cells
        ]
        answers = worker.load(
            _texts(cells), seconds, "the cell", self._forbidden, _questions(cells)
        )
        for cell in cells:
            worker.account = self._run_again if self._has_run(cell) else self._account
            try:
                answer = next(answers).header
            except (StudentTimeout, StudentCrashed) as fault:
                text = str(fault).replace("the cell", "cell " + cell.id, 1)
                if isinstance(fault, SubmissionOver):
                    self._outcomes.setdefault(cell.id, CellOutcome(cell.id, fault.outcome, text))
                    raise
                self._left_out.add(cell.id)
                self._outcomes[cell.id] = CellOutcome(cell.id, fault.outcome, text)
                return False
            self._outcomes.setdefault(cell.id, _outcome(cell, answer))
        worker.account = self._account
        return True

    def _has_run(self, cell: Cell) -> bool:
        return cell.id in self._outcomes

    def _runnable(self) -> list[Cell]:
        return [cell for cell in self.submission.cells if cell.role in RUNS_WHEN_GRADING]

    def close(self) -> None:
        """End the worker, if there is one."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def explain_missing(self, name: str) -> str:
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
