"""Names wrong answers: the known mistakes that explain the points lost.

The mistakes of `mistakes.py` are graded by the same road as a submission, and what they answered is
kept (`known_runs.py`), as is what the answer key answered. A mistake explains a failed test where
it fails it too, with the same answers to the same calls (`agreement.py`). What it fails and the
student does not, or fails otherwise, speaks against it by the points of the test, but does not
always rule it out: a second fault may be in the way. Of a question with several faults the fewest
mistakes are named that explain what failed, the dearest first. Two faults in one call
show together only: where nothing explains half of what was lost, a few pairs of mistakes run as
well.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from autograder.diagnosis.known_sitting import (
    AnswerRecord,
    Departures,
    KnownSitting,
    all_of,
    departures_of,
)
from autograder.records.model import Diagnosis
from autograder.sitting.agreement import answers_agree, describe_form, distance, gradients_agree
from autograder.sitting.charges import adjust_verdicts
from autograder.sitting.pricing import Price, price_mistake
from autograder.sitting.sitting import TestRun
from autograder.suite.calls import Call
from autograder.suite.collection import SuiteQuestion
from autograder.suite.known_answers import KnownAnswer, combined

FIRST_SHARE = 0.5
"""The share of the lost points that a mistake explains for which a student should look first."""
MOST_NAMED = 3
_OTHERWISE = 0.25
"""How much a test that a mistake fails in another way speaks against it, beside one that the
student passes.
"""
_WORTH_NOTHING = 0.1
"""A test without points still says something."""
_MOST_COMBINATIONS = 60
"""Combinations of mistakes that are tried for one answer, most of them on one test only."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a question's failures come from.

    Attributes:
        first: the mistake that explains at least half of the lost points; where to look first.
        slips: further ones, each for its own tests.
        prices: what each of them costs by itself.
    """

    first: Diagnosis | None = None
    slips: tuple[Diagnosis, ...] = ()
    prices: tuple[Price, ...] = ()


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a student's answer did in front of a question's tests.

    Attributes:
        failed: the runs to be explained, in the order of the tests.
        key, departures: the answer key's runs of the same tests, and in which ways the student's
            depart from them.
        passed, others: tests that it passed, and those that it lost without any answer.
    """

    failed: Mapping[str, TestRun]
    key: Mapping[str, TestRun]
    departures: Mapping[str, Departures]
    passed: frozenset[str]
    others: frozenset[str]

    @property
    def numbers_right(self) -> bool:
        """Whether all that its own functions returned is right. A suite's own code shows what they
        leave behind, such as torch's dice, and that is no number of theirs.
        """
        return not any(
            "value" in departs and not call.of_suite
            for name, found in self.departures.items()
            for call, departs in zip(self.failed[name].calls, found, strict=False)
        )


@dataclass(frozen=True, slots=True)
class _Fit:
    """How one mistake, or two at once, fit a student's answer.

    Attributes:
        explained, against, otherwise: the tests that it explains; that it fails and the student
            passes; that both fail, each in its own way.
        off: how far the answers lie apart, in roundings, and before that in how many ways the
            student's departs from the answer key and the mistake's does not.
        priced: of the answers those that have a price and are not told: what they add is seen by
            errors alone, which another mistake may raise as well.
    """

    answers: tuple[KnownAnswer, ...]
    explained: frozenset[str]
    against: frozenset[str]
    otherwise: frozenset[str]
    off: tuple[int, float]
    priced: tuple[KnownAnswer, ...] = ()

    def named(self, tests: Collection[str]) -> list[Diagnosis]:
        told = [answer for answer in self.answers if answer not in self.priced]
        return [Diagnosis(answer.name, answer.hint, tuple(tests), answer.keeps) for answer in told]


class Diagnostician:
    """Knows the mistakes of a suite.

    Args:
        sitting: where mistakes are run that have not answered yet.
        cells: the answer key's cell of each question.
    """

    def __init__(
        self, sitting: KnownSitting, mistakes: Sequence[KnownAnswer], cells: Mapping[str, str]
    ) -> None:
        self._sitting, self._mistakes, self._cells = sitting, mistakes, cells
        self._combinations: dict[tuple[str, ...], AnswerRecord | None] = {}

    def name(
        self, question: SuiteQuestion, runs: Mapping[str, TestRun], points: Mapping[str, float]
    ) -> Named:
        """The mistakes that explain the failed tests of a question.

        Args:
            runs: all tests of the question on the student's answer.
            points: what each test is worth.
        """
        lost = {name: run for name, run in runs.items() if run.verdict.outcome != "passed"}
        failed = {name: run for name, run in lost.items() if run.answered}
        records = self._records(question)
        if not failed or not records:
            return Named()
        key = self._sitting.record(question, None).of(failed)
        found = {name: departures_of(run, key[name]) for name, run in failed.items()}
        answer = _Answer(
            failed,
            key,
            found,
            frozenset(runs) - frozenset(lost),
            frozenset(lost) - frozenset(failed),
        )
        worth = {name: points[name] or _WORTH_NOTHING for name in runs}
        fits = [fit for record in records if (fit := _fit(record, answer)) is not None]
        chosen = _fewest(fits, answer, worth)
        for _ in range(MOST_NAMED - 1):
            combination = self._combination(question, answer, chosen, worth)
            if combination is None:
                break
            fits.append(combination)
            chosen = _fewest(fits, answer, worth)
        return dataclasses.replace(
            _told(chosen, answer, worth),
            prices=self._prices(question, chosen, answer, runs, points),
        )

    def _prices(
        self,
        question: SuiteQuestion,
        chosen: Sequence[_Fit],
        answer: _Answer,
        runs: Mapping[str, TestRun],
        points: Mapping[str, float],
    ) -> tuple[Price, ...]:
        """What each chosen mistake costs by itself."""
        shown = {
            way
            for fit in chosen
            for test in fit.explained
            for way in all_of(answer.departures[test])
        }
        # A refusal that is withheld since no value is right is an effect of the mistake that made
        # the values wrong.
        withheld = _withheld(runs) if "value" in shown else frozenset()
        prices = []
        for record in self._records(question):
            fit = next((fit for fit in chosen if record.answer in fit.answers), None)
            if fit is not None and record.answer is not None:
                alone = adjust_verdicts(record.of(runs))
                failed = {test for test, run in alone.items() if run.verdict.outcome != "passed"}
                price = price_mistake(failed, points, record.answer.keeps)
                prices.append(
                    dataclasses.replace(price, tests=price.tests | fit.explained | withheld)
                )
        return tuple(prices)

    def _records(self, question: SuiteQuestion) -> list[AnswerRecord]:
        mistakes = (mistake for mistake in self._mistakes if mistake.question == question.name)
        return [self._sitting.record(question, mistake) for mistake in mistakes]

    def _combination(
        self,
        question: SuiteQuestion,
        answer: _Answer,
        chosen: Sequence[_Fit],
        worth: Mapping[str, float],
    ) -> _Fit | None:
        """Mistakes that together answer as the student does, first the one that fails more by
        itself; None where what is chosen explains all, or no combination explains more.

        Where the first chosen mistake explains half of the points, one more is looked for beside
        it, and else any two.
        """
        explained = frozenset[str]().union(*(fit.explained for fit in chosen))
        left = [test for test in answer.failed if test not in explained]
        base = chosen[0] if _is_first(chosen, answer, worth) else None
        if not left or (base is not None and len(base.answers) == MOST_NAMED):
            return None
        for records, test in self._groups(question, answer, base, left):
            record = self._combined(question, records)
            assert record is not None
            run = record.of([test])[test]
            if run.verdict.outcome == "passed" or not _explains(record, test, run, answer):
                continue
            fit = _fit(record, answer)
            if (
                fit is not None
                and not fit.against
                and (base is None or base.explained <= fit.explained)
            ):
                most = sorted(records, key=lambda record: -len(_failed_by(record, answer.failed)))
                answers = tuple(part.answer for part in most if part.answer)
                return dataclasses.replace(
                    fit, answers=answers, priced=_seen_by_errors(fit, base, answers, answer)
                )
        return None

    def _groups(
        self, question: SuiteQuestion, answer: _Answer, base: _Fit | None, left: Sequence[str]
    ) -> list[tuple[tuple[AnswerRecord, ...], str]]:
        """The most promising groups of mistakes that can be made at once, each with a test on which
        it must show.

        Promising are mistakes that answer in the student's form, and those that fail much of what
        is not explained.
        """
        parts = [
            (record, fails)
            for record in self._records(question)
            if (fails := _fails_alone(record, answer))
        ]
        groups: list[tuple[tuple[AnswerRecord, ...], frozenset[str]]]
        if base is not None:
            first = tuple(
                record for record in self._records(question) if record.answer in base.answers
            )
            groups = [((*first, record), fails) for record, fails in parts if record not in first]
        else:
            pairs = itertools.combinations(parts, 2)
            groups = [
                ((one, other), fails & more)
                for (one, fails), (other, more) in pairs
                if fails & more
            ]
        of_one_form = {
            id(record): _of_one_form(record, answer) for record in self._records(question)
        }

        def promise(group: tuple[tuple[AnswerRecord, ...], frozenset[str]]) -> tuple[int, int]:
            records, _ = group
            fails = frozenset[str]().union(*(_failed_by(record, left) for record in records))
            return sum(of_one_form[id(record)] for record in records), len(fails)

        possible = (
            group
            for group in sorted(groups, key=promise, reverse=True)
            if self._combined(question, group[0])
        )
        return [
            (records, next((test for test in left if test in fails), left[0]))
            for records, fails in itertools.islice(possible, _MOST_COMBINATIONS)
        ]

    def _combined(
        self, question: SuiteQuestion, records: Sequence[AnswerRecord]
    ) -> AnswerRecord | None:
        answers = [record.answer for record in records if record.answer is not None]
        names = tuple(answer.name for answer in answers)
        if names not in self._combinations:
            answer = combined(answers, self._cells[question.name])
            self._combinations[names] = self._sitting.record(question, answer) if answer else None
        return self._combinations[names]


def _seen_by_errors(
    fit: _Fit, base: _Fit | None, answers: Sequence[KnownAnswer], answer: _Answer
) -> tuple[KnownAnswer, ...]:
    """Of a combination's mistakes those beside `base` whose tests show no wrong value."""
    if base is None:
        return ()
    # those that ended the tests
    last_calls = (answer.departures[test][-1:] for test in fit.explained - base.explained)
    ways = frozenset[str]().union(*(all_of(departures) for departures in last_calls))
    beside = tuple(mistake for mistake in answers if mistake not in base.answers)
    return () if ways & {"value", "gradient"} else beside


def _withheld(runs: Mapping[str, TestRun]) -> frozenset[str]:
    """Tests that passed and do not count, since only refusals were seen."""
    charges = adjust_verdicts(runs)
    passed = (test for test, run in runs.items() if run.verdict.outcome == "passed")
    return frozenset(test for test in passed if charges[test].verdict.outcome != "passed")


def _fails_alone(record: AnswerRecord, answer: _Answer) -> frozenset[str]:
    """Which of the student's failed tests a mistake fails that may be one of two: it is written as
    changes, and fails no test that the student passes.
    """
    if record.answer is None or not record.answer.changes:
        return frozenset()
    fails = _failed_by(record, answer.failed)
    fit = (
        fails
        and not _says_what_is_not_so(record, fails, answer)
        and not _failed_by(record, answer.passed)
    )
    return fails if fit else frozenset()


def _of_one_form(record: AnswerRecord, answer: _Answer) -> int:
    """In how many of the student's failed tests a mistake answers in the student's form (a list,
    another shape), where that is not the answer key's.
    """
    count = 0
    for test, run in answer.failed.items():
        own = [describe_form(call.result) for call in run.calls]
        key = [describe_form(call.result) for call in answer.key[test].calls]
        count += own != key[: len(own)] and own == [
            describe_form(call.result) for call in record.of([test])[test].calls
        ]
    return count


def _failed_by(record: AnswerRecord, tests: Iterable[str]) -> frozenset[str]:
    return frozenset(
        name for name, run in record.of(tests).items() if run.verdict.outcome != "passed"
    )


def _says_what_is_not_so(record: AnswerRecord, fails: Iterable[str], answer: _Answer) -> bool:
    """Whether a mistake is about something else than numbers, so that its hint may call them right,
    and they are wrong.

    Args:
        fails: the tests that both the mistake and the student fail.
    """
    departs = frozenset[str]().union(
        *(all_of(record.departures(name, answer.key[name])) for name in fails)
    )
    return not answer.numbers_right and not departs & {"value", "fault"}


def _fit(record: AnswerRecord, answer: _Answer) -> _Fit | None:
    """How a mistake fits; None where it explains nothing, or says of the numbers what is not so."""
    assert record.answer is not None
    known = {
        name: run
        for name, run in record.of(answer.failed).items()
        if run.verdict.outcome != "passed"
    }
    explained = frozenset(
        name for name, run in known.items() if _explains(record, name, run, answer)
    )
    if not explained:
        return None
    if _says_what_is_not_so(record, known, answer):
        return None
    against = _failed_by(record, answer.passed)
    other_ways = sum(
        len(all_of(answer.departures[name]) - all_of(record.departures(name, answer.key[name])))
        for name in explained
    )
    off = max(_off(answer.failed[name].calls, known[name].calls) for name in explained)
    return _Fit(
        (record.answer,), explained, against, frozenset(known) - explained, (other_ways, off)
    )


def _explains(record: AnswerRecord, test: str, known: TestRun, answer: _Answer) -> bool:
    """Whether a known mistake fails a test as the student does: equal answers to the calls that
    both made, and a departure from the answer key that is the same.
    """
    student, key = answer.failed[test], answer.key[test]
    calls = list(zip(student.calls, known.calls, strict=False))
    if not calls:
        return False
    keys: list[Call | None] = [*key.calls, *([None] * len(calls))]
    if not all(
        answers_agree(mine, theirs, right)
        for (mine, theirs), right in zip(calls, keys, strict=False)
    ):
        return False
    mine = all_of(answer.departures[test][: len(calls)])
    theirs = all_of(record.departures(test, key)[: len(calls)])
    if "value" in mine or "fault" in mine:
        return bool(mine & theirs & {"value", "fault"})
    if (
        len(student.calls) != len(known.calls)
        or not _kind_of_cost(theirs) <= mine
        or bool(theirs) != bool(mine)
    ):
        return False
    return "gradient" not in theirs or all(gradients_agree(mine, theirs) for mine, theirs in calls)


def _kind_of_cost(departs: frozenset[str]) -> frozenset[str]:
    """What tells one way of costing too much from another: how many operations only where nothing
    else is larger, since checks that somebody leaves out make up for some.
    """
    return departs - {"cost of operations"} or departs


def _off(mine: Sequence[Call], theirs: Sequence[Call]) -> float:
    both = zip(mine, theirs, strict=False)
    return max(
        (distance(a.result, b.result) for a, b in both if a.fault is None and b.fault is None),
        default=0.0,
    )


def _fewest(fits: list[_Fit], answer: _Answer, worth: Mapping[str, float]) -> list[_Fit]:
    """The fewest mistakes that together explain what failed, the one that explains most first."""
    left, chosen = frozenset(answer.failed), list[_Fit]()
    lost = _points(left, worth)
    while left and len(chosen) < MOST_NAMED:

        def gain(fit: _Fit, left: frozenset[str] = left) -> float:
            against = _points(fit.against, worth) + _OTHERWISE * _points(
                fit.otherwise & left, worth
            )
            return _points(fit.explained & left, worth) - against

        open_ = [fit for fit in fits if gain(fit) > 0]
        if chosen or not open_ or 2 * _points(max(open_, key=gain).explained, worth) < lost:
            # one that explains little is named only where nothing speaks against it
            open_ = [fit for fit in open_ if not fit.against and not fit.otherwise & left]
        if not open_:
            break
        best = min(
            open_,
            key=lambda fit: (
                -round(gain(fit), 6),
                _points(fit.against | fit.otherwise, worth),
                fit.off,
            ),
        )
        chosen.append(best)
        left -= best.explained
    return chosen


def _points(tests: Iterable[str], worth: Mapping[str, float]) -> float:
    return sum(worth[test] for test in tests)


def _is_first(chosen: Sequence[_Fit], answer: _Answer, worth: Mapping[str, float]) -> bool:
    """Whether the first chosen mistake explains so much that a student should look there first."""
    return bool(chosen) and _points(chosen[0].explained, worth) >= FIRST_SHARE * _points(
        answer.failed, worth
    )


def _told(chosen: Sequence[_Fit], answer: _Answer, worth: Mapping[str, float]) -> Named:
    """What the student is told of the chosen mistakes."""
    named = [
        diagnosis
        for fit in chosen
        for diagnosis in fit.named([test for test in answer.failed if test in fit.explained])
    ]
    if _is_first(chosen, answer, worth):
        return Named(named[0], tuple(named[1:]))
    return Named(None, tuple(named))
