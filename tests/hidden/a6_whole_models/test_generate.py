"""generate: the last position decides, rows end on their own, the context is cropped, the dice are
private.

Greedy decoding is compared token by token. Sampling is never compared with our own draws: only
frequencies are.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
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

from .models import shaken, small_config, with_heads, with_large_scores

pytestmark = [uses("decoder_lm", "filtered_probabilities")]

PLANT = """
def plant():
    import random
    import numpy
    torch.manual_seed(5)
    numpy.random.seed(5)
    random.seed(5)
"""
PEEK = """
def peek():
    import random
    import numpy
    return [torch.rand(1).item(), float(numpy.random.rand()), random.random()]
"""


def _settings(v, d, layers=0, heads=2, d_head=5, context=50):
    return small_config(
        vocab_size=v,
        d_model=d,
        num_layers=layers,
        num_heads=heads,
        d_head=d_head,
        context_length=context,
    )


def _chain(v=7, step=3, context=50):
    """A model without blocks in which token i is followed by i + step, modulo V."""
    params = {"embed": 10 * eye(v), "positions": zeros(context, v), "blocks": []}
    params |= {
        "lnf_gamma": ones(v),
        "lnf_beta": zeros(v),
        "unembed": 20 * eye(v).roll(step, dims=1),
    }
    return params, _settings(v, v, context=context)


def _place(context=5):
    """A model without blocks that reads no token: after the token in place p of what it reads comes
    p + 3.
    """
    params, settings = _chain(context=context)
    return params | {"embed": zeros(7, 7), "positions": 10 * eye(7)[:context]}, settings


def _dice(probabilities):
    """A model without blocks that says the same distribution everywhere: the norm gives its beta,
    and that decides.
    """
    v = len(probabilities)
    params = {
        "embed": zeros(v, v),
        "positions": zeros(50, v),
        "blocks": [],
        "lnf_gamma": ones(v),
    }
    params |= {"lnf_beta": torch.log(tensor(probabilities)), "unembed": eye(v)}
    return params, _settings(v, v)


def _random(reference, context=50, layers=1):
    """A model whose greedy texts differ between rows and do not repeat
    themselves.
    """
    settings = _settings(13, 6, layers=layers, context=context)
    params = reference.random_lm(settings)
    return shaken(reference, params, 0.5), settings


@points(1)
def test_the_last_token_of_each_row_decides(student):
    """In this model 3 follows 0, 6 follows 3, 2 follows 6 …: three rows, each goes its own way from
    its last token.
    """
    params, settings = _chain()
    prompt = tensor([[0, 1, 2], [5, 5, 0], [6, 0, 4]])
    text = call_twice(student.generate, params, prompt, 4, settings, temperature=0.0)
    assert_close(
        text,
        tensor([[0, 1, 2, 5, 1, 4, 0], [5, 5, 0, 3, 6, 2, 5], [6, 0, 4, 0, 3, 6, 2]]),
    )


@points(1)
def test_greedy_texts_of_a_whole_model(student, reference):
    """Each new token depends on the whole text so far. Scores may be of any size."""
    prompt = randint(0, 13, (3, 4))
    params, settings = _random(reference)
    two_blocks, deeper = _random(reference, layers=2)
    for weights, tokens, num_new, setup in (
        (params, prompt, 3, settings),
        (params, 12 - prompt, 3, settings),
        (params, prompt, 2, settings),
        (params | {"embed": params["embed"].flip(0)}, prompt, 3, settings),
        (params, prompt, 3, with_heads(settings, 5)),
        (with_large_scores(two_blocks), randint(0, 13, (60, 5)), 3, deeper),
    ):
        expected = reference.generate(weights, tokens, num_new, setup, temperature=0.0)
        answer = student.generate(weights, tokens, num_new, setup, temperature=0.0)
        assert_close(answer, expected)


@points(1)
def test_the_model_reads_the_last_tokens_that_fit(student, reference):
    """A context of five: a prompt of four that outgrows it, and a prompt of seven that is too long
    from the start. The whole text is returned. And in two models that show by their words which
    token was read, and from what place.
    """
    params, settings = _chain(context=5)
    text = student.generate(
        params, tensor([[4, 4, 1], [0, 5, 2]]), 4, settings, temperature=0.0
    )
    assert_close(text, tensor([[4, 4, 1, 4, 0, 3, 6], [0, 5, 2, 5, 1, 4, 0]]))
    params, settings = _place(context=5)
    text = student.generate(params, tensor([[1, 1, 1]]), 4, settings, temperature=0.0)
    assert_close(text, tensor([[1, 1, 1, 5, 6, 0, 0]]))
    params, settings = _random(reference, context=5)
    for n, num_new in ((4, 3), (7, 2)):
        prompt = randint(0, 13, (2, n))
        expected = reference.generate(
            params, prompt, num_new, settings, temperature=0.0
        )
        assert_close(
            student.generate(params, prompt, num_new, settings, temperature=0.0),
            expected,
        )


@points(1)
def test_a_row_that_has_ended_stays_ended(student):
    """eos is 5. Row 0 says it first and stays with it; rows 1 and 2 go on, and row 2 ends later.
    Then eos is 0, which is a token like others. The end of a row changes no draw of the others.
    """
    params, settings = _chain()
    prompt = tensor([[0, 2], [3, 3], [1, 0]])
    text = student.generate(params, prompt, 4, settings, temperature=0.0)
    assert_close(
        text, tensor([[0, 2, 5, 1, 4, 0], [3, 3, 6, 2, 5, 1], [1, 0, 3, 6, 2, 5]])
    )
    text = student.generate(params, prompt, 4, settings, temperature=0.0, eos_id=5)
    assert_close(
        text, tensor([[0, 2, 5, 5, 5, 5], [3, 3, 6, 2, 5, 5], [1, 0, 3, 6, 2, 5]])
    )
    text = student.generate(
        params, tensor([[1, 1], [0, 2]]), 3, settings, temperature=0.0, eos_id=0
    )
    assert_close(text, tensor([[1, 1, 4, 0, 0], [0, 2, 5, 1, 4]]))
    params, settings = _dice([0.2, 0.2, 0.2, 0.2, 0.2])
    prompt = tensor([[1, 2], [0, 3], [4, 4]])
    free = student.generate(params, prompt, 12, settings, seed=1)
    first = int(free[0, 2])
    ended = student.generate(params, prompt, 12, settings, seed=1, eos_id=first)
    for row in (1, 2):
        said = free[row].tolist()
        stop = said.index(first, 2) + 1 if first in said[2:] else len(said)
        assert_equal(ended[row, :stop].tolist(), said[:stop], what=f"row {row}")


@points(0.5)
def test_an_eos_in_the_prompt_does_not_count(student):
    """Rows whose prompt begins, or ends, with eos are continued like any other."""
    params, settings = _chain()
    text = student.generate(
        params, tensor([[5, 0], [3, 5]]), 4, settings, temperature=0.0, eos_id=5
    )
    assert_close(text, tensor([[5, 0, 3, 6, 2, 5], [3, 5, 1, 4, 0, 3]]))


@points(0.5)
def test_there_are_always_as_many_new_tokens(student):
    """All rows end with their first token, and five were asked for; then none is asked for."""
    params, settings = _chain()
    text = student.generate(
        params, tensor([[2], [2]]), 5, settings, temperature=0.0, eos_id=5
    )
    assert_close(text, tensor([[2, 5, 5, 5, 5, 5], [2, 5, 5, 5, 5, 5]]))
    assert_close(
        student.generate(params, tensor([[4, 1]]), 0, settings), tensor([[4, 1]])
    )


@points(1)
def test_seeds_decide_and_every_token_has_its_own_throw(student):
    """The same seed gives the same text, another seed another one; and three tokens in a row are
    not one throw.
    """
    params, settings = _dice([1 / 7] * 7)
    prompt = zeros(150, 1).long()
    text = call_twice(student.generate, params, prompt, 3, settings, seed=4)
    assert not torch.equal(
        student.generate(params, prompt, 3, settings, seed=5), text
    ), "Two seeds give the same text."
    assert_equal(list(text.shape), [150, 4], what="the shape")
    for a, b in ((1, 2), (2, 3)):
        equal = float((text[:, a] == text[:, b]).double().mean())
        assert equal < 0.4, (
            f"With seven equally likely tokens, {equal:.0%} of the rows say the same token twice."
        )
    assert len(text[:, 1].unique()) == 7, (
        "Each row should draw for itself: rows with the same prompt have the same text."
    )


@points(1)
def test_frequencies_follow_the_filtered_probabilities(student):
    """3000 rows with one prompt: how often each token comes, at T = 1, at T = 1/2, with top-k and
    with top-p, and with two of them at once; as often where rows may end, and for other seeds.
    """
    p = [0.4, 0.1, 0.3, 0.15, 0.05]
    params, settings = _dice(p)
    prompt = zeros(3000, 1).long()
    squares = [x * x / 0.285 for x in p]
    cases = (
        ({}, p),
        ({"temperature": 0.5}, squares),
        ({"top_k": 2}, [4 / 7, 0, 3 / 7, 0, 0]),
        ({"top_p": 0.8}, [0.4 / 0.85, 0, 0.3 / 0.85, 0.15 / 0.85, 0]),
        ({"top_k": 9999}, p),
        ({"temperature": 0.5, "top_k": 2}, [0.64, 0, 0.36, 0, 0]),
        ({"temperature": 0.5, "top_p": 0.8}, [0.64, 0, 0.36, 0, 0]),
        ({"temperature": 2.0, "top_p": 0.42}, [0.536, 0, 0.464, 0, 0]),
        ({"top_k": 3, "top_p": 0.8}, [4 / 7, 0, 3 / 7, 0, 0]),
    )
    unfiltered = student.generate(params, prompt, 2, settings)
    for keywords, expected in cases:
        text = student.generate(params, prompt, 1, settings, seed=11, **keywords)
        said = ", ".join(f"{k} = {v}" for k, v in keywords.items()) or "no filter"
        _assert_shares(text[:, -1], expected, said)
        text = student.generate(params, prompt, 2, settings, eos_id=0, **keywords)
        _assert_shares(text[:, 1], expected, f"{said} and an eos_id")
        assert bool((text[text[:, 1] == 0, 2] == 0).all()), (
            f"With {said} a row does not end."
        )
    for setting in ({"temperature": 0.5}, {"top_k": 2}, {"top_p": 0.8}, {"eos_id": 0}):
        texts = [
            student.generate(params, prompt, 2, settings, seed=seed, **setting)
            for seed in (1, 123_456)
        ]
        assert not torch.equal(*texts), f"With {setting} two seeds give one text."
    ended = texts[1][:, 1] == 0
    assert bool((texts[1][ended, 2] == 0).all()), "With a seed a row does not end."
    again = student.generate(params, prompt, 2, settings)
    assert torch.equal(again, unfiltered), (
        "The first call, made again, has another answer."
    )


def _assert_shares(tokens, expected, said):
    for token, share in enumerate(expected):
        seen = float((tokens == token).double().mean())
        assert abs(seen - share) < 0.04, (
            f"With {said}, token {token} should come in {share:.0%} of the rows, and comes in "
            f"{seen:.1%}."
        )


@points(0.5)
def test_other_peoples_random_numbers_stay_the_same(student):
    """Somebody sets the global seed, calls your function, and draws: your call must not change what
    they get.
    """
    params, settings = _dice([0.5, 0.3, 0.2])
    plant, peek = student.define(PLANT, "plant"), student.define(PEEK, "peek")
    plant()
    undisturbed = peek()
    plant()
    text = student.generate(params, tensor([[1], [2]]), 3, settings)
    assert_equal(list(text.shape), [2, 4], what="the shape")
    assert_equal(text[:, 0].tolist(), [1, 2], what="the prompt")
    assert peek() == undisturbed, (
        "After generate the global random state is another one."
    )


@points(0.5)
def test_what_cannot_be_continued_is_refused(student):
    """Minus one new token, and a prompt without any token: ValueError. A prompt that is a view is
    fine.
    """
    params, settings = _chain()
    text = student.generate(
        params, tensor([[1, 2], [4, 0], [3, 5]]).T, 1, settings, 0.0
    )
    assert_equal(text.tolist(), [[1, 4, 3, 6], [2, 0, 5, 1]], what="the text")
    assert_refused(
        student.generate, params, tensor([[1, 2]]), -1, settings, sizes=(-1,)
    )
    assert_refused(student.generate, params, zeros(2, 0).long(), 3, settings)
