"""moe_layer: every token goes through its own few experts.

Where routing is compared, scores are far enough apart that rounding cannot change the choice.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_equal,
    assert_refused,
    assert_same_gradients,
    call_twice,
    eye,
    points,
    randn,
    tensor,
    zeros,
)


def _layer(b=2, n=5, d=3, e=5, f=7):
    """x, w_gate, w1, w2: random experts, all different."""
    return randn(b, n, d), randn(d, e), randn(e, d, f), randn(e, f, d)


def _pair(answer):
    assert isinstance(answer, (tuple, list)), "The answer should be the pair (y, load)."
    assert_equal(len(answer), 2, what="the number of results")
    return answer


def _slow(x, w_gate, w1, w2, num_active):
    """Token by token, all experts, weights 0 where an expert is not chosen."""
    scores = x @ w_gate
    least = scores.sort(dim=-1, descending=True).values[
        ..., num_active - 1 : num_active
    ]
    weights = scores.masked_fill(scores < least, float("-inf")).softmax(dim=-1)
    answers = torch.einsum("bnd,edf->bnef", x, w1).relu()
    return torch.einsum("bnef,efd,bne->bnd", answers, w2, weights)


@points(1.5)
def test_weighted_sum_of_the_chosen_experts(student):
    """E = 5, A = 2: the two best experts of each token, weighted by a softmax over their two
    scores.
    """
    x, w_gate, w1, w2 = _layer()
    y, _ = _pair(call_twice(student.moe_layer, x, w_gate, w1, w2, 2))
    assert_close(y, _slow(x, w_gate, w1, w2, 2), what="y")
    assert_close_in_turn(
        lambda *a: _pair(student.moe_layer(*a))[0],
        _slow,
        *(x, w_gate, w1, w2, 2),
        others=(None, None, None, None, 3),
    )


@points(1)
def test_every_token_has_its_own_route(student):
    """One sentence whose six tokens want six different experts, one each (A = 1). Expert e
    multiplies by e + 1.
    """
    x, w_gate = 10 * eye(6).unsqueeze(0), eye(6).flip(0)
    w2 = torch.stack([(e + 1) * eye(6) for e in range(6)])
    y, _ = _pair(student.moe_layer(x, w_gate, eye(6).expand(6, 6, 6), w2, 1))
    assert_close(
        y[0].diagonal(),
        torch.arange(60, 0, -10, dtype=torch.float64),
        what="what each token gets back",
    )


@points(1)
def test_no_expert_turns_tokens_away(student):
    """Twelve tokens that all want the same two of six experts: each is answered, whatever the
    load.
    """
    x, w_gate, w1, w2 = _layer(b=3, n=4, e=6)
    x[..., 0] = 5 + x[..., 0].abs()
    w_gate[0] = tensor([0.0, 9.0, 1.0, -3.0, 7.0, 2.0])
    y, load = _pair(student.moe_layer(x, w_gate, w1, w2, 2))
    assert_close(y, _slow(x, w_gate, w1, w2, 2), what="y")
    assert_equal(load.sum().item(), 24, what="the sum of the load")


@points(0.5)
def test_the_load_counts_tokens_per_expert(student):
    """load [E] in int64: all (token, expert) pairs, so it sums to B · N · A; idle experts count
    0.
    """
    x, w_gate, _, _ = _layer(b=3, n=4)
    w_gate = torch.cat([w_gate[:, :4], zeros(3, 1)], dim=1)
    chosen = torch.cat([x @ w_gate[:, :4], torch.full((3, 4, 1), -99.0)], dim=-1)
    x = torch.cat(
        [x, torch.ones(3, 4, 1)], dim=-1
    )  # a constant feature keeps expert 4 idle
    w_gate = torch.cat(
        [w_gate, torch.tensor([[0.0, 0, 0, 0, -99.0]], dtype=torch.float64)]
    )
    _, load = _pair(student.moe_layer(x, w_gate, randn(5, 4, 2), randn(5, 2, 4), 3))
    expected = torch.zeros(5, dtype=torch.int64)
    for e in chosen.topk(3, dim=-1).indices.flatten().tolist():
        expected[e] += 1
    assert_close(load, expected, what="load")


@points(0.5)
def test_equal_scores_activate_no_more_experts(student):
    """Where scores are equal, A experts are chosen all the same, whichever they are: the load sums
    to B · N · A.
    """
    x, _, w1, w2 = _layer()
    _, load = _pair(student.moe_layer(x, zeros(3, 5), w1, w2, 2))
    assert_equal(int(load.sum()), 20, what="the sum of the load")


@points(0.5)
def test_one_expert_is_an_ordinary_mlp(student):
    """E = A = 1: weight 1, no choice. Then A = E = 3: all experts, an ordinary softmax."""
    for e in (1, 3):
        x, w_gate, w1, w2 = _layer(e=e)
        y, _ = _pair(student.moe_layer(x, w_gate, w1, w2, e))
        assert_close(y, _slow(x, w_gate, w1, w2, e), what="y")


@points(0.5)
def test_scores_of_any_size(student):
    """Gate scores near ±1000 and −60000 in float32, near ±2000 in float16: finite answers, the
    better expert wins.
    """
    w_gate = torch.tensor([[1000.0, -60000.0, 900.0], [-1000.0, -1200.0, -60000.0]])
    w1, w2 = (
        10 * torch.ones(3, 2, 1),
        torch.tensor([[[0.1, 0.2]], [[0.3, 0.5]], [[0.7, 0.9]]]),
    )
    y, _ = _pair(student.moe_layer(torch.eye(2).unsqueeze(0), w_gate, w1, w2, 2))
    assert_close(y, torch.tensor([[[1.0, 2.0], [1.0, 2.0]]]), atol=1e-4, what="y")
    w_gate = torch.tensor([[2000.0, 1968.0, 0.0], [-2040.0, -2008.0, -40.0]])
    for dtype, atol in ((torch.float32, 1e-4), (torch.float16, 1e-2)):
        tokens, *weights = (
            t.to(dtype) for t in (torch.eye(2).unsqueeze(0), w_gate, w1, w2)
        )
        y, _ = _pair(student.moe_layer(tokens, *weights, 3))
        expected = torch.tensor([[[1.0, 2.0], [7.0, 9.0]]]).to(dtype)
        assert_close(y, expected, atol=atol, what="y")


@points(0.5)
def test_sizes_that_coincide_and_a_transposed_input(student):
    """B = N = D = E = F = 3 and x in another memory order; then one sentence of one token. Hidden
    values are positive and large.
    """
    x, w_gate, w1, w2 = _layer(3, 3, 3, 3, 3)
    x, w1 = x.abs() + 2, w1.abs() + 2
    x = x.transpose(0, 1)
    assert_close(
        _pair(student.moe_layer(x, w_gate, w1, w2, 2))[0],
        _slow(x, w_gate, w1, w2, 2),
        what="y",
    )
    x = x[:1, :1]
    assert_close(
        _pair(student.moe_layer(x, w_gate, w1, w2, 2))[0],
        _slow(x, w_gate, w1, w2, 2),
        what="y",
    )


@points(1)
def test_gradients_reach_the_gate_and_the_experts(student):
    """The gate learns through the weights of the chosen experts; all four gradients are
    compared.
    """
    learned = [value.requires_grad_() for value in _layer()]
    assert_same_gradients(
        lambda *a: _pair(student.moe_layer(*a))[0], _slow, *learned, 2
    )


@points(1)
def test_only_chosen_experts_compute(student):
    """FLOPs of the matrix products are counted with E = 12 and A = 2: more than A experts a token
    is too many.
    """
    x, w_gate, w1, w2 = _layer(b=2, n=9, d=5, e=12, f=7)
    answer, cost = student.counted("moe_layer", x, w_gate, w1, w2, 2)
    assert _pair(answer)[0].std() > 1e-3, "All results are the same."
    gate, expert = (
        2 * 18 * 5 * 12,
        2 * 18 * 2 * 5 * 7,
    )  # of 18 tokens, each to one expert
    spent = (cost.flops - gate) / expert
    assert spent <= 2.5, (
        f"Your layer spends the multiplications of {spent:.1f} experts a token; A is 2."
    )


@points(0.5)
def test_half_precision_stays_half_precision(student):
    """float16 in, float16 out; the load stays int64."""
    x = eye(3).repeat(2, 1, 1)
    w_gate, w1, w2 = (
        3 * eye(3) + eye(3)[[1, 2, 0]],
        randn(3, 3, 5),
        0.5 * randn(3, 5, 3),
    )
    y, load = _pair(student.moe_layer(*(t.half() for t in (x, w_gate, w1, w2)), 2))
    assert_close(y, _slow(x, w_gate, w1, w2, 2).half(), atol=8e-3, rtol=4e-3, what="y")
    assert load.dtype == torch.int64, "The load counts tokens: int64."


@points(0.5)
def test_a_number_of_active_experts_outside_1_to_E_is_refused(student):
    """A = 0 sends tokens nowhere, A = 6 of 5 experts cannot be. A ValueError names the numbers."""
    inputs = _layer()
    assert_refused(student.moe_layer, *inputs, 0, sizes=(0,))
    assert_refused(student.moe_layer, *inputs, 6, sizes=(6, 5))


@points(0.5)
def test_sizes_that_cannot_match_are_refused(student):
    """As many gate columns as experts in w1 and in w2, and all of width D. A ValueError names the
    sizes.
    """
    x, w_gate, w1, w2 = _layer()
    f = student.moe_layer
    for e, hidden, d in ((4, 6, 2), (6, 9, 4)):
        assert_refused(f, x, randn(3, e), w1, w2, 2, sizes=(e, 5))
        assert_refused(f, x, randn(d, 5), w1, w2, 2, sizes=(d, 3))
        assert_refused(f, x, w_gate, w1, randn(e, 7, 3), 2, sizes=(5, e))
        assert_refused(f, x, w_gate, w1, randn(5, hidden, 3), 2, sizes=(7, hidden))
        assert_refused(f, x, w_gate, w1, randn(5, 7, d), 2, sizes=(3, d))
        assert_refused(f, randn(2, 5, d), w_gate, w1, w2, 2, sizes=(d, 3))
