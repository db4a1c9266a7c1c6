"""pre_norm_block: normalize, sublayer, add, twice; the stream itself is never normalized."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    call_twice,
    points,
    randn,
    tensor,
)

from .blocks import (
    MARKS,
    assert_agrees,
    assert_gradients_agree,
    assert_stays_half,
    masks_of_three_sentences,
    params,
    silent,
    with_large_scores,
)

pytestmark = MARKS


@points(1.5)
def test_norms_stand_in_front_of_the_sublayers(student, reference):
    """Random weights, norms at 1 and 0: x + f(LN(x)) for the attention, then for the MLP. x is
    large here.
    """
    x, p = 2 * randn(2, 5, 6) + 1, params()
    assert_close(
        call_twice(student.pre_norm_block, x, p, 2),
        reference.pre_norm_block(x, p, 2),
        atol=1e-5,
    )
    assert_close_in_turn(
        student.pre_norm_block,
        reference.pre_norm_block,
        x,
        p,
        2,
        others=(None, None, 1),
        atol=1e-5,
    )


@points(1)
def test_silent_sublayers_leave_the_identity(student):
    """Both sublayers return zeros, the norms are trained: x comes out as it went in. What touches
    your stream? With sublayers that speak it changes.
    """
    x, p = (5 * randn(3, 2, 6) + 2).transpose(0, 1), params(trained_norms=True)
    assert not torch.equal(student.pre_norm_block(x, p, 2), x), "The answer is x."
    assert_close(student.pre_norm_block(x, silent(p), 2), x)


@points(1)
def test_each_norm_has_its_own_parameters(student, reference):
    """Norms as they are after training: two pairs of gamma and beta, all different. The attention
    is silent.
    """
    x, p = randn(2, 5, 6), silent(params(trained_norms=True), mlp=False)
    assert_agrees(student.pre_norm_block, reference.pre_norm_block, x, p, 2)


@points(0.5)
def test_the_residual_passes_the_attention(student, reference):
    """A silent attention: the MLP still gets the tokens."""
    x, p = randn(2, 5, 6), silent(params(), mlp=False)
    assert_agrees(student.pre_norm_block, reference.pre_norm_block, x, p, 2)


@points(0.5)
def test_the_residual_passes_the_mlp(student, reference):
    """A silent MLP: what the attention made still comes out."""
    x, p = randn(2, 5, 6), silent(params(), attention=False)
    assert_agrees(student.pre_norm_block, reference.pre_norm_block, x, p, 2)


@points(1)
def test_the_mask_reaches_the_attention(student, reference):
    """Causal [N, N], then one mask a sentence [B, N, N] whose first query sees nothing. Scores may
    be of any size. The MLP is silent. [N, N] is no row a sentence where there are as many sentences
    as tokens.
    """
    x, p = randn(3, 4, 6), silent(params(), attention=False)
    for mask in masks_of_three_sentences():
        assert_agrees(student.pre_norm_block, reference.pre_norm_block, x, p, 2, mask)
        assert_agrees(
            student.pre_norm_block,
            reference.pre_norm_block,
            x,
            with_large_scores(p),
            2,
            mask,
        )
    x, mask = randn(4, 4, 6), torch.ones(4, 4).tril().bool()
    assert_agrees(student.pre_norm_block, reference.pre_norm_block, x, p, 2, mask)


@points(0.5)
def test_one_head_and_as_many_tokens_as_sentences(student, reference):
    """B = N = H = 3, then a batch of one sentence with one token. The MLP is silent."""
    p = silent(params(heads=3, d_head=2), attention=False)
    for x in (randn(3, 3, 6), randn(1, 1, 6)):
        assert_agrees(student.pre_norm_block, reference.pre_norm_block, x, p, 3)


@points(1)
def test_gradients_reach_the_input_and_all_weights(student, reference):
    """x and all twelve weights are compared."""
    assert_gradients_agree(student.pre_norm_block, reference.pre_norm_block)


@points(0.5)
def test_half_precision_stays_half_precision(student, reference):
    """float16 in, float16 out, and the norms are computed in float32. The MLP is silent."""
    assert_stays_half(student.pre_norm_block, reference.pre_norm_block, gain=100)


@points(0.5)
def test_heads_that_do_not_divide_are_refused(student):
    """Ten columns for three heads: the ValueError of the attention comes through. (With two heads
    all is well.)
    """
    x, p = tensor([[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]]), params()
    assert_refused(student.pre_norm_block, x, p, 3, sizes=(10, 3))
