"""explain_model_size: a model whose parameters are what somebody claimed.

Answers are not compared with stored ones: the student's evidence is put back into the arithmetic.
"""

from autograder.suite import points, uses

pytestmark = [uses("count_parameters")]


def _check(student, millions, num_blocks, d_model, low, high):
    """The evidence for a claim: it is possible, and it gives the claim."""
    evidence = student.explain_model_size(millions, num_blocks, d_model, low, high)
    said = f"For {millions}M, {num_blocks} blocks, D = {d_model} and a vocabulary of {low} to {high}"
    is_triple = isinstance(evidence, (tuple, list)) and len(evidence) == 3
    assert is_triple, f"{said} the answer should be three numbers, and is {evidence!r}."
    assert all(type(number) is int for number in evidence), (
        f"{said} the three numbers should be int: {evidence!r}."
    )
    encoder, decoder, vocab = evidence
    assert encoder >= 0, f"{said}: {encoder} encoder blocks?"
    assert decoder >= 1, f"{said}: {decoder} decoder blocks?"
    assert encoder + decoder == num_blocks, (
        f"{said}: {encoder} and {decoder} blocks are not {num_blocks}."
    )
    assert low <= vocab <= high, f"{said}: a vocabulary of {vocab} is not in the range."
    a_decoder_block = 16 if encoder else 12  # D²
    total = (12 * encoder + a_decoder_block * decoder) * d_model**2 + vocab * d_model
    assert abs(total - millions * 1_000_000) <= 500_000, (
        f"{said}: {encoder} encoder and {decoder} decoder blocks with {vocab} words have "
        f"{total / 1e6:.2f} million "
        "parameters."
    )
    return encoder, decoder


@points(1.5)
def test_the_claim_of_the_lecture(student):
    """12 blocks, D = 1024, 213M, with a vocabulary as the paper's: your evidence should give 213
    million again, and its blocks are not all alike.
    """
    encoder, _ = _check(student, 213, 12, 1024, 35_500, 37_500)
    assert encoder > 0, (
        "Twelve identical decoder-only blocks do not reach 213 million with such a vocabulary."
    )


@points(1)
def test_other_encoder_decoders(student):
    """A base model of D = 512, and models whose encoder and decoder have different depths; one of
    them would be a million larger if its norms counted.
    """
    _check(student, 63, 12, 512, 36_500, 37_500)
    _check(student, 33, 9, 500, 9_900, 10_100)  # 8 + 1 blocks: 24 + 4 + 5
    _check(student, 43, 11, 500, 9_950, 10_050)  # 6 + 5 blocks: 18 + 20 + 5
    _check(
        student, 198, 11, 1024, 29_950, 29_960
    )  # 4 + 7 blocks: 198.44, with norms 198.50


@points(1)
def test_decoder_only_models(student):
    """What identical blocks explain: 189M for twelve blocks, and GPT-2's 1555M for 48."""
    for claim in ((189, 12, 1024, 36_500, 37_500), (1555, 48, 1600, 50_000, 50_500)):
        encoder, _ = _check(student, *claim)
        assert encoder == 0, "Here no block needs cross-attention."


@points(1)
def test_claims_that_nothing_explains(student, reference):
    """190M with twelve blocks and 36 500 to 37 500 words is more than one kind of model has and
    less than the other; 213M needs other vocabularies than 20 900; and something explains 214M.
    """
    for claim in ((190, 12, 1024, 36_500, 37_500), (213, 12, 1024, 20_900, 20_950)):
        evidence = student.explain_model_size(*claim)
        assert evidence is None, (
            f"explain_model_size{claim} should be None, and is {evidence!r}."
        )
    _check(student, 214, 12, 1024, 36_500, 37_500)
    # the claim of the lecture with one number changed, the others as they are
    for claim in (
        (213, 12, 1024, 35_500, 37_500),
        (213, 11, 1024, 35_500, 37_500),
        (213, 12, 1000, 35_500, 37_500),
        (213, 12, 1024, 37_490, 37_500),
        (213, 12, 1024, 35_500, 35_510),
    ):
        if reference.explain_model_size(*claim) is None:
            answer = student.explain_model_size(*claim)
            assert answer is None, (
                f"explain_model_size{claim} should be None, and is {answer!r}."
            )
        else:
            _check(student, *claim)
