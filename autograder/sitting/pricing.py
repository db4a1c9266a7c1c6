"""The points that a question loses where known mistakes explain what failed.

With F the failed tests, N the named mistakes, price(m) what the mistake m costs by itself and L(m)
the tests that m fails by itself, a question loses the smaller of

* the points of F, and
* the prices of N, plus the points of those tests of F that are in no L(m).

So a missing check beside a slip costs what the check costs by itself, and a second fault never
makes the first one dearer.

A kernel that touches memory which is not its own, or whose programs race, costs its question half
of the points at least, however few tests see it: on a GPU such a kernel is wrong anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from autograder.basics.errors import StudentError
from autograder.basics.points import total
from autograder.sitting.sitting import TestRun

MEMORY_FAULT_KEEPS = 0.5
"""The share of a question's points that a kernel with a memory fault or a race keeps at most."""


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of one known mistake by itself.

    Attributes:
        points: what a question loses whose only fault the mistake is.
        tests: the tests that the mistake fails by itself.
    """

    points: float
    tests: frozenset[str]


def price_mistake(
    failed: Iterable[str],
    points: Mapping[str, float],
    keeps: float,
) -> Price:
    """The price of a known mistake.

    Args:
        failed: the tests that are charged where the mistake is the only fault.
        points: what each test of the question is worth.
        keeps: the share of the question's points that a student with this mistake keeps at least
            (`keeps=` in mistakes.py).
    """
    tests = frozenset(failed)
    by_tests = total([points[test] for test in tests])
    most = total([(1 - keeps) * total(points.values())])
    return Price(min(by_tests, most), tests)


def points_lost(
    failed: Collection[str],
    points: Mapping[str, float],
    prices: Sequence[Price],
) -> float:
    """The points that a question loses.

    Args:
        failed: the tests that are charged.
        points: what each test of the question is worth.
        prices: the prices of the named mistakes.
    """
    priced_tests = frozenset[str]().union(*[price.tests for price in prices])
    by_tests = [points[test] for test in failed]
    by_prices = [price.points for price in prices]
    by_prices += [points[test] for test in failed if test not in priced_tests]
    return min(total(by_tests), total(by_prices))


def least_loss(failed_runs: Iterable[TestRun], worth: float) -> float:
    """The points that a question loses at least, however few of its tests fail.

    Args:
        failed_runs: runs of the tests that are charged.
        worth: the points of the question.
    """
    if any(has_memory_fault(run) for run in failed_runs):
        return total([(1 - MEMORY_FAULT_KEEPS) * worth])
    return 0.0


def has_memory_fault(run: TestRun) -> bool:
    """Whether a kernel touched memory that it may not in a failed test."""
    faults = [call.fault for call in run.calls if not call.of_suite]
    return any(
        isinstance(fault, StudentError) and "MemoryFault" in fault.kinds
        for fault in faults
    )
