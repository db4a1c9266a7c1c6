"""Students whom versions before the ledger called otherwise in the gradebook than nbgrader does:
one student again.

nbgrader's id of a student is the folder in submitted/. Earlier versions put a safe name in its
place where the folder's had, say, a typographic apostrophe in it; `nbgrader autograde` made a
second student of the folder itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from nbgrader.api import Gradebook, Student, SubmittedAssignment

from autograder.course import Course
from autograder.ledger import Ledger
from autograder.nbgrader.gradebook import open_gradebook


def join_earlier_names(course: Course, ledger: Ledger, db_url: str) -> list[str]:
    """Join every student of an earlier name with the student of the folder; returns what a person
    has to decide.
    """
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
            gradebook.db.add(
                Student(
                    id=folder, first_name=old.first_name, last_name=old.last_name, email=old.email
                )
            )
            gradebook.db.flush()
        present = {
            submission.assignment_id: submission
            for submission in gradebook.student_submissions(folder)
        }
        for submission in list(old.submissions):
            name = submission.assignment.name
            if submission.assignment_id not in present:
                submission.student_id = folder
            elif _take_over(present[submission.assignment_id], submission):
                gradebook.db.delete(submission)
            else:
                differing.append(
                    f"{folder}: the gradebook has other points by hand in {name} under "
                    f"{earlier}: take over what "
                    "should count, then remove that student with `nbgrader db student remove`"
                )
        gradebook.db.flush()
        gradebook.db.refresh(old)
        if not old.submissions:
            gradebook.db.delete(old)
    return differing


def _take_over(present: SubmittedAssignment, earlier: SubmittedAssignment) -> bool:
    """Copy points and comments by hand where the student has none; False where both have, and they
    differ.
    """
    pairs = []
    for rows, field in (("grades", "manual_score"), ("comments", "manual_comment")):
        targets = {
            row.cell_id: row for notebook in present.notebooks for row in getattr(notebook, rows)
        }
        sources = [row for notebook in earlier.notebooks for row in getattr(notebook, rows)]
        pairs += [
            (targets[row.cell_id], row, field)
            for row in sources
            if row.cell_id in targets and getattr(row, field) is not None
        ]
    if any(
        getattr(target, field) not in (None, getattr(source, field))
        for target, source, field in pairs
    ):
        return False
    for target, source, field in pairs:
        setattr(target, field, getattr(source, field))
        if field == "manual_score":
            target.extra_credit = target.extra_credit or source.extra_credit
            target.needs_manual_grade = source.needs_manual_grade
    return True
