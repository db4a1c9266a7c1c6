"""What a question loses: one mistake is charged once, raising errors alone earns nothing, and a
named mistake has a price of its own. What else failed is priced by its tests.

With F the failed tests, N the named mistakes, price(m) what the mistake m costs by itself and L(m)
the tests that it fails by itself, a question loses the smaller of

* the points of F, and
* the prices of N, plus the points of those tests of F that are in no L(m).

So a missing check beside a slip costs what it costs by itself, and a second fault never makes the
first one dearer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from autograder.basics.points import total
from autograder.sitting.outcomes import Verdict
from autograder.sitting.sitting import TestRun


def charged(
    runs: Mapping[str, TestRun], again: Mapping[str, TestRun] | None = None
) -> dict[str, TestRun]:
    """The runs of a question's tests as they count; `again` are those with stand-ins.

    * A function that changes its arguments does so in every test. One test is lost for it: the
      first that asks for unchanged arguments, or else the first in which it happens.
    * A test that asks for a ValueError is passed by a function that always raises one. It counts
      where another test of the question passed in which that function answered, with stand-ins or
      without.
    * A wrong value on ordinary arguments, which the first test of a question has, shows in the
      tests after it too, whatever their claim is: their hints are left out.
    * An error has the cause that a test's hint names only where ordinary arguments do not raise
      one: where the first test did not pass, errors stand without hints.
    """
    return _hinted(_seen_to_answer(_charged_once(runs), (again or {}).values()))


def _charged_once(runs: Mapping[str, TestRun]) -> dict[str, TestRun]:
    by_cause = {name: run.verdict.cause for name, run in runs.items()}
    asked = [name for name, cause in by_cause.items() if cause == "changed argument, asked for"]
    found = [name for name, cause in by_cause.items() if cause == "changed argument"]
    forgiven = [*asked, *found][1:]
    return {n: _with(run, Verdict("passed")) if n in forgiven else run for n, run in runs.items()}


def _seen_to_answer(runs: Mapping[str, TestRun], again: Iterable[TestRun]) -> dict[str, TestRun]:
    answering: set[str] = set()
    for run in (*runs.values(), *again):
        if run.verdict.outcome == "passed":
            answering |= run.answering - run.refusing
    return {name: _withheld(run, answering) for name, run in runs.items()}


def _withheld(run: TestRun, answering: set[str]) -> TestRun:
    unseen = sorted(run.refusing - answering)
    if run.verdict.outcome != "passed" or not unseen:
        return run
    said = (
        f"`{unseen[0]}` raises ValueError here. That counts once another test has got a right "
        "answer of it."
    )
    return _with(run, Verdict("failed", said))


def _hinted(runs: Mapping[str, TestRun]) -> dict[str, TestRun]:
    first = next(iter(runs.values()), None)
    unhinted = set()
    if first is not None and first.verdict.outcome != "passed":
        unhinted = {name for name, run in runs.items() if run.verdict.cause == "raised"}
    if first is not None and first.verdict.cause == "wrong value":
        unhinted |= {
            name
            for name, run in runs.items()
            if run.verdict.cause == "wrong value" and run is not first
        }
    return {
        name: _with(run, dataclasses.replace(run.verdict, hint="")) if name in unhinted else run
        for name, run in runs.items()
    }


def _with(run: TestRun, verdict: Verdict) -> TestRun:
    return dataclasses.replace(run, verdict=verdict)


@dataclass(frozen=True, slots=True)
class Price:
    """What one known mistake costs by itself.

    Attributes:
        points: those that a question loses whose only fault it is.
        tests: those that it fails by itself.
    """

    points: float
    tests: frozenset[str]


def price_of(failed: Iterable[str], points: Mapping[str, float], keeps: float) -> Price:
    """The price of a known mistake.

    Args:
        failed: the tests that are charged to it where it is the only fault.
        points: what each test of the question is worth.
        keeps: the share of the question's points that the course leaves to it at least (`keeps=` in
            mistakes.py).
    """
    tests = frozenset(failed)
    by_tests = total([points[test] for test in tests])
    return Price(min(by_tests, total([(1 - keeps) * total(points.values())])), tests)


def loss(failed: Collection[str], points: Mapping[str, float], prices: Sequence[Price]) -> float:
    """The points that a question loses.

    Args:
        failed: the tests that are charged.
        points: what each test of the question is worth.
        prices: those of the named mistakes.
    """
    covered = frozenset[str]().union(*(price.tests for price in prices))
    by_tests = total([points[test] for test in failed])
    rest = (points[test] for test in failed if test not in covered)
    return min(by_tests, total([*(price.points for price in prices), *rest]))
