"""query_effect: evidence that a linear score cannot make the attention depend on the query."""

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_equal,
    assert_refused,
    points,
    randn,
    tensor,
    uses,
)

pytestmark = [uses("attend")]


def linear(state, states):
    return 2.5 * state.sum(-1, keepdim=True) + states.cumsum(-1).sum(-1) - 1.0


def dot(state, states):
    return (states * state[:, None]).sum(-1)


def gated(state, states):
    return (states.sum(-1) + state[:, :1]).tanh() - 3 * state[:, 1:2]


def far(state, states):
    return 3000 * state[:, :1] - 2000 * (states[..., 0] > 0) + dot(state, states)


@points(1.5)
def test_a_linear_score_moves_the_scores_and_no_weight(student):
    """The scores of a linear layer move with the state, all by the same amount. What does the
    softmax do with that?
    """
    a, b, states = randn(2, 3), randn(2, 3), randn(2, 5, 4)
    effect = student.query_effect(linear, a, b, states)
    assert_equal(len(effect), 2, what="the number of results")
    assert_close(
        effect[0], 2.5 * (a - b).sum(-1).abs().max().item(), what="score_change"
    )
    assert_close(effect[1], 0.0, what="weight_change")


@points(1)
def test_a_dot_product_moves_the_weights(student, reference):
    """Differences are absolute, and the largest over all sentences and positions counts."""
    for _ in range(3):
        a, b, states = (
            randn(3, 4),
            randn(3, 4),
            randn(5, 3, 4).transpose(0, 1),
        )  # a view is as good
        effect = student.query_effect(dot, a, b, states)
        expected = reference.query_effect(dot, a, b, states)
        assert_close(effect[0], expected[0], what="score_change")
        assert_close(effect[1], expected[1], what="weight_change")
    assert_close_in_turn(
        student.query_effect, reference.query_effect, dot, a, b, states, others=(gated,)
    )


@points(1)
def test_a_shared_shift_hides_nothing(student, reference):
    """Scores that move by a shared amount and a little besides: only the little besides reaches the
    weights. As many sentences as positions here: the softmax is over positions. Scores may be in
    the thousands.
    """
    a, b, states = randn(5, 2), randn(5, 2), randn(5, 5, 3)
    effect = student.query_effect(gated, a, b, states)
    expected = reference.query_effect(gated, a, b, states)
    assert_close(effect[0], expected[0], what="score_change")
    assert_close(effect[1], expected[1], what="weight_change")
    assert all(isinstance(e, float) for e in effect), (
        "Both results should be Python floats."
    )
    a, b, states = (
        tensor([[1.0, 2.0], [-1.0, 1.0]]),
        tensor([[1.0, 0.5], [-1.0, 3.0]]),
        randn(2, 6, 2),
    )
    states[:, :2, 0], states[:, 2:, 0] = -1.0, 1.0
    effect = student.query_effect(far, a, b, states)
    expected = reference.query_effect(far, a, b, states)
    # scores in the thousands that were rounded to float32 may move a weight by 6e-5
    assert_close(effect[1], expected[1], atol=1e-4, what="weight_change")


@points(0.5)
def test_states_of_different_shapes_are_refused(student):
    """The two states are compared sentence by sentence: they must have one shape."""
    assert_refused(
        student.query_effect,
        dot,
        randn(3, 4),
        randn(2, 4),
        randn(3, 5, 4),
        sizes=(3, 2),
    )
    assert_refused(
        student.query_effect,
        dot,
        randn(2, 4),
        randn(3, 4),
        randn(3, 5, 4),
        sizes=(2, 3),
    )
