"""What the tests of the pre-norm block and of the post-norm block share."""

import torch

from autograder.suite import (
    assert_close,
    assert_same_gradients,
    forbid,
    ones,
    randn,
    uses,
    zeros,
)

MARKS = [
    uses("layer_norm", "mlp"),
    forbid(
        "torch.nn.TransformerEncoderLayer",
        "torch.nn.TransformerDecoderLayer",
        "torch.nn.MultiheadAttention",
    ),
]


def params(d=6, heads=2, d_head=5, f=7, trained_norms=False):
    """Random weights. Norms start at 1 and 0 unless `trained_norms`."""
    inner = heads * d_head
    p = {
        "w_q": 0.5 * randn(d, inner),
        "w_k": 0.5 * randn(d, inner),
        "w_v": 0.5 * randn(d, inner),
        "w_o": 0.5 * randn(inner, d),
        "w1": randn(d, f),
        "b1": randn(f),
        "w2": randn(f, d),
        "b2": randn(d),
    }
    for name in ("ln1", "ln2"):
        p[f"{name}_gamma"] = 1 + 0.5 * randn(d) if trained_norms else ones(d)
        p[f"{name}_beta"] = randn(d) if trained_norms else zeros(d)
    return p


def silent(p, attention=True, mlp=True):
    """The sublayers return zeros."""
    changed = {"w_o": 0 * p["w_o"]} if attention else {}
    return {**p, **changed, **({"w2": 0 * p["w2"], "b2": 0 * p["b2"]} if mlp else {})}


def assert_agrees(block, key, x, p, *heads_and_mask):
    """Assert that the block answers as the answer key's does, to 1e-5."""
    assert_close(block(x, p, *heads_and_mask), key(x, p, *heads_and_mask), atol=1e-5)


def with_large_scores(p):
    """The block with scores in the ten thousands: allowed ones lie far below any finite fill, and
    rows far apart.
    """
    return {**p, "w_q": 300 * p["w_q"], "w_k": 300 * p["w_k"]}


def masks_of_three_sentences():
    """The causal mask [4, 4], and masks [3, 4, 4], one a sentence. In the third nobody may see the
    first token, so that its first query sees nothing.
    """
    causal = torch.arange(4) <= torch.arange(4)[:, None]
    # the first sentence's is not causal: who is always causal has not taken its mask for all
    return causal, torch.stack([causal.T, causal, causal & (torch.arange(4) > 0)])


def assert_gradients_agree(block, key):
    """Assert that x and all twelve weights get the answer key's gradients."""
    x = randn(2, 4, 6, grad=True)
    p = {
        name: weight.requires_grad_()
        for name, weight in params(trained_norms=True).items()
    }
    assert_same_gradients(block, key, x, p, 2, tolerance=1e-5)


def assert_stays_half(block, key, gain):
    """Assert that float16 comes out where float16 goes in, and that norms are computed in float32.
    The MLP is silent.

    Args:
        gain: a factor of the attention's output beside large tokens.
    """
    x, p = (
        randn(1, 4, 6),
        {k: 0.5 * v for k, v in silent(params(), attention=False).items()},
    )
    y = block(x.half(), {k: v.half() for k, v in p.items()}, 2)
    assert_close(y, key(x, p, 2).half(), atol=3e-2, rtol=3e-2)
    # squares of 400 are beyond float16, and those of 3000 take the digits of float32
    same_scores = {
        **p,
        "w_q": 0 * p["w_q"],
        "w_k": 0 * p["w_k"],
        "w_o": gain * p["w_o"],
    }
    for dtype, size, offset in ((torch.float16, 400, 0), (torch.float32, 1, 3000)):
        tokens = (size * x + offset).to(dtype)
        weights = {name: weight.to(dtype) for name, weight in same_scores.items()}
        exact = key(tokens.double(), {k: v.double() for k, v in weights.items()}, 2).to(
            dtype
        )
        assert_close(block(tokens, weights, 2), exact, atol=5e-2, rtol=5e-3)
