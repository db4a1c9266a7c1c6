"""Blocks as the tests of pre-norm and of post-norm want them."""

from autograder.suite import assert_close, ones, randn, zeros


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
