"""decode_costs: operations and bytes of one decoding step, counted by hand."""

from types import SimpleNamespace

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_equal,
    assert_refused,
    points,
)

SIZES = SimpleNamespace(
    num_layers=3,
    d_model=11,
    num_heads=6,
    num_kv_heads=2,
    d_head=5,
    d_ff=17,
    vocab_size=23,
)
"""A layer: W_q and W_o 2·11·30, W_k and W_v 2·11·10, the MLP 2·11·17: 1254 numbers. Three of them
and 11·23 = 253 to unembed: 4015."""


@points(1)
def test_weights_are_read_once_whatever_the_batch(student):
    """4015 numbers: 8030 bytes in half precision, 16 060 in float32, for 1 text and for 9."""
    for batch, size, expected in ((1, 2, 8030), (9, 2, 8030), (9, 4, 16_060)):
        answer = student.decode_costs(SIZES, batch, 100, size)
        assert_equal(answer["weight_bytes"], expected, what='"weight_bytes"')
    assert_equal(
        set(answer),
        {"weight_bytes", "cache_bytes", "flops", "intensity"},
        what="the keys",
    )


@points(1)
def test_each_text_brings_its_own_cache(student):
    """A token is 2·3·2·5 = 60 numbers. 9 texts of 100 tokens: 108 000 bytes in half precision."""
    for batch, n, size, expected in (
        (9, 100, 2, 108_000),
        (1, 1, 4, 240),
        (4, 7, 2, 3360),
    ):
        answer = student.decode_costs(SIZES, batch, n, size)
        assert_equal(answer["cache_bytes"], expected, what='"cache_bytes"')


@points(1)
def test_operations_of_all_texts(student):
    """A text: 2·4015 for the weights and 4·3·30·n for its attention. 9 texts of 100 tokens: 396 270."""
    for batch, n, expected in ((9, 100, 396_270), (1, 1, 8390), (4, 7, 42_200)):
        answer = student.decode_costs(SIZES, batch, n, 2)
        assert_equal(answer["flops"], expected, what='"flops"')


@points(0.5)
def test_the_intensity_is_operations_for_each_byte(student, reference):
    """396 270 operations for 8030 + 108 000 bytes; and of one text."""
    answer = student.decode_costs(SIZES, 9, 100, 2)
    assert_close(answer["intensity"], 396_270 / 116_030, what='"intensity"')
    answer = student.decode_costs(SIZES, 1, 1, 4)
    assert_close(answer["intensity"], 8390 / 16_300, what='"intensity"')
    other = SimpleNamespace(**{**vars(SIZES), "num_kv_heads": 3})
    assert_close_in_turn(
        student.decode_costs,
        reference.decode_costs,
        SIZES,
        5,
        30,
        2,
        others=(other, 6, 31, 4),
    )


@points(0.5)
def test_sizes_below_one_are_refused(student):
    """batch, n or bytes_per_element is 0: ValueError with the 0. Counts are exact beyond 2**53."""
    for sizes in ((0, 5, 2), (3, 0, 2), (3, 5, 0), (-1, 5, 2)):
        assert_refused(student.decode_costs, SIZES, *sizes, sizes=(min(sizes),))
    answer = student.decode_costs(SIZES, 1, 2**60 + 1, 1)
    assert_equal(
        answer["cache_bytes"], 60 * (2**60 + 1), what='"cache_bytes" of a long text'
    )
    assert_equal(
        answer["flops"], 8030 + 360 * (2**60 + 1), what='"flops" of a long text'
    )
    large = SimpleNamespace(**{**vars(SIZES), "vocab_size": 2**60 + 1})
    answer = student.decode_costs(large, 1, 1, 1)
    assert_equal(
        answer["weight_bytes"],
        3762 + 11 * (2**60 + 1),
        what='"weight_bytes" of a large model',
    )
