"""growth_of_costs: storage is linear, traffic and operations are not."""

import math

from autograder.suite import assert_close, assert_equal, points, uses

pytestmark = [uses("hbm_traffic")]


@points(1)
def test_storage_is_linear(student):
    """O and the log-sum-exp have one row a token, whatever the tiles: twice the tokens, twice the bytes."""
    for n, d, block_q in ((7, 3, 2), (1024, 64, 128)):
        assert_close(student.growth_of_costs(n, d, block_q, 2)["storage"], 1.0, what="storage")


@points(2)
def test_traffic_is_not_linear(student):
    """One query tile at n, two at 2n: three times the bytes. Seven tiles, then fourteen: 8 units, then 30."""
    assert_close(student.growth_of_costs(96, 8, 96, 2)["traffic"], math.log2(3), what="traffic")
    assert_close(student.growth_of_costs(35, 8, 5, 4)["traffic"], math.log2(2 * 15 / 8), what="traffic")


@points(0.5)
def test_traffic_nears_the_square(student):
    """With many tiles the exponent is close to 2; as long as one tile takes all, it is 1."""
    assert_close(student.growth_of_costs(131072, 64, 128, 2)["traffic"], math.log2(2 * 2049 / 1025), what="traffic")
    assert_close(student.growth_of_costs(13, 5, 64, 2)["traffic"], 1.0, what="traffic")


@points(1)
def test_operations_are_quadratic(student):
    """Tiles change where scores live, not how many there are."""
    assert_close(student.growth_of_costs(13, 5, 4, 2)["flops"], 2.0, what="flops")


@points(0.5)
def test_all_three_costs_are_named(student):
    """A dict with "storage", "traffic" and "flops"."""
    assert_equal(sorted(student.growth_of_costs(9, 5, 4, 2)), ["flops", "storage", "traffic"])
