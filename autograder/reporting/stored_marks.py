"""Marks from stored results, gradebook and class list, with a line for each thing that a person
should look at.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from autograder.basics.errors import NothingToGrade
from autograder.basics.safe_text import one_line
from autograder.course import Assignment, Course
from autograder.grading.staleness import find_misvalued, find_stale
from autograder.ledger import Ledger, read_ledger
from autograder.marks.late_policy import (
    TIMESTAMP_FILE,
    UNKNOWN,
    GradebookTimes,
    Lateness,
    class_lateness,
    describe_conflicts,
    read_timestamp,
)
from autograder.marks.marks import Mark, class_marks
from autograder.platforms.fill import PlatformFile
from autograder.records.model import ManualGrades, Result
from autograder.records.results import Tell, read_results, read_timing, result_path

_MOST_LISTED = 20
"""How many students a line on the terminal names."""


class StoredMarks:
    """The stored results of one assignment, and the marks that follow from them.

    Attributes:
        folder: the folder of results.
        timing: the entries of the timing file.
    """

    def __init__(
        self, course: Course, assignment: Assignment, folder: Path, tell: Tell
    ) -> None:
        self.course, self.assignment, self.folder, self.tell = (
            course,
            assignment,
            folder,
            tell,
        )
        self.timing = read_timing(folder, assignment.name, tell)

    @functools.cached_property
    def ledger(self) -> Ledger:
        """The course's ledger, read when it is first asked for: `learn_people` may change it."""
        return read_ledger(self.course)

    @functools.cached_property
    def results(self) -> list[Result]:
        """The results that add up, by student; a line for each that does not."""
        stored = read_results(self.folder, self.assignment.name, self.tell)
        wrong = find_misvalued(self.course, self.assignment, stored)
        for student, problem in wrong.items():
            path = result_path(self.folder, self.assignment.name, student)
            self.tell(
                f"{path}: left out, {one_line(problem)}; grade this submission again"
            )
        consistent = (result for result in stored if result.student not in wrong)
        return sorted(consistent, key=lambda result: result.student)

    @property
    def problems(self) -> dict[str, str]:
        """Why students have no result, by student."""
        return {entry.student: entry.problem for entry in self.timing if entry.problem}

    @property
    def _are_of_submitted(self) -> bool:
        """Whether the results are those of the course's own submissions."""
        return self.folder.resolve() == self.course.results.resolve()

    def assert_graded(self) -> None:
        """Raises: NothingToGrade, where nobody has a result, nor a reason why there is none."""
        if not self.results and not self.problems:
            name = self.assignment.name
            raise NothingToGrade(
                f"no results in {self.folder / name}: run `autograder grade {name}` first"
            )

    def marks(self, file: PlatformFile | None = None) -> list[Mark]:
        """Everybody's mark; says which results are older than they should be, and of whom no
        hand-in time is known.

        Args:
            file: a platform's own file, which may say when people handed in.

        Raises:
            NothingToGrade: nobody was graded.
        """
        results = self.results
        if older := [entry.student for entry in self.timing if entry.older]:
            self.tell(f"results from before, to be graded again: {listing(older)}")
        self.assert_graded()
        by_hand = self._manual_grades()
        late = self._lateness(file)
        self._tell_superseded(by_hand or {})
        return class_marks(
            self.course,
            self.assignment,
            results,
            self.timing,
            by_hand=by_hand,
            late=late,
            own_submissions=self._are_of_submitted,
            ledger=self.ledger,
        )

    def _manual_grades(self) -> dict[str, ManualGrades] | None:
        """The points that people gave, by student; None without a gradebook. Points for an earlier
        answer wait.
        """
        if not self.course.has_gradebook:
            return None
        from autograder.nbgrader.answers import mark_earlier_answers
        from autograder.nbgrader.manual_grades import read_manual_grades

        by_student = {}
        by_folder = read_manual_grades(self.course.db_url, self.assignment.name)
        for folder, grades in by_folder.items():
            student = self.ledger.student_in(folder)
            by_student[student] = replace(grades, student=student)
        return mark_earlier_answers(
            self.course, self.assignment, self.results, by_student
        )

    def _lateness(self, file: PlatformFile | None) -> dict[str, Lateness] | None:
        """How late each student is; None where lateness costs nothing."""
        course, name, ledger = self.course, self.assignment.name, self.ledger
        gradebook_times = _read_gradebook_times(course)
        for line in describe_conflicts(course, name, gradebook_times):
            self.tell(line)
        members = [ledger.members(result.student, name) for result in self.results]
        students = sorted({student for group in members for student in group})
        file_times = (
            file.hand_in_times(course, name, students, self.tell) if file else {}
        )
        untimed = [
            student
            for student in file_times
            if not (ledger.submission(student, name) / TIMESTAMP_FILE).exists()
        ]
        if untimed:
            self.tell(
                f"hand-in times of {len(untimed)} are this worksheet's: give it to `autograder "
                "collect` as `--roster` too, so that pages and totals know them"
            )
        late = class_lateness(
            course, [name], students, gradebook_times, {name: file_times}
        )
        lateness = late.get(name)
        if lateness is None:
            if course.late.policy != "none":
                self.tell(
                    f"marks are without late penalties: nobody says when {name} is due; write it "
                    "under [due] in course.toml, or into nbgrader's gradebook"
                )
            return None
        unknown = [
            student for student, entry in lateness.items() if entry.note == UNKNOWN
        ]
        if unknown:
            self.tell(
                "no hand-in time is known, so nothing is taken off for lateness: "
                f"{len(unknown)}: {', '.join(map(one_line, unknown))}; write a timestamp.txt, or "
                "collect again with a file that has times"
            )
        return lateness

    def _tell_superseded(self, by_hand: Mapping[str, ManualGrades]) -> None:
        """Say which results are newer than the gradebook, and whose points by hand wait."""
        command = f"`autograder export {self.assignment.name} --format gradebook`"
        manual = [result for result in self.results if result.student in by_hand]
        newer = [
            result.student
            for result in manual
            if not by_hand[result.student].matches(result)
        ]
        if newer:
            self.tell(
                f"graded since gradebook.db was filled: {listing(newer)}; fill it again with "
                f"{command}, so that a person sees what changed"
            )
        waiting = [
            result.student for result in manual if by_hand[result.student].earlier
        ]
        if waiting:
            self.tell(
                f"points by hand are for an earlier answer and wait: {listing(waiting)}; fill the "
                f"gradebook with {command}, and look at the new answers"
            )

    def tell_stale(self, results: Sequence[Result]) -> dict[str, str]:
        """Say which results grading would replace, and why; returns the reason by student."""
        reasons = find_stale(
            self.course,
            self.assignment,
            results,
            own_submissions=self._are_of_submitted,
        )
        for reason in dict.fromkeys(reasons.values()):
            students = [student for student in reasons if reasons[student] == reason]
            self.tell(
                f"stale results: {reason}: {listing(students)}; see what would move with "
                f"`autograder regrade {self.assignment.name}`, or grade again"
            )
        return reasons

    def tell_flagged(self, results: Iterable[Result]) -> None:
        """Say whose functions answered one call differently in two runs: nothing else in an export
        shows it.
        """
        flagged = [
            f"{result.student} ({', '.join(result.flagged)})"
            for result in results
            if result.flagged
        ]
        if flagged:
            self.tell(
                f"two answers to one call, for a person to look at: {listing(flagged)}; "
                "`autograder report` shows them"
            )

    def hand_in_times(self, students: Iterable[str]) -> dict[str, datetime]:
        """When each student handed in, from `timestamp.txt`; a line for each that cannot be
        read.
        """
        times = {}
        for student in students:
            folder = self.ledger.submission(student, self.assignment.name)
            try:
                time = read_timestamp(folder, self.course.about.timezone)
            except ValueError as error:
                self.tell(f"{folder}: no time of submission, {error}")
                continue
            if time is not None:
                times[student] = time
        return times


def _read_gradebook_times(course: Course) -> dict[str, GradebookTimes]:
    """Due times and extensions in the gradebook, where there is one and lateness costs anything."""
    if course.late.policy == "none" or not course.has_gradebook:
        return {}
    # imports nbgrader, which takes seconds
    from autograder.nbgrader.class_list import read_gradebook_times

    return read_gradebook_times(course)


def listing(students: Sequence[str]) -> str:
    """How many students, and the names of the first twenty of them."""
    names = ", ".join(one_line(student) for student in students[:_MOST_LISTED])
    if len(students) > _MOST_LISTED:
        names += f" and {len(students) - _MOST_LISTED} more"
    return f"{len(students)}: {names}"
