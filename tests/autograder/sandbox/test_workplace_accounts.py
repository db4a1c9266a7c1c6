"""What a submission pays for, cell by cell, with workers that the test plays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import StudentCrashed, StudentTimeout, SubmissionOver
from autograder.course import Limits
from autograder.records.submission import Cell, CellOutcome, Submission
from autograder.sandbox import workplace as workplace_module
from autograder.sandbox.clocks import Account, WorkerTime
from autograder.sandbox.stopwatch import Stopwatch
from autograder.sandbox.workplace import Workplace, _outcome

LIMITS = Limits(cell_seconds=5.0, submission_seconds=10.0, call_seconds=3.0)
CELLS = (
    Cell("imports", "given", "import math"),
    Cell("double", "question", "def double(x): return 2 * x"),
    Cell("about", "text", "words"),
    Cell("try", "check", "assert double(1) == 2"),
    Cell("mine", "extra", "y = double(2)"),
)
Fates = dict[str, list[Any]]


class PlayedWorker:
    """A worker whose cells end as `fates` says: an exception, or a charge in seconds."""

    fates: Fates
    opened: list[PlayedWorker]

    def __init__(self, client: object, limits: Limits, account: Account) -> None:
        self.account = account
        self.alive = True
        self.loads: list[Any] = []
        self.paid: dict[str, Account] = {}
        self.requests: list[Any] = []
        self.stand_ins: Any = None
        self.opened.append(self)

    def load(
        self,
        cells: Sequence[tuple[str, str]],
        seconds: Any,
        call: str,
        forbidden: Sequence[str] = (),
        functions: Sequence[str] = (),
        companions: Any = None,
    ) -> Iterator[Any]:
        self.loads.append((cells, seconds, call, forbidden, functions, companions))
        for cell, _ in cells:
            self.paid[cell] = self.account
            fates = self.fates.get(cell, [])
            fate = fates.pop(0) if fates else 0.0
            if isinstance(fate, Exception):
                self.alive = False
                raise fate
            self.account.charge(WorkerTime(fate))
            yield SimpleNamespace(header={"ok": True})

    def request(self, header: Any, tensors: Any, seconds: float, call: str) -> None:
        self.requests.append((header, seconds, call))

    def kill(self) -> None:
        self.alive = False


@pytest.fixture
def fates(monkeypatch: pytest.MonkeyPatch) -> Fates:
    PlayedWorker.fates, PlayedWorker.opened = {}, []
    monkeypatch.setattr(workplace_module, "Worker", PlayedWorker)
    return PlayedWorker.fates


@pytest.fixture
def place(fates: Fates) -> Workplace:
    submission = Submission(
        "ada",
        "small",
        Path("ada.ipynb"),
        "sha",
        CELLS,
        companions={"p.py": "x = 1"},
    )
    reference = {"double": lambda x: 2 * x}
    return Workplace(
        SimpleNamespace(),  # type: ignore[arg-type]
        LIMITS,
        submission,
        reference,
        Stopwatch(),
    )


def is_charged(place: Workplace, worker: PlayedWorker, cell: str) -> bool:
    return worker.paid[cell] is place._account


def test_given_question_and_own_cells_run_in_order(place: Workplace) -> None:
    place.prepare(("torch.softmax",))
    worker: Any = place.worker()
    texts = [(CELLS[number].id, CELLS[number].source) for number in (0, 1, 4)]
    assert worker.loads == [
        (
            texts,
            [5.0, 5.0, 5.0],
            "the cell",
            ("torch.softmax",),
            ["double"],
            {"p.py": "x = 1"},
        )
    ]
    assert place.worker() == worker
    assert place.cells == (
        CellOutcome("imports", "ok", ""),
        CellOutcome("double", "ok", ""),
        CellOutcome("mine", "ok", ""),
    )
    assert worker.requests == []


def test_cells_that_nobody_asked_for_run_for_their_outcomes(
    place: Workplace, fates: Fates
) -> None:
    """In a worker without bans and stand-ins, which ends."""
    place.prepare(("torch.softmax",), ("double",))
    fates["double"] = [SubmissionOver("the cell did not end: all time is used up")]
    assert place.cells == (
        CellOutcome("imports", "ok", ""),
        CellOutcome(
            "double", "timeout", "cell double did not end: all time is used up"
        ),
    )
    (worker,) = PlayedWorker.opened
    ((_, _, _, forbidden, _, _),) = worker.loads
    assert (forbidden, worker.requests, worker.alive) == ((), [], False)
    assert len(place.cells) == 2
    assert len(PlayedWorker.opened) == 1


def test_outcomes_that_are_asked_for_leave_no_worker_open(place: Workplace) -> None:
    assert [cell.outcome for cell in place.cells] == ["ok"] * 3
    (worker,) = PlayedWorker.opened
    assert not worker.alive


def test_the_first_run_of_a_cell_is_charged_and_no_other(
    place: Workplace, fates: Fates
) -> None:
    fates["double"] = [1.5, 2.5]
    first: Any = place.worker()
    first.kill()
    second: Any = place.worker()
    assert [is_charged(place, first, cell) for cell in first.paid] == [True] * 3
    assert [is_charged(place, second, cell) for cell in second.paid] == [False] * 3
    assert second.loads[0][1] == [10.0, 10.0, 10.0]
    assert place.spent == WorkerTime(1.5)
    assert place._uncharged.spent == WorkerTime(2.5)
    assert second.account is place._account


def test_a_cell_that_ends_its_worker_is_left_out_of_the_next(
    place: Workplace, fates: Fates
) -> None:
    fates["double"] = [StudentTimeout("the cell did not end: the cell is slow")]
    second: Any = place.worker()
    first = PlayedWorker.opened[0]
    assert [cell for cell, _ in second.loads[0][0]] == ["imports", "mine"]
    # what ran before has run; what never ran has its first limit
    assert second.loads[0][1] == [10.0, 5.0]
    assert not is_charged(place, second, "imports")
    assert is_charged(place, second, "mine")
    assert list(first.paid) == ["imports", "double"]
    message = "cell double did not end: the cell is slow"
    assert place.cells[1] == CellOutcome("double", "timeout", message)


def test_a_crash_is_told_as_one(place: Workplace, fates: Fates) -> None:
    fates["mine"] = [StudentCrashed("the cell ended the whole process.")]
    place.worker()
    words = "cell mine ended the whole process."
    assert place.cells[2] == CellOutcome("mine", "crashed", words)
    assert len(PlayedWorker.opened) == 2


def test_no_further_worker_is_opened_where_the_time_is_over(
    place: Workplace, fates: Fates
) -> None:
    fates["double"] = [SubmissionOver("the cell did not end: all is used up")]
    with pytest.raises(SubmissionOver):
        place.worker()
    assert len(PlayedWorker.opened) == 1
    message = "cell double did not end: all is used up"
    assert place._outcomes["double"] == CellOutcome("double", "timeout", message)
    assert "double" not in place._left_out


def test_a_submission_at_its_limit_has_a_worker_and_beyond_it_none(
    place: Workplace,
) -> None:
    place.charge(10.0)
    assert place.remaining == 0.0
    place.worker()
    place.close()
    place.charge(0.25)
    with pytest.raises(
        SubmissionOver,
        match=r"^the time for the whole submission \(10 s of processor time\) is used up",
    ):
        place.worker()


def test_cells_that_run_again_have_a_limit_too(place: Workplace) -> None:
    """Twice the submission's processor time, and its limit on sleep: 20 s and 20 s."""
    place._uncharged.charge(WorkerTime(20.0, 20.0))
    assert place.may_attempt
    place._uncharged.charge(WorkerTime(0.0, 0.5))
    assert not place.may_attempt
    with pytest.raises(
        SubmissionOver,
        match=r"^running the notebook's cells again slept or waited for 20 s",
    ):
        place.worker()


def test_an_attempt_that_does_not_count_is_paid_by_the_other_account(
    place: Workplace,
) -> None:
    place.charge(1.0)
    since = place.spent
    place.charge(2.5)
    place.refund_since(since)
    assert place.spent == WorkerTime(1.0)
    assert place._uncharged.spent == WorkerTime(2.5)
    assert place.remaining == 9.0


def test_stand_ins_are_set_up_for_prerequisites_of_the_answer_key(
    place: Workplace,
) -> None:
    place.prepare((), ("double", "unknown"))
    worker: Any = place.worker()
    ((header, seconds, call),) = worker.requests
    assert (header["op"], list(header["functions"])) == ("stand_in", ["double"])
    assert (seconds, call) == (3.0, "stand-ins")


def test_another_submission_runs_its_own_cells_in_the_open_worker(
    place: Workplace, fates: Fates
) -> None:
    worker: Any = place.worker()
    place.charge(4.0)
    other = Submission("known", "small", Path("known.ipynb"), "sha", CELLS)
    place.replace_submission(other, [CELLS[1]])
    assert place.spent == WorkerTime()
    assert worker.account is place._account
    assert worker.loads[1] == (
        [("double", CELLS[1].source)],
        5.0,
        "the cell",
        (),
        ["double"],
        {},
    )
    assert place._outcomes == {"double": CellOutcome("double", "ok", "")}
    assert place.submission is other
    fates["double"] = [StudentCrashed("the cell ended the whole process.")]
    place.replace_submission(other, [CELLS[1]])
    assert place._outcomes == {}
    assert not worker.alive
    place.replace_submission(other, [CELLS[1]])  # the next call opens a worker
    assert len(worker.loads) == 3


def test_a_question_is_switched_in_an_open_worker_alone(place: Workplace) -> None:
    assert not place.switch_question(())
    worker: Any = place.worker()
    for answer in (True, False):
        worker.switch_question = lambda forbidden, answer=answer: answer
        assert place.switch_question(()) is answer
    place.close()
    assert not worker.alive
    assert not place.switch_question(())


ERROR = {"type": "KeyError", "message": "x", "frames": ["line 1", "line 2"]}
TOLD = "KeyError: x\n  line 2"


@pytest.mark.parametrize(
    ("cell", "reply", "outcome", "message"),
    [
        (CELLS[1], {"ok": True}, "ok", ""),
        # a worker that says both has run the cell
        (CELLS[1], {"ok": True, "error": ERROR}, "ok", ""),
        (CELLS[1], {"ok": False}, "ok", ""),
        (CELLS[1], {"ok": False, "error": ERROR}, "error", TOLD),
        (CELLS[1], {"ok": 1, "error": ERROR}, "error", TOLD),
        (CELLS[1], {"error": {"type": "E", "frames": []}}, "error", "E: "),
        (CELLS[1], {"error": {"type": "E", "frames": "x"}}, "error", "E: "),
        (Cell("a", "given", "", "restored"), {"ok": True}, "restored", "restored"),
        (Cell("a", "given", ""), {"ok": True}, "ok", ""),
        (Cell("a", "question", "", "a note"), {"ok": True}, "ok", "a note"),
        (
            Cell("a", "question", "", "a note"),
            {"error": ERROR},
            "error",
            f"a note\n{TOLD}",
        ),
    ],
)
def test_what_became_of_a_cell_is_what_its_worker_says(
    cell: Cell, reply: dict[str, Any], outcome: Any, message: str
) -> None:
    assert _outcome(cell, reply) == CellOutcome(cell.id, outcome, message)
