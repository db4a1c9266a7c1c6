"""score_std: a measurement that comes out near the root of the width."""

import math
import statistics

from autograder.suite import assert_refused, points

PLANT = """
def plant():
    import random
    import numpy
    torch.manual_seed(5)
    numpy.random.seed(5)
    random.seed(5)
"""
PEEK = """
def peek():
    import random
    import numpy
    return [torch.rand(1).item(), float(numpy.random.rand()), random.random()]
"""


@points(1.5)
def test_the_spread_grows_with_the_root_of_the_width(student):
    """Multiply your result by itself: it should be near d, at every width. Is there one dot product
    per pair?
    """
    for d, pairs in ((1, 6000), (7, 4000), (50, 1500), (300, 1000)):
        measured = student.score_std(d, pairs, 3)
        assert abs(float(measured) / math.sqrt(d) - 1) < 0.09, (
            f"`score_std({d}, {pairs}, 3)` is {float(measured):.4g}, which is not near the "
            f"root of {d}."
        )


@points(1)
def test_it_is_a_measurement_of_independent_pairs(student):
    """Small samples scatter: other seeds must give other numbers, around the root of d. A formula
    does not scatter; a query shared by all pairs scatters far too much, and a query without a key
    too little: with d = 1 and 30 pairs, the spread of products scatters by about 0.24 from seed to
    seed, that of single numbers by 0.13.
    """
    many = [float(student.score_std(2, 4000, seed)) for seed in range(8)]
    assert len(set(many)) == 8, "Eight seeds should give eight different measurements."
    assert all(abs(m / math.sqrt(2) - 1) < 0.12 for m in many), (
        "With d = 2 and 4000 pairs every seed should come near 1.41. Has every pair its own "
        "query and its own key?"
    )
    scatter = statistics.stdev(
        float(student.score_std(1, 30, seed)) for seed in range(120)
    )
    assert scatter > 0.17, (
        f"With d = 1 and 30 pairs seeds scatter by {scatter:.2g} only. Is every "
        "product made of a query and of a key of its own?"
    )


@points(1)
def test_the_same_seed_gives_the_same_float(student):
    """Everything random comes from the seed, and the result is a Python float (not a tensor)."""
    first, second = student.score_std(6, 50, 11), student.score_std(6, 50, 11)
    assert isinstance(first, float), (
        f"score_std should return a Python float, not {type(first).__name__}."
    )
    assert first == second, "The same seed gives two different results."
    assert 1.2 < first < 4.2, "Fifty pairs of width 6 should give about 2.4."


@points(1)
def test_other_peoples_random_numbers_stay_the_same(student):
    """Somebody sets the global seed, calls your function, and draws: your call must not change what
    they get. `torch.manual_seed` does. A generator of your own does not.
    """
    plant, peek = student.define(PLANT, "plant"), student.define(PEEK, "peek")
    plant()
    undisturbed = peek()
    plant()
    first = float(student.score_std(9, 300, 1))
    assert peek() == undisturbed, (
        "After score_std the global random state is another one."
    )
    assert abs(first - float(student.score_std(9, 300, 2))) > 1e-9, (
        "Two seeds give one number: is anything drawn?"
    )


@points(0.5)
def test_meaningless_sizes_are_refused(student):
    """No width below 1, and one pair alone has no spread; two have one."""
    assert student.score_std(5, 2, 1) > 0, "Two pairs have a spread."
    assert_refused(student.score_std, 0, 50, 1, sizes=(0,))
    assert_refused(student.score_std, 5, 1, 1, sizes=(1,))
