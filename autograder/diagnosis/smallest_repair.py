"""The smallest repair that makes an answer right, and what else the evidence says, where no known
mistake explains a question's failures.

A repair stands around the student's function: its arguments are changed before the call, or its
answer after it, in the trusted process. An answer that one repair makes right has one fault, and
costs what one fault costs. Where no repair does it, the page still says what is true of the answer.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.diagnosis.asking import PlacedSight
from autograder.suite.answer_predicates import (
    Numbers,
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
from autograder.suite.kinds import is_array
from autograder.suite.probing_predicates import (
    depends_on_later,
    ignores,
    mixes_the_batch,
    right_once_exchanged,
    right_once_inverted,
    right_once_scaled,
    right_once_transposed,
    right_without,
)
from autograder.suite.sight import Predicate, Sight, Unseen, look_safely, make_predicate
from autograder.wire.trees import leaves

REPAIRED_KEEPS = 0.65
"""The share of its question's points that an answer keeps which a single repair makes right."""
_POWERS = (0.5, -0.5, 1, -1, 2, -2)
_MOST_ARGUMENTS = 4
"""Arguments that repairs change: functions with more take weights by the dozen."""
_MOST_ENTRIES = 8
"""Entries of a batch that are asked one by one."""


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
) -> Evidence | None:
    """The smallest repair of the answers that no mistake explains; else the first thing that is
    true of all wrong answers; None where nothing is known of wrong answers.

    Args:
        sights: of all failed tests.
        unexplained: the failed tests that no mistake explains.
        compared: the tests that compared numbers with the right ones. Where a question has many
            right answers, tests look at properties, and other numbers than the answer key's may
            be as right.
    """
    seen = {test: [sight for _, sight in placed] for test, placed in sights.items() if placed}
    remaining = {test: of_test for test, of_test in seen.items() if test in unexplained}
    if not remaining:
        return None
    every = [sight for of_test in remaining.values() for sight in of_test]
    subject = (
        "Your answer" if len(remaining) == len(seen) else "Where no hint says more, your answer"
    )
    if not any(_repeats_an_argument(sight) for sight in every):
        factor = _find_factor(every)
        if factor:
            return Evidence(f"{subject} {factor}.", frozenset(remaining), is_repair=True)
        for repair in _repairs(every[0]):
            tests = _tests_that_show(repair, remaining)
            if tests:
                return Evidence(f"{subject} {repair.text}.", tests, is_repair=True)
    for finding in _findings(every[0]):
        # what is said of the answer must not be false where a mistake is named
        tests = _tests_that_show(finding, seen)
        if tests:
            # the calls of passed tests are not looked at
            text = f"In the calls that are wrong, your answer {finding.text}."
            return Evidence(text, tests, is_repair=False)
    comparable = [sight for test in remaining if test in compared for sight in seen[test]]
    text = _count_right_numbers(comparable) or _other_form(every)
    return Evidence(text, frozenset(remaining), is_repair=False) if text else None


def _tests_that_show(
    predicate: Predicate,
    seen: Mapping[str, Sequence[Sight]],
) -> frozenset[str]:
    """The tests that show a predicate; none where a test shows that it is false, or where fewer
    than half of the tests show anything.
    """
    shown = set()
    for test, sights in seen.items():
        verdicts = [look_safely(predicate, sight) for sight in sights]
        if False in verdicts:
            return frozenset()
        if True in verdicts:
            shown.add(test)
    return frozenset(shown) if 2 * len(shown) >= len(seen) else frozenset()


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
        together = [np.stack([pair[side].ravel() for pair in floats]) for side in (0, 1)]
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
    words = {0.5: f"the root of {size}", 1: size, 2: f"the square of {size}"}[abs(power)]
    return f"one over {words}" if power < 0 else words


def _repairs(sight: Sight) -> Iterator[Predicate]:
    """Repairs from the smallest on: of the answer first, then of an argument."""
    yield _other_dtype()
    yield one_axis_more()
    yield one_axis_less()
    yield parts_exchanged()
    yield complement()
    yield off_by_a_constant()
    yield from [is_what(name) for name in ("minus", "square", "root", "exp", "log", "one over")]
    ndim = sight.right.ndim if is_array(sight.right) else 0
    yield from [
        axes_exchanged(a - ndim, b - ndim) for a, b in itertools.combinations(range(ndim), 2)
    ]
    yield from [needs_softmax(axis - ndim) for axis in reversed(range(ndim))]
    yield from [back_to_front(axis - ndim) for axis in reversed(range(ndim))]
    names = _tensors(sight)
    for name in names:
        yield right_once_inverted(name)
        yield right_once_transposed(name)
    for first, second in itertools.combinations(names, 2):
        yield right_once_exchanged(first, second)
    for name in names[:2]:
        for power in (-0.5, 0.5):
            yield right_once_scaled(name, f"{name}[-1]**{power}")


def _findings(sight: Sight) -> Iterator[Predicate]:
    """What may be true of an answer that no repair makes right, the most telling first."""
    for name in _tensors(sight):
        yield ignores(name)
        yield depends_on_later(name)
        yield mixes_the_batch(name)
    for name, value in sight.arguments.items():
        if value is not None:
            yield right_without(name)
    yield _right_for_a_batch_of_one()
    yield _right_for_equal_lengths()
    yield _right_in_double_precision()


def _tensors(sight: Sight) -> list[str]:
    names = [name for name, value in sight.arguments.items() if is_array(value)]
    return names[:_MOST_ARGUMENTS]


def _other_dtype() -> Predicate:
    def holds(sight: Sight) -> bool:
        if not is_array(sight.answer) or not is_array(sight.right):
            raise Unseen("no dtype")
        is_other = sight.answer.dtype != sight.right.dtype
        return is_other and equal(sight.answer, sight.right)

    return make_predicate("has the right numbers in another dtype", holds)


def _right_for_a_batch_of_one() -> Predicate:
    """Each entry of the batch gets the right answer where it stands alone. The first entry says too
    little: another one may be what the answer is wrong for.
    """

    def holds(sight: Sight) -> bool:
        shapes = {name: sight.arguments[name].shape for name in _tensors(sight)}
        sizes = [shape[0] for shape in shapes.values() if shape]
        batch = max(sizes, default=0)
        alike = [name for name, shape in shapes.items() if shape[:1] == (batch,)]
        if batch < 2 or len(alike) < len(shapes):
            raise Unseen("no batch")
        if batch > _MOST_ENTRIES:
            raise Unseen("too large a batch")
        for entry in range(batch):
            changes = {name: sight.arguments[name][entry : entry + 1] for name in alike}
            alone = sight.ask_again(f"entry {entry} alone", changes)
            if not equal(alone.answer, alone.right):
                return False
        return True

    return make_predicate("is right for a batch of one, and wrong for a larger one", holds)


def _right_for_equal_lengths() -> Predicate:
    def holds(sight: Sight) -> bool:
        values = {name: sight.arguments[name] for name in _tensors(sight)}
        lengths = {name: value.shape[-2] for name, value in values.items() if value.ndim > 1}
        if len(set(lengths.values())) < 2 or len(lengths) < len(values):
            raise Unseen("equal lengths already")
        shortest = min(lengths.values())
        cut = {name: value[..., :shortest, :] for name, value in values.items()}
        other = sight.ask_again("equal lengths", cut)
        return equal(other.answer, other.right)

    return make_predicate("is right where all lengths are equal, and wrong elsewhere", holds)


def _right_in_double_precision() -> Predicate:
    def holds(sight: Sight) -> bool:
        values = {
            name: sight.arguments[name]
            for name in _tensors(sight)
            if str(sight.arguments[name].dtype) in ("torch.float16", "torch.float32")
        }
        if not values:
            raise Unseen("double precision already")
        wide = {name: value.double() for name, value in values.items()}
        other = sight.ask_again("double precision", wide)
        return equal(other.answer, other.right)

    return make_predicate("is right in float64, and wrong in a narrower dtype", holds)


def _count_right_numbers(sights: Sequence[Sight]) -> str:
    """How much of the wrong answers is right, where nothing else is known of them; "" where their
    form differs from that of the right ones.
    """
    right_numbers, all_numbers = 0, 0
    for sight in sights:
        for answer, right in _side_by_side(sight.answer, sight.right):
            if answer.shape == right.shape:
                all_numbers += right.size
                right_numbers += int(np.isclose(answer, right, rtol=1e-4, atol=1e-6).sum())
    if not all_numbers:
        return ""
    if right_numbers == all_numbers:
        return "All numbers in your answers are right: what is wrong is something else."
    if not right_numbers:
        return "None of the numbers in your wrong answers is right."
    return f"{right_numbers} of the {all_numbers} numbers in your wrong answers are right."


def _other_form(sights: Sequence[Sight]) -> str:
    """Whether all wrong answers have another form than the right ones; "" where one has not."""
    for sight in sights:
        pairs = [*_side_by_side(sight.answer, sight.right)]
        is_whole = len(leaves(sight.answer)) == len(leaves(sight.right)) == len(pairs)
        # sizes may be free, as those of a counterexample are; a failed comparison names them
        if is_whole and all(numbers.ndim == right.ndim for numbers, right in pairs):
            return ""
    return "Your answers are of another form than the right ones."


def _side_by_side(answer: Any, right: Any) -> Iterator[tuple[Numbers, Numbers]]:
    """The numbers of an answer and of the right one, part by part, as far as both have parts."""
    if isinstance(right, (tuple, list)) and isinstance(answer, (tuple, list)):
        for part, right_part in zip(answer, right, strict=False):
            yield from _side_by_side(part, right_part)
        return
    if isinstance(right, dict) and isinstance(answer, dict):
        for name, right_part in right.items():
            if name in answer:
                yield from _side_by_side(answer[name], right_part)
        return
    with contextlib.suppress(Unseen):
        yield to_array(answer), to_array(right)
