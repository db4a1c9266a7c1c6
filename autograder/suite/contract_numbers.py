"""Numbers for the tensors of a contract: each style looks for another kind of mistake."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

FLOATS = (
    "normal",
    "whole",
    "far apart",
    "equal rows",
    "large",
    "small",
    "zeros",
    "offset",
)
"""Styles of floats: any that a docstring without further words allows."""
EDGES = (*FLOATS, "tiny", "edge")
"""Floats whose squares just fit the dtype too, where the docstring says "of any size"."""
_ROW_STEP = {torch.float16: 60.0, torch.bfloat16: 60.0}
_LARGE = {torch.float16: 100.0, torch.bfloat16: 100.0}


def draw_floats(
    style: str,
    shape: Sequence[int],
    dtype: torch.dtype,
    generator: torch.Generator,
) -> Tensor:
    """Floats `[*shape]` of one style.

    "far apart": the rows lie some hundreds apart. "offset": all numbers lie around one that is not
    0. "edge": close to the largest and the smallest number of the dtype.

    Raises:
        ValueError: there is no such style.
    """
    sizes = tuple(shape)
    normal = torch.randn(sizes, dtype=torch.float64, generator=generator)
    if style == "normal":
        numbers = normal
    elif style == "whole":
        numbers = (1.5 * normal).round().clamp(-3, 3)
    elif style == "zeros":
        numbers = torch.zeros_like(normal)
    elif style == "far apart":
        numbers = normal + _ROW_STEP.get(dtype, 500.0) * _row_numbers(sizes)
    elif style == "equal rows":
        numbers = normal[..., :1, :].expand(sizes).clone() if len(sizes) > 1 else normal
    elif style == "large":
        numbers = _LARGE.get(dtype, 1e4) * normal
    elif style == "small":
        numbers = 1e-3 * normal
    elif style == "tiny":
        numbers = (1e-3 if dtype == torch.float16 else 1e-12) * normal
    elif style == "offset":
        numbers = normal + 30
    elif style == "edge":
        numbers = _edges(normal, dtype)
    elif style == "positive":
        numbers = normal.abs() + 0.1
    elif style == "shares":
        numbers = torch.rand(sizes, dtype=torch.float64, generator=generator)
    elif style == "distributions":
        numbers = torch.softmax(2 * normal, dim=-1)
    else:
        raise ValueError(f"there is no style of floats {style!r}")
    return numbers.to(dtype)


def _row_numbers(shape: Sequence[int]) -> Tensor:
    """0, 1, −1, 2, −2 … for the rows, to be added to the numbers of each row."""
    if len(shape) < 2:
        return torch.ones(tuple(shape), dtype=torch.float64)
    rows = torch.arange(shape[-2], dtype=torch.float64)
    signs = torch.where(rows % 2 == 1, 1.0, -1.0)
    return (signs * torch.ceil(rows / 2)).unsqueeze(-1)


def _edges(normal: Tensor, dtype: torch.dtype) -> Tensor:
    """Numbers near the square root of the largest and of the smallest one, so that a sum of squares
    just fits the dtype; in float64 those of float32, in which an answer may compute.
    """
    limits = torch.finfo(torch.float32 if dtype == torch.float64 else dtype)
    large = torch.tensor((limits.max / 1e3) ** 0.5, dtype=torch.float64)
    small = torch.tensor((limits.smallest_normal * 1e3) ** 0.5, dtype=torch.float64)
    return torch.where(normal > 0, large, small) * normal.clamp(-1, 1)


def draw_whole(
    style: str,
    shape: Sequence[int],
    low: int,
    high: int,
    generator: torch.Generator,
) -> Tensor:
    """Whole numbers in [low, high), int64; of the style "random", "equal", "ends" or "rising"."""
    sizes = tuple(shape)
    if low >= high:
        return torch.zeros(sizes, dtype=torch.int64)
    if style == "equal":
        return torch.full(sizes, int(torch.randint(low, high, (), generator=generator)))
    if style == "ends":
        is_high = torch.rand(sizes, generator=generator) < 0.5
        return torch.where(is_high, high - 1, low)
    if style == "rising":
        count = int(torch.tensor(sizes).prod()) if sizes else 1
        return (low + torch.arange(count) % (high - low)).reshape(sizes)
    return torch.randint(low, high, sizes, generator=generator)


WHOLE = ("random", "equal", "ends", "rising")


def draw_mask(style: str, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """A boolean mask of the style "random", "all", "causal", "padding", "one each" or "some rows
    empty".
    """
    sizes = tuple(shape)
    allowed = torch.rand(sizes, generator=generator) < 0.6
    if style == "all" or not allowed.numel() or not sizes:
        return torch.ones_like(allowed)
    width = sizes[-1]
    a_row = (*sizes[:-1], 1)
    columns = torch.arange(width)
    if style == "causal" and len(sizes) > 1:
        height = sizes[-2]
        rows = torch.arange(height).unsqueeze(-1)
        last_seen = rows + width - height
        return (columns <= last_seen).expand(sizes).clone()
    if style == "padding":
        lengths = torch.randint(1, width + 1, a_row, generator=generator)
        return columns < lengths
    if style == "one each":
        return columns == torch.randint(0, width, a_row, generator=generator)
    if style == "random":  # no row is empty
        first = torch.randint(0, width, a_row, generator=generator)
        return allowed | (columns == first)
    kept_rows = torch.rand(a_row, generator=generator) < 0.6
    return allowed & kept_rows


MASKS = ("random", "all", "causal", "padding", "one each", "some rows empty")
"""Styles of masks; take "some rows empty" out where the docstring promises nothing for a query
without a key.
"""


def shuffle_layout(numbers: Tensor, style: str) -> Tensor:
    """Equal numbers laid out otherwise in memory: "contiguous", "transposed", or "every second" of
    a larger tensor.
    """
    if style == "transposed" and numbers.ndim > 1:
        return numbers.transpose(0, -1).contiguous().transpose(0, -1)
    if style == "every second" and numbers.ndim:
        wide = numbers.repeat_interleave(2, dim=-1)
        return wide[..., ::2]
    return numbers
