"""One mark for each student of a class, or the reason why there is none.

A mark adds up the points of the tests, the points by hand in nbgrader's gradebook, and the late
penalty.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from autograder.basics.points import format_points, total
from autograder.course import Assignment, Course
from autograder.course.platform_names import GROUPS_HAVE_IDS
from autograder.course.roster import Person
from autograder.intake.collected import Arrival, Collected, read_collected
from autograder.intake.released_notebook import written_points
from autograder.ledger import Ledger, find_in_class_list, read_ledger
from autograder.marks.late_policy import Lateness, apply_late
from autograder.records.model import Graded, ManualGrades, ManualScore, Result

Status = Literal[
    "graded",
    "waits for a person",
    "time cannot be read",
    "handed in nothing",
    "no notebook",
    "not graded yet",
    "could not be graded",
    "withdrawn",
]

_NUMBERED = re.compile(r"(.+)_(\d+)")


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of a student in an assignment.

    Attributes:
        student: the student's name in results and messages.
        status: whether the mark counts, or why it does not yet.
        note: remarks on the mark, or why there is none.
        person: the student's entry in the class list.
        arrival: where the submission came from; None where `collect` did not bring it.
        result: the result of the tests; None where none counts.
        questions: points that count, by question: points by hand in place of the tests' own.
        by_hand: points and comments by hand; None where the gradebook has none.
        written: points of written answers and of extra credit, so far.
        score: points of questions and written answers; None where no result counts.
        max_score: points that the assignment has, written answers included.
        late: lateness of the submission; None where lateness costs nothing.
        total: the score after the late policy; None where no result counts, or the hand-in time
            cannot be read.
        folder: the student's folder in submitted/, autograded/ and feedback/; "" where it has the
            student's name.
        group: for work of a group, the student in whose folder it lies; else "".
        called: the student's name, as a platform writes it.
        ids: platform → the student's id; "" for a number that may be a group's.
        joined: a name that is the same in all assignments, where a person has several.
        in_own_file: whether a platform's own file listed the student, with an email or a login.
    """

    student: str
    status: Status
    note: str = ""
    person: Person | None = None
    arrival: Arrival | None = None
    result: Result | None = None
    questions: Mapping[str, float] = field(default_factory=dict)
    by_hand: ManualGrades | None = None
    written: float = 0.0
    score: float | None = None
    max_score: float = 0.0
    late: Lateness | None = None
    total: float | None = None
    folder: str = ""
    group: str = ""
    called: str = ""
    ids: Mapping[str, str] = field(default_factory=dict)
    joined: str = ""
    in_own_file: bool = False

    @property
    def name(self) -> str:
        """The student's real name, as far as it is known."""
        if self.person and self.person.name:
            return self.person.name
        if self.arrival and self.arrival.name and not self.group:
            return self.arrival.name
        return self.called or self.student

    @property
    def may_be_a_group(self) -> bool:
        """Whether the platform's name and number could be a person's or a group's."""
        has_groups = self.arrival is not None and self.arrival.origin in GROUPS_HAVE_IDS
        return (
            has_groups
            and self.person is None
            and not self.group
            and not self.in_own_file
        )

    @property
    def own_folder(self) -> str:
        """The student's folder, by which nbgrader knows the student."""
        return self.folder or self.student

    @property
    def holder(self) -> str:
        """The student in whose folder the submission lies, and whose name the result has."""
        return self.group or self.student

    @property
    def own_result(self) -> Result | None:
        """The result under the student's own name, where it is a group's."""
        if self.result is None:
            return None
        return dataclasses.replace(self.result, student=self.student)

    def final(self, *, provisional: bool = False) -> float | None:
        """The mark to export.

        Args:
            provisional: also the mark of a student who still waits for points by hand.
        """
        counts = self.status == "graded" or (
            provisional and self.status == "waits for a person"
        )
        return self.total if counts else None

    def platform_id(self, platform: str) -> str:
        """The student's id on a platform; "" where it is not known."""
        if platform in self.ids:
            return self.ids[platform]
        arrival = self.arrival
        is_own = arrival is not None and not arrival.anonymous and not self.group
        if arrival is not None and is_own and arrival.origin == platform:
            return arrival.id
        listed = self.person.ids_on(platform) if self.person else ()
        return listed[0] if len(listed) == 1 else ""

    @property
    def number(self) -> str:
        """The platform's number at the end of the folder's name, for files put there by hand."""
        if self.arrival is not None or self.ids:
            return ""
        numbered = _NUMBERED.fullmatch(self.student)
        return numbered[2] if numbered else ""


def mark_from_result(result: Result) -> Mark:
    """The mark of a result by itself, without a class or a gradebook."""
    questions = {question.name: question.score for question in result.questions}
    return Mark(
        result.student,
        "graded",
        result=result,
        questions=questions,
        score=result.score,
        max_score=result.max_score,
        total=result.score,
    )


def class_marks(
    course: Course,
    assignment: Assignment,
    results: Sequence[Result],
    timing: Sequence[Graded] = (),
    *,
    by_hand: Mapping[str, ManualGrades] | None = None,
    late: Mapping[str, Lateness] | None = None,
    own_submissions: bool = True,
    ledger: Ledger | None = None,
) -> list[Mark]:
    """The marks of everybody: graded, not graded, or without a submission.

    Args:
        by_hand: student → points by hand; None where there is no gradebook.
        late: student → lateness; None where lateness costs nothing.
        own_submissions: whether the results belong to `submitted/`. A student whose submission is
            not there any more has withdrawn it then.
        ledger: the course's ledger, where the caller has read it.

    Raises:
        KitError: the class list has a mistake.
    """
    name = assignment.name
    ledger = ledger or read_ledger(course)
    collected = read_collected(course.submitted, name)
    written = written_points(assignment)
    present = ledger.students_with_notebooks(name)
    reasons = _find_withdrawn(results, collected, present) if own_submissions else {}
    reasons |= _find_reassigned(ledger, name, collected)
    groups = {
        result.student for result in results if ledger.is_group(result.student, name)
    }
    marks = []
    # groups come last: where a person stands twice, the group's mark gets the note
    for result in sorted(results, key=lambda result: result.student in groups):
        holder = result.student
        if holder in reasons:
            marks.append(_withdrawn_mark(result, reasons[holder]))
            continue
        group = holder if holder in groups else ""
        for member in ledger.members(holder, name):
            grades = by_hand.get(holder) if by_hand else None
            lateness = late.get(member) if late else None
            mark = _graded_mark(result, written, grades, lateness, course)
            marks.append(dataclasses.replace(mark, student=member, group=group))
    listed = {mark.holder for mark in marks}
    for entry in timing:
        if entry.problem and entry.student not in listed:
            is_gone = own_submissions and present and entry.student not in present
            status: Status = "withdrawn" if is_gone else "could not be graded"
            marks.append(Mark(entry.student, status, entry.problem))
    listed = {mark.holder for mark in marks}
    marks = [_note_later_arrival(mark, collected) for mark in marks]
    for refused in collected.not_taken.values():
        if refused.student not in listed:
            marks.append(
                Mark(
                    refused.student,
                    "no notebook",
                    refused.reason,
                    arrival=refused.arrival,
                )
            )
    listed |= collected.not_taken.keys()
    for student in collected.students.keys() - listed:
        if student in present:
            marks.append(Mark(student, "not graded yet"))
        else:
            note = "what was collected is not in submitted/ any more"
            marks.append(Mark(student, "withdrawn", note))
    return _add_people(ledger, name, marks, collected)


_Reason = tuple[str, str]
"""Why a result does not count, and what to do."""


def _find_withdrawn(
    results: Sequence[Result], collected: Collected, present: Collection[str]
) -> dict[str, _Reason]:
    """Students with a result whose submission was removed.

    A submission counts as removed where it was collected, or where others lie in submitted/.
    """
    reason = (
        "its submission is not in submitted/ any more",
        "put it there if they should",
    )
    students = [result.student for result in results if result.student not in present]
    if not present:
        students = [student for student in students if student in collected.students]
    return dict.fromkeys(students, reason)


def _find_reassigned(
    ledger: Ledger,
    assignment: str,
    collected: Collected,
) -> dict[str, _Reason]:
    """Students whose folder has work handed in by an id that belongs to somebody else by now."""
    reasons = {}
    for student, arrival in collected.students.items():
        actual = ledger.find_linked([(arrival.platform, arrival.id)], assignment)
        if actual not in (None, student) and not ledger.is_group(student, assignment):
            reasons[student] = (
                f"its submission was handed in by {arrival.origin} {arrival.id}, who is {actual}",
                "collect it again",
            )
    return reasons


def _withdrawn_mark(result: Result, reason: _Reason) -> Mark:
    cause, advice = reason
    points = f"{format_points(result.score)} of {format_points(result.max_score)}"
    note = f"{cause}, so its {points} do not count: {advice}"
    return Mark(result.student, "withdrawn", note, max_score=result.max_score)


def _graded_mark(
    result: Result,
    written: float,
    by_hand: ManualGrades | None,
    late: Lateness | None,
    course: Course,
) -> Mark:
    if by_hand:
        waiting = [grade.name for grade in _hand_scores(by_hand) if grade.waits]
    else:
        waiting = ["written answers"] if written else []
    grades = by_hand or ManualGrades(result.student, ())
    questions = {question.name: question.score for question in result.questions}
    for grade in grades.questions:
        if grade.points is not None and grade.name in questions:
            questions[grade.name] = grade.points
    score, max_score = grades.mark(result), total((result.max_score, written))
    after_late: float | None = score
    if late is not None and late.minutes is not None:
        after_late = apply_late(score, max_score, late.minutes, course.late)
    status: Status = "waits for a person" if waiting else "graded"
    if late is not None and late.unreadable:
        status, after_late = "time cannot be read", None
    return Mark(
        result.student,
        status,
        "; ".join(_remarks(grades, waiting, late)),
        result=result,
        questions=questions,
        by_hand=by_hand,
        written=total((score, *(-points for points in questions.values()))),
        score=score,
        max_score=max_score,
        late=late,
        total=after_late,
    )


def _hand_scores(grades: ManualGrades) -> tuple[ManualScore, ...]:
    return (*grades.written, *grades.questions)


def _remarks(
    grades: ManualGrades,
    waiting: Sequence[str],
    late: Lateness | None,
) -> Iterator[str]:
    if waiting:
        yield f"waits: {', '.join(waiting)}"
    for grade in _hand_scores(grades):
        if grade.earlier and grade.points is not None:
            points = (
                f"{format_points(grade.points)} of {format_points(grade.max_points)}"
            )
            yield f"{grade.name}: {points} given for an earlier answer"
    for grade in grades.questions:
        if grade.points is not None and not grade.earlier:
            yield f"{grade.name}: {format_points(grade.points)} by a person"
    extra_credit = total([grade.extra_credit for grade in _hand_scores(grades)])
    if extra_credit:
        yield f"{format_points(extra_credit)} of extra credit"
    if late and late.note:
        yield late.note
    if late and late.days_used:
        yield f"late days used: {late.days_used}"


def _note_later_arrival(mark: Mark, collected: Collected) -> Mark:
    """Note where a student's latest upload is no notebook, and an earlier upload counts."""
    later = collected.not_taken.get(mark.student)
    if later is None:
        return mark
    return _with_notes(
        mark, mark.note, f"came later, and was not taken: {later.reason}"
    )


def _with_notes(mark: Mark, *notes: str) -> Mark:
    return dataclasses.replace(mark, note="; ".join(filter(None, notes)))


def _add_people(
    ledger: Ledger, assignment: str, marks: list[Mark], collected: Collected
) -> list[Mark]:
    """Add people and platforms' ids to the marks, and everybody else of the class list.

    A group's mark becomes one mark for each member.
    """
    marks = _expand_groups(ledger, assignment, marks)
    people, conflicts = find_in_class_list(
        ledger, (mark.student for mark in marks), assignment
    )
    doubts = {
        str(identity): conflict.message
        for conflict in conflicts
        for identity in conflict.identities
    }
    joined = ledger.same_people()
    platforms_with_teams = {
        arrival.origin for arrival in collected.students.values() if not arrival.id
    }
    named: list[Mark] = []
    seen: set[str] = set()
    for mark in marks:
        student = mark.student
        person = people.get(student)
        if person is not None and person.id in seen:
            note = f"{person.id} stands here twice: join the folders in submitted/"
            mark = _with_notes(mark, mark.note, note)
        elif doubt := doubts.get(ledger.describe(student, assignment)):
            mark = _with_notes(
                mark, mark.note, f"not linked to the class list: {doubt}"
            )
        ids = ledger.ids(student, assignment)
        if person is None and not ledger.has_accounts(student):
            for platform in GROUPS_HAVE_IDS & ids.keys():
                if ledger.roster is not None or platform in platforms_with_teams:
                    # perhaps a group's number: groups and people are numbered in the same place
                    ids[platform] = ""
        named.append(
            dataclasses.replace(
                mark,
                person=person,
                arrival=mark.arrival or collected.students.get(mark.holder),
                ids=ids,
                folder=ledger.folder(student),
                called=ledger.name(student),
                joined=joined.get(student, student),
                in_own_file=ledger.has_accounts(student),
            )
        )
        if person is not None:
            seen.add(person.id)
    for person in ledger.roster or ():
        if person.id not in seen:
            ids = ledger.ids(person.id, assignment)
            named.append(Mark(person.id, "handed in nothing", person=person, ids=ids))
    return sorted(named, key=lambda mark: mark.student)


def _expand_groups(
    ledger: Ledger,
    assignment: str,
    marks: Sequence[Mark],
) -> list[Mark]:
    """Give each member the group's mark, in place of what the member handed in alone before."""
    graded = {mark.student for mark in marks if mark.group}
    members = {
        mark.student: ledger.members(mark.student, assignment)
        for mark in marks
        if not mark.group and ledger.is_group(mark.student, assignment)
    }
    in_groups = graded.union(*members.values())
    expanded: list[Mark] = []
    for mark in marks:
        if mark.student in members and not mark.group:
            expanded += [
                dataclasses.replace(mark, student=member, group=mark.student)
                for member in members[mark.student]
                if member not in graded
            ]
        elif mark.group or mark.student not in in_groups:
            expanded.append(mark)
    return [
        _with_notes(mark, f"handed in with {mark.group}", mark.note)
        if mark.group not in ("", mark.student)
        else mark
        for mark in expanded
    ]
