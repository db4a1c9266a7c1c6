"""kv_cache_bytes: keys and values of every layer, token and row."""

from autograder.suite import assert_equal, assert_refused, config, points


def _config(num_layers, num_heads, num_kv_heads, d_head, d_model=None):
    return config(
        num_layers=num_layers,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        d_head=d_head,
        d_model=d_model or num_heads * d_head,
    )


@points(1)
def test_the_two_known_models(student):
    """The largest GPT-2 at 1024 tokens takes 300 MiB in half precision, GPT-3 at 2048 takes 9
    GiB.
    """
    xl, large = _config(48, 25, 25, 64), _config(96, 96, 96, 128)
    assert_equal(student.kv_cache_bytes(xl, 1024, 1, 2), 314_572_800, what="the bytes")
    assert_equal(
        student.kv_cache_bytes(xl, 1024, 1, 4), 629_145_600, what="the bytes in float32"
    )
    assert_equal(
        student.kv_cache_bytes(large, 2048, 1, 2), 9_663_676_416, what="the bytes"
    )


@points(1)
def test_the_key_heads_count_not_the_query_heads(student):
    """Two key heads of five features serve six query heads: 2 · 3 layers · 2 heads · 5 numbers a
    token. The model may be wider than its heads.
    """
    assert_equal(
        student.kv_cache_bytes(_config(3, 6, 2, 5), 1, 1, 1),
        60,
        what="the bytes of one token",
    )
    assert_equal(
        student.kv_cache_bytes(_config(3, 6, 6, 5, d_model=78), 1, 1, 1),
        180,
        what="the bytes of one token",
    )


@points(1)
def test_every_size_multiplies(student):
    """7 tokens, 11 rows, 4 bytes: each doubles the result when it is doubled."""
    sizes = _config(3, 6, 2, 5)
    assert_equal(
        student.kv_cache_bytes(sizes, 7, 11, 4), 60 * 7 * 11 * 4, what="the bytes"
    )
    assert_equal(
        student.kv_cache_bytes(sizes, 14, 11, 4),
        60 * 14 * 11 * 4,
        what="the bytes of twice the tokens",
    )
    assert_equal(
        student.kv_cache_bytes(sizes, 7, 22, 4),
        60 * 7 * 22 * 4,
        what="the bytes of twice the rows",
    )
    assert_equal(
        student.kv_cache_bytes(sizes, 7, 11, 2),
        60 * 7 * 11 * 2,
        what="the bytes in half precision",
    )


@points(0.5)
def test_large_numbers_stay_exact(student):
    """A million tokens for ten thousand users, as an int to the byte."""
    expected = 2 * 127 * 13 * 131 * 1_000_003 * 10_007 * 4
    answer = student.kv_cache_bytes(_config(127, 26, 13, 131), 1_000_003, 10_007, 4)
    assert_equal(answer, expected, what="the bytes")
    assert isinstance(answer, int), "the number of bytes should be an int"


@points(0.5)
def test_sizes_below_one_are_refused(student):
    """No tokens, minus three rows, no bytes: ValueError with the number."""
    assert_refused(student.kv_cache_bytes, _config(3, 6, 2, 5), 0, 7, 2, sizes=(0,))
    assert_refused(student.kv_cache_bytes, _config(3, 6, 2, 5), 7, -3, 2, sizes=(-3,))
    assert_refused(student.kv_cache_bytes, _config(3, 6, 2, 5), 7, 3, 0, sizes=(0,))
