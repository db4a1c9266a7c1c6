"""online_softmax_stats: the maximum and the sum of a row that passes by in blocks."""

import torch

from autograder.suite import arange, assert_close, assert_refused, call_twice, full, points, randn, tensor


@points(1)
def test_rows_have_their_maximum_and_their_sum(student):
    """Compared with the two formulas, written for the whole row at once. 13 elements in blocks of 5."""
    x = 3 * randn(2, 3, 13)
    _check(call_twice(student.online_softmax_stats, x, 5), x)


@points(2)
def test_the_old_sum_shrinks_when_the_maximum_grows(student):
    """Each block holds a larger maximum than the one before. What was summed with the old one is too large."""
    x = arange(11).view(1, 11) * tensor([[1.0], [0.3]])
    _check(student.online_softmax_stats(x, 2), x)


@points(1)
def test_the_block_size_does_not_matter(student):
    """Blocks of one, blocks that leave a rest, one block that is larger than the row."""
    x = 4 * randn(3, 13)
    for block in (1, 4, 7, 50):
        _check(student.online_softmax_stats(x, block), x)


@points(1)
def test_large_elements_do_not_overflow(student):
    """Elements near 1000: exp(1000) is infinite. What is subtracted before?"""
    x = 1e3 + 5 * randn(2, 11)
    _check(student.online_softmax_stats(x, 3), x)
    x = x.float()
    _check(student.online_softmax_stats(x, 3), x, atol=1e-3)


@points(1)
def test_elements_far_below_zero_count(student):
    """All elements near -1200, and near -60000. Which maximum do you start from, before anything has passed?"""
    x = tensor([[-1200.0], [-6e4]]) + 3 * randn(2, 11)
    _check(student.online_softmax_stats(x, 3), x)


@points(1)
def test_blocks_of_minus_infinity_change_nothing(student):
    """The first blocks are masked keys; one row is masked throughout: m = -inf and l = 0, and nothing is nan."""
    x = randn(3, 13) - 200
    x[0, :5] = -torch.inf
    x[1, 4:] = -torch.inf
    x[2] = -torch.inf
    _check(student.online_softmax_stats(x, 4), x)


@points(0.5)
def test_half_precision_has_float32_statistics(student):
    """float16 overflows at 65504: 300 equal elements are a sum that it holds, but not exactly."""
    m, total = student.online_softmax_stats(full((2, 301), 1.5, dtype=torch.float16), 7)
    assert_close(m, full((2,), 1.5, dtype=torch.float32), what="m")
    assert_close(total, full((2,), 301.0, dtype=torch.float32), what="l")


@points(1)
def test_the_row_is_never_whole(student):
    """Counted: all numbers alive at once. They should be a few blocks, whatever the length of the row."""
    cost = student.cost("online_softmax_stats", randn(3, 1000), 10)
    assert cost.peak < 3 * 500, (
        f"With rows of 1000 and blocks of 10, {cost.peak} numbers are alive at once. Only a block and the two "
        "statistics are needed."
    )


@points(0.5)
def test_a_block_of_zero_is_refused(student):
    """A block without elements never gets to the end: ValueError, with the number."""
    assert_refused(student.online_softmax_stats, randn(2, 3), 0, sizes=(0,))


def _check(answer, x, atol=2e-6):
    m, total = answer
    largest = x.amax(dim=-1)
    safe = largest.masked_fill(largest == -torch.inf, 0.0)
    assert_close(m, largest, what="m")
    assert_close(total, torch.exp(x - safe.unsqueeze(-1)).sum(dim=-1), atol=atol, what="l")
