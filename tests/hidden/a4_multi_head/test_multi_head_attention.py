"""multi_head_attention: shapes, scale, masks with heads, cross-attention, and a cost that heads do
not raise.

Where a test is about something else than the scores, w_q is zero: every allowed key then has the
same weight.
"""

import torch

from autograder.suite import (
    arange,
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    eye,
    far_apart,
    forbid,
    ones,
    points,
    rand,
    randn,
    tensor,
    uses,
    zeros,
)

from .ready_made import ATTENTION

pytestmark = [forbid(*ATTENTION), uses("split_heads", "merge_heads")]


def _weights(d_model, num_heads, d_head, d_v=None, d_kv=None, silent=False):
    """w_q, w_k, w_v, w_o; `silent`: zero queries, so that attention is uniform over the allowed
    keys.
    """
    d_v, d_kv = d_v or d_head, d_kv or d_model
    w_q = (
        zeros(d_model, num_heads * d_head)
        if silent
        else randn(d_model, num_heads * d_head)
    )
    return (
        w_q,
        randn(d_kv, num_heads * d_head),
        randn(d_kv, num_heads * d_v),
        randn(num_heads * d_v, d_model),
    )


@points(2)
def test_the_scale_is_the_root_of_the_head_size(student):
    """Two heads of three columns each, on tokens of six numbers: how many terms has a head's dot
    product?
    """
    x, (w_q, w_k, _, w_o) = randn(3, 5, 6), [0.5 * w for w in _weights(6, 2, 3)]
    assert_close(
        student.multi_head_attention(x, w_q, w_k, eye(6), w_o, 2),
        _slow(x, w_q, w_k, eye(6), w_o, 2),
    )


@points(2)
def test_every_head_attends_on_its_own(student):
    """The answer is compared with a plain loop: one attention a head, on that head's columns of the
    projections.
    """
    x, weights = randn(2, 5, 21), _weights(21, 3, 7)
    weights = (0.2 * weights[0], 0.2 * weights[1], weights[2], weights[3])
    # a softmax in float32 is right, and off by 1e-6 where the numbers are large
    assert_close_in_turn(
        student.multi_head_attention,
        _slow,
        *(x, *weights, 3),
        others=(None, None, None, None, None, 7),
        atol=1e-5,
    )


@points(1)
def test_a_transposed_batch_and_a_single_token_are_read_too(student):
    """x's memory may not be in the order of its axes; and one sentence of one token is a
    sentence.
    """
    weights = _weights(6, 2, 3, silent=True)
    for x in (randn(2, 6, 5).transpose(1, 2), randn(1, 1, 6)):
        expected = (x.mean(dim=1, keepdim=True) @ weights[2] @ weights[3]).expand(
            x.shape
        )
        assert_close(student.multi_head_attention(x, *weights, 2), expected)


@points(2)
def test_the_head_size_comes_from_the_weights(student):
    """Here H·d is not D, and d is not D / H. The output still has D columns."""
    x, weights = randn(2, 5, 6), _weights(6, 3, 5, silent=True)
    assert_close(student.multi_head_attention(x, *weights, 3), _slow(x, *weights, 3))


@points(1)
def test_values_may_have_another_size_than_keys(student):
    """d_v is not d here. Which of the two belongs under the root?"""
    x, weights = randn(2, 5, 6), _weights(6, 2, 3, d_v=7)
    assert_close(student.multi_head_attention(x, *weights, 2), _slow(x, *weights, 2))


@points(1)
def test_the_output_matrix_mixes_the_heads(student):
    """With every key weighted alike, each token's answer is the mean token times w_v times w_o,
    from the right.
    """
    x, weights = randn(2, 5, 6), _weights(6, 2, 3, silent=True)
    expected = (x.mean(dim=1, keepdim=True) @ weights[2] @ weights[3]).expand(2, 5, 6)
    assert_close(student.multi_head_attention(x, *weights, 2), expected)


@points(1)
def test_a_mask_of_two_axes_goes_for_every_sentence_and_head(student):
    """A lower triangle, [N, N]: row i of the mask says what token i may look at, so token 0 sees
    only itself. With as many sentences as tokens a mask of two axes means the same.
    """
    weights, mask = _weights(6, 3, 2, silent=True), ones(5, 5).tril().bool()
    for x in (randn(2, 5, 6), randn(5, 5, 6)):
        running_mean = x.cumsum(dim=1) / arange(1, 6).view(1, 5, 1)
        answer = student.multi_head_attention(x, *weights, 3, mask=mask)
        assert_close(answer, running_mean @ weights[2] @ weights[3])


@points(2)
def test_a_mask_of_three_axes_belongs_to_sentences_not_to_heads(student):
    """[B, N, N] with as many sentences as heads: broadcasting would hand sentence 1's mask to head
    1, silently.
    """
    x, weights = randn(3, 5, 6), _weights(6, 3, 2, silent=True)
    mask = (rand(3, 5, 5) < 0.5) | eye(5).bool()
    share = mask.double() / mask.double().sum(dim=-1, keepdim=True)  # [B, N, N]
    answer = call_twice(student.multi_head_attention, x, *weights, 3, mask)
    assert_close(answer, share @ x @ weights[2] @ weights[3])


@points(1)
def test_a_padding_mask_hides_the_same_keys_from_every_query(student):
    """[B, 1, N], from sentence lengths 5, 2 and 4, with two heads: line the axes up with [B, H, N,
    N].
    """
    x, weights = randn(3, 5, 6), _weights(6, 2, 3, silent=True)
    lengths = (5, 2, 4)
    mask = torch.stack([(arange(5) < length).view(1, 5) for length in lengths])
    means = torch.stack(
        [x[i, :length].mean(dim=0) for i, length in enumerate(lengths)]
    )  # [B, D]
    answer = student.multi_head_attention(x, *weights, 2, mask=mask)
    assert_close(answer, (means @ weights[2] @ weights[3]).unsqueeze(1).expand(3, 5, 6))


@points(1)
def test_a_mask_of_four_axes_is_used_as_it_is(student):
    """[1, H, N, N]: here each head has a mask of its own, and head 0 looks at itself while head 1
    looks at token 0.
    """
    x, (w_q, w_k, w_v, w_o) = randn(2, 5, 6), _weights(6, 2, 3, silent=True)
    mask = torch.stack([eye(5).bool(), (arange(5) == 0).expand(5, 5)]).unsqueeze(0)
    values = x @ w_v
    own, first = values[..., :3], values[:, :1, 3:].expand(2, 5, 3)
    answer = student.multi_head_attention(x, w_q, w_k, w_v, w_o, 2, mask=mask)
    assert_close(answer, torch.cat([own, first], dim=-1) @ w_o)


@points(2)
def test_cross_attention_asks_with_x_and_reads_from_x_kv(student):
    """Queries come from x; keys and values both come from x_kv, which has another length and
    another width, and may have a mask.
    """
    # where the sizes agree, a wrong source raises no error, and shows which one it is
    x, same_size, weights = randn(2, 5, 6), randn(2, 5, 6), _weights(6, 3, 2)
    assert_close(
        student.multi_head_attention(x, *weights, 3, x_kv=same_size),
        _slow(x, *weights, 3, same_size),
    )
    x_kv, weights = randn(2, 7, 10), _weights(6, 3, 2, d_kv=10)
    assert_close(
        student.multi_head_attention(x, *weights, 3, x_kv=x_kv),
        _slow(x, *weights, 3, x_kv),
    )
    weights = _weights(6, 3, 2, silent=True)
    same_length = randn(2, 7, 6)
    for source, lengths in ((x_kv, (5, 2)), (x_kv, (3, 4)), (same_length, (3, 4))):
        source = source[..., :6]
        mask = torch.stack([(arange(7) < length).view(1, 7) for length in lengths])
        means = torch.stack(
            [source[i, :length].mean(dim=0) for i, length in enumerate(lengths)]
        )
        expected = (means @ weights[2] @ weights[3]).unsqueeze(1).expand(2, 5, 6)
        assert_close(
            student.multi_head_attention(x, *weights, 3, mask, source), expected
        )


@points(1)
def test_a_query_with_no_key_gives_zeros_and_finite_gradients(student):
    """Token 2 may look at nothing; token 0 may not look at token 4, whose score is huge. Allowed
    scores may be −10¹²: whatever stands in for "forbidden" must be smaller than any number.
    """
    x, weights = randn(1, 5, 6), _weights(6, 2, 3)
    x[0, 4] *= 1e5
    mask = ones(5, 5).tril().bool()
    mask[2] = False
    x.requires_grad_()
    answer = student.multi_head_attention(x, *weights, 2, mask=mask)
    assert_close(answer[:, 2], zeros(1, 6), what="row 2")
    assert_close(
        answer[:, 0], (x[:, 0] @ weights[2] @ weights[3]).detach(), what="row 0"
    )
    answer[:, :4].sum().backward()
    assert bool(x.grad.isfinite().all()), (
        "The gradient of x is not finite where one query has no key."
    )
    # one head of one column: all scores are -1e12
    low = torch.cat([ones(1, 5, 1), randn(1, 5, 1)], dim=-1)
    w_q, w_k = (tensor([[1e6 * sign], [0.0]]) for sign in (-1, 1))
    w_v = tensor([[0.0], [1.0]])
    answer = student.multi_head_attention(
        low, w_q, w_k, w_v, ones(1, 2), 1, mask=ones(5, 5).tril().bool()
    )
    running_mean = low[:, :, 1:].cumsum(dim=1) / arange(1, 6).view(1, 5, 1)
    # float64 has 1e12 + ln 5 to 1e-4, and weights may be exp(score - log of the sum)
    assert_close(
        answer,
        running_mean.expand(1, 5, 2),
        atol=1e-3,
        what="the answer to scores of -1e12",
    )


@points(1)
def test_gradients_reach_every_matrix(student, reference):
    """The gradients of x and of all four matrices are compared: a detached or unused part shows
    here.
    """
    inputs = [
        randn(*s, grad=True) for s in ((2, 5, 6), (6, 4), (6, 4), (6, 10), (10, 6))
    ]
    assert_same_gradients(
        student.multi_head_attention,
        reference.multi_head_attention,
        *inputs,
        2,
        tolerance=2e-5,
    )


@points(1)
def test_operations_do_not_grow_with_the_heads(student):
    """Heads are a batch axis: six heads take as many torch operations as two. A Python loop over
    heads takes more.
    """
    costs = [_cost(student, n=5, num_heads=h) for h in (2, 6)]
    y = randn(2, 5, 12)
    split = [student.cost("split_heads", y, h).operations for h in (2, 6)]
    merge = [
        student.cost("merge_heads", y.view(2, h, 5, 12 // h)).operations for h in (2, 6)
    ]
    # a loop in there is not this question's
    elsewhere = 3 * (split[1] - split[0]) + merge[1] - merge[0]
    grown = costs[1] - costs[0] - elsewhere
    assert grown <= 3, (
        f"{costs[0]} operations with 2 heads and {costs[1]} with 6: is there a loop?"
    )


@points(1)
def test_operations_do_not_grow_with_the_tokens(student):
    """Eleven tokens take as many torch operations as five. A Python loop over positions or
    sentences takes more.
    """
    costs = [_cost(student, n=n, num_heads=2, batch=b) for n, b in ((5, 2), (11, 5))]
    assert costs[1] <= costs[0] + 3, (
        f"{costs[0]} operations with 5 tokens and {costs[1]} with 11: is there a loop?"
    )


@points(1)
def test_half_precision_stays_half_precision(student, reference):
    """float16 in, float16 out, close to the float64 answer; scores of 113000 and more, with the
    scale or before it, are beyond float16. Scores of 2000 and of −2000 stand in one call.
    """
    tokens = eye(2).half().unsqueeze(0)  # each finds itself
    answer = student.multi_head_attention(
        tokens, *(400 * eye(2).half() for _ in "qk"), *(eye(2).half() for _ in "vo"), 1
    )
    assert_close(answer, tokens, what="the answer to scores of 113000")
    x, weights = randn(2, 5, 6), [0.3 * w for w in _weights(6, 2, 3)]
    answer = student.multi_head_attention(x.half(), *(w.half() for w in weights), 2)
    assert_close(answer, _slow(x, *weights, 2).half(), atol=2e-2, rtol=2e-2)
    for dtype in (torch.float16, torch.float64):
        x, x_kv = (tokens.unsqueeze(0) for tokens in far_apart(dtype))
        same, w_v = eye(4).to(dtype), randn(4, 4).to(dtype)
        answer = student.multi_head_attention(x, same, same, w_v, same, 1, x_kv=x_kv)
        expected = reference.multi_head_attention(
            x, same, same, w_v, same, 1, x_kv=x_kv
        )
        assert_close(answer, expected, atol=4e-3)


@points(1)
def test_sizes_that_cannot_match_are_refused(student):
    """Seven columns for two heads; keys wider or narrower than queries; a w_o too short or too
    long: ValueError.
    """
    x, (w_q, w_k, w_v, w_o) = randn(2, 5, 6), _weights(6, 2, 5)
    f = student.multi_head_attention
    assert_refused(f, x, randn(6, 7), randn(6, 7), w_v, w_o, 2, sizes=(7, 2))
    assert_refused(f, x, w_q, w_k, randn(6, 9), randn(9, 6), 2, sizes=(9, 2))
    assert_refused(f, x, w_q, randn(6, 14), w_v, w_o, 2, sizes=(10, 14))
    assert_refused(f, x, w_q, randn(6, 6), w_v, w_o, 2, sizes=(10, 6))
    assert_refused(f, x, w_q, w_k, w_v, randn(8, 6), 2, sizes=(10, 8))
    assert_refused(f, x, w_q, w_k, w_v, randn(12, 6), 2, sizes=(10, 12))


def _slow(x, w_q, w_k, w_v, w_o, num_heads, x_kv=None):
    """One head after the other, on slices of the projections."""
    source = x if x_kv is None else x_kv
    q, k, v = x @ w_q, source @ w_k, source @ w_v
    d, d_v = q.shape[-1] // num_heads, v.shape[-1] // num_heads
    heads = []
    for h in range(num_heads):
        q_h, k_h, v_h = (
            q[..., h * d : (h + 1) * d],
            k[..., h * d : (h + 1) * d],
            v[..., h * d_v : (h + 1) * d_v],
        )
        heads.append(torch.softmax(q_h @ k_h.transpose(1, 2) / d**0.5, dim=-1) @ v_h)
    return torch.cat(heads, dim=-1) @ w_o


def _cost(student, n, num_heads, batch=2):
    """Operations of one call whose answer is right as well: an answer that is wrong costs nothing
    to make.
    """
    x, weights = (
        randn(batch, n, 12),
        _weights(12, num_heads, 12 // num_heads, silent=True),
    )
    expected = (x.mean(dim=1, keepdim=True) @ weights[2] @ weights[3]).expand(
        batch, n, 12
    )
    answer, cost = student.counted("multi_head_attention", x, *weights, num_heads)
    assert_close(answer, expected)
    return cost.operations
