"""What a function of Triton's language asked of the builder, asked again: to the bit what the
function does itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pytest
import torch

pytest.importorskip("triton")
import attention_kernels as attention
import row_kernels as rows
import triton
import triton.language as tl
from launched import HEADS, X, launched
from small_kernels import parted

from autograder.kernels import phrases


@triton.jit
def products_kernel(x_ptr, y_ptr, out_ptr):  # type: ignore[no-untyped-def]
    """One tile times itself, before and after two tiles."""
    at = tl.arange(0, 4)
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    tl.store(out_ptr + at, x * x)
    tl.store(out_ptr + 4 + at, x * y)
    tl.store(out_ptr + 8 + at, y * y)


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many operations each phrase took that was asked again."""
    steps = []
    original = phrases._Phrase.again

    def counted(phrase: Any, handles: list[Any]) -> Any:
        steps.append(len(phrase.steps))
        return original(phrase, handles)

    monkeypatch.setattr(phrases._Phrase, "again", counted)
    return steps


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (rows.softmax_persistent, (X,)),
        (rows.softmax_online, (X,)),
        (rows.softmax_kept_behind_a_barrier, (X,)),
        (rows.twice_by_descriptors, (X,)),
        (rows.sum_of_rows_under_a_lock, (X,)),
        (rows.running_sums, (X,)),
        (rows.product_in_groups, (X.repeat(3, 1), X.T)),
        (parted, (4, 3)),
        (attention.by_pointers, (*HEADS, True)),
        (attention.by_descriptors, (*HEADS, True)),
    ],
)
def test_a_launch_is_the_same_with_and_without_phrases(
    again: list[int],
    monkeypatch: pytest.MonkeyPatch,
    function: Callable[..., torch.Tensor],
    arguments: tuple[Any, ...],
) -> None:
    launched(function, arguments)
    again.clear()
    result, figures = launched(function, arguments)
    asked = len(again)
    assert asked

    def unknown(value: Any) -> NoReturn:
        raise phrases._Unknown

    again.clear()
    monkeypatch.setattr(phrases, "_kind", unknown)
    plain, plain_figures = launched(function, arguments)
    assert len(again) < asked / 2  # what is given nothing, like a barrier, has no kinds
    assert torch.equal(result, plain)
    assert figures == plain_figures


def test_a_tile_times_itself_says_nothing_of_two_tiles(again: list[int]) -> None:
    x, y, out = (
        torch.tensor([1.0, 2.0, 3.0, 4.0]),
        torch.tensor([2.0, 3.0, 5.0, 7.0]),
        torch.zeros(12),
    )
    for _ in range(2):
        products_kernel[(1,)](x, y, out)
        assert out.tolist() == [1.0, 4.0, 9.0, 16.0, 2.0, 6.0, 15.0, 28.0, 4.0, 9.0, 25.0, 49.0]
    assert again
