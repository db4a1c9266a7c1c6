"""What a question loses where mistakes have names, in numbers that were worked out by hand."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.basics.errors import StudentError
from autograder.sitting.pricing import Price, least_loss, points_lost, price_mistake
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Verdict
from autograder.suite.calls import Call

POINTS = {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}
EXCHANGED = price_mistake("abc", POINTS, keeps=0.5)
NO_CHECK = price_mistake("d", POINTS, keeps=0.0)


def test_a_mistake_costs_its_tests_and_a_slip_half_of_the_question_at_most() -> None:
    assert price_mistake("ab", POINTS, keeps=0.0) == Price(7.0, frozenset("ab"))
    assert price_mistake("abcd", POINTS, keeps=0.5).points == 5.0  # of ten
    assert (
        price_mistake("c", POINTS, keeps=0.5).points == 2.0
    )  # its tests are cheaper than half


@pytest.mark.parametrize(
    ("failed", "prices", "lost"),
    [
        ("", [], 0.0),
        ("abcd", [], 10.0),  # nobody has named it: by its tests
        ("abc", [EXCHANGED], 5.0),
        ("abcd", [EXCHANGED], 6.0),  # what else failed costs its own test
        ("abcd", [EXCHANGED, NO_CHECK], 6.0),
        ("ab", [EXCHANGED], 5.0),
        ("c", [EXCHANGED], 2.0),  # never more than the tests that failed
        (
            "abcd",
            [price_mistake("ab", POINTS, 0.0), price_mistake("bc", POINTS, 0.0)],
            10.0,
        ),
    ],
)
def test_what_is_lost(failed: str, prices: list[Price], lost: float) -> None:
    assert points_lost(failed, POINTS, prices) == lost


mistakes = st.tuples(
    st.frozensets(st.sampled_from("abcd"), min_size=1), st.sampled_from([0.0, 0.5])
)


@given(st.lists(mistakes, min_size=1, max_size=3))
def test_together_mistakes_cost_at_most_their_sum_and_at_least_the_dearest(
    group: list[tuple[frozenset[str], float]],
) -> None:
    """Each fails its own tests, and all are named."""
    prices = [price_mistake(tests, POINTS, keeps) for tests, keeps in group]

    def together(some: tuple[Price, ...]) -> float:
        return points_lost(
            frozenset().union(*(price.tests for price in some)), POINTS, some
        )

    for size in range(1, len(prices) + 1):
        for some in itertools.combinations(prices, size):
            assert together(some) <= sum(price.points for price in some) + 1e-9
            assert together(some) <= together(tuple(prices)) + 1e-9


def test_a_memory_fault_costs_half_of_the_question_at_least() -> None:
    """However few tests see the fault; a kernel that does not compile has touched no memory."""

    def failed_by(kinds: tuple[str, ...], *, of_suite: bool = False) -> TestRun:
        fault = StudentError(
            kinds[0], "program 1 writes y[5, 0], and y has 5 rows", (), kinds
        )
        call = Call("f", (), {}, fault=fault, of_suite=of_suite)
        return TestRun("d", Verdict("error"), (call,))

    out_of_bounds = failed_by(("MemoryFault", "KernelFault", "Exception"))
    wrong_value = TestRun("a", Verdict("failed"), (Call("f", (), {}, result=1.0),))
    assert least_loss([wrong_value, out_of_bounds], 19.0) == 9.5
    assert least_loss([wrong_value], 19.0) == 0.0
    does_not_compile = failed_by(("KernelFault", "Exception"))
    assert least_loss([does_not_compile], 19.0) == 0.0
    of_the_suite = failed_by(("MemoryFault", "KernelFault"), of_suite=True)
    assert least_loss([of_the_suite], 19.0) == 0.0
