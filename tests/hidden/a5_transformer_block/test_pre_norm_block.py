"""pre_norm_block: normalize, sublayer, add, twice; the stream itself is never normalized."""

import torch

from autograder.suite import assert_close, assert_refused, call_twice, forbid, ones, points, randn, tensor, uses, zeros

pytestmark = [
    uses("layer_norm", "mlp"),
    forbid("torch.nn.TransformerEncoderLayer", "torch.nn.TransformerDecoderLayer", "torch.nn.MultiheadAttention"),
]


def _params(d=6, heads=2, d_head=5, f=7, trained_norms=False):
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


def _silent(p, attention=True, mlp=True):
    """The sublayers return zeros."""
    changed = {"w_o": 0 * p["w_o"]} if attention else {}
    return {**p, **changed, **({"w2": 0 * p["w2"], "b2": 0 * p["b2"]} if mlp else {})}


@points(1.5)
def test_norms_stand_in_front_of_the_sublayers(student, reference):
    """Random weights, norms at 1 and 0: x + f(LN(x)) for the attention, then for the MLP. x is large here."""
    x, p = 2 * randn(2, 5, 6) + 1, _params()
    assert_close(call_twice(student.pre_norm_block, x, p, 2), reference.pre_norm_block(x, p, 2), atol=1e-5)


@points(1)
def test_silent_sublayers_leave_the_identity(student):
    """Both sublayers return zeros, the norms are trained: x comes out as it went in. What touches your stream? With
    sublayers that speak it changes."""
    x, p = (5 * randn(3, 2, 6) + 2).transpose(0, 1), _params(trained_norms=True)
    assert not torch.equal(student.pre_norm_block(x, p, 2), x), "The answer is x."
    assert_close(student.pre_norm_block(x, _silent(p), 2), x)


@points(1)
def test_each_norm_has_its_own_parameters(student, reference):
    """Norms as they are after training: two pairs of gamma and beta, all different. The attention is silent."""
    x, p = randn(2, 5, 6), _silent(_params(trained_norms=True), mlp=False)
    assert_close(student.pre_norm_block(x, p, 2), reference.pre_norm_block(x, p, 2), atol=1e-5)


@points(0.5)
def test_the_residual_passes_the_attention(student, reference):
    """A silent attention: the MLP still gets the tokens."""
    x, p = randn(2, 5, 6), _silent(_params(), mlp=False)
    assert_close(student.pre_norm_block(x, p, 2), reference.pre_norm_block(x, p, 2), atol=1e-5)


@points(0.5)
def test_the_residual_passes_the_mlp(student, reference):
    """A silent MLP: what the attention made still comes out."""
    x, p = randn(2, 5, 6), _silent(_params(), attention=False)
    assert_close(student.pre_norm_block(x, p, 2), reference.pre_norm_block(x, p, 2), atol=1e-5)


@points(1)
def test_the_mask_reaches_the_attention(student, reference):
    """Causal [N, N], then one mask a sentence [B, N, N] whose first query sees nothing. The MLP is silent."""
    x, p = randn(3, 4, 6), _silent(_params(), attention=False)
    causal = torch.arange(4) <= torch.arange(4)[:, None]
    own = torch.stack([causal, causal.T, causal & (torch.arange(4) > 0)])
    for mask in (causal, own):
        assert_close(student.pre_norm_block(x, p, 2, mask), reference.pre_norm_block(x, p, 2, mask), atol=1e-5)


@points(0.5)
def test_one_head_and_as_many_tokens_as_sentences(student, reference):
    """B = N = H = 3, then a batch of one sentence with one token. The MLP is silent."""
    p = _silent(_params(heads=3, d_head=2), attention=False)
    for x in (randn(3, 3, 6), randn(1, 1, 6)):
        assert_close(student.pre_norm_block(x, p, 3), reference.pre_norm_block(x, p, 3), atol=1e-5)


@points(1)
def test_gradients_reach_the_input_and_all_weights(student, reference):
    """x and all twelve weights are compared."""
    x, p, up = randn(2, 4, 6), _params(trained_norms=True), randn(2, 4, 6)
    mine, theirs = ({k: v.clone().requires_grad_() for k, v in {**p, "x": x}.items()} for _ in range(2))
    y = student.pre_norm_block(mine["x"], {k: mine[k] for k in p}, 2)
    assert isinstance(y, torch.Tensor), "The answer should be a tensor."
    assert y.requires_grad, "The result is cut off from the inputs."
    (y * up).sum().backward()
    (reference.pre_norm_block(theirs["x"], {k: theirs[k] for k in p}, 2) * up).sum().backward()
    for name, t in mine.items():
        assert t.grad is not None, f"No gradient arrives at {name}."
        assert_close(t.grad, theirs[name].grad, atol=1e-5, rtol=1e-5, what=f"the gradient of {name}")


@points(0.5)
def test_half_precision_stays_half_precision(student, reference):
    """float16 in, float16 out. The MLP is silent."""
    x, p = randn(1, 4, 6), {k: 0.5 * v for k, v in _silent(_params(), attention=False).items()}
    expected = reference.pre_norm_block(x, p, 2).half()
    y = student.pre_norm_block(x.half(), {k: v.half() for k, v in p.items()}, 2)
    assert_close(y, expected, atol=3e-2, rtol=3e-2)


@points(0.5)
def test_heads_that_do_not_divide_are_refused(student):
    """Ten columns for three heads: the ValueError of the attention comes through. (With two heads all is well.)"""
    x, p = tensor([[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]]), _params()
    assert_refused(student.pre_norm_block, x, p, 3, sizes=(10, 3))
