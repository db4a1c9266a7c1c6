"""What the parts of the kit hand to each other: frozen records with names from the domain.

The result's JSON form is fixed (docs/results.md); everything else here is internal.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from autograder.basics.errors import FaultOutcome
from autograder.basics.points import total
from autograder.basics.stored_json import decode_stored, encode_stored
from autograder.records.submission import Answer as Answer
from autograder.records.submission import Cell as Cell
from autograder.records.submission import CellOutcome as CellOutcome
from autograder.records.submission import CellState as CellState
from autograder.records.submission import FoundSubmission as FoundSubmission
from autograder.records.submission import HandedInCell as HandedInCell
from autograder.records.submission import Role as Role
from autograder.records.submission import Submission as Submission

RESULT_SCHEMA = 1

Duration = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
"""Seconds, of thirty years at most."""
Outcome = Literal["passed", "failed"] | FaultOutcome


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """One test of the hidden suite on one submission."""

    __test__ = False  # not a test class, whatever its name

    name: str
    outcome: Outcome
    points: float
    max_points: float
    message: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A known mistake that answers as the student does.

    Attributes:
        hint: what to tell the student.
        tests: those that it explains.
        keeps: the share of the question's points that the course leaves to an answer whose only
            fault it is.
    """

    mistake: str
    hint: str
    tests: tuple[str, ...] = ()
    keeps: float = 0.0


@dataclass(frozen=True, slots=True)
class TwoAnswers:
    """A call that a function answered differently in two runs, for a person to look at. It costs
    nothing by itself.

    Attributes:
        test: the test that made the call.
        call: the call in words.
        runs: the two runs in words.
        answers: what the function answered in each, in words.
    """

    test: str
    call: str
    runs: tuple[str, str]
    answers: tuple[str, str]


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """One question's score.

    Attributes:
        carried: the points regained with stand-ins for failed prerequisites.
        kept: the points that a slip keeps beyond what its tests give.
        diagnosis: the mistake that explains at least half of the points lost.
        slips: further mistakes, each for its own tests.
        two_answers: calls that were answered differently in two runs; in the result's file only
            where there are any.
    """

    name: str
    score: float
    max_score: float
    carried: float
    diagnosis: Diagnosis | None
    tests: tuple[TestOutcome, ...]
    slips: tuple[Diagnosis, ...] = ()
    kept: float = 0.0
    two_answers: tuple[TwoAnswers, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """One submission's result: the content of results/<assignment>/<student>.json, field by field
    in this order.
    """

    schema: int = dataclasses.field(default=RESULT_SCHEMA, kw_only=True)
    assignment: str
    student: str
    submission_sha256: str
    suite_sha256: str
    isolation: str
    score: float
    max_score: float
    questions: tuple[QuestionResult, ...]
    cells: tuple[CellOutcome, ...]

    @property
    def walls(self) -> str:
        """The walls alone, where `isolation` names a device too ("strict+cuda")."""
        return self.isolation.partition("+")[0]

    def to_json(self) -> str:
        """The result file's text: the same bytes for the same result."""
        fields = msgspec.to_builtins(self)
        for question in fields["questions"]:
            if not question["two_answers"]:
                del question["two_answers"]
        return encode_stored(fields)

    @property
    def flagged(self) -> tuple[str, ...]:
        """Questions with two answers to one call: a person should look at them."""
        return tuple(question.name for question in self.questions if question.two_answers)

    def headline(self) -> Result:
        """The result without tests and cells: what a summary needs. Of a class of thousands it fits
        into memory.
        """
        flagged = tuple(dataclasses.replace(q, tests=()) for q in self.questions if q.two_answers)
        return dataclasses.replace(self, questions=flagged, cells=())

    @staticmethod
    def from_json(text: str) -> Result:
        """Read a result file back.

        Raises:
            ValueError: not a result of this schema.
        """
        result = decode_stored(text, Result)
        if result.schema != RESULT_SCHEMA:
            raise ValueError(f"result schema {result.schema!r}, expected {RESULT_SCHEMA}")
        return _with_shared_parts(result)


@dataclass(frozen=True, slots=True)
class ManualScore:
    """What a person gave for one written answer, or in place of the tests for one question.

    Attributes:
        name: the written answer's name or the question's, without nbgrader's "written_" and
            "check_".
        max_points: what it is worth.
        points: what counts: the person's score, or 0 for an answer that was left blank. None where
            nobody has given one: a written answer then counts nothing yet, a question what its
                tests gave.
        extra_credit: points on top, which may be below 0.
        comment: the person's words as they wrote them (Markdown), or "No response." under a blank
            answer.
        waits: a person has yet to look, at it or again; `points` are what they gave before.
        earlier: whether `points` were given for an earlier answer than the one that was graded; it
            waits then.
        answer: hash of the answer that the gradebook was last filled with; "" where that is not
            known.
    """

    name: str
    max_points: float
    points: float | None
    extra_credit: float = 0.0
    comment: str = ""
    waits: bool = False
    earlier: bool = False
    answer: str = dataclasses.field(default="", compare=False)

    @property
    def counts(self) -> float:
        """Its points so far, extra credit included."""
        return (self.points or 0.0) + self.extra_credit


@dataclass(frozen=True, slots=True)
class ManualGrades:
    """One student's submission as the gradebook has it from people.

    Attributes:
        written: every written answer, in the order of the gradebook's names.
        questions: only those that a person scored, gave extra credit or commented, or is to look
            at.
        automatic: what the gradebook has of the tests, by question.
        submission: hash of the notebook that the gradebook was last filled from; "" where that is
            not known.
    """

    student: str
    written: tuple[ManualScore, ...]
    questions: tuple[ManualScore, ...] = ()
    automatic: Mapping[str, float] = dataclasses.field(default_factory=dict, compare=False)
    submission: str = dataclasses.field(default="", compare=False)

    @property
    def waits(self) -> bool:
        """The mark is provisional: a person has yet to look at something."""
        return any(score.waits for score in (*self.written, *self.questions))

    @property
    def earlier(self) -> bool:
        """Whether some of the points were given for an earlier answer."""
        return any(score.earlier for score in (*self.written, *self.questions))

    def is_of(self, result: Result) -> bool:
        """Whether the gradebook was filled since the result was made, as far as its points tell."""
        return all(
            abs(self.automatic.get(q.name, q.score) - q.score) < 1e-6 for q in result.questions
        )

    def mark(self, result: Result) -> float:
        """The tests' points, a person's in their place where given, and those of the written
        answers: what is known so far where `waits`. Late penalties are not in it.
        """
        given = {score.name: score.points for score in self.questions if score.points is not None}
        tests = [given.get(question.name, question.score) for question in result.questions]
        extra = [score.extra_credit for score in self.questions]
        written = [score.counts for score in self.written]
        return total([*tests, *extra, *written])


@dataclass(frozen=True, slots=True)
class Speed:
    """How long one call of a function took on a device, and of the baseline beside it.

    Attributes:
        seconds: 0 where `problem` says why there is no speed.
    """

    case: str
    seconds: Duration
    baseline_seconds: Duration
    problem: str = ""

    @property
    def ratio(self) -> float:
        """How many times the baseline's speed; 0 where there is none."""
        return (
            self.baseline_seconds / self.seconds if self.seconds > 0 and not self.problem else 0.0
        )


@dataclass(frozen=True, slots=True)
class Graded:
    """One submission after grading: its result, or the reason why it has none, and the time that
    grading took.

    The timing file keeps these records without `result` and `untried`.

    Attributes:
        result: the driver of a run keeps only the result's headline.
        problem: why it could not be graded, for the instructor; "" where `result` is there.
        seconds: wall time by stage ("read", "run", "tests", "diagnosis", "carry"); no second counts
            twice.
        untried: whether the run or the machine, and not the submission, is why there is no result:
            an older result stays then, and the next run grades the submission.
        speeds: where it was graded with a device, and the function that its suite times passed.
        older: why the stored result is an older one: it was to be graded again, and the run ended
            first.
        machine: which one of a cluster graded it; "" without a cluster.
    """

    student: Annotated[str, msgspec.Meta(min_length=1)]
    result: Result | None = None
    problem: str = ""
    seconds: dict[str, Duration] = dataclasses.field(default_factory=dict)
    untried: bool = False
    speeds: tuple[Speed, ...] = ()
    older: str = ""
    machine: str = ""


# Most tests of a class came out alike: a thousand results share them.
_shared_test = functools.lru_cache(maxsize=1 << 12)(lambda test: test)
_shared_cell = functools.lru_cache(maxsize=1 << 12)(lambda cell: cell)


def _with_shared_parts(result: Result) -> Result:
    questions = tuple(
        dataclasses.replace(question, tests=tuple(map(_shared_test, question.tests)))
        for question in result.questions
    )
    return dataclasses.replace(
        result, questions=questions, cells=tuple(map(_shared_cell, result.cells))
    )
