"""additive_scores: one number per source position, v · tanh(state w_state + states_i w_states)."""

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    points,
    randn,
    tensor,
)


def inputs(b=2, t=5, s=3, h=4, a=7):
    return [randn(b, s), randn(b, t, h), randn(s, a), randn(h, a), randn(a)]


@points(3)
def test_scores_are_v_times_the_tanh_of_the_sum(student, reference):
    """Check the order of the steps: both projections, their sum, tanh, and v at the very end."""
    arguments = inputs()
    assert_close(
        call_twice(student.additive_scores, *arguments),
        reference.additive_scores(*arguments),
    )
    assert_close_in_turn(student.additive_scores, reference.additive_scores, *arguments)


@points(1.5)
def test_as_many_sentences_as_positions(student, reference):
    """With B = T the state of sentence j can meet position j instead of sentence j, without any
    error.
    """
    arguments = inputs(b=4, t=4)
    assert_close(
        student.additive_scores(*arguments), reference.additive_scores(*arguments)
    )


@points(1.5)
def test_the_state_changes_which_position_is_preferred(student):
    """One feature, two positions: s = 3 must prefer the negative state, s = −3 the positive one. Is
    there a tanh between the two layers, after the sum? Without it the state moves all scores of a
    sentence alike.
    """
    one = tensor([[1.0]])
    states = tensor([[[4.0], [-2.0]], [[4.0], [-2.0]]])
    scores = student.additive_scores(
        tensor([[3.0], [-3.0]]), states, one, one, tensor([1.0])
    )
    gap = tensor([[7.0], [1.0]]).tanh() - tensor([[1.0], [-5.0]]).tanh()
    assert_close(scores[:, :1] - scores[:, 1:], gap, what="score 0 minus score 1")


@points(0.5)
def test_equal_widths(student, reference):
    """With S = H = A every matrix fits everywhere: the state has w_state, the encoder states have
    w_states.
    """
    arguments = inputs(b=3, t=2, s=5, h=5, a=5)
    assert_close(
        student.additive_scores(*arguments), reference.additive_scores(*arguments)
    )


@points(0.5)
def test_views_in_single_precision(student, reference):
    """float32 in, float32 out, and the memory of states may run the other way: only its shape [B,
    T, H] counts.
    """
    arguments = [a.float() for a in inputs(b=3, t=2)]
    arguments[1] = randn(2, 3, 4).float().transpose(0, 1)
    assert_close(
        student.additive_scores(*arguments),
        reference.additive_scores(*arguments),
        atol=1e-4,
    )


@points(0.5)
def test_one_sentence_of_one_position(student, reference):
    """Batch 1 and length 1: the result is still [1, 1]."""
    arguments = inputs(b=1, t=1)
    assert_close(
        student.additive_scores(*arguments), reference.additive_scores(*arguments)
    )


@points(1)
def test_gradients_reach_every_argument(student, reference):
    """The scores are trained: gradients must flow to both states and to all three weights."""
    arguments = [value.requires_grad_() for value in inputs()]
    assert_same_gradients(
        student.additive_scores, reference.additive_scores, *arguments
    )


@points(0.5)
def test_all_positions_are_scored_at_once(student):
    """Count torch operations at two lengths: a loop over positions needs more of them for a longer
    source.
    """
    short, long = inputs(t=3), inputs(t=29)
    few = student.cost("additive_scores", *short).operations
    scores, cost = student.counted("additive_scores", *long)
    many = cost.operations
    assert scores.std() > 1e-3, "All scores are the same."
    assert many <= few, (
        f"3 positions take {few} torch operations and 29 take {many}: is there a loop "
        "over positions?"
    )


@points(1)
def test_sizes_that_cannot_match_are_refused(student):
    """Each matrix must take the width of its own state to that of v, and every sentence needs a
    state of its own.
    """
    state, states, w_state, w_states, v = inputs()
    assert_refused(
        student.additive_scores, state, states, randn(6, 7), w_states, v, sizes=(3, 6)
    )
    assert_refused(
        student.additive_scores, state, states, w_state, randn(6, 7), v, sizes=(4, 6)
    )
    assert_refused(
        student.additive_scores, state, states, randn(2, 7), w_states, v, sizes=(3, 2)
    )
    assert_refused(
        student.additive_scores, state, states, w_state, randn(3, 7), v, sizes=(4, 3)
    )
    assert_refused(
        student.additive_scores, state, states, randn(3, 9), w_states, v, sizes=(9, 7)
    )
    assert_refused(
        student.additive_scores, state, states, w_state, randn(4, 9), v, sizes=(9, 7)
    )
    assert_refused(
        student.additive_scores, randn(5, 3), states, w_state, w_states, v, sizes=(5, 2)
    )
    assert_refused(
        student.additive_scores,
        state,
        randn(5, 3, 4),
        w_state,
        w_states,
        v,
        sizes=(2, 5),
    )
