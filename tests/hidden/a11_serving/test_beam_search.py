"""beam_search: equal to a search that writes everything out, on the cache that it was given.

Blocks hold two tokens. The model's logits follow from what lies in the cache.
"""

import itertools

import torch

from autograder.suite import assert_close, assert_equal, assert_refused, points, uses

from .toy import STEP, alone, logits_of, setting

pytestmark = uses("PagedCache")


def _log_p(text, vocab_size, scale=2.0):
    """log P [V] of the next token."""
    ids = torch.tensor(text, dtype=torch.float64)
    return logits_of(ids, vocab_size, scale).log_softmax(dim=-1)


def _score(tokens, total, alpha):
    """Wu et al.: log P over ((5 + length) / (5 + 1)) ** alpha."""
    return total / ((5 + len(tokens)) / 6) ** alpha


def _best_beams(prompt, num_beams, max_new, alpha, eos_id, vocab_size=7, scale=2.0):
    """The same search on whole texts, without a cache."""
    beams, done = [([], 0.0)], []
    for _ in range(max_new):
        longer = [
            ([*tokens, token], total + float(row))
            for tokens, total in beams
            for token, row in enumerate(_log_p(prompt + tokens, vocab_size, scale))
        ]
        longer = sorted(longer, key=lambda text: -text[1])[:num_beams]
        done += [text for text in longer if text[0][-1] == eos_id]
        beams = [text for text in longer if text[0][-1] != eos_id]
    scored = [(tokens, _score(tokens, total, alpha)) for tokens, total in done + beams]
    return sorted(scored, key=lambda text: -text[1])[:num_beams]


def _all_texts(prompt, max_new, alpha, eos_id, vocab_size):
    """Every text that is possible, with its score, best first."""
    scored = []
    for tokens in itertools.product(range(vocab_size), repeat=max_new):
        if eos_id in tokens:
            tokens = tokens[: tokens.index(eos_id) + 1]
        total = sum(
            float(_log_p([*prompt, *tokens[:i]], vocab_size)[token])
            for i, token in enumerate(tokens)
        )
        scored.append((list(tokens), _score(tokens, total, alpha)))
    texts = {tuple(tokens): score for tokens, score in scored}
    return sorted(([list(t), s] for t, s in texts.items()), key=lambda text: -text[1])


def _run(student, prompt, num_beams, max_new, alpha, eos_id, num_blocks=60, **model):
    """What the search returns: (list of tokens, list of scores)."""
    cache, step = setting(student, num_blocks, **model)
    answer = student.beam_search(prompt, cache, step, num_beams, max_new, alpha, eos_id)
    assert_equal(cache.num_free, num_blocks, what="the free blocks at the end")
    return [tokens for tokens, _ in answer], [score for _, score in answer], step


def _check(answer, expected):
    assert_equal(
        answer[0], [tokens for tokens, _ in expected], what="the texts, best first,"
    )
    assert_close(answer[1], [score for _, score in expected], what="the scores")


@points(1)
def test_one_beam_is_greedy(student):
    """K = 1, no end token: the text of greedy decoding, and its log P."""
    for prompt in ([1, 2, 3], [6]):
        answer = _run(student, prompt, 1, 5, 0.0, -1)
        assert_equal(answer[0], [alone(prompt, 5)], what="the text")
        _check(answer, _best_beams(prompt, 1, 5, 0.0, -1))


@points(1.5)
def test_a_beam_as_wide_as_all_texts_is_exhaustive(student):
    """Three tokens of which one ends the text, at most three new ones, 40 beams: all texts there
    are, in the order of their scores.
    """
    for prompt, alpha in (([1, 2], 0.0), ([2, 0, 1], 0.7)):
        expected = _all_texts(prompt, 3, alpha, 0, 3)
        answer = _run(student, prompt, 40, 3, alpha, 0, vocab_size=3)
        assert_equal(len(answer[0]), 15, what="the number of texts")
        _check(answer, expected)


@points(1.5)
def test_each_beam_goes_on_with_its_own_keys(student):
    """Three beams over five steps, of which some have two continuations and some none. No end token, so
    nothing else can differ.
    """
    for prompt in ([1, 2, 3], [4, 4, 0, 6], [5]):
        _check(_run(student, prompt, 3, 5, 0.0, -1), _best_beams(prompt, 3, 5, 0.0, -1))


@points(1.5)
def test_scores_are_divided_by_the_length_penalty(student):
    """alpha = 0.6, 1 and 2 with texts of different lengths: the end token counts, (5 + length) / 6 to
    the power of alpha divides log P.
    """
    for alpha in (0.6, 1.0, 2.0):
        _check(
            _run(student, [1, 2, 3], 4, 4, alpha, 5),
            _best_beams([1, 2, 3], 4, 4, alpha, 5),
        )


@points(1.5)
def test_a_text_that_has_ended_is_left_alone(student):
    """Several prompts, in which the end token comes early, late and never: it is the last token of a
    text, and what has not ended counts too.
    """
    for prompt, eos_id in (([1, 2, 3], 2), ([6], 1), ([0, 3], 4), ([2, 2], 0)):
        answer = _run(student, prompt, 4, 5, 0.0, eos_id)
        for tokens in answer[0]:
            assert eos_id not in tokens[:-1], "a text goes on behind the end token"
        _check(answer, _best_beams(prompt, 4, 5, 0.0, eos_id))
    greedy = alone([1, 2, 3], 5)
    answer = _run(student, [1, 2, 3], 1, 5, 0.0, greedy[1])
    assert_equal(answer[0], [greedy[:2]], what="the only beam, which has ended")


@points(1)
def test_the_past_is_not_fed_again(student):
    """The prompt once, then one token a beam: at most max_new steps, the last tokens of the beams in
    each.
    """
    *answer, step = _run(student, [1, 2, 3], 3, 4, 0.0, -1, fed=[])
    _check(answer, _best_beams([1, 2, 3], 3, 4, 0.0, -1))
    fed = [[list(new) for new in chunks] for chunks in step.fed]
    assert_equal(fed[0], [[1, 2, 3]], what="what the first step feeds")
    sizes = [[len(new) for new in chunks] for chunks in fed[1:]]
    assert_equal(
        sizes, [[1, 1, 1]] * 3, what="tokens fed for each beam in the later steps"
    )


@points(0.5)
def test_beams_share_the_blocks_of_the_prompt(student):
    """A prompt of twelve tokens in six blocks, four beams, 21 blocks in all: four copies of the prompt
    would not fit.
    """
    prompt = [1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5]
    answer = _run(student, prompt, 4, 3, 0.0, -1, num_blocks=21)
    _check(answer, _best_beams(prompt, 4, 3, 0.0, -1))


@points(0.5)
def test_logits_of_any_size(student):
    """Logits of some thousands: log P without a maximum overflows."""
    for prompt in ([1, 2, 3], [6]):
        answer = _run(student, prompt, 3, 3, 0.5, 2, scale=2000.0)
        _check(answer, _best_beams(prompt, 3, 3, 0.5, 2, scale=2000.0))


@points(0.5)
def test_one_search_does_not_see_another(student):
    """The same cache and step search twice, and then with one argument exchanged, for each in turn."""
    cache, step = setting(student, 60)
    other = student.define(STEP, "make_step")(cache, 5, 2.0)
    usual = ([1, 2], 3, 3, 0.5, 4)
    others = (([1, 3], 3, 3, 0.5, 4), ([1, 2], 2, 3, 0.5, 4), ([1, 2], 3, 4, 0.5, 4))
    others += (([1, 2], 3, 3, 0.9, 4), ([1, 2], 3, 3, 0.5, -1))
    scripts = [(usual, step), (usual, step), (usual, other)]
    for changed in others:
        scripts += [(usual, step), (usual, step), (changed, step)]
    for (prompt, *settings), model in scripts:
        answer = student.beam_search(prompt, cache, model, *settings)
        pair = [tokens for tokens, _ in answer], [score for _, score in answer]
        _check(
            pair, _best_beams(prompt, *settings, vocab_size=5 if model is other else 7)
        )


@points(0.5)
def test_what_cannot_be_searched_is_refused(student):
    """No prompt, no beam, no new token: ValueError with the 0. One new token is fine, of more beams
    than tokens too, on the same cache.
    """
    cache, step = setting(student, 20)
    for prompt, num_beams, max_new in (([], 2, 3), ([1], 0, 3), ([1], 2, 0)):
        assert_refused(
            student.beam_search,
            prompt,
            cache,
            step,
            num_beams,
            max_new,
            0.0,
            -1,
            sizes=(0,),
        )
    texts = student.beam_search([1], cache, step, 9, 1, 1.0, 3)
    answer = [tokens for tokens, _ in texts], [score for _, score in texts]
    assert_equal(len(answer[0]), 7, what="the number of texts of one token")
    _check(answer, _best_beams([1], 9, 1, 1.0, 3))
