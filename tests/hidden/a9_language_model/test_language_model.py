"""language_model: GPT-2's decoder, with biases and a tied head; through a cache it gives the same
logits.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    assert_same_gradients,
    assert_varies,
    call_twice,
    config,
    points,
    randint,
    tensor,
    uses,
)

from .models import shaken

pytestmark = [uses("gelu")]

TAPE = """
class WatchedCache:
    def __init__(self, num_layers):
        self.length, self.stored = 0, [None] * num_layers
        self.layers, self.advanced, self.keys = [], [], []

    def append(self, layer, k, v):
        self.layers.append(layer)
        self.keys.append(float(k.abs().max()))
        if self.length:
            k = torch.cat([self.stored[layer][0][:, :, : self.length], k], dim=2)
            v = torch.cat([self.stored[layer][1][:, :, : self.length], v], dim=2)
        self.stored[layer] = k.clone(), v.clone()
        return k, v

    def advance(self, c):
        self.advanced.append(c)
        self.length += c


def tape(num_layers):
    return WatchedCache(num_layers)
"""


def _model(reference, layers=1, heads=2, seed=0):
    sizes = config(
        vocab_size=11,
        d_model=6,
        num_layers=layers,
        num_heads=heads,
        d_ff=10,
        context_length=9,
    )
    params = reference.random_params(sizes, seed=seed)
    return shaken(reference, params, 0.5), sizes


def _tape(student, sizes):
    return student.define(TAPE, "tape")(sizes.num_layers)


@points(1.25)
def test_the_logits_of_a_whole_text(student, reference):
    """Two layers, two rows of seven tokens, all parameters away from where they begin. Scores may
    be of any size.
    """
    params, sizes = _model(reference, layers=2)
    ids = randint(0, 11, (2, 7))
    large = [
        block | {"w_q": 300 * block["w_q"], "w_k": 300 * block["w_k"]}
        for block in params["blocks"]
    ]
    for weights in (params, params | {"blocks": large}):
        expected = reference.language_model(ids, weights, sizes)
        assert_close(student.language_model(ids, weights, sizes), expected)


@points(1.25)
def test_every_bias_counts(student, reference):
    """One layer in which a single bias is not 0: that of the queries, values, output, or the two of
    the MLP.
    """
    params, sizes = _model(reference)
    ids = randint(0, 11, (1, 5))
    for name in ("b_q", "b_v", "b_o", "b1", "b2"):
        block = {
            key: 0 * t if key.startswith("b") and key != name else t
            for key, t in params["blocks"][0].items()
        }
        one = params | {"blocks": [block]}
        expected = reference.language_model(ids, one, sizes)
        assert_close(
            student.language_model(ids, one, sizes),
            expected,
            what=f"the logits with {name} alone",
        )


@points(1)
def test_the_mlp_has_a_gelu(student, reference):
    """A model without attention (w_o and b_o are 0), so that only the MLP can differ."""
    params, sizes = _model(reference)
    block = params["blocks"][0]
    params["blocks"] = [
        block
        | {"w_o": 0 * block["w_o"], "b_o": 0 * block["b_o"], "w2": 5 * block["w2"]}
    ]
    ids = randint(0, 11, (3, 4))
    assert_close(
        student.language_model(ids, params, sizes),
        reference.language_model(ids, params, sizes),
    )


@points(1)
def test_without_blocks_it_is_two_tables_a_norm_and_the_embedding(student):
    """Token 0 is (3, 1) at place 0 and (3, 5) at place 1: normalized (1, -1) and (-1, 1), then
    gamma and beta.
    """
    sizes = config(
        vocab_size=3, d_model=2, num_layers=0, num_heads=1, d_ff=2, context_length=4
    )
    params = {"embed": tensor([[3.0, 1.0], [1.0, 3.0], [0.0, 2.0]]), "blocks": []}
    params |= {"positions": tensor([[0.0, 0.0], [0.0, 4.0], [9.0, 0.0], [0.0, 0.0]])}
    params |= {"lnf_gamma": tensor([2.0, 1.0]), "lnf_beta": tensor([0.0, 1.0])}
    expected = tensor([[[6.0, 2.0, 0.0], [-4.0, 4.0, 4.0]]])
    answer = call_twice(student.language_model, torch.tensor([[0, 0]]), params, sizes)
    assert_close(answer, expected, atol=1e-4)


@points(1)
def test_no_position_sees_what_comes_later(student, reference):
    """The last of six tokens is exchanged: the logits before it stay."""
    params, sizes = _model(reference)
    ids = randint(0, 10, (2, 6))
    other = ids.clone()
    other[:, -1] += 1
    first, second = (
        student.language_model(chunk, params, sizes) for chunk in (ids, other)
    )
    assert_equal(list(first.shape), [2, 6, 11], what="the shape")
    assert_close(
        second[:, :5],
        first[:, :5].detach(),
        what="all logits but the last, after another last token,",
    )
    assert bool((first[:, 5] - second[:, 5]).abs().max() > 1e-3), (
        "the logits of the exchanged token did not change."
    )


@points(0.5)
def test_heads_are_as_many_as_the_config_says(student, reference):
    """Three heads of two columns, and one head of six."""
    params, _ = _model(reference)
    ids = randint(0, 11, (2, 5))
    for heads in (3, 1):
        _, sizes = _model(reference, heads=heads)
        assert_close(
            student.language_model(ids, params, sizes),
            reference.language_model(ids, params, sizes),
        )


@points(1.75)
def test_through_a_cache_the_logits_are_the_same(student, reference):
    """Four tokens in chunks of 1·1·2 and of 3·1, against your own logits without a cache. Only the
    first chunk right? Positions, then the cache.
    """
    params, sizes = _model(reference, layers=2)
    ids = randint(0, 11, (2, 4))
    whole = student.language_model(ids, params, sizes)
    assert_varies(whole, above=1e-3, what="the logits")
    assert not torch.equal(whole[:, :1], whole[:, 1:2]), (
        "Two places of the text have the same logits."
    )
    for tokens in (ids, torch.full_like(ids, 3)):  # then one token everywhere
        whole = student.language_model(tokens, params, sizes).detach()
        for chunks in ([1, 1, 2], [3, 1]):
            cache = _tape(student, sizes)
            logits = [
                student.language_model(chunk, params, sizes, cache)
                for chunk in tokens.split(chunks, dim=1)
            ]
            assert_close(
                torch.cat(logits, dim=1),
                whole,
                what=f"the logits in chunks of {chunks}",
            )


@points(1.25)
def test_each_layer_appends_once_and_the_cache_advances_once(student, reference):
    """Two layers, a chunk of four tokens: appends to layers 0 and 1, and then one advance by 4.
    Keys come before values: in this model all keys are 0.
    """
    params, sizes = _model(reference, layers=2)
    params["blocks"] = [
        block | {name: 0 * block[name] for name in ("w_k", "b_k")}
        for block in params["blocks"]
    ]
    cache = _tape(student, sizes)
    assert_varies(
        student.language_model(randint(0, 11, (1, 4)), params, sizes, cache),
        above=1e-3,
        what="the logits",
    )
    assert_equal(list(cache.layers), [0, 1], what="the layers that were appended to")
    assert_equal(
        list(cache.advanced), [4], what="what the cache was advanced by, call by call,"
    )
    assert_equal(
        list(cache.keys), [0.0, 0.0], what="the largest key that each layer appended"
    )


@points(1)
def test_the_operations_of_a_step_are_those_of_one_token(student, reference):
    """One token on seven in the cache: the products of one token, not of eight. The token may be
    looked up by a product.
    """
    params, sizes = _model(reference)
    ids = randint(0, 11, (1, 8))
    cache = _tape(student, sizes)
    student.language_model(ids[:, :7], params, sizes, cache)
    answer, cost = student.counted("language_model", ids[:, 7:], params, sizes, cache)
    assert_varies(answer, above=1e-3, what="the logits")
    layer = 2 * (4 * 6 * 6 + 2 * 6 * 10 + 2 * 6 * 8)
    needed = layer + 2 * 2 * 6 * 11
    assert cost.flops <= 1.01 * needed, (
        f"the step takes {cost.flops} operations; {needed} are needed."
    )


@points(1.25)
def test_gradients_reach_every_parameter(student, reference):
    """The embedding from both ends, the first and the last bias, the positions: against the answer
    key's gradients.
    """
    params, sizes = _model(reference)
    for parameter in reference.list_tensors(params):
        parameter.requires_grad_()
    ids = randint(0, 11, (2, 4))
    assert_same_gradients(
        student.language_model, reference.language_model, ids, params, sizes
    )


@points(0.5)
def test_the_dtype_is_that_of_the_weights(student, reference):
    """float32 in, float32 out; float16 in, float16 out: near your own logits in float64."""
    params, sizes = _model(reference)
    ids = randint(0, 11, (1, 4))
    own = student.language_model(ids, params, sizes)
    assert_varies(own, above=1e-3, what="the logits")
    own = own.detach()
    for dtype, atol in ((torch.float32, 1e-4), (torch.float16, 0.3)):
        narrow = reference.with_tensors(
            params, [t.to(dtype) for t in reference.list_tensors(params)]
        )
        answer = student.language_model(ids, narrow, sizes)
        assert_close(
            answer,
            own.to(dtype),
            atol=atol,
            rtol=0.05 if dtype == torch.float16 else 1e-4,
        )


@points(1.25)
def test_what_cannot_be_right_is_refused(student, reference):
    """Ten tokens in a context of nine, or three on seven in the cache; token 11 of 11, in the
    second row. The cache stays as it was. Nine fit.
    """
    params, sizes = _model(reference)
    assert_varies(
        student.language_model(randint(0, 11, (1, 9)), params, sizes),
        above=1e-3,
        what="the logits",
    )
    assert_refused(
        student.language_model, randint(0, 11, (1, 10)), params, sizes, sizes=(10, 9)
    )
    assert_refused(
        student.language_model,
        torch.tensor([[3, 1], [3, 11]]),
        params,
        sizes,
        sizes=(11,),
    )
    assert_refused(
        student.language_model,
        torch.tensor([[3, 1], [3, -1]]),
        params,
        sizes,
        sizes=(-1, 11),
    )
    cache = _tape(student, sizes)
    assert_varies(
        student.language_model(randint(0, 11, (1, 7)), params, sizes, cache),
        above=1e-3,
        what="the logits",
    )
    assert_refused(
        student.language_model,
        randint(0, 11, (1, 3)),
        params,
        sizes,
        cache,
        sizes=(10, 9),
    )
    for wrong in (11, -1):
        ids = torch.tensor([[wrong]])
        assert_refused(
            student.language_model, ids, params, sizes, cache, sizes=(wrong,)
        )
    assert_equal(
        list(cache.layers),
        [0],
        what="the layers appended to before and during the refused calls",
    )
    assert_equal(
        [cache.length, *cache.advanced],
        [7, 7],
        what="the length of the cache after the refused calls",
    )
