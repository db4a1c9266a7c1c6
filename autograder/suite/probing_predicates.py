"""Predicates that ask the function again: what the answer depends on, and what would make it right.

Each asks the student's function and the answer key once more with some arguments exchanged, and is
Unseen where either gives no answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.suite.answer_predicates import Numbers, equal, to_array
from autograder.suite.kinds import is_array, numbers_in
from autograder.suite.objects import NotData
from autograder.suite.sight import (
    Predicate,
    Sight,
    Unseen,
    look,
    make_predicate,
    make_predicate_at,
    read_factor,
)
from autograder.wire.libraries import is_tensor, loaded_torch
from autograder.wire.trees import leaves

LARGEST_UNIT = 256
"""Rows of the largest unit matrix that is asked with."""
Change = Callable[[Any, Sight], Any]
"""Makes the new value of an argument."""


def _stays(sight: Sight, other: Sight) -> bool:
    """Whether the answer is the same for other arguments, for which the right one is not."""
    if equal(other.right, sight.right):
        raise Unseen("the right answer stays the same too")
    if not _is_finite(sight.answer):
        raise Unseen("not finite")
    if _is_zero_or_one(sight.answer):
        raise Unseen("0 or 1 everywhere stays the same for many reasons")
    return equal(other.answer, sight.answer)


def ignores(argument: str) -> Predicate:
    """The answer stays the same whatever an argument is, and the right answer does not. Two other
    arguments are tried: the first may be as good as what stood there.
    """

    def holds(sight: Sight) -> bool:
        others = other_values(sight, argument)
        first = sight.ask_with(f"other {argument}", {argument: others})
        if not _stays(sight, first):
            return False
        try:
            further = {argument: _further_values(others)}
            second = sight.ask_with(f"a third {argument}", further)
        except Unseen:  # refused, or of no kind that has further values
            return True
        return equal(second.answer, sight.answer)

    return make_predicate(f"is the same whatever `{argument}` is", holds)


def ignores_the_size_of(argument: str) -> Predicate:
    """The answer stays the same when an argument is doubled, and the right answer does not."""

    def holds(sight: Sight) -> bool:
        doubled = rebuilt(sight.argument(argument), lambda values: 2.0 * values)
        other = sight.ask_with(f"twice {argument}", {argument: doubled})
        return _stays(sight, other)

    return make_predicate(f"is the same for twice `{argument}`", holds)


def depends_on_later(
    argument: str, axis: int = -2, answer_axis: int | None = None
) -> Predicate:
    """Another last entry of an argument moves the answer before it, and not the right answer.

    Args:
        axis: of the argument, along which time runs.
        answer_axis: of the answer, where that is another one.
    """
    return _moves_elsewhere(
        argument,
        axis,
        axis if answer_axis is None else answer_axis,
        changed=-1,
        seen=slice(0, -1),
        text=f"depends on what comes later in `{argument}`",
    )


def mixes_the_batch(argument: str) -> Predicate:
    """Another last entry of the batch moves the answer to the first one, and not the right one."""
    return _moves_elsewhere(
        argument,
        0,
        0,
        changed=-1,
        seen=slice(0, 1),
        text=f"mixes the entries of the batch in `{argument}`",
    )


def _moves_elsewhere(
    argument: str,
    axis: int,
    answer_axis: int,
    *,
    changed: int,
    seen: slice,
    text: str,
) -> Predicate:
    def holds(sight: Sight) -> bool:
        value = sight.argument(argument)
        other_value = with_other_entry(
            value, axis, changed, other_values(sight, argument)
        )
        ndim = to_array(value).ndim
        # -2 and 0 are one axis of a matrix, and one further call
        label = f"other {argument} at {changed} along {axis % ndim if ndim else axis}"
        other = sight.ask_with(label, {argument: other_value})

        def rows(answer: Any) -> Numbers:
            array = to_array(answer)
            if (
                not -array.ndim <= answer_axis < array.ndim
                or array.shape[answer_axis] < 2
            ):
                raise Unseen("no such rows")
            return np.moveaxis(array, answer_axis, 0)[seen]

        if not equal(rows(sight.right), rows(other.right)):
            raise Unseen("the right answer moves there too")
        if equal(rows(sight.answer), rows(other.answer)):
            return False
        if changes_by_itself(sight):
            raise Unseen("the answer moves without a change of the argument")
        return True

    return make_predicate(text, holds)


def changes_by_itself(sight: Sight) -> bool:
    """Whether the same call gets another answer once more: earlier calls left something, or numbers
    are drawn anew.
    """
    if any(isinstance(leaf, NotData) for leaf in leaves(sight.answer)):
        raise Unseen("two objects cannot be compared")
    again = sight.ask_again("the same call", {})
    return not equal(sight.answer, again.answer)


def needs_the_first_only(argument: str, axis: int = 0) -> Predicate:
    """All entries of an argument but the first may be others, and the answer stays the same."""
    return _needs_one_only(argument, axis, 0, "first")


def needs_the_last_only(argument: str, axis: int = 0) -> Predicate:
    """All entries of an argument but the last may be others, and the answer stays the same."""
    return _needs_one_only(argument, axis, -1, "last")


def _needs_one_only(argument: str, axis: int, place: int, word: str) -> Predicate:
    def holds(sight: Sight) -> bool:
        value = sight.argument(argument)
        others = other_values(sight, argument)
        entry = _entry(value, axis, place)
        other_value = with_other_entry(others, axis, place, entry, whole=False)
        other = sight.ask_with(
            f"only the {word} {argument} along {axis}", {argument: other_value}
        )
        return _stays(sight, other)

    return make_predicate(
        f"depends on the {word} entry of `{argument}` along axis {axis} alone", holds
    )


def is_no_average(argument: str) -> Predicate:
    """With all rows [..., N, d] of an argument alike the answer is not the right one, whose weights
    sum to 1.
    """

    def holds(sight: Sight) -> bool:
        value = sight.argument(argument)
        array = to_array(value)
        if array.ndim < 2 or array.shape[-2] < 2:
            raise Unseen("no rows")
        alike = np.broadcast_to(array[..., :1, :], array.shape)
        other = sight.ask_with(
            f"rows of {argument} alike", {argument: like(value, alike)}
        )
        if not _is_finite(other.answer):
            raise Unseen("not finite")
        return not equal(other.answer, other.right)

    return make_predicate(f"is no average of `{argument}`", holds)


def through_unit(argument: str, predicate: Predicate) -> Predicate:
    """What the answer shows once an argument [..., N, d] is the unit matrix [..., N, N]: of
    attention, its weights.
    """

    def holds(sight: Sight) -> bool:
        value = sight.argument(argument)
        if not is_array(value) or value.ndim < 2 or value.shape[-2] > LARGEST_UNIT:
            raise Unseen("no matrix")
        unit = np.eye(value.shape[-2])
        whole = np.broadcast_to(unit, (*value.shape[:-2], *unit.shape)).copy()
        other = sight.ask_with(f"unit {argument}", {argument: like(value, whole)})
        verdict = look(predicate, other)
        if verdict is None:
            raise Unseen
        return verdict

    return make_predicate_at(f"with a unit matrix as `{argument}`", predicate, holds)


def right_with(text: str, /, **changes: Change) -> Predicate:
    """The student's function gives the right answer once its arguments are changed: the right
    answer to the arguments as they are.

    Args:
        text: what would make the answer right.
    """

    def holds(sight: Sight) -> bool:
        if equal(sight.answer, sight.right):
            raise Unseen("right as it is")
        values = {
            name: change(sight.argument(name), sight)
            for name, change in changes.items()
        }
        if all(equal(values[name], sight.argument(name)) for name in changes):
            raise Unseen("the change changes nothing")
        other = sight.ask_with(text, values)
        return equal(other.answer, sight.right)

    return make_predicate(f"is right once {text}", holds)


def right_once_scaled(argument: str, factor: str) -> Predicate:
    """The answer is right once an argument is multiplied by a factor in sizes of arguments."""

    def scaled(value: Any, sight: Sight) -> Any:
        number = read_factor(factor, sight)
        return rebuilt(value, lambda values: values * number)

    return right_with(f"`{argument}` is multiplied by {factor}", **{argument: scaled})


def right_once_transposed(argument: str) -> Predicate:
    """The answer is right once the last two axes of an argument are exchanged."""

    def transposed(value: Any, sight: Sight) -> Any:
        if not is_array(value) or value.ndim < 2:
            raise Unseen("no square matrix")
        if value.shape[-1] != value.shape[-2]:
            raise Unseen("no square matrix")
        return rebuilt(value, lambda values: np.swapaxes(values, -1, -2))

    return right_with(f"`{argument}` is transposed", **{argument: transposed})


def right_once_exchanged(first: str, second: str) -> Predicate:
    """The answer is right once two arguments change places."""
    return right_with(
        f"`{first}` and `{second}` change places",
        **{
            first: lambda _, sight: sight.argument(second),
            second: lambda _, sight: sight.argument(first),
        },
    )


def right_once_inverted(argument: str) -> Predicate:
    """The answer is right once yes and no are exchanged in a mask."""

    def inverted(value: Any, sight: Sight) -> Any:
        if not is_array(value) or numbers_in(value).dtype != bool:
            raise Unseen("no mask")
        return rebuilt(value, np.logical_not)

    return right_with(
        f"yes and no are exchanged in `{argument}`", **{argument: inverted}
    )


def right_without(argument: str) -> Predicate:
    """The student's function gives, with an argument, what is right without it."""

    def holds(sight: Sight) -> bool:
        if sight.argument(argument) is None:
            raise Unseen("nothing to leave out")
        other = sight.ask_with(f"no {argument}", {argument: None})
        if equal(other.right, sight.right):
            raise Unseen("the right answer is the same")
        return equal(sight.answer, other.right)

    return make_predicate(f"is what is right without `{argument}`", holds)


def other_values(sight: Sight, argument: str) -> Any:
    """Other values of the same kind, always the same ones for the same argument."""
    value = sight.argument(argument)
    if isinstance(value, bool):
        return not value
    if isinstance(value, float) and 0 <= value < 1:
        return (value + 1) / 2  # a share stays one
    if isinstance(value, (int, float)):
        return value + 1
    if not is_array(value):
        raise Unseen("no numbers")
    array = numbers_in(value)
    generator = np.random.default_rng(array.size)
    if array.dtype == bool:
        others = ~array
    elif array.dtype.kind in "iu":
        # numbers that occur already: an id outside the vocabulary would be refused
        others = array.max(initial=0) + array.min(initial=0) - array
        if np.array_equal(others, array):
            others = np.roll(array, 1)
    else:
        finite = array[np.isfinite(array)]
        spread = float(finite.std()) if finite.size > 1 else 1.0
        others = generator.standard_normal(array.shape) * (spread or 1.0)
    if np.array_equal(others, array):
        raise Unseen("no other values")
    return like(value, others)


def _further_values(others: Any) -> Any:
    """Values of the same kind once more, of quite another size, and with another sign where they
    are numbers of a tensor.
    """
    if isinstance(others, bool) or (
        is_array(others) and numbers_in(others).dtype.kind != "f"
    ):
        raise Unseen("no further values that are sure to be allowed")
    return (
        rebuilt(others, lambda values: -0.375 * values)
        if is_array(others)
        else 4 * others
    )


def with_other_entry(
    value: Any,
    axis: int,
    place: int,
    others: Any,
    *,
    whole: bool = True,
) -> Any:
    """A value with one entry along an axis taken from others.

    Args:
        whole: whether `others` is as large as the value; else it is that entry alone.
    """
    array, other_array = to_array(value).copy(), to_array(others)
    if not -array.ndim <= axis < array.ndim or array.shape[axis] < 2:
        raise Unseen("no such entry")
    entries = np.moveaxis(array, axis, 0)
    entries[place] = np.moveaxis(other_array, axis, 0)[place] if whole else other_array
    return like(value, array)


def _entry(value: Any, axis: int, place: int) -> Any:
    array = to_array(value)
    if not -array.ndim <= axis < array.ndim:
        raise Unseen("no such axis")
    return np.moveaxis(array, axis, 0)[place]


def rebuilt(value: Any, change: Callable[[Numbers], Numbers]) -> Any:
    """A value of the same kind and dtype with changed numbers."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return type(value)(change(np.asarray(value)))
    if not is_array(value):
        raise Unseen("no numbers")
    return like(value, change(numbers_in(value)))


def like(value: Any, array: Numbers) -> Any:
    """An array as a value of the same kind and dtype as another value."""
    if is_tensor(value):
        torch = loaded_torch()
        return torch.from_numpy(np.ascontiguousarray(array)).to(value.dtype)
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(array).astype(value.dtype)
    raise Unseen("no tensor")


def _is_zero_or_one(answer: Any) -> bool:
    """Whether all floats of an answer that has several are 0, or all are 1."""
    arrays = [numbers_in(leaf).ravel() for leaf in leaves(answer) if is_array(leaf)]
    if not arrays or any(array.dtype.kind != "f" for array in arrays):
        return False
    numbers = np.concatenate(arrays)
    if numbers.size < 2:
        return False
    are_zeros = np.isclose(numbers, 0, atol=1e-4).all()
    are_ones = np.isclose(numbers, 1, atol=1e-4).all()
    return bool(are_zeros or are_ones)


def _is_finite(answer: Any) -> bool:
    """Whether all numbers of an answer are finite: NaN stays the same and shows nothing."""
    parts = [part for part in leaves(answer) if not isinstance(part, str | None)]
    return all(
        bool(np.isfinite(to_array(part).astype(np.float64)).all()) for part in parts
    )
