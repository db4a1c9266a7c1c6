"""What may be true of wrong answers that no repair makes right, for a page where no mistake is
named.

Each finding is a predicate, and its text is said of the calls that are wrong, no others: a question
is asked some dozen calls, and what holds in all of them need not hold elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from autograder.suite.answer_predicates import equal, to_array
from autograder.suite.kinds import is_array, numbers_in
from autograder.suite.probing_predicates import (
    changes_by_itself,
    depends_on_later,
    ignores,
    mixes_the_batch,
    right_without,
)
from autograder.suite.sight import Predicate, Sight, Unseen, make_predicate

MOST_ARGUMENTS = 4
"""Arguments that are exchanged: functions with more take weights by the dozen."""
_MOST_ENTRIES = 8
"""Entries of a batch that are asked one by one."""


def list_findings(sight: Sight) -> Iterator[Predicate]:
    """Predicates that may be true of the wrong answers of a question, the most telling first.

    Args:
        sight: one wrong call, for the names of the arguments.
    """
    yield _is_zero_everywhere()
    yield make_predicate(
        "is another one when the same call is made again: something is kept from earlier calls, or "
        "drawn anew",
        changes_by_itself,
    )
    for name in tensor_arguments(sight):
        yield ignores(name)
        yield _in_words(
            depends_on_later(name), f"has rows that change with later rows of `{name}`"
        )
        yield _with_batch(name, mixes_the_batch(name))
    for name, value in sight.arguments.items():
        if value is not None:
            yield right_without(name)
    yield _right_for_each_entry_alone()
    yield _right_once_equally_long()
    yield _right_in_double_precision()


def tensor_arguments(sight: Sight) -> list[str]:
    """The names of the first arguments of a call that are tensors or arrays."""
    names = [name for name, value in sight.arguments.items() if is_array(value)]
    return names[:MOST_ARGUMENTS]


def _is_zero_everywhere() -> Predicate:
    """Nothing but zeros, where some of the right numbers are others."""

    def holds(sight: Sight) -> bool:
        answer, right = to_array(sight.answer), to_array(sight.right)
        if answer.size < 2 or not right.any():
            raise Unseen("zeros are right, or there is a single number")
        return not answer.any()

    return make_predicate("is 0 everywhere", holds)


def _in_words(predicate: Predicate, text: str) -> Predicate:
    return make_predicate(text, predicate.holds)


def _with_batch(argument: str, predicate: Predicate) -> Predicate:
    """A predicate, on calls whose argument has a batch in front: [B, N, D] of numbers, or [B, N] of
    ids. A single sequence [N, D] has none.
    """

    def holds(sight: Sight) -> bool:
        values = numbers_in(sight.argument(argument))
        fewest_axes = 3 if values.dtype.kind == "f" else 2
        if values.ndim < fewest_axes:
            raise Unseen("no batch")
        return predicate.holds(sight)

    return make_predicate(predicate.text, holds)


def _right_for_each_entry_alone() -> Predicate:
    """Each entry of the batch gets the right answer where it stands alone. The first entry says too
    little: another one may be what the answer is wrong for.
    """

    def holds(sight: Sight) -> bool:
        names = tensor_arguments(sight)
        shapes = {name: sight.arguments[name].shape for name in names}
        batch = max([shape[0] for shape in shapes.values() if shape], default=0)
        split = [name for name, shape in shapes.items() if shape[:1] == (batch,)]
        if not 2 <= batch <= _MOST_ENTRIES or len(split) < len(shapes):
            raise Unseen("no batch, or too large a one")
        for entry in range(batch):
            changes = {name: sight.arguments[name][entry : entry + 1] for name in split}
            alone = sight.ask_again(f"entry {entry} alone", changes)
            if not _is_entry(alone.right, sight.right, entry, batch):
                # rows that belong together: tokens of a text, places of a draft
                raise Unseen("the entries are no batch")
            if not equal(alone.answer, alone.right):
                return False
        return True

    return make_predicate(
        "is right for each entry of the batch alone, and wrong for all together", holds
    )


def _is_entry(alone: Any, together: Any, entry: int, batch: int) -> bool:
    """Whether the answer to one entry is that entry of the answer to the whole batch."""
    if isinstance(together, (list, tuple)) and isinstance(alone, (list, tuple)):
        pairs = list(zip(alone, together, strict=False))
        return len(alone) == len(together) and all(
            _is_entry(*p, entry, batch) for p in pairs
        )
    if not is_array(together) or together.shape[:1] != (batch,):
        return False
    return equal(alone, together[entry : entry + 1])


def _right_once_equally_long() -> Predicate:
    def holds(sight: Sight) -> bool:
        values = {name: sight.arguments[name] for name in tensor_arguments(sight)}
        lengths = {
            name: value.shape[-2] for name, value in values.items() if value.ndim > 1
        }
        if len(set(lengths.values())) < 2 or len(lengths) < len(values):
            raise Unseen("equal lengths already")
        if len({value.shape[-1] for value in values.values()}) == len(values):
            raise Unseen("rows of different widths are not of one kind")
        shortest = min(lengths.values())
        cut = {name: value[..., :shortest, :] for name, value in values.items()}
        other = sight.ask_again("equal lengths", cut)
        return equal(other.answer, other.right)

    return make_predicate("is right once all arguments are cut to one length", holds)


def _right_in_double_precision() -> Predicate:
    def holds(sight: Sight) -> bool:
        wide = _widened(sight)
        if not wide:
            raise Unseen("double precision already")
        other = sight.ask_again("double precision", wide)
        return equal(other.answer, other.right)

    return make_predicate(
        "is right for the same numbers in float64, and wrong in half or single precision",
        holds,
    )


def _widened(sight: Sight) -> Mapping[str, Any]:
    """The arguments in half or single precision, in double precision."""
    values = {name: sight.arguments[name] for name in tensor_arguments(sight)}
    narrow = ("torch.float16", "torch.bfloat16", "torch.float32")
    return {
        name: value.double()
        for name, value in values.items()
        if str(value.dtype) in narrow
    }
