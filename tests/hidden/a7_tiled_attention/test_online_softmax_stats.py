"""online_softmax_stats: the maximum and the sum of a row that passes by in blocks."""

import torch

from autograder.suite import (
    arange,
    assert_close,
    assert_refused,
    assert_varies,
    call_twice,
    full,
    points,
    rand,
    randn,
    tensor,
)


@points(0.5)
def test_rows_have_their_maximum_and_their_sum(student):
    """Compared with the two formulas, written for the whole row at once. 12 elements in blocks of
    4.
    """
    x = 3 * randn(2, 3, 12)
    _check(call_twice(student.online_softmax_stats, x, 4), x)


@points(1)
def test_the_old_sum_shrinks_when_the_maximum_grows(student):
    """Each block holds a larger maximum than the one before. What was summed with the old one is
    too large.
    """
    x = (
        arange(12).view(12, 1) * tensor([[1.0, 0.3]])
    ).T  # a view that is not contiguous
    _check(student.online_softmax_stats(x, 2), x)


@points(0.5)
def test_the_maximum_never_falls(student):
    """Each block holds smaller elements than the one before: the first maximum stays."""
    x = -arange(12).view(1, 12) * tensor([[1.0], [0.3]])
    _check(student.online_softmax_stats(x, 2), x)


@points(1)
def test_the_block_size_does_not_matter(student):
    """Thirteen elements, equal ones and ones that climb: blocks of one, blocks that leave a rest,
    one block larger than the row.
    """
    x = 2 + arange(13) * tensor([[0.0], [0.3]])
    for block in (1, 4, 7, 13, 50):
        _check(student.online_softmax_stats(x, block), x)


@points(0.5)
def test_large_elements_do_not_overflow(student):
    """A row that climbs beyond 1000 and one that climbs towards -1000: exp(1000) is infinite. What
    is subtracted, and has each row its own?
    """
    x = tensor([[1e3], [-1e3]]) + 0.4 * arange(12)
    _check(student.online_softmax_stats(x, 4), x)
    steep = tensor([[1e3], [-1e3]]) + tensor(
        [0.0, 0.0, 0.0, 400.0] * 2
    )  # in blocks of four
    for dtype in (torch.float32, torch.float16):
        m, total = student.online_softmax_stats(steep.to(dtype), 4)
        assert_close(m, tensor([1400.0, -600.0]).float(), what="m")
        assert_close(total, tensor([2.0, 2.0]).float(), atol=2e-4, what="l")


@points(0.5)
def test_elements_far_below_zero_count(student):
    """All elements near -1200, and near -60000. Which maximum do you start from, before anything
    has passed?
    """
    x = tensor([[-1200.0], [-6e4]]) - _blocks_of_equal_maxima(4, 3)
    _check(student.online_softmax_stats(x, 4), x)


@points(1)
def test_blocks_of_minus_infinity_change_nothing(student):
    """The first block is masked keys, or the last two; one row is masked throughout: m = -inf and l
    = 0, never nan.
    """
    x = -_blocks_of_equal_maxima(4, 3).expand(3, 12).clone()
    x[0, :4] = -torch.inf
    x[1, 4:] = -torch.inf
    x[2] = -torch.inf
    _check(student.online_softmax_stats(x, 4), x)


@points(0.5)
def test_half_precision_has_float32_statistics(student):
    """3003 equal elements: float16 counts no further than 2048, bfloat16 no further than 256, and
    neither has a 3003. float32 stays float32.
    """
    m, total = student.online_softmax_stats(full((2, 8), 1.5, dtype=torch.float32), 4)
    assert_close(m, full((2,), 1.5, dtype=torch.float32), what="m")
    assert_close(total, full((2,), 8.0, dtype=torch.float32), what="l")
    for dtype in (torch.float16, torch.bfloat16):
        m, total = student.online_softmax_stats(full((2, 3003), 1.5, dtype=dtype), 429)
        assert_close(m, full((2,), 1.5, dtype=torch.float32), what="m")
        assert_close(total, full((2,), 3003.0, dtype=torch.float32), what="l")


@points(2)
def test_the_row_is_never_whole(student):
    """Counted: all numbers alive at once. They should be a few blocks, whatever the length of the
    row.
    """
    x = randn(3, 320)
    answer, cost = student.counted("online_softmax_stats", x, 40)
    _assert_answers(answer)
    assert cost.peak < 3 * 320, (
        f"With rows of 320 and blocks of 40, {cost.peak} numbers are alive at once, and x has "
        "960. Only a block and "
        "the two statistics are needed."
    )


@points(1)
def test_a_longer_row_needs_no_more_memory(student):
    """Counted: three times as many blocks pass by, one after the other, and the numbers alive at
    once stay as many. In float16 too, which becomes float32 block by block.
    """
    for dtype in (torch.float64, torch.float16):
        peaks = []
        for n in (320, 960):
            x = randn(3, n).to(dtype)
            answer, cost = student.counted("online_softmax_stats", x, 40)
            _assert_answers(answer)
            peaks.append(cost.peak)
        assert peaks[1] < 1.5 * peaks[0], (
            f"With rows of 320 in blocks of 40, {peaks[0]} numbers are alive at once, with rows "
            f"of 960 {peaks[1]}, in {str(dtype).removeprefix('torch.')}: memory grows with the "
            "row."
        )


@points(0.5)
def test_a_block_below_one_is_refused(student):
    """A block without elements never gets to the end, and one of -2 has no meaning: ValueError,
    with the number.
    """
    x = full((1, 6), 2.0)
    _check(student.online_softmax_stats(x, 6), x)
    assert_refused(student.online_softmax_stats, x, 0, sizes=(0,))
    assert_refused(student.online_softmax_stats, x, -2, sizes=(-2,))


def _assert_answers(answer):
    """What a test of memory needs: statistics that are finite and not all alike. Who computes
    nothing keeps nothing.
    """
    for statistic, name in zip(answer, ("m", "l"), strict=True):
        assert_varies(statistic, above=1e-9, what=name)


def _blocks_of_equal_maxima(block, count):
    """Numbers of 0 and more, [1, block * count]: a row minus these has the same maximum in every
    block.
    """
    x = 3 * rand(1, block * count)
    x[0, ::block] = 0.0
    return x


def _check(answer, x):
    m, total = answer
    largest = x.amax(dim=-1)
    safe = largest.masked_fill(largest == -torch.inf, 0.0)
    assert_close(m, largest, what="m")
    assert_close(total, torch.exp(x - safe.unsqueeze(-1)).sum(dim=-1), what="l")
