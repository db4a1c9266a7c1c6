"""perplexity: every token but the first is a target once, and the mean is over tokens."""

import math

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    call_twice,
    config,
    points,
    randint,
    tensor,
    uses,
    zeros,
)

from .models import shaken

pytestmark = [uses("language_model")]


def _model(reference, context=6):
    sizes = config(
        vocab_size=11,
        d_model=6,
        num_layers=1,
        num_heads=2,
        d_ff=10,
        context_length=context,
    )
    params = reference.random_params(sizes)
    return shaken(reference, params, 0.7), sizes


def _dice(probabilities, context=6):
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


@points(1)
def test_a_model_that_knows_nothing_has_the_vocabulary(student):
    """Five equally likely tokens, 801 of them: 5.0, a Python float. (A product of 800 probabilities
    is 0.)
    """
    params, sizes = _dice([0.2] * 5, context=400)
    answer = student.perplexity(params, randint(0, 5, (801,)), sizes, 400)
    assert isinstance(answer, float), (
        f"The perplexity should be a Python float, and is {type(answer).__name__}."
    )
    assert_close(answer, 5.0)


@points(1)
def test_every_token_but_the_first_is_a_target_once(student):
    """Rare tokens stand on the seams between windows of three, at the end and at the beginning."""
    params, sizes = _dice([0.9, 0.1])
    for place, rare in ((0, 0), (3, 1), (4, 1), (6, 1), (9, 1)):
        ids = torch.zeros(10, dtype=torch.int64)
        ids[place] = 1
        expected = math.exp(-(rare * math.log(0.1) + (9 - rare) * math.log(0.9)) / 9)
        answer = student.perplexity(params, ids, sizes, 3)
        assert_close(
            answer,
            expected,
            what=f"with token {place} of 10 rare and windows of 3, the value",
        )


@points(1.5)
def test_the_mean_is_over_tokens_not_over_windows(student):
    """Eight targets in windows of five: the last window has three. Its losses do not weigh more."""
    params, sizes = _dice([0.5, 0.25, 0.25])
    ids = torch.tensor([0, 0, 0, 0, 0, 0, 1, 2, 1])
    assert_close(call_twice(student.perplexity, params, ids, sizes, 5), 2.0 ** (11 / 8))


@points(2)
def test_a_window_sees_what_stands_before_in_it_and_nothing_else(student, reference):
    """A model with attention: windows of 4, of 1 and of the whole context, over 10 tokens, 9 and
    5.
    """
    params, sizes = _model(reference)
    text = randint(0, 11, (20,))[::2]
    other = params | {"embed": params["embed"].flip(0)}
    three_heads = config(**vars(sizes) | {"num_heads": 3})
    for weights, setup, n, window in (
        (params, sizes, 10, 4),
        (params, sizes, 9, 4),
        (params, sizes, 5, 1),
        (params, sizes, 9, 6),
        (other, sizes, 9, 6),
        (params, three_heads, 9, 6),
    ):
        expected = reference.perplexity(weights, text[:n], setup, window)
        answer = student.perplexity(weights, text[:n], setup, window)
        assert_close(
            answer, expected, what=f"with {n} tokens in windows of {window}, the value"
        )


@points(0.5)
def test_a_short_text_is_one_window(student, reference):
    """Two tokens and four, in windows of six."""
    params, sizes = _model(reference)
    for n in (2, 4):
        ids = randint(0, 11, (n,))
        logits = reference.language_model(ids[None, :-1], params, sizes)[0]
        expected = math.exp(torch.nn.functional.cross_entropy(logits, ids[1:]).item())
        assert_close(student.perplexity(params, ids, sizes, 6), expected)


@points(0.5)
def test_a_very_unlikely_text_has_a_finite_perplexity(student, reference):
    """A probability of e^-200 is 0 in float32 once it is a probability; its logarithm is not. Then
    a model with logits and scores in the thousands, and the text that it would write.
    """
    params, sizes = _dice([0.5, 0.5])
    params = {
        name: value if name == "blocks" else value.float()
        for name, value in params.items()
    }
    params["embed"] = torch.tensor([[0.0, 0.0], [-200.0, 0.0]])
    assert_close(
        student.perplexity(params, torch.tensor([0, 0, 0, 0, 1]), sizes, 4),
        math.exp(50.0),
        rtol=1e-4,
    )
    params, sizes = _model(reference)
    block = params["blocks"][0]
    by = {"w_q": 300, "w_k": 300, "w_o": 1000}
    large = block | {name: factor * block[name] for name, factor in by.items()}
    params |= {"embed": 1000 * params["embed"], "blocks": [large]}
    single = reference.with_tensors(
        params, [t.float() for t in reference.list_tensors(params)]
    )
    for start in range(5):
        ids = torch.tensor([start])
        for _ in range(6):
            logits = reference.language_model(ids[None], params, sizes)[0, -1]
            ids = torch.cat([ids, logits.argmax()[None]])
        for weights in (params, single):
            assert_close(student.perplexity(weights, ids, sizes, 6), 1.0, atol=1e-4)


@points(0.5)
def test_what_cannot_be_measured_is_refused(student):
    """One token has no target; windows of 0 and of 7 in a context of 6."""
    params, sizes = _dice([0.5, 0.5])
    assert_refused(student.perplexity, params, torch.tensor([1]), sizes, 3, sizes=(1,))
    assert_refused(
        student.perplexity, params, torch.tensor([1, 0, 1]), sizes, 0, sizes=(0,)
    )
    assert_refused(
        student.perplexity, params, torch.tensor([1, 0, 1]), sizes, 7, sizes=(7, 6)
    )
