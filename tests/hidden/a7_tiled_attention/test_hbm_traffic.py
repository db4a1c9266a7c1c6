"""hbm_traffic: bytes that pass between main memory and chip."""

from autograder.suite import assert_equal, assert_refused, points


@points(1)
def test_the_naive_way_moves_the_matrix_four_times(student):
    """S is written and read, P is written and read: what is left of 14 tokens when those of 7 are
    taken away twice.
    """
    double, once = (student.hbm_traffic(n, 3, 5, 3, 1)["naive"] for n in (14, 7))
    assert_equal(
        double - 2 * once,
        4 * (14 * 14 - 2 * 7 * 7),
        what="naive at 14 tokens, less twice that at 7,",
    )


@points(0.5)
def test_the_naive_way_moves_four_rows_a_token(student):
    """Q, K, V and O move once each: what three more columns add to 7 tokens."""
    wide, narrow = (student.hbm_traffic(7, d, 5, 3, 1)["naive"] for d in (8, 5))
    assert_equal(wide - narrow, 4 * 7 * 3, what="naive at d = 8, less that at d = 5,")


@points(1)
def test_every_query_tile_reads_all_keys_and_values(student):
    """Sizes that divide: 12 tokens in query tiles of 3 walk over K and V four times, in tiles of 12
    once.
    """
    four, one = (
        student.hbm_traffic(12, 5, block_q, 4, 1)["tiled"] for block_q in (3, 12)
    )
    assert_equal(
        four - one,
        3 * 120,
        what="tiled with query tiles of 3, less that with tiles of 12,",
    )


@points(0.5)
def test_one_query_tile_moves_everything_once(student):
    """One tile takes all queries: Q, K, V and O move once each."""
    assert_equal(student.hbm_traffic(12, 5, 12, 4, 1)["tiled"], 4 * 60, what="tiled")


@points(1)
def test_a_ragged_last_tile_is_a_tile(student):
    """13 tokens in tiles of 4 are four tiles, in tiles of 13 they are one, and so they are in tiles
    of 128.
    """
    large, four, one = (
        student.hbm_traffic(13, 5, block_q, 2, 1)["tiled"] for block_q in (128, 4, 13)
    )
    assert_equal(
        four - one,
        3 * 130,
        what="tiled with query tiles of 4, less that with tiles of 13,",
    )
    assert_equal(
        large - one,
        0,
        what="tiled with query tiles of 128, less that with tiles of 13,",
    )


@points(0.5)
def test_bytes_follow_the_element_size(student):
    """Everything is counted in bytes, naive and tiled."""
    one, four = (student.hbm_traffic(12, 5, 4, 3, size) for size in (1, 4))
    assert all(count > 0 for count in one.values()), (
        "Something moves, so neither count is 0."
    )
    assert_equal(four, {name: 4 * count for name, count in one.items()})


@points(0.5)
def test_key_tiles_do_not_change_the_traffic(student):
    """How K is cut decides what fits on the chip, not how often it is read. One query tile."""
    counts = [
        student.hbm_traffic(12, 5, 12, block_k, 1)["tiled"]
        for block_k in (1, 3, 12, 100)
    ]
    assert_equal(counts, 4 * [240], what="tiled")


@points(0.5)
def test_numbers_are_whole(student):
    """Bytes are counted: int, not float."""
    traffic = student.hbm_traffic(12, 5, 4, 2, 2)
    assert [type(count) for count in traffic.values()] == [int, int], (
        "Both counts should be int: // instead of /, or -(-n // block)."
    )
    assert all(count >= 480 for count in traffic.values()), (
        "Q, K, V and O alone are 480 bytes."
    )


@points(0.5)
def test_sizes_below_one_are_refused(student):
    """No tokens, or tiles without rows: ValueError with the number. A size of 1 is one."""
    smallest = student.hbm_traffic(1, 1, 1, 1, 1)
    assert_equal(sorted(smallest), ["naive", "tiled"])
    assert all(count >= 4 for count in smallest.values()), (
        "Q, K, V and O alone are 4 bytes."
    )
    sizes = {"n": 9, "d": 5, "block_q": 4, "block_k": 3, "bytes_per_element": 2}
    for name in sizes:
        for wrong in (0, -7):
            assert_refused(
                student.hbm_traffic, **{**sizes, name: wrong}, sizes=(wrong,)
            )
