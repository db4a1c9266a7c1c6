"""Kernels as people really write them: what is right in its idiom is right in the strict
interpreter.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

pytest.importorskip("triton")
import attention_kernels as attention
import row_kernels as rows
import triton

from autograder.worker.launches import watch_launches

pytestmark = pytest.mark.filterwarnings("ignore:tl.make_block_ptr is deprecated")
VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])
block_pointers = pytest.mark.skipif(
    VERSION >= (3, 9), reason="Triton 3.9 has no block pointers"
)


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(13, 20, generator=torch.Generator().manual_seed(1))


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=1)


@pytest.mark.parametrize(
    "function",
    [
        rows.bias_of_a_flat_matrix,
        pytest.param(rows.bias_by_block_pointers, marks=block_pointers),
        pytest.param(rows.bias_by_block_pointers_of_whole_tiles, marks=block_pointers),
    ],
)
def test_a_bias_is_added(
    x: torch.Tensor, function: Callable[..., torch.Tensor]
) -> None:
    b = torch.arange(20.0)
    with watch_launches(function, (x, b), {}) as record:
        y = function(x, b)
    assert torch.equal(y, x + b)
    assert record.figures()["loads"]["x"] == 260


@pytest.mark.parametrize(
    "function",
    [
        rows.softmax_persistent,
        rows.softmax_with_heuristics_and_hints,
        rows.softmax_tuned_and_pruned,
        rows.softmax_online,
        rows.softmax_kept_in_the_output,
        rows.softmax_kept_behind_a_barrier,
    ],
)
def test_a_softmax_of_rows(
    x: torch.Tensor, function: Callable[..., torch.Tensor]
) -> None:
    assert torch.allclose(function(x), softmax(x), atol=1e-6)


@pytest.mark.parametrize(
    "function", [rows.twice_by_descriptors, rows.twice_by_descriptors_of_the_host]
)
def test_descriptors(x: torch.Tensor, function: Callable[..., torch.Tensor]) -> None:
    assert torch.equal(function(x), 2 * x)


@block_pointers
def test_block_pointers_that_advance(x: torch.Tensor) -> None:
    assert torch.allclose(
        rows.shares_by_advancing(x), x / x.sum(1, keepdim=True), atol=1e-5
    )


def test_atomics_and_locks(x: torch.Tensor) -> None:
    assert torch.allclose(rows.sum_by_atomics(x), x.sum(), atol=1e-4)
    assert torch.allclose(rows.sum_of_rows_under_a_lock(x), x.sum(0), atol=1e-5)


def test_a_scan_with_a_function_of_its_own() -> None:
    assert rows.running_sums(torch.ones(2, 5)).tolist() == [[1, 2, 3, 4, 5]] * 2


def test_programs_that_return_early(x: torch.Tensor) -> None:
    assert torch.equal(rows.transposed_on_a_grid_of_three_axes(x), x.T)


def test_a_product_of_matrices(x: torch.Tensor) -> None:
    a = torch.randn(40, 20, generator=torch.Generator().manual_seed(2))
    assert torch.allclose(rows.product_in_groups(a, x.T), a @ x.T, atol=1e-5)


def test_addresses_out_of_memory(x: torch.Tensor) -> None:
    assert torch.equal(rows.embedding(torch.tensor([3, 0, 12, 3]), x), x[[3, 0, 12, 3]])


def whole(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> torch.Tensor:
    s = q.double() @ k.double().mT / q.shape[-1] ** 0.5
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:]).triu(1) == 1, -torch.inf)
    return torch.softmax(s, dim=-1) @ v.double()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize(
    ("function", "n"),
    [
        pytest.param(attention.staged, 64, marks=block_pointers),
        pytest.param(
            attention.by_block_pointers,
            40,
            marks=pytest.mark.skipif(
                VERSION >= (3, 8),
                reason="since Triton 3.8 a block pointer has no element type",
            ),
        ),
        (attention.by_pointers, 40),
        (attention.by_descriptors, 40),
    ],
)
def test_attention(
    function: Callable[..., torch.Tensor], n: int, dtype: torch.dtype, causal: bool
) -> None:
    generator = torch.Generator().manual_seed(n)
    q, k, v = (
        torch.randn(1, 2, n, 16, generator=generator).to(dtype) for _ in range(3)
    )
    with watch_launches(
        function, (q, k, v, causal), {}, ["q", "k", "v", "causal"]
    ) as record:
        o = function(q, k, v, causal)
    assert torch.allclose(
        o.double(),
        whole(q, k, v, causal),
        atol=4e-3 if dtype == torch.float16 else 1e-5,
    )
    figures = record.figures()
    # by their positions, whatever the function calls them
    assert {"q", "k", "v"} <= figures["loads"].keys()
    assert (figures["kernels"], figures["computed"], figures["unfilled"]) == (1, [], [])


def test_a_masked_number_is_what_stands_for_it() -> None:
    """Triton's interpreter takes an `other` of 0 for none where it is no tile, and a GPU does
    not.
    """
    assert rows.a_number_a_program(torch.tensor([3.0, 5.0]), 4).tolist() == [
        4.0,
        6.0,
        1.0,
        1.0,
    ]


def test_functions_of_one_tile_are_methods_too() -> None:
    """Triton's interpreter knows some of them as functions alone."""
    x = torch.tensor([0.25, -2.5, 4.0])
    a = x.abs()
    roots = a.sqrt() + a.rsqrt() + x.floor() + x.ceil()
    waves = x.exp() + x.exp2() + a.log() + a.log2() + x.sin() + x.cos() + x.erf()
    assert torch.allclose(rows.by_methods(x), roots + waves, rtol=1e-5)
