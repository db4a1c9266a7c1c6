"""attend: scores become a distribution over positions, and the distribution mixes the states."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    full,
    points,
    randn,
    tensor,
)

FAR_APART = torch.tensor(
    [
        [2000.0, 1999.0, 0.0, 0.0, 0.0, 0.0],
        [-2040.0, -2039.0, -40.0, -40.0, -40.0, -40.0],
    ]
)


@points(2)
def test_positions_of_a_sentence_share_the_weight_one(student, reference):
    """Sum your weights along each axis. Which sum must be 1: over the positions, or over the
    sentences?
    """
    scores, states = 2 * randn(3, 5), randn(3, 5, 4)
    assert_close(
        call_twice(student.attend, scores, states)[1],
        reference.attend(scores, states)[1],
        what="weights",
    )
    assert_close_in_turn(
        lambda *a: student.attend(*a)[1],
        lambda *a: reference.attend(*a)[1],
        scores,
        states,
    )


@points(2)
def test_context_is_the_weighted_average_of_the_states(student, reference):
    """Is the context mixed with the weights (not the scores), from all the states, once?"""
    scores, states = 2 * randn(2, 7), randn(2, 7, 3)
    assert_close(
        student.attend(scores, states)[0],
        reference.attend(scores, states)[0],
        what="context",
    )
    assert_close_in_turn(
        lambda *a: student.attend(*a)[0],
        lambda *a: reference.attend(*a)[0],
        scores,
        states,
    )


@points(1)
def test_as_many_sentences_as_positions(student, reference):
    """B = T = H: here a sum over the wrong axis has the right shape. (Both arguments are views of
    other tensors.)
    """
    scores, states = 2 * randn(4, 4).T, randn(4, 4, 4).transpose(0, 1)
    assert_close(
        student.attend(scores, states)[0],
        reference.attend(scores, states)[0],
        what="context",
    )


@points(1)
def test_large_scores_do_not_overflow(student):
    """Scores near 1000, −1200 and −60000: exp of the first is infinite, of the others 0. Only
    differences matter, and each sentence has its own.
    """
    base = tensor([3.0, 5.0, 2.0]).log().float()
    for shift in (1000.0, -1200.0, -60000.0):
        scores = (base + shift)[None]
        _, weights = student.attend(scores, randn(1, 3, 2).float())
        assert_close(
            weights, tensor([[0.3, 0.5, 0.2]]).float(), atol=2e-3, what="weights"
        )
    for dtype in (torch.float32, torch.float64):
        _, weights = student.attend(FAR_APART.to(dtype), randn(2, 6, 2).to(dtype))
        assert_close(
            weights,
            torch.softmax(FAR_APART, dim=1).to(dtype),
            atol=1e-3,
            what="weights",
        )


@points(0.5)
def test_one_position_takes_all(student):
    """With one position there is nothing to choose: its weight is 1 and the context is its state.
    One sentence and one feature keep their axes.
    """
    for batch, width in ((2, 3), (1, 1)):
        states = randn(batch, 1, width)
        context, weights = student.attend(full((batch, 1), -7.0), states)
        assert_close(weights, full((batch, 1), 1.0), what="weights")
        assert_close(context, states[:, 0], what="context")


@points(1)
def test_gradients_reach_scores_and_states(student, reference):
    """A mixture has a gradient for every score; a choice (argmax, rounding, detach) has none."""
    scores, states = randn(2, 5, grad=True), randn(2, 5, 3, grad=True)
    assert_same_gradients(
        lambda *a: student.attend(*a)[0],
        lambda *a: reference.attend(*a)[0],
        scores,
        states,
    )


@points(0.5)
def test_half_precision_stays_half_precision(student, reference):
    """float16 in, float16 out, both results; only the softmax inside is computed in float32: scores
    of 2000 and 70000 positions are no reason for it to fail.
    """
    scores, states = randn(2, 5).half(), randn(2, 5, 3).half()
    mine, theirs = student.attend(scores, states), reference.attend(scores, states)
    assert mine[0].dtype == mine[1].dtype == torch.float16, (
        f"float16 arguments give a context of {mine[0].dtype} and weights of {mine[1].dtype}; "
        "both should be float16."
    )
    assert_close(mine[0], theirs[0], atol=4e-3, what="context")
    _, weights = student.attend(FAR_APART.half(), randn(2, 6, 2).half())
    assert_close(
        weights, torch.softmax(FAR_APART, dim=1).half(), atol=1e-3, what="weights"
    )
    _, weights = student.attend(
        torch.zeros(1, 70_000).half(), torch.zeros(1, 70_000, 1).half()
    )
    assert_close(weights[0, :2], torch.full((2,), 1 / 70_000).half(), what="weights")


@points(1)
def test_sizes_that_cannot_match_are_refused(student):
    """One score per state: compare the shapes before mixing, and name the sizes in the
    ValueError.
    """
    assert_refused(student.attend, randn(2, 5), randn(2, 6, 3), sizes=(5, 6))
    assert_refused(student.attend, randn(2, 7), randn(2, 6, 3), sizes=(7, 6))
