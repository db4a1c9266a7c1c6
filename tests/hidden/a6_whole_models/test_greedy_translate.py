"""greedy_translate: the likeliest word after all that was said, row by row, until each row has
ended.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    call_twice,
    eye,
    ones,
    points,
    randint,
    tensor,
    uses,
    zeros,
)

from .models import cast, small_config, with_heads, with_large_scores

pytestmark = [uses("encoder_decoder")]


def _settings(v, d, encoder, decoder):
    return small_config(
        vocab_size=v,
        d_model=d,
        num_layers=decoder,
        num_encoder_layers=encoder,
        learned_positions=False,
        final_norm=False,
    )


def _model(reference):
    """Random weights with a strong cross-attention, which reads the embeddings. With this seed
    nearly any four sentences get translations of their own, and words follow from all words before.
    """
    settings = _settings(13, 6, 0, 1)
    params = reference.random_encoder_decoder(settings, 9, seed=1)
    params = cast(reference, params, torch.float64)
    block = params["decoder"][0]
    block |= {name: 2 * block[name] for name in ("c_q", "c_k", "c_o")}
    return params, settings


def _chain(v=7, step=3):
    """A decoder without blocks: after word i comes i + step, modulo V."""
    params = {
        "src_embed": zeros(5, v),
        "tgt_embed": 20 * eye(v),
        "encoder": [],
        "decoder": [],
    }
    return params | {"unembed": eye(v).roll(step, dims=1)}, _settings(v, v, 0, 0)


def _persuaded(reference):
    """A decoder that says i + 3 after word i, modulo 7, unless most of the source's words want
    another one: source word 1 wants 3, source word 2 wants 2, and source word 0 wants nothing.
    """
    settings = _settings(7, 7, 0, 1)
    params = reference.random_encoder_decoder(settings, 3)
    params = reference.with_tensors(
        params, [zeros(*t.shape) for t in reference.list_tensors(params)]
    )
    params |= {"tgt_embed": 20 * eye(7), "unembed": eye(7).roll(3, dims=1)}
    # what the decoder would see after word 0, and 6
    params["src_embed"][1, 0] = params["src_embed"][2, 6] = 40.0
    block = params["decoder"][0]
    block |= {f"ln{number}_gamma": ones(7) for number in (1, 2, 3)}
    # every query reads the mean of the source
    block["c_v"][:, :7], block["c_o"][:7] = eye(7), eye(7)
    return params, settings


@points(1.5)
def test_words_follow_from_the_source_and_all_words_before(student, reference):
    """Random weights, four sentences, four words each; the translations differ, and eos never
    comes.
    """
    params, settings = _model(reference)
    src = randint(0, 9, (4, 5))
    expected = reference.greedy_translate(src, None, params, settings, 1, -1, 4)
    assert len({tuple(row) for row in expected.tolist()}) > 2, (
        "The suite's own model says one thing to all."
    )
    assert_close(
        student.greedy_translate(src, None, params, settings, 1, -1, 4), expected
    )
    everything, first = torch.ones(4, 5).bool(), (torch.arange(5) < 1).expand(4, 5)
    for source, mask, weights, setup in (
        (8 - src, None, params, settings),
        (src, everything, params, settings),
        (src, first, params, settings),
        (src, first, with_large_scores(params), settings),
        (src, None, with_large_scores(params), settings),
        (src, None, params, with_heads(settings, 5)),
    ):
        expected = reference.greedy_translate(source, mask, weights, setup, 1, -1, 4)
        answer = student.greedy_translate(source, mask, weights, setup, 1, -1, 4)
        assert_close(answer, expected)


@points(1.5)
def test_each_row_ends_on_its_own(student, reference):
    """eos is 3: one sentence never says it, one at once, one as its third word; that one stays with
    it, the others go on. And with random weights eos is a word that one sentence says early, others
    late or never.
    """
    params, settings = _persuaded(reference)
    src = tensor([[2, 2], [1, 1], [0, 0]])
    words = tensor([[2, 2, 2, 2], [3, 3, 3, 3], [4, 0, 3, 3]])
    assert_close(student.greedy_translate(src, None, params, settings, 1, 3, 4), words)
    params, settings = _model(reference)
    src = randint(0, 9, (5, 4))
    free = reference.greedy_translate(src, None, params, settings, 1, -1, 4)
    spread = {
        word: len(
            {tuple((row == word).nonzero().flatten()[:1].tolist()) for row in free}
        )
        for word in range(13)
    }
    eos = max(
        spread, key=lambda word: spread[word]
    )  # the word with most different first places
    ended = ((free == eos).cumsum(dim=1) > 0).roll(1, dims=1)
    ended[:, 0] = False
    assert_close(student.greedy_translate(src, None, params, settings, 1, -1, 4), free)
    answer = student.greedy_translate(src, None, params, settings, 1, eos, 4)
    assert_close(answer, torch.where(ended, eos, free))


@points(1)
def test_padding_of_the_source_does_not_matter(student, reference):
    """Rows with one or two real words, and padding that wants something else. Then random weights
    and rows with 5, 2 and 3 real words: other words in the padding, the same translation.
    """
    params, settings = _persuaded(reference)
    src, mask = (
        tensor([[1, 2, 2], [2, 2, 1], [0, 1, 1]]),
        tensor([[1, 0, 0], [1, 1, 0], [1, 0, 0]]) > 0,
    )
    words = tensor([[3, 3, 3, 3], [2, 2, 2, 2], [4, 0, 3, 6]])
    assert_close(student.greedy_translate(src, mask, params, settings, 1, -1, 4), words)
    params, settings = _model(reference)
    src, mask = randint(0, 9, (3, 5)), torch.arange(5) < tensor([5, 2, 3])[:, None]
    expected = reference.greedy_translate(src, mask, params, settings, 1, -1, 3)
    other = torch.where(mask, src, (src + 4) % 9)
    assert_close(
        student.greedy_translate(other, mask, params, settings, 1, -1, 3), expected
    )


@points(0.5)
def test_the_start_token_is_read_and_not_returned(student):
    """In this model 3 follows 0 and 5 follows 2: the translation begins with what follows the start
    token. A row that ends with its first word says nothing else. The end token may be 0, and may be
    the start token.
    """
    params, settings = _chain()
    src = tensor([[1, 2], [3, 4]])
    cases = (
        (0, 9, [3, 6, 2, 5]),
        (2, 5, [5, 5, 5, 5]),
        (1, 0, [4, 0, 0, 0]),
        (0, 0, [3, 6, 2, 5]),
    )
    for start, eos, words in cases:
        assert_close(
            student.greedy_translate(src, None, params, settings, start, eos, 4),
            tensor([words, words]),
        )


@points(0.5)
def test_there_are_always_max_new_words(student):
    """All rows end at once: the columns are filled. And none asked for is [B, 0]."""
    params, settings = _chain()
    src = tensor([[1, 2], [3, 4], [0, 0]])
    answer = call_twice(student.greedy_translate, src, None, params, settings, 1, 4, 5)
    assert_close(answer, tensor([[4] * 5] * 3))
    assert_close(
        student.greedy_translate(src, None, params, settings, 1, 4, 0),
        zeros(3, 0).long(),
    )


@points(0.5)
def test_a_negative_number_of_words_is_refused(student):
    """max_new = -1: ValueError. One word is fine, and so is a source that is a view."""
    params, settings = _chain()
    src = tensor([[1, 2], [3, 4], [0, 1]]).T
    assert_close(
        student.greedy_translate(src, None, params, settings, 1, 9, 1),
        tensor([[4], [4]]),
    )
    assert_refused(
        student.greedy_translate, src, None, params, settings, 1, 9, -1, sizes=(-1,)
    )
