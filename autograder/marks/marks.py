"""The class as exports and the report see it: one mark for everybody, out of all the points, or why
there is none.

A mark adds up what the tests gave, what a person gave and changed in nbgrader's gradebook, and what
lateness costs.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
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
from autograder.records.model import Graded, ManualGrades, Result

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
    """One student and one assignment.

    Attributes:
        student: what they are called here.
        person: who that is in the class list, where there is one.
        arrival: where the submission came from, where `collect` brought it.
        folder: the student's folder in submitted/, autograded/ and feedback/; "" where it is called
            like the student.
        group: where a group handed in together, the student in whose folder its work lies; else "".
        called: the student's name, as a platform writes it.
        ids: what each platform knows the student by; "" for a number that may be another's.
        joined: one name for all that the person is called in different assignments.
        in_own_file: whether a platform's own file had the person, with an email or a login.
        result: what the tests said, where there is a result that counts.
        status: how far the mark is; `note` says more, or why there is none.
        questions: points that count by question: the tests' own, or those that a person put in
            their place.
        by_hand: what a person did; None where it is in no gradebook.
        written: points of written answers, and of extra credit, so far.
        score: the sum of both; None where there is no result that counts.
        max_score: points that the assignment has, written answers included.
        late: how late it was handed in; None where that costs nothing in this course.
        total: the score after the late policy; None where there is none, or nobody knows.
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
        """The person's own name, as far as anybody knows it."""
        told = self.arrival.name if self.arrival and not self.group else self.called
        return (self.person and self.person.name) or told or self.called or self.student

    @property
    def may_be_a_group(self) -> bool:
        """Whether nothing tells if the platform's name and number are a person's or a group's."""
        perhaps = self.arrival is not None and self.arrival.origin in GROUPS_HAVE_IDS
        return perhaps and self.person is None and not self.group and not self.in_own_file

    @property
    def own_folder(self) -> str:
        """The student's folder in submitted/, autograded/ and feedback/, which is nbgrader's id of
        them.
        """
        return self.folder or self.student

    @property
    def holder(self) -> str:
        """In whose folder the submission lies: the student of the result, and of times."""
        return self.group or self.student

    @property
    def own_result(self) -> Result | None:
        """The result as this student reads it: of a group's, under their own name."""
        return (
            dataclasses.replace(self.result, student=self.student)
            if self.result and self.group
            else self.result
        )

    def final(self, *, provisional: bool = False) -> float | None:
        """The mark to export: that of whoever still waits for a person's points only where it was
        asked for.
        """
        counts = self.status == "graded" or (provisional and self.status == "waits for a person")
        return self.total if counts else None

    def platform_id(self, platform: str) -> str:
        """What the platform knows the student by; "" where nobody knows."""
        if platform in self.ids:
            return self.ids[platform]
        arrival = self.arrival
        if (
            arrival is not None
            and arrival.origin == platform
            and not arrival.anonymous
            and not self.group
        ):
            return arrival.id
        listed = self.person.ids_on(platform) if self.person else ()
        return listed[0] if len(listed) == 1 else ""

    @property
    def number(self) -> str:
        """The number at the end of the name: the platform's, where somebody put its files there by
        hand.
        """
        numbered = (
            _NUMBERED.fullmatch(self.student) if self.arrival is None and not self.ids else None
        )
        return numbered[2] if numbered else ""


def mark_of(result: Result) -> Mark:
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
    """Everybody: who has a result, who could not be graded, who handed in nothing that could be
    taken, or nothing.

    Args:
        by_hand: what a person did, by student; None where there is no gradebook.
        late: by student, where lateness costs something.
        own_submissions: whether the results are those of `submitted/`, so that one without a
            submission there is of somebody who has withdrawn it.
        ledger: the course's, where the caller has read it.

    Raises:
        KitError: the class list has a mistake.
    """
    ledger = ledger or read_ledger(course)
    collected = read_collected(course.submitted, assignment.name)
    written = written_points(assignment)
    there = ledger.students_with_notebooks(assignment.name)
    gone = _without_submission(results, collected, there) if own_submissions else {}
    gone |= _of_others(ledger, assignment.name, collected)
    groups = {
        result.student for result in results if ledger.is_group(result.student, assignment.name)
    }
    marks = []
    for result in sorted(results, key=lambda result: result.student in groups):
        holder = result.student
        if holder in gone:
            marks.append(_withdrawn(result, gone[holder]))
            continue
        for member in ledger.members(holder, assignment.name):
            mark = _graded(result, written, by_hand, (late or {}).get(member), course)
            marks.append(
                dataclasses.replace(mark, student=member, group=holder if holder in groups else "")
            )
    known = {mark.holder for mark in marks}
    for entry in timing:
        if entry.problem and entry.student not in known:
            missing = own_submissions and there and entry.student not in there
            marks.append(
                Mark(
                    entry.student, "withdrawn" if missing else "could not be graded", entry.problem
                )
            )
    known = {mark.holder for mark in marks}
    marks = [_also_sent(mark, collected) for mark in marks]
    for one in collected.not_taken.values():
        if one.student not in known:
            marks.append(Mark(one.student, "no notebook", one.reason, arrival=one.arrival))
    known |= collected.not_taken.keys()
    for student in collected.students.keys() - known:
        here = student in there
        note = "" if here else "what was collected is not in submitted/ any more"
        marks.append(Mark(student, "not graded yet" if here else "withdrawn", note))
    return _with_people(ledger, assignment.name, marks, collected)


_Reason = tuple[str, str]
"""Why a result does not count, and what to do."""


def _without_submission(
    results: Sequence[Result], collected: Collected, there: Collection[str]
) -> dict[str, _Reason]:
    """Those with a result whose submission is not there: removed since, where others lie there or
    it was collected.
    """
    why = ("its submission is not in submitted/ any more", "put it there if they should")
    gone = (
        r.student
        for r in results
        if r.student not in there and (there or r.student in collected.students)
    )
    return dict.fromkeys(gone, why)


def _of_others(ledger: Ledger, assignment: str, collected: Collected) -> dict[str, _Reason]:
    """Students in whose folder work lies that came by an id which is somebody else's by now."""
    reasons = {}
    for student, arrival in collected.students.items():
        actual = ledger.find_linked([(arrival.platform, arrival.id)], assignment)
        if actual not in (None, student) and not ledger.is_group(student, assignment):
            reasons[student] = (
                f"its submission was handed in by {arrival.origin} {arrival.id}, who is {actual}",
                "collect it again",
            )
    return reasons


def _withdrawn(result: Result, reason: _Reason) -> Mark:
    why, what_to_do = reason
    had = f"{format_points(result.score)} of {format_points(result.max_score)}"
    return Mark(
        result.student,
        "withdrawn",
        f"{why}, so its {had} do not count: {what_to_do}",
        max_score=result.max_score,
    )


def _graded(
    result: Result,
    written: float,
    by_hand: Mapping[str, ManualGrades] | None,
    late: Lateness | None,
    course: Course,
) -> Mark:
    given = (by_hand or {}).get(result.student)
    waiting = _waiting(given) if given else (["written answers"] if written else [])
    hand = given or ManualGrades(result.student, ())
    overrides = {score.name: score.points for score in hand.questions if score.points is not None}
    questions = {q.name: overrides.get(q.name, q.score) for q in result.questions}
    score, full = hand.mark(result), total((result.max_score, written))
    unreadable = late is not None and late.unreadable
    after = (
        score
        if late is None or late.minutes is None
        else apply_late(score, full, late.minutes, course.late)
    )
    status: Status = (
        "time cannot be read" if unreadable else "waits for a person" if waiting else "graded"
    )
    return Mark(
        result.student,
        status,
        "; ".join(_remarks(hand, waiting, late)),
        result=result,
        questions=questions,
        by_hand=given,
        written=total((score, *(-points for points in questions.values()))),
        score=score,
        max_score=full,
        late=late,
        total=None if unreadable else after,
    )


def _waiting(given: ManualGrades) -> list[str]:
    return [score.name for score in (*given.written, *given.questions) if score.waits]


def _remarks(hand: ManualGrades, waiting: Sequence[str], late: Lateness | None) -> list[str]:
    notes = [f"waits: {', '.join(waiting)}"] if waiting else []
    notes += [
        f"{score.name}: {format_points(score.points)} of {format_points(score.max_points)} given "
        "for an "
        "earlier answer"
        for score in (*hand.written, *hand.questions)
        if score.earlier and score.points is not None
    ]
    notes += [
        f"{score.name}: {format_points(score.points)} by a person"
        for score in hand.questions
        if score.points is not None and not score.earlier
    ]
    extra = total([score.extra_credit for score in (*hand.written, *hand.questions)])
    notes += [f"{format_points(extra)} of extra credit"] if extra else []
    notes += [late.note] if late and late.note else []
    return [*notes, f"late days used: {late.days_used}"] if late and late.days_used else notes


def _also_sent(mark: Mark, collected: Collected) -> Mark:
    """Says so where the latest that came of somebody is no notebook, and an earlier one counts."""
    later = collected.not_taken.get(mark.student)
    return (
        _noted(mark, mark.note, f"came later, and was not taken: {later.reason}") if later else mark
    )


def _noted(mark: Mark, *notes: str) -> Mark:
    return dataclasses.replace(mark, note="; ".join(filter(None, notes)))


def _with_people(
    ledger: Ledger, assignment: str, marks: list[Mark], collected: Collected
) -> list[Mark]:
    """Who they are, each member of a group by themselves, and everybody of the class list of whom
    there is nothing.
    """
    marks = _of_members(ledger, assignment, marks)
    people, conflicts = find_in_class_list(ledger, (mark.student for mark in marks), assignment)
    doubts = {
        str(identity): conflict.message
        for conflict in conflicts
        for identity in conflict.identities
    }
    joined = ledger.same_people()
    with_teams = {arrival.origin for arrival in collected.students.values() if not arrival.id}
    named, seen = [], set()
    for mark in marks:
        arrival = mark.arrival or collected.students.get(mark.holder)
        person = people.get(mark.student)
        if person is not None and person.id in seen:
            mark = _noted(
                mark, mark.note, f"{person.id} stands here twice: join the folders in submitted/"
            )
        elif doubt := doubts.get(ledger.describe(mark.student, assignment)):
            mark = _noted(mark, mark.note, f"not linked to the class list: {doubt}")
        ids = ledger.ids(mark.student, assignment)
        if person is None and not ledger.has_accounts(mark.student):
            for platform in GROUPS_HAVE_IDS & ids.keys():
                if ledger.roster or platform in with_teams:
                    # perhaps a group's number: groups and people are numbered in the same place
                    ids[platform] = ""
        named.append(
            dataclasses.replace(
                mark,
                person=person,
                arrival=arrival,
                ids=ids,
                folder=ledger.folder(mark.student),
                called=ledger.name(mark.student),
                joined=joined.get(mark.student, mark.student),
                in_own_file=ledger.has_accounts(mark.student),
            )
        )
        seen |= {person.id} if person else set()
    for person in ledger.roster.people if ledger.roster else ():
        if person.id not in seen:
            named.append(
                Mark(
                    person.id,
                    "handed in nothing",
                    person=person,
                    ids=ledger.ids(person.id, assignment),
                )
            )
    return sorted(named, key=lambda mark: mark.student)


def _of_members(ledger: Ledger, assignment: str, marks: Sequence[Mark]) -> list[Mark]:
    """A group's mark once for each member; it stands in place of what a member handed in alone
    before.
    """
    graded = {mark.student for mark in marks if mark.group}
    members = {
        mark.student: ledger.members(mark.student, assignment)
        for mark in marks
        if not mark.group and ledger.is_group(mark.student, assignment)
    }
    in_groups = graded.union(*members.values())
    expanded: list[Mark] = []
    for mark in marks:
        if mark.group:
            expanded.append(mark)
        elif mark.student in members:
            missing = (member for member in members[mark.student] if member not in graded)
            expanded += [
                dataclasses.replace(mark, student=member, group=mark.student) for member in missing
            ]
        elif mark.student not in in_groups:
            expanded.append(mark)
    return [
        _noted(mark, f"handed in with {mark.group}", mark.note)
        if mark.group not in ("", mark.student)
        else mark
        for mark in expanded
    ]
