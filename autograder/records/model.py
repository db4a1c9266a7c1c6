"""Records of results, marks by hand and timings, which the parts of the kit hand to each other.

The result's JSON form is fixed (docs/results.md); all other records are internal.
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
from autograder.records.submission import CellOutcome

RESULT_SCHEMA = 2
_READABLE_SCHEMAS = (1, 2)
"""Results of schema 1 do not say what made them."""

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
        hint: the message for the student.
        tests: the failed tests that the mistake explains.
        keeps: the share of the question's points that an answer keeps whose only fault is this
            mistake.
    """

    mistake: str
    hint: str
    tests: tuple[str, ...] = ()
    keeps: float = 0.0


@dataclass(frozen=True, slots=True)
class TwoAnswers:
    """A call that a function answered differently in two runs, for a person to look at; the
    difference costs no points.

    Attributes:
        test: the test that made the call.
        call: the call in words.
        runs: the two runs in words.
        answers: the function's answer in each run, in words.
    """

    test: str
    call: str
    runs: tuple[str, str]
    answers: tuple[str, str]


@dataclass(frozen=True, slots=True)
class DifferenceTable:
    """Two arrays of numbers in rows and columns, and where they differ.

    Attributes:
        yours, expected: the numbers as text, row by row.
        differs: whether the numbers of a place differ.
    """

    yours: tuple[tuple[str, ...], ...]
    expected: tuple[tuple[str, ...], ...]
    differs: tuple[tuple[bool, ...], ...]


@dataclass(frozen=True, slots=True)
class SmallExample:
    """A call in which an answer differs from the right one, for the student to try.

    Attributes:
        call: lines of Python to paste below the notebook; where `yours` is "", the call of a test
            with shapes in place of tensors.
        yours: the student's answer, or what happens in its place; "" where the difference is no
            value.
        expected: the right answer.
        note: a remark; how the answer differs where the difference is no value.
        table: the two answers where they have rows and columns.
    """

    call: str
    yours: str = ""
    expected: str = ""
    note: str = ""
    table: DifferenceTable | None = None


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """One question's score.

    Attributes:
        carried: the points regained with stand-ins for failed prerequisites.
        kept: the points that an answer with a slip keeps beyond the points of passed tests.
        capped: the points of passed tests that do not count, since a kernel of the question has a
            memory fault; left out of the result's file where there are none.
        diagnosis: the mistake that explains at least half of the points lost.
        slips: further mistakes, each for its own tests.
        two_answers: calls that were answered differently in two runs; left out of the result's
            file where there are none.
        evidence: what is true of the answer where no known mistake is named first; left out of the
            result's file where it is "".
        example: a small call that shows the question's own fault; left out of the result's file
            where there is none.
    """

    name: str
    score: float
    max_score: float
    carried: float
    diagnosis: Diagnosis | None
    tests: tuple[TestOutcome, ...]
    slips: tuple[Diagnosis, ...] = ()
    kept: float = 0.0
    capped: float = 0.0
    two_answers: tuple[TwoAnswers, ...] = ()
    evidence: str = ""
    example: SmallExample | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One submission's result: the content of results/<assignment>/<student>.json, fields in this
    order.

    Attributes:
        made_by: name → version of the software on which the result depends, and the tier of the
            walls; left out of the file where it is not known.
    """

    schema: int = dataclasses.field(default=RESULT_SCHEMA, kw_only=True)
    assignment: str
    student: str
    submission_sha256: str
    suite_sha256: str
    isolation: str
    made_by: Mapping[str, str] = dataclasses.field(default_factory=dict, kw_only=True)
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
        if not self.made_by:
            del fields["made_by"]
        for question in fields["questions"]:
            for name in ("two_answers", "evidence", "example", "capped"):
                if not question[name]:
                    del question[name]
        return encode_stored(fields)

    @property
    def flagged(self) -> tuple[str, ...]:
        """Questions with two answers to one call, at which a person should look."""
        return tuple(
            question.name for question in self.questions if question.two_answers
        )

    def without_examples(self) -> Result:
        """The result for readers who may not see examples yet."""
        questions = [
            dataclasses.replace(question, example=None) for question in self.questions
        ]
        return dataclasses.replace(self, questions=tuple(questions))

    def headline(self) -> Result:
        """The result without tests and cells, for summaries: a class of thousands fits into
        memory.
        """
        flagged = [
            dataclasses.replace(question, tests=())
            for question in self.questions
            if question.two_answers
        ]
        return dataclasses.replace(
            self,
            questions=tuple(flagged),
            cells=(),
        )

    @staticmethod
    def from_json(text: str) -> Result:
        """Read a result file back.

        Raises:
            ValueError: not a result of this schema.
        """
        result = decode_stored(text, Result)
        if result.schema not in _READABLE_SCHEMAS:
            raise ValueError(
                f"result schema {result.schema!r}, expected {RESULT_SCHEMA}"
            )
        return _with_shared_parts(result)


@dataclass(frozen=True, slots=True)
class ManualScore:
    """A person's score for one written answer, or for one question in place of the tests.

    Attributes:
        name: the written answer's name or the question's, without nbgrader's "written_" and
            "check_".
        max_points: the most points of the answer.
        points: the person's score, or 0 for an answer that was left blank. None before there is a
            score: a written answer then counts nothing yet, a question the points of the tests.
        extra_credit: points on top, which may be below 0.
        comment: the person's words in Markdown, or "No response." under a blank answer.
        waits: whether a person has yet to look, for the first time or again; `points` are the
            earlier score.
        earlier: whether `points` were given for an earlier answer than the graded answer; `waits`
            is true then.
        answer: hash of the answer that the gradebook was last filled with; "" where the hash is
            unknown.
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
        """The points so far, extra credit included."""
        return (self.points or 0.0) + self.extra_credit


@dataclass(frozen=True, slots=True)
class ManualGrades:
    """People's scores for one student's submission, from the gradebook.

    Attributes:
        written: every written answer, in the order of the gradebook's names.
        questions: only questions with a person's score, extra credit or comment, or with a request
            to look.
        automatic: the points of the tests in the gradebook, by question.
        submission: hash of the notebook that the gradebook was last filled from; "" where the hash
            is unknown.
    """

    student: str
    written: tuple[ManualScore, ...]
    questions: tuple[ManualScore, ...] = ()
    automatic: Mapping[str, float] = dataclasses.field(
        default_factory=dict, compare=False
    )
    submission: str = dataclasses.field(default="", compare=False)

    @property
    def waits(self) -> bool:
        """Whether the mark is provisional, since a person has yet to look at an answer."""
        return any(score.waits for score in (*self.written, *self.questions))

    @property
    def earlier(self) -> bool:
        """Whether some of the points were given for an earlier answer."""
        return any(score.earlier for score in (*self.written, *self.questions))

    def matches(self, result: Result) -> bool:
        """Whether the gradebook was filled since the result was made, as far as its points tell."""
        for question in result.questions:
            points = self.automatic.get(question.name, question.score)
            if abs(points - question.score) >= 1e-6:
                return False
        return True

    def mark(self, result: Result) -> float:
        """The mark without late penalties: points of tests, or a person's in their place, and of
        written answers; provisional where `waits`.
        """
        points = {question.name: question.score for question in result.questions}
        for score in self.questions:
            if score.points is not None and score.name in points:
                points[score.name] = score.points
        extra = [score.extra_credit for score in self.questions]
        written = [score.counts for score in self.written]
        return total([*points.values(), *extra, *written])


@dataclass(frozen=True, slots=True)
class Speed:
    """The time of one call of a function on a device, and of the baseline's call.

    Attributes:
        seconds: the time of the function's call; 0 where `problem` says why there is none.
    """

    case: str
    seconds: Duration
    baseline_seconds: Duration
    problem: str = ""

    @property
    def ratio(self) -> float:
        """The speed as a multiple of the baseline's; 0 where there is a problem."""
        if self.problem or self.seconds <= 0:
            return 0.0
        return self.baseline_seconds / self.seconds


@dataclass(frozen=True, slots=True)
class Graded:
    """One submission after grading: the result, or the reason why there is none, and the time that
    grading took.

    The timing file keeps these records without `result` and `untried`.

    Attributes:
        result: the driver of a run keeps only the result's headline.
        problem: why the submission could not be graded, for the instructor; "" with a `result`.
        seconds: wall time by stage ("read", "run", "tests", "diagnosis", "carry"); no second counts
            twice.
        untried: whether the run or the machine is to blame that there is no result, and not the
            submission: an older result stays then, and the next run grades the submission.
        speeds: speeds on a device, for functions that passed and that the suite times.
        older: why the stored result is an older one, such as a run that ended before it graded the
            submission again.
        machine: the machine of a cluster that graded the submission; "" without a cluster.
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
        result,
        questions=questions,
        cells=tuple(map(_shared_cell, result.cells)),
    )
