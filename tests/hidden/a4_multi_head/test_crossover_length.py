"""crossover_length: where scores and values cost as much as the four projections."""

from autograder.suite import assert_refused, points, uses

pytestmark = [uses("attention_flops")]


@points(2)
def test_both_sides_cost_the_same_there(student, reference):
    """Put your N into the FLOP formula, with H·d = D: two products on one side, four projections on
    the other.
    """
    for num_heads, d_head in ((3, 7), (12, 64), (1, 1), (97, 11)):
        n = student.crossover_length(num_heads * d_head)
        assert n > 0, "A length is positive."
        flops = reference.attention_flops(
            1, int(n), num_heads * d_head, num_heads, d_head
        )
        ratio = (flops["scores"] + flops["values"]) / (flops["qkv"] + flops["output"])
        assert ratio == 1, (
            f"At your N = {n}, scores and values cost {ratio:.3g} times as much as the projections."
        )


@points(1)
def test_it_grows_as_fast_as_the_width(student):
    """The answer depends on D, and in proportion."""
    small, large = student.crossover_length(11), student.crossover_length(143)
    assert type(small) is int, f"A length is an int, not {type(small).__name__}."
    assert small > 11, (
        "At N = D the projections still cost more: the answer is larger than D."
    )
    assert large == 13 * small, (
        f"13 times the width gives {large / small:.3g} times the length."
    )


@points(1)
def test_no_width_is_refused(student):
    """A width of 0 or below means nothing: ValueError, with the size in its message."""
    assert_refused(student.crossover_length, 0, sizes=(0,))
    assert_refused(student.crossover_length, -7, sizes=(-7,))
