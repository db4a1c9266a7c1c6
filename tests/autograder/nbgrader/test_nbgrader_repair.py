"""Cells of a submission matched to the release, and the texts that students read."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from awkward import AWKWARD, BLANK
from nbgrader_course import HALF_ANSWERED, cell, notebook, release_cells, result_for

from autograder.course import Limits
from autograder.intake.notebook import read_submission
from autograder.intake.released_notebook import read_release_cells
from autograder.nbgrader.autograded import complete_notebook
from autograder.nbgrader.gradebook import make_entry
from autograder.nbgrader.released_cells import grade_id, read_built, read_release
from autograder.nbgrader.student_texts import (
    as_literal,
    cell_report,
    question_comment,
    question_report,
)
from autograder.records.model import Diagnosis, QuestionResult, TestOutcome
from autograder.records.submission import CellOutcome, FoundSubmission, Submission

IDS = ["given_library", "double", "check_double", "half", "check_half", "written_why"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "release.ipynb").write_text(
        json.dumps(notebook(release_cells())), encoding="utf-8"
    )
    return tmp_path


def read(folder: Path, content: bytes) -> Submission:
    path = folder / "ada.ipynb"
    path.write_bytes(content)
    release = read_release_cells(folder / "release.ipynb", "tiny")
    return read_submission(FoundSubmission("ada", path), release, Limits())


def repaired(folder: Path, cells: list[Any]) -> list[dict[str, Any]]:
    submission = read(folder, json.dumps(notebook(cells)).encode())
    made: list[dict[str, Any]] = complete_notebook(
        read_built(folder / "release.ipynb"), submission
    )["cells"]
    return made


def ids(cells: list[dict[str, Any]]) -> list[str]:
    return [name for found in cells if (name := grade_id(found))]


def answer(cells: list[dict[str, Any]], name: str) -> str:
    return str(next(found["source"] for found in cells if grade_id(found) == name))


def test_a_whole_notebook_has_the_released_cells(folder: Path) -> None:
    made = repaired(folder, release_cells())
    assert [(c["cell_type"], c["source"], c["metadata"]) for c in made[1:]] == [
        (c.cell_type, c.source, c.metadata) for c in release_cells()[1:]
    ]


@pytest.mark.parametrize("order", ["answer first", "answer last"])
def test_of_two_copies_the_one_with_an_answer_stays(folder: Path, order: str) -> None:
    cells = release_cells()
    copy = cell(
        "code", HALF_ANSWERED, "half", solution=True, role="question", name="half"
    )
    cells.insert(4 if order == "answer first" else 5, copy)
    made = repaired(folder, cells)
    assert ids(made) == IDS
    assert answer(made, "half") == HALF_ANSWERED
    assert len(made) == 8  # the other copy stays as an ordinary cell
    assert len({found["id"] for found in made}) == 8


def test_missing_cells_come_back_where_they_were(folder: Path) -> None:
    cells = release_cells()
    for index in (6, 3, 1):
        del cells[index]
    assert [grade_id(found) for found in repaired(folder, cells)] == [
        "given_library",
        "",
        *IDS[1:],
    ]


def test_locked_cells_have_the_released_source(folder: Path) -> None:
    cells = release_cells()
    cells[1].source = "import os"
    cells[3].source = "assert True"
    made = repaired(folder, cells)
    assert answer(made, "given_library") == "import math"
    assert answer(made, "check_double") == "assert double(2) == 4"


@pytest.mark.parametrize(
    "meta",
    [
        None,
        [],
        "x",
        {"grade_id": 3},
        {"grade_id": "half"},
        {"grade_id": "other", "schema_version": 9},
    ],
)
def test_broken_metadata_is_replaced(folder: Path, meta: Any) -> None:
    cells = release_cells()
    cells[4].metadata["nbgrader"] = meta
    made = repaired(folder, cells)
    assert ids(made) == IDS
    assert made[4]["metadata"]["nbgrader"] == release_cells()[4].metadata["nbgrader"]


def test_a_changed_cell_type_is_put_right(folder: Path) -> None:
    cells = release_cells()
    cells[-1] = cell(
        "code", "# because", "written_why", grade=True, solution=True, points=99
    )
    made = repaired(folder, cells)
    assert (made[-1]["cell_type"], made[-1]["source"]) == (
        "markdown",
        "```\n# because\n```",
    )
    assert made[-1]["metadata"]["nbgrader"]["points"] == 4
    assert "outputs" not in made[-1]


def test_what_a_student_claims_to_be_a_guide_is_not(folder: Path) -> None:
    cells = [*release_cells(), cell("markdown", "look", role="guide", name="why")]
    assert repaired(folder, cells)[-1]["metadata"] == {}


@pytest.mark.parametrize("name", AWKWARD)
def test_the_answer_of_every_awkward_notebook_is_shown(folder: Path, name: str) -> None:
    submission = read(folder, AWKWARD[name])
    made = complete_notebook(read_built(folder / "release.ipynb"), submission)["cells"]
    assert sorted(ids(made)) == sorted(IDS)
    assert [a.blank for a in submission.written] == [False]
    assert "the mean of both" in answer(made, "written_why")
    assert (
        next(c.source for c in submission.cells if c.id == "half").strip()
        == HALF_ANSWERED
    )


@pytest.mark.parametrize("name", BLANK)
def test_what_nobody_answered_is_blank(folder: Path, name: str) -> None:
    assert [a.blank for a in read(folder, BLANK[name]).written] == [True]


@pytest.mark.parametrize("kind", ["markdown", "raw", "code"])
def test_an_answer_above_its_prompt_waits_for_a_person(folder: Path, kind: str) -> None:
    """With no score it waits, on both roads to the gradebook; a notebook without words gets 0."""
    release, result = read_release(folder / "release.ipynb"), result_for("ada")
    cells = release_cells()
    blank = make_entry(
        release, result, read(folder, json.dumps(notebook(cells)).encode())
    )
    assert (blank.scores["written_why"], blank.comments["written_why"]) == (
        0.0,
        "No response.",
    )
    cells.insert(len(cells) - 1, cell(kind, "# It is the mean of both."))
    submission = read(folder, json.dumps(notebook(cells)).encode())
    entry = make_entry(release, result, submission)
    assert "written_why" not in entry.scores
    assert entry.comments["written_why"] == ""
    assert "It is the mean of both." in entry.answers["written_why"]
    made = complete_notebook(read_built(folder / "release.ipynb"), submission)["cells"]
    assert "right above the prompt" in answer(made, "written_why")


def test_what_a_student_reads() -> None:
    tests = (
        TestOutcome("test_a", "passed", 2.0, 2.0),
        TestOutcome("test_b", "timeout", 0.0, 1 / 3),
        TestOutcome("test_c", "error", 0.0, 1.0, "ValueError: x\ncell half, line 2"),
    )
    question = QuestionResult(
        "half", 2.0, 10 / 3, 0.25, Diagnosis("floor", "Is // what you want?"), tests
    )
    assert question_report(
        question, dataclasses.replace(result_for("ada"), questions=(question,))
    ) == (
        "half: 2 of 3.33 points\n"
        "Look here first: Is // what you want?\n"
        "\n"
        "0.25 of these points count in spite of a mistake in a question that it builds on: with "
        "a right answer in its "
        "place, yours passes more tests.\n"
        "\n"
        "✓ a (2 of 2): passed\n"
        "✗ b (0 of 0.33): took too long and was stopped\n"
        "✗ c (0 of 1): your code raised an error\n"
        "    ValueError: x\n"
        "    cell half, line 2\n"
    )
    assert (
        question_comment(question)
        == "    Is // what you want?\n    \n    ValueError: x\n    cell half, line 2"
    )
    assert question_comment(result_for("ada").questions[0]) == ""


def test_texts_are_shown_letter_by_letter() -> None:
    assert as_literal("a\x1b[31m<b>\n# c") == "    a[31m<b>\n    # c"
    assert as_literal("") == ""
    assert cell_report(CellOutcome("half", "ok", "all well")) == ""
    assert (
        cell_report(CellOutcome("half", "restored", "restored from the release"))
        == "restored from the release\n"
    )
