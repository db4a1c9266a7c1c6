"""The smallest repair that makes an answer right, and what else the evidence says, where no known
mistake explains a question's failures.

A repair stands around the student's function: its arguments are changed before the call, or its
answer after it, in the trusted process. An answer that one repair makes right has one fault, and
costs what one fault costs. Where no repair does it, the page still says what is true of the answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.diagnosis.answer_forms import describe_forms, describe_numbers
from autograder.diagnosis.asking import PlacedSight
from autograder.diagnosis.findings import list_findings, tensor_arguments
from autograder.suite.answer_predicates import (
    axes_exchanged,
    back_to_front,
    complement,
    equal,
    is_what,
    needs_softmax,
    one_axis_less,
    one_axis_more,
    parts_exchanged,
    to_array,
)
from autograder.suite.factor_predicates import measure_factor, off_by_a_constant
from autograder.suite.kinds import is_array, numbers_in
from autograder.suite.probing_predicates import (
    right_once_exchanged,
    right_once_inverted,
    right_once_scaled,
    right_once_transposed,
)
from autograder.suite.sight import Predicate, Sight, Unseen, look_safely, make_predicate
from autograder.wire.libraries import dtype_name
from autograder.wire.trees import leaves

REPAIRED_KEEPS = 0.65
"""The share of its question's points that an answer keeps which a single repair makes right."""
_FEWEST_REPAIRED = 3
"""Numbers that a repair must make right: one or two can become so by chance."""
_SUBJECT = "In the calls that are wrong, your answer"
_SUBJECT_WITHOUT_HINT = (
    "In the calls that are wrong and that no hint explains, your answer"
)
"""The calls of passed tests are not looked at: what is true of wrong answers may be false there."""
_POWERS = (0.5, -0.5, 1, -1, 2, -2)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of an answer that no known mistake explains.

    Attributes:
        text: a sentence for the student.
        tests: the tests whose wrong answers show it.
        is_repair: whether the answer would be right but for this.
    """

    text: str
    tests: frozenset[str]
    is_repair: bool


def find_evidence(
    sights: Mapping[str, Sequence[PlacedSight]],
    unexplained: Collection[str],
    compared: Collection[str],
    *,
    is_free: bool = False,
) -> Evidence | None:
    """The smallest repair of the answers that no mistake explains; else the first thing that is
    true of all wrong answers; None where nothing is known of wrong answers.

    Args:
        sights: of all failed tests.
        unexplained: the failed tests that no mistake explains.
        compared: the tests that compared numbers with the right ones.
        is_free: whether other answers than the answer key's are right too: then only the kind of
            an answer can be wrong by comparison.
    """
    seen = {
        test: [sight for _, sight in placed]
        for test, placed in sights.items()
        if placed
    }
    remaining = {test: of_test for test, of_test in seen.items() if test in unexplained}
    if not remaining:
        return None
    every = [sight for of_test in remaining.values() for sight in of_test]
    if not is_free:
        subject = _SUBJECT if len(remaining) == len(seen) else _SUBJECT_WITHOUT_HINT
        evidence = _find_repair(remaining, every, subject) or _find_finding(
            seen, every[0]
        )
        if evidence is not None:
            return evidence
    comparable = [
        sight for test in remaining if test in compared for sight in seen[test]
    ]
    text = describe_forms(every)
    # the sentences on numbers speak of all wrong answers, also of those that a hint explains
    if not text and not is_free and len(remaining) == len(seen):
        text = describe_numbers(comparable)
    return Evidence(text, frozenset(remaining), is_repair=False) if text else None


def _find_repair(
    remaining: Mapping[str, Sequence[Sight]],
    every: Sequence[Sight],
    subject: str,
) -> Evidence | None:
    """The smallest repair of answers without a name; None where none makes them right."""
    if any(_repeats_an_argument(sight) for sight in every):
        return None
    factor = _find_factor(every)
    if factor:
        return Evidence(f"{subject} {factor}.", frozenset(remaining), is_repair=True)
    for repair in (_other_dtype(every), *_repairs(every[0])):
        tests = _tests_that_show(repair, remaining)
        repaired = [sight for test in tests for sight in remaining[test]]
        if sum(_count_telling(sight.right) for sight in repaired) >= _FEWEST_REPAIRED:
            return Evidence(f"{subject} {repair.text}.", tests, is_repair=True)
    return None


def _find_finding(seen: Mapping[str, Sequence[Sight]], first: Sight) -> Evidence | None:
    """The first thing that is true of all wrong answers, those with a hint too: what is said must
    not be false where a mistake is named.
    """
    for finding in list_findings(first):
        tests = _tests_that_show(finding, seen)
        if tests:
            return Evidence(f"{_SUBJECT} {finding.text}.", tests, is_repair=False)
    return None


def _tests_that_show(
    predicate: Predicate,
    seen: Mapping[str, Sequence[Sight]],
) -> frozenset[str]:
    """The tests that show a predicate; none where a test shows that it is false, or where fewer
    than half of the tests show anything.
    """
    shown = set()
    for test, sights in seen.items():
        for sight in sights:
            verdict = look_safely(predicate, sight)
            if verdict is False:
                return frozenset()  # without further calls of the student's function
            if verdict:
                shown.add(test)
    return frozenset(shown) if 2 * len(shown) >= len(seen) else frozenset()


def _count_telling(right: object) -> int:
    """How many numbers of an answer say something: the floats 0 and 1 have many causes."""
    count = 0
    for leaf in leaves(right):
        numbers = numbers_in(leaf) if is_array(leaf) else np.asarray(0)
        if numbers.dtype.kind == "f":
            numbers = numbers[np.isfinite(numbers) & (numbers != 0) & (numbers != 1)]
        count += numbers.size
    return count


def _repeats_an_argument(sight: Sight) -> bool:
    """Whether the answer is an argument as it came: an answer without an idea is not repaired."""
    return any(equal(sight.answer, value) for value in sight.arguments.values())


def _find_factor(sights: Sequence[Sight]) -> str:
    """What is said of the factor that lies between all answers and the right ones; "" where there
    is none. Answers that are single numbers are taken together.
    """
    try:
        pairs = [(to_array(sight.answer), to_array(sight.right)) for sight in sights]
    except Unseen:
        return ""
    if any(answer.shape != right.shape for answer, right in pairs):
        return ""
    floats = [(a.astype(np.float64), r.astype(np.float64)) for a, r in pairs]
    if all(answer.size == 1 for answer, _ in floats):
        together = [
            np.stack([pair[side].ravel() for pair in floats]) for side in (0, 1)
        ]
        floats = [(together[0].ravel(), together[1].ravel())]
    factors = []
    for answer, right in floats:
        try:
            factor = measure_factor(answer, right)
        except Unseen:
            continue
        if factor is None or abs(factor - 1) < 1e-3:
            return ""
        factors.append(factor)
    if not factors:
        return ""
    if np.ptp(factors) <= 1e-3 * abs(factors[0]):
        return f"is right up to one factor everywhere, {factors[0]:.4g}"
    if len(factors) != len(sights):
        return ""
    words = _factor_in_sizes(sights, factors)
    return f"is right up to one factor, {words}" if words else ""


def _factor_in_sizes(sights: Sequence[Sight], factors: Sequence[float]) -> str:
    """A factor as a power of one size of an argument; "" where it is none."""
    for name, value in sights[0].arguments.items():
        if not is_array(value):
            continue
        for axis in range(-value.ndim, 0):
            for power in _POWERS:
                expected = [_size_power(sight, name, axis, power) for sight in sights]
                if np.allclose(expected, factors, rtol=2e-3):
                    return _power_in_words(name, axis, power)
    return ""


def _size_power(sight: Sight, name: str, axis: int, power: float) -> float:
    value: Any = sight.arguments.get(name)
    if not is_array(value) or value.ndim < -axis:
        return float("nan")
    size = float(value.shape[axis])
    return float(size**power)


def _power_in_words(name: str, axis: int, power: float) -> str:
    size = f"the size of axis {axis} of `{name}`"
    words = {0.5: f"the root of {size}", 1: size, 2: f"the square of {size}"}[
        abs(power)
    ]
    return f"one over {words}" if power < 0 else words


def _repairs(sight: Sight) -> Iterator[Predicate]:
    """Repairs from the smallest on: of the answer first, then of an argument. Each is shown by the
    numbers, and not by shapes alone: what it costs is the price of a single fault.
    """
    yield _with_right_numbers(one_axis_more())
    yield _with_right_numbers(one_axis_less())
    yield _in_the_other_order()
    yield complement()
    yield off_by_a_constant()
    yield from [
        is_what(name) for name in ("minus", "square", "root", "exp", "log", "one over")
    ]
    ndim = sight.right.ndim if is_array(sight.right) else 0
    yield from [
        axes_exchanged(a - ndim, b - ndim)
        for a, b in itertools.combinations(range(ndim), 2)
    ]
    yield from [needs_softmax(axis - ndim) for axis in reversed(range(ndim))]
    yield from [back_to_front(axis - ndim) for axis in reversed(range(ndim))]
    names = tensor_arguments(sight)
    for name in names:
        yield right_once_inverted(name)
        yield right_once_transposed(name)
    for first, second in itertools.combinations(names, 2):
        yield right_once_exchanged(first, second)
    for name in names[:2]:
        for power, words in ((-0.5, "divided"), (0.5, "multiplied")):
            scaled = right_once_scaled(name, f"{name}[-1]**{power}")
            text = f"is right once `{name}` is {words} by the root of its last size"
            yield make_predicate(text, scaled.holds)


def _other_dtype(sights: Sequence[Sight]) -> Predicate:
    """The right numbers in another dtype, which is named where all wrong answers have one."""

    def holds(sight: Sight) -> bool:
        if not is_array(sight.answer) or not is_array(sight.right):
            raise Unseen("no dtype")
        is_other = sight.answer.dtype != sight.right.dtype
        return is_other and equal(sight.answer, sight.right)

    dtypes = {
        (dtype_name(sight.answer.dtype), dtype_name(sight.right.dtype))
        for sight in sights
        if is_array(sight.answer) and is_array(sight.right)
    }
    if len(dtypes) != 1:
        return make_predicate("has the right numbers in another dtype", holds)
    ((dtype, right_dtype),) = dtypes
    return make_predicate(
        f"has the right numbers as {dtype} in place of {right_dtype}", holds
    )


def _with_right_numbers(predicate: Predicate) -> Predicate:
    """A predicate on the shape of an answer, where the numbers are right in their order."""

    def holds(sight: Sight) -> bool:
        if not predicate.holds(sight):
            return False
        return equal(to_array(sight.answer).ravel(), to_array(sight.right).ravel())

    return make_predicate(predicate.text, holds)


def _in_the_other_order() -> Predicate:
    predicate = parts_exchanged()

    def holds(sight: Sight) -> bool:
        return predicate.holds(sight) and equal(
            [*reversed(sight.answer)], [*sight.right]
        )

    return make_predicate(predicate.text, holds)
