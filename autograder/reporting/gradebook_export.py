"""`autograder export --format gradebook`: results and notebooks for nbgrader's formgrader."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from autograder.basics.file_transaction import FileTransaction
from autograder.marks.late_policy import describe_conflicts
from autograder.marks.marks import class_marks
from autograder.nbgrader.class_list import read_gradebook_times, write_class_list
from autograder.nbgrader.course_name import shown_gradebook
from autograder.nbgrader.for_graders import AutogradedFolder, graded_submissions
from autograder.nbgrader.gradebook import fill_gradebook
from autograder.nbgrader.gradebook_file import gradebook_file
from autograder.records.model import Result
from autograder.records.submission import Submission
from autograder.reporting.stored_marks import StoredMarks, listing


def export_gradebook(stored: StoredMarks, to: Path | None) -> Iterator[str]:
    """Fill nbgrader's gradebook, and without `to` the folder of notebooks that people grade.

    Raises:
        NothingToGrade: nobody was graded.
    """
    course, assignment, results = stored.course, stored.assignment, stored.results
    problems = stored.problems
    stored.assert_graded()
    stored.tell_stale(results)
    stored.tell_flagged(results)
    students = [*(result.student for result in results), *problems]
    times = stored.hand_in_times(students)
    unreadable: list[str] = []

    def submissions() -> Iterator[tuple[Result, Submission | None]]:
        """Each result with its submission, which is read once for gradebook and folder."""
        for result, submission in graded_submissions(course, assignment, results):
            if submission is None:
                unreadable.append(result.student)
            elif autograded is not None:
                autograded.write(result, submission)
            yield result, submission

    file = to or (None if course.on_server.db_url else course.gradebook)
    title = f"`autograder export {assignment.name} --format gradebook`"
    with contextlib.ExitStack() as stack:
        files = stack.enter_context(FileTransaction(course.kept, title))
        db_url, version = course.db_url, 0
        if file is not None:
            written, version = stack.enter_context(gradebook_file(file, files))
            db_url = f"sqlite:///{written.absolute()}"
        autograded = AutogradedFolder(course, assignment, files) if to is None else None
        if autograded is not None:
            for student, problem in problems.items():
                autograded.write_problem(student, problem)
        fill_gradebook(
            course,
            assignment,
            submissions(),
            times,
            problems,
            db_url=db_url,
            version=version,
        )
        marks = class_marks(course, assignment, results, stored.timing)
        gradebook_times = read_gradebook_times(course, db_url)
        for line in describe_conflicts(course, assignment.name, gradebook_times):
            stored.tell(line)
        people = {mark.own_folder: mark.person for mark in marks if mark.person}
        write_class_list(course, assignment, people, db_url)
    if unreadable:
        stored.tell(
            "not what was graded, or not in submitted/ any more, so that nobody can grade their "
            f"written answers: {listing(unreadable)}; run `autograder grade {assignment.name}` "
            "first"
        )
    yield f"{len(results)} results of {assignment.name} in {file or shown_gradebook(db_url)}"
    if autograded is not None:
        yield (
            f"{autograded.written} notebooks to grade by hand in {course.autograded}: open them "
            "in the formgrader"
        )
