"""`nbgrader autograde` on our course: grades through the sandbox, saves everything at once, stops
for nobody.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import nbformat
import pytest
from nbgrader.converters.base import NbGraderException
from nbgrader_course import HALF_ANSWERED, TinyCourse, cell, release_cells, result_for
from sqlalchemy import event
from sqlalchemy.orm import Session

from autograder.basics.errors import HostFailed, IsolationUnavailable
from autograder.nbgrader import warm_graders
from autograder.records.model import Graded
from autograder.records.submission import CellOutcome

# nbgrader's own code warns of its old datetime calls.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

FULL = {"check_double": (3.0, None, False), "check_half": (1.0, None, False)}


def outputs(notebook: Any, grade_id: str) -> str:
    found = next(
        c
        for c in notebook.cells
        if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id
    )
    return "".join(output.text for output in found.outputs)


def test_scores_and_reports_are_those_of_the_result(
    tiny: TinyCourse, graded: dict[str, Any]
) -> None:
    tiny.hand_in("ada")
    tiny.autograde()
    # left as released: no response
    assert tiny.grades("ada") == {**FULL, "written_why": (0.0, None, False)}
    assert tiny.comments("ada") == {
        "double": None,
        "half": "    `half(3)` is <b>1</b>; it should be 1.5.",
        "written_why": "No response.",
    }
    assert outputs(tiny.autograded("ada"), "check_half") == (
        "half: 1 of 3 points\n✗ halves an odd number (1 of 3): not right yet\n"
        "    `half(3)` is <b>1</b>; it should be 1.5.\n"
    )
    assert (
        outputs(tiny.autograded("ada"), "check_double")
        == "double: 3 of 3 points\n✓ doubles (3 of 3): passed\n"
    )


def test_an_error_in_a_cell_is_shown_there(
    tiny: TinyCourse, graded: dict[str, Any]
) -> None:
    tiny.hand_in("ada")
    broken = dataclasses.replace(
        result_for("ada"), cells=(CellOutcome("half", "error", "SyntaxError: line 2"),)
    )
    graded["ada"] = Graded("ada", broken)
    tiny.autograde()
    assert outputs(tiny.autograded("ada"), "half") == "SyntaxError: line 2\n"


def test_an_answered_question_in_words_waits_for_a_person(
    tiny: TinyCourse, graded: dict[str, Any]
) -> None:
    cells = release_cells()
    cells[-1].source = "Because."
    tiny.hand_in("ada", cells)
    tiny.autograde()
    assert tiny.grades("ada")["written_why"] == (None, None, True)
    assert tiny.comments("ada")["written_why"] is None


def test_the_student_s_outputs_and_extra_files_have_no_say(
    tiny: TinyCourse, graded: dict[str, Any]
) -> None:
    cells = release_cells()
    cells[3].outputs = [
        nbformat.v4.new_output(
            "execute_result", data={"text/plain": "3"}, execution_count=1
        )
    ]
    path = tiny.hand_in("ada", cells)
    for name in ("conftest.py", "numpy.py", "sqlalchemy.py"):
        (path.parent / name).write_text(
            "raise SystemExit('imported by the grading process')\n", encoding="utf-8"
        )
    tiny.autograde()
    assert tiny.grades("ada")["check_half"] == (1.0, None, False)


def test_lost_and_copied_cells_do_not_stop_the_batch(
    tiny: TinyCourse, graded: dict[str, Any]
) -> None:
    ada = release_cells()
    del ada[3], ada[1]  # the grade cell of double and the given cell
    tiny.hand_in("ada", ada)
    ben = release_cells()
    ben.insert(
        5,
        cell(
            "code", HALF_ANSWERED, "half", solution=True, role="question", name="half"
        ),
    )
    tiny.hand_in("ben", ben)
    tiny.hand_in("cay")
    tiny.autograde()
    for student in ("ada", "ben", "cay"):
        assert {name: tiny.grades(student)[name] for name in FULL} == FULL
    ids = [
        c.metadata.nbgrader.grade_id
        for c in tiny.autograded("ada").cells
        if "nbgrader" in c.metadata
    ]
    assert ids == [
        "given_library",
        "double",
        "check_double",
        "half",
        "check_half",
        "written_why",
    ]
    answers = [
        c
        for c in tiny.autograded("ben").cells
        if c.metadata.get("nbgrader", {}).get("grade_id") == "half"
    ]
    assert [answer.source for answer in answers] == [HALF_ANSWERED]


def test_a_submission_that_is_no_notebook_gets_zero_and_waits(
    tiny: TinyCourse, graded: dict[str, Any]
) -> None:
    path = tiny.hand_in("ada", at="2026-03-01 10:00:00 UTC")
    tiny.autograde()
    assert tiny.grades("ada")["check_double"] == (3.0, None, False)

    path.write_text("{not a notebook", encoding="utf-8")
    (path.parent / "timestamp.txt").write_text(
        "2026-03-02 10:00:00 UTC", encoding="utf-8"
    )
    graded["ada"] = Graded("ada", None, "tiny.ipynb: not a notebook")
    tiny.hand_in("ben")
    tiny.autograde()
    zero = (0.0, None, True)
    assert tiny.grades("ada") == {
        "check_double": zero,
        "check_half": zero,
        "written_why": zero,
    }
    assert (
        tiny.comments("ada")["double"]
        == "    This submission could not be graded: tiny.ipynb: not a notebook"
    )
    assert tiny.grades("ben")["check_double"] == (3.0, None, False)


def test_a_failure_while_grading_leaves_no_old_score(
    tiny: TinyCourse, graded: dict[str, Any]
) -> None:
    tiny.hand_in("ada")
    tiny.hand_in("ben")
    tiny.autograde()
    graded["ada"] = HostFailed("the host died")
    with pytest.raises(NbGraderException):
        tiny.autograde(force=True)
    assert tiny.grades("ada")["check_double"] == (0.0, None, True)
    assert tiny.comments("ada")["half"] == (
        "    This submission could not be graded: grading ended with HostFailed: the host died"
    )
    assert tiny.grades("ben")["check_double"] == (3.0, None, False)


def test_a_machine_without_walls_ends_the_command_before_any_score(
    tiny: TinyCourse, graded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(course: Any, assignment: Any) -> None:
        raise IsolationUnavailable("no walls here")

    tiny.hand_in("ada")
    tiny.autograde()
    monkeypatch.setattr(warm_graders, "warm_up", refuse)
    with pytest.raises(SystemExit, match="no walls here"):
        tiny.autograde(force=True)
    assert tiny.grades("ada")["check_double"] == (3.0, None, False)


def test_a_renamed_notebook_is_graded(tiny: TinyCourse, graded: dict[str, Any]) -> None:
    tiny.hand_in("ada", name="tiny (1)")
    tiny.autograde()
    assert tiny.grades("ada")["check_double"] == (3.0, None, False)


def test_without_a_notebook_of_the_name_there_is_no_old_score(
    tiny: TinyCourse, graded: dict[str, Any]
) -> None:
    path = tiny.hand_in("ada")
    tiny.autograde()
    path.rename(path.with_name("one.ipynb"))
    tiny.hand_in("ada", name="two")
    with pytest.raises(NbGraderException):
        tiny.autograde(force=True)
    assert tiny.grades("ada")["check_double"] == (0.0, None, True)


def test_all_scores_of_a_submission_are_one_transaction(
    tiny: TinyCourse, graded: dict[str, Any]
) -> None:
    tiny.hand_in("ada")
    tiny.autograde()
    with_scores: list[list[str]] = []
    statements: list[str] = []

    def count(session: Session) -> None:
        if statements:
            with_scores.append(statements[:])
        statements.clear()

    def note(state: Any) -> None:
        if state.is_update and state.bind_mapper.class_.__name__ == "Grade":
            statements.append(str(state.statement))

    event.listen(Session, "after_commit", count)
    event.listen(Session, "do_orm_execute", note)
    try:
        tiny.autograde(force=True)
    finally:
        event.remove(Session, "after_commit", count)
        event.remove(Session, "do_orm_execute", note)
    assert len(with_scores) == 1


def test_an_answer_that_did_not_change_keeps_its_points(
    tiny: TinyCourse, graded: dict[str, Any]
) -> None:
    cells = release_cells()
    cells[-1].source = "Because."
    tiny.hand_in("ada", cells, at="2026-03-01 10:00:00 UTC")
    tiny.autograde()
    tiny.score_by_hand("ada", "written_why", 4.0)

    tiny.autograde(force=True)  # the same work again: nothing new to read
    assert tiny.grades("ada")["written_why"] == (None, 4.0, False)

    cells[-1].source = "  Because.\n"
    cells[4].source = HALF_ANSWERED
    tiny.hand_in("ada", cells, at="2026-03-02 10:00:00 UTC")
    graded["ada"] = Graded("ada", result_for("ada", half=2.0))
    tiny.autograde()
    assert tiny.grades("ada") == {
        "check_double": (3.0, None, False),
        "check_half": (2.0, None, False),
        "written_why": (None, 4.0, False),
    }


@pytest.mark.parametrize(
    "times", [("", ""), ("2026-03-01 10:00:00 UTC", "2026-03-02 10:00:00 UTC")]
)
def test_another_answer_goes_back_to_a_person(
    tiny: TinyCourse, graded: dict[str, Any], times: tuple[str, str]
) -> None:
    cells = release_cells()
    for time, words in zip(times, ("Because.", "Because of the sum."), strict=True):
        cells[-1].source = words
        tiny.hand_in("ada", cells, at=time)
        tiny.autograde(force=True)
        looked_at = tiny.grades("ada")["written_why"]
        tiny.score_by_hand("ada", "written_why", 4.0)
    assert looked_at == (None, 4.0, True)
