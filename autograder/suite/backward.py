"""The comparison of gradients. Imported where a suite asks for it: it needs torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from autograder.suite.calls import current_log, describe_last, last_call
from autograder.suite.compare import ATOL, assert_close
from autograder.suite.kinds import CUT_OFF, kind_of


def assert_same_gradients(
    function: Callable[..., Any],
    expected: Callable[..., Tensor],
    *arguments: Any,
    tolerance: float = ATOL,
) -> Tensor:
    """Assert that every argument that asks for a gradient gets the right one.

    Both functions are called with the arguments. What is differentiated is the sum of an answer's
    elements, each times a normal number of its own, so that no element's gradient can make up for
    another's; a scalar as it is.

    Args:
        function: the student's, or one of the test's own that passes these arguments on in this
            order and returns one tensor of the answer:
                `lambda *inputs: student.attend(*inputs)[0]`.
        expected: the answer key's, or any other that returns the right tensor, of any shape, by
            differentiable steps.
        arguments: anything; compared are the gradients of all tensors with `grad=True` among them,
            of any shape and float dtype, in lists, tuples and dicts too.
        tolerance: an element of a gradient passes within `tolerance * (1 + |expected|)`.

    Returns:
        The student's answer.

    Raises:
        AssertionError: the answer is no tensor or is cut off from its arguments, or a gradient is
            missing or wrong. The message names which, by the answer key's parameters: "the gradient
            of params['w_q']".
        RuntimeError, ValueError: no argument asks for a gradient, or `expected` does not give it:
            the suite's fault.
    """
    asking = [
        (position, *found) for position, value in enumerate(arguments) for found in _asking(value)
    ]
    inputs = [tensor for *_, tensor in asking]
    right = expected(*arguments)
    weights = torch.randn(right.shape, dtype=torch.float64)

    def weighed(value: Tensor) -> Tensor:
        return (value * weights).sum() if right.ndim else value

    wanted = torch.autograd.grad(weighed(right), inputs)
    answer = function(*arguments)
    if not isinstance(answer, Tensor):
        raise AssertionError(f"{describe_last()} should be a tensor, and is {kind_of(answer)}.")
    if not answer.requires_grad:
        raise AssertionError(f"{describe_last()} {CUT_OFF}")
    call = last_call()
    parameters = dict(enumerate(current_log().parameter_names(call.name) if call else []))
    gradients = torch.autograd.grad(weighed(answer), inputs, allow_unused=True)
    for (position, part, _), gradient, value in zip(asking, gradients, wanted, strict=True):
        name = parameters.get(position, "an argument") + part
        if gradient is None:
            raise AssertionError(f"No gradient of {describe_last()} arrives at {name}.")
        assert_close(
            gradient, value, atol=tolerance, rtol=tolerance, what=f"the gradient of {name}"
        )
    return answer


def _asking(value: Any, part: str = "") -> Iterator[tuple[str, Tensor]]:
    """Tensors that ask for a gradient in a value, each with where it is: "", or "['w_q']"."""
    if isinstance(value, Tensor):
        yield from [(part, value)] if value.requires_grad else []
    elif isinstance(value, (dict, list, tuple)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _asking(inner, f"{part}[{key!r}]")
