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
    num_layers=4,
    d_model=11,
    num_heads=6,
    num_kv_heads=2,
    d_head=5,
    d_ff=17,
    vocab_size=23,
)
"""A layer: W_q and W_o 2·11·30, W_k and W_v 2·11·10, the MLP 2·11·17: 1254 numbers. Four of them
and 11·23 = 253 to unembed: 5269. Four layers, since three is also heads over key heads."""


@points(1)
def test_weights_are_read_once_whatever_the_batch(student):
    """5269 numbers: 10 538 bytes in half precision, 21 076 in float32, for 1 text and for 9."""
    for batch, size, expected in ((1, 2, 10_538), (9, 2, 10_538), (9, 4, 21_076)):
        answer = student.decode_costs(SIZES, batch, 100, size)
        assert_equal(answer["weight_bytes"], expected, what='"weight_bytes"')
    assert_equal(
        set(answer),
        {"weight_bytes", "cache_bytes", "flops", "intensity"},
        what="the keys",
    )


@points(1)
def test_each_text_brings_its_own_cache(student):
    """A token is 2·4·2·5 = 80 numbers. 9 texts of 100 tokens: 144 000 bytes in half precision."""
    for batch, n, size, expected in (
        (9, 100, 2, 144_000),
        (1, 1, 4, 320),
        (4, 7, 2, 4480),
    ):
        answer = student.decode_costs(SIZES, batch, n, size)
        assert_equal(answer["cache_bytes"], expected, what='"cache_bytes"')


@points(1)
def test_operations_of_all_texts(student):
    """A text: 2·5269 for the weights and 4·4·30·n for its attention. 9 texts of 100 tokens: 526 842."""
    for batch, n, expected in ((9, 100, 526_842), (1, 1, 11_018), (4, 7, 55_592)):
        answer = student.decode_costs(SIZES, batch, n, 2)
        assert_equal(answer["flops"], expected, what='"flops"')


@points(0.5)
def test_the_intensity_is_operations_for_each_byte(student, reference):
    """526 842 operations for 10 538 + 144 000 bytes; and of one text."""
    answer = student.decode_costs(SIZES, 9, 100, 2)
    assert_close(answer["intensity"], 526_842 / 154_538, what='"intensity"')
    answer = student.decode_costs(SIZES, 1, 1, 4)
    assert_close(answer["intensity"], 11_018 / 21_396, what='"intensity"')
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
        answer["cache_bytes"], 80 * (2**60 + 1), what='"cache_bytes" of a long text'
    )
    assert_equal(
        answer["flops"], 10_538 + 480 * (2**60 + 1), what='"flops" of a long text'
    )
    large = SimpleNamespace(**{**vars(SIZES), "vocab_size": 2**60 + 1})
    answer = student.decode_costs(large, 1, 1, 1)
    assert_equal(
        answer["weight_bytes"],
        5016 + 11 * (2**60 + 1),
        what='"weight_bytes" of a large model',
    )
