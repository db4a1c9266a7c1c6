"""Opens the worker of a submission, runs the cells there, and opens another one after a kill."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from autograder.basics.errors import StudentCrashed, StudentTimeout, SubmissionOver
from autograder.basics.safe_text import clean
from autograder.course import Limits
from autograder.records.submission import Cell, CellOutcome, Submission
from autograder.sandbox.clocks import Account, WorkerTime, limit_for
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.stand_in_answers import StandIns
from autograder.sandbox.stopwatch import Stopwatch
from autograder.sandbox.worker_process import Worker

RUN_AGAIN_TIMES = 2
"""How many times the limit of a submission's processor time may be spent on work that is not
charged to the submission: running cells again in further workers, and attempts at questions that a
fresh worker then answers. The limit on sleep is that of the submission.
"""
SLOWER_AGAIN_TIMES = 2
"""How many times its limit a cell may take that has already run to its end: the first run decides
whether a cell ends in time.
"""
RUNS_WHEN_GRADING = ("given", "question", "extra")


class Workplace:
    """The one worker of a submission at a time.

    Args:
        client: forks workers.
        reference: the answer key's names, which stand-ins call.
        watch: times forks and cells as the stage "run".

    Attributes:
        submission: the submission whose cells run.
    """

    def __init__(
        self,
        client: HostClient,
        limits: Limits,
        submission: Submission,
        reference: Mapping[str, Any],
        watch: Stopwatch,
    ) -> None:
        self._client, self._limits, self._reference, self._watch = (
            client,
            limits,
            reference,
            watch,
        )
        self.submission = submission
        self._open_accounts()
        self._outcomes: dict[str, CellOutcome] = {}
        self._left_out: set[str] = set()
        self._forbidden: tuple[str, ...] = ()
        self._stand_ins: tuple[str, ...] = ()
        self._worker: Worker | None = None

    @property
    def cells(self) -> tuple[CellOutcome, ...]:
        """The outcome of each cell that ran, in order; cells run when a worker is first needed."""
        if not self._outcomes:
            self.prepare(())
            # the outcome of the cell that used up the time tells of it
            with contextlib.suppress(SubmissionOver):
                self.worker()
            self.close()
        outcomes = (self._outcomes.get(cell.id) for cell in self._runnable())
        return tuple(outcome for outcome in outcomes if outcome is not None)

    def prepare(
        self,
        forbidden: tuple[str, ...],
        stand_ins: tuple[str, ...] = (),
    ) -> None:
        """Set the forbidden functions and the stand-ins of the next worker that is opened."""
        self._forbidden, self._stand_ins = forbidden, stand_ins

    def _open_accounts(self) -> None:
        """Begin to charge a submission, from 0."""
        limit = limit_for(self._limits.submission_seconds)
        uncharged_limit = WorkerTime(
            RUN_AGAIN_TIMES * limit.processor,
            limit.asleep,
            RUN_AGAIN_TIMES * limit.in_all,
        )
        self._account = Account(limit, "the whole submission")
        self._uncharged = Account(uncharged_limit, "running the notebook's cells again")

    @property
    def remaining(self) -> float:
        """Seconds of processor time that the submission can still spend."""
        return self._account.remaining

    @property
    def spent(self) -> WorkerTime:
        """The time that the submission has been charged so far."""
        return self._account.spent

    def charge(self, seconds: float) -> None:
        """Charge processor time of the trusted side, which checked the submission's answers."""
        self._account.charge(WorkerTime(seconds))

    def refund_since(self, since: WorkerTime) -> None:
        """Take back the charges of an attempt, which began when `since` was spent. The account of
        uncharged work, which has a limit too, is charged in place of the submission.
        """
        self._uncharged.charge(self._account.spent - since)
        self._account.spent = since

    @property
    def may_attempt(self) -> bool:
        """Whether there is time for an attempt that may turn out not to count."""
        return not self._uncharged.exceeded()

    def switch_question(self, forbidden: tuple[str, ...]) -> bool:
        """Prepare the open worker for another question. False where no worker is open, or the
        worker does not reply.
        """
        return self._worker is not None and self._worker.switch_question(forbidden)

    def replace_submission(self, submission: Submission, cells: Sequence[Cell]) -> None:
        """Replace the submission by one that differs in these cells; an open worker runs only them.

        For known answers, which come from the course and do not disturb each other.
        """
        self.submission = submission
        self._outcomes, self._left_out = {}, set()
        self._open_accounts()
        if self._worker is None or not self._worker.alive:
            return
        self._worker.account = self._account
        replies = self._worker.load(
            _texts(cells),
            self._limits.cell_seconds,
            "the cell",
            functions=_questions(submission.cells),
            companions=submission.companions,
        )
        # the worker is dead then, and the next call opens another
        with contextlib.suppress(StudentTimeout, StudentCrashed):
            for cell in cells:
                self._outcomes[cell.id] = _outcome(cell, next(replies).header)

    def worker(self) -> Worker:
        """The open worker, which has run the submission's cells, except those that end the process.

        Raises:
            StudentTimeout: the time for the submission is used up.
            HostFailed: no worker can be had.
        """
        if self._worker is None or not self._worker.alive:
            with self._watch.stage("run"):
                self._worker = self._open_worker()
        return self._worker

    def _open_worker(self) -> Worker:
        while True:
            for account in (self._account, self._uncharged):
                if clock := account.exceeded():
                    raise SubmissionOver(account.describe(clock))
            worker = Worker(self._client, self._limits, self._account)
            if self._load(worker):
                break
        if self._stand_ins:
            # the prerequisites alone: never the function that the student is graded for
            names = [name for name in self._stand_ins if name in self._reference]
            functions = {name: self._reference[name] for name in names}
            worker.stand_ins = StandIns(functions, self._limits)
            request = worker.stand_ins.request()
            worker.request(request, {}, self._limits.call_seconds, "stand-ins")
        return worker

    def _load(self, worker: Worker) -> bool:
        """Run the cells in order. False where a cell killed the worker; further workers leave that
        cell out.

        The first run of a cell is charged to the submission, and its limit decides. Any further run
        of the same text tells nothing new: it is not charged, and its limit is wider.

        Raises:
            SubmissionOver: the time for all cells is used up.
        """
        cells = [cell for cell in self._runnable() if cell.id not in self._left_out]
        first_limit = self._limits.cell_seconds
        limits = [
            SLOWER_AGAIN_TIMES * first_limit
            if cell.id in self._outcomes
            else first_limit
            for cell in cells
        ]
        replies = worker.load(
            _texts(cells),
            limits,
            "the cell",
            self._forbidden,
            _questions(cells),
            self.submission.companions,
        )
        for cell in cells:
            worker.account = (
                self._uncharged if cell.id in self._outcomes else self._account
            )
            try:
                reply = next(replies).header
            except (StudentTimeout, StudentCrashed) as fault:
                text = str(fault).replace("the cell", "cell " + cell.id, 1)
                if isinstance(fault, SubmissionOver):
                    self._outcomes.setdefault(
                        cell.id, CellOutcome(cell.id, fault.outcome, text)
                    )
                    raise
                self._left_out.add(cell.id)
                self._outcomes[cell.id] = CellOutcome(cell.id, fault.outcome, text)
                return False
            self._outcomes.setdefault(cell.id, _outcome(cell, reply))
        worker.account = self._account
        return True

    def _runnable(self) -> list[Cell]:
        return [
            cell for cell in self.submission.cells if cell.role in RUNS_WHEN_GRADING
        ]

    def close(self) -> None:
        """End the worker, if there is one."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def explain_missing(self, name: str) -> str:
        """The message for a student whose function is not defined."""
        failed = {
            cell: outcome
            for cell, outcome in self._outcomes.items()
            if outcome.outcome in ("error", "timeout", "crashed")
        }
        if name in failed:
            return (
                f"`{name}` is not defined: its cell did not run. {failed[name].message}"
            )
        for cell, outcome in failed.items():
            return (
                f"`{name}` is not defined. Cell {cell} did not run: {outcome.message}"
            )
        return f"`{name}` is not defined anywhere in the notebook."


def _texts(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    return [(cell.id, cell.source) for cell in cells]


def _questions(cells: Sequence[Cell]) -> list[str]:
    return [cell.id for cell in cells if cell.role == "question"]


def _outcome(cell: Cell, reply: dict[str, Any]) -> CellOutcome:
    """The outcome of a cell, from the worker's reply."""
    error = reply.get("error")
    if reply.get("ok") is True or not isinstance(error, dict):
        is_restored = cell.role == "given" and bool(cell.note)
        return CellOutcome(cell.id, "restored" if is_restored else "ok", cell.note)
    kind = clean(str(error.get("type")), 100)
    message = f"{kind}: {clean(str(error.get('message', '')), 400)}"
    if cell.note:
        message = f"{cell.note}\n{message}"
    frames = error.get("frames")
    if isinstance(frames, list) and frames:
        message += f"\n  {clean(str(frames[-1]), 300)}"
    return CellOutcome(cell.id, "error", message)
