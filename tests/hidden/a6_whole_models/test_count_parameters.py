"""count_parameters: every group from the config, with the switches, and the sizes of the lecture's
models.
"""

from autograder.suite import assert_refused, config, points

KEYS = (
    "embedding",
    "positions",
    "attention",
    "cross_attention",
    "mlp",
    "norms",
    "unembedding",
    "total",
)
BASE = {
    "vocab_size": 23,
    "d_model": 7,
    "num_layers": 3,
    "num_heads": 2,
    "d_head": 5,
    "d_ff": 11,
    "context_length": 13,
    "num_encoder_layers": 0,
    "tied": True,
    "biases": False,
    "norms": False,
    "learned_positions": False,
    "final_norm": False,
    "patch": 0,
}


def _config(**changes):
    return config(**{**BASE, **changes})


def _counts(student, *keys, **changes):
    """The answer, once it is a dict with these keys."""
    answer = student.count_parameters(_config(**changes))
    assert isinstance(answer, dict), "count_parameters should return a dict."
    for key in keys:
        assert key in answer, f"The answer of count_parameters has no key {key!r}."
    return answer


def _assert_count(student, key, expected, **changes):
    count = _counts(student, key, **changes)[key]
    said = ", ".join(
        f"{name}={value}" for name, value in {**BASE, **changes}.items() if value
    )
    assert isinstance(count, (int, float)), (
        f"{key!r} should be a number, and is {type(count).__name__}."
    )
    how = (
        f"is {count / expected:.4g} times as large as it should be"
        if expected
        else f"should be 0, and is {count}"
    )
    assert count == expected, f"{key!r} {how} for {said}."


@points(1)
def test_attention_has_four_matrices_a_block(student):
    """Three of [D, H·d] and one of [H·d, D], in every block; H·d is not D here."""
    _assert_count(student, "attention", 3 * 4 * 7 * 10)


@points(0.5)
def test_a_bias_is_as_wide_as_the_output(student):
    """Three of H·d and one of D for each attention, one of F and one of D for each MLP."""
    _assert_count(student, "attention", 3 * (4 * 7 * 10 + 3 * 10 + 7), biases=True)
    _assert_count(
        student,
        "cross_attention",
        3 * (4 * 7 * 10 + 3 * 10 + 7),
        num_encoder_layers=5,
        biases=True,
    )
    _assert_count(student, "mlp", 3 * (2 * 7 * 11 + 11 + 7), biases=True)


@points(1)
def test_only_decoder_blocks_with_an_encoder_have_cross_attention(student):
    """Five encoder blocks and three decoder blocks. Self-attention is in all of them,
    cross-attention in which? One encoder block is an encoder.
    """
    _assert_count(student, "cross_attention", 3 * 4 * 7 * 10, num_encoder_layers=1)
    _assert_count(student, "cross_attention", 3 * 4 * 7 * 10, num_encoder_layers=5)
    _assert_count(student, "cross_attention", 0)


@points(0.5)
def test_self_attention_is_in_the_encoder_too(student):
    """Five encoder blocks and three decoder blocks are eight blocks with self-attention: what is
    the share of the three?
    """
    three = _counts(student, "attention")["attention"]
    assert isinstance(three, (int, float)), (
        f"'attention' should be a number, and is {type(three).__name__}."
    )
    assert three > 0, "'attention' should be more than 0."
    _assert_count(student, "attention", 8 * three // 3, num_encoder_layers=5)


@points(1)
def test_the_mlp_is_as_wide_as_d_ff_says(student):
    """[D, F] and [F, D] in every block, encoder blocks included; F is not 4·D here."""
    _assert_count(student, "mlp", 3 * 2 * 7 * 11)
    _assert_count(student, "mlp", 8 * 2 * 7 * 11, num_encoder_layers=5)


@points(0.5)
def test_norms_are_two_a_block_or_three(student):
    """Gamma and beta, 2·D a norm; a block with cross-attention has three norms; the final norm
    comes on top.
    """
    _assert_count(student, "norms", 3 * 2 * 14, norms=True)
    _assert_count(
        student, "norms", (5 * 2 + 3 * 3) * 14, norms=True, num_encoder_layers=5
    )
    _assert_count(student, "norms", (3 * 2 + 1) * 14, norms=True, final_norm=True)
    _assert_count(
        student,
        "norms",
        (5 * 2 + 3 * 3 + 1) * 14,
        norms=True,
        final_norm=True,
        num_encoder_layers=5,
    )
    _assert_count(student, "norms", 0, final_norm=True)


@points(1)
def test_both_ends_of_the_model(student):
    """V·D for the embedding, always; D·V for the unembedding only where it is not tied."""
    for tied, unembedding in ((True, 0), (False, 161)):
        _assert_count(student, "embedding", 161, tied=tied)
        _assert_count(student, "unembedding", unembedding, tied=tied)


@points(0.5)
def test_positions_count_where_they_are_learned(student):
    """context_length rows of D numbers, or nothing; one table, also where there is an encoder."""
    _assert_count(student, "positions", 91, learned_positions=True)
    _assert_count(
        student, "positions", 91, learned_positions=True, num_encoder_layers=5
    )
    _assert_count(student, "positions", 0)


@points(0.5)
def test_the_sizes_of_known_models(student):
    """The smallest GPT-2 tied and untied, GPT-3, and the encoder–decoder of 2017 with biases and
    norms: the totals. Which group would explain the difference?
    """
    rest = {
        "biases": True,
        "norms": True,
        "learned_positions": True,
        "final_norm": True,
        "vocab_size": 50_257,
    }
    small = {
        "d_model": 768,
        "num_layers": 12,
        "num_heads": 12,
        "d_head": 64,
        "d_ff": 3072,
        "context_length": 1024,
    }
    large = {
        "d_model": 12288,
        "num_layers": 96,
        "num_heads": 96,
        "d_head": 128,
        "d_ff": 49152,
        "context_length": 2048,
    }
    _assert_count(student, "total", 124_439_808, **rest, **small)
    _assert_count(student, "total", 163_037_184, **rest, **small, tied=False)
    _assert_count(student, "total", 174_604_259_328, **rest, **large)
    first = {
        "d_model": 1024,
        "num_layers": 6,
        "num_heads": 16,
        "d_head": 64,
        "d_ff": 4096,
        "vocab_size": 37_000,
    }
    # 176 160 768 in matrices, 18 · 4096 and 12 · 5120 in biases, 30 · 2048 in norms, 37 888 000 in
    # the embedding
    _assert_count(
        student,
        "total",
        214_245_376,
        **first,
        num_encoder_layers=6,
        biases=True,
        norms=True,
    )


@points(0.5)
def test_the_answer_is_whole_numbers_under_eight_names(student):
    """Eight keys, each an int; total is the sum of the other seven. The numbers are exact, however
    large: floats end at 2⁵³.
    """
    answer = _counts(
        student,
        *KEYS,
        num_encoder_layers=2,
        biases=True,
        norms=True,
        tied=False,
        learned_positions=True,
    )
    for key, value in answer.items():
        assert key in KEYS, f"There should be no key {key!r}."
        assert type(value) is int, f"{key!r} is {type(value).__name__}, not int."
    assert answer["total"] == sum(answer.values()) - answer["total"] > 0, (
        "total is not the sum of the other seven."
    )
    # 200000001 words of 100000001 features, more digits than a float has
    changes = {"vocab_size": 200_000_001, "d_model": 100_000_001}
    _assert_count(student, "embedding", 20_000_000_300_000_001, **changes)


@points(0.5)
def test_sizes_that_mean_nothing_are_refused(student):
    """A width of 0, minus 1 layer: ValueError with the size. No block at all is fine, and so is a
    head of 1.
    """
    _assert_count(student, "total", 161, num_layers=0)
    _assert_count(student, "attention", 3 * 4 * 7, num_heads=1, d_head=1)
    assert_refused(student.count_parameters, _config(d_model=0), sizes=(0,))
    assert_refused(student.count_parameters, _config(num_layers=-1), sizes=(-1,))
    assert_refused(
        student.count_parameters, _config(num_encoder_layers=-1), sizes=(-1,)
    )
    assert_refused(student.count_parameters, _config(d_ff=-5), sizes=(-5,))
