"""Roles, ids and points of released cells, places of notebooks, and remarks about files."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from stored_results import outcome, question

from autograder.basics.errors import BadSource, UnreadableSubmission
from autograder.course import Assignment
from autograder.intake import released_notebook
from autograder.intake.notebook import (
    _describe_files,
    _name_remarks,
    check_is_file,
    is_in_layout,
)
from autograder.intake.reading import NotebookCell
from autograder.intake.released_notebook import (
    make_release,
    points_of_questions,
    read_release_cells,
    written_points,
)
from autograder.records.groups import (
    ClassGroups,
    MistakeGroup,
    fingerprint_nameless,
    nameless_questions,
    read_current_groups,
    write_groups,
)
from autograder.records.model import Diagnosis, QuestionResult, Result
from autograder.records.submission import FoundSubmission


def cell(
    kind: str = "code", role: str = "", name: str = "", **fields: Any
) -> NotebookCell:
    return NotebookCell(kind, "text", role=role, name=name, **fields)


@pytest.mark.parametrize(
    ("released", "role", "id_", "name"),
    [
        (cell(role="question", name="double"), "question", "double", "double"),
        (cell(role="check", name="double"), "check", "check_double", "double"),
        (cell(role="given", name="imports"), "given", "given_imports", "imports"),
        (cell(role="given"), "given", "given_1", "given_1"),
        (cell(role="demo"), "demo", "demo_1", "demo_1"),
        (cell(role="demo", name="d"), "demo", "demo_d", "d"),
        (cell("markdown", "written", "why"), "written", "written_why", "why"),
        (cell("markdown"), "text", "text_1", "text_1"),
        (cell(), "given", "given_1", "given_1"),
        # roles that are none, and text that is code
        (cell(role="odd"), "given", "given_1", "given_1"),
        (cell(role="text"), "given", "given_1", "given_1"),
        (cell("markdown", "odd"), "text", "text_1", "text_1"),
        (cell("markdown", "text"), "text", "text_1", "text_1"),
        # nbgrader's metadata alone
        (cell(grade_id="check_a"), "check", "check_a", "check_a"),
        (cell(grade_id="given_a"), "given", "given_a", "given_a"),
        (cell("markdown", grade_id="written_a"), "written", "written_a", "written_a"),
        (cell(grade_id="a", solution=True), "question", "a", "a"),
        (cell("markdown", grade_id="a", solution=True), "written", "a", "a"),
        (cell(grade_id="a"), "given", "a", "a"),
        (cell(solution=True), "given", "given_1", "given_1"),
    ],
)
def test_a_released_cell_has_a_role_and_an_id(
    released: NotebookCell, role: str, id_: str, name: str
) -> None:
    (made,) = make_release([released], "m1").cells
    assert (made.role, made.id, made.name) == (role, id_, name)
    assert (made.source, made.kind) == ("text", released.kind)


def notebook(path: Path, *cells: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": list(cells)}))


def raw(
    role: str, name: str, points: float = 0.0, kind: str = "code"
) -> dict[str, Any]:
    meta: dict[str, Any] = {"attention_kit": {"role": role, "name": name}}
    if points:
        meta["nbgrader"] = {"points": points}
    return {"cell_type": kind, "source": f"{role} {name}", "metadata": meta}


def test_points_of_tests_and_of_written_answers(tmp_path: Path) -> None:
    assignment = Assignment("m1", tmp_path)
    empty = (written_points(assignment), released_notebook.tested_points(assignment))
    assert (*empty, points_of_questions(assignment)) == (0.0, 0.0, {})
    notebook(
        assignment.release,
        raw("check", "double", 2.0),
        raw("check", "free"),
        raw("given", "odd", 0.5),
        raw("written", "why", 5.0, "markdown"),
    )
    assert written_points(assignment) == 5.0
    assert released_notebook.tested_points(assignment) == 2.5
    assert points_of_questions(assignment) == {"double": 2.0}
    assignment.release.write_text("{")
    assert released_notebook.tested_points(assignment) == 0.0


def test_a_release_is_read_with_the_code_of_its_key(tmp_path: Path) -> None:
    path, key = tmp_path / "m1.ipynb", tmp_path / "key.ipynb"
    with pytest.raises(BadSource, match="does not exist: run `autograder build m1`"):
        read_release_cells(path, "m1")
    path.write_text("{")
    with pytest.raises(
        BadSource, match=r"cannot be read \(.*\): run `autograder build m1`"
    ):
        read_release_cells(path, "m1")
    notebook(path, raw("question", "double"))
    assert read_release_cells(path, "m1", key).key_code == ()
    notebook(
        key,
        raw("question", "double"),
        raw("question", "text", kind="markdown"),
        raw("given", "imports"),
    )
    release = read_release_cells(path, "m1", key)
    assert release.key_code == ("question double",)
    assert list(release.by_id) == ["double"]
    notebook(path, raw("question", "double"), raw("question", "double"))
    with pytest.raises(BadSource, match="has two cells with one id: run `autograder"):
        read_release_cells(path, "m1")


# places


def test_a_notebook_lies_in_the_folder_of_student_and_assignment() -> None:
    path = Path("submitted/ada/m1/any.ipynb")
    assert is_in_layout(path, "ada", "m1")
    assert not is_in_layout(path, "bob", "m1")
    assert not is_in_layout(path, "ada", "m2")


def test_a_missing_file_is_told_with_what_lies_there(tmp_path: Path) -> None:
    folder = tmp_path / "ada" / "m1"
    folder.mkdir(parents=True)
    found = FoundSubmission("ada", folder / "m1.ipynb")
    words = r"^m1.ipynb: there is no such file; a notebook must be handed in$"
    with pytest.raises(UnreadableSubmission, match=words):
        check_is_file(found, "m1")
    for name in ("c", "a", ".hidden", "b"):
        (folder / name).touch()
    assert _describe_files(folder) == "a, b, c"
    (folder / "d").touch()
    assert _describe_files(folder) == "a, b, c, …"
    assert _describe_files(folder / "missing") == ""
    with pytest.raises(UnreadableSubmission, match="there is a, b, c, …: a notebook"):
        check_is_file(found, "m1")
    (folder / "m1.ipynb").touch()
    check_is_file(found, "m1")


def test_a_link_on_the_way_is_refused(tmp_path: Path) -> None:
    real = tmp_path / "real" / "m1"
    real.mkdir(parents=True)
    (real / "m1.ipynb").touch()
    (tmp_path / "ada").symlink_to(tmp_path / "real")
    found = FoundSubmission("ada", tmp_path / "ada" / "m1" / "m1.ipynb")
    with pytest.raises(
        UnreadableSubmission, match=r"^ada: is a link, not a file; hand"
    ):
        check_is_file(found, "m1")
    # outside of the layout the folder above may be anything
    check_is_file(found, "m2")
    below = FoundSubmission("ada", found.path, tmp_path)
    with pytest.raises(UnreadableSubmission, match=r"^ada: is a link"):
        check_is_file(below, "m2")


def test_another_name_and_other_notebooks_are_remarks(tmp_path: Path) -> None:
    folder = tmp_path / "ada" / "m1"
    folder.mkdir(parents=True)
    for name in ("mine.ipynb", "other.ipynb", "notes.txt"):
        (folder / name).touch()
    found = FoundSubmission("ada", folder / "mine.ipynb")
    assert _name_remarks(found, "m1") == [
        "the notebook is called mine.ipynb, not m1.ipynb; it was graded all the same",
        "there are several notebooks; mine.ipynb was graded, not other.ipynb",
    ]
    assert _name_remarks(dataclasses.replace(found, student="bob"), "m1") == []
    (folder / "other.ipynb").unlink()
    (folder / "mine.ipynb").rename(folder / "m1.ipynb")
    right = FoundSubmission("ada", folder / "m1.ipynb")
    assert _name_remarks(right, "m1") == []


# answers without a name


def answered(points: float, **fields: Any) -> QuestionResult:
    tests = outcome("test_a", points, 1.0), outcome("test_b", 1.0, 1.0)
    return dataclasses.replace(question("double", *tests), **fields)


def result(*questions: QuestionResult, student: str = "ada") -> Result:
    return Result("m1", student, "sha", "suite", "strict", 0.0, 0.0, questions, ())


def test_an_answer_is_nameless_where_nothing_explains_its_failure() -> None:
    slip = Diagnosis("sign", "the sign", ("test_b",))
    half = Diagnosis("half", "You halve.")
    assert nameless_questions(result(answered(0.0, slips=(slip,)))) == {
        "double": ("test_b",)
    }
    assert nameless_questions(result(answered(1.0))) == {}
    assert nameless_questions(result(answered(0.0, diagnosis=half))) == {}
    explained = dataclasses.replace(slip, tests=("test_a",))
    assert nameless_questions(result(answered(0.0, slips=(explained,)))) == {}
    missing = question("double", outcome("test_a", 0.0, 1.0, "missing"))
    assert nameless_questions(result(missing)) == {}
    raised = question("double", outcome("test_a", 0.0, 1.0, "error"))
    assert nameless_questions(result(raised)) == {"double": ()}


def test_groups_hold_for_the_same_nameless_answers(tmp_path: Path) -> None:
    wrong = result(answered(0.0))
    right = result(answered(1.0), student="bob")
    same = fingerprint_nameless([right, wrong])
    assert fingerprint_nameless([wrong]) == same
    assert fingerprint_nameless([dataclasses.replace(wrong, student="cyd")]) != same
    other = dataclasses.replace(wrong, submission_sha256="other")
    assert fingerprint_nameless([other]) != same
    group = MistakeGroup("g1", "double", ("test_a",), (), "", "", "", "", ("ada",))
    groups = ClassGroups(same, "suite", (group,))
    assert read_current_groups(tmp_path, "m1", [wrong]) is None
    write_groups(tmp_path, "m1", groups)
    assert read_current_groups(tmp_path, "m1", [wrong]) == groups
    assert read_current_groups(tmp_path, "m1", [other]) is None
    assert (groups.group("g1"), groups.group("g2")) == (group, None)
    named = groups.with_mistake("g1", "half", "new")
    assert (named.suite_sha256, named.groups[0].mistake) == ("new", "half")
    assert groups.with_mistake("g2", "half", "new").groups == (group,)
    (tmp_path / "m1.groups.json").write_text("{")
    assert read_current_groups(tmp_path, "m1", [wrong]) is None
