"""Predicates on an answer beside the right one: sums, axes, order, dtypes.

Each is Unseen where the right answer has the property too.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.suite.kinds import is_array, numbers_in
from autograder.suite.objects import NotData
from autograder.suite.rounding import array_distance
from autograder.suite.sight import (
    Predicate,
    Sight,
    Unseen,
    look,
    make_predicate,
    make_predicate_at,
    read_factor,
)
from autograder.wire.libraries import dtype_name

Numbers = np.ndarray[Any, Any]
_DRAWS_OF_EACH = 20
"""So many draws of each number, and one is missing by chance once in e^20 times."""


def equal(first: Any, second: Any) -> bool:
    """Whether two answers agree within rounding, whatever their dtypes. Objects of the student's
    cannot be compared, and agree with themselves alone.
    """
    if isinstance(first, NotData) and isinstance(second, NotData):
        return first is second
    if isinstance(first, SimpleNamespace) and isinstance(second, SimpleNamespace):
        first, second = vars(first), vars(second)
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        pairs = list(zip(first, second, strict=False))
        return len(first) == len(second) and all(equal(a, b) for a, b in pairs)
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            equal(first[k], second[k]) for k in first
        )
    try:
        return array_distance(to_array(first), to_array(second)) <= 1
    except Unseen:
        return bool(first == second) if type(first) is type(second) else False


def to_array(value: Any) -> Numbers:
    """A tensor, an array, or a number as an array; Unseen for anything else."""
    if is_array(value):
        return numbers_in(value)
    is_number = isinstance(value, (bool, int, float))
    if is_number and (not isinstance(value, int) or abs(value) < 1 << 63):
        return np.asarray(value)
    raise Unseen("no numbers")


def _floats(sight: Sight) -> tuple[Numbers, Numbers]:
    """The answer and the right answer in double precision."""
    answer, right = to_array(sight.answer), to_array(sight.right)
    if "c" in (answer.dtype.kind, right.dtype.kind):
        raise Unseen("complex numbers")
    return answer.astype(np.float64), right.astype(np.float64)


def floats_of_one_shape(sight: Sight) -> tuple[Numbers, Numbers]:
    """The answer and the right answer in double precision, where their shapes are equal."""
    answer, right = _floats(sight)
    if answer.shape != right.shape:
        raise Unseen("another shape")
    return answer, right


def part(place: int | str, predicate: Predicate) -> Predicate:
    """What one part of an answer in parts shows: `part(1, sums_to_one(0))`."""

    def holds(sight: Sight) -> bool:
        def cut(whole: Sight) -> Sight:
            try:
                answer, right = whole.answer[place], whole.right[place]
            except (LookupError, TypeError):
                raise Unseen("no such part") from None

            def ask_again(label: str, changes: Any) -> Sight:
                return cut(whole.ask_again(label, changes))

            return Sight(whole.arguments, answer, right, ask_again)

        if not isinstance(sight.answer, (list, tuple, dict)):
            raise Unseen("not in parts")
        verdict = look(predicate, cut(sight))
        if verdict is None:
            raise Unseen
        return verdict

    return make_predicate_at(f"at `[{place!r}]`", predicate, holds)


def sums_to_one(*axes: int) -> Predicate:
    """Sums along these axes together are 1 (some may be 0, where nothing is allowed), and those of
    the right answer are not.
    """

    def are_one(array: Numbers) -> bool:
        if any(not -array.ndim <= axis < array.ndim for axis in axes):
            raise Unseen("no such axis")
        sums = array.sum(axis=axes)
        are_ones = np.isclose(sums, 1, atol=2e-3)
        are_zeros = np.isclose(sums, 0, atol=2e-3)
        if not (are_ones | are_zeros).all():
            return False
        return bool(2 * are_ones.sum() >= sums.size)

    def holds(sight: Sight) -> bool:
        answer, right = _floats(sight)
        if are_one(right):
            raise Unseen("the right answer's sums are 1")
        return are_one(answer)

    words = " and ".join(map(str, axes))
    return make_predicate(f"sums to 1 along axis {words}", holds)


def sums_to(total: str, axis: int = -1) -> Predicate:
    """All sums along an axis are this number in sizes of arguments ("q[-1]**-0.5"), and those of
    the right answer are not.
    """

    def holds(sight: Sight) -> bool:
        answer, right = _floats(sight)
        expected = read_factor(total, sight)
        if not -right.ndim <= axis < right.ndim:
            raise Unseen("no such axis")
        if np.isclose(right.sum(axis=axis), expected, rtol=2e-3).all():
            raise Unseen("the right answer's sums are the same")
        return answer.ndim == right.ndim and bool(
            np.isclose(answer.sum(axis=axis), expected, rtol=2e-3).all()
        )

    return make_predicate(f"sums to {total} along axis {axis}", holds)


def _after(text: str, change: Callable[[Numbers], Numbers]) -> Predicate:
    """The answer is what a change makes of the right one."""

    def holds(sight: Sight) -> bool:
        answer, right = _floats(sight)
        with np.errstate(all="ignore"):
            changed = change(right)
        if equal(changed, right):
            raise Unseen("the change changes nothing")
        return equal(answer, changed)

    return make_predicate(text, holds)


def axes_exchanged(first: int = -2, second: int = -1) -> Predicate:
    """The right answer with two axes exchanged."""

    def exchange(right: Numbers) -> Numbers:
        try:
            exchanged: Numbers = np.swapaxes(right, first, second)
        except ValueError:
            raise Unseen("no such axis") from None
        return exchanged

    return _after(f"has axes {first} and {second} exchanged", exchange)


def back_to_front(axis: int = -1) -> Predicate:
    """The right answer in the opposite order along an axis."""

    def flip(right: Numbers) -> Numbers:
        if not -right.ndim <= axis < right.ndim:
            raise Unseen("no such axis")
        return np.flip(right, axis)

    return _after(f"is back to front along axis {axis}", flip)


def in_another_order() -> Predicate:
    """The right numbers, at other places."""

    def holds(sight: Sight) -> bool:
        answer, right = _floats(sight)
        if answer.size != right.size or answer.size < 3 or equal(answer, right):
            raise Unseen("nothing to be put in order")
        return equal(np.sort(answer, axis=None), np.sort(right, axis=None))

    return make_predicate("has the right numbers at other places", holds)


def complement() -> Predicate:
    """Yes where no is right, and no where yes is."""

    def holds(sight: Sight) -> bool:
        answer, right = to_array(sight.answer), to_array(sight.right)
        if right.dtype != bool or not right.size:
            raise Unseen("no yes and no")
        answer = answer.astype(np.float64)
        if answer.size != right.size:
            return False
        return bool((answer.ravel() == ~right.ravel()).all())

    return make_predicate("says yes where no is right, and no where yes is", holds)


def shifted_along(axis: int, by: int) -> Predicate:
    """The right answer at other places along an axis: what belongs to place t stands at t + by."""

    def holds(sight: Sight) -> bool:
        answer, right = _floats(sight)
        if not -right.ndim <= axis < right.ndim or answer.ndim != right.ndim:
            raise Unseen("no such axis")
        answer_places = np.moveaxis(answer, axis, 0)
        right_places = np.moveaxis(right, axis, 0)
        same_rows = answer_places.shape[1:] == right_places.shape[1:]
        if len(right_places) <= abs(by) + 1 or not same_rows:
            raise Unseen("too short")
        if by > 0:
            answer_places = answer_places[by:]
            right_places = right_places[:-by]
        else:
            answer_places = answer_places[:by]
            right_places = right_places[-by:]
        if answer_places.shape != right_places.shape:
            return False
        are_all_alike = equal(right_places[1:], right_places[:-1])
        return equal(answer_places, right_places) and not are_all_alike

    return make_predicate(
        f"stands {by} places along axis {axis} from where it should", holds
    )


_INVERSES: dict[str, Callable[[Numbers], Numbers]] = {
    "exp": np.exp,
    "log": np.log,
    "root": lambda right: np.sqrt(abs(right)),
    "square": np.square,
    "minus": np.negative,
    "one minus": lambda right: 1 - right,
    "one over": lambda right: 1 / right,
}


def is_what(function: str) -> Predicate:
    """The answer is a function of the right one, number by number: `is_what("square")`."""
    return _after(f"is {function} of the right one", _INVERSES[function])


def needs_softmax(axis: int = -1) -> Predicate:
    """A softmax along an axis makes the answer right."""

    def holds(sight: Sight) -> bool:
        answer, right = floats_of_one_shape(sight)
        if not -answer.ndim <= axis < answer.ndim or not np.isfinite(answer).all():
            raise Unseen("no such axis")
        if answer.shape[axis] < 2:
            raise Unseen("a single number")
        e = np.exp(answer - answer.max(axis=axis, keepdims=True))
        return equal(e / e.sum(axis=axis, keepdims=True), right) and not equal(
            answer, right
        )

    return make_predicate(f"is right after a softmax along axis {axis}", holds)


def same_along(axis: int) -> Predicate:
    """The same all along an axis, where the right answer is not."""

    def is_same(array: Numbers) -> bool:
        if not -array.ndim <= axis < array.ndim or array.shape[axis] < 2:
            raise Unseen("no such axis")
        first = np.take(array, [0], axis=axis)
        return equal(array, np.broadcast_to(first, array.shape))

    def holds(sight: Sight) -> bool:
        answer, right = _floats(sight)
        if is_same(right):
            raise Unseen("the right answer is the same too")
        return is_same(answer)

    return make_predicate(f"is the same all along axis {axis}", holds)


def outside(low: float, high: float) -> Predicate:
    """Numbers below `low` or above `high`, where the right answer has none."""

    def holds(sight: Sight) -> bool:
        answer, right = _floats(sight)
        if right.min(initial=low) < low - 1e-6 or right.max(initial=high) > high + 1e-6:
            raise Unseen("the right answer has such numbers too")
        finite = answer[np.isfinite(answer)]
        return bool(((finite < low - 1e-3) | (finite > high + 1e-3)).any())

    return make_predicate(f"has numbers below {low:g} or above {high:g}", holds)


def not_finite() -> Predicate:
    """Infinite numbers or NaN, where the right ones are finite."""

    def holds(sight: Sight) -> bool:
        answer, right = _floats(sight)
        if not np.isfinite(right).all():
            raise Unseen("the right answer is not finite")
        return not np.isfinite(answer).all()

    return make_predicate("is not finite", holds)


def finite_for_infinite() -> Predicate:
    """Finite numbers where infinite ones are right: a stand-in for minus infinity."""

    def holds(sight: Sight) -> bool:
        answer, right = floats_of_one_shape(sight)
        infinite = np.isinf(right)
        if not infinite.any():
            raise Unseen("no infinite number is right")
        return bool(np.isfinite(answer[infinite]).any())

    return make_predicate("has finite numbers where infinite ones are right", holds)


def has_dtype(dtype: str) -> Predicate:
    """This dtype, where another is right."""

    def holds(sight: Sight) -> bool:
        if not is_array(sight.answer) or not is_array(sight.right):
            raise Unseen("no dtype")
        if dtype_name(sight.right.dtype) == dtype:
            raise Unseen("the right dtype")
        return dtype_name(sight.answer.dtype) == dtype

    return make_predicate(f"has dtype {dtype}", holds)


def one_hot(axis: int = -1) -> Predicate:
    """A single 1 along an axis and zeros beside it, where the right answer is a mixture."""

    def is_hot(array: Numbers) -> bool:
        if not -array.ndim <= axis < array.ndim or array.shape[axis] < 2:
            raise Unseen("no such axis")
        ones = np.isclose(array, 1, atol=1e-6).sum(axis=axis)
        zeros = np.isclose(array, 0, atol=1e-6).sum(axis=axis)
        others = array.shape[axis] - 1
        return bool((ones == 1).all() and (zeros == others).all())

    def holds(sight: Sight) -> bool:
        answer, right = _floats(sight)
        if is_hot(right):
            raise Unseen("the right answer is so too")
        return is_hot(answer)

    return make_predicate(f"has a single 1 along axis {axis}", holds)


def equal_shares(axis: int = -1) -> Predicate:
    """Equal numbers with sum 1 along an axis, where the right ones differ."""
    return same_along(axis) & _sums_are_one(axis)


def _sums_are_one(axis: int) -> Predicate:
    def holds(sight: Sight) -> bool:
        answer, _ = _floats(sight)
        if not -answer.ndim <= axis < answer.ndim:
            raise Unseen("no such axis")
        return bool(np.isclose(answer.sum(axis=axis), 1, atol=2e-3).all())

    return make_predicate(f"has the sum 1 along axis {axis}", holds)


def shape_with_axes_exchanged(first: int, second: int) -> Predicate:
    """The right shape with two axes exchanged, whatever the numbers are."""

    def holds(sight: Sight) -> bool:
        answer, right = to_array(sight.answer), to_array(sight.right)
        shape = list(right.shape)
        try:
            shape[first], shape[second] = shape[second], shape[first]
        except IndexError:
            raise Unseen("no such axis") from None
        if shape == list(right.shape):
            raise Unseen("axes of one length")
        return list(answer.shape) == shape

    return make_predicate(
        f"has the shape with axes {first} and {second} exchanged", holds
    )


def one_axis_more() -> Predicate:
    """An axis of length one besides those of the right answer."""

    def holds(sight: Sight) -> bool:
        answer, right = to_array(sight.answer), to_array(sight.right)
        shape = list(answer.shape)
        places = [place for place, size in enumerate(shape) if size == 1]
        right_shape = list(right.shape)
        return any(
            shape[:place] + shape[place + 1 :] == right_shape for place in places
        )

    return make_predicate("has an axis of length one too many", holds)


def one_axis_less() -> Predicate:
    """An axis of length one is lost."""

    def holds(sight: Sight) -> bool:
        answer, right = to_array(sight.answer), to_array(sight.right)
        if 1 not in right.shape:
            raise Unseen("no axis of length one")
        shape = list(right.shape)
        places = [place for place, size in enumerate(shape) if size == 1]
        return any(
            shape[:place] + shape[place + 1 :] == list(answer.shape) for place in places
        )

    return make_predicate("lacks an axis of length one", holds)


def something_where_nothing_is_right() -> Predicate:
    """Not 0 somewhere where 0 is right, and nearly nowhere the other way round."""

    def holds(sight: Sight) -> bool:
        answer, right = floats_of_one_shape(sight)
        nothing = right == 0
        if not nothing.any():
            raise Unseen("nothing is right nowhere")
        has_something = (abs(answer[nothing]) > 0).any()
        keeps_the_rest = (answer[~nothing] != 0).all()
        return bool(has_something and keeps_the_rest)

    return make_predicate("has something where nothing is right", holds)


def nothing_where_something_is_right() -> Predicate:
    """0 somewhere where another number is right, and nowhere the other way round."""

    def holds(sight: Sight) -> bool:
        answer, right = floats_of_one_shape(sight)
        nothing = right == 0
        misses_something = (answer[~nothing] == 0).any()
        keeps_nothing = (answer[nothing] == 0).all()
        return bool(misses_something and keeps_nothing)

    return make_predicate("has nothing where something is right", holds)


def something_only_where_nothing_is_right() -> Predicate:
    """0 wherever another number is right, and another number somewhere where 0 is right: yes and no
    are exchanged in a mask.
    """

    def holds(sight: Sight) -> bool:
        answer, right = floats_of_one_shape(sight)
        nothing = abs(right) < 1e-6
        # a row that hides everything, or shows everything, has nothing to exchange
        hides_some = nothing.any(-1)
        shows_some = (~nothing).any(-1)
        mixed = hides_some & shows_some & np.isfinite(answer).all(-1)
        if not mixed.any():
            raise Unseen("nothing is right nowhere")
        size = abs(answer)
        wrong_place = np.where(nothing, size, 0.0).max(-1)[mixed]
        right_place = np.where(nothing, 0.0, size).max(-1)[mixed]
        return bool((right_place <= 1e-6).all() and (wrong_place > 1e-6).any())

    return make_predicate("has something only where nothing is right", holds)


def triangle_at_the_top_left() -> Predicate:
    """A mask, or weights, [..., N_q, N_k] that are 0 for key j > i alone, and not for j > i + N_k -
    N_q: torch's is_causal with fewer queries than keys.
    """

    def holds(sight: Sight) -> bool:
        answer, right = floats_of_one_shape(sight)
        if answer.ndim < 2:
            raise Unseen("no mask")
        queries, keys = answer.shape[-2:]
        everything = np.ones(answer.shape, bool)
        if not np.array_equal(right != 0, np.tril(everything, keys - queries)):
            raise Unseen("no causal mask")
        if queries == keys or not keys or not queries:
            raise Unseen("both corners are one")
        return np.array_equal(answer != 0, np.tril(everything))

    return make_predicate("has its triangle at the top left", holds)


def repeats(argument: str) -> Predicate:
    """The answer is an argument."""

    def holds(sight: Sight) -> bool:
        value = sight.argument(argument)
        if equal(value, sight.right):
            raise Unseen("the argument is right")
        return equal(sight.answer, value)

    return make_predicate(f"is the argument `{argument}`", holds)


def lacks(argument: str, place: int) -> Predicate:
    """Of all numbers of the right answer the answer misses this entry of an argument alone, among
    so many random draws that it cannot do so by chance.
    """

    def holds(sight: Sight) -> bool:
        entry = to_array(sight.argument(argument))[place]
        right, answer = to_array(sight.right), to_array(sight.answer)
        if entry not in right:
            raise Unseen("the right answer does not have the entry")
        if answer.shape != right.shape:
            raise Unseen("other shapes")
        if answer.size < _DRAWS_OF_EACH * len(np.unique(right)):
            raise Unseen("too few draws")
        return np.array_equal(np.setdiff1d(right, answer), [entry])

    return make_predicate(f"never has `{argument}[{place}]`", holds)


def parts_exchanged() -> Predicate:
    """Two parts in the other order."""

    def holds(sight: Sight) -> bool:
        answer, right = sight.answer, sight.right
        is_pair = isinstance(right, (list, tuple)) and len(right) == 2
        if not is_pair or not isinstance(answer, (list, tuple)) or len(answer) != 2:
            raise Unseen("no pair")
        parts = (*answer, *right)
        forms = [getattr(value, "shape", type(value)) for value in parts]
        first, second, right_first, right_second = forms
        if first == second:
            return equal(answer[0], right[1]) and not equal(answer[0], right[0])
        if first == right_first:
            return False
        return bool(first == right_second and second == right_first)

    return make_predicate("has its two parts exchanged", holds)
