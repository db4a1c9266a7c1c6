"""one_change: one entry is another, and the MLP has as many parameters."""

from autograder.suite import assert_equal, assert_refused, assert_unchanged, points

from .setups import SETUP


@points(1.5)
def test_one_entry_is_another(student):
    """A word, a number, a truth value, and one that Python counts as false."""
    for field, value in (
        ("norm", "post"), ("num_layers", 4), ("batch", 4), ("tied", False), ("dropout", 0.5), ("rate", 0.0),
        ("activation", "relu"), ("positions", "none"), ("d_ff", 20),
    ):  # fmt: skip
        answer = student.one_change(SETUP, field, value)
        assert_equal(
            answer, SETUP | {field: value}, what=f"the setup with {field} = {value!r}"
        )


@points(1)
def test_a_swiglu_gets_two_thirds_of_the_width(student):
    """From a GELU and from a ReLU; 12 becomes 8, and 10 becomes 6 (rounded down)."""
    for activation, wide, narrow in (
        ("gelu", 12, 8),
        ("relu", 10, 6),
        ("relu", 1001, 667),
    ):
        base = SETUP | {"activation": activation, "d_ff": wide}
        answer = student.one_change(base, "activation", "swiglu")
        assert_equal(answer, base | {"activation": "swiglu", "d_ff": narrow})
        assert isinstance(answer["d_ff"], int), "d_ff should be a whole number."


@points(1)
def test_from_a_swiglu_back_it_gets_three_halves(student):
    """8 becomes 12, and 667 becomes 1000 (rounded down)."""
    for wide, activation, more in (
        (8, "relu", 12),
        (667, "gelu", 1000),
    ):
        base = SETUP | {"activation": "swiglu", "d_ff": wide}
        answer = student.one_change(base, "activation", activation)
        assert_equal(answer, base | {"activation": activation, "d_ff": more})
        assert isinstance(answer["d_ff"], int), "d_ff should be a whole number."


@points(0.5)
def test_the_base_stays_as_it_was(student):
    """A SwiGLU base whose dropout changes keeps its width."""
    base = SETUP | {"activation": "swiglu"}
    assert_equal(student.one_change(base, "dropout", 0.25), base | {"dropout": 0.25})
    assert_unchanged()


@points(1)
def test_what_changes_nothing_is_refused(student):
    """An entry that no setup has, by its name, and a value that is there already."""
    assert_equal(student.one_change(SETUP, "batch", 9), SETUP | {"batch": 9})
    assert_refused(
        student.one_change, SETUP, "activations", "swiglu", naming="activations"
    )
    assert_refused(student.one_change, SETUP, "batch", 5, naming="batch")
    assert_refused(student.one_change, SETUP, "num_layers", 2, sizes=(2,))
    assert_refused(student.one_change, SETUP, "activation", "gelu", naming="gelu")
