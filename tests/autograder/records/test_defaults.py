"""What a record says of which nothing more is known."""

from __future__ import annotations

from pathlib import Path

from autograder.records.model import (
    Diagnosis,
    ManualGrades,
    ManualScore,
    QuestionResult,
    Result,
    Speed,
    TestOutcome,
)
from autograder.records.submission import (
    Answer,
    Cell,
    CellOutcome,
    FoundSubmission,
    HandedInCell,
    Submission,
)


def test_a_result_has_no_more_than_was_seen() -> None:
    assert Diagnosis("m", "h") == Diagnosis("m", "h", tests=(), keeps=0.0)
    assert TestOutcome("t", "passed", 1.0, 2.0) == TestOutcome(
        "t", "passed", 1.0, 2.0, message=""
    )
    assert QuestionResult("q", 1.0, 2.0, 0.0, None, ()) == QuestionResult(
        "q",
        1.0,
        2.0,
        0.0,
        None,
        (),
        slips=(),
        kept=0.0,
        capped=0.0,
        two_answers=(),
        evidence="",
        example=None,
    )
    plain = Result("m1", "ada", "sha", "suite", "strict", 1.0, 2.0, (), ())
    assert plain == Result(
        "m1", "ada", "sha", "suite", "strict", 1.0, 2.0, (), (), made_by={}
    )
    assert Speed("c", 1.0, 2.0) == Speed("c", 1.0, 2.0, problem="")


def test_points_by_hand_are_not_given_until_somebody_gives_them() -> None:
    assert ManualScore("why", 2.0, None) == ManualScore(
        "why",
        2.0,
        None,
        extra_credit=0.0,
        comment="",
        waits=False,
        earlier=False,
        answer="",
    )
    grades = ManualGrades("ada", ())
    assert (grades.questions, grades.automatic, grades.submission) == ((), {}, "")
    assert (grades.waits, grades.earlier) == (False, False)


def test_a_notebook_has_no_more_than_was_read() -> None:
    assert Answer("a", "text") == Answer("a", "text", blank=False, elsewhere=())
    cell = Cell("a", "extra", "")
    assert (cell.note, cell.place) == ("", -1.0)
    # where a cell stands in the file does not make it another one
    assert cell == Cell("a", "extra", "", place=3.0) != Cell("a", "extra", "x = 1")
    found = FoundSubmission("ada", Path("m1.ipynb"))
    # nor does the folder below which a submission was found
    assert found == FoundSubmission("ada", Path("m1.ipynb"), below=Path("submitted"))
    assert found.below is None
    assert HandedInCell("code", "x") == HandedInCell("code", "x", id="", attachments={})
    assert CellOutcome("a", "ok") == CellOutcome("a", "ok", message="")
    submission = Submission("ada", "m1", Path(), "sha", ())
    assert submission == Submission(
        "ada",
        "m1",
        Path(),
        "sha",
        (),
        written=(),
        handed_in=(),
        notices=(),
        companions={},
    )
