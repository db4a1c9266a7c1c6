"""Students whom earlier versions called otherwise than their folder: one student in the gradebook
again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from nbgrader.api import Base, Gradebook
from sqlalchemy import create_engine

from autograder.nbgrader.earlier_names import take_over_earlier_names

pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted")  # nbgrader's own
FOLDER, EARLIER = "O\u2019Neil", "O_Neil-1a2b3c4d5e"


@pytest.fixture
def gradebook(tmp_path: Path) -> Iterator[Gradebook]:
    url = f"sqlite:///{tmp_path / 'gradebook.db'}"
    engine = create_engine(url)
    Base.metadata.create_all(engine)  # without alembic, which takes seconds
    engine.dispose()
    with Gradebook(url) as gradebook:
        for name in ("m1", "m2"):
            gradebook.add_assignment(name)
            gradebook.add_notebook(name, name)
            gradebook.add_grade_cell("essay", name, name, max_score=5, cell_type="markdown")
            gradebook.add_solution_cell("essay", name, name)
        yield gradebook


def hand_in(
    gradebook: Gradebook, student: str, assignment: str, points: float | None, comment: str = ""
) -> None:
    if student not in [known.id for known in gradebook.students]:
        gradebook.add_student(student)
    gradebook.add_submission(assignment, student)
    gradebook.find_grade("essay", assignment, assignment, student).manual_score = points
    gradebook.find_comment("essay", assignment, assignment, student).manual_comment = (
        comment or None
    )
    gradebook.db.commit()


def given(gradebook: Gradebook) -> dict[tuple[str, str], tuple[float | None, str | None]]:
    """(student, assignment) → points and comment by hand."""
    return {
        (submission.student_id, assignment.name): (
            gradebook.find_grade(
                "essay", assignment.name, assignment.name, submission.student_id
            ).manual_score,
            gradebook.find_comment(
                "essay", assignment.name, assignment.name, submission.student_id
            ).manual_comment,
        )
        for assignment in gradebook.assignments
        for submission in assignment.submissions
    }


def test_what_stood_under_the_earlier_name_is_the_folders(gradebook: Gradebook) -> None:
    hand_in(gradebook, EARLIER, "m1", 4.0, "well said")
    hand_in(gradebook, EARLIER, "m2", None)
    hand_in(gradebook, "student-002", "m1", 1.0)
    assert take_over_earlier_names(gradebook, {EARLIER: FOLDER}) == []
    gradebook.db.commit()
    assert sorted(student.id for student in gradebook.students) == [FOLDER, "student-002"]
    assert given(gradebook) == {
        (FOLDER, "m1"): (4.0, "well said"),
        (FOLDER, "m2"): (None, None),
        ("student-002", "m1"): (1.0, None),
    }


def test_two_students_of_one_folder_become_one(gradebook: Gradebook) -> None:
    hand_in(gradebook, EARLIER, "m1", 4.0, "well said")
    hand_in(gradebook, FOLDER, "m1", None)
    assert take_over_earlier_names(gradebook, {EARLIER: FOLDER}) == []
    gradebook.db.commit()
    assert [student.id for student in gradebook.students] == [FOLDER]
    assert given(gradebook) == {(FOLDER, "m1"): (4.0, "well said")}


def test_where_both_have_other_points_nothing_is_lost(gradebook: Gradebook) -> None:
    hand_in(gradebook, EARLIER, "m1", 4.0)
    hand_in(gradebook, FOLDER, "m1", 3.0)
    (line,) = take_over_earlier_names(gradebook, {EARLIER: FOLDER})
    gradebook.db.commit()
    assert line.startswith(
        f"{FOLDER}: the gradebook has other points by hand in m1 under {EARLIER}"
    )
    assert given(gradebook) == {(EARLIER, "m1"): (4.0, None), (FOLDER, "m1"): (3.0, None)}
