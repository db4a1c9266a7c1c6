"""generate_cached: the tokens of the slow way, for the operations of the fast one."""

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    call_twice,
    points,
    randint,
    uses,
)

pytestmark = [uses("KVCache", "decode_step")]


def _model(reference, learned=True, **changes):
    """Seeds and sizes with which greedy generation does not repeat itself."""
    sizes = reference.make_config(**changes)
    return reference.random_params(sizes, learned=learned), sizes


def _check(student, reference, params, prompt, num_new, sizes, what=""):
    expected = reference.generate_uncached(params, prompt, num_new, sizes)
    answer = student.generate_cached(params, prompt, num_new, sizes)
    assert_close(answer, expected, what=what)


def _counted(student, reference, params, prompt, num_new, sizes):
    """FLOPs of a generation whose tokens are right, and those that are enough."""
    answer, cost = student.counted("generate_cached", params, prompt, num_new, sizes)
    assert_close(answer, reference.generate_uncached(params, prompt, num_new, sizes))
    return cost.flops, _budget(sizes, *prompt.shape, num_new)


def _budget(sizes, batch, n, num_new):
    """FLOPs: every token but the last once through the layers, each new token's logits, scores at
    the true lengths.
    """
    d, wide, narrow = (
        sizes.d_model,
        sizes.num_heads * sizes.d_head,
        sizes.num_kv_heads * sizes.d_head,
    )
    token = sizes.num_layers * (
        2 * d * (wide + 2 * narrow) + 2 * wide * d + 4 * d * sizes.d_ff
    )
    pairs = n * n + sum(range(n + 1, n + num_new))
    return batch * (
        token * (n + num_new - 1)
        + sizes.num_layers * 4 * wide * pairs
        + num_new * 2 * d * sizes.vocab_size
    )


@points(1.5)
def test_the_tokens_are_those_of_the_slow_way(student, reference):
    """Learned positions, two rows, six new tokens, against running the whole model for each. Of
    300 rows some are close decisions: the cache must not round what it holds.
    """
    params, sizes = _model(reference)
    prompt = torch.tensor([[3, 1, 4], [2, 7, 1]])
    expected = reference.generate_uncached(params, prompt, 6, sizes)
    assert len(set(expected[:, 3:].flatten().tolist())) > 4
    assert_close(student.generate_cached(params, prompt, 6, sizes), expected)
    _check(student, reference, params, randint(0, 13, (300, 3)), 6, sizes)
    _check(student, reference, params, torch.tensor([[5, 0, 11, 2, 2, 8, 1]]), 2, sizes)


@points(1)
def test_rotary_models_too(student, reference):
    """No table of positions, so no context_length either; and three rows at once, so each row takes
    its own most likely token. Scores may be of any size.
    """
    params, sizes = _model(reference, learned=False, num_layers=1, context_length=4)
    prompt = torch.tensor([[3, 1, 4], [2, 7, 1], [0, 12, 5]])
    _check(student, reference, params, prompt, 3, sizes)
    params, sizes = _model(reference, learned=False, num_layers=2)
    large = [
        {**block, "w_q": 300 * block["w_q"], "w_k": 300 * block["w_k"]}
        for block in params["blocks"]
    ]
    prompt = randint(0, 13, (30, 4))
    for weights in (
        {**params, "blocks": large},
        {**params, "embed": params["embed"].flip(0)},
    ):
        _check(student, reference, weights, prompt, 3, sizes)


@points(1)
def test_a_prompt_of_one_token_and_a_table_used_to_its_end(student, reference):
    """N = 1, and four new tokens with a table of four positions: the last token is never fed, so it
    needs none.
    """
    params, sizes = _model(reference, num_layers=1, context_length=4)
    _check(student, reference, params, torch.tensor([[7]]), 4, sizes)


@points(0.5)
def test_no_new_token_and_a_single_one(student, reference):
    """num_new = 0 gives the prompt back, 1 adds one token."""
    params, sizes = _model(reference, num_layers=1)
    for num_new in (0, 1):
        _check(
            student,
            reference,
            params,
            torch.tensor([[3, 1, 4], [2, 7, 1]]),
            num_new,
            sizes,
        )


@points(2)
def test_the_second_generation_does_not_see_the_first(student, reference):
    """Three generations, with another prompt, then another batch and model. Where does your cache
    come from?
    """
    large, small = (
        _model(reference, num_layers=1),
        _model(reference, num_layers=1, num_kv_heads=3),
    )
    for n, (batch, length, model) in enumerate(
        [(2, 5, large), (2, 5, large), (1, 4, small)], start=1
    ):
        prompt = randint(0, 13, (batch, length))
        _check(
            student, reference, model[0], prompt, 2, model[1], what=f"generation {n}"
        )


@points(1)
def test_the_prompt_stays_as_it_was(student, reference):
    """Called twice with one prompt: the same text, and the prompt is unchanged and stands in
    front.
    """
    params, sizes = _model(reference, num_layers=1)
    prompt = randint(0, 13, (2, 5))
    answer = call_twice(student.generate_cached, params, prompt, 3, sizes)
    assert_equal(list(answer.shape), [2, 8], what="the shape")
    assert_close(answer[:, :5], prompt, what="the first five columns")


@points(3)
def test_the_past_is_not_computed_again(student, reference):
    """FLOPs of three new tokens after 11, all told. Twice the budget is allowed; recomputing takes
    nearly three times as much as is needed.
    """
    params, sizes = _model(reference, num_layers=1)
    flops, budget = _counted(
        student, reference, params, randint(0, 13, (2, 11)), 3, sizes
    )
    assert flops <= 2 * budget, (
        f"generation took {flops} operations, and {budget} are enough."
    )


@points(1)
def test_nothing_is_computed_that_nobody_needs(student, reference):
    """To the percent: no logits but for the next token, no step for the last token, no scores on
    empty slots.
    """
    params, sizes = _model(reference, vocab_size=43, num_layers=1)
    flops, budget = _counted(
        student, reference, params, randint(0, 43, (1, 9)), 2, sizes
    )
    assert flops <= 1.01 * budget, (
        f"generation took {flops} operations, and {budget} are enough."
    )


@points(1)
def test_what_cannot_be_right_is_refused(student, reference):
    """Minus one new token; a prompt without a token: ValueError. A prompt that is a view is
    fine.
    """
    params, sizes = _model(reference, num_layers=1)
    _check(student, reference, params, randint(0, 13, (5, 2)).T, 2, sizes)
    assert_refused(
        student.generate_cached, params, randint(0, 13, (2, 5)), -1, sizes, sizes=(-1,)
    )
    assert_refused(student.generate_cached, params, randint(0, 13, (2, 0)), 4, sizes)
