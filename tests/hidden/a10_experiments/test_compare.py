"""compare: the same budget and the same seeds for everybody, and one change."""

from autograder.suite import (
    assert_close_in_turn,
    assert_equal,
    assert_refused,
    points,
    uses,
)

from .setups import SETUP

pytestmark = uses("one_change", "training_flops")

STEP = 3 * 30 * (2 * (1152 + 288 + 480) + 168)  # of SETUP
ONE_LAYER = 3 * 30 * (1152 + 288 + 480 + 168)


def _numbered(setup, steps, seed):
    """A run whose loss tells how it was asked."""
    return 1000.0 * setup["num_layers"] + steps + seed / 64


def _larger(setup, steps, seed):
    """Another run."""
    return 1.0 + _numbered(setup, steps, seed)


def _table(student, field, values, budget, seeds, run, base=SETUP):
    """The rows, as tuples."""
    answer = student.compare(base, field, values, budget, seeds, run)
    rows = isinstance(answer, (list, tuple)) and all(
        isinstance(row, (list, tuple)) and len(row) == 3 for row in answer
    )
    assert rows, "compare should return a list of rows, (value, steps, losses)."
    return [tuple(row) for row in answer]


@points(1.5)
def test_the_table_has_a_row_for_each_value(student, reference):
    """In the order of the values, with a loss for each seed in the order of the seeds; and another
    table for other arguments, each in turn.
    """
    table = _table(student, "num_layers", [3, 2, 1], 10**8, [5, 1, 2], _numbered)
    assert_equal([row[0] for row in table], [3, 2, 1], what="the values of the table")
    for value, steps, losses in table:
        expected = [1000.0 * value + steps + seed / 64 for seed in (5, 1, 2)]
        assert_equal(list(losses), expected, what=f"the losses with {value} layers")
    for place in range(12):
        budget = (10**7, 10**6)[place % 2]
        base = SETUP | {"d_model": (12, 6)[place // 2 % 2]}
        arguments = base, "d_ff", [3], budget, [1], _numbered
        assert_equal(student.compare(*arguments), reference.compare(*arguments))
    assert_close_in_turn(
        student.compare,
        reference.compare,
        SETUP,
        "d_ff",
        [3, 1],
        10**7,
        [1, 2],
        _numbered,
        others=(SETUP | {"d_model": 6}, "num_layers", [3, 4], 10**6, [2, 3], _larger),
    )


@points(2)
def test_every_value_gets_the_same_budget(student):
    """A budget of ten steps of the base, and one FLOP less than eleven: a model with one layer makes
    more steps of it.
    """
    for budget in (10 * STEP, 11 * STEP - 1):
        asked = []

        def run(setup, steps, seed, asked=asked):
            asked.append((setup["num_layers"], steps))
            return steps / 8

        table = _table(student, "num_layers", [2, 1], budget, [0], run)
        steps = [budget // STEP, budget // ONE_LAYER]
        assert_equal([row[1] for row in table], steps, what="the steps of the table")
        assert isinstance(table[0][1], int), "steps should be whole numbers."
        losses = [[number / 8] for number in steps]
        assert_equal([list(row[2]) for row in table], losses, what="the losses")
        assert_equal(
            asked,
            list(zip((2, 1), steps, strict=True)),
            what="layers and steps of the runs",
        )


@points(1.5)
def test_every_value_gets_the_same_seeds(student):
    """Three values and seeds 7, 3 and 4: nine runs, each pair once."""
    asked = []

    def run(setup, steps, seed):
        asked.append((setup["norm"], seed))
        return seed + 0.5

    table = _table(student, "norm", ["pre", "post", "rms"], 10 * STEP, [7, 3, 4], run)
    expected = [(norm, seed) for norm in ("post", "pre", "rms") for seed in (3, 4, 7)]
    assert_equal(sorted(asked), expected, what="norms and seeds of the runs")
    assert_equal(
        [list(row[2]) for row in table], [[7.5, 3.5, 4.5]] * 3, what="the losses"
    )


@points(1.5)
def test_setups_differ_from_the_base_in_one_change(student):
    """The base runs as it is, a SwiGLU with two thirds of the width; the budget counts for what is
    run.
    """
    asked = []

    def run(setup, steps, seed):
        asked.append((setup, steps))
        return setup["d_ff"] / 4

    swiglu = SETUP | {"activation": "swiglu", "d_ff": 6}
    variants = [SETUP, swiglu, SETUP | {"activation": "relu"}]
    values = [setup["activation"] for setup in variants]
    table = _table(student, "activation", values, 41 * STEP, [0], run)
    assert_equal([setup for setup, _ in asked], variants, what="the setups of the runs")
    narrow = 3 * 30 * (2 * (1152 + 288 + 432) + 168)
    steps = [41, 41 * STEP // narrow, 41]
    assert_equal([made for _, made in asked], steps, what="the steps of the runs")
    assert_equal(
        [list(row[2]) for row in table], [[2.5], [1.5], [2.5]], what="the losses"
    )


@points(0.5)
def test_values_may_leave_the_base_out(student):
    """And there may be one value, one seed, values that are false, or another base."""
    table = _table(student, "tied", [False], 3 * STEP, [9], _numbered)
    assert_equal(table, [(False, 3, [2003.0 + 9 / 64])])
    table = _table(student, "tied", [True, False], STEP, [], _numbered)
    assert_equal(table, [(True, 1, []), (False, 1, [])])
    small = SETUP | {"num_layers": 1}
    table = _table(
        student, "dropout", [0.5, 0.0], 2 * ONE_LAYER, [64], _numbered, small
    )
    assert_equal(table, [(0.5, 2, [1003.0]), (0.0, 2, [1003.0])])


@points(1)
def test_what_is_unfair_is_refused_before_anything_runs(student):
    """A seed or a value that occurs twice, and a budget that does not pay for a step of the last
    value.
    """
    asked = []

    def run(setup, steps, seed):
        asked.append(steps)
        return 1.0

    table = _table(student, "num_layers", [1], STEP, [0], run)
    assert_equal(table, [(1, STEP // ONE_LAYER, [1.0])])
    asked.clear()
    refused = student.compare
    assert_refused(refused, SETUP, "num_layers", [1, 2], STEP, [4, 4], run)
    assert_refused(refused, SETUP, "num_layers", [1, 2, 1], STEP, [4], run)
    sizes = (STEP - 1, STEP)
    assert_refused(
        refused, SETUP, "num_layers", [1, 2], STEP - 1, [4], run, sizes=sizes
    )
    assert_equal(asked, [], what="the runs before the refusal")
