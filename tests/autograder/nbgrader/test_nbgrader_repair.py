"""Cells of a submission matched to the release, and the texts that students read."""

from __future__ import annotations

from typing import Any

import pytest
from nbgrader_course import HALF_ANSWERED, cell, notebook, release_cells, result_for

from autograder.model import CellOutcome, Diagnosis, QuestionResult, TestOutcome
from autograder.nbgrader.repair import grade_id, repair
from autograder.nbgrader.texts import as_literal, cell_report, question_comment, question_report

IDS = ["given_library", "double", "check_double", "half", "check_half", "written_why"]


def repaired(cells: list[Any]) -> tuple[Any, list[str]]:
    made = notebook(cells)
    return made, repair(made, release_cells()[1:])


def ids(made: Any) -> list[str]:
    return [grade_id(found) for found in made.cells if grade_id(found)]


def answer(made: Any, name: str) -> str:
    return str(next(found.source for found in made.cells if grade_id(found) == name))


def test_a_whole_notebook_is_left_alone() -> None:
    made, notes = repaired(release_cells())
    assert notes == []
    assert made.cells == release_cells()


@pytest.mark.parametrize("order", ["answer first", "answer last"])
def test_of_two_copies_the_one_with_an_answer_stays(order: str) -> None:
    cells = release_cells()
    copy = cell("code", HALF_ANSWERED, "half", solution=True, role="question", name="half")
    cells.insert(4 if order == "answer first" else 5, copy)
    made, notes = repaired(cells)
    assert ids(made) == IDS
    assert answer(made, "half") == HALF_ANSWERED
    assert len(made.cells) == 8  # the other copy stays as an ordinary cell
    assert notes == ["cell 'half' is there 2 times; one is kept as the answer"]
    assert len({found.id for found in made.cells}) == 8


def test_missing_cells_come_back_where_they_were() -> None:
    cells = release_cells()
    for index in (6, 3, 1):
        del cells[index]
    made, notes = repaired(cells)
    assert [grade_id(found) for found in made.cells] == ["given_library", "", *IDS[1:]]
    assert notes == [f"cell {name!r} was missing; put back as released" for name in (IDS[0], IDS[2], IDS[5])]


def test_locked_cells_have_the_released_source() -> None:
    cells = release_cells()
    cells[1].source = "import os"
    cells[3].source = "assert True"
    made, notes = repaired(cells)
    assert answer(made, "given_library") == "import math"
    assert answer(made, "check_double") == "assert double(2) == 4"
    assert len(notes) == 2


def test_metadata_that_an_editor_dropped_is_found_again_by_content() -> None:
    cells = release_cells()
    cells[4].source = HALF_ANSWERED
    for found in cells:
        found.metadata.clear()
    made, notes = repaired(cells)
    assert ids(made) == IDS
    assert answer(made, "half") == HALF_ANSWERED
    assert len(made.cells) == 7
    assert len(notes) == 6


@pytest.mark.parametrize(
    "meta", [None, [], "x", {"grade_id": 3}, {"grade_id": "half"}, {"grade_id": "other", "schema_version": 9}]
)
def test_broken_metadata_is_replaced(meta: Any) -> None:
    cells = release_cells()
    cells[4].metadata["nbgrader"] = meta
    made, _ = repaired(cells)
    assert ids(made) == IDS
    assert made.cells[4].metadata["nbgrader"] == release_cells()[4].metadata["nbgrader"]


def test_a_changed_cell_type_is_put_right() -> None:
    cells = release_cells()
    cells[-1] = cell("code", "# because", "written_why", grade=True, solution=True, points=99)
    made, _ = repaired(cells)
    assert made.cells[-1].cell_type == "markdown"
    assert made.cells[-1].source == "# because"
    assert made.cells[-1].metadata.nbgrader.points == 4
    assert "outputs" not in made.cells[-1]


def test_without_a_release_the_last_copy_counts() -> None:
    made = notebook([*release_cells(), release_cells()[2]])
    assert repair(made, []) == ["cell 'double' is there more than once; the last one counts"]
    assert ids(made) == ["given_library", "check_double", "half", "check_half", "written_why", "double"]


def test_what_a_student_reads() -> None:
    tests = (
        TestOutcome("test_a", "passed", 2.0, 2.0),
        TestOutcome("test_b", "timeout", 0.0, 1 / 3),
        TestOutcome("test_c", "error", 0.0, 1.0, "ValueError: x\ncell half, line 2"),
    )
    question = QuestionResult("half", 2.0, 10 / 3, 0.25, Diagnosis("floor", "Is // what you want?"), tests)
    assert question_report(question) == (
        "half: 2 of 3.33 points\n"
        "0.25 of them with a stand-in for an earlier question.\n"
        "✓ test_a (2/2)\n"
        "✗ test_b (0/0.33)\n"
        "    took too long.\n"
        "✗ test_c (0/1)\n"
        "    ValueError: x\n"
        "    cell half, line 2\n"
        "\n"
        "Is // what you want?\n"
    )
    assert question_comment(question) == "    Is // what you want?\n    \n    ValueError: x\n    cell half, line 2"
    assert question_comment(result_for("ada").questions[0]) == ""


def test_texts_are_shown_letter_by_letter() -> None:
    assert as_literal("a\x1b[31m<b>\n# c") == "    a[31m<b>\n    # c"
    assert as_literal("") == ""
    assert cell_report(CellOutcome("half", "ok", "all well")) == ""
    assert cell_report(CellOutcome("half", "restored", "restored from the release")) == "restored from the release\n"
