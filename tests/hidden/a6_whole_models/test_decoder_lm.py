"""decoder_lm: embedding and positions, causal pre-norm blocks, a final norm, and an unembedding
that may be tied.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    assert_same_gradients,
    assert_varies,
    call_twice,
    forbid,
    points,
    randint,
    tensor,
    zeros,
)

from .models import cast, learned, shaken, small_config, with_heads, with_large_scores

pytestmark = [
    forbid(
        "torch.nn.TransformerEncoderLayer",
        "torch.nn.TransformerDecoderLayer",
        "torch.nn.MultiheadAttention",
    ),
]


def _model(reference, v=11, d=6, layers=1, heads=2, d_head=5, context=9, tied=False):
    """A config and random parameters in float64, the norms as after training."""
    settings = small_config(
        vocab_size=v,
        d_model=d,
        num_layers=layers,
        num_heads=heads,
        d_head=d_head,
        context_length=context,
        tied=tied,
    )
    params = reference.random_lm(settings)
    return shaken(reference, params, 0.4), settings


@points(1.5)
def test_logits_of_a_whole_model(student, reference):
    """Two blocks, trained norms, an unembedding of its own: the whole formula, in order. Which step
    is missing? Scores may be of any size.
    """
    params, settings = _model(reference, layers=2)
    ids = randint(0, 11, (3, 5))
    for weights, setup in (
        (params, settings),
        (with_large_scores(params), settings),
        (params, with_heads(settings, 5)),
    ):
        expected = reference.decoder_lm(ids, weights, setup)
        assert_close(student.decoder_lm(ids, weights, setup), expected, atol=1e-5)


@points(1)
def test_without_unembed_the_embedding_is_read_backwards(student, reference):
    """A tied model: logits are dot products with the rows of embed. First V is not D, then, without
    a block, V = D hides an axis. Params say which it is: one with unembed is not tied.
    """
    for v, layers in ((11, 1), (6, 0)):
        params, settings = _model(reference, v=v, layers=layers, tied=True)
        ids = randint(0, v, (2, 5))
        expected = reference.decoder_lm(ids, params, settings)
        assert_close(student.decoder_lm(ids, params, settings), expected, atol=1e-5)
        # params say so, whatever else the config says
        _, untied = _model(reference, v=v, layers=layers, tied=False)
        assert_close(student.decoder_lm(ids, params, untied), expected, atol=1e-5)
        params = params | {"unembed": 0.5 * params["embed"].T}
        answer = student.decoder_lm(ids, params, settings)
        assert_close(answer, 0.5 * expected, atol=1e-5)


@points(1)
def test_no_position_sees_a_later_token(student, reference):
    """Three tokens, cut after 1 and 2: what was said before the cut must not change."""
    params, settings = _model(reference)
    ids = randint(0, 11, (2, 3))
    whole = student.decoder_lm(ids, params, settings)
    assert isinstance(whole, torch.Tensor), "The answer should be a tensor."
    assert whole.dim() == 3, "decoder_lm should return [B, N, V]."
    assert float((whole[:, 0] - whole[:, 1]).abs().max()) > 1e-3, (
        "Two places of the text have the same logits."
    )
    for n in (1, 2):
        part = student.decoder_lm(ids[:, :n], params, settings)
        assert_close(part, whole[:, :n].detach(), what=f"the first {n} of 3 places")


@points(1)
def test_positions_count_places_not_tokens(student, reference):
    """One word five times, no blocks: only the place differs, so the logits must differ, and
    swapping two rows of positions must swap two rows of logits.
    """
    params, settings = _model(reference, layers=0)
    ids = tensor([[7, 7, 7, 7, 7]])
    logits = student.decoder_lm(ids, params, settings)
    assert float((logits[0, 1] - logits[0, 3]).abs().max()) > 1e-3, (
        "The same word has the same logits at places 1 and 3."
    )
    order = tensor([0, 3, 2, 1, 4, 5, 6, 7, 8])
    swapped = student.decoder_lm(
        ids, {**params, "positions": params["positions"][order]}, settings
    )
    assert_close(swapped, logits[:, order[:5]].detach())


@points(1)
def test_a_last_norm_stands_before_the_unembedding(student, reference):
    """No blocks, no positions: embedding, norm with its own gamma and beta, unembedding. The stream
    is large here.
    """
    params, settings = _model(reference, layers=0)
    params = {**params, "embed": 20 * params["embed"], "positions": zeros(9, 6)}
    ids = randint(0, 11, (3, 2))
    normed = reference.layer_norm(
        params["embed"][ids], params["lnf_gamma"], params["lnf_beta"]
    )
    assert_close(
        call_twice(student.decoder_lm, ids, params, settings),
        normed @ params["unembed"],
    )


@points(0.5)
def test_gradients_reach_every_parameter(student, reference):
    """A tied model without blocks: the embedding is used on both ends and gets both gradients. Then
    one with a block and an unembedding.
    """
    ids = randint(0, 11, (2, 4))
    for tied in (True, False):
        params, settings = _model(reference, layers=0 if tied else 1, tied=tied)
        arguments = ids, learned(reference, params), settings
        assert_same_gradients(
            student.decoder_lm, reference.decoder_lm, *arguments, tolerance=1e-5
        )


@points(0.5)
def test_sentences_do_not_meet(student, reference):
    """Five sentences that fill the context, in one call and the fourth alone: the same logits. Then
    a single token.
    """
    params, settings = _model(reference, context=5)
    ids = randint(0, 11, (5, 5))
    together = student.decoder_lm(ids, params, settings)
    alone = student.decoder_lm(ids[3:4], params, settings)
    assert_close(alone, together[3:4].detach(), what="the fourth sentence alone")
    assert float((together[0] - together[1]).detach().abs().max()) > 1e-3, (
        "Two sentences get the same logits."
    )
    assert student.decoder_lm(ids[:1, :1], params, settings).shape == (1, 1, 11), (
        "One token gives [1, 1, V]."
    )


@points(0.5)
def test_half_precision_stays_half_precision(student, reference):
    """float16 weights, float16 logits, near your own answer in float64."""
    params, settings = _model(reference)
    half = cast(reference, params, torch.float16)
    ids = randint(0, 11, (1, 4))
    own = student.decoder_lm(ids, params, settings).detach()
    assert_varies(own, above=1e-3, what="your answer in float64")
    assert_close(
        student.decoder_lm(ids, half, settings), own.half(), atol=6e-2, rtol=6e-2
    )


@points(0.5)
def test_texts_and_ids_that_do_not_fit_are_refused(student, reference):
    """Ten tokens for a context of nine; id 11 and id -1 in a vocabulary of 11: ValueError, with the
    numbers.
    """
    params, settings = _model(reference, layers=0)
    logits = student.decoder_lm(tensor([[10]]), params, settings)
    assert_varies(logits, above=1e-3, what="the logits of token 10")
    assert_refused(
        student.decoder_lm, randint(0, 11, (2, 10)), params, settings, sizes=(10, 9)
    )
    assert_refused(student.decoder_lm, tensor([[3, 11]]), params, settings, sizes=(11,))
    assert_refused(
        student.decoder_lm, tensor([[3, -1]]), params, settings, sizes=(-1, 11)
    )


@points(1)
def test_operations_do_not_grow_with_the_tokens(student, reference):
    """All places are computed at once: nine tokens take as many torch operations as three, in as
    many sentences.
    """
    params, settings = _model(reference)
    costs = []
    for ids in (randint(0, 11, (3, 3)), randint(0, 11, (3, 9))):
        logits, cost = student.counted("decoder_lm", ids, params, settings)
        assert logits.shape == (*ids.shape, 11), "decoder_lm returns [B, N, V]."
        assert_varies(logits, above=1e-3, what="the logits")
        costs.append(cost.operations)
    assert 0 < costs[1] <= costs[0] + 3, (
        f"{costs[0]} operations for 3 tokens and {costs[1]} for 9: is there a loop?"
    )
