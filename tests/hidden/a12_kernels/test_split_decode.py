"""split_decode: the keys of one query are shared out, and the parts are merged."""

import torch

from autograder.suite import (
    assert_refused,
    assert_unchanged,
    forbid,
    points,
    randn,
    tensor,
    zeros,
)

from .launches import assert_answer, rounded

pytestmark = forbid("torch.nn.functional.scaled_dot_product_attention")


@points(1.5)
def test_one_part_is_attention(student):
    """Two heads, 64 keys, one part."""
    _assert_attention(student, *_inputs(1, 2, 64, 16), 1)


@points(2.5)
def test_parts_are_merged(student):
    """Two heads, 128 keys in four parts of 32; the scores of a later part are larger."""
    q, k, v = _inputs(1, 2, 128, 16)
    k *= 1 + torch.arange(128).view(1, 1, 128, 1) // 32
    _assert_attention(student, q, k, v, 4)


@points(1.5)
def test_sentences_and_heads(student):
    """Two sentences of three heads, in two parts."""
    _assert_attention(student, *_inputs(2, 3, 64, 16), 2)


@points(1.5)
def test_ragged_parts(student):
    """70 keys in three parts of 24, 24 and 22; 10 in four; 100 in one: no tile divides them."""
    for n, splits in ((70, 3), (10, 4), (100, 1)):
        _assert_attention(student, *_inputs(1, 2, n, 16), splits)


@points(1.5)
def test_parts_without_keys(student):
    """9 keys in six parts of two, the last has none; one key in eight parts."""
    for n, splits in ((9, 6), (1, 8)):
        _assert_attention(student, *_inputs(1, 2, n, 16), splits)


@points(1)
def test_large_scores_do_not_overflow(student):
    """Scores of 1000 in the first half, of 2000 in the second, and of -20000 in a head of their own;
    three parts. Then all scores are -4294967296.
    """
    q, k, v = zeros(1, 2, 16), zeros(1, 2, 64, 16), rounded(randn(1, 2, 64, 16))
    q[..., 0] = 4.0
    k[..., 0] = tensor([1000.0, 2000.0]).repeat_interleave(32)
    k[:, 1, :, 0] = -20000.0
    (o, lse, _), launch = student.launch("split_decode", q.float(), k.float(), v, 3)
    expected = torch.stack([v[0, 0, 32:].mean(dim=0), v[0, 1].mean(dim=0)]).unsqueeze(0)
    assert_answer(o, expected, launch, 1e-2, what="o")
    right = tensor([[2000.0, -20000.0]]) + tensor([[32.0, 64.0]]).log()
    assert_answer(lse, right.float(), launch, 1e-2, what="lse")
    k[..., 0], q[..., 0] = -(2.0**16), 4 * 2.0**16
    (o, _, _), launch = student.launch("split_decode", q.float(), k.float(), v, 1)
    assert_answer(o, v.mean(dim=2), launch, 1e-4, what="o where all scores are -2³²")


@points(0.5)
def test_log_sum_exp(student):
    """lse of all parts together: m + ln l, float32."""
    q, k, v = _inputs(1, 2, 128, 16)
    (_, lse, _), launch = student.launch("split_decode", 2 * q, k, v, 4)
    assert_answer(lse, _whole(2 * q, k, v)[1], launch, 1e-4, what="lse")


@points(1)
def test_each_part_has_its_keys(student):
    """10 keys in four parts are 3, 3, 3 and 1, and 9 keys in six parts 2, 2, 2, 2, 1 and none. All
    scores are 3: the log-sum-exp of a part is 3 and the logarithm of how many keys it has.
    """
    for n, counts in ((10, [3.0, 3.0, 3.0, 1.0]), (9, [2.0, 2.0, 2.0, 2.0, 1.0, 0.0])):
        q, k, v = (
            zeros(1, 2, 16).float(),
            zeros(1, 2, n, 16).float(),
            rounded(randn(1, 2, n, 16)),
        )
        q[..., 0], k[..., 0] = 12.0, 1.0  # √d = 4
        (_, _, part_lse), launch = student.launch("split_decode", q, k, v, len(counts))
        expected = (3 + tensor(counts).log()).expand(1, 2, -1).float()
        assert_answer(part_lse, expected, launch, 1e-5, what="part_lse")


@points(0.5)
def test_half_precision(student):
    """float16 in, float16 out; lse, and all sums, in float32. d = 64. Then each product of a query
    and a key is 90000; then a part adds up 32 values of 20000. float16 has no number for
    either.
    """
    q, k, v = (t.half() for t in _inputs(1, 2, 64, 64))
    (o, lse, _), launch = student.launch("split_decode", q, k, v, 2)
    expected = _whole(q, k, v)
    assert_answer(o, expected[0].half(), launch, atol=2e-3, rtol=2e-3, what="o")
    assert_answer(lse, expected[1], launch, 1e-4, what="lse")
    large = zeros(1, 2, 64, 64).half() + 300
    q = large[:, :, 0].contiguous()
    (o, _, _), launch = student.launch("split_decode", q, large, v, 2)
    means = v.float().mean(dim=2).half()
    assert_answer(o, means, launch, atol=2e-3, rtol=2e-3, what="o of equal scores")
    q, k, v = (t.half() for t in _inputs(1, 1, 64, 16))
    v = (20000 + 1000 * v.float()).half()
    (o, _, _), launch = student.launch("split_decode", q, k, v, 2)
    expected = _whole(q, k, v)[0].half()
    assert_answer(o, expected, launch, atol=0, rtol=2e-3, what="o of large values")


@points(2.5)
def test_the_keys_are_shared_out(student):
    """Counted: splits programs a head and one more, each key and value once, d + 3 numbers from
    each part at most.
    """
    q, k, v = _inputs(1, 2, 128, 16)
    (o, _, _), launch = student.launch("split_decode", q, k, v, 4)
    assert_answer(o, _whole(q, k, v)[0], launch, 1e-4, what="o")
    assert launch.kernels == 2, (
        f"{launch.kernels} kernels were launched: one for the parts, one to merge them."
    )
    assert launch.programs == 2 * (4 + 1), (
        f"{launch.programs} programs: each of two heads has 4 parts, and one program that merges."
    )
    loads = launch.loads.get("k", 0), launch.loads.get("v", 0)
    assert loads == (2 * 128 * 16, 2 * 128 * 16), (
        f"The kernels load {loads[0]} numbers of k and {loads[1]} of v. Each should be loaded once: "
        f"{2 * 128 * 16}."
    )
    stored = sum(launch.stores.values())
    assert 2 * 4 * 17 < stored <= 2 * 4 * 19 + 2 * 17, (
        f"Eight parts of 16 + 3 numbers, and two answers of 16 + 1, are {2 * 4 * 19 + 2 * 17}; the "
        f"kernels store {stored}."
    )


@points(0.5)
def test_the_wrapper_computes_nothing(student):
    """Counted: torch operations around the kernels. Arguments stay as they are."""
    _assert_attention(student, *_inputs(1, 2, 64, 16), 2)
    assert_unchanged()


@points(0.5)
def test_no_part_is_refused(student):
    """0 splits, or -2: ValueError with the number."""
    q, k, v = _inputs(1, 2, 64, 16)
    _assert_attention(student, q, k, v, 2)
    for splits in (0, -2):
        assert_refused(student.split_decode, q, k, v, splits, sizes=(splits,))


def _inputs(b, h, n, d):
    return (
        rounded(randn(b, h, d)),
        rounded(randn(b, h, n, d)),
        rounded(randn(b, h, n, d)),
    )


def _assert_attention(student, q, k, v, splits):
    (o, _, _), launch = student.launch("split_decode", q, k, v, splits)
    assert_answer(o, _whole(q, k, v)[0], launch, 1e-4, what="o")


def _whole(q, k, v):
    """(o, lse) in float32 by all scores at once."""
    s = torch.einsum("bhd,bhjd->bhj", q.double(), k.double()) * q.shape[-1] ** -0.5
    o = torch.einsum("bhj,bhjd->bhd", torch.softmax(s, dim=-1), v.double())
    return o.float(), torch.logsumexp(s, dim=-1).float()
