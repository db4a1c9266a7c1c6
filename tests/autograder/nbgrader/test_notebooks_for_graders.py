"""What graders get beside a submission: reports as outputs, and the model answer without what the
prompt has.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stored_results import outcome, question

from autograder.course import Course
from autograder.marks.rubric import GUIDE
from autograder.nbgrader import autograded
from autograder.nbgrader.autograded import (
    NotebooksForGraders,
    _model_answer,
    _own_cell,
    complete_notebook,
    is_guide,
)
from autograder.nbgrader.released_cells import suite_assignment
from autograder.nbgrader.repair import SubmissionExporter
from autograder.outputs.outcome_words import COULD_NOT_BE_GRADED
from autograder.records.model import Result
from autograder.records.submission import Answer, CellOutcome, HandedInCell, Submission


@pytest.mark.parametrize(
    ("prompt", "solution", "answer"),
    [
        ("Why?\n\nYour answer.\n\nEnd", "Why?\n\nIt is.\nSo.\n\nEnd", "It is.\nSo."),
        ("Why?", "Why?\nIt is.", "It is."),
        ("Why?\nEnd", "It is.\nEnd", "It is."),
        # the only equal line between two others is the answer's
        ("a\nb\nc", "x\nb\ny", "x\nb\ny"),
        # the beginning is no end too
        ("a\na", "a\na\na", "a"),
        ("a", "a", ""),
        ("a\n\n\nb", "a\n\nx\n\nb", "x"),
    ],
)
def test_a_model_answer_is_what_the_prompt_does_not_have(
    prompt: str, solution: str, answer: str
) -> None:
    assert _model_answer(prompt, solution) == answer


def code(id_: str, **nbgrader: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "metadata": {"nbgrader": {"grade_id": id_, **nbgrader}},
        "source": "",
        "outputs": ["the student's own"],
    }


def test_a_cell_has_its_reports_alone_as_outputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells = [
        code("double", solution=True),
        code("half", solution=True),
        code("check_double", grade=True),
        {"cell_type": "markdown", "metadata": {}, "source": "text"},
    ]
    monkeypatch.setattr(autograded, "read_built", lambda path: {"cells": []})
    monkeypatch.setattr(
        autograded, "complete_notebook", lambda release, submission: {"cells": cells}
    )
    graders = NotebooksForGraders(Path("m1.ipynb"), Path("no solution"))
    result = Result(
        "m1",
        "ada",
        "sha",
        "suite",
        "strict",
        1.0,
        1.0,
        (question("double", outcome("test_a", 1.0, 1.0)),),
        (CellOutcome("half", "error", "it fails"), CellOutcome("double", "ok", "")),
    )
    submission = Submission("ada", "m1", Path("m1.ipynb"), "sha", ())
    made = json.loads(graders.graded(submission, result))
    texts = [
        [output["text"] for output in cell.get("outputs", ())] for cell in made["cells"]
    ]
    assert texts[:2] == [[], ["it fails\n"]]
    ((report,),) = texts[2:3]
    assert report.startswith("double: 1 of 1 points\n")
    assert "outputs" not in made["cells"][3]


# what nbgrader takes


@pytest.mark.parametrize(
    ("notebook", "files", "has_suite"),
    [
        ("m1", ["source/m1/m1.py", "tests/hidden/m1/test_a.py"], True),
        ("extra", ["source/m1/m1.py", "tests/hidden/m1/test_a.py"], False),
        ("m1", ["tests/hidden/m1/test_a.py"], False),
        ("m1", ["source/m1/m1.py", "tests/hidden/m1/helper.py"], False),
    ],
)
def test_a_suite_grades_the_notebook_that_is_named_like_the_assignment(
    tmp_path: Path, notebook: str, files: list[str], has_suite: bool
) -> None:
    for file in files:
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = suite_assignment(Course(tmp_path), "m1", notebook)
    assert (found is not None) == has_suite
    assert found is None or found.name == "m1"


def test_a_folder_of_files_alone_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "ada/m1"
    folder.mkdir(parents=True)
    (folder / "m1.ipynb").touch()
    warned: list[Any] = []
    exporter: Any = SimpleNamespace(
        parent=SimpleNamespace(
            coursedir=SimpleNamespace(ignore=["*.pyc", "*.pyc"]),
            assignments={str(folder): []},
        ),
        log=SimpleNamespace(warning=lambda *words: warned.append(words)),
    )
    SubmissionExporter._exclude_special_files(exporter, folder)
    assert warned == []
    assert exporter.parent.coursedir.ignore == ["*.pyc", "*.pyc"]
    (folder / "link").symlink_to("m1.ipynb")
    SubmissionExporter._exclude_special_files(exporter, folder)
    ((text, student, listing),) = warned
    assert text == "%s: left out, since only files are taken: %s"
    assert (student, "link" in listing) == ("ada", True)
    assert list(exporter.parent.assignments) == [str(folder)]


# completed notebooks


def released_cell(
    id_: str, source: str, kind: str = "code", *, solution: bool = True
) -> dict[str, Any]:
    nbgrader = {"grade_id": id_, "solution": solution, "grade": not solution}
    return {
        "cell_type": kind,
        "metadata": {"nbgrader": nbgrader},
        "source": source,
    }


RELEASE: dict[str, Any] = {
    "metadata": {"kernelspec": "python"},
    "cells": [
        released_cell("double", "write it"),
        {"cell_type": "markdown", "metadata": {}, "source": "words"},
        released_cell("check_double", "the test", solution=False),
        released_cell("written_why", "Your answer", "markdown"),
    ],
}


def completed_cells(*handed_in: HandedInCell, **written: str) -> list[dict[str, Any]]:
    """The cells of the completed notebook."""
    answers = tuple(Answer(id_, text) for id_, text in written.items())
    submission = Submission(
        "ada", "m1", Path("m1.ipynb"), "sha", (), answers, handed_in=handed_in
    )
    made = complete_notebook(RELEASE, submission)
    assert made["metadata"] == RELEASE["metadata"]
    return list(made["cells"])


def completed(*handed_in: HandedInCell, **written: str) -> list[tuple[str, str]]:
    """The name and the text of each cell of the completed notebook."""
    return [
        (cell["metadata"].get("nbgrader", {}).get("grade_id", ""), cell["source"])
        for cell in completed_cells(*handed_in, **written)
    ]


def test_a_submission_has_each_cell_once_in_the_students_order() -> None:
    assert completed(
        HandedInCell("markdown", "old text", "written_why"),
        HandedInCell("code", "my own"),
        HandedInCell("code", "assert True", "check_double"),
        HandedInCell("code", "return 2 * x", "double"),
        HandedInCell("code", "a second one", "double"),
        written_why="because",
    ) == [
        ("written_why", "because"),
        ("", "my own"),
        ("check_double", "the test"),
        ("double", "return 2 * x"),
    ]


def test_a_cell_that_is_missing_comes_after_the_one_before_it() -> None:
    assert completed(
        HandedInCell("code", "my own"),
        HandedInCell("code", "return 2 * x", "double"),
        HandedInCell("code", "more"),
    ) == [
        ("", "my own"),
        ("double", "return 2 * x"),
        ("check_double", "the test"),
        ("written_why", "Your answer"),
        ("", "more"),
    ]
    assert completed() == [
        ("double", "write it"),
        ("check_double", "the test"),
        ("written_why", "Your answer"),
    ]


def test_pictures_stay_with_their_text() -> None:
    """An answer in two cells has the pictures of both. Code has none."""
    first, second = {"a.png": {"image/png": "QQ=="}}, {"b.png": {"image/png": "Qg=="}}
    cells = completed_cells(
        HandedInCell("markdown", "see", "written_why", first),
        HandedInCell("markdown", "and see", "written_why", second),
        HandedInCell("markdown", "my own", attachments=second),
        HandedInCell("markdown", "no picture"),
        HandedInCell("code", "x = 1", attachments=first),
        HandedInCell("code", "return 2 * x", "double", first),
        HandedInCell("code", "assert True", "check_double"),
        written_why="see and see",
    )
    pictures = [cell.get("attachments") for cell in cells]
    assert pictures == [{**first, **second}, second, None, None, None, None]


def test_an_own_cell_brings_no_metadata() -> None:
    own = _own_cell(3, HandedInCell("code", "x = 1"))
    assert own == {
        "cell_type": "code",
        "id": "own-3",
        "metadata": {},
        "source": "x = 1",
        "execution_count": None,
        "outputs": [],
    }
    assert "outputs" not in _own_cell(4, HandedInCell("markdown", "text"))


# marking guides


def test_a_guide_stands_below_its_written_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def kit(cell: dict[str, Any], role: str, name: str) -> dict[str, Any]:
        cell["metadata"]["attention_kit"] = {"role": role, "name": name}
        return cell

    scheme = {"cell_type": "markdown", "metadata": {}, "source": "- 2 points: why"}
    answer = released_cell("written_why", "It is.", "markdown")
    answer["metadata"]["nbgrader"]["points"] = 2.5
    solution = tmp_path / "m1.ipynb"
    solution.touch()
    notebooks = {
        "release": RELEASE,
        str(solution): {
            "cells": [
                kit(released_cell("double", "return 2 * x"), "answer", "double"),
                kit(scheme, GUIDE, "why"),
                kit(answer, "written", "why"),
                kit(released_cell("written_new", "not released"), "written", "new"),
            ]
        },
    }
    monkeypatch.setattr(autograded, "read_built", lambda path: notebooks[str(path)])
    graders = NotebooksForGraders(Path("release"), solution)
    made = json.loads(graders.problem("no notebook"))
    first, *cells, guide = made["cells"]
    assert first["source"] == (
        f"**{COULD_NOT_BE_GRADED}.** This is the release, with nothing of the student's in it.\n\n"
        "    no notebook"
    )
    assert [cell["source"] for cell in cells] == [
        cell["source"] for cell in RELEASE["cells"]
    ]
    assert guide["source"] == (
        "**For graders: 2.5 points**\n\n- **#1** 2 points: why\n\n**Model answer**\n\nIt is."
    )
    assert guide["metadata"] == {
        "attention_kit": {"role": GUIDE, "name": "written_why"}
    }
    assert [is_guide(cell) for cell in made["cells"]] == [False] * 5 + [True]
    # a solution that is not built has none
    bare = NotebooksForGraders(Path("release"), tmp_path / "none.ipynb")
    assert len(json.loads(bare.problem("no notebook"))["cells"]) == 5
