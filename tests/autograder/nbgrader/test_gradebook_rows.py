"""Rows of nbgrader's gradebook, in a database in memory: class list, missing rows, points by hand."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from memory_gradebook import db, notebook
from nbgrader.api import (
    Comment,
    Grade,
    GradeCell,
    Notebook,
    Student,
)
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.course import Assignment, Course
from autograder.course.roster import Person
from autograder.nbgrader import class_list, gradebook, hooks, manual_grades
from autograder.nbgrader.assignment_rows import _complete_submissions
from autograder.nbgrader.class_list import write_class_list
from autograder.nbgrader.gradebook import GradebookEntry, write_gradebook
from autograder.nbgrader.gradebook_file import gradebook_file
from autograder.nbgrader.hooks import _db_url, _prepare_gradebook
from autograder.nbgrader.manual_grades import HandMark, _query, read_hand_marks
from autograder.nbgrader.released_cells import NbgraderCell, NbgraderNotebook
from autograder.nbgrader.student_texts import problem_comment

__all__ = ["db", "notebook"]


def stored_rows(db: Session, table: Any) -> list[tuple[str, str]]:
    """(student, cell) of each row, sorted."""
    return sorted((row.notebook.student.id, row.cell.name) for row in db.query(table))


def test_a_submission_gets_the_rows_that_it_lacks_and_no_second_ones(
    db: Session, notebook: Notebook
) -> None:
    _complete_submissions(db, notebook)
    db.flush()
    both = [(name, cell) for name in ("ada", "ben") for cell in ("A", "B")]
    graded = [
        (name, {"A": "check_double", "B": "written_why"}[cell]) for name, cell in both
    ]
    commented = [
        (name, {"A": "double", "B": "written_why"}[cell]) for name, cell in both
    ]
    assert stored_rows(db, Grade) == graded
    assert stored_rows(db, Comment) == commented
    _complete_submissions(db, notebook)
    db.flush()
    assert stored_rows(db, Grade) == graded
    # a cell that is new, and a row that was lost
    db.add(GradeCell(name="check_z", notebook=notebook, max_score=1, cell_type="code"))
    db.delete(next(row for row in db.query(Comment) if row.cell.name == "double"))
    db.flush()
    _complete_submissions(db, notebook)
    db.flush()
    assert stored_rows(db, Grade) == sorted(
        [*graded, ("ada", "check_z"), ("ben", "check_z")]
    )
    assert stored_rows(db, Comment) == commented


# the class list


def test_names_and_addresses_are_the_class_lists_or_stay(
    db: Session, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def open_gradebook(course: object, db_url: str) -> Iterator[Any]:
        assert db_url == "the database"
        yield SimpleNamespace(
            db=db,
            students=db.query(Student).all(),
            find_assignment=lambda name: notebook.assignment,
        )

    monkeypatch.setattr(class_list, "open_gradebook", open_gradebook)
    refreshed: list[Session] = []
    monkeypatch.setattr(
        class_list, "refresh_penalties", lambda db, course: refreshed.append(db)
    )
    ben = db.get(Student, "ben")
    ben.first_name, ben.last_name, ben.email = "Benjamin", "Low", "ben@old"
    people = {
        "ada": Person("s1", "Ada King Lovelace", "ada@x.edu", "", {}),
        "ben": Person("s2", "", "", "", {}),
        "cyd": Person("s3", "Cyd", "cyd@x.edu", "", {}),
    }
    write_class_list(
        Course(Path("/c")), Assignment("m1", Path("/c")), people, "the database"
    )
    stored = {
        student.id: (student.first_name, student.last_name, student.email)
        for student in db.query(Student)
    }
    assert stored == {
        "ada": ("Ada King", "Lovelace", "ada@x.edu"),
        "ben": ("Benjamin", "Low", "ben@old"),
        "cyd": (None, "Cyd", "cyd@x.edu"),
    }
    assert notebook.assignment.duedate is None
    assert refreshed == [db]


def test_due_time_and_extensions_are_those_of_course_toml(
    db: Session, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ada's extension is listed by her id; nobody in the class list has a name to be written."""
    opened = SimpleNamespace(db=db, find_assignment=lambda name: notebook.assignment)
    monkeypatch.setattr(
        class_list, "open_gradebook", lambda *_: contextlib.nullcontext(opened)
    )
    monkeypatch.setattr(class_list, "refresh_penalties", lambda *_: None)
    course = Course(
        Path("/c"),
        due={"m1": datetime(2026, 10, 1, 12, tzinfo=UTC)},
        extensions={"m1": {"s1": timedelta(days=2)}},
    )
    opened.students = db.query(Student).all()
    people = {"ada": Person("s1", "", "", "", {})}
    write_class_list(course, Assignment("m1", Path("/c")), people, "")
    assert notebook.assignment.duedate == datetime(2026, 10, 1, 12)
    extensions = {
        submission.student_id: submission.extension
        for submission in notebook.assignment.submissions
    }
    assert extensions == {"ada": timedelta(days=2), "ben": None}
    # a due time of the gradebook's own stays, and its extensions are brought up to date
    write_class_list(Course(Path("/c")), Assignment("m1", Path("/c")), people, "")
    assert notebook.assignment.duedate == datetime(2026, 10, 1, 12)
    assert [entry.extension for entry in notebook.assignment.submissions] == [None] * 2


# scores of submissions


def released(id_: str, kind: str, *, solution: bool = False) -> NbgraderCell:
    """A grade cell of the release."""
    return NbgraderCell(id_, kind, True, solution, False, True, 1.0, "", "", "")


def test_scores_comments_and_the_version_are_written(
    db: Session, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.commit()

    @contextlib.contextmanager
    def open_gradebook(course: object, db_url: str) -> Iterator[Any]:
        yield SimpleNamespace(db=db, find_notebook=lambda name, assignment: notebook)

    monkeypatch.setattr(gradebook, "open_gradebook", open_gradebook)
    monkeypatch.setattr(gradebook, "refresh_penalties", lambda *_: None)
    monkeypatch.setattr(gradebook, "store_answers", lambda *_: set())
    cells = (
        released("check_double", "code"),
        released("written_why", "markdown", solution=True),
    )
    entries = [
        GradebookEntry("ada", {"check_double": 1.5}, {"double": "it is 3"}),
        GradebookEntry("ben", problem="no notebook"),
    ]

    def write(version: int) -> None:
        write_gradebook(
            Course(Path("/c")),
            "m1",
            NbgraderNotebook("m1", "{}", cells),
            entries,
            version=version,
            has_suite=False,
        )

    write(0)
    assert db.connection().exec_driver_sql("PRAGMA user_version").scalar() == 0
    write(7)
    assert db.connection().exec_driver_sql("PRAGMA user_version").scalar() == 7
    write(0)
    assert db.connection().exec_driver_sql("PRAGMA user_version").scalar() == 7
    scores = {
        (row.notebook.student.id, row.cell.name): (
            row.auto_score,
            row.needs_manual_grade,
        )
        for row in db.query(Grade)
    }
    assert scores == {
        ("ada", "check_double"): (1.5, False),
        ("ada", "written_why"): (None, True),
        ("ben", "check_double"): (0.0, True),
        ("ben", "written_why"): (0.0, True),
    }
    comments = {
        (row.notebook.student.id, row.cell.name): row.auto_comment
        for row in db.query(Comment)
    }
    problem = problem_comment("no notebook")
    assert comments == {
        ("ada", "double"): "it is 3",
        ("ada", "written_why"): None,
        ("ben", "double"): problem,
        ("ben", "written_why"): problem,
    }


# points by hand


def test_a_database_without_tables_has_no_points_where_it_may_be_empty() -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        assert _query(connection, "m1", may_be_empty=True) == []
        with pytest.raises(Exception, match="no such table"):
            _query(connection, "m1", may_be_empty=False)
    engine.dispose()


def test_points_are_read_from_a_database_that_may_be_empty_and_is_not(
    db: Session, notebook: Notebook
) -> None:
    _complete_submissions(db, notebook)
    for row in db.query(Grade):
        row.manual_score = 1.5 if row.cell.name == "written_why" else None
    db.flush()
    marks = _query(db.connection(), "m1", may_be_empty=True)
    found = [(mark.student, mark.cell, mark.question, mark.points) for mark in marks]
    assert sorted(found) == [
        ("ada", "check_double", "double", None),
        ("ada", "written_why", "why", 1.5),
        ("ben", "check_double", "double", None),
        ("ben", "written_why", "why", 1.5),
    ]
    assert {(mark.cell, mark.written) for mark in marks} == {
        ("check_double", False),
        ("written_why", True),
    }
    assert _query(db.connection(), "m2", may_be_empty=True) == []


@pytest.fixture
def stored(
    monkeypatch: pytest.MonkeyPatch, db: Session, notebook: Notebook
) -> list[HandMark]:
    """The marks of the gradebook, of which the test may take some away."""
    _complete_submissions(db, notebook)
    db.flush()
    marks = _query(db.connection(), "m1", may_be_empty=False)
    monkeypatch.setattr(manual_grades, "_stored_marks", lambda url, name: list(marks))
    cells = [SimpleNamespace(grade_id=name) for name in ("written_why", "check_double")]
    monkeypatch.setattr(
        manual_grades, "read_release", lambda path: SimpleNamespace(cells=cells)
    )
    return marks


def test_marks_by_hand_come_by_student_in_the_order_of_the_release(
    stored: list[HandMark], tmp_path: Path
) -> None:
    course, assignment = Course(tmp_path), Assignment("m1", tmp_path)
    course.gradebook.touch()
    stored.append(dataclasses.replace(stored[0], cell="check_gone"))
    assert list(read_hand_marks(course, assignment)) == [
        ("ada", "why"),
        ("ada", "double"),
        ("ben", "why"),
        ("ben", "double"),
    ]


def test_without_a_gradebook_or_a_submission_the_command_is_named(
    stored: list[HandMark], tmp_path: Path
) -> None:
    course, assignment = Course(tmp_path), Assignment("m1", tmp_path)
    with pytest.raises(
        KitError, match=r"^there is no gradebook yet: run `autograder exp"
    ):
        read_hand_marks(course, assignment)
    course.gradebook.touch()
    stored.clear()
    with pytest.raises(
        KitError, match=r"^nobody's m1 is in the gradebook: run `autogr"
    ):
        read_hand_marks(course, assignment)


# the file


def test_an_error_of_a_new_gradebook_names_the_file_that_it_becomes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "gradebook.db"

    def fail() -> None:
        with (
            FileTransaction(tmp_path / "kept", "a test") as files,
            gradebook_file(path, files) as (part, version),
        ):
            assert (part != path, version) == (True, 0)
            error = ValueError("no room")
            error.add_note(f"in {part}")
            raise error

    with pytest.raises(ValueError, match="no room") as caught:
        fail()
    assert caught.value.__notes__ == [f"in {path}"]
    assert not path.exists()


# before nbgrader grades


@pytest.mark.parametrize(
    ("has_notebook", "is_known", "problem"),
    [
        (True, True, None),
        (True, False, "grading did not finish"),
        (False, True, "there is no m1.ipynb among the files"),
    ],
)
def test_a_submission_has_0_points_until_it_is_graded(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_notebook: bool,
    is_known: bool,
    problem: str | None,
) -> None:
    written: list[Any] = []
    monkeypatch.setattr(hooks, "_has_submission", lambda *_: is_known)
    monkeypatch.setattr(hooks, "read_release", lambda path: "the release")
    monkeypatch.setattr(hooks, "_db_url", lambda course: "url")
    monkeypatch.setattr(
        hooks,
        "write_gradebook",
        lambda *arguments, **options: written.append((arguments, options)),
    )
    folder = tmp_path / "ada/m1"
    folder.mkdir(parents=True)
    if has_notebook:
        (folder / "m1.ipynb").touch()
    course, assignment = Course(tmp_path), Assignment("m1", tmp_path)
    _prepare_gradebook(course, assignment, folder)
    (((_, name, release, entries), options),) = written
    assert (name, release, options) == ("m1", "the release", {"db_url": "url"})
    entered = [(entry.student, entry.problem) for entry in entries]
    assert entered == ([] if problem is None else [("ada", problem)])


def test_the_database_is_that_of_the_innermost_command_that_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = Course(tmp_path)

    class PlayedApplication:
        app: Any = None

        @classmethod
        def initialized(cls) -> bool:
            return cls.app is not None

        @classmethod
        def instance(cls) -> Any:
            return cls.app

    monkeypatch.setattr(hooks, "Application", PlayedApplication)
    assert _db_url(course) == course.db_url
    outer_folder, inner_folder = (SimpleNamespace(db_url=url) for url in ("a", "b"))
    innermost = SimpleNamespace(coursedir=None)
    inner = SimpleNamespace(coursedir=inner_folder, subapp=innermost)
    PlayedApplication.app = SimpleNamespace(coursedir=outer_folder, subapp=inner)
    assert _db_url(course) == "b"
    PlayedApplication.app = SimpleNamespace(coursedir=outer_folder)
    assert _db_url(course) == "a"
