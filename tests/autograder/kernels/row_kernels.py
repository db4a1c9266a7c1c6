"""Kernels over vectors and rows, each in a way that people write them in. All are right."""

# ruff: noqa: E741, N803  (kernels name sizes as the formulas do)
from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def _flat_bias(x_ptr, b_ptr, y_ptr, n_elements, N, BLOCK_SIZE: tl.constexpr):
    """The matrix as one long vector; masked lanes without other never get out."""
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    b = tl.load(b_ptr + offsets % N, mask=mask)
    tl.store(y_ptr + offsets, x + b, mask=mask)


def bias_of_a_flat_matrix(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    _flat_bias[lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)](
        x, b, y, n, x.shape[1], BLOCK_SIZE=64
    )
    return y


@triton.jit
def _block_bias(
    x_ptr,
    b_ptr,
    y_ptr,
    M,
    N,
    sm,
    sn,
    sb,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CHECK: tl.constexpr,
):
    r, c = tl.program_id(0) * BM, tl.program_id(1) * BN
    x_block = tl.make_block_ptr(
        x_ptr,
        shape=(M, N),
        strides=(sm, sn),
        offsets=(r, c),
        block_shape=(BM, BN),
        order=(1, 0),
    )
    y_block = tl.make_block_ptr(
        y_ptr,
        shape=(M, N),
        strides=(N, 1),
        offsets=(r, c),
        block_shape=(BM, BN),
        order=(1, 0),
    )
    b_block = tl.make_block_ptr(
        b_ptr, shape=(N,), strides=(sb,), offsets=(c,), block_shape=(BN,), order=(0,)
    )
    if CHECK:
        x = tl.load(x_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0,))
        tl.store(y_block, x + b[None, :], boundary_check=(0, 1))
    else:
        tl.store(y_block, tl.load(x_block) + tl.load(b_block)[None, :])


def bias_by_block_pointers(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = torch.empty(x.shape, dtype=x.dtype)
    grid = (triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 16))
    _block_bias[grid](
        x, b, y, *x.shape, *x.stride(), b.stride(0), BM=16, BN=16, CHECK=True
    )
    return y


def bias_by_block_pointers_of_whole_tiles(
    x: torch.Tensor, b: torch.Tensor
) -> torch.Tensor:
    """Without boundary_check: tiles of one always divide."""
    y = torch.empty(x.shape, dtype=x.dtype)
    _block_bias[x.shape](
        x, b, y, *x.shape, *x.stride(), b.stride(0), BM=1, BN=1, CHECK=False
    )
    return y


@triton.jit
def _rows_in_steps(x_ptr, y_ptr, M, N, sm, sn, BM: tl.constexpr, BN: tl.constexpr):
    """A block pointer that goes along the row: the sum first, then the quotient."""
    start = tl.program_id(0) * BM
    at = tl.make_block_ptr(x_ptr, (M, N), (sm, sn), (start, 0), (BM, BN), (1, 0))
    back = tl.make_block_ptr(y_ptr, (M, N), (N, 1), (start, 0), (BM, BN), (1, 0))
    total = tl.zeros((BM,), dtype=tl.float32)
    for _ in range(tl.cdiv(N, BN)):
        tile = tl.load(at, boundary_check=(0, 1), padding_option="zero")
        total += tl.sum(tile, axis=-1)
        at = at.advance((0, BN))
    at = tl.advance(at, (0, -BN * tl.cdiv(N, BN)))
    for _ in range(tl.cdiv(N, BN)):
        tile = tl.load(at, boundary_check=(0, 1), padding_option="zero")
        tl.store(back, tile / total[:, None], boundary_check=(0, 1))
        at = tl.advance(at, (0, BN))
        back = tl.advance(back, (0, BN))


def shares_by_advancing(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(x.shape)
    _rows_in_steps[(triton.cdiv(x.shape[0], 4),)](x, y, *x.shape, *x.stride(), 4, 16)
    return y


@triton.jit
def _described_twice(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Descriptors made in the kernel."""
    x = tl.make_tensor_descriptor(
        x_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN]
    )
    y = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [BM, BN])
    r, c = tl.program_id(0) * BM, tl.program_id(1) * BN
    y.store([r, c], 2 * x.load([r, c]))


def twice_by_descriptors(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    _described_twice[triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 16)](
        x, y, *x.shape, BM=16, BN=16
    )
    return y


def _set_blocks(given: dict[str, Any]) -> None:
    given["x_desc"].block_shape = [given["BM"], given["BN"]]
    given["y_desc"].block_shape = [given["BM"], given["BN"]]


@triton.autotune(
    [triton.Config({"BM": m, "BN": 16}, pre_hook=_set_blocks) for m in (8, 16)],
    key=["M", "N"],
)
@triton.jit
def _host_described_twice(x_desc, y_desc, M, N, BM: tl.constexpr, BN: tl.constexpr):
    at = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    y_desc.store(at, x_desc.load(at) * 2)


def twice_by_descriptors_of_the_host(x: torch.Tensor) -> torch.Tensor:
    m, n = x.shape
    y = torch.empty_like(x)
    given = [TensorDescriptor(t, t.shape, t.stride(), [1, 16]) for t in (x, y)]
    _host_described_twice[
        lambda meta: (triton.cdiv(m, meta["BM"]), triton.cdiv(n, meta["BN"]))
    ](*given, m, n)
    return y


@triton.jit
def _persistent_softmax(
    out_ptr,
    in_ptr,
    in_stride,
    out_stride,
    n_rows,
    n_cols,
    BLOCK: tl.constexpr,
    num_stages: tl.constexpr,
):
    """Fewer programs than rows: each takes every n-th."""
    for row in tl.range(
        tl.program_id(0), n_rows, tl.num_programs(0), num_stages=num_stages
    ):
        cols = tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(in_ptr + row * in_stride + cols, mask=mask, other=-float("inf"))
        numerator = tl.exp(x - tl.max(x, axis=0))
        tl.store(
            out_ptr + row * out_stride + cols,
            numerator / tl.sum(numerator, axis=0),
            mask=mask,
        )


def softmax_persistent(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    _persistent_softmax[(3, 1, 1)](
        y, x, x.stride(0), y.stride(0), *x.shape, block, num_stages=2, num_warps=4
    )
    return y


@triton.heuristics(
    {
        "BLOCK": lambda args: triton.next_power_of_2(args["N"]),
        "EVEN": lambda a: a["N"] % 16 == 0,
    }
)
@triton.jit(do_not_specialize=["N"])
def _hinted_softmax(
    x_ptr, y_ptr, N, stride, BLOCK: tl.constexpr, EVEN: tl.constexpr = False
):
    tl.static_assert(BLOCK <= 4096, "rows of at most 4096")
    row = tl.program_id(0)
    columns = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), 1), BLOCK)
    if EVEN and BLOCK == N:
        x = tl.load(x_ptr + row * stride + columns, cache_modifier=".cg")
    else:
        x = tl.load(
            x_ptr + row * stride + columns,
            mask=columns < N,
            other=float("-inf"),
            eviction_policy="evict_first",
        )
    p = tl.exp2((x - x.max(0)) * LOG2_E)
    tl.device_assert(tl.sum(p, 0) >= 1.0)
    tl.store(
        y_ptr + row * N + columns,
        p / p.sum(),
        mask=columns < N,
        eviction_policy="evict_last",
    )


def softmax_with_heuristics_and_hints(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    _hinted_softmax[(x.shape[0],)](x_ptr=x, y_ptr=y, N=x.shape[1], stride=x.stride(0))
    return y


def _long_enough(
    configs: list[Any], named_args: dict[str, Any], **kwargs: object
) -> list[Any]:
    return [
        config for config in configs if config.kwargs["BLOCK"] >= named_args["n_cols"]
    ]


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": b}, num_warps=w, num_stages=s)
        for b in (32, 64, 128)
        for w in (2, 4)
        for s in (1, 3)
    ],
    key=["n_cols"],
    prune_configs_by={"early_config_prune": _long_enough},
)
@triton.jit
def _tuned_softmax(x_ptr, y_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=at < n_cols, other=-float("inf")).to(
        tl.float32
    )
    tl.store(y_ptr + row * n_cols + at, tl.softmax(x), mask=at < n_cols)


def softmax_tuned_and_pruned(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    _tuned_softmax[(x.shape[0],)](x, y, x.stride(0), x.shape[1])
    return y


@triton.jit
def _merge(m_a, l_a, m_b, l_b):
    m = tl.maximum(m_a, m_b)
    return m, l_a * tl.exp(m_a - m) + l_b * tl.exp(m_b - m)


@triton.jit
def _online_softmax(x_ptr, y_ptr, N, stride, BLOCK: tl.constexpr):
    """In blocks, with `while`, and one reduction with a function of our own."""
    row, lanes = tl.program_id(0), tl.arange(0, BLOCK)
    m, l = -float("inf"), 0.0
    start = 0
    while start < N:
        x = tl.load(
            x_ptr + row * stride + start + lanes, mask=start + lanes < N, other=-1e30
        )
        m_block, l_block = tl.reduce((x, tl.full([BLOCK], 1.0, tl.float32)), 0, _merge)
        m, l = _merge(m, l, m_block, l_block)
        start += BLOCK
    for start in range(0, N, BLOCK):
        at = start + lanes
        x = tl.load(x_ptr + row * stride + at, mask=at < N, other=0.0)
        tl.store(y_ptr + row * N + at, tl.exp(x - m) / l, mask=at < N)


def softmax_online(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    _online_softmax[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=16)
    return y


@triton.jit
def _in_two_goes(x_ptr, y_ptr, N, BLOCK: tl.constexpr, TURNED: tl.constexpr):
    """Keeps something in the output and fetches it back: the same lanes, or others after a
    barrier.
    """
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    e = tl.exp(tl.load(x_ptr + row * N + at, mask=at < N, other=-float("inf")))
    tl.store(y_ptr + row * N + at, e, mask=at < N)
    if TURNED:
        tl.debug_barrier()
        at = (at + 1) % BLOCK
    kept = tl.load(y_ptr + row * N + at, mask=at < N, other=0.0)
    tl.store(y_ptr + row * N + at, kept / tl.sum(e, 0), mask=at < N)


def softmax_kept_in_the_output(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    _in_two_goes[(x.shape[0],)](
        x.contiguous(),
        y,
        x.shape[1],
        BLOCK=triton.next_power_of_2(x.shape[1]),
        TURNED=False,
    )
    return y


def softmax_kept_behind_a_barrier(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    _in_two_goes[(x.shape[0],)](
        x.contiguous(),
        y,
        x.shape[1],
        BLOCK=triton.next_power_of_2(x.shape[1]),
        TURNED=True,
    )
    return y


@triton.autotune(
    [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})],
    key=["n"],
    reset_to_zero=["total_ptr"],
)
@triton.jit
def _atomic_sum(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.atomic_add(total_ptr, tl.sum(x, axis=0))


def sum_by_atomics(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(1)
    _atomic_sum[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](
        x.contiguous(), total, x.numel()
    )
    return total[0]


@triton.jit
def _locked_sum(x_ptr, total_ptr, lock_ptr, N, stride, BLOCK: tl.constexpr):
    """Rows are added to one row under a lock, as in backward passes of norms."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=at < N, other=0.0)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    x += tl.load(total_ptr + at, mask=at < N, other=0.0)
    tl.store(total_ptr + at, x, mask=at < N)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


def sum_of_rows_under_a_lock(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(x.shape[1])
    _locked_sum[(x.shape[0],)](
        x, total, torch.zeros(1, dtype=torch.int32), x.shape[1], x.stride(0), BLOCK=64
    )
    return total


@triton.jit
def _running_sums(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = (at >= 0) and (at < N)
    x = tl.load(x_ptr + row * N + at, mask=inside, other=0)
    tl.store(y_ptr + row * N + at, tl.associative_scan(x, 0, _plus), mask=inside)


@triton.jit
def _plus(a, b):
    return a + b


def running_sums(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    _running_sums[(x.shape[0],)](
        x.contiguous(), y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1])
    )
    return y


@triton.jit
def _transposed(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    """A grid of three axes, of which some programs have nothing to do and return."""
    r, c = tl.program_id(1), tl.program_id(2)
    if r * BLOCK >= M or c * BLOCK >= N:
        return
    rows, columns = r * BLOCK + tl.arange(0, BLOCK), c * BLOCK + tl.arange(0, BLOCK)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :], inside)
    tl.store(
        y_ptr + columns[:, None] * M + rows[None, :], tl.permute(x, (1, 0)), inside.T
    )


def transposed_on_a_grid_of_three_axes(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(x.shape[1], x.shape[0])
    _transposed[(1, 9, 9)](x.contiguous(), y, *x.shape, BLOCK=16)
    return y


@triton.jit
def _product(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    sam,
    sak,
    sbk,
    sbn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Programs in groups, rows that wrap around instead of a mask, pointers that move."""
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * tiles_n) * GROUP
    size = min(tiles_m - first, GROUP)
    tile_m, tile_n = (
        first + (pid % (GROUP * tiles_n)) % size,
        (pid % (GROUP * tiles_n)) // size,
    )
    rows, columns, inner = (
        (tile_m * BM + tl.arange(0, BM)) % M,
        (tile_n * BN + tl.arange(0, BN)) % N,
        tl.arange(0, BK),
    )
    a_ptrs = a_ptr + (rows[:, None] * sam + inner[None, :] * sak)
    b_ptrs = b_ptr + (inner[:, None] * sbk + columns[None, :] * sbn)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=inner[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=inner[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc, allow_tf32=False, out_dtype=tl.float32)
        a_ptrs += BK * sak
        b_ptrs += BK * sbk
    rows, columns = tile_m * BM + tl.arange(0, BM), tile_n * BN + tl.arange(0, BN)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + N * rows[:, None] + columns[None, :], acc, mask=inside)


def product_in_groups(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n)
    grid = (triton.cdiv(m, 16) * triton.cdiv(n, 16),)
    _product[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), BM=16, BN=16, BK=16, GROUP=2
    )
    return c


@triton.jit
def _gather(ids_ptr, table_ptr, out_ptr, D, BLOCK: tl.constexpr, PIECES: tl.constexpr):
    """An embedding: addresses that come out of memory; a loop that is unrolled."""
    row = tl.load(ids_ptr + tl.program_id(0))
    for piece in tl.static_range(PIECES):
        at = piece * BLOCK + tl.arange(0, BLOCK)
        tl.store(
            out_ptr + tl.program_id(0) * D + at,
            tl.load(table_ptr + row * D + at, at < D),
            at < D,
        )


def embedding(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    out = torch.empty(len(ids), table.shape[1])
    _gather[(len(ids),)](
        ids,
        table,
        out,
        table.shape[1],
        BLOCK=16,
        PIECES=triton.cdiv(table.shape[1], 16),
    )
    return out


@triton.jit
def scalars_kernel(x_ptr, y_ptr, N):
    row = tl.program_id(0)
    inside = row < N
    tl.store(y_ptr + row, tl.load(x_ptr + row, mask=inside, other=0.0) + 1.0)


def a_number_a_program(x: torch.Tensor, programs: int) -> torch.Tensor:
    """Each program adds 1 to its number; those past the end have 0."""
    y = torch.empty(programs)
    scalars_kernel[(programs,)](x, y, x.shape[0])
    return y


@triton.jit
def methods_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + columns, mask=columns < N, other=1.0)
    roots = x.abs().sqrt() + x.abs().rsqrt() + x.floor() + x.ceil()
    waves = (
        x.exp()
        + x.exp2()
        + x.abs().log()
        + x.abs().log2()
        + x.sin()
        + x.cos()
        + x.erf()
    )
    tl.store(y_ptr + columns, roots + waves, mask=columns < N)


def by_methods(x: torch.Tensor) -> torch.Tensor:
    """Functions of one argument, each as a method of its tile."""
    y = torch.empty_like(x)
    methods_kernel[(1,)](x, y, x.shape[0], BLOCK=triton.next_power_of_2(x.shape[0]))
    return y
