"""The parts of the gradebook's side without a database: waiting scores, changed answers, names of
cells, comments, special files and the mirror of sources.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from stored_results import outcome, question

from autograder.basics.errors import KitError
from autograder.course import Course
from autograder.course.course import GradebookAddress
from autograder.nbgrader import released_cells
from autograder.nbgrader.answers import (
    _check,
    _may_have_changed,
    answer_sha256,
    read_answers,
)
from autograder.nbgrader.assignment_rows import _rows_of_cells
from autograder.nbgrader.course_name import (
    course_id,
    put_alembic_on_path,
    shown_gradebook,
)
from autograder.nbgrader.gradebook import GradebookEntry, _update_grade, make_entry
from autograder.nbgrader.gradebook_file import _refuse_other_files
from autograder.nbgrader.manual_grades import HandMark, _manual_grades
from autograder.nbgrader.mirror import FOLDER, mirror
from autograder.nbgrader.released_cells import (
    NbgraderNotebook,
    grade_id,
    nbgrader_notebook,
)
from autograder.nbgrader.repair import (
    _short,
    find_special_files,
    ignore_patterns,
    list_special_files,
)
from autograder.nbgrader.student_texts import (
    as_literal,
    cell_report,
    problem_comment,
    question_comment,
)
from autograder.records.model import Diagnosis, ManualGrades, ManualScore, Result
from autograder.records.submission import (
    Answer,
    Cell,
    CellOutcome,
    HandedInCell,
    Submission,
)

# scores

NEW = {"manual_score": None, "needs_manual_grade": False, "auto_score": None}
MARKED = {"manual_score": 2.0, "needs_manual_grade": False, "auto_score": 1.0}


@pytest.mark.parametrize(
    ("row", "entry", "is_manual", "is_new", "score", "waits"),
    [
        # tests: their score, and nobody waits
        (NEW, GradebookEntry("ada", {"cell": 1.5}), False, False, 1.5, False),
        # a cell of tests that the result does not have is worth nothing
        (NEW, GradebookEntry("ada"), False, False, 0.0, True),
        # an answer in words waits for a person, and a blank one does not
        (NEW, GradebookEntry("ada"), True, False, None, True),
        (NEW, GradebookEntry("ada", {"cell": 0.0}), True, False, 0.0, False),
        # a person's score stays, unless the tests' score or the answer is another
        (MARKED, GradebookEntry("ada", {"cell": 1.0}), False, False, 1.0, False),
        (MARKED, GradebookEntry("ada", {"cell": 1.5}), False, False, 1.5, True),
        (MARKED, GradebookEntry("ada", {"cell": 1.0}), False, True, 1.0, True),
        (
            {**MARKED, "needs_manual_grade": True},
            GradebookEntry("ada", {"cell": 1.0}),
            False,
            False,
            1.0,
            True,
        ),
        # a submission that could not be graded has no points, and waits
        (
            MARKED,
            GradebookEntry("ada", {"cell": 1.0}, problem="no notebook"),
            False,
            False,
            0.0,
            True,
        ),
        ({}, GradebookEntry("ada", {"cell": 1.0}), False, True, 1.0, False),
    ],
)
def test_a_score_waits_for_a_person_where_something_changed(
    row: dict[str, Any],
    entry: GradebookEntry,
    is_manual: bool,
    is_new: bool,
    score: float | None,
    waits: bool,
) -> None:
    updated = _update_grade(row, entry, "cell", is_manual, is_new)
    assert updated == {**row, "auto_score": score, "needs_manual_grade": waits}


def test_marks_by_hand_are_those_of_written_answers_and_changed_questions() -> None:
    marks = [
        HandMark("ada", "why", 5.0, True, points=3.0, submission="file", comment="ok"),
        HandMark("ada", "how", 4.0, True, tests=0.0, automatic_comment="No response."),
        HandMark("ada", "what", 4.0, True, waits=True),
        HandMark("ada", "double", 2.0, False, tests=1.0),
        HandMark("ada", "half", 2.0, False, tests=1.5, extra_credit=0.5),
        HandMark("ada", "third", 2.0, False, points=0.0, automatic_comment="hint"),
        HandMark("ada", "fourth", 2.0, False, tests=None, comment="see me"),
        HandMark("ada", "fifth", 2.0, False, tests=2.0, points=1.0, waits=True),
    ]
    grades = _manual_grades("ada", marks)
    assert grades.written == (
        ManualScore("why", 5.0, 3.0, comment="ok"),
        ManualScore("how", 4.0, 0.0, comment="No response."),
        ManualScore("what", 4.0, None, waits=True),
    )
    assert grades.questions == (
        ManualScore("half", 2.0, None, extra_credit=0.5),
        ManualScore("third", 2.0, 0.0),
        ManualScore("fourth", 2.0, None, comment="see me"),
        ManualScore("fifth", 2.0, 1.0, waits=True, earlier=True),
    )
    assert grades.submission == "file"
    assert grades.automatic == {
        "double": 1.0,
        "half": 1.5,
        "third": 0.0,
        "fourth": 0.0,
        "fifth": 2.0,
    }


# answers


def test_an_answer_is_the_same_with_other_spaces() -> None:
    assert answer_sha256("a  b\n c ") == answer_sha256("a b c")
    assert answer_sha256("a bc") != answer_sha256("a b c")
    assert len(answer_sha256("")) == 64


def test_an_answer_has_its_pictures_and_a_question_its_code() -> None:
    picture = {"p.png": {"image/png": "AA=="}}
    submission = Submission(
        "ada",
        "m1",
        Path("m1.ipynb"),
        "sha",
        (
            Cell("imports", "given", "import math"),
            Cell("double", "question", "def double(x): ..."),
        ),
        (Answer("written_why", "because"), Answer("written_how", "so")),
        (
            HandedInCell("markdown", "because", "written_why", picture),
            HandedInCell("code", "so", "written_how", picture),
            HandedInCell("markdown", "mine", "", picture),
        ),
    )
    assert read_answers(submission) == {
        "written_why": "because" + json.dumps(picture, sort_keys=True),
        "written_how": "so",
        "check_double": "def double(x): ...",
    }


@pytest.mark.parametrize(
    ("submission", "answer", "sha256", "changed"),
    [
        ("file", "", "file", False),
        ("file", "", "other", True),
        # a gradebook that nbgrader alone has filled tells nothing
        ("", "", "other", False),
        ("", "hash", "other", True),
    ],
)
def test_only_other_files_than_the_gradebooks_are_read(
    submission: str, answer: str, sha256: str, changed: bool
) -> None:
    score = ManualScore("why", 5.0, 3.0, answer=answer)
    written = ManualGrades("ada", (score,), submission=submission)
    assert _may_have_changed(written, sha256) == changed
    questions = ManualGrades("ada", (), (score,), submission=submission)
    assert _may_have_changed(questions, sha256) == changed


def test_points_for_another_answer_wait() -> None:
    score = ManualScore("why", 5.0, 3.0, answer="hash")
    assert _check(score, "hash") is score
    for other in ("other", None):
        waiting = _check(score, other)
        assert (waiting.waits, waiting.earlier, waiting.points) == (True, True, 3.0)
    empty = ManualScore("why", 5.0, None)
    for answer in ("", None, "hash"):
        waiting = _check(empty, answer)
        assert (waiting.waits, waiting.earlier) == (True, False)


# cells


def cell(grade_id: str, *, role: dict[str, str] | None = None, **meta: Any) -> Any:
    metadata: dict[str, Any] = {"nbgrader": {"grade_id": grade_id, **meta}}
    if role:
        metadata["attention_kit"] = role
    return {"cell_type": "code", "metadata": metadata, "source": ["a\n", "b"]}


def test_names_of_cells_and_of_questions() -> None:
    assert grade_id({"metadata": {}}) == ""
    assert grade_id({"metadata": {"nbgrader": "text"}}) == ""
    assert grade_id({"metadata": {"nbgrader": {"grade_id": 7}}}) == ""
    assert grade_id(cell("check_a")) == "check_a"
    assert released_cells.tested_question(cell("check_a", grade=True)) == "a"
    assert released_cells.tested_question(cell("test_a", grade=True)) == "a"
    assert released_cells.tested_question(cell("check_a")) == ""
    assert (
        released_cells.tested_question(cell("written_a", grade=True, solution=True))
        == ""
    )
    check = {"role": "check", "name": "double"}
    assert (
        released_cells.tested_question(cell("cell-7", role=check, grade=True))
        == "double"
    )
    other = {"role": "given", "name": "double"}
    assert (
        released_cells.tested_question(cell("cell-7", role=other, grade=True))
        == "cell-7"
    )
    nameless = cell("check_a", role={"role": "check"}, grade=True)
    assert released_cells.tested_question(nameless) == "a"


def read_cells(*cells: Any) -> NbgraderNotebook:
    metadata = {"kernelspec": {"name": "python3"}}
    return nbgrader_notebook("m1", {"metadata": metadata, "cells": cells})


def test_nbgraders_cells_are_those_with_a_purpose() -> None:
    notebook = read_cells(
        cell("plain"),
        {"cell_type": "code", "metadata": {}, "source": ""},
        cell("given", locked=True),
        cell("double", solution=True),
        cell("check_double", grade=True, points=2, checksum="abc"),
        cell("written_why", grade=True, solution=True, points=5),
        cell("task", task=True, points=1),
    )
    assert (notebook.name, json.loads(notebook.kernelspec)) == (
        "m1",
        {"name": "python3"},
    )
    shown = [(c.grade_id, c.locked, c.manual, c.points) for c in notebook.cells]
    assert shown == [
        ("given", True, False, 0.0),
        ("double", False, False, 0.0),
        ("check_double", True, False, 2.0),
        ("written_why", False, True, 5.0),
        ("task", False, True, 1.0),
    ]
    assert notebook.cells[2].source == "a\nb"
    rows = _rows_of_cells(notebook.cells)
    kinds = [(name, table.__name__) for name, table in rows]
    assert kinds == [
        ("given", "SourceCell"),
        ("double", "SolutionCell"),
        ("double", "SourceCell"),
        ("check_double", "GradeCell"),
        ("check_double", "SourceCell"),
        ("written_why", "GradeCell"),
        ("written_why", "SolutionCell"),
        ("written_why", "SourceCell"),
        ("task", "TaskCell"),
        ("task", "SourceCell"),
    ]
    values = list(rows.values())
    assert values[0] == {
        "cell_type": "code",
        "locked": True,
        "source": "a\nb",
        "checksum": None,
    }
    assert values[3] == {"max_score": 2.0, "cell_type": "code"}
    assert values[4]["checksum"] == "abc"


def result(*cells: CellOutcome) -> Result:
    lost = question(
        "double",
        outcome("test_a", 1.0, 1.0),
        outcome("test_b", 0.0, 1.0, message="it is 3"),
    )
    return Result("m1", "ada", "sha", "suite", "strict", 1.0, 2.0, (lost,), cells)


def test_an_entry_has_a_score_and_a_comment_for_each_cell() -> None:
    release = read_cells(
        cell("double", solution=True),
        cell("check_double", grade=True, points=2),
        cell("half", solution=True),
        cell("written_why", grade=True, solution=True, points=5),
        cell("written_how", grade=True, solution=True, points=5),
        cell("task", task=True, points=1),
    )
    bare = make_entry(release, result())
    assert bare.scores == {"check_double": 1.0}
    assert bare.comments == {
        "double": "    it is 3",
        "half": "",
        "written_why": "",
        "written_how": "",
    }
    assert (bare.answers, bare.submission_sha256, bare.student) == ({}, "", "ada")
    answers = (Answer("written_why", "because"), Answer("more", "", blank=True))
    submission = Submission("ada", "m1", Path("m1.ipynb"), "sha", (), answers)
    whole = make_entry(release, result(), submission)
    assert whole.scores == {"check_double": 1.0, "written_how": 0.0, "more": 0.0}
    assert whole.comments["written_how"] == "No response."
    assert whole.comments["written_why"] == ""
    assert whole.submission_sha256 == "sha"
    assert whole.answers == {"written_why": "because", "more": ""}


# texts


def test_a_comment_has_hints_or_messages_or_outcomes() -> None:
    right = question("double", outcome("test_a", 1.0, 1.0))
    assert question_comment(right) == ""
    silent = question("double", outcome("test_is_even", 0.0, 1.0))
    assert question_comment(silent) == "    is even: not right yet."
    same = [outcome(f"test_{name}", 0.0, 1.0, message="it is 3") for name in "ab"]
    told = question("double", *same, diagnosis=Diagnosis("half", "You halve."))
    assert question_comment(told) == "    You halve.\n    \n    it is 3"


def test_texts_are_shown_letter_by_letter() -> None:
    assert as_literal("\n<b>\x1b\u202e\n\nx\n") == "    <b>\n    \n    x"
    assert problem_comment("no notebook") == (
        "    This submission could not be graded: no notebook"
    )
    assert cell_report(CellOutcome("a", "error", "KeyError")) == "KeyError\n"
    assert cell_report(CellOutcome("a", "ok", "a note")) == ""
    assert cell_report(CellOutcome("a", "error", "")) == ""


def test_an_error_is_told_in_one_short_line() -> None:
    assert _short(ValueError("first\nsecond")) == "ValueError: first"
    assert _short(ValueError("x" * 200)) == "ValueError: " + "x" * 108


# files


def test_links_and_pipes_are_special_and_files_are_not(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "m1.ipynb").touch()
    (tmp_path / "below" / "link").symlink_to(tmp_path / "m1.ipynb")
    os.mkfifo(tmp_path / "below" / "a[1]")
    special = find_special_files(tmp_path)
    assert [path.name for path in special] == ["a[1]", "link"]
    assert ignore_patterns(tmp_path, special) == [
        f"{tmp_path}/below/a[[]1]",
        f"{tmp_path}/below/link",
    ]
    words = list_special_files(tmp_path, special)
    assert words.startswith("below/a[1] is ")
    assert ", below/link is a link" in words


@pytest.mark.parametrize(("count", "patterns"), [(20, 20), (21, 1)])
def test_many_special_files_are_one_pattern(
    tmp_path: Path, count: int, patterns: int
) -> None:
    special = {tmp_path / f"{number}": "a link" for number in range(count)}
    assert len(ignore_patterns(tmp_path, special)) == patterns
    words = list_special_files(tmp_path, special)
    assert words == f"0 is a link, 1 is a link, 2 is a link, and {count - 3} more"


def test_three_special_files_are_all_named(tmp_path: Path) -> None:
    special = {tmp_path / name: "a link" for name in "abc"}
    assert list_special_files(tmp_path, special).count("is a link") == 3
    assert "more" not in list_special_files(tmp_path, special)


def test_a_gradebook_is_an_empty_file_or_a_database_of_nbgraders(
    tmp_path: Path,
) -> None:
    path = tmp_path / "gradebook.db"
    path.touch()
    _refuse_other_files(path)
    path.write_bytes(b"SQLite format 2\0")
    with pytest.raises(KitError, match="is no gradebook, and no database at all"):
        _refuse_other_files(path)
    path.unlink()
    with sqlite3.connect(path) as database:
        for name in ("dove", "bee", "cat", "ant"):
            database.execute(f"CREATE TABLE {name} (x)")
    database.close()
    with pytest.raises(KitError, match=r"\(it holds ant, bee, cat\): name another"):
        _refuse_other_files(path)
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE submitted_assignment (x)")
    database.close()
    _refuse_other_files(path)


# the course


@pytest.mark.parametrize(
    ("name", "id_"),
    [("Attention Kit", "attention-kit"), (" É2: A_b! ", "2-a-b"), ("数", "course")],
)
def test_the_id_of_a_course(name: str, id_: str) -> None:
    assert course_id(name) == id_


def test_alembic_is_found_beside_python(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setattr("shutil.which", lambda name: None)
    put_alembic_on_path()
    assert os.environ["PATH"] == f"/bin:{beside}"
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setattr("shutil.which", lambda name: "/bin/alembic")
    put_alembic_on_path()
    assert os.environ["PATH"] == "/bin"


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    address = "postgresql://kit:secret@host.example/grades"
    assert shown_gradebook(address) == "postgresql://kit:***@host.example/grades"
    assert shown_gradebook(f"sqlite:///{tmp_path}/g.db") == f"{tmp_path}/g.db"
    course = Course(tmp_path, on_server=GradebookAddress(address))
    assert (course.db_url, course.has_gradebook) == (address, True)


def put(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_the_mirror_has_stand_ins_and_links(tmp_path: Path) -> None:
    course = Course(tmp_path)
    put(course.sources / "m1" / "m1.py")
    put(course.sources / "m1" / "figures" / "deep" / "p.svg", "one")
    put(course.sources / "m1" / "secret.txt")
    put(course.sources / "m2" / "m2.ipynb", "{}")
    put(course.sources / "_draft" / "_draft.py")
    put(course.sources / "empty" / "notes.txt")
    mirror(course)
    top = tmp_path / FOLDER
    assert sorted(path.name for path in top.iterdir()) == ["m1", "m2"]
    assert "stands in for `source/m1/m1.py`" in (top / "m1" / "m1.ipynb").read_text()
    assert (top / "m1" / "figures" / "deep" / "p.svg").read_text() == "one"
    assert not (top / "m1" / "secret.txt").exists()
    assert (top / "m2").is_symlink()
    assert (top / "m2" / "m2.ipynb").read_text() == "{}"
    # what changed is copied, what somebody wrote there is lost, and what is gone goes
    made = (top / "m1" / "m1.ipynb").read_text()
    put(top / "m1" / "m1.ipynb", made.replace("Edit", "Do not edit"))
    put(course.sources / "m1" / "figures" / "deep" / "p.svg", "two")
    put(course.sources / "m1" / "figures" / "q.svg")
    mirror(course)
    assert (top / "m1" / "figures" / "deep" / "p.svg").read_text() == "two"
    assert (top / "m1" / "m1.ipynb").read_text() == made
    (course.sources / "m1" / "figures" / "q.svg").unlink()
    mirror(course)
    assert not (top / "m1" / "figures" / "q.svg").exists()
    (course.sources / "m1" / "m1.py").unlink()
    put(course.sources / "m2" / "m2.py")
    mirror(course)
    assert sorted(path.name for path in top.iterdir()) == ["m2"]
    assert not (top / "m2").is_symlink()


def test_an_assignment_of_the_formgraders_becomes_a_source(tmp_path: Path) -> None:
    course = Course(tmp_path)
    course.sources.mkdir(parents=True)
    put(tmp_path / FOLDER / "m3" / "m3.ipynb", "{}")
    put(tmp_path / FOLDER / "m4" / "notes.txt")
    mirror(course)
    assert (course.sources / "m3" / "m3.ipynb").read_text() == "{}"
    assert (tmp_path / FOLDER / "m3").is_symlink()
    assert (tmp_path / FOLDER / "m4" / "notes.txt").exists()
    assert not (course.sources / "m4").exists()
