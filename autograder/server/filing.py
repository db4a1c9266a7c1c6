"""Keeps the class's folders true: of each student and assignment the attempt that counts lies in
`submitted/` and its result in `results/`, as if the notebook had been collected and graded.

All other commands work on these folders and know nothing of the server. The database has every
attempt; the folders can be made again from it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.basics.locks import hold_lock
from autograder.course import Course
from autograder.intake.handed_in_weights import weights_name
from autograder.intake.nicknames import NICKNAME_FILE
from autograder.ledger import Identity, Ledger, read_ledger
from autograder.platforms.submission_folder import SubmissionFolder
from autograder.records.model import Graded
from autograder.records.results import TimingFile, lock_results, store_result
from autograder.server.attempts import Attempt, AttemptStore
from autograder.server.rules import AttemptRules


@dataclass(frozen=True, slots=True)
class Filed:
    """What was put into the class's folders.

    Attributes:
        assignments: those with new results.
        problems: a line for each assignment that could not be filed now: another command holds its
            results, and the next call tries again.
    """

    assignments: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def file_attempts(course: Course, store: AttemptStore) -> Filed:
    """Put the counting attempts of everybody with newly graded ones into the class's folders."""
    unfiled = sorted(
        store.unfiled(), key=lambda attempt: (attempt.assignment, attempt.student)
    )
    filed = []
    problems = []
    for assignment, group in groupby(unfiled, key=lambda attempt: attempt.assignment):
        attempts = list(group)
        try:
            _file_assignment(course, store, assignment, attempts)
            filed.append(assignment)
        except KitError as error:
            problems.append(f"{assignment}: {error}")
    return Filed(tuple(filed), tuple(problems))


def _file_assignment(
    course: Course, store: AttemptStore, assignment: str, unfiled: list[Attempt]
) -> None:
    folder = course.results
    students = list(dict.fromkeys(attempt.student for attempt in unfiled))
    ledger = _read_ledger_with(course, students)
    rules = AttemptRules(course, ledger)
    course.submitted.mkdir(exist_ok=True)
    with lock_results(course.kept / "locks", folder, assignment):
        timing = TimingFile(folder, assignment)
        records: list[Graded] = []
        for student in students:
            attempts = store.of_student(student, assignment)
            counting = rules.counting(attempts)
            if counting is not None:
                records += _file_attempt(course, store, ledger, counting)
        timing.note(records)
    store.mark_filed([attempt.id for attempt in unfiled])


def _read_ledger_with(course: Course, students: Sequence[str]) -> Ledger:
    """The ledger, which also knows whose folder it is where a student's name, or a group's, cannot
    be a folder's.
    """
    ledger = read_ledger(course)
    renamed = [
        student
        for student in students
        if ledger.folder(student) != student and not ledger.has_record(student)
    ]
    if renamed:
        with hold_lock(course.kept / "locks" / "collect", "files attempts"):
            ledger = read_ledger(course)
            for student in renamed:
                ledger.learn(student, Identity(name=student), "", "new", "the server")
            ledger.save()
    return ledger


def _file_attempt(
    course: Course, store: AttemptStore, ledger: Ledger, attempt: Attempt
) -> Iterable[Graded]:
    """Write one attempt's notebook, hand-in time and result; the record for the timing file."""
    answer = store.answer(attempt.id)
    if answer is None:
        return
    graded, content = answer
    place = ledger.submission(attempt.student, attempt.assignment)
    purpose = f"the server, for {attempt.assignment}"
    with (
        tempfile.TemporaryDirectory() as scratch,
        FileTransaction(course.kept, purpose) as files,
    ):
        notebook = Path(scratch) / "notebook.ipynb"
        notebook.write_bytes(store.notebook(attempt.id))
        beside = {}
        if weights := store.weights(attempt.id):
            file = Path(scratch) / "weights"
            file.write_bytes(weights)
            beside[weights_name(attempt.assignment)] = file
        if attempt.nickname:
            file = Path(scratch) / NICKNAME_FILE
            file.write_text(f"{attempt.nickname}\n", encoding="utf-8")
            beside[NICKNAME_FILE] = file
        submission = SubmissionFolder(place, files)
        change, line = submission.install(notebook, attempt.handed_in, beside)
        if (
            change == "unchanged" and line
        ):  # an earlier attempt counts again: the later one yields
            submission.put_aside()
            submission.install(notebook, attempt.handed_in, beside)
    store_result(course.results, attempt.assignment, attempt.student, content or None)
    yield graded
