"""prefill: one step of the whole prompt, on an empty cache only."""

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    assert_varies,
    points,
    randint,
    tensor,
    uses,
    zeros,
)

pytestmark = [uses("decode_step")]

# Takes note of what is asked of it; holds nothing but what it was made with.
TAPE = """
class WatchedCache:
    def __init__(self, past, length):
        self.past, self.length, self.appended, self.advanced = past, length, [], []

    def append(self, layer, k, v):
        self.appended.append((layer, k, v))
        return tuple(torch.cat([old, new], dim=2) for old, new in zip(self.past[layer], (k, v)))

    def advance(self, c):
        self.advanced.append(c)


def tape(past, length):
    return WatchedCache(past, length)
"""


def _empty(student, sizes, batch, length=0, dtype=torch.float64):
    nothing = zeros(batch, sizes.num_kv_heads, length, sizes.d_head, dtype=dtype)
    return student.define(TAPE, "tape")([[nothing, nothing]] * sizes.num_layers, length)


def _model(reference, **changes):
    sizes = reference.make_config(**{"num_layers": 1} | changes)
    return reference.random_params(sizes, learned=True), sizes


@points(0.5)
def test_the_logits_of_every_position_come_back(student, reference):
    """[B, N, V], equal to the model without a cache. One row of one token, in float32, is [1, 1,
    V].
    """
    params, sizes = _model(reference)
    single = reference.random_params(sizes, learned=True, dtype=torch.float32)
    answer = student.prefill(
        single, tensor([[3]]), _empty(student, sizes, 1, dtype=torch.float32), sizes
    )
    assert_close(
        answer, reference.decoder_lm(tensor([[3]]), single, sizes), atol=1e-4, rtol=1e-4
    )
    prompt = randint(0, 13, (7, 3)).T
    other = {**params, "embed": params["embed"].flip(0)}
    for tokens, weights in ((prompt, params), (12 - prompt, params), (prompt, other)):
        answer = student.prefill(weights, tokens, _empty(student, sizes, 3), sizes)
        assert_close(answer, reference.decoder_lm(tokens, weights, sizes))


@points(1)
def test_the_prompt_is_in_the_cache_afterwards(student, reference):
    """Seven keys and values in every layer, and the cache advanced by seven, in all."""
    params, sizes = _model(reference, num_layers=2)
    prompt = randint(0, 13, (2, 7))
    student.prefill(params, prompt, _empty(student, sizes, 2), sizes)
    cache = _empty(student, sizes, 2)  # the same prompt again, for another cache
    answer = student.prefill(params, prompt, cache, sizes)
    assert_equal(list(answer.shape), [2, 7, 13], what="the shape of the logits")
    assert_varies(answer, above=1e-3, what="the logits")
    assert_equal(
        sum(cache.advanced), 7, what="the tokens that the cache was advanced by"
    )
    tokens = [
        sum(k.shape[2] for layer, k, _ in cache.appended if layer == i)
        for i in range(sizes.num_layers)
    ]
    assert_equal(
        tokens, [7] * sizes.num_layers, what="the keys that each layer was given"
    )


@points(2)
def test_a_cache_in_use_is_refused(student, reference):
    """Five tokens of an earlier text are still in there: ValueError that names the 5, before
    anything is appended.
    """
    params, sizes = _model(reference)
    cache = _empty(student, sizes, 2, length=5)
    assert_refused(
        student.prefill, params, randint(0, 13, (2, 3)), cache, sizes, sizes=(5,)
    )
    assert_equal(len(cache.appended), 0, what="the number of appends to a cache in use")


@points(0.5)
def test_a_left_padded_prompt_reads_like_the_prompt_alone(student, reference):
    """The mask is handed on: row 1 has three pads in front, and its last four rows of logits are
    those without them. Scores may be of any size.
    """
    params, sizes = _model(reference)
    prompt = randint(0, 13, (2, 7))
    large = [
        {**block, "w_q": 300 * block["w_q"], "w_k": 300 * block["w_k"]}
        for block in params["blocks"]
    ]
    single = reference.random_params(sizes, learned=True, dtype=torch.float32)
    large_and_single = [
        {name: large[0][name].to(weight.dtype) for name, weight in block.items()}
        for block in single["blocks"]
    ]
    for weights, pads in (
        (params, 3),
        (params, 2),
        ({**params, "blocks": large}, 3),
        ({**single, "blocks": large_and_single}, 3),
    ):
        mask = torch.arange(7) >= tensor([[0], [pads]])
        cache = _empty(student, sizes, 2, dtype=weights["embed"].dtype)
        answer = student.prefill(weights, prompt, cache, sizes, mask=mask)
        whole = reference.decoder_lm(prompt[:1], weights, sizes)
        atol = 2e-6 if weights["embed"].dtype == torch.float64 else 1e-4
        assert_close(answer[:1], whole, atol=atol, what="the row without padding")
        alone = reference.decoder_lm(prompt[1:, pads:], weights, sizes)
        what = "the real tokens of the padded row"
        assert_close(answer[1:, pads:], alone, atol=atol, what=what)
