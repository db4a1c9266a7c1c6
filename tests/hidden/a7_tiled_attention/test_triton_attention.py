"""triton_attention: tiled attention as a kernel, checked address by address and byte by byte."""

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    assert_unchanged,
    forbid,
    full,
    points,
    randn,
    zeros,
)

pytestmark = [forbid("torch.nn.functional.scaled_dot_product_attention")]


@points(2)
def test_one_head_without_ragged_tiles(student):
    """B = H = 1, 32 queries, 64 keys, d = 16: the plain algorithm. Scores differ enough for weights to matter."""
    q, k, v = _inputs(1, 1, 32, 64, 16)
    _assert_o(student.launch("triton_attention", 2 * q, k, v), _whole(2 * q, k, v))


@points(1)
def test_every_head_has_its_own_pointers(student):
    """Two sentences of three heads: batch and head belong into the pointer of each tensor, and of the output."""
    q, k, v = _inputs(2, 3, 16, 32, 16)
    _assert_o(student.launch("triton_attention", q, k, v), _whole(q, k, v))


@points(2)
def test_ragged_tiles(student):
    """40 queries and 24 keys, then 24 and 72: no tile divides them. All scores are negative: a key that is not
    there has score 0 if nobody says otherwise, and would win."""
    for n_q, n_k in ((40, 24), (24, 72)):
        q, k, v = _inputs(1, 2, n_q, n_k, 16)
        q, k = q.abs() + 0.3, -k.abs() - 0.3
        _assert_o(student.launch("triton_attention", q, k, v), _whole(q, k, v))


@points(1)
def test_head_sizes_that_are_no_power_of_two(student):
    """d = 24 and d = 40: lanes beyond d take part in the dot product. What do they hold?"""
    for d in (24, 40):
        q, k, v = _inputs(1, 2, 32, 32, d)
        _assert_o(student.launch("triton_attention", q, k, v), _whole(q, k, v))


@points(1)
def test_any_strides(student):
    """q, k and v as projections leave them, [B, N, H, d] with N and H swapped; then each with strides of its own."""
    q, k, v = (randn(2, n, 3, 16).float().transpose(1, 2) for n in (16, 32, 32))
    _assert_o(student.launch("triton_attention", q, k, v), _whole(q, k, v))
    q, k, v = randn(1, 2, 16, 32).float()[..., ::2], randn(1, 2, 16, 32).float().mT, randn(2, 1, 32, 16).float()
    v = v.transpose(0, 1)
    _assert_o(student.launch("triton_attention", q, k, v), _whole(q, k, v))


@points(1)
def test_causal(student):
    """As many queries as keys, more than one tile: token i sees itself and what is before it."""
    q, k, v = _inputs(1, 1, 72, 72, 16)
    _assert_o(student.launch("triton_attention", q, k, v, causal=True), _whole(q, k, v, causal=True))


@points(1.5)
def test_causal_is_aligned_at_the_bottom_right(student):
    """16 queries on 48 keys: the first query sees 33 of them. Then 40 on 24: the first 16 queries see nothing, and
    have o = 0 and lse = -inf."""
    q, k, v = _inputs(1, 1, 16, 48, 16)
    _assert_o(student.launch("triton_attention", q, k, v, causal=True), _whole(q, k, v, causal=True))
    q, k, v = _inputs(1, 1, 40, 24, 16)
    answer = student.launch("triton_attention", q, k, v, causal=True)
    _assert_o(answer, _whole(q, k, v, causal=True))
    assert_close(answer[0][1][..., :16], full((1, 1, 16), -torch.inf).float(), what="lse of rows that see nothing")


@points(1.5)
def test_large_scores_do_not_overflow(student):
    """Scores of about ±1000, with the maximum in the last tile, then in the first."""
    q, k, v = _inputs(1, 1, 16, 72, 16)
    for order in (1.0, -1.0):
        climbing = k * 0.1 + order * torch.linspace(-60, 60, 72).view(72, 1)
        q = q.abs() + 1
        _assert_o(student.launch("triton_attention", q, climbing, v), _whole(q, climbing, v), atol=2e-3)


@points(1)
def test_scores_far_below_zero_count(student):
    """All scores are below -50000, so that every exp(score) is 0. What is the maximum of nothing?"""
    q, k, v = full((1, 1, 16, 16), -120.0).float(), 115 + 0.01 * randn(1, 1, 40, 16).float(), randn(1, 1, 40, 16)
    v = v.float()
    _assert_o(student.launch("triton_attention", q, k, v), _whole(q, k, v), atol=2e-2)


@points(1.5)
def test_log_sum_exp(student):
    """lse is float32 [B, H, N_q], the logarithm of the sum of exp(score): m + ln l. Two sentences, two heads."""
    q, k, v = _inputs(2, 2, 24, 40, 16)
    (_, lse), _ = student.launch("triton_attention", 2 * q, k, v)
    assert_close(lse, _whole(2 * q, k, v)[1].float(), atol=1e-4, what="lse")


@points(1)
def test_half_precision(student):
    """float16 in, float16 out, lse in float32; the accumulator is float32."""
    q, k, v = (t.half() for t in _inputs(1, 2, 24, 40, 16))
    answer = student.launch("triton_attention", q, k, v)
    _assert_o(answer, _whole(q, k, v), atol=4e-3)
    assert_close(answer[0][1], _whole(q, k, v)[1].float(), atol=4e-3, what="lse")


@points(1.5)
def test_the_kernel_works_tile_by_tile(student, reference):
    """Counted: each query once, keys and values once a query tile, as hbm_traffic has it; no tile above 64 × 64."""
    n, d = 160, 16
    q, k, v = _inputs(1, 1, n, n, d)
    (o, _), launch = student.launch("triton_attention", q, k, v)
    _assert_o(((o, None), launch), _whole(q, k, v))
    loads = {name: launch.loads.get(name, 0) for name in ("q", "k", "v")}
    assert min(loads.values()) >= n * d, (
        f"The kernel loads {loads['q']} elements of q, {loads['k']} of k and {loads['v']} of v, and there are {n * d} "
        "in each: attention needs them all."
    )
    assert launch.dots >= 2, "There is no tl.dot: the two products should be computed in the kernel."
    assert launch.largest <= 4096, (
        f"A tile has {launch.largest} elements; at most 64 × 64 = 4096 are asked for. One tile over all keys is the "
        "score matrix again."
    )
    walks = loads["k"] // (n * d)
    assert (loads["q"], loads["k"], loads["v"]) == (n * d, walks * n * d, walks * n * d), (
        f"The kernel loads {loads['q']} elements of q, {loads['k']} of k and {loads['v']} of v. Each query should be "
        f"loaded once ({n * d} elements), and all keys and values once for each query tile."
    )
    assert walks <= n // 8, (
        f"All keys are loaded {walks} times, once for every {n // walks} queries: tiles are too small."
    )
    stored = sum(launch.stores.values()) - n  # the log-sum-exp is not counted
    traffic = reference.hbm_traffic(n, d, -(-n // walks), 32, 1)
    assert sum(loads.values()) + stored == traffic["tiled"], (
        f"The output has {n * d} elements and {n} log-sum-exps; the kernel stores {stored + n} elements."
    )


@points(1)
def test_the_wrapper_computes_nothing(student):
    """Counted: torch operations around the kernel. Allocating, padding and rearranging is fine."""
    q, k, v = _inputs(1, 2, 16, 16, 16)
    answer = student.launch("triton_attention", q, k, v)
    assert answer[1].kernels >= 1, "No kernel was launched."
    assert not answer[1].computed, (
        f"The wrapper computes with torch ({', '.join(answer[1].computed)}). All arithmetic on q, k and v belongs in "
        "the kernel."
    )
    _assert_o(answer, _whole(q, k, v))
    assert_unchanged()


@points(0.5)
def test_fewer_rows_than_a_tile(student):
    """5 queries and 3 keys, then one of each."""
    for n_q, n_k in ((5, 3), (1, 1)):
        q, k, v = _inputs(1, 2, n_q, n_k, 16)
        _assert_o(student.launch("triton_attention", q, k, v), _whole(q, k, v))


@points(0.5)
def test_sizes_that_do_not_fit_are_refused(student):
    """q and k of different d, k and v of different length: ValueError with the sizes."""
    f = student.triton_attention
    assert_refused(f, zeros(1, 1, 5, 16), zeros(1, 1, 7, 24), zeros(1, 1, 7, 24), sizes=(16, 24))
    assert_refused(f, zeros(1, 1, 5, 16), zeros(1, 1, 7, 16), zeros(1, 1, 9, 16), sizes=(7, 9))


def _inputs(b, h, n_q, n_k, d):
    return tuple(randn(b, h, n, d).float() for n in (n_q, n_k, n_k))


def _whole(q, k, v, causal=False):
    """(o, lse) in float64 by the whole matrix; rows that see nothing are 0 and -inf."""
    s = torch.einsum("bhid,bhjd->bhij", q.double(), k.double()) * q.shape[-1] ** -0.5
    if causal:
        n_q, n_k = s.shape[-2:]
        s = s.masked_fill(torch.arange(n_k) > torch.arange(n_q)[:, None] + n_k - n_q, -torch.inf)
    return (torch.softmax(s, dim=-1).nan_to_num(0.0) @ v.double()).to(q.dtype), torch.logsumexp(s, dim=-1)


def _assert_o(answer, expected, atol=2e-5):
    (o, _), launch = answer
    if not launch.dots or not all(launch.loads.get(name) for name in ("q", "k", "v")):
        raise AssertionError(
            f"The kernel loads {launch.loads.get('q', 0)} elements of q, {launch.loads.get('k', 0)} of k and "
            f"{launch.loads.get('v', 0)} of v, and calls tl.dot {launch.dots} times: it does not compute attention."
        )
    if launch.unfilled and isinstance(o, torch.Tensor) and bool(o.isnan().any()):
        raise AssertionError(
            f"There is nan in o, and masked lanes of {', '.join(launch.unfilled)} were loaded without other=. On a GPU "
            "they would hold anything; here they are nan."
        )
    if isinstance(o, torch.Tensor) and bool(o.isnan().all(dim=-1).any()) and not bool(o.isnan().all()):
        rows = o.isnan().all(dim=-1).nonzero()[0].tolist()
        raise AssertionError(
            f"Row {rows} of o is nan throughout, others are not. Either no program has written it (memory that nobody "
            "writes is nan here), or it is inf - inf or 0 / 0: does it see any key?"
        )
    assert_close(o, expected[0], atol=atol, what="o")
