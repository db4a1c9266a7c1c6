"""triton_attention: tiled attention as a kernel, checked address by address and byte by byte.

On a GPU `tl.dot` rounds float32 to 10 bits of mantissa (tf32) unless the kernel says
`input_precision="ieee"`, and so it does here. One test looks at that. In all others inputs and
weights have 10 bits: numbers are multiples of a power of two, and scores of ln 2.

Lengths are multiples of 64 wherever the claim is not about ragged tiles, so that any tile divides
them. A kernel is compiled for each combination of what it takes as constants, which takes longer
than a launch: so there are few.
"""

import math

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

pytestmark = [
    forbid(
        "torch.nn.functional.scaled_dot_product_attention",
        "torch.nn.attention.flex_attention.flex_attention",
    )
]

_PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "mv", "dot"}
_EXPONENTIALS = {"sum", "_softmax", "exp", "exp2", "logsumexp"}
"""Operations of torch, by their names inside it: with one of each, it computes attention; with one,
a part of it.
"""


@points(1)
def test_one_head_without_ragged_tiles(student):
    """B = H = 1, 128 queries and keys, d = 16: the plain algorithm, over several tiles either
    way.
    """
    q, k, v = _weights_of_powers_of_two(1, 1, 128, 128, 16)
    answer = student.launch("triton_attention", q, k, v)
    _assert_o(answer, _whole(q, k, v)[0], atol=2e-5)
    _assert_tiled(answer[1], 16)


@points(1)
def test_every_head_has_its_own_pointers(student):
    """Two sentences of three heads, and every query picks one value: batch and head belong into the
    pointer of each tensor, and of the output.
    """
    q, k, v, picked = _one_key_each(2, 3, 64, 64, 16)
    _assert_o(student.launch("triton_attention", q, k, v), picked)


@points(1.5)
def test_ragged_key_tiles(student):
    """65 and 3 keys: no tile divides them, and queries look for the last ones. All scores are
    negative: a key that is not there has score 0 if nobody says otherwise, and would win.
    """
    for n_k in (65, 3):
        q, k, v, picked = _one_key_each(1, 1, 64, n_k, 16, least=-100.0)
        _assert_o(student.launch("triton_attention", q, k.flip(2), v.flip(2)), picked)


@points(0.5)
def test_ragged_query_tiles(student):
    """72 queries, then 5: no tile divides them, and the last rows of the last tile lie outside of the tensors."""
    for n_q in (72, 5):
        q, k, v, picked = _one_key_each(1, 1, n_q, 64, 16)
        _assert_o(student.launch("triton_attention", q, k, v), picked)


@points(0.5)
def test_head_sizes_that_are_no_power_of_two(student):
    """d = 40: lanes beyond d take part in the dot product. What do they hold? d is also in the
    scale.
    """
    q, k, v = _weights_of_powers_of_two(1, 1, 64, 64, 40)
    _assert_o(
        student.launch("triton_attention", q, k, v), _whole(q, k, v)[0], atol=2e-5
    )


@points(0.5)
def test_a_head_smaller_than_a_dot_product(student):
    """d = 8, and every query picks one value: all sides of a tl.dot are at least 16, so half of the lanes lie beyond d."""
    q, k, v, picked = _one_key_each(1, 1, 64, 64, 8)
    _assert_o(student.launch("triton_attention", q, k, v), picked)


@points(1)
def test_strides_that_projections_leave(student):
    """q and k as projections leave them, [B, N, H, d] with N and H swapped, and v contiguous. Every
    query picks one value.
    """
    q, k, v, picked = _one_key_each(1, 3, 64, 64, 16)
    q, k = (t.transpose(1, 2).contiguous().transpose(1, 2) for t in (q, k))
    _assert_o(student.launch("triton_attention", q, k, v), picked)


@points(1)
def test_strides_that_all_differ(student):
    """q with gaps between its elements, k transposed, v with N before H and gaps: each has strides
    of its own.
    """
    q, k, v, picked = _one_key_each(1, 2, 64, 64, 16)
    q = q.repeat_interleave(2, dim=3)[..., ::2]
    k, v = (
        k.mT.contiguous().mT,
        v.transpose(1, 2).repeat_interleave(3, dim=3).transpose(1, 2)[..., ::3],
    )
    _assert_o(student.launch("triton_attention", q, k, v), picked)


@points(0.5)
def test_causal(student):
    """As many queries as keys, more than one tile, equal scores: token i has the mean of its own
    value and those before it.
    """
    q, k, v = _equal_scores(128, 128, -3.0)
    answer = student.launch("triton_attention", q, k, v, causal=True)
    _assert_o(answer, _means(v, 128))
    _assert_tiled(answer[1], 16)


@points(1.5)
def test_causal_is_aligned_at_the_bottom_right(student):
    """64 queries on 88 keys, equal scores: the first query sees 25 keys, the last one all, in
    whichever tile they are. 88 is no multiple of a tile.
    """
    q, k, v = _equal_scores(64, 88, -3.0)
    _assert_o(student.launch("triton_attention", q, k, v, causal=True), _means(v, 64))


@points(1)
def test_rows_that_see_nothing(student):
    """64 queries on 40 keys, causal, equal scores: the first 24 see nothing, and have o = 0 and lse
    = -inf.
    """
    q, k, v = _equal_scores(64, 40, -3.0)
    answer = student.launch("triton_attention", q, k, v, causal=True)
    _assert_o(answer, _means(v, 64))
    assert_close(
        answer[0][1][..., :24],
        full((1, 1, 24), -torch.inf).float(),
        what="lse of rows that see nothing",
    )


@points(1.5)
def test_large_scores_do_not_overflow(student):
    """In one tile some queries have scores up to 1000, and some have scores of -1000 and less. The
    largest score comes first: later tiles have smaller ones.
    """
    q, k, v = (
        zeros(1, 1, 64, 16),
        zeros(1, 1, 128, 16),
        _round(randn(1, 1, 128, 16), 64),
    )
    q[..., 0], q[..., 1::2, 1] = 4000.0, -8000.0  # √d = 4
    k[..., 0], k[..., 1] = -_round(randn(1, 1, 128).abs(), 64), 1.0
    k[0, 0, ::16, 0] = _round(torch.linspace(1.0, 0.3, 8), 64)
    q, k, v = q.float(), k.float(), v.float()
    answer = student.launch("triton_attention", q, k, v)
    _assert_o(answer, v[..., :1, :].expand(1, 1, 64, 16))
    _assert_tiled(answer[1], 16)


@points(0.5)
def test_scores_far_below_zero_count(student):
    """All scores are -60000, so that every exp(score) is 0. What is the maximum of nothing?"""
    q, k, v = _equal_scores(64, 64, -6e4)
    _assert_o(
        student.launch("triton_attention", q, k, v),
        v.mean(dim=2, keepdim=True).expand(1, 1, 64, 16),
        atol=2e-2,
    )


@points(0.5)
def test_hidden_keys_weigh_nothing_whatever_the_scores(student):
    """Causal, and every score is -60000. What is hidden needs a score that is lower than any."""
    q, k, v = _equal_scores(64, 64, -6e4)
    _assert_o(
        student.launch("triton_attention", q, k, v, causal=True),
        _means(v, 64),
        atol=2e-2,
    )


@points(1)
def test_log_sum_exp(student):
    """lse is float32 [B, H, N_q], the logarithm of the sum of exp(score): m + ln l. Two sentences
    that are equal.
    """
    q, k, v = (
        _round(randn(1, 1, 64, 16), 64).float().repeat(2, 1, 1, 1) for _ in range(3)
    )
    (_, lse), _ = student.launch("triton_attention", 2 * q, k, v)
    assert_close(lse, _whole(2 * q, k, v)[1].float(), atol=1e-4, what="lse")


@points(0.5)
def test_half_precision(student):
    """float16 in, float16 out, lse in float32; so is the accumulator: 64 values near 1500 have a
    sum above 65504.
    """
    q, k = (0.1 * randn(1, 1, 64, 16).half() for _ in range(2))
    v = (1500 + 300 * randn(1, 1, 64, 16)).half()
    (o, lse), launch = student.launch("triton_attention", q, k, v)
    expected = _whole(q, k, v)
    _assert_o(((o, lse), launch), expected[0], rtol=2e-3)
    assert_close(lse, expected[1].float(), atol=2e-2, what="lse")


@points(0.5)
def test_float32_is_not_rounded(student):
    """Numbers of 23 bits: a `tl.dot` that rounds its operands to 10 is off by a thousandth."""
    q, k, v = (randn(1, 1, 64, 16).float() for _ in range(3))
    (o, lse), launch = student.launch("triton_attention", q, k, v)
    expected = _whole(q, k, v)[0]
    if isinstance(o, torch.Tensor) and o.shape == expected.shape:
        error = float((o - expected).abs().max())
        assert not 5e-5 < error < 5e-3, (
            f"o is right to about {error:.0e} only. tl.dot rounds float32 to 10 bits of mantissa "
            '(tf32) unless it is told not to: both products need input_precision="ieee".'
        )
    _assert_o(((o, lse), launch), expected, atol=5e-5)


@points(1)
def test_wide_heads_and_many_keys(student):
    """d = 128, five heads, 202 keys: every query picks one value of its own head, some of them far
    along the row. Then one head with 260 queries.
    """
    q, k, v, picked = _one_key_each(1, 5, 16, 202, 128, keys=100)
    order = torch.randperm(202)
    _assert_o(
        student.launch("triton_attention", q, k[:, :, order], v[:, :, order]), picked
    )
    q, k, v, picked = _one_key_each(1, 1, 260, 64, 16)
    _assert_o(student.launch("triton_attention", q, k, v), picked)


@points(2.5)
def test_the_kernel_works_tile_by_tile(student):
    """Counted: each query once, keys and values once a query tile, as hbm_traffic has it; no tile
    above 128 queries and 64 keys.
    """
    n, d = 128, 16
    q, k, v, picked = _one_key_each(1, 1, n, n, d)
    answer = student.launch("triton_attention", q, k, v)
    _assert_o(answer, picked)
    launch = answer[1]
    _assert_tiled(launch, d)
    loads = {name: launch.loads.get(name, 0) for name in ("q", "k", "v")}
    walks = loads["k"] // (n * d)
    assert (loads["q"], loads["k"], loads["v"]) == (
        n * d,
        walks * n * d,
        walks * n * d,
    ), (
        f"The kernel loads {loads['q']} elements of q, {loads['k']} of k and {loads['v']} of v. "
        "Each query should be "
        f"loaded once ({n * d} elements), and all keys and values once for each query tile."
    )
    assert walks <= n // 16, (
        f"All keys are loaded {walks} times, once for every {n // walks} queries: tiles "
        "are too small."
    )
    stored = sum(launch.stores.values())
    assert stored == n * d + n, (
        f"The output has {n * d} elements and {n} log-sum-exps; the kernel stores "
        f"{stored} elements."
    )


@points(0.5)
def test_the_wrapper_computes_nothing(student):
    """Counted: torch operations around the kernel. Allocating, padding and rearranging is fine."""
    q, k, v, picked = _one_key_each(1, 1, 64, 64, 16)
    answer = student.launch("triton_attention", q, k, v)
    assert_unchanged()
    assert answer[1].kernels >= 1, "No kernel was launched."
    assert not answer[1].computed, (
        f"The wrapper computes with torch ({', '.join(answer[1].computed)}). All arithmetic on "
        "q, k and v belongs in "
        "the kernel."
    )
    _assert_o(answer, picked)


@points(0.5)
def test_sizes_that_do_not_fit_are_refused(student):
    """q and k of different d, k and v of different length or d: ValueError with the sizes."""
    f, (q, k, v, picked) = student.triton_attention, _one_key_each(1, 1, 64, 64, 16)
    assert_close(f(q, k, v)[0], picked, atol=1e-4, what="o")
    for d in (24, 8):
        assert_refused(f, q, zeros(1, 1, 64, d), zeros(1, 1, 64, d), sizes=(16, d))
    for n in (72, 40):
        assert_refused(f, q, k, zeros(1, 1, n, 16), sizes=(64, n))
    for d in (24, 8):
        assert_refused(f, q, k, zeros(1, 1, 64, d), sizes=(16, d))


def _one_key_each(b, h, n_q, n_k, d, least=0.0, keys=12):
    """q, k, v, and the output [b, h, n_q, d]: a query has the score least + 80 with one of the
    first keys, and about `least` with the others, so that its output is the value of that key,
    whatever the details.
    """
    keys = min(n_k, d - 1, keys)
    q, k = (_round(0.01 * randn(b, h, n, d), 1024) for n in (n_q, n_k))
    v = _round(100 * randn(b, h, n_k, d), 2)
    directions = torch.linspace(
        0, d - 2, keys
    ).long()  # d - 1 is for what all scores share
    directions = directions[
        torch.rand(b, h, keys).argsort(dim=2)
    ]  # in another order in each head
    target = torch.randint(keys, (b, h, n_q))
    size = round(8 * (80 * d**0.5) ** 0.5) / 8
    k[..., :keys, :].scatter_(3, directions.unsqueeze(3), size)
    q.scatter_(3, directions.gather(2, target).unsqueeze(3), size)
    q[..., d - 1], k[..., d - 1] = 1.0, round(least * d**0.5)
    picked = v.gather(2, target.unsqueeze(3).expand(b, h, n_q, d))
    return q.float(), k.float(), v.float(), picked.float()


def _equal_scores(n_q, n_k, score):
    """q, k, v of one head, d = 16: every query has the same score with every key."""
    q, k = zeros(1, 1, n_q, 16), zeros(1, 1, n_k, 16)
    share = 256.0 if abs(score) > 256 else 1.0
    q[..., 3], k[..., 3] = 4.0 * share, score / share
    return q.float(), k.float(), _round(randn(1, 1, n_k, 16), 64).float()


def _weights_of_powers_of_two(b, h, n_q, n_k, d):
    """q, k, v whose scores are whole multiples of ln 2: each weight is a power of two, which tf32
    has. The factor ln 2 · √d is the sum of two numbers of 11 bits, in neighbouring columns.
    """
    factor = math.log(2) * d**0.5
    upper = round(factor * 256) / 256
    lower = round((factor - upper) * 2**20) / 2**20
    pairs = d // 2
    steps = torch.tensor([-1.0, 0.0, 1.0, 2.0])[torch.randint(4, (b, h, n_q, pairs))]
    steps *= torch.randperm(pairs) < 8  # more would be weights that differ too much
    counts = torch.randint(-1, 2, (b, h, n_k, pairs)).float()
    q = torch.stack([steps * upper, steps * lower], dim=-1).reshape(b, h, n_q, d)
    k = torch.stack([counts, counts], dim=-1).reshape(b, h, n_k, d)
    return q.float(), k.float(), _round(randn(b, h, n_k, d), 64).float()


def _round(x, parts):
    """x in whole multiples of 1 / parts."""
    return (x * parts).round() / parts


def _means(v, n_q):
    """The mean of the values that each query sees, with equal scores, causal; 0 where it sees
    none.
    """
    n_k = v.shape[2]
    seen = (torch.arange(n_q) + 1 + n_k - n_q).clamp(min=0)
    sums = torch.nn.functional.pad(v.double().cumsum(dim=2), (0, 0, 1, 0))
    return (sums[:, :, seen] / seen.clamp(min=1).unsqueeze(1)).float()


def _whole(q, k, v):
    """(o, lse) in float64 by the whole matrix; o in the dtype of q."""
    s = torch.einsum("bhid,bhjd->bhij", q.double(), k.double()) * q.shape[-1] ** -0.5
    return (torch.softmax(s, dim=-1) @ v.double()).to(q.dtype), torch.logsumexp(
        s, dim=-1
    )


def _assert_tiled(launch, d):
    """No tile above 128 queries and 64 keys: neither in its elements, nor in the keys that two
    products take part in.
    """
    columns = max(64, 1 << (d - 1).bit_length())  # keys, or elements of a query
    most = 128 * columns
    assert launch.largest <= most, (
        f"A tile has {launch.largest} elements; 128 queries with {columns} columns have {most}. "
        "One tile over all keys is the score matrix again."
    )
    keys = launch.loads.get("k", 0) // d
    assert 64 * launch.dots >= 2 * keys, (
        f"The kernel loads {keys} rows of k, each walk counted, and calls tl.dot {launch.dots} "
        "times: a tile has more "
        "than 64 keys. One tile over all keys is the score matrix again."
    )


def _assert_o(answer, expected, atol=1e-4, rtol=2e-6):
    (o, _), launch = answer
    products, exponentials = (
        _PRODUCTS.intersection(launch.computed),
        _EXPONENTIALS.intersection(launch.computed),
    )
    by_torch = ", ".join(sorted(products | exponentials))
    assert not (products and exponentials), (
        f"torch computes attention here ({by_torch}), and not your kernel."
    )
    assert not by_torch, (
        f"The wrapper computes with torch ({by_torch}): this part of attention belongs "
        "in the kernel."
    )
    if not launch.dots or not launch.loads:
        raise AssertionError(
            f"The kernels load {sum(launch.loads.values())} elements and call tl.dot "
            f"{launch.dots} times: both "
            "products should be computed in a kernel."
        )
    if launch.unfilled and isinstance(o, torch.Tensor) and bool(o.isnan().any()):
        raise AssertionError(
            f"There is nan in o, and masked lanes of {', '.join(launch.unfilled)} were loaded "
            "without other=. On a GPU "
            "they would hold anything; here they are nan."
        )
    if (
        isinstance(o, torch.Tensor)
        and bool(o.isnan().all(dim=-1).any())
        and not bool(o.isnan().all())
    ):
        rows = o.isnan().all(dim=-1).nonzero()[0].tolist()
        raise AssertionError(
            f"Row {rows} of o is nan throughout, others are not. Either no program has written "
            "it (memory that nobody "
            "writes is nan here), or it is inf - inf or 0 / 0: does it see any key?"
        )
    assert_close(o, expected, atol=atol, rtol=rtol, what="o")
