"""Names wrong answers: the known mistakes that explain the points lost.

The mistakes of `mistakes.py` are graded by the same road as a submission, and what they answered is kept
(`known_runs.py`), as is what the answer key answered. A mistake explains a failed test where it fails it too, with the
same answers to the same calls (`agreement.py`). What it fails and the student does not, or fails otherwise, speaks
against it by the points of the test, but does not always rule it out: a second fault may be in the way. Of a question
with several faults the fewest mistakes are named that explain what failed, the dearest first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from autograder.grading.agreement import agree, agree_in_gradients, apart, departures
from autograder.grading.known_runs import KnownRuns
from autograder.grading.sitting import TestRun
from autograder.model import Diagnosis
from autograder.suite.calls import Call
from autograder.suite.known import KnownAnswer

FIRST_SHARE = 0.5
"""The share of the lost points that a mistake explains for which a student should look first."""
MOST_NAMED = 3
_OTHERWISE = 0.25
"""How much a test that a mistake fails in another way speaks against it, beside one that the student passes."""
_WORTH_NOTHING = 0.1
"""A test without points still says something."""

RunTests = Callable[[str, KnownAnswer | None, tuple[str, ...]], dict[str, TestRun]]
"""Runs the named tests of a question on a known answer to it; on the answer key's own where that is None."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a question's failures come from.

    Attributes:
        first: the mistake that explains at least half of the lost points; where to look first.
        slips: further ones, each for its own tests.
        keeps: the share of the points that the question keeps, because `first` explains all that failed.
    """

    first: Diagnosis | None = None
    slips: tuple[Diagnosis, ...] = ()
    keeps: float = 0.0


class AnswerRecord:
    """What one known answer (or the answer key) answers to the tests of its question; each test is run when it is
    first asked for, unless it was on this machine before."""

    def __init__(self, answer: KnownAnswer | None, question: str, run: RunTests, kept: KnownRuns) -> None:
        self.answer, self._question = answer, question
        self._name = answer.name if answer else f"the answer key's {question}"
        self._run, self._kept = run, kept
        self._runs: dict[str, TestRun] = {}

    def of(self, tests: Iterable[str]) -> dict[str, TestRun]:
        """Its runs of these tests."""
        wanted = list(tests)
        for test in wanted:
            if test not in self._runs and (kept := self._kept.load(self._name, test)) is not None:
                self._runs[test] = kept
        if missing := tuple(test for test in wanted if test not in self._runs):
            runs = self._run(self._question, self.answer, missing)
            self._kept.save(self._name, list(runs.values()))
            self._runs.update(runs)
        return {test: self._runs[test] for test in wanted}


@dataclass(frozen=True, slots=True)
class _Fit:
    """How one mistake fits a student's answer.

    Attributes:
        explained, against, otherwise: the tests that it explains; that it fails and the student passes; that both fail,
            each in its own way.
        off: how far the answers lie apart, in roundings.
    """

    answer: KnownAnswer
    explained: frozenset[str]
    against: frozenset[str]
    otherwise: frozenset[str]
    off: float

    def named(self, tests: Iterable[str]) -> Diagnosis:
        return Diagnosis(self.answer.name, self.answer.hint, tuple(tests), self.answer.keeps)


class Diagnostician:
    """Knows the mistakes of a suite, and remembers what they answered."""

    def __init__(self, mistakes: Sequence[KnownAnswer], run: RunTests, kept: KnownRuns) -> None:
        self._run, self._kept = run, kept
        self._records: dict[str, list[AnswerRecord]] = {}
        self._keys: dict[str, AnswerRecord] = {}
        for answer in mistakes:
            record = AnswerRecord(answer, answer.question, run, kept)
            self._records.setdefault(answer.question, []).append(record)

    def name(self, question: str, runs: Mapping[str, TestRun], points: Mapping[str, float]) -> Named:
        """The mistakes that explain the failed tests of a question.

        Args:
            runs: all tests of the question on the student's answer.
            points: what each test is worth.
        """
        failed = {name: run for name, run in runs.items() if run.verdict.outcome != "passed" and run.answered}
        if not failed or question not in self._records:
            return Named()
        key = self._key(question).of(failed)
        worth = {name: points[name] or _WORTH_NOTHING for name in runs}
        numbers_right = not any("value" in _departures(run, key[name]) for name, run in failed.items())
        fits = [
            fit
            for record in self._records[question]
            if (fit := _fit(record, runs, failed, key, numbers_right)) is not None
        ]
        return _fewest(fits, failed, worth)

    def _key(self, question: str) -> AnswerRecord:
        if question not in self._keys:
            self._keys[question] = AnswerRecord(None, question, self._run, self._kept)
        return self._keys[question]


def _fit(
    record: AnswerRecord,
    runs: Mapping[str, TestRun],
    failed: Mapping[str, TestRun],
    key: Mapping[str, TestRun],
    numbers_right: bool,
) -> _Fit | None:
    """How a mistake fits; None where it explains nothing, or says of the numbers what is not so."""
    assert record.answer is not None
    known = {name: run for name, run in record.of(failed).items() if run.verdict.outcome != "passed"}
    explained = frozenset(name for name, run in known.items() if explains(failed[name], run, key[name]))
    if not explained:
        return None
    departs = frozenset[str]().union(*(_departures(run, key[name]) for name, run in known.items()))
    if not numbers_right and not departs & {"value", "fault"}:
        return None  # it is about something else than the numbers, and its hint may say that they are right
    passed = record.of(name for name in runs if name not in failed)
    against = frozenset(
        name
        for name, run in passed.items()
        if run.verdict.outcome != "passed" and runs[name].verdict.outcome == "passed"
    )
    off = max(_off(failed[name].calls, known[name].calls) for name in explained)
    return _Fit(record.answer, explained, against, frozenset(known) - explained, off)


def explains(student: TestRun, known: TestRun, key: TestRun) -> bool:
    """Whether a known mistake fails a test as the student does: equal answers to the calls that both made, and a
    departure from the answer key that is the same."""
    calls = list(zip(student.calls, known.calls, strict=False))
    if not calls:
        return False
    keys: list[Call | None] = [*key.calls, *([None] * len(calls))]
    if not all(agree(mine, theirs, right) for (mine, theirs), right in zip(calls, keys, strict=False)):
        return False
    mine, theirs = _departures(student, key, len(calls)), _departures(known, key, len(calls))
    if "value" in mine or "fault" in mine:
        return bool(mine & theirs & {"value", "fault"})
    if len(student.calls) != len(known.calls) or not theirs <= mine or bool(theirs) != bool(mine):
        return False
    return "gradient" not in theirs or all(agree_in_gradients(mine, theirs) for mine, theirs in calls)


def _departures(run: TestRun, key: TestRun, most: int | None = None) -> frozenset[str]:
    pairs = zip(run.calls[:most], key.calls, strict=False)
    found = (departures(call, right) for call, right in pairs if call.name == right.name)
    return frozenset().union(*found)


def _off(mine: Sequence[Call], theirs: Sequence[Call]) -> float:
    both = zip(mine, theirs, strict=False)
    return max((apart(a.result, b.result) for a, b in both if a.fault is None and b.fault is None), default=0.0)


def _fewest(fits: list[_Fit], failed: Collection[str], worth: Mapping[str, float]) -> Named:
    """The fewest mistakes that together explain what failed, the one that explains most first."""

    def points(tests: Iterable[str]) -> float:
        return sum(worth[test] for test in tests)

    left, chosen = frozenset(failed), list[_Fit]()
    lost = points(left)
    while left and len(chosen) < MOST_NAMED:

        def gain(fit: _Fit, left: frozenset[str] = left) -> float:
            against = points(fit.against) + _OTHERWISE * points(fit.otherwise & left)
            return points(fit.explained & left) - against

        open_ = [fit for fit in fits if gain(fit) > 0]
        if chosen or not open_ or 2 * points(max(open_, key=gain).explained) < lost:
            # one that explains little is named only where nothing speaks against it
            open_ = [fit for fit in open_ if not fit.against and not fit.otherwise & left]
        if not open_:
            break
        best = max(open_, key=lambda fit: (round(gain(fit), 6), -points(fit.against | fit.otherwise), -fit.off))
        chosen.append(best)
        left -= best.explained
    named = [fit.named(test for test in failed if test in fit.explained) for fit in chosen]
    if chosen and points(chosen[0].explained) >= FIRST_SHARE * lost:
        alone = not frozenset(failed) - chosen[0].explained
        return Named(named[0], tuple(named[1:]), named[0].keeps if alone else 0.0)
    return Named(None, tuple(named))
