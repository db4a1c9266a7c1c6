"""The comparison of several calls in a row that differ in one argument each. Imported only where a
suite uses it: this module needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from autograder.suite.array_differences import ATOL
from autograder.suite.calls import current_log, describe_last, last_call
from autograder.suite.compare import are_equal, assert_close
from autograder.wire.libraries import is_tensor
from autograder.wire.trees import mapped


def assert_close_in_turn(
    function: Callable[..., Any],
    right: Callable[..., Any],
    *arguments: Any,
    others: Sequence[Any] = (),
    atol: float = ATOL,
    same_dtype: bool = True,
) -> None:
    """Assert equal answers of two functions to some arguments, and then with one of the arguments
    exchanged, for each in turn. Answers that are kept for a part of the arguments show here.

    Args:
        function: the student's function.
        right: the answer key's.
        others: what the arguments are exchanged for, in their order. None, or nothing: another
            tensor of floats for such a tensor, in lists and dicts too; anything else stays.
        atol, same_dtype: as of `assert_close`.

    Raises:
        AssertionError: an answer is not right. Where it is the first call's, the message says so.
    """
    first, right_first = function(*arguments), right(*arguments)
    assert_close(first, right_first, atol=atol, same_dtype=same_dtype)
    for place, changed in _exchanged(arguments, others):
        answer, right_answer = function(*changed), right(*changed)
        if are_equal(answer, first) and not are_equal(right_answer, right_first):
            call = last_call()
            names = current_log().parameter_names(call.name) if call else []
            name = names[place] if place < len(names) else "an argument"
            raise AssertionError(
                f"{describe_last()} gives the answer of the call before, which had another {name}. "
                "Does it depend on all arguments, and on nothing that an earlier call left behind?"
            )
        assert_close(answer, right_answer, atol=atol, same_dtype=same_dtype)


def _exchanged(
    arguments: tuple[Any, ...],
    others: Sequence[Any],
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Each place whose argument can be exchanged, with all arguments after the exchange."""
    for place, argument in enumerate(arguments):
        other = others[place] if place < len(others) else None
        if other is None:
            other = mapped(_another_tensor, argument)
        changed = (*arguments[:place], other, *arguments[place + 1 :])
        if not are_equal(other, argument):
            yield place, changed


def _another_tensor(leaf: Any) -> Any:
    """For a tensor of floats, each number times a random factor from 0.5 to 1.5: signs stay."""
    if is_tensor(leaf) and leaf.is_floating_point():
        return (leaf.detach() * (0.5 + torch.rand(leaf.shape, dtype=leaf.dtype))).to(
            leaf.dtype
        )
    return leaf
