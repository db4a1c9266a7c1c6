"""training_flops: every matrix product of a step, and nothing else."""

from autograder.suite import assert_equal, assert_refused, call_twice, points

from .setups import SETUP

# D = 12, F = 10, H = 3, N = 6, V = 7, two layers, 30 tokens in a batch.
HEAD = 2 * 7 * 12
ATTENTION = 4 * 6 * 12
PROJECTIONS = 8 * 12 * 12
MLP = 4 * 12 * 10


def _cost(a_token, tokens=30):
    return 3 * tokens * a_token


@points(1.5)
def test_a_step_costs_three_forward_passes_of_all_tokens(student):
    """Two layers of projections 1152, attention 288, MLP 480 and a head of 168, a token: a Python
    int.
    """
    answer = call_twice(student.training_flops, SETUP)
    assert isinstance(answer, int), (
        f"FLOPs should be an int, and are {type(answer).__name__}."
    )
    assert_equal(answer, _cost(2 * (PROJECTIONS + ATTENTION + MLP) + HEAD))


@points(0.75)
def test_a_model_without_layers_is_its_head(student):
    """Looking rows up is free; the head costs 2 · 7 · 12 a token. In the same way an MLP of width 0
    leaves projections and attention.
    """
    assert_equal(student.training_flops(SETUP | {"num_layers": 0}), _cost(HEAD))


@points(1)
def test_attention_costs_grow_with_the_context(student):
    """Twice the context: twice the tokens, and scores and sums cost twice as much a token."""
    answer = student.training_flops(SETUP | {"context_length": 12})
    assert_equal(answer, _cost(2 * (PROJECTIONS + 2 * ATTENTION + MLP) + HEAD, 60))


@points(1)
def test_shared_keys_have_smaller_projections(student):
    """One head of keys for three of queries: w_k and w_v are [12, 4]. Scores cost what they did."""
    answer = student.training_flops(SETUP | {"num_kv_heads": 1})
    projections = 4 * 12 * 12 + 4 * 12 * 4
    assert_equal(answer, _cost(2 * (projections + ATTENTION + MLP) + HEAD))


@points(1)
def test_a_swiglu_has_three_matrices(student):
    """720 in place of 480; a ReLU costs what a GELU does."""
    base = _cost(2 * (PROJECTIONS + ATTENTION + MLP) + HEAD)
    swiglu = _cost(2 * (PROJECTIONS + ATTENTION + 6 * 12 * 10) + HEAD)
    assert_equal(student.training_flops(SETUP | {"activation": "swiglu"}), swiglu)
    assert_equal(student.training_flops(SETUP | {"activation": "relu"}), base)


@points(0.75)
def test_what_costs_nothing_changes_nothing(student):
    """An untied head, other positions, norms, parts, heads, rates and dropout; twice the batch
    costs twice as much.
    """
    base = _cost(2 * (PROJECTIONS + ATTENTION + MLP) + HEAD)
    for change in (
        {"tied": False}, {"positions": "rotary"}, {"norm": "rms"}, {"parts": 5}, {"dropout": 0.5},
        {"rate": 1.0}, {"num_heads": 4, "num_kv_heads": 4}, {"smoothing": 0.1},
    ):  # fmt: skip
        assert_equal(
            student.training_flops(SETUP | change), base, what=f"the cost with {change}"
        )
    assert_equal(student.training_flops(SETUP | {"batch": 10}), 2 * base)


@points(0.5)
def test_counts_are_exact_beyond_what_floats_hold(student):
    """A model of 10¹² a side: an odd count above 2⁵³."""
    huge = SETUP | {
        "d_model": 3 * 10**9 + 3, "d_ff": 10**9 + 1, "vocab_size": 10**11 + 3, "num_layers": 97,
        "context_length": 10**5 + 1, "batch": 1, "num_heads": 1, "num_kv_heads": 1,
    }  # fmt: skip
    d, f, v, n = (
        huge[name] for name in ("d_model", "d_ff", "vocab_size", "context_length")
    )
    expected = 3 * n * (97 * (8 * d * d + 4 * n * d + 4 * d * f) + 2 * v * d)
    assert_equal(student.training_flops(huge), expected)


@points(0.5)
def test_heads_that_do_not_divide_are_refused(student):
    """Five heads for a width of 12; three heads of queries for two of keys."""
    assert_equal(student.training_flops(SETUP | {"num_layers": 0}), _cost(HEAD))
    assert_refused(
        student.training_flops,
        SETUP | {"num_heads": 5, "num_kv_heads": 1},
        sizes=(12, 5),
    )
    assert_refused(student.training_flops, SETUP | {"num_kv_heads": 2}, sizes=(3, 2))
