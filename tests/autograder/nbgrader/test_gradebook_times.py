"""Times, extensions, penalties and hand-ins in a gradebook in memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from memory_gradebook import db, notebook
from nbgrader.api import Assignment as AssignmentRow
from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy.orm import Session

from autograder.course import Course
from autograder.course.course import Late
from autograder.nbgrader.assignment_rows import _complete_submissions, register_release
from autograder.nbgrader.csv_exporter import SafeCsvExport
from autograder.nbgrader.gradebook import GradebookEntry, _add_submissions
from autograder.nbgrader.gradebook_times import read_times, write_extensions
from autograder.nbgrader.late_penalty import refresh_penalties
from autograder.nbgrader.released_cells import NbgraderCell, NbgraderNotebook

__all__ = ["db", "notebook"]

DUE = datetime(2026, 3, 1, 12)
A_DAY = timedelta(days=1)


def submission(notebook: Notebook, student: str) -> Any:
    """The student's submission of the assignment."""
    (found,) = (
        row for row in notebook.assignment.submissions if row.student_id == student
    )
    return found


def test_times_are_those_of_persons_in_utc(db: Session, notebook: Notebook) -> None:
    db.add(AssignmentRow(name="m2", course_id="course"))
    notebook.assignment.duedate = DUE
    ada = submission(notebook, "ada")
    ada.timestamp = DUE + A_DAY
    ada.extension = A_DAY
    db.flush()
    times = read_times(db)
    assert sorted(times) == ["m1", "m2"]
    assert (times["m2"].due, times["m2"].granted, times["m2"].handed_in) == (
        None,
        {},
        {},
    )
    assert times["m1"].due == DUE.replace(tzinfo=UTC)
    assert times["m1"].granted == {"ada": A_DAY}
    assert times["m1"].handed_in == {"ada": (DUE + A_DAY).replace(tzinfo=UTC)}


def test_what_the_kit_wrote_is_no_persons_extension(
    db: Session, notebook: Notebook
) -> None:
    ada, ben = (submission(notebook, name) for name in ("ada", "ben"))
    ben.extension = 2 * A_DAY
    write_extensions(db, notebook.assignment, {"ada": A_DAY, "eve": A_DAY})
    assert (ada.extension, ben.extension) == (A_DAY, 2 * A_DAY)
    assert read_times(db)["m1"].granted == {"ben": 2 * A_DAY}
    # a person makes it longer: then it is theirs, and stays when the course has none
    ada.extension = 3 * A_DAY
    assert read_times(db)["m1"].granted == {"ada": 3 * A_DAY, "ben": 2 * A_DAY}
    write_extensions(db, notebook.assignment, {})
    assert (ada.extension, ben.extension) == (3 * A_DAY, 2 * A_DAY)
    # what left course.toml is removed
    write_extensions(db, notebook.assignment, {"ada": A_DAY})
    write_extensions(db, notebook.assignment, {})
    assert (ada.extension, ben.extension) == (None, 2 * A_DAY)
    ada.extension = A_DAY
    assert read_times(db)["m1"].granted == {"ada": A_DAY, "ben": 2 * A_DAY}


# penalties


@pytest.fixture
def scored(db: Session, notebook: Notebook) -> Notebook:
    """2 of 2 and 3 of 5 points; ada is a day and a minute late, and ben in time."""
    _complete_submissions(db, notebook)
    db.flush()
    for row in db.query(Grade):
        row.auto_score = 2.0 if row.cell.name == "check_double" else 3.0
        row.needs_manual_grade = row.notebook.student.id == "ben"
    notebook.assignment.duedate = DUE
    submission(notebook, "ada").timestamp = DUE + A_DAY + timedelta(minutes=1)
    submission(notebook, "ben").timestamp = DUE
    db.flush()
    return notebook


def penalties(db: Session) -> dict[str, float | None]:
    db.expire_all()
    rows = db.query(SubmittedNotebook)
    return {row.student.id: row.late_submission_penalty for row in rows}


def late_course(root: Path, **late: Any) -> Course:
    return Course(root, late=Late(**late))


def test_a_penalty_is_what_the_policy_takes_off(
    db: Session, scored: Notebook, tmp_path: Path
) -> None:
    # 2 days begun, each a tenth of 7 points
    refresh_penalties(db, late_course(tmp_path, policy="per_day"))
    assert penalties(db) == {"ada": 1.4, "ben": None}
    refresh_penalties(db, late_course(tmp_path, policy="zero"))
    assert penalties(db) == {"ada": 5.0, "ben": None}
    # no more than there is
    refresh_penalties(db, late_course(tmp_path, policy="per_day", penalty_per_day=0.5))
    assert penalties(db) == {"ada": 5.0, "ben": None}
    # a policy that is given up leaves none
    refresh_penalties(db, Course(tmp_path))
    assert penalties(db) == {"ada": None, "ben": None}


def test_a_row_of_the_export_has_the_sums_of_a_submission(
    db: Session, scored: Notebook, tmp_path: Path
) -> None:
    refresh_penalties(db, late_course(tmp_path, policy="per_day"))
    db.add(Student(id="cyd", last_name="Low", first_name="Cy", email="c@x"))
    db.flush()
    db.expire_all()

    def rows(assignment: list[str], student: list[str]) -> list[Any]:
        asked: Any = SimpleNamespace(assignment=assignment, student=student)
        book: Any = SimpleNamespace(
            db=db,
            assignments=[scored.assignment],
            students=[db.get(Student, name) for name in ("ada", "ben", "cyd")],
        )
        return list(SafeCsvExport._rows(asked, book))

    late = DUE + A_DAY + timedelta(minutes=1)
    nameless = (None, None, None)
    ada = ("m1", DUE, late, "ada", *nameless, 5.0, 1.4, 3.6, 7.0, "no")
    ben = ("m1", DUE, DUE, "ben", *nameless, 5.0, 0.0, 5.0, 7.0, "yes")
    cyd = ("m1", DUE, None, "cyd", "Low", "Cy", "c@x", 0.0, 0.0, 0.0, 7.0, "no")
    assert rows([], []) == [ada, ben, cyd]
    assert rows(["m1"], ["ben"]) == [ben]
    assert rows(["m2"], []) == []


# hand-ins


def test_submissions_are_added_and_later_times_are_noted(
    db: Session, notebook: Notebook
) -> None:
    submission(notebook, "ada").timestamp = DUE
    submission(notebook, "ben").timestamp = DUE
    db.flush()
    stored = {row.student.id: row.id for row in db.query(SubmittedNotebook)}
    entries = [
        GradebookEntry("ada", timestamp=DUE + A_DAY),
        GradebookEntry("ben", timestamp=DUE),
        GradebookEntry("cyd", timestamp=DUE),
    ]
    notebooks, moved = _add_submissions(db, notebook, entries)
    assert moved == {"ada"}
    assert {name: notebooks[name] for name in stored} == stored
    db.expire_all()
    times = {row.student_id: row.timestamp for row in db.query(SubmittedAssignment)}
    assert times == {"ada": DUE + A_DAY, "ben": DUE, "cyd": DUE}
    added = db.get(SubmittedNotebook, notebooks["cyd"])
    assert (added.student.id, added.notebook.name) == ("cyd", "m1")
    # without a time the stored one stays
    again, moved = _add_submissions(db, notebook, [GradebookEntry("cyd")])
    assert (again, moved) == ({"cyd": notebooks["cyd"]}, set())
    assert submission(notebook, "cyd").timestamp == DUE


def test_a_submission_without_this_notebook_gets_it(
    db: Session, notebook: Notebook
) -> None:
    other = Notebook(name="extra", assignment=notebook.assignment)
    db.add(other)
    db.flush()
    notebooks, _ = _add_submissions(db, other, [GradebookEntry("ada")])
    db.expire_all()
    names = [row.name for row in submission(notebook, "ada").notebooks]
    assert sorted(names) == ["extra", "m1"]
    assert db.get(SubmittedNotebook, notebooks["ada"]).name == "extra"


# cells of a release


def released(id_: str, *, grade: bool, points: float = 0.0) -> NbgraderCell:
    solution = not grade
    return NbgraderCell(
        id_, "code", grade, solution, False, grade, points, "x = 1", "", ""
    )


def test_the_gradebook_follows_the_release(db: Session, notebook: Notebook) -> None:
    _complete_submissions(db, notebook)
    db.flush()
    cells = (
        released("check_double", grade=True, points=3.0),
        released("double", grade=False),
        released("check_half", grade=True, points=1.0),
    )
    release = NbgraderNotebook("m1", '{"name": "python3"}', cells)
    assert register_release(db, "course", "m1", release) is notebook
    db.flush()
    db.expire_all()
    assert notebook.kernelspec == '{"name": "python3"}'
    rows = db.query(BaseCell).filter_by(notebook_id=notebook.id)
    assert sorted((row.name, row.type) for row in rows) == [
        ("check_double", "GradeCell"),
        ("check_half", "GradeCell"),
        ("double", "SolutionCell"),
    ]
    assert notebook.max_score == 4.0
    graded = sorted((row.notebook.student.id, row.name) for row in db.query(Grade))
    assert graded == [
        (student, cell)
        for student in ("ada", "ben")
        for cell in ("check_double", "check_half")
    ]
    assert {row.name for row in db.query(Comment)} == {"double"}


def test_a_new_assignment_is_added_once(db: Session) -> None:
    release = NbgraderNotebook("m9", "{}", (released("double", grade=False),))
    first = register_release(db, "course", "m9", release)
    assert register_release(db, "course", "m9", release) is first
    assert (first.assignment.name, first.assignment.course_id) == ("m9", "course")
    assert [cell.name for cell in first.solution_cells] == ["double"]
    ((name, source, locked),) = (
        (cell.name, cell.source, cell.locked) for cell in first.source_cells
    )
    assert (name, source, locked) == ("double", "x = 1", False)
