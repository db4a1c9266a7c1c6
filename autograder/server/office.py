"""The course at work: what the pages of students and instructors ask, and what they change.

No page touches the database or the course's files by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from autograder.basics.errors import KitError
from autograder.basics.times import shown_time
from autograder.course import COURSE_FILE, Assignment, Course, load_course
from autograder.intake.handed_in_weights import (
    weights_limit,
    weights_name,
    why_not_weights,
)
from autograder.intake.nicknames import (
    comparable_nickname,
    shown_nickname,
    takes_nickname,
)
from autograder.intake.reading import parse_notebook
from autograder.ledger import Ledger, read_ledger
from autograder.outputs.feedback_page import render_feedback
from autograder.records.model import Result
from autograder.reporting.marks_commands import read_uses
from autograder.reporting.stored_marks import StoredMarks
from autograder.server.attempts import (
    NO_NICKNAME,
    NO_WEIGHTS,
    Attempt,
    AttemptStore,
    KeptNickname,
    KeptWeights,
)
from autograder.server.filing import file_attempts
from autograder.server.people import PeopleStore, Role, Visitor
from autograder.server.questions_asked import RequestStore
from autograder.server.regrades import RegradeStore
from autograder.server.rules import AttemptRules, is_group_name

FILING_SECONDS = 2.0
"""How often newly graded attempts are put into the class's folders."""
LOOK_SECONDS = 600.0
"""How often marks are looked at that no new attempt has moved."""


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that came with a notebook.

    Attributes:
        content: b"" where the file is larger than it may be.
        size: bytes that came; more may have been sent.
    """

    name: str
    content: bytes
    size: int


class HandInRefused(KitError):
    """The notebook was not taken; the message says why, for the student."""


@dataclass(frozen=True, slots=True)
class AssignmentView:
    """One assignment as a student sees it now.

    Attributes:
        members: with whom the student hands in; the student alone, or a group.
        due: when it is due for this student, in words; "" where nobody says.
        attempts: the newest first.
        counting: the attempt that counts; None before one does.
        refusal: why the student may not hand in now; "" where they may.
        tries_left: None where there is no limit.
    """

    name: str
    members: tuple[str, ...]
    due: str
    is_past_due: bool
    attempts: tuple[Attempt, ...]
    counting: Attempt | None
    refusal: str
    tries_left: int | None


class Office:
    """What every page asks.

    Args:
        root: the course's folder. Its settings are read again when course.toml changes.
        wake_graders: called when there is something to grade.
        tell: prints a line for whoever runs the server.

    Attributes:
        after_filing: called with the names of assignments whose marks may have moved; each returns
            a line for each problem.
    """

    def __init__(
        self,
        root: Path,
        engine: Engine,
        wake_graders: Callable[[], None],
        tell: Callable[[str], None],
    ) -> None:
        self._root = root
        self.engine = engine
        self.attempts = AttemptStore(engine)
        self.people = PeopleStore(engine)
        self.requests = RequestStore(engine)
        self.regrades = RegradeStore(engine)
        self._wake_graders = wake_graders
        self._tell = tell
        self._lock = threading.Lock()
        self._reading_uses = (
            threading.Lock()
        )  # takes seconds, and nobody else shall wait
        self._course = load_course(root)
        self._settings_stamp = self._stamp()
        self._uses: dict[str, dict[str, tuple[str, ...]]] = {}
        self.after_filing: list[Callable[[Collection[str]], list[str]]] = []

    # The course

    @property
    def course(self) -> Course:
        """The course, with its settings as they are in the file now. A file with a mistake changes
        nothing until it is mended.
        """
        with self._lock:
            stamp = self._stamp()
            if stamp != self._settings_stamp:
                self._settings_stamp = stamp
                try:
                    self._course = load_course(self._root)
                except KitError as error:
                    self._tell(f"the settings from before stay: {error}")
            return self._course

    def _stamp(self) -> int:
        path = self._root / COURSE_FILE
        return path.stat().st_mtime_ns if path.exists() else 0

    def ledger(self) -> Ledger:
        """Who is who, as the files say now."""
        return read_ledger(self.course)

    def rules(self) -> AttemptRules:
        """The rules for attempts, as the settings say now."""
        return AttemptRules(self.course, self.ledger())

    def assignments(self) -> list[Assignment]:
        """The assignments that are built: students can have them."""
        return [entry for entry in self.course.assignments() if entry.release.exists()]

    def assignment(self, name: str) -> Assignment | None:
        """The built assignment of that name."""
        return next((entry for entry in self.assignments() if entry.name == name), None)

    def stored_marks(self, assignment: Assignment) -> StoredMarks:
        """The marks in the class's folders, as all commands know them."""
        return StoredMarks(
            self.course, assignment, self.course.results, lambda line: None
        )

    # People

    def role_of(self, student: str) -> Role:
        """The role that [server] instructors gives a person."""
        return (
            "instructor"
            if student in self.course.server.instructors.split()
            else "student"
        )

    def may_enter(self, student: str) -> bool:
        """Whether a person belongs to the course: listed, or there is no class list."""
        ledger = self.ledger()
        if is_group_name(ledger, student):
            return False
        is_known = student in ledger.listed or ledger.has_record(student)
        return not ledger.listed or is_known or self.role_of(student) == "instructor"

    def may_see(self, visitor: Visitor, attempt: Attempt) -> bool:
        """Whether the visitor may know that the attempt exists: it is their own, or their
        group's.
        """
        if visitor.is_instructor or visitor.student == (
            attempt.handed_in_by or attempt.student
        ):
            return True
        return visitor.student in self.rules().members(
            attempt.student, attempt.assignment
        )

    # Handing in

    def hand_in(
        self,
        student: str,
        assignment: Assignment,
        data: bytes,
        weights: SentFile | None = None,
        nickname: str = "",
    ) -> Attempt:
        """Take a notebook, and put it into the queue. It is on disk when this returns.

        Args:
            weights: the second file that was sent.
            nickname: what the student wants to be called on the leaderboard. Whatever is wrong with
                weights or nickname is noted, and the notebook is taken all the same.

        Raises:
            HandInRefused: the course's rules do not allow it now, or the file is no notebook.
        """
        course = self.course
        if not data:
            raise HandInRefused(
                "the file is empty: save the notebook and choose it again"
            )
        if len(data) > course.limits.notebook_mb << 20:
            raise HandInRefused(
                f"the notebook is larger than {course.limits.notebook_mb} MB: clear its outputs"
            )
        rules = self.rules()
        owner = rules.owner(student, assignment.name)
        if refusal := rules.why_not_now(
            self.attempts.of_student(owner, assignment.name)
        ):
            raise HandInRefused(refusal)
        try:
            parse_notebook(data, f"{assignment.name}.ipynb")
        except (KitError, ValueError) as error:
            raise HandInRefused(str(error)) from error
        by = "" if owner == student else student
        kept = self._keep_weights(assignment.name, weights)
        attempt = self.attempts.add(
            owner,
            assignment.name,
            data,
            by,
            kept,
            self._keep_nickname(owner, assignment, nickname),
        )
        self._wake_graders()
        return attempt

    def weights_limit(self, assignment: str) -> int:
        """Bytes of the largest file of weights beside a notebook; 0 where none is taken."""
        return weights_limit(self.course, assignment)

    def _keep_weights(self, assignment: str, sent: SentFile | None) -> KeptWeights:
        """What is kept of a second file, and what the student is told of it."""
        limit = self.weights_limit(assignment)
        name = weights_name(assignment)
        if not limit:
            return NO_WEIGHTS
        if sent is None:
            return KeptWeights(note=f"{name} did not come with this notebook.")
        problem = why_not_weights(sent.name, sent.content, assignment)
        if sent.size > limit:
            problem = f"{name}: is larger than {limit >> 20} MB"
        if problem:
            return KeptWeights(note=f"{problem}. The notebook counts without it.")
        size = f"{sent.size / (1 << 20):.1f} MB"
        return KeptWeights(sent.content, f"{name} came with it, {size}.")

    def takes_nickname(self, assignment: Assignment) -> bool:
        """Whether students choose what they are called on the assignment's leaderboard."""
        return takes_nickname(self.course, assignment)

    def _keep_nickname(
        self,
        owner: str,
        assignment: Assignment,
        sent: str,
    ) -> KeptNickname:
        """What is kept of a nickname, and what the student is told of it. Whoever comes first has
        it.
        """
        if not self.takes_nickname(assignment):
            return NO_NICKNAME
        nickname = shown_nickname(sent)
        if not nickname:
            return KeptNickname(
                note="On the leaderboard you have a number in place of a nickname."
            )
        others = self.attempts.nicknames_of_others(owner, assignment.name)
        taken = {comparable_nickname(other) for other in others}
        if comparable_nickname(nickname) in taken:
            return KeptNickname(
                note=f"Somebody else is called {nickname} on the leaderboard: you have a number "
                "there, until you hand in with another nickname."
            )
        return KeptNickname(nickname, f"On the leaderboard you are called {nickname}.")

    def place_in_queue(self, attempt: Attempt) -> tuple[int, float]:
        """How many attempts are graded before this one, and about how many seconds they take."""
        before = self.attempts.waiting_before(attempt)
        return before, (before + 1) * self.attempts.queue_state().seconds_each

    def begin_regrade(self, assignment: str) -> int:
        """Grade every attempt at an assignment again, aside; returns how many."""
        count = self.regrades.begin(assignment)
        self._wake_graders()
        return count

    # What students see

    def assignment_view(self, student: str, name: str) -> AssignmentView:
        """One assignment for a student."""
        return self._views(student, [name])[0]

    def assignment_views(self, student: str) -> list[AssignmentView]:
        """Every assignment for a student."""
        return self._views(
            student, [assignment.name for assignment in self.assignments()]
        )

    def _views(self, student: str, names: Sequence[str]) -> list[AssignmentView]:
        """Assignments for a student: files and database are read once."""
        rules = self.rules()
        owners = {name: rules.owner(student, name) for name in names}
        attempts = self.attempts.of_owners(owners)
        return [self._view(rules, student, name, attempts[name]) for name in names]

    def _view(
        self, rules: AttemptRules, student: str, name: str, attempts: list[Attempt]
    ) -> AssignmentView:
        due = rules.due(student, name)
        return AssignmentView(
            name=name,
            members=rules.members(rules.owner(student, name), name),
            due=shown_time(due, self.course.about.timezone) if due else "",
            is_past_due=rules.is_past_due(student, name),
            attempts=tuple(attempts),
            counting=rules.counting(attempts),
            refusal=rules.why_not_now(attempts),
            tries_left=rules.tries_left(attempts),
        )

    def feedback(self, attempt: Attempt, result: Result, back: str) -> str:
        """The feedback page of an attempt, whole, as `autograder report` writes it."""
        has_carried = any(question.carried for question in result.questions)
        uses = self._read_uses(attempt.assignment) if has_carried else {}
        return render_feedback(result, uses, back=back)

    def _read_uses(self, name: str) -> dict[str, tuple[str, ...]]:
        assignment = self.course.assignment(name)
        with self._reading_uses:
            if name not in self._uses:
                self._uses[name] = read_uses(assignment, self._tell)
            return self._uses[name]

    # What happens by itself

    def file_until(self, closed: threading.Event) -> None:
        """Put graded attempts into the class's folders, and have marks sent, until the server
        ends.
        """
        told: list[str] = []
        next_look = time.monotonic()
        while not closed.wait(FILING_SECONDS):
            is_time_to_look = time.monotonic() >= next_look
            if is_time_to_look:
                next_look = time.monotonic() + LOOK_SECONDS
            try:
                problems = self._file_and_follow(look_at_all=is_time_to_look)
            except Exception as error:
                problems = [f"not filed yet: {error}"]
            for problem in problems:
                if problem not in told:
                    self._tell(problem)
            told = problems or told
        file_attempts(self.course, self.attempts)

    def _file_and_follow(self, *, look_at_all: bool) -> list[str]:
        filed = file_attempts(self.course, self.attempts)
        problems = list(filed.problems)
        assignments = filed.assignments
        if look_at_all:  # points by hand and extensions move marks too
            assignments = tuple(assignment.name for assignment in self.assignments())
        if assignments:
            for follow_up in self.after_filing:
                problems += follow_up(assignments)
        return problems
