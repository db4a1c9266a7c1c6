"""encoder_decoder: a source read both ways, a causal target, cross-attention between, padding
hidden in both places.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    assert_same_gradients,
    assert_varies,
    call_twice,
    forbid,
    ones,
    points,
    randint,
    tensor,
    zeros,
)

from .models import cast, learned, shaken, small_config, with_heads, with_large_scores

pytestmark = [
    forbid(
        "torch.nn.Transformer",
        "torch.nn.TransformerEncoderLayer",
        "torch.nn.TransformerDecoderLayer",
        "torch.nn.MultiheadAttention",
    ),
]


def _model(reference, encoder=1, decoder=1, trained_norms=False):
    """V_s = 9 source words, V = 11 target words, D = 6; norms at 1 and 0 unless `trained_norms`."""
    settings = small_config(
        vocab_size=11,
        num_layers=decoder,
        num_encoder_layers=encoder,
        learned_positions=False,
        final_norm=False,
    )
    params = reference.random_encoder_decoder(settings, 9)
    moved = shaken(reference, params, 0.4)
    if not trained_norms:
        for side in ("encoder", "decoder"):
            for mine, block in zip(moved[side], params[side], strict=True):
                mine |= {
                    name: t.double()
                    for name, t in block.items()
                    if name.startswith("ln")
                }
    return moved, settings


def _words(batch=3, n_s=5, n_t=4):
    return randint(0, 9, (batch, n_s)), randint(0, 11, (batch, n_t))


def _mask(*lengths):
    return torch.arange(max(lengths)) < tensor(lengths)[:, None]


@points(2)
def test_logits_of_a_whole_model(student, reference):
    """Two encoder blocks, two decoder blocks, five source words, four target words, no mask: all
    steps in order. Scores may be of any size.
    """
    params, settings = _model(reference, encoder=2, decoder=2)
    src, tgt = _words()
    for source, weights, setup in (
        (src, params, settings),
        (8 - src, params, settings),
        (src, with_large_scores(params), settings),
        (src, params, with_heads(settings, 5)),
    ):
        expected = reference.encoder_decoder(source, tgt, None, weights, setup)
        answer = student.encoder_decoder(source, tgt, None, weights, setup)
        assert_close(answer, expected, atol=1e-5)


@points(1)
def test_each_of_the_three_norms_has_its_own_parameters(student, reference):
    """Norms as after training. In a decoder block norm 1 follows the self-attention, 2 the
    cross-attention, 3 the MLP.
    """
    params, settings = _model(reference, trained_norms=True)
    src, tgt = _words()
    expected = reference.encoder_decoder(src, tgt, None, params, settings)
    assert_close(
        student.encoder_decoder(src, tgt, None, params, settings), expected, atol=1e-5
    )


@points(1.5)
def test_padding_of_the_source_is_seen_by_nobody(student, reference):
    """Rows with 5 and 2 real words: your own logits without the padding. Other words in it change
    nothing: not through the encoder's self-attention, not through cross-attention. A mask of [B, 1,
    N_s] means the same.
    """
    params, settings = _model(reference)
    src, tgt = _words(2)
    mask = _mask(5, 2)
    masked = _assert_padding_is_unseen(
        student, src, tgt, mask, (5, 2), params, settings
    )
    other = torch.where(mask, src, (src + 1) % 9)
    assert_close(
        student.encoder_decoder(other, tgt, mask.unsqueeze(1), params, settings), masked
    )


@points(0.5)
def test_masks_belong_to_sentences(student, reference):
    """As many sentences as source words and target words, four each: a mask read as [N_q, N_k]
    would fit as well. Your own logits without the padding are what should come out.
    """
    params, settings = _model(reference)
    src, tgt = _words(4, 4, 4)
    _assert_padding_is_unseen(
        student, src, tgt, _mask(4, 2, 4, 4), (4, 2, 4, 4), params, settings
    )


def _assert_padding_is_unseen(student, src, tgt, mask, lengths, params, settings):
    """The logits with the mask are those of each padded source alone, cut to its real words; and
    the mask matters.
    """
    masked = student.encoder_decoder(src, tgt, mask, params, settings)
    assert_varies(masked, above=1e-3, what="the logits")
    assert masked.dim() == 3, "encoder_decoder should return [B, N_t, V]."
    masked = masked.detach()
    whole = student.encoder_decoder(src, tgt, None, params, settings)
    assert float((masked - whole)[1].abs().max()) > 1e-3, (
        "With a mask the logits are those without one."
    )
    for row, n in enumerate(lengths):
        if n == src.shape[1]:
            continue
        alone = student.encoder_decoder(
            src[row : row + 1, :n], tgt[row : row + 1], None, params, settings
        )
        assert_close(masked[row : row + 1], alone.detach(), what=f"sentence {row}")
    return masked


@points(1)
def test_a_target_word_sees_no_later_one(student, reference):
    """Three target words, cut after 1 and 2: the logits before the cut must not change, and they
    are not all alike.
    """
    params, settings = _model(reference, encoder=0)
    src, tgt = _words(2, 5, 3)
    whole = student.encoder_decoder(src, tgt, None, params, settings)
    assert isinstance(whole, torch.Tensor), "The answer should be a tensor."
    assert whole.dim() == 3, "encoder_decoder should return [B, N_t, V]."
    assert float((whole[:, 0] - whole[:, 1]).abs().max()) > 1e-3, (
        "Two places of the target have the same logits."
    )
    for n in (1, 2):
        part = student.encoder_decoder(src, tgt[:, :n], None, params, settings)
        assert_close(part, whole[:, :n].detach(), what=f"the first {n} of 3 rows")


@points(0.5)
def test_positions_are_added_on_both_sides(student, reference):
    """Without blocks the logits are (embedding + position) times unembed. With one decoder block
    and no encoder, the memory is embedding + position of the source: the order of the source words
    matters.
    """
    params, settings = _model(reference, encoder=0, decoder=0)
    src, tgt = _words()
    x = params["tgt_embed"][tgt] + reference.sinusoidal_positions(4, 6).double()
    answer = call_twice(student.encoder_decoder, src, tgt, None, params, settings)
    assert_close(answer, x @ params["unembed"], atol=1e-5)
    params, settings = _model(reference, encoder=0)
    expected = reference.encoder_decoder(src, tgt, None, params, settings)
    assert_close(
        student.encoder_decoder(src, tgt, None, params, settings), expected, atol=1e-5
    )


@points(0.5)
def test_gradients_reach_both_embeddings_and_every_block(student, reference):
    """All parameters, of encoder and decoder, get the right gradient."""
    params, settings = _model(reference)
    arguments = *_words(), _mask(5, 2, 3), learned(reference, params), settings
    assert_same_gradients(
        student.encoder_decoder, reference.encoder_decoder, *arguments, tolerance=1e-5
    )


@points(0.5)
def test_half_precision_stays_half_precision(student, reference):
    """float16 weights, float16 logits, near your own answer in float64: what about the
    positions?
    """
    params, settings = _model(reference, encoder=0)
    half = cast(reference, params, torch.float16)
    src, tgt = _words(1)
    own = student.encoder_decoder(src, tgt, None, params, settings).detach()
    assert_varies(own, above=1e-3, what="your answer in float64")
    assert_close(
        student.encoder_decoder(src, tgt, None, half, settings),
        own.half(),
        atol=6e-2,
        rtol=6e-2,
    )


@points(0.5)
def test_sentences_do_not_meet(student, reference):
    """Three pairs in one call, the last one alone: the same logits. A source that is all padding
    gives finite ones.
    """
    params, settings = _model(reference)
    src, tgt = _words()
    together = student.encoder_decoder(src, tgt, None, params, settings)
    assert float((together[0] - together[1]).detach().abs().max()) > 1e-3, (
        "Two sentences get the same logits."
    )
    alone = student.encoder_decoder(src[2:], tgt[2:], None, params, settings)
    assert_close(alone, together[2:].detach(), what="the last sentence alone")
    empty = student.encoder_decoder(
        src[:1, :1], tgt[:1, :1], zeros(1, 1).bool(), params, settings
    )
    assert empty.shape == (1, 1, 11), (
        "One source word and one target word give [1, 1, V]."
    )
    assert bool(empty.isfinite().all()), (
        "A source without a real word gives logits that are not finite."
    )


@points(0.5)
def test_what_cannot_belong_together_is_refused(student, reference):
    """Three sources for two targets, and two for three; a mask for other lengths or other
    sentences; word 9 of nine source words, word 11 of eleven target words: ValueError with the
    numbers.
    """
    params, settings = _model(reference, encoder=0, decoder=0)
    src, tgt = _words()
    f = student.encoder_decoder
    assert_refused(f, src, tgt[:2], None, params, settings, sizes=(3, 2))
    assert_refused(f, src[:2], tgt, None, params, settings, sizes=(2, 3))
    for rows, places, wrong in (
        (3, 7, 7),
        (3, 4, 4),
        (2, 5, 2),
        (4, 5, 4),
        (5, 3, 5),
        (1, 15, 15),
    ):
        assert_refused(
            f,
            src,
            tgt,
            ones(rows, places).bool(),
            params,
            settings,
            sizes=(wrong, 3, 5),
        )
    assert_refused(
        f, tensor([[3, 9]]), tensor([[1]]), None, params, settings, sizes=(9,)
    )
    assert_refused(
        f, tensor([[3, 2]]), tensor([[11, 1]]), None, params, settings, sizes=(11,)
    )
