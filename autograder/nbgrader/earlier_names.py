"""Students whom versions before the ledger called otherwise in the gradebook than nbgrader does: one student again.

nbgrader's id of a student is the folder in submitted/. Earlier versions put a safe name in its place where the folder's
had, say, a typographic apostrophe in it; `nbgrader autograde` made a second student of the folder itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from nbgrader.api import Gradebook, Student, SubmittedAssignment, SubmittedNotebook

from autograder.course import Course
from autograder.ledger import Ledger
from autograder.nbgrader.gradebook import open_gradebook


def join_earlier_names(course: Course, ledger: Ledger, db_url: str) -> list[str]:
    """Join every student of an earlier name with the student of the folder; returns what a person has to decide."""
    folders = {earlier: ledger.folder(student) for earlier, student in ledger.earlier_names.items()}
    if not folders:
        return []
    with open_gradebook(course, db_url) as gradebook:
        differing = take_over_earlier_names(gradebook, folders)
        gradebook.db.commit()
    return differing


def take_over_earlier_names(gradebook: Gradebook, folders: Mapping[str, str]) -> list[str]:
    """Give what stands under an earlier name to the student of the folder. Commits nothing.

    Args:
        folders: earlier name → folder.

    Returns:
        A line for each student whose two sets of points by hand differ: both stay.
    """
    differing = []
    for earlier, folder in folders.items():
        old = gradebook.db.get(Student, earlier)
        if old is None:
            continue
        if gradebook.db.get(Student, folder) is None:
            gradebook.db.add(Student(id=folder, first_name=old.first_name, last_name=old.last_name, email=old.email))
            gradebook.db.flush()
        for submission in list(old.submissions):
            present = gradebook.db.query(SubmittedAssignment).filter_by(
                student_id=folder, assignment_id=submission.assignment_id
            ).one_or_none()  # fmt: skip
            if present is None:
                submission.student_id = folder
            elif all(
                _take_over(notebook, earlier_notebook)
                for notebook, earlier_notebook in _same_notebooks(present, submission)
            ):
                gradebook.db.delete(submission)
            else:
                name = submission.assignment.name
                differing.append(
                    f"{folder}: the gradebook has other points by hand in {name} under {earlier}: take over what "
                    "should count, then remove that student with `nbgrader db student remove`"
                )
        gradebook.db.flush()
        gradebook.db.refresh(old)
        if not old.submissions:
            gradebook.db.delete(old)
    return differing


def _same_notebooks(
    present: SubmittedAssignment, earlier: SubmittedAssignment
) -> list[tuple[SubmittedNotebook, SubmittedNotebook]]:
    notebooks = {notebook.notebook_id: notebook for notebook in present.notebooks}
    return [
        (notebooks[notebook.notebook_id], notebook)
        for notebook in earlier.notebooks
        if notebook.notebook_id in notebooks
    ]


def _take_over(present: SubmittedNotebook, earlier: SubmittedNotebook) -> bool:
    """Copy points and comments by hand where the student has none; False where both have, and they differ."""
    grades = {grade.cell_id: grade for grade in present.grades}
    comments = {comment.cell_id: comment for comment in present.comments}
    pairs = [(grades[g.cell_id], g, "manual_score") for g in earlier.grades if g.cell_id in grades]
    pairs += [(comments[c.cell_id], c, "manual_comment") for c in earlier.comments if c.cell_id in comments]
    by_hand = [(target, source, field) for target, source, field in pairs if getattr(source, field) is not None]
    if any(getattr(target, field) not in (None, getattr(source, field)) for target, source, field in by_hand):
        return False
    for target, source, field in by_hand:
        setattr(target, field, getattr(source, field))
        if field == "manual_score":
            target.extra_credit = target.extra_credit or source.extra_credit
            target.needs_manual_grade = source.needs_manual_grade
    return True
