"""hbm_traffic: bytes that pass between main memory and chip."""

from autograder.suite import assert_equal, assert_refused, points


@points(1.5)
def test_the_naive_way_moves_the_matrix_four_times(student):
    """S is written and read, P is written and read; Q, K, V and O move once each."""
    for n, d in ((7, 3), (100, 40), (4096, 64)):
        traffic = student.hbm_traffic(n, d, 5, 3, 2)
        assert_equal(traffic["naive"], 2 * (4 * n * d + 4 * n * n), what="naive")


@points(1.5)
def test_every_query_tile_reads_all_keys_and_values(student):
    """Sizes that divide: 12 tokens in query tiles of 3 are four walks over K and V. Q and O move once."""
    assert_equal(student.hbm_traffic(12, 5, 3, 4, 4)["tiled"], 4 * (120 + 4 * 120), what="tiled")
    assert_equal(student.hbm_traffic(4096, 64, 128, 64, 2)["tiled"], 2 * (1 + 32) * 2 * 4096 * 64, what="tiled")


@points(1)
def test_a_ragged_last_tile_is_a_tile(student):
    """13 tokens in tiles of 4 are four tiles, and 3 tokens in tiles of 128 are one."""
    assert_equal(student.hbm_traffic(13, 5, 4, 2, 1)["tiled"], 130 + 4 * 130, what="tiled")
    assert_equal(student.hbm_traffic(3, 5, 128, 2, 1)["tiled"], 30 + 30, what="tiled")


@points(0.5)
def test_bytes_follow_the_element_size(student):
    """Everything is counted in bytes, naive and tiled."""
    one, four = student.hbm_traffic(9, 5, 4, 2, 1), student.hbm_traffic(9, 5, 4, 2, 4)
    assert_equal(one, {"naive": 180 + 324, "tiled": 90 + 270})
    assert_equal(four, {name: 4 * count for name, count in one.items()})


@points(0.5)
def test_key_tiles_do_not_change_the_traffic(student):
    """How K is cut decides what fits on the chip, not how often it is read."""
    counts = [student.hbm_traffic(13, 5, 4, block_k, 2)["tiled"] for block_k in (1, 3, 13, 100)]
    assert_equal(counts, 4 * [2 * 650], what="tiled")


@points(0.5)
def test_numbers_are_whole(student):
    """Bytes are counted: int, not float."""
    traffic = student.hbm_traffic(9, 5, 4, 2, 2)
    assert [type(count) for count in traffic.values()] == [int, int], (
        "Both counts should be int: // instead of /, or -(-n // block)."
    )


@points(0.5)
def test_sizes_below_one_are_refused(student):
    """No tokens, or tiles without rows: ValueError with the number."""
    assert_refused(student.hbm_traffic, 9, 5, 0, 2, 2, sizes=(0,))
    assert_refused(student.hbm_traffic, -3, 5, 4, 2, 2, sizes=(-3,))
