"""rnn_encode: one state per position, each made from the word and the state before it."""

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    forbid,
    points,
    randn,
    zeros,
)

pytestmark = [
    forbid("torch.nn.RNN", "torch.nn.RNNCell", "torch.rnn_tanh", "torch.rnn_tanh_cell")
]


def inputs(b=3, t=5, d=2, h=4):
    return [
        randn(b, t, d),
        0.6 * randn(d, h),
        0.6 * randn(h, h),
        0.5 * randn(h),
        randn(b, h),
    ]


def assert_values(actual, expected, what, atol=2e-6):
    """The dtype has a test of its own."""
    assert_close(actual, expected, what=what, atol=atol, same_dtype=False)


@points(2.5)
def test_states_follow_the_recurrence(student, reference):
    """Work the second state out by hand from the first: tanh(word · w_x + state · w_h + b), each
    part once.
    """
    arguments = inputs()
    states, _ = call_twice(student.rnn_encode, *arguments)
    assert_values(states, reference.rnn_encode(*arguments)[0], "states")
    assert_close_in_turn(
        lambda *a: student.rnn_encode(*a)[0],
        lambda *a: reference.rnn_encode(*a)[0],
        *arguments,
        same_dtype=False,
    )


@points(1)
def test_last_is_the_state_after_the_last_position(student, reference):
    """`last` is one state per sentence, [B, H]: the one after position T."""
    arguments = inputs(b=4, t=3)
    assert_values(
        student.rnn_encode(*arguments)[1], reference.rnn_encode(*arguments)[1], "last"
    )


@points(1)
def test_as_many_sentences_as_positions(student, reference):
    """With B = T a loop over the wrong axis goes unnoticed: which axis of x holds the positions?"""
    arguments = inputs(b=5, t=5)
    assert_values(
        student.rnn_encode(*arguments)[0], reference.rnn_encode(*arguments)[0], "states"
    )


@points(1)
def test_the_first_state_starts_from_h0(student):
    """With no input and no bias, h_1 = tanh(h0 · w_h). Does your first state know h0?"""
    h0, w_h = randn(2, 3), randn(3, 3)
    states, _ = student.rnn_encode(zeros(2, 1, 5), randn(5, 3), w_h, zeros(3), h0)
    assert_values(states[:, 0], (h0 @ w_h).tanh(), "the first state")


@points(1)
def test_a_word_changes_its_own_state_and_later_ones_only(student):
    """State t has read x_1 … x_t: not less, and nothing that comes later."""
    x, *weights = inputs(b=2, t=6)
    changed = x.clone()
    changed[:, 3] += 1.0
    before, after = (
        student.rnn_encode(x, *weights)[0],
        student.rnn_encode(changed, *weights)[0],
    )
    moved = (before - after).abs().amax(dim=(0, 2)) > 1e-5
    assert moved.tolist() == [False, False, False, True, True, True], (
        "Changing the word at position 3 (counted from 0) changes the states at "
        f"{moved.nonzero().flatten().tolist()}."
    )


@points(0.5)
def test_widths_that_coincide(student, reference):
    """With D = H every transposed or exchanged matrix fits: weights are [in, out] and multiply from
    the right.
    """
    arguments = inputs(b=2, t=3, d=4, h=4)
    assert_values(
        student.rnn_encode(*arguments)[0], reference.rnn_encode(*arguments)[0], "states"
    )


@points(1)
def test_gradients_reach_the_first_word(student, reference):
    """The last state depends on the first word through all steps between: nothing may cut the chain
    (detach, .data).
    """
    arguments = [value.requires_grad_() for value in inputs(b=2, t=4)]
    assert_same_gradients(
        lambda *a: student.rnn_encode(*a)[1],
        lambda *a: reference.rnn_encode(*a)[1],
        *arguments,
    )


@points(0.5)
def test_the_input_may_be_a_transposed_view(student, reference):
    """x is a view of another tensor, whose memory runs the other way: only its shape [B, T, D]
    counts.
    """
    arguments = inputs(b=3, t=7)
    arguments[0] = randn(7, 3, 2).transpose(0, 1)
    assert_values(
        student.rnn_encode(*arguments)[0], reference.rnn_encode(*arguments)[0], "states"
    )


@points(0.5)
def test_the_dtype_is_that_of_the_input(student, reference):
    """float64 in, float64 out, and the same for float32 and float16: anything that you create needs
    the dtype of x.
    """
    arguments = inputs(b=2, t=3)
    single = [argument.float() for argument in arguments]
    half = [argument.half() for argument in arguments]
    for given in (arguments, single, half):
        states = student.rnn_encode(*given)[0]
        assert_close(states, reference.rnn_encode(*given)[0], atol=9, what="states")
        assert states.std() > 1e-3, "All entries of the states are the same."


@points(1)
def test_sizes_that_cannot_match_are_refused(student):
    """Compare the sizes before you multiply, each with what it should be, and name them in the
    ValueError.
    """
    x, w_x, w_h, b, h0 = inputs(d=3)
    for wrong, sizes in (
        ((randn(7, 4), w_h, b, h0), (3, 7)),
        ((randn(2, 4), w_h, b, h0), (3, 2)),
        ((randn(3, 5), w_h, b, h0), (5, 4)),
        ((w_x, randn(4, 6), b, h0), (4, 6)),
        ((w_x, randn(6, 4), b, h0), (6, 4)),
        ((w_x, randn(4, 3), b, h0), (4, 3)),
        ((w_x, w_h, randn(3), h0), (3, 4)),
        ((w_x, w_h, randn(5), h0), (5, 4)),
        ((w_x, w_h, b, randn(6, 4)), (3, 6)),
        ((w_x, w_h, b, randn(2, 4)), (3, 2)),
        ((w_x, w_h, b, randn(3, 7)), (7, 4)),
    ):
        assert_refused(student.rnn_encode, x, *wrong, sizes=sizes)
