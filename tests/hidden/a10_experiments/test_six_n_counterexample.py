"""six_n_counterexample: a model whose attention costs more than its parameters do."""

from autograder.suite import assert_equal, points, uses

from .setups import SETUP

pytestmark = uses("training_flops")

SIZES = (
    "vocab_size", "d_model", "num_layers", "num_heads", "num_kv_heads", "d_ff", "context_length",
    "batch", "parts",
)  # fmt: skip


def _setup(student, factor):
    """The answer, which has all entries of a setup, with sizes that can be."""
    setup = student.six_n_counterexample(factor)
    assert isinstance(setup, dict), (
        f"a setup is a dict, and this is {type(setup).__name__}."
    )
    assert_equal(sorted(setup), sorted(SETUP), what="the entries of the setup")
    for name in SIZES:
        size = setup[name]
        whole = (
            isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= 10**12
        )
        assert whole, (
            f"{name} should be a whole number from 1 to 10¹², and is {size!r}."
        )
    return setup


def _costs_of_a_token(setup):
    """What a token costs by the rule, 6 N, and what attention adds to it."""
    d, f, v, n = (
        setup[name] for name in ("d_model", "d_ff", "vocab_size", "context_length")
    )
    d_kv = d * setup["num_kv_heads"] // setup["num_heads"]
    matrices = 3 if setup["activation"] == "swiglu" else 2
    block = 2 * d * d + 2 * d * d_kv + matrices * d * f
    parameters = v * d + setup["num_layers"] * block
    return 6 * parameters, 3 * setup["num_layers"] * 4 * n * d


def _check_ratio(setup, factor):
    """A step costs at least factor times what the rule says."""
    rule, attention = _costs_of_a_token(setup)
    ratio = 1 + attention / rule
    assert ratio >= factor, (
        f"6 N is {rule} FLOPs a token in your setup, and attention adds {attention}: a step costs "
        f"{ratio:.4g} times what the rule says, not {factor}."
    )
    assert attention > 0, "a step costs what the rule says."


@points(1)
def test_it_is_a_setup_that_can_be_built(student):
    """All entries are there; heads divide the width, and each other; it is tied, and has no table of
    positions.
    """
    for factor in (1.5, 4):
        setup = _setup(student, factor)
        d, heads, kv_heads = (
            setup[name] for name in ("d_model", "num_heads", "num_kv_heads")
        )
        assert d % heads == 0, f"{heads} heads do not divide a width of {d}."
        assert heads % kv_heads == 0, f"{kv_heads} heads of keys do not divide {heads}."
        assert setup["positions"] in ("none", "rotary"), (
            f"positions are {setup['positions']!r}."
        )
        assert setup["tied"] is True, "the head should be tied."
        assert setup["norm"] in ("pre", "post", "rms"), (
            f"the norm is {setup['norm']!r}."
        )
        known = setup["activation"] in ("relu", "gelu", "swiglu")
        assert known, f"the activation is {setup['activation']!r}."
        for name in ("dropout", "smoothing"):
            assert 0 <= setup[name] < 1, f"{name} is {setup[name]}."
        assert setup["rate"] > 0, f"the rate is {setup['rate']}."


@points(1.5)
def test_a_step_costs_half_as_much_again(student):
    """A factor of 1.5, and of 1: more than the rule says."""
    for factor in (1, 1.5):
        _check_ratio(_setup(student, factor), factor)


@points(1.5)
def test_the_rule_can_be_wrong_by_any_factor(student):
    """2, 7.5, 100, 12 345 and a million."""
    for factor in (2, 7.5, 100, 12_345, 10**6):
        _check_ratio(_setup(student, factor), factor)
