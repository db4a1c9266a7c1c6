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
from autograder.nbgrader import autograded
from autograder.nbgrader.autograded import NotebooksForGraders, _model_answer
from autograder.nbgrader.released_cells import suite_assignment
from autograder.nbgrader.repair import SubmissionExporter
from autograder.records.model import Result
from autograder.records.submission import CellOutcome, Submission


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
