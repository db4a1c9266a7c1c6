"""sample: greedy texts token by token, frequencies of the dice, and each token through the model
once.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    call_twice,
    config,
    ones,
    points,
    randint,
    tensor,
    uses,
    zeros,
)

from .dice import dice_left_alone
from .models import shaken

pytestmark = [uses("language_model")]


def _dice(probabilities, context=9):
    """A model that says the same distribution everywhere: the norm gives its beta, and that
    decides.
    """
    v = len(probabilities)
    embed = zeros(v, 2)
    embed[:, 0] = torch.log(tensor(probabilities))
    params = {"embed": embed, "positions": zeros(context, 2), "blocks": []}
    params |= {"lnf_gamma": zeros(2), "lnf_beta": tensor([1.0, 0.0])}
    return params, config(
        vocab_size=v,
        d_model=2,
        num_layers=0,
        num_heads=1,
        d_ff=1,
        context_length=context,
    )


def _echo():
    """A model in which each token makes itself the likeliest: where the logits were read shows in
    the text.
    """
    params = {
        "embed": 9 * torch.eye(5, dtype=torch.float64),
        "positions": zeros(9, 5),
        "blocks": [],
    }
    params |= {"lnf_gamma": ones(5), "lnf_beta": zeros(5)}
    return params, config(
        vocab_size=5, d_model=5, num_layers=0, num_heads=1, d_ff=1, context_length=9
    )


def _clock():
    """A model that says the number of the place that it reads, whatever stands there: who forgets
    what was before says 0.
    """
    params = {
        "embed": torch.eye(9, dtype=torch.float64),
        "positions": 9 * torch.eye(9, dtype=torch.float64),
    }
    params |= {"blocks": [], "lnf_gamma": ones(9), "lnf_beta": zeros(9)}
    return params, config(
        vocab_size=9, d_model=9, num_layers=0, num_heads=1, d_ff=1, context_length=9
    )


def _model(reference, context=12, layers=1):
    """A model whose greedy texts differ between rows and do not repeat themselves."""
    sizes = config(
        vocab_size=13,
        d_model=6,
        num_layers=layers,
        num_heads=2,
        d_ff=10,
        context_length=context,
    )
    params = reference.random_params(sizes)
    return shaken(reference, params, 0.8), sizes


def _slowly(reference, params, prompt, num_new, sizes):
    """Greedy, the whole model on everything so far for every token."""
    ids = prompt
    for _ in range(num_new):
        ids = torch.cat(
            [ids, reference.language_model(ids, params, sizes)[:, -1:].argmax(dim=-1)],
            dim=1,
        )
    return ids


@points(1.5)
def test_greedy_texts_are_those_without_a_cache(student, reference):
    """Two blocks, three rows, five new tokens, against running the whole model on everything for
    each. A model that says its last token again. And one that says at which place it reads.
    """
    params, sizes = _echo()
    text = call_twice(
        student.sample, params, tensor([[3, 1, 2]]), 3, sizes, temperature=0.0
    )
    assert_close(text, tensor([[3, 1, 2, 2, 2, 2]]))
    params, sizes = _clock()
    text = student.sample(params, tensor([[5, 7, 5]]), 3, sizes, temperature=0.0)
    assert_close(text, tensor([[5, 7, 5, 2, 3, 4]]))
    params, sizes = _model(reference, layers=2)
    prompt = randint(0, 13, (4, 3)).T
    expected = _slowly(reference, params, prompt, 5, sizes)
    assert_close(student.sample(params, prompt, 5, sizes, temperature=0.0), expected)
    large = [
        block | {"w_q": 300 * block["w_q"], "w_k": 300 * block["w_k"]}
        for block in params["blocks"]
    ]
    three_heads = config(**vars(sizes) | {"num_heads": 3})
    for weights, tokens, setup in (
        (params | {"blocks": large}, prompt, sizes),
        (params | {"embed": params["embed"].flip(0)}, prompt, sizes),
        (params, prompt, three_heads),
        (params, 12 - prompt, sizes),
    ):
        expected = _slowly(reference, weights, tokens, 5, setup)
        assert_close(
            student.sample(weights, tokens, 5, setup, temperature=0.0), expected
        )


@points(1)
def test_tokens_come_as_often_as_the_model_says(student):
    """Probabilities 0.5, 0.3 and 0.2: 3000 tokens. And with a temperature of 1/2 they are
    squared.
    """
    params, sizes = _dice([0.5, 0.3, 0.2])
    for temperature, shares in (
        (1.0, [0.5, 0.3, 0.2]),
        (0.5, [25 / 38, 9 / 38, 4 / 38]),
    ):
        text = student.sample(
            params,
            torch.zeros(600, 1, dtype=torch.int64),
            5,
            sizes,
            temperature=temperature,
            seed=2,
        )
        assert_equal(list(text.shape), [600, 6], what="the shape")
        counts = torch.bincount(text[:, 1:].flatten().clamp(0, 2), minlength=3) / 3000
        for token, share in enumerate(shares):
            found = float(counts[token])
            assert abs(found - share) < 0.045, (
                f"at temperature {temperature} a token should come in {share:.0%} of the texts, "
                f"and comes in {found:.0%}."
            )


@points(1)
def test_top_k_leaves_the_likeliest(student):
    """The two likeliest of four; the two others never come, and the first comes 5 times in 8, or 25
    times in 34 with a temperature of 1/2. A top_k above the vocabulary leaves all.
    """
    params, sizes = _dice([0.3, 0.1, 0.5, 0.1])
    prompt, texts = torch.ones(600, 1, dtype=torch.int64), []
    for settings, expected in (
        ({}, 5 / 8),
        ({"temperature": 0.5}, 25 / 34),
        ({"seed": 123_456}, 5 / 8),
        ({"temperature": 0.5, "seed": 3}, 25 / 34),
    ):
        text = student.sample(params, prompt, 3, sizes, top_k=2, **settings)
        assert_equal(list(text.shape), [600, 4], what="the shape")
        new = text[:, 1:].flatten()
        assert bool(((new == 0) | (new == 2)).all()), (
            "a token outside of the two likeliest comes."
        )
        share = float((new == 2).double().mean())
        assert abs(share - expected) < 0.05, (
            f"the likeliest token has a share of {share:.2f}."
        )
        texts.append(text)
    assert not torch.equal(texts[0], texts[2]), (
        "with top_k two seeds give the same text."
    )
    assert not torch.equal(texts[1], texts[3]), (
        "with a temperature two seeds give the same text."
    )
    for settings in ({}, {"top_k": 999}):
        text = student.sample(params, prompt, 3, sizes, **settings)
        assert_equal(
            sorted(set(text[:, 1:].flatten().tolist())), [0, 1, 2, 3], what="the tokens"
        )


@points(1)
def test_each_row_and_each_token_has_its_own_throw(student):
    """Seven equally likely tokens: rows differ, neighbours differ, another seed gives another
    text.
    """
    params, sizes = _dice([1 / 7] * 7)
    prompt = torch.zeros(150, 1, dtype=torch.int64)
    text = call_twice(student.sample, params, prompt, 3, sizes, seed=4)
    assert_equal(list(text.shape), [150, 4], what="the shape")
    assert not torch.equal(student.sample(params, prompt, 3, sizes, seed=5), text), (
        "two seeds give the same text."
    )
    unsaid, said = (
        student.sample(params, prompt, 3, sizes, **seed) for seed in ({}, {"seed": 0})
    )
    assert torch.equal(unsaid, said), (
        "without a seed the text should be that of seed 0."
    )
    assert len(text[:, 1].unique()) == 7, (
        "each row should draw for itself: rows with the same prompt have the same text."
    )
    equal = float((text[:, 1] == text[:, 2]).double().mean())
    assert equal < 0.4, f"{equal:.0%} of the rows say the same token twice in a row."


@points(0.75)
def test_nobody_elses_dice_are_moved(student):
    """torch's own dice fall the same way whether a text was written in between or not."""
    params, sizes = _dice([0.5, 0.5])
    with dice_left_alone(student):
        text = student.sample(params, torch.zeros(40, 1, dtype=torch.int64), 4, sizes)
        assert_equal(
            sorted(set(text[:, 1:].flatten().tolist())),
            [0, 1],
            what="the tokens that come",
        )


@points(1.25)
def test_every_token_is_read_once(student, reference):
    """Operations for a prompt of four and three new tokens: six go through the layers, the last one
    does not.
    """
    params, sizes = _model(reference)
    prompt = randint(0, 13, (2, 4))
    expected = _slowly(reference, params, prompt, 3, sizes)
    answer, cost = student.counted("sample", params, prompt, 3, sizes, temperature=0.0)
    assert_close(answer, expected)
    pairs = 4 * 4 + sum(range(5, 7))
    # which may look a token up by a product
    looking = student.cost("language_model", prompt, params, sizes).flops
    token = max(8 * 6 * 6 + 4 * 6 * 10 + 2 * 6 * 13, (looking / 2 - 4 * 6 * 4 * 4) / 4)
    needed = 2 * (6 * token + 4 * 6 * pairs)
    assert cost.flops <= 1.01 * needed, (
        f"the text takes {cost.flops} operations; {needed} are needed."
    )


@points(0.75)
def test_the_context_may_be_filled_to_the_last_place(student, reference):
    """A context of 7: a prompt of 4 and 4 new tokens, of which the last is not read. And no new
    token at all.
    """
    params, sizes = _model(reference, context=7)
    prompt = randint(0, 13, (1, 4))
    long = reference.sample(params, prompt, 4, sizes, temperature=0.0)
    assert_close(student.sample(params, prompt, 4, sizes, temperature=0.0), long)
    assert_close(student.sample(params, prompt, 0, sizes), prompt)


@points(0.75)
def test_what_cannot_be_written_is_refused(student):
    """-1 new tokens; an empty prompt; ten tokens to read in a context of nine; a temperature of
    -1.
    """
    params, sizes = _dice([0.5, 0.5])
    prompt = torch.zeros(1, 5, dtype=torch.int64)
    text = student.sample(params, prompt, 5, sizes)
    assert_equal(list(text.shape), [1, 10], what="the shape")
    assert_refused(student.sample, params, prompt, -1, sizes, sizes=(-1,))
    for num_new in (3, 0):
        assert_refused(
            student.sample, params, prompt[:, :0], num_new, sizes, sizes=(0,)
        )
    assert_refused(student.sample, params, prompt, 6, sizes, sizes=(9,))
    assert_refused(student.sample, params, prompt, 2, sizes, temperature=-1)
