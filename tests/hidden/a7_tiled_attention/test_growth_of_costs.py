"""growth_of_costs: storage is linear, traffic and operations are not."""

import math

from autograder.suite import assert_close, points, uses

pytestmark = [uses("hbm_traffic")]


@points(0.5)
def test_storage_is_linear(student):
    """O and the log-sum-exp have one row a token, whatever the tiles: twice the tokens, twice the
    bytes.
    """
    for n, d, block_q in ((7, 3, 2), (1024, 64, 128)):
        growth = student.growth_of_costs(n, d, block_q, 2)
        assert growth["flops"] > growth["storage"], (
            "Operations grow faster than storage."
        )
        assert_close(growth["storage"], 1.0, what="storage")


@points(1)
def test_operations_are_quadratic(student):
    """Tiles change where scores live, not how many there are."""
    assert_close(student.growth_of_costs(13, 5, 4, 2)["flops"], 2.0, what="flops")


@points(1.5)
def test_traffic_grows_faster_with_a_second_tile(student):
    """One query tile at n and two at 2n: three times the bytes. As long as one tile takes all,
    twice the bytes. The exponents of the two are as ln 3 to ln 2. Tiles of half that size count
    again.
    """
    second, first = _traffic(student, 96), _traffic(student, 13)
    assert_close(
        second / first,
        math.log2(3),
        what="traffic from 96 to 192 in tiles of 96, over that from 13 to 26,",
    )
    assert_close(
        _traffic(student, 96, 48) / first,
        math.log2(
            10 / 3
        ),  # two tiles: 2 + 4 units; then four tiles of twice the size: 2 (2 + 8)
        what="traffic from 96 to 192 in tiles of 48, over that from 13 to 26,",
    )


@points(0.5)
def test_traffic_of_ragged_tiles(student):
    """With 740 tokens there are eight tiles of 96, then sixteen: 9 units, then 17, of twice the
    size.
    """
    ragged, first = _traffic(student, 740), _traffic(student, 13)
    assert_close(
        ragged / first,
        math.log2(2 * 17 / 9),
        what="traffic from 740 to 1480, over that from 13 to 26,",
    )


@points(0.5)
def test_traffic_nears_the_square(student):
    """With 1024 tiles the exponent is close to twice that of a single tile."""
    many, first = _traffic(student, 98304), _traffic(student, 13)
    assert_close(
        many / first,
        math.log2(2 * 2049 / 1025),
        what="traffic with 1024 tiles, over that with one,",
    )


def _traffic(student, n, block_q=96):
    """The exponent of the traffic from n to 2n tokens, in tiles of block_q."""
    exponent = student.growth_of_costs(n, 8, block_q, 2)["traffic"]
    assert isinstance(exponent, float), "The exponent of the traffic should be a float."
    assert exponent > 0, (
        "Twice the tokens have more traffic: the exponent of the traffic should be above 0."
    )
    return exponent
