"""Wrappers under which a function of the answer key computes with a changed torch: another shift of
its softmax, a finite fill, sums in half precision, other axes.

The changes hold for helpers too that the function calls. `wrappers.py` chooses them; a mutant's
cell ends with the text of this module, which runs in a worker.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from autograder.wire.libraries import is_tensor
from autograder.wire.trees import leaves, mapped

Change = Callable[..., Any]
"""Computes in place of a function of torch: takes that function, and its arguments."""
HALF = (torch.float16, torch.bfloat16)


class ChangedTorch(TorchFunctionMode):
    """A block in which functions of torch are changed, by their names without underscores around
    them. A change itself computes with torch as it is.
    """

    def __init__(self, changes: Mapping[str, Change]) -> None:
        super().__init__()
        self._changes = changes

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", "").strip("_").removeprefix("linalg_")
        change = self._changes.get(name)
        if change is None:
            return func(*args, **(kwargs or {}))
        return change(func, *args, **(kwargs or {}))


def first_dtype(value: Any) -> Any:
    """The dtype of the first tensor of floats in a value; None where there is none."""
    for leaf in leaves(value):
        if is_tensor(leaf) and leaf.is_floating_point():
            return leaf.dtype
    return None


def computing(
    function: Any,
    changes: Mapping[str, Change],
    dtypes: tuple[Any, ...] = (),
) -> Any:
    """The function with changes of torch, for tensors of these dtypes alone (of all where there are
    none).
    """

    @functools.wraps(function)
    def answer(*values: Any, **keywords: Any) -> Any:
        if dtypes and first_dtype((values, keywords)) not in dtypes:
            return function(*values, **keywords)
        with ChangedTorch(changes):
            return function(*values, **keywords)

    return answer


# --- softmax by another shift than the largest score of each row


def mean_of_row(x: Tensor, dim: Any) -> Tensor:
    """The mean of the finite scores, with the axis kept."""
    is_finite = x > -math.inf
    total = torch.where(is_finite, x, 0.0).sum(dim=dim, keepdim=True)
    return total / is_finite.sum(dim=dim, keepdim=True).clamp(min=1)


def largest_of_all(x: Tensor, dim: Any) -> Tensor:
    """The largest of all scores, in the form of the largest of each row."""
    return torch.zeros_like(x.sum(dim=dim, keepdim=True)) + x.max()


def nothing(x: Tensor, dim: Any) -> Tensor:
    """Zeros in the form of the largest of each row."""
    return torch.zeros_like(
        torch.where(x > -math.inf, x, 0.0).sum(dim=dim, keepdim=True)
    )


def clamp_scores(x: Tensor, limit: float) -> Tensor:
    """The scores within ±limit; minus infinity stays."""
    return torch.where(x == -math.inf, x, x.clamp(-limit, limit))


def shifted_by(
    shift: Callable[[Tensor, Any], Tensor],
    limit: float = math.inf,
) -> dict[str, Change]:
    """Changes of torch after which a softmax subtracts `shift`, and clamps its scores."""

    def amax(func: Any, x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        largest = func(x, dim, True)
        peak = torch.where(largest == -math.inf, largest, shift(x, dim))
        return peak if keepdim else func(peak, dim)

    def exp(func: Any, x: Tensor) -> Any:
        return func(clamp_scores(x, limit))

    def powers_and_total(x: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
        wide = x.float() if x.dtype in HALF else x
        moved = clamp_scores(wide - shift(wide, dim), limit)
        powers = torch.exp(moved)
        return moved, powers, powers.sum(dim=dim, keepdim=True)

    def softmax(
        func: Any, x: Tensor, dim: int = -1, dtype: Any = None, **_unused: Any
    ) -> Tensor:
        _, powers, total = powers_and_total(x if dtype is None else x.to(dtype), dim)
        return (powers / total).to(dtype or x.dtype)

    def log_softmax(
        func: Any, x: Tensor, dim: int = -1, dtype: Any = None, **_unused: Any
    ) -> Tensor:
        moved, _, total = powers_and_total(x if dtype is None else x.to(dtype), dim)
        return (moved - total.log()).to(dtype or x.dtype)

    def logsumexp(func: Any, x: Tensor, dim: int, keepdim: bool = False) -> Tensor:
        _, _, total = powers_and_total(x, dim)
        result = (total.log() + shift(x, dim)).to(x.dtype)
        return result if keepdim else result.squeeze(dim)

    changes: dict[str, Change] = {
        "amax": amax,
        "softmax": softmax,
        "log_softmax": log_softmax,
        "logsumexp": logsumexp,
    }
    if limit < math.inf:
        changes["exp"] = exp
    return changes


# --- fills


def filling(number: float | None) -> dict[str, Change]:
    """Changes of torch after which another number stands for minus infinity; for None the smallest
    number of the dtype.
    """

    def fill(func: Any, *values: Any, **keywords: Any) -> Any:
        dtype = (
            first_dtype(values) or keywords.get("dtype") or torch.get_default_dtype()
        )
        fill_value = torch.finfo(dtype).min if number is None else number

        def replaced(argument: Any) -> Any:
            return (
                fill_value
                if isinstance(argument, float) and argument == -math.inf
                else argument
            )

        keywords = {name: replaced(argument) for name, argument in keywords.items()}
        return func(*map(replaced, values), **keywords)

    names = ("masked_fill", "index_fill", "where", "full", "full_like", "new_full")
    return dict.fromkeys(names, fill)


# --- precision


STATISTICS = (
    "sum",
    "mean",
    "var",
    "std",
    "norm",
    "vector_norm",
    "cumsum",
    "log_softmax",
    "logsumexp",
)
PRODUCTS = (
    "matmul",
    "rmatmul",
    "bmm",
    "mv",
    "dot",
    "einsum",
    "linear",
)
ELEMENTWISE = (
    "exp",
    "log",
    "pow",
    "sqrt",
    "tanh",
    "erf",
    "cos",
    "sin",
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "div",
    "truediv",
    "rtruediv",
)


def in_half_precision(
    function: Any,
    names: tuple[str, ...],
) -> Any:
    """The results of these functions of torch are rounded to the dtype of a half-precision input,
    though the function computes in float32.
    """

    @functools.wraps(function)
    def answer(*values: Any, **keywords: Any) -> Any:
        dtype = first_dtype((values, keywords))
        if dtype not in HALF:
            return function(*values, **keywords)

        def rounded(func: Any, *args: Any, **kwargs: Any) -> Any:
            result = func(*args, **kwargs)
            if is_tensor(result) and result.is_floating_point():
                return result.to(dtype).to(result.dtype)
            return result

        with ChangedTorch(dict.fromkeys(names, rounded)):
            return function(*values, **keywords)

    return answer


def widening_first(function: Any) -> Any:
    """Tensors of half precision become float32 as a whole, before anything else; the dtypes of the
    result stay.
    """

    def widened(leaf: Any) -> Any:
        is_half = is_tensor(leaf) and leaf.dtype in HALF
        return leaf.float() if is_half else leaf

    @functools.wraps(function)
    def answer(*values: Any, **keywords: Any) -> Any:
        if first_dtype((values, keywords)) not in HALF:
            return function(*values, **keywords)
        dtypes = [leaf.dtype for leaf in leaves(function(*values, **keywords))]
        result = function(*mapped(widened, list(values)), **mapped(widened, keywords))
        remaining = iter(dtypes)
        return mapped(lambda leaf: leaf.to(next(remaining)), result)

    return answer


def difference_of_squares() -> dict[str, Change]:
    """Changes of torch after which the mean of (x − m)² is computed as the mean of x² minus the
    square of the mean of x.
    """

    def subtract(func: Any, x: Any, y: Any, **keywords: Any) -> Any:
        result = func(x, y, **keywords)
        if is_tensor(x) and is_tensor(y) and result.shape == x.shape:
            result.minuend = x
        return result

    def square(func: Any, x: Any, exponent: Any = 2, **keywords: Any) -> Any:
        result = func(x, exponent, **keywords)
        if exponent == 2 and hasattr(x, "minuend"):
            result.square_of = x.minuend
        return result

    def mean(func: Any, x: Any, *values: Any, **keywords: Any) -> Any:
        raw = getattr(x, "square_of", None)
        if raw is None:
            return func(x, *values, **keywords)
        return func(raw.pow(2), *values, **keywords) - func(
            raw, *values, **keywords
        ).pow(2)

    return {"sub": subtract, "pow": square, "mean": mean}


# --- axes


def over_axis_1(name: str) -> dict[str, Change]:
    """A change of torch after which a function works along axis 1 where it is asked for the last
    axis, as people do who think of matrices.
    """

    def change(func: Any, x: Any, *values: Any, **keywords: Any) -> Any:
        if is_tensor(x) and x.dim() > 2:
            if keywords.get("dim") == -1:
                keywords["dim"] = 1
            if values[:1] == (-1,):
                values = (1, *values[1:])
        return func(x, *values, **keywords)

    return {name: change}
