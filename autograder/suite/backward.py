"""The comparison of gradients. Imported only where a suite uses it: this module needs torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from autograder.suite.array_differences import ATOL
from autograder.suite.calls import current_log, describe_last, last_call
from autograder.suite.compare import assert_close
from autograder.suite.kinds import CUT_OFF, kind_of


def assert_same_gradients(
    function: Callable[..., Any],
    expected: Callable[..., Tensor],
    *arguments: Any,
    tolerance: float = ATOL,
) -> Tensor:
    """Assert that every argument that requires a gradient gets the right one.

    Both functions are called with the arguments. The elements of an answer are weighed with normal
    random numbers and summed before the backward pass, so that no element's gradient can make up
    for another's; a scalar is differentiated as it is.

    Args:
        function: the student's function, or a function of the test that passes these arguments on
            in this order and returns one tensor of the answer:
                `lambda *inputs: student.attend(*inputs)[0]`.
        expected: the answer key's function, or any function that computes the right tensor, of any
            shape, by differentiable steps.
        arguments: anything. Gradients are compared for all tensors with `grad=True`, of any shape
            and float dtype, in lists, tuples and dicts too.
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
    parts = list(_tensors_with_gradient(arguments))
    inputs = [tensor for _, tensor in parts]
    right = expected(*arguments)
    weights = torch.randn(right.shape, dtype=torch.float64)

    def weighed(value: Tensor) -> Tensor:
        return (value * weights).sum() if right.ndim else value

    right_gradients = torch.autograd.grad(weighed(right), inputs)
    answer = function(*arguments)
    if not isinstance(answer, Tensor):
        raise AssertionError(
            f"{describe_last()} should be a tensor, and is {kind_of(answer)}."
        )
    if not answer.requires_grad:
        raise AssertionError(f"{describe_last()} {CUT_OFF}")
    call = last_call()
    names = current_log().parameter_names(call.name) if call else []
    gradients = torch.autograd.grad(weighed(answer), inputs, allow_unused=True)
    for (path, _), gradient, value in zip(
        parts, gradients, right_gradients, strict=True
    ):
        position, *keys = path
        name = names[position] if position < len(names) else "an argument"
        name += "".join(f"[{key!r}]" for key in keys)
        if gradient is None:
            raise AssertionError(f"No gradient of {describe_last()} arrives at {name}.")
        subject = f"the gradient of {name}"
        assert_close(gradient, value, atol=tolerance, rtol=tolerance, what=subject)
    return answer


def _tensors_with_gradient(
    value: Any,
    *path: Any,
) -> Iterator[tuple[tuple[Any, ...], Tensor]]:
    """The tensors in a value that require a gradient, each with the indices and keys that lead
    there.
    """
    if isinstance(value, Tensor):
        if value.requires_grad:
            yield path, value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _tensors_with_gradient(part, *path, key)
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            yield from _tensors_with_gradient(part, *path, index)
