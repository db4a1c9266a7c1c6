"""training_curve: what a budget buys, measured on text that nothing was trained on."""

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_equal,
    assert_refused,
    assert_unchanged,
    call_twice,
    points,
    uses,
)

from .setups import SETUP, in_single_precision, shaken, texts

pytestmark = uses("decoder", "training_flops", "smoothed_loss", "accumulated_gradients")

TINY = SETUP | {"num_layers": 1, "context_length": 4, "batch": 3}


def _run(student, reference, change, steps=3, every=1, seed=0, extra=0):
    """Curves and parameters of the student's run and of the right one."""
    setup = TINY | change
    params = shaken(reference, setup, by=0.2)
    training, held_out = texts()
    budget = steps * reference.training_flops(setup) + extra
    arguments = params, setup, training, held_out, budget, every, seed
    answer = student.training_curve(*arguments)
    pair = isinstance(answer, (tuple, list)) and len(answer) == 2
    assert pair, "training_curve should return a pair, (new_params, curve)."
    return answer, reference.training_curve(*arguments)


def _compare_losses(curve, right):
    losses = [float(point[1]) for point in curve]
    assert_close(losses, [loss for _, loss in right], what="the losses of the curve")


@points(1.25)
def test_the_curve_counts_flops(student, reference):
    """Seven steps with a point every three: before the first, after 3, 6 and 7 steps, as pairs of an
    int and a float.
    """
    (_, curve), _ = _run(student, reference, {}, steps=7, every=3)
    cost = reference.training_flops(TINY)
    flops = [point[0] for point in curve]
    assert_equal(
        flops, [0, 3 * cost, 6 * cost, 7 * cost], what="the FLOPs of the curve"
    )
    kinds = {type(part).__name__ for point in curve for part in point}
    assert kinds == {"int", "float"}, (
        f"A point should be an int and a float, and has {kinds}."
    )


@points(1)
def test_only_steps_that_are_paid_for_are_made(student, reference):
    """A budget of three steps and all but one FLOP of a fourth; with a point every two steps, and
    every ten.
    """
    cost = reference.training_flops(TINY)
    for every, steps in ((2, [0, 2, 3]), (10, [0, 3])):
        (_, curve), _ = _run(student, reference, {}, every=every, extra=cost - 1)
        assert_equal([point[0] for point in curve], [n * cost for n in steps])


@points(1)
def test_the_first_point_is_the_loss_before_training(student, reference):
    """On the held-out text, in windows of context_length."""
    (_, curve), (_, right) = _run(student, reference, {}, steps=1)
    assert_close(float(curve[0][1]), right[0][1], what="the first loss")


@points(2.25)
def test_the_curve_is_what_the_run_gives(student, reference):
    """Three steps, measured after each: held-out losses are those of these batches and rates."""
    (_, curve), (_, right) = _run(student, reference, {})
    assert_equal(len(curve), len(right), what="the number of points")
    _compare_losses(curve, right)


@points(1.25)
def test_the_new_parameters_are_those_of_the_last_point(student, reference):
    """After two steps, in the nesting of the parameters; after one step in float32, with an MLP of
    width 1.
    """
    (params, _), (right, _) = _run(student, reference, {"positions": "none"}, steps=2)
    tensors = reference.list_tensors(params)
    assert_equal(
        len(tensors), len(reference.list_tensors(right)), what="the number of tensors"
    )
    for own, other in zip(tensors, reference.list_tensors(right), strict=True):
        assert_close(own, other, what=f"the parameter of shape {list(other.shape)}")
    assert_equal(sorted(params), sorted(right), what="the names of the parameters")
    setup = TINY | {"d_ff": 1}
    single = in_single_precision(reference, shaken(reference, setup))
    apart = [text.repeat_interleave(2)[::2] for text in texts()]
    run = single, setup, *apart, reference.training_flops(setup), 1, 0
    params, _ = student.training_curve(*run)
    right, _ = reference.training_curve(*run)
    assert_close(params["blocks"], right["blocks"], atol=1e-3)


@points(1)
def test_another_seed_is_another_run(student, reference):
    """Seed 7, and then other parameters, setups, texts, budgets and points, each in turn."""
    (_, curve), (_, right) = _run(student, reference, {}, steps=2, seed=7)
    _compare_losses(curve, right)
    cost = reference.training_flops(TINY)
    arguments = shaken(reference, TINY), TINY, *texts(), 2 * cost, 1, 7
    others = None, TINY | {"rate": 0.1}, *texts(), 3 * cost, 2, 8
    assert_close_in_turn(
        lambda *run: [
            list(map(float, point)) for point in student.training_curve(*run)[1]
        ],
        lambda *run: [
            list(map(float, point)) for point in reference.training_curve(*run)[1]
        ],
        *arguments,
        others=others,
    )


@points(1)
def test_dropout_works_in_training_alone(student, reference):
    """The first loss is that without dropout, and the steps see dropout_at of their own number."""
    (_, curve), (_, right) = _run(student, reference, {"dropout": 0.5}, seed=2)
    _compare_losses(curve, right)


@points(0.5)
def test_smoothing_and_parts_work_in_training_alone(student, reference):
    """A smoothing of 0.5 in three parts: measured losses are plain cross-entropies."""
    (_, curve), (_, right) = _run(
        student, reference, {"smoothing": 0.5, "parts": 3}, steps=2
    )
    _compare_losses(curve, right)


@points(0.25)
def test_what_came_in_stays_as_it_was(student, reference):
    """The run is the same when it is run again."""
    setup = TINY | {"dropout": 0.25}
    params = shaken(reference, setup)
    training, held_out = texts()
    budget = 2 * reference.training_flops(setup)
    run = params, setup, training, held_out, budget, 1, 3
    _, curve = call_twice(student.training_curve, *run)
    assert_unchanged()
    _compare_losses(curve, reference.training_curve(*run)[1])


@points(0.5)
def test_a_budget_of_less_than_a_step_is_refused(student, reference):
    """One FLOP too few, and a point every 0 steps."""
    (_, curve), (_, right) = _run(student, reference, {}, steps=1)
    _compare_losses(curve, right)
    params = shaken(reference, TINY)
    training, held_out = texts()
    cost = reference.training_flops(TINY)
    start = params, TINY, training, held_out
    assert_refused(
        student.training_curve, *start, cost - 1, 1, 0, sizes=(cost, cost - 1)
    )
    assert_refused(student.training_curve, *start, cost, 0, 0, sizes=(0,))
