"""What a question loses: a named mistake has a price of its own, and what else failed is priced by its tests.

With F the failed tests, N the named mistakes, price(m) what the mistake m costs by itself and L(m) the tests that it
fails by itself, a question loses the smaller of

* the points of F, and
* the prices of N, plus the points of those tests of F that are in no L(m).

So a missing check beside a slip costs what it costs by itself, and a second fault never makes the first one dearer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from autograder.points import total


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
        keeps: the share of the question's points that the course leaves to it at least (`keeps=` in mistakes.py).
    """
    tests = frozenset(failed)
    by_tests = total(points[test] for test in tests)
    return Price(min(by_tests, total([(1 - keeps) * total(points.values())])), tests)


def loss(failed: Collection[str], points: Mapping[str, float], prices: Sequence[Price]) -> float:
    """The points that a question loses.

    Args:
        failed: the tests that are charged.
        points: what each test of the question is worth.
        prices: those of the named mistakes.
    """
    covered = frozenset[str]().union(*(price.tests for price in prices))
    by_tests = total(points[test] for test in failed)
    rest = (points[test] for test in failed if test not in covered)
    return min(by_tests, total([*(price.points for price in prices), *rest]))
