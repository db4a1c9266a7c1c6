"""causal_attention_backward: two kernels, and every gradient has one owner."""

import math

import torch

from autograder.suite import assert_unchanged, points, randn, zeros

from .launches import assert_answer, assert_precise, rounded

NAMES = ("dq", "dk", "dv")


@points(2)
def test_the_gradient_of_v(student):
    """dV = Pᵀ dO. Two heads of 64 tokens: each key tile has a program, which walks over the
    queries.
    """
    _assert_gradients(student, 2, 64, 64, names="dv")


@points(3)
def test_the_gradient_of_k(student):
    """dK = dSᵀ Q / √d, with dS = P ∘ (dP - D)."""
    _assert_gradients(student, 2, 64, 64, names="dk")


@points(3)
def test_the_gradient_of_q(student):
    """dQ = dS K / √d: each query tile has a program, which walks over the keys."""
    _assert_gradients(student, 2, 64, 64, names="dq")


@points(1.5)
def test_sentences_and_heads(student):
    """Two sentences of three heads, one tile each."""
    _assert_gradients(student, 3, 32, 32, sentences=2)


@points(2)
def test_ragged_tiles(student):
    """65 tokens, then 7: what is beyond the end weighs nothing, in any sum."""
    for n in (65, 7):
        _assert_gradients(student, 2, n, n)


@points(2)
def test_causal_is_aligned_at_the_bottom_right(student):
    """32 queries on 96 keys, and 40 on 70."""
    for n_q, n_k in ((32, 96), (40, 70)):
        _assert_gradients(student, 2, n_q, n_k)


@points(1.5)
def test_rows_that_see_nothing_contribute_nothing(student):
    """72 queries on 20 keys: the first 52 see nothing. Their dq is 0, and nothing is nan."""
    inputs, expected = _case(1, 2, 72, 20, 16)
    gradients, launch = student.launch("causal_attention_backward", *inputs)
    assert_answer(
        gradients[0][:, :, :52], zeros(1, 2, 52, 16).float(), launch, what="dq"
    )
    for gradient, right, name in zip(gradients, expected, NAMES, strict=True):
        assert_answer(gradient, right, launch, 1e-2, what=name)


@points(1)
def test_wide_heads(student):
    """d = 64: the scale is that of d."""
    _assert_gradients(student, 2, 40, 40, d=64)


@points(1)
def test_float32_is_not_rounded(student):
    """Numbers of 23 bits: no product is rounded to 10."""
    inputs, expected = _case(1, 2, 40, 40, 16, parts=None)
    gradients, _ = student.launch("causal_attention_backward", *inputs)
    for gradient, right, name in zip(gradients, expected, NAMES, strict=True):
        assert_precise(gradient, right, atol=1e-4, what=name)


@points(3.5)
def test_every_gradient_is_stored_once_by_its_owner(student):
    """Counted: two kernels, a program for each key tile and for each query tile, no gradient loaded
    or added to.
    """
    inputs, expected = _case(1, 2, 64, 96, 16)
    gradients, launch = student.launch("causal_attention_backward", *inputs)
    assert_answer(gradients[2], expected[2], launch, 1e-2, what="dv")
    assert launch.kernels == 2, (
        f"{launch.kernels} kernels were launched: one for dk and dv, one for dq."
    )
    assert launch.programs == 2 * (3 + 2), (
        f"{launch.programs} programs: each of two heads has 3 tiles of 32 keys and 2 tiles of 32 "
        "queries."
    )
    stored = sum(launch.stores.values())
    assert stored == 2 * 16 * (64 + 96 + 96), (
        f"dq, dk and dv have {2 * 16 * (64 + 96 + 96)} numbers, and the kernels store {stored}."
    )
    loaded = set(launch.loads) - {"q", "k", "v", "o", "lse", "do"}
    assert not loaded, (
        f"The kernels load {', '.join(sorted(loaded))} too. A program keeps its gradient on the "
        "chip, and stores it once."
    )


@points(1)
def test_keys_stay_on_the_chip(student):
    """Counted: the first kernel loads its keys once, the second one at most once a query tile."""
    inputs, expected = _case(1, 2, 64, 64, 16)
    gradients, launch = student.launch("causal_attention_backward", *inputs)
    assert_answer(gradients[2], expected[2], launch, 1e-2, what="dv")
    for name in ("k", "v"):
        most = 2 * 16 * 64 * (1 + 2)
        loaded = launch.loads.get(name, 0)
        assert loaded <= most, (
            f"The kernels load {loaded} numbers of {name}; once, and then once for each of two "
            f"query tiles, are {most}."
        )
    assert launch.largest <= 1024, (
        f"A tile has {launch.largest} elements, more than 32 × 32."
    )


@points(0.5)
def test_the_wrapper_computes_nothing(student):
    """Counted: D is a sum over products, and belongs in a kernel. Arguments stay as they are."""
    _assert_gradients(student, 2, 32, 32)
    assert_unchanged()


def _case(b, h, n_q, n_k, d, parts=8):
    """(q, k, v, o, lse, do) and (dq, dk, dv) by the whole matrix, in float32."""
    shapes = [(b, h, n, d) for n in (n_q, n_k, n_k, n_q)]
    numbers = [randn(*shape) for shape in shapes]
    q, k, v, do = (
        rounded(t, parts).double() if parts else t.float().double() for t in numbers
    )
    s = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(d)
    s = s.masked_fill(
        torch.arange(n_k) > torch.arange(n_q)[:, None] + n_k - n_q, -torch.inf
    )
    p = torch.softmax(s, dim=-1).nan_to_num(0.0)
    o = p @ v
    ds = p * (do @ v.mT - (do * o).sum(dim=-1, keepdim=True)) / math.sqrt(d)
    inputs = q, k, v, o, torch.logsumexp(s, dim=-1), do
    gradients = ds @ k, ds.mT @ q, p.mT @ do
    return tuple(t.float() for t in inputs), tuple(t.float() for t in gradients)


def _assert_gradients(student, heads, n_q, n_k, d=16, sentences=1, names=NAMES):
    inputs, expected = _case(sentences, heads, n_q, n_k, d)
    gradients, launch = student.launch("causal_attention_backward", *inputs)
    for gradient, right, name in zip(gradients, expected, NAMES, strict=True):
        if name in names:
            assert_answer(gradient, right, launch, 1e-2, what=name)
