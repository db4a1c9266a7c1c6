"""causal_attention: tiles above the diagonal are not visited.

Queries, keys and values are multiples of an eighth, which tf32 has, too; one test looks at tf32.
Every compilation takes as long as several launches, so d is 16 and there is more than one head,
wherever the claim is about something else.
"""

import torch

from autograder.suite import assert_unchanged, forbid, full, points, randn, zeros

from .launches import assert_answer, assert_precise, rounded

pytestmark = forbid("torch.nn.functional.scaled_dot_product_attention")


@points(1.5)
def test_a_token_sees_itself_and_those_before(student):
    """64 queries and keys with scores of 0: row i is the mean of the values 0 to i."""
    v = rounded(randn(1, 2, 64, 16))
    (o, _), launch = _launch(student, zeros(1, 2, 64, 16), zeros(1, 2, 64, 16), v)
    assert_answer(
        o,
        _whole(zeros(1, 2, 64, 16), zeros(1, 2, 64, 16), v)[0],
        launch,
        2e-3,
        what="o",
    )


@points(2)
def test_every_head_has_its_own_places(student):
    """Two sentences of two heads, 64 tokens."""
    _assert_attention(student, *_inputs(2, 2, 64, 64, 16))


@points(2)
def test_causal_is_aligned_at_the_bottom_right(student):
    """32 queries on 96 keys: the first query sees 65. And 8 queries on 40 keys, ragged."""
    for n_q, n_k in ((32, 96), (8, 40)):
        _assert_attention(student, *_inputs(1, 2, n_q, n_k, 16))


@points(1.5)
def test_ragged_tiles(student):
    """7 tokens of a single head, then 66: the last tiles stick out of every tensor. What is read
    behind a head is the next head's, and behind the last one nobody's.
    """
    for n, heads in ((7, 1), (66, 2)):
        _assert_attention(student, *_inputs(1, heads, n, n, 16))


@points(1.5)
def test_rows_that_see_nothing(student):
    """72 queries on 20 keys: the first 52 see nothing, a whole tile among them. o = 0, lse = -inf."""
    q, k, v = _inputs(1, 2, 72, 20, 16)
    (o, lse), launch = _launch(student, q, k, v)
    expected = _whole(q, k, v)
    assert_answer(o, expected[0], launch, 4e-3, what="o")
    nothing = full((1, 2, 52), -torch.inf).float()
    assert_answer(lse[..., :52], nothing, launch, what="lse of rows that see nothing")


@points(0.5)
def test_scores_far_below_zero_count(student):
    """All scores are -4294967296, and a token has the mean of the values that it sees. What is the
    maximum of nothing, and what is lower than any score?
    """
    q, k, v = zeros(1, 2, 64, 16), zeros(1, 2, 64, 16), rounded(randn(1, 2, 64, 16))
    q[..., 3], k[..., 3] = 4 * 2.0**16, -(2.0**16)  # √d = 4
    (o, _), launch = _launch(student, q, k, v)
    means = v.double().cumsum(dim=2) / torch.arange(1, 65).unsqueeze(1)
    assert_answer(o, means.float(), launch, 4e-3, what="o")


@points(1)
def test_log_sum_exp(student):
    """lse is float32, m + ln l, scores with 1/√d and all."""
    q, k, v = _inputs(1, 2, 64, 64, 16)
    (_, lse), launch = _launch(student, 2 * q, k, v)
    assert_answer(lse, _whole(2 * q, k, v)[1], launch, 2e-4, what="lse")


@points(1)
def test_wide_heads(student):
    """d = 64: the scale is that of d."""
    _assert_attention(student, *_inputs(1, 2, 40, 40, 64))


@points(0.5)
def test_half_precision(student):
    """float16 in, float16 out, lse float32."""
    q, k, v = (t.half() for t in _inputs(1, 2, 64, 64, 16))
    (o, lse), launch = _launch(student, q, k, v)
    expected = _whole(q, k, v)
    assert_answer(o, expected[0].half(), launch, atol=4e-3, rtol=2e-3, what="o")
    assert_answer(lse, expected[1], launch, 2e-3, what="lse")


@points(0.5)
def test_float32_is_not_rounded(student):
    """Numbers of 23 bits in q and k: the scores are not rounded to 10."""
    q, k, v = (2 * randn(1, 2, 64, 16).float() for _ in range(3))
    (o, _), _ = _launch(student, q, k, v)
    assert_precise(o, _whole(q, k, v)[0], atol=1e-4, what="o")


@points(3)
def test_tiles_above_the_diagonal_are_not_visited(student):
    """Counted: 128 tokens are 16 tiles of 32 by 32, of which the kernel visits 1 + 2 + 3 + 4."""
    launch = _assert_attention(student, *_inputs(1, 2, 128, 128, 16))
    _assert_tiles(launch, 10, queries=128)
    assert launch.largest <= 1024, (
        f"A tile has {launch.largest} elements, more than 32 × 32."
    )


@points(1)
def test_the_last_tile_depends_on_the_offset(student):
    """Counted: 64 queries on 128 keys visit 3 + 4 tiles; on 65 keys 2 + 3."""
    _assert_tiles(
        _assert_attention(student, *_inputs(1, 2, 64, 128, 16)), 7, queries=64
    )
    launch = _assert_attention(student, *_inputs(1, 2, 64, 65, 16))
    loaded = launch.loads.get("k", 0) // (2 * 16)
    assert loaded == 64 + 65, (
        f"The kernel loads {loaded} keys a head. The first query tile sees 33 keys, in two tiles of "
        "32; the second sees all 65, in three."
    )


def _inputs(b, h, n_q, n_k, d):
    return tuple(rounded(randn(b, h, n, d)) for n in (n_q, n_k, n_k))


def _launch(student, q, k, v):
    return student.launch("causal_attention", *(t.to(v.dtype) for t in (q, k, v)))


def _assert_attention(student, q, k, v):
    (o, _), launch = _launch(student, q, k, v)
    assert_unchanged()
    assert_answer(o, _whole(q, k, v)[0], launch, 4e-3, what="o")
    return launch


def _assert_tiles(launch, tiles, queries):
    """The tiles that each of two heads visits, with d = 16."""
    loads = {name: launch.loads.get(name, 0) // (2 * 16) for name in ("q", "k", "v")}
    assert loads["q"] == queries, (
        f"The kernel loads {loads['q']} queries a head, and there are {queries}: each once."
    )
    assert (loads["k"], loads["v"]) == (32 * tiles, 32 * tiles), (
        f"The kernel loads {loads['k']} keys and {loads['v']} values a head, so "
        f"{loads['k'] / 32:g} tiles of 32 keys are visited. In {tiles} of them some query sees a "
        "key."
    )
    stored = sum(launch.stores.values())
    assert stored == 2 * queries * 17, (
        f"o and lse have {2 * queries * 17} numbers, and the kernel stores {stored}."
    )


def _whole(q, k, v):
    """(o, lse) in float32 by the whole matrix."""
    n_q, n_k = q.shape[2], k.shape[2]
    s = torch.einsum("bhid,bhjd->bhij", q.double(), k.double()) * q.shape[-1] ** -0.5
    s = s.masked_fill(
        torch.arange(n_k) > torch.arange(n_q)[:, None] + n_k - n_q, -torch.inf
    )
    o = torch.softmax(s, dim=-1).nan_to_num(0.0) @ v.double()
    return o.float(), torch.logsumexp(s, dim=-1).float()
