"""merge_stats: partial softmax sums of disjoint sets of keys become those of both."""

import torch

from autograder.suite import (
    arange,
    assert_close,
    call_twice,
    full,
    points,
    randn,
    tensor,
    zeros,
)


@points(2)
def test_two_halves_make_the_whole(student):
    """Keys 0 to 4 and keys 5 to 12, each with its own maximum, against all thirteen at once."""
    s, v = 3 * randn(3, 13), randn(13, 5)
    s[0, 3] = s[1, 9] = 9.0  # so that either side has the larger maximum in some row
    merged = call_twice(
        student.merge_stats, _stats(s[:, :5], v[:5]), _stats(s[:, 5:], v[5:])
    )
    _assert_same(merged, _stats(s, v))


@points(1)
def test_with_equal_maxima_sums_just_add(student):
    """Nothing has to shrink here, so l and o are plain sums. o is not divided by l: that comes at
    the very end.
    """
    a = (tensor([1.0, 2.0]), tensor([3.0, 1.0]), tensor([[6.0], [1.0]]))
    b = (tensor([1.0, 2.0]), tensor([5.0, 2.5]), tensor([[1.0], [7.0]]))
    _assert_same(
        student.merge_stats(a, b),
        (tensor([1.0, 2.0]), tensor([8.0, 3.5]), tensor([[7.0], [8.0]])),
    )


@points(1)
def test_the_side_with_the_smaller_maximum_shrinks(student):
    """Once it is the first, once the second. Both l and o of that side were made with a maximum
    that is too small.
    """
    s, v = arange(7).view(1, 7), randn(7, 3)
    low, high, both = _stats(s[:, :3], v[:3]), _stats(s[:, 3:], v[3:]), _stats(s, v)
    _assert_same(student.merge_stats(low, high), both)
    _assert_same(student.merge_stats(high, low), both)


@points(1)
def test_grouping_does_not_matter(student):
    """(A + B) + C = A + (B + C). As many rows as values here: which axis does your factor belong
    to?
    """
    s, v = randn(4, 9) * tensor([[1.0], [9.0], [3.0], [20.0]]), randn(9, 4)
    a, b, c = (_stats(s[:, i : i + 3], v[i : i + 3]) for i in (0, 3, 6))
    left = student.merge_stats(student.merge_stats(a, b), c)
    right = student.merge_stats(a, student.merge_stats(b, c))
    _assert_same(left, _stats(s, v))
    _assert_same(right, _stats(s, v))


@points(0.5)
def test_merging_with_nothing_changes_nothing(student):
    """The empty set is (-inf, 0, 0), on the left or on the right. nan? Look for -inf minus -inf."""
    some, nothing = (
        _stats(randn(3, 5), randn(5, 2)),
        (full((3,), -torch.inf), zeros(3), zeros(3, 2)),
    )
    _assert_same(student.merge_stats(nothing, some), some)
    _assert_same(student.merge_stats(some, nothing), some)


@points(0.75)
def test_rows_are_empty_for_themselves(student):
    """Of four rows one has no keys on either side, one none on the left, one none on the right, and
    one has keys on both.
    """
    s, v = randn(4, 8), randn(8, 2)
    left, right, both = _stats(s[:, :3], v[:3]), _stats(s[:, 3:], v[3:]), _stats(s, v)
    left, right = _emptied(left, 0, 1), _emptied(right, 0, 2)
    expected = _emptied(both, 0)
    for part in range(3):
        expected[part][1] = right[part][1]
        expected[part][2] = left[part][2]
    _assert_same(student.merge_stats(left, right), expected)


@points(0.75)
def test_nothing_and_nothing_is_nothing(student):
    """Two empty sets: m stays -inf (a finite stand-in belongs into the exponent only), l and o are
    0.
    """
    nothing = (full((3,), -torch.inf), zeros(3), zeros(3, 2))
    empty = student.merge_stats(nothing, nothing)
    _assert_same(empty, nothing)
    s, v = randn(3, 5) - 300, randn(5, 2)
    _assert_same(student.merge_stats(empty, _stats(s, v)), _stats(s, v))


@points(1)
def test_extreme_scores_stay_finite(student):
    """One row has the maximum 1000, one -60000, on both sides: every exponent should be 0 or
    negative, in each row.
    """
    s, v = _equal_maxima(2, 7, cut=3) + tensor([[1e3], [-6e4]]), randn(7, 3)
    merged = student.merge_stats(_stats(s[:, :3], v[:3]), _stats(s[:, 3:], v[3:]))
    _assert_same(merged, _stats(s, v))


@points(0.5)
def test_several_batch_dimensions(student):
    """m and l have any number of dimensions, o one more, and the first two may be swapped in
    memory.
    """
    s, v = _equal_maxima(2, 3, 5, 8, cut=1), randn(2, 3, 8, 2)
    parts = (
        _stats(s[..., :1], v[..., :1, :]),
        _stats(s[..., 1:], v[..., 1:, :]),
        _stats(s, v),
    )
    a, b, both = (tuple(x.transpose(0, 1) for x in part) for part in parts)
    _assert_same(student.merge_stats(a, b), both)


@points(0.5)
def test_the_dtype_stays(student):
    """float32 in, float32 out."""
    s, v = _equal_maxima(3, 6, cut=2).float(), randn(6, 2).float()
    merged = student.merge_stats(_stats(s[:, :2], v[:2]), _stats(s[:, 2:], v[2:]))
    _assert_same(merged, _stats(s, v), atol=1e-5)


def _equal_maxima(*shape, cut):
    """Scores below 0 whose two parts, cut on the last axis, both have the maximum 0: nothing has to
    shrink.
    """
    s = -randn(*shape).abs()
    s[..., cut - 1] = s[..., -1] = 0.0
    return s


def _stats(s, v):
    """(m, l, o) of scores [..., N_q, N_k] and values [..., N_k, d_v]."""
    m = s.amax(dim=-1)
    p = torch.exp(s - m.unsqueeze(-1))
    return m, p.sum(dim=-1), p @ v


def _emptied(stats, *rows):
    """The statistics with no keys in these rows."""
    emptied = tuple(part.clone() for part in stats)
    for part, nothing in zip(emptied, (-torch.inf, 0.0, 0.0), strict=True):
        part[list(rows)] = nothing
    return emptied


def _assert_same(merged, expected, atol=2e-6):
    for mine, other, name in zip(merged, expected, ("m", "l", "o"), strict=True):
        assert_close(mine, other, atol=atol, what=name)
