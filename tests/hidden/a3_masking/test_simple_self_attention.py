"""simple_self_attention: plain dot products, nobody looks ahead, every row a mixture."""

import torch

from autograder.suite import (
    assert_close,
    assert_same_gradients,
    call_twice,
    forbid,
    ones,
    points,
    randn,
    tensor,
)

from .ready_made import ATTENTION

pytestmark = forbid(*ATTENTION)


@points(2)
def test_each_token_mixes_itself_and_what_came_before(student, reference):
    """Compare one row with paper: which scores take part, are they the plain dot products, and
    which axis sums to 1?
    """
    x = randn(2, 5, 3)
    assert_close(student.simple_self_attention(x), reference.simple_self_attention(x))
    x = torch.eye(
        4
    ).double()  # tokens at right angles: a score of 0 is a score like any other
    assert_close(student.simple_self_attention(x), reference.simple_self_attention(x))


@points(1)
def test_the_first_token_sees_only_itself(student):
    """Row 0 has one key to choose from, so its output is the token itself. (x is a view of another
    tensor.)
    """
    x = randn(7, 3, 5).transpose(0, 1)
    mixed = student.simple_self_attention(x)
    assert_close(mixed[:, 0], x[:, 0], what="row 0")
    assert (mixed - x).abs().max() > 0.01, (
        "Every row is its own token: nothing is mixed."
    )


@points(1)
def test_later_tokens_leave_earlier_outputs_alone(student, reference):
    """Cut the sequence after token i: outputs 0 … i must stay what they were in the long
    sequence.
    """
    x = randn(6, 3)
    long = student.simple_self_attention(x)
    assert_close(long[5], reference.simple_self_attention(x)[5], what="the last row")
    for n in range(1, 6):
        assert_close(
            student.simple_self_attention(x[:n]), long[:n], what=f"the first {n} rows"
        )


@points(1)
def test_large_tokens_stay_finite(student, reference):
    """Scores of a thousand are ordinary: exp(1000) is not. A later token may have a far larger score
    than all that take part.
    """
    x = 30 * randn(5, 6)
    assert_close(student.simple_self_attention(x), reference.simple_self_attention(x))
    x = tensor([[30.0, 0.0], [60.0, 10.0], [90.0, 0.0]])
    assert_close(student.simple_self_attention(x), reference.simple_self_attention(x))


@points(1)
def test_gradients_flow_through_scores_and_sum(student, reference):
    """The token is used as query, key and value; all three uses must carry a gradient."""
    assert_same_gradients(
        student.simple_self_attention,
        reference.simple_self_attention,
        randn(2, 5, 3, grad=True),
    )


@points(0.5)
def test_all_positions_are_computed_at_once(student):
    """The number of operations should not grow with N: one product of matrices holds all the
    scores.
    """
    assert_close(student.simple_self_attention(ones(5, 3)), ones(5, 3))
    assert student.simple_self_attention(randn(5, 3)).std() > 0.01, (
        "all rows are the same"
    )
    short, long = (
        student.cost("simple_self_attention", randn(n, 3)).operations for n in (5, 23)
    )
    assert short >= 2, "this took no tensor operation at all"
    assert long <= short + 2, (
        f"5 tokens take {short} operations and 23 tokens take {long}: there is a loop over tokens."
    )


@points(0.5)
def test_half_precision_comes_back_as_half_and_nothing_changes(student, reference):
    """float16 in, float16 out; the scores are computed in float32, since 300 · 300 is beyond
    float16.
    """
    x = tensor([[300.0, 1.0], [0.0, 2.0]]).half()
    expected = tensor(
        [[300.0, 1.0], [35.7609, 1.8808]]
    ).half()  # row 1: the scores 2 and 4
    assert_close(call_twice(student.simple_self_attention, x), expected, rtol=2e-3)
    # the last token's scores are 2000, 1998.75, 0, 0, 0 and 1601
    x = tensor(
        [[50.0, 0.0], [49.96875, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [40.0, 1.0]]
    )
    expected = reference.simple_self_attention(x.half())
    assert_close(
        student.simple_self_attention(x.half()), expected, rtol=2e-3, atol=1e-3
    )
