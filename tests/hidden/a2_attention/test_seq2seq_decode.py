"""seq2seq_decode: look with the old state, mix, step, and read the word before."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    points,
    randn,
    uses,
    zeros,
)

pytestmark = [uses("additive_scores", "attend")]


def weights_of_the_decoder(d, h, s, a):
    return {
        "w_state": 1.2 * randn(s, a),
        "w_states": randn(h, a),
        "v": 2 * randn(a),
        "w_y": 0.6 * randn(d, s),
        "w_c": 0.6 * randn(h, s),
        "w_s": 0.6 * randn(s, s),
        "b": 0.5 * randn(s),
    }


def inputs(b=2, t=5, ty=4, d=3, h=6, s=7, a=5):
    return [
        randn(b, t, h),
        0.7 * randn(b, s),
        randn(b, ty, d),
        weights_of_the_decoder(d, h, s, a),
    ]


def assert_values(actual, expected, what):
    """The dtype has a test of its own."""
    assert_close(actual, expected, what=what, same_dtype=False)


@points(2.5)
def test_hidden_states_follow_the_step(student, reference):
    """Work out the second step by hand: y_1, the context made with s_1, and s_1 itself, one matrix
    each.
    """
    arguments = inputs()
    hidden, _ = call_twice(student.seq2seq_decode, *arguments)
    assert_values(hidden, reference.seq2seq_decode(*arguments)[0], "hidden")
    assert_close_in_turn(
        lambda *a: student.seq2seq_decode(*a)[0],
        lambda *a: reference.seq2seq_decode(*a)[0],
        *arguments,
        same_dtype=False,
    )


@points(1.5)
def test_weights_have_a_row_for_every_step(student, reference):
    """[B, Ty, T], row t made with s_{t-1}. Do your rows differ from step to step, and does each sum
    to 1?
    """
    arguments = inputs(ty=6)
    assert_values(
        student.seq2seq_decode(*arguments)[1],
        reference.seq2seq_decode(*arguments)[1],
        "weights",
    )


@points(1.5)
def test_the_first_weights_come_from_s0(student, reference):
    """When the decoder looks for the first time it has s0 and nothing else."""
    states, s0, targets, params = inputs(b=3, t=7, ty=2)
    _, weights = student.seq2seq_decode(states, s0, targets, params)
    scores = reference.additive_scores(
        s0, states, params["w_state"], params["w_states"], params["v"]
    )
    assert_values(
        weights[:, 0], reference.attend(scores, states)[1], "the first row of weights"
    )


@points(2)
def test_a_step_does_not_see_its_own_word(student):
    """Change y_2: steps 1 and 2 must stay as they are (they have read y_1 at most), and steps 3, 4,
    5 must change. Which word does step t read?
    """
    states, s0, targets, params = inputs(ty=5)
    changed = targets.clone()
    changed[:, 1] += 1.0
    before = student.seq2seq_decode(states, s0, targets, params)[0]
    after = student.seq2seq_decode(states, s0, changed, params)[0]
    moved = (before - after).abs().amax(dim=(0, 2)) > 1e-6
    steps = [i + 1 for i, m in enumerate(moved.tolist()) if m]
    assert steps == [3, 4, 5], (
        f"Changing the word y_2 changes the steps {steps} (counted from 1)."
    )


@points(1)
def test_the_first_step_reads_zeros(student, reference):
    """There is no word before the first: its input is zeros, not the first word and not the last
    one.
    """
    states, s0, targets, params = inputs(ty=3)
    first = student.seq2seq_decode(states, s0, targets, params)[0][:, :1]
    nothing = reference.seq2seq_decode(states, s0, zeros(2, 1, 3), params)[0]
    assert_values(first, nothing, "the first hidden state")


@points(1)
def test_the_order_of_the_source_states_does_not_matter(student, reference):
    """Attention sees a set: shuffle the encoder states, and the weights are shuffled with them, the
    hidden states stay. Does your decoder use one particular state, such as the last?
    """
    states, s0, targets, params = inputs(b=1, t=6)
    hidden, weights = reference.seq2seq_decode(states, s0, targets, params)
    order = [3, 0, 5, 1, 4, 2]
    mine = student.seq2seq_decode(states[:, order], s0, targets, params)
    assert_values(mine[0], hidden, "hidden")
    assert_values(mine[1], weights[:, :, order], "weights")


@points(1)
def test_sizes_that_all_coincide(student, reference):
    """All widths equal and all lengths equal: nothing but the values tells a transposed matrix from
    a right one.
    """
    arguments = inputs(b=3, t=3, ty=3, d=5, h=5, s=5, a=5)
    # views are as good
    arguments[0], arguments[2] = (
        arguments[0].transpose(0, 1),
        arguments[2].transpose(0, 1),
    )
    assert_values(
        student.seq2seq_decode(*arguments)[0],
        reference.seq2seq_decode(*arguments)[0],
        "hidden",
    )


@points(1)
def test_one_step_over_one_position(student, reference):
    """Ty = 1 and T = 1: hidden is [B, 1, S], and the only weight is 1. Then one step over scores in
    the thousands, of the other sign in each sentence.
    """
    arguments = inputs(b=1, t=1, ty=1)
    mine, theirs = (
        student.seq2seq_decode(*arguments),
        reference.seq2seq_decode(*arguments),
    )
    assert_values(mine[0], theirs[0], "hidden")
    assert_values(mine[1], theirs[1], "weights")
    states, s0, targets, params = inputs(ty=1, s=1, a=1)
    s0 = torch.tensor([[1.0], [-1.0]])
    params |= {
        "w_state": torch.ones(1, 1).double(),
        "v": torch.tensor([3000.0]).double(),
    }
    params["w_states"] = 1e-4 * params["w_states"]
    states[:, 0] *= 1e4
    # scores in the thousands that were rounded to float32 may move a weight by 6e-5
    for dtype, atol in ((torch.float64, 1e-4), (torch.float32, 1e-2)):
        arguments = [value.to(dtype) for value in (states, s0, targets)]
        params = {name: weight.to(dtype) for name, weight in params.items()}
        weights = student.seq2seq_decode(*arguments, params)[1]
        expected = reference.seq2seq_decode(*arguments, params)[1]
        assert_close(weights, expected, atol=atol, what="weights", same_dtype=False)


@points(1.5)
def test_gradients_reach_states_start_and_words(student, reference):
    """Training needs the way back: to every encoder state (through weights and context), to s0, to
    the words fed in.
    """
    *learned, params = inputs()
    arguments = *(value.requires_grad_() for value in learned), params
    assert_same_gradients(
        lambda *a: student.seq2seq_decode(*a)[0],
        lambda *a: reference.seq2seq_decode(*a)[0],
        *arguments,
    )


@points(1)
def test_the_dtype_is_that_of_the_input(student, reference):
    """float64 in, float64 out, and the same for float32: the zeros of the first step and all that
    you create.
    """
    states, s0, targets, params = inputs(b=1)
    for cast in ("double", "float"):
        given = [getattr(a, cast)() for a in (states, s0, targets)]
        weights = {name: getattr(w, cast)() for name, w in params.items()}
        mine, theirs = (
            student.seq2seq_decode(*given, weights),
            reference.seq2seq_decode(*given, weights),
        )
        assert_close(mine[0], theirs[0], atol=9, what="hidden")
        assert_close(mine[1], theirs[1], atol=9, what="weights")
        assert mine[0].std() > 1e-3, "All entries of the hidden states are the same."


@points(1)
def test_sizes_that_cannot_match_are_refused(student):
    """Words must fit w_y, and every sentence needs its states, its start and its words."""
    states, s0, targets, params = inputs()
    assert_refused(
        student.seq2seq_decode, states, s0, randn(2, 4, 8), params, sizes=(3, 8)
    )
    assert_refused(
        student.seq2seq_decode, states, s0, randn(2, 4, 2), params, sizes=(3, 2)
    )
    assert_refused(
        student.seq2seq_decode,
        states,
        s0,
        targets,
        {**params, "w_y": randn(3, 8)},
        sizes=(8, 7),
    )
    assert_refused(
        student.seq2seq_decode, states, s0, randn(9, 4, 3), params, sizes=(2, 9)
    )
