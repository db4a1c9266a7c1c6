"""rotary_positions: neighbouring features turn by angles that come from the positions given."""

import math

import torch

from autograder.suite import (
    arange,
    assert_close,
    assert_refused,
    assert_same_gradients,
    call_twice,
    points,
    randn,
    tensor,
)


@points(1)
def test_neighbouring_features_turn_together(student):
    """Position 1, theta = 1, so that all pairs turn by one radian: which features are a pair, and
    which way round?
    """
    x = randn(1, 6)
    turned = call_twice(student.rotary_positions, x, torch.tensor([1]), theta=1.0)
    cos, sin = math.cos(1.0), math.sin(1.0)
    expected = [
        f(x[0, 2 * i].item(), x[0, 2 * i + 1].item())
        for i in range(3)
        for f in _turn(cos, sin)
    ]
    assert_close(turned, tensor([expected]))


def _turn(cos, sin):
    return (lambda a, b: a * cos - b * sin), (lambda a, b: a * sin + b * cos)


@points(2.5)
def test_later_pairs_turn_more_slowly(student, reference):
    """d = 10 and d = 2 at positions 0 … 6: pair i turns by position · theta^(−2i/d), with i = 0 for
    the first pair.
    """
    for d in (10, 2):
        x = randn(3, 7, d)
        assert_close(
            student.rotary_positions(x, torch.arange(7)),
            reference.rotary_positions(x, torch.arange(7)),
        )


@points(1)
def test_the_positions_are_the_callers(student, reference):
    """Positions 5 … 8, then (9, 2, 2, 30): with a cache the first row is not position 0. There is
    one pair.
    """
    x = randn(2, 4, 2)
    for positions in (torch.arange(5, 9), torch.tensor([9, 2, 2, 30])):
        y = student.rotary_positions(x, positions)
        assert_close(y, reference.rotary_positions(x, positions), atol=3e-5)


@points(0.5)
def test_theta_is_the_callers(student, reference):
    """theta = 100 and theta = 500000: larger bases turn more slowly."""
    x = randn(3, 5, 6)
    for theta in (100.0, 500000.0):
        expected = reference.rotary_positions(x, torch.arange(5), theta)
        assert_close(student.rotary_positions(x, torch.arange(5), theta), expected)
    expected = reference.rotary_positions(x, torch.arange(5))
    assert_close(
        student.rotary_positions(x, torch.arange(5)), expected, what="without theta,"
    )


@points(1)
def test_each_sentence_has_its_own_positions(student, reference):
    """positions [B, N] for x [B, H, N, d]: every head of a sentence turns alike. One batch here has
    B = H. d = 2.
    """
    for b, h in ((2, 3), (3, 3)):
        x, positions = (
            randn(b, h, 5, 2),
            torch.stack([torch.arange(5) + 2 * i for i in range(b)]),
        )
        assert_close(
            student.rotary_positions(x, positions),
            reference.rotary_positions(x, positions),
            atol=1e-5,
        )


@points(1)
def test_scores_depend_on_the_distance_only(student):
    """Move query and key by 11 tokens together: their dot product must stay. Move only one: it must
    not.
    """
    q, k = randn(1, 8), randn(1, 8)

    def score(m, n):
        turned = [
            student.rotary_positions(x, torch.tensor([p])) for x, p in ((q, m), (k, n))
        ]
        return (turned[0] * turned[1]).sum().item()

    near = score(7, 3)
    assert_close(score(18, 14), near, atol=1e-4)
    assert_close(score(104, 100), near, atol=1e-3)
    assert abs(score(9, 3) - near) > 1e-3, "Another distance should give another score."


@points(0.5)
def test_lengths_stay(student):
    """A rotation changes no length, of no pair."""
    x = randn(2, 3, 4, 6)
    y = student.rotary_positions(x, torch.arange(3, 7))
    assert isinstance(y, torch.Tensor), "The answer should be a tensor."
    assert y.shape == x.shape, "x keeps its shape."
    assert_close(
        y.unflatten(-1, (3, 2)).norm(dim=-1), x.unflatten(-1, (3, 2)).norm(dim=-1)
    )
    assert (y - x).abs().max() > 1e-2, "Nothing was turned."


@points(0.5)
def test_a_transposed_x_and_a_single_token(student, reference):
    """Heads are usually made by a transpose, so x's memory is not in order; and N may be 1."""
    x = randn(2, 5, 3, 4).transpose(1, 2)
    assert_close(
        student.rotary_positions(x, torch.arange(5)),
        reference.rotary_positions(x, torch.arange(5)),
    )
    x, position = x[:, :, :1], torch.tensor([6])
    assert_close(
        student.rotary_positions(x, position), reference.rotary_positions(x, position)
    )


@points(1)
def test_angles_are_not_made_in_half_precision(student, reference):
    """float16 at positions 3001 … 3004, which float16 cannot tell apart. float16 comes out. There
    is one pair.
    """
    x, positions = randn(4, 2).half(), torch.arange(3001, 3005)
    expected = reference.rotary_positions(x.double(), positions).half()
    assert_close(student.rotary_positions(x, positions), expected, atol=8e-3)


@points(0.5)
def test_gradients_turn_back(student, reference):
    """Queries and keys are trained through the rotation."""
    positions = arange(4, dtype=torch.int64)
    assert_same_gradients(
        student.rotary_positions,
        reference.rotary_positions,
        randn(4, 6, grad=True),
        positions,
    )


@points(0.5)
def test_operations_do_not_grow_with_the_tokens(student):
    """Count torch operations with 3 and with 29 tokens, of 9 pairs: a Python loop over the tokens
    takes more.
    """
    x = randn(29, 18)
    y, cost = student.counted("rotary_positions", x, torch.arange(29))
    assert_close(y.norm(dim=-1), x.norm(dim=-1), what="the length of each row")
    assert (y - x).abs().max() > 1e-2, "Nothing was turned."
    few = student.cost("rotary_positions", x[:3], torch.arange(3)).operations
    many = cost.operations
    assert many <= few, (
        f"3 tokens take {few} torch operations and 29 take {many}: is there a Python loop?"
    )


@points(0.5)
def test_an_odd_width_is_refused(student):
    """d = 5 leaves a feature without a partner: a ValueError that names d."""
    assert_refused(student.rotary_positions, randn(3, 5), torch.arange(3), sizes=(5,))


@points(0.5)
def test_positions_that_do_not_fit_are_refused(student):
    """One position per token, one row of them per sentence of x [B, H, N, d]. The ValueError names
    the sizes.
    """
    f = student.rotary_positions
    for n in (6, 3):
        assert_refused(f, randn(2, 5, 4), torch.arange(n), sizes=(n, 5))
    assert_refused(f, randn(2, 3, 5, 4), torch.arange(5).expand(3, 5), sizes=(3, 2))
    assert_refused(f, randn(3, 3, 5, 4), torch.arange(5).expand(2, 5), sizes=(2, 3))
    assert_refused(f, randn(2, 5, 4), torch.arange(5).expand(2, 5), sizes=(2, 5))
    assert_refused(f, randn(2, 2, 3, 5, 4), torch.arange(5).expand(2, 5), sizes=(2, 5))
