"""accumulated_gradients: parts of a batch that add up to the whole."""

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_equal,
    assert_refused,
    call_twice,
    points,
    uses,
)

from .setups import SETUP, halved, in_single_precision, shaken, tokens

pytestmark = uses("decoder", "smoothed_loss")


def _batch(rows=5, n=4):
    """Inputs and targets."""
    return tokens(rows, n), tokens(rows, n)


def _compare(student, reference, params, setup, inputs, targets, drop=None):
    loss, gradients = reference.accumulated_gradients(
        params, setup, inputs, targets, drop
    )
    answer = student.accumulated_gradients(params, setup, inputs, targets, drop)
    pair = isinstance(answer, (tuple, list)) and len(answer) == 2
    assert pair, "accumulated_gradients should return a pair, (loss, gradients)."
    assert_close(answer[0], loss, what="the loss")
    assert_equal(len(answer[1]), len(gradients), what="the number of gradients")
    for place, (own, right) in enumerate(zip(answer[1], gradients, strict=True)):
        assert_close(own, right, what=f"gradient {place}")


@points(2)
def test_in_one_part_it_is_the_batch(student, reference):
    """Loss and gradients of five rows, with smoothing and without; the loss is a Python float."""
    params = shaken(reference, SETUP)
    inputs, targets = _batch()
    _compare(student, reference, params, SETUP, inputs, targets)
    _compare(student, reference, params, SETUP | {"smoothing": 0.2}, inputs, targets)
    assert_close_in_turn(
        lambda *batch: student.accumulated_gradients(*batch)[1],
        lambda *batch: reference.accumulated_gradients(*batch)[1],
        params,
        SETUP,
        inputs,
        targets,
        others=(None, SETUP | {"smoothing": 0.5}, *_batch()),
    )
    loss, _ = student.accumulated_gradients(params, SETUP, inputs, targets)
    assert isinstance(loss, float), (
        f"The loss should be a float, and is {type(loss).__name__}."
    )


@points(2.25)
def test_parts_of_equal_size_add_up_to_the_batch(student, reference):
    """Six rows in 1, 2, 3 and 6 parts."""
    params = shaken(reference, SETUP)
    inputs, targets = _batch(6)
    for parts in (2, 3, 6):
        _compare(student, reference, params, SETUP | {"parts": parts}, inputs, targets)


@points(1)
def test_parts_of_different_size_add_up_to_the_batch(student, reference):
    """Five rows in two parts and in three."""
    params = shaken(reference, SETUP)
    inputs, targets = _batch(5)
    for parts in (2, 3):
        _compare(student, reference, params, SETUP | {"parts": parts}, inputs, targets)


@points(1)
def test_parts_with_different_numbers_of_targets_add_up_to_the_batch(
    student, reference
):
    """Four rows in two parts: four targets count in the first, two in
    the second; none in the second; none at all; and one."""
    params = shaken(reference, SETUP)
    inputs, targets = _batch(4, 3)
    targets[1:, 1:] = -100
    setup = SETUP | {"parts": 2, "smoothing": 0.1}
    _compare(student, reference, params, setup, inputs, targets)
    targets[2:] = -100
    _compare(student, reference, params, setup, inputs, targets)
    targets[:] = -100
    _compare(student, reference, params, setup, inputs, targets)
    targets[1, 1] = 3
    _compare(student, reference, params, setup, inputs, targets)


@points(1)
def test_only_one_part_is_in_the_decoder_at_once(student, reference):
    """With six rows in three parts, and in six, drop sees no more than two rows at once, or one; it
    sees all rows, in order, and what it does counts.
    """
    setup = SETUP | {"num_layers": 1}
    params = shaken(reference, setup)
    inputs, targets = _batch(6, 3)
    for parts in (3, 6):
        seen = []

        def drop(x, seen=seen):
            seen.append(len(x))
            return halved(x)

        _compare(
            student,
            reference,
            params,
            setup | {"parts": parts},
            inputs,
            targets,
            halved,
        )
        loss, _ = student.accumulated_gradients(params, setup, inputs, targets)
        assert_close(
            loss, reference.accumulated_gradients(params, setup, inputs, targets)[0]
        )
        student.accumulated_gradients(
            params, setup | {"parts": parts}, inputs, targets, drop
        )
        assert seen, "drop is never called."
        assert max(seen) <= 6 // parts, (
            f"{max(seen)} rows of 6 are in the decoder at once, in {parts} parts."
        )


@points(0.25)
def test_the_parameters_stay_as_they_were(student, reference):
    """No step is made here. Gradients have the shapes and dtypes of the parameters: of an MLP of
    width 1, in float32, of a batch that lies in memory column by column.
    """
    setup = SETUP | {"d_ff": 1}
    params = in_single_precision(reference, shaken(reference, setup))
    inputs, targets = (ids.T for ids in _batch(4, 3))
    batch = params, setup, inputs, targets
    loss, gradients = call_twice(student.accumulated_gradients, *batch)
    assert loss > 0, "The loss is not positive."
    right = reference.accumulated_gradients(*batch)[1]
    for gradient, expected in zip(gradients, right, strict=True):
        assert_close(gradient, expected, atol=1e-3)


@points(0.5)
def test_a_number_of_parts_that_cannot_be_is_refused(student, reference):
    """No parts, and seven parts of five rows."""
    params = shaken(reference, SETUP)
    inputs, targets = _batch()
    loss, _ = student.accumulated_gradients(
        params, SETUP | {"parts": 5}, inputs, targets
    )
    right, _ = reference.accumulated_gradients(params, SETUP, inputs, targets)
    assert_close(loss, right, what="the loss in five parts")
    refused = student.accumulated_gradients
    assert_refused(refused, params, SETUP | {"parts": 0}, inputs, targets, sizes=(0, 5))
    assert_refused(refused, params, SETUP | {"parts": 7}, inputs, targets, sizes=(7, 5))
