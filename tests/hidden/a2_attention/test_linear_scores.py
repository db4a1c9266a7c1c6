"""linear_scores: the slide's f_att, one linear layer on the pair [state; states_i]."""

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    ones,
    points,
    randn,
    tensor,
)


@points(1)
def test_a_linear_layer_on_the_pair(student, reference):
    """One weight for each entry of the pair, and the bias once per score."""
    arguments = [randn(2, 3), randn(2, 5, 4), randn(7), tensor(0.7)]
    assert_close(
        call_twice(student.linear_scores, *arguments),
        reference.linear_scores(*arguments),
    )
    assert_close_in_turn(student.linear_scores, reference.linear_scores, *arguments)


@points(0.5)
def test_the_state_stands_first(student, reference):
    """S = H and B = T: the order of the pair and the axis of the sentences show in the values
    only.
    """
    arguments = [randn(4, 3), randn(4, 4, 3), randn(6), tensor(-1.3)]
    assert_close(student.linear_scores(*arguments), reference.linear_scores(*arguments))


@points(0.5)
def test_one_position_in_single_precision_with_gradients(student):
    """float32 in, float32 out, [1, 1] for one sentence of one position; a gradient for the state
    and for states, whose memory may run the other way.
    """
    state, states = (
        randn(1, 3).float().requires_grad_(),
        randn(3, 2, 1).float().requires_grad_(),
    )
    arguments = (
        state,
        states.permute(2, 1, 0)[:, :1],
        ones(6).float(),
        tensor(0.0).float(),
    )
    scores = assert_same_gradients(
        student.linear_scores,
        lambda s, h, *_: (s.sum() + h.sum()).view(1, 1),
        *arguments,
    )
    assert_close(
        scores,
        (state.detach().sum() + states.detach()[:, 0].sum()).view(1, 1),
        atol=1e-5,
    )


@points(0.5)
def test_an_equal_step_of_the_state_moves_all_scores_of_a_sentence_alike(student):
    """This is the whole point of the question: a change of the state adds the same number to every
    score.
    """
    states, w, b = randn(2, 6, 5), randn(8), tensor(0.2)
    state, step = randn(2, 3), randn(2, 3)
    before, after = (
        student.linear_scores(state, states, w, b),
        student.linear_scores(state + step, states, w, b),
    )
    assert_close(
        after - before,
        (step @ w[:3])[:, None].expand(2, 6),
        what="the change of the scores",
    )


@points(0.5)
def test_a_weight_of_the_wrong_length_is_refused(student):
    """w has S + H entries, not more and not fewer: one for each feature of the pair."""
    assert_refused(
        student.linear_scores,
        randn(2, 3),
        randn(2, 5, 4),
        randn(8),
        tensor(0.0),
        sizes=(8, 7),
    )
    assert_refused(
        student.linear_scores,
        randn(2, 3),
        randn(2, 5, 4),
        randn(6),
        tensor(0.0),
        sizes=(6, 7),
    )
