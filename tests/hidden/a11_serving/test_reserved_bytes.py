"""reserved_bytes: what texts need, and what two kinds of cache reserve for them."""

from types import SimpleNamespace

from autograder.suite import assert_close_in_turn, assert_equal, assert_refused, points

CONFIG = SimpleNamespace(num_layers=3, num_kv_heads=5, d_head=7)
"""A token has 2 · 3 · 5 · 7 = 210 numbers."""


@points(1)
def test_the_tokens_alone_are_needed(student):
    """Texts of 9, 17 and 1 tokens, 2 bytes a number: 27 · 420 = 11 340 bytes."""
    answer = student.reserved_bytes([9, 17, 1], CONFIG, 8, 100, 2)
    assert_equal(answer["needed"], 11_340, what='"needed"')


@points(1)
def test_a_contiguous_cache_reserves_the_capacity_for_each_text(student):
    """Three texts of at most 100 tokens: 300 · 420 = 126 000 bytes; of at most 17: 21 420."""
    answer = student.reserved_bytes([9, 17, 1], CONFIG, 8, 100, 2)
    assert_equal(answer["contiguous"], 126_000, what='"contiguous"')
    answer = student.reserved_bytes([9, 17, 1], CONFIG, 8, 17, 2)
    assert_equal(answer["contiguous"], 21_420, what='"contiguous"')


@points(1.5)
def test_blocks_are_rounded_up_for_each_text(student):
    """Blocks of 8 for texts of 9, 17 and 1: 2 + 3 + 1 blocks, 48 tokens, 20 160 bytes. Texts of 8 and
    16 fill theirs. Blocks of 1 waste nothing.
    """
    answer = student.reserved_bytes([9, 17, 1], CONFIG, 8, 100, 2)
    assert_equal(answer["paged"], 20_160, what='"paged"')
    answer = student.reserved_bytes([8, 16], CONFIG, 8, 100, 4)
    assert_equal(
        answer["paged"], 20_160, what='"paged", of texts that fill their blocks'
    )
    answer = student.reserved_bytes([9, 17, 1], CONFIG, 1, 100, 2)
    assert_equal(answer["paged"], 11_340, what='"paged", in blocks of one token')
    assert_equal(set(answer), {"needed", "contiguous", "paged"}, what="the keys")


@points(0.5)
def test_lengths_that_cannot_be_are_refused(student, reference):
    """0 tokens, and 101 where 100 are possible: ValueError with the length and the capacity."""
    assert_refused(student.reserved_bytes, [9, 0], CONFIG, 8, 100, 2, sizes=(0, 100))
    assert_refused(
        student.reserved_bytes, [9, 101], CONFIG, 8, 100, 2, sizes=(101, 100)
    )
    answer = student.reserved_bytes([100, 1], CONFIG, 8, 100, 2)
    assert_equal(
        answer["needed"], 42_420, what='"needed", of a text as long as the capacity'
    )
    answer = student.reserved_bytes([], CONFIG, 8, 100, 2)
    assert_equal(answer["contiguous"], 0, what='"contiguous", of no text')
    large = SimpleNamespace(num_layers=1, num_kv_heads=2**30 + 1, d_head=2**30 + 1)
    answer = student.reserved_bytes([1], large, 1, 1, 1)
    expected = dict.fromkeys(answer, 2 * (2**30 + 1) ** 2)
    assert_equal(answer, expected, what="bytes beyond 2**53")
    other = SimpleNamespace(num_layers=3, num_kv_heads=4, d_head=7)
    assert_close_in_turn(
        student.reserved_bytes,
        reference.reserved_bytes,
        [9, 17, 1],
        CONFIG,
        8,
        100,
        2,
        others=([9, 16, 1], other, 7, 99, 4),
    )
