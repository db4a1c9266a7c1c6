"""multi_head_sum: a plain sum of what each head writes, equal to concatenation and one output
matrix.
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
    uses,
    zeros,
)

from .ready_made import ATTENTION

pytestmark = [
    forbid(*ATTENTION),
    uses("split_heads", "merge_heads", "multi_head_attention"),
]


def _far_apart(dtype):
    """Tokens [1, 6, 4] and w_q, with keys that are the tokens: scores of 1960 and −2040 in one
    call; and w_v, w_heads.
    """
    _, tokens = far_apart(dtype)
    w_q = zeros(4, 4)
    w_q[0, 0], w_q[1, 0], w_q[1, 1] = 8000.0, -4000.0, -80.0
    return (
        tokens.unsqueeze(0),
        w_q.to(dtype),
        randn(4, 4).to(dtype),
        randn(1, 4, 4).to(dtype),
    )


@points(2)
def test_equals_concatenation_and_one_output_matrix(student, reference):
    """Stack the heads' matrices on top of each other: multi_head_attention with that w_o gives the
    same.
    """
    x, w_q, w_k, w_v, w_heads = (
        randn(2, 5, 6),
        randn(6, 9),
        randn(6, 9),
        randn(6, 9),
        randn(3, 3, 6),
    )
    expected = reference.multi_head_attention(
        x, w_q, w_k, w_v, w_heads.reshape(9, 6), 3
    )
    assert_close(
        call_twice(student.multi_head_sum, x, w_q, w_k, w_v, w_heads, 3), expected
    )
    everything = torch.ones(5, 5).bool()
    assert_close_in_turn(
        student.multi_head_sum,
        reference.multi_head_sum,
        *(x, 0.2 * w_q, 0.2 * w_k, w_v, w_heads, 3, everything.tril()),
        others=(None, None, None, None, None, None, everything),
    )


@points(2)
def test_heads_are_added_not_averaged(student):
    """Five heads that each write 1 make 5. The notes say "weighted average"; the weights there are
    matrices.
    """
    x, w_q, no_keys = ones(1, 3, 5), randn(5, 10), zeros(5, 10)
    w_v, w_heads = ones(5, 10) / 5, ones(5, 2, 5) / 2
    assert_close(
        student.multi_head_sum(x, w_q, no_keys, w_v, w_heads, 5), 5 * ones(1, 3, 5)
    )


@points(1)
def test_each_head_writes_with_its_own_matrix(student):
    """Head h copies its value to column h of the output: nothing of another head may appear
    there.
    """
    x, w_q, no_keys = randn(2, 5, 3), randn(3, 3), zeros(3, 3)
    w_heads = eye(3).unsqueeze(1)  # [H, 1, D]
    expected = x.mean(dim=1, keepdim=True).expand(2, 5, 3)
    assert_close(student.multi_head_sum(x, w_q, no_keys, eye(3), w_heads, 3), expected)


@points(1)
def test_values_may_have_another_size_than_keys(student):
    """d_v is not d, and neither is D / H."""
    x, w_v, w_heads = randn(2, 5, 7), randn(7, 6), randn(2, 3, 7)
    expected = x.mean(dim=1, keepdim=True) @ w_v @ w_heads.reshape(6, 7)
    assert_close(
        student.multi_head_sum(x, zeros(7, 10), randn(7, 10), w_v, w_heads, 2),
        expected.expand(2, 5, 7),
    )


@points(1)
def test_masks_of_two_three_and_four_axes(student, reference):
    """[N, N] goes for all, also for five sentences of five tokens; [B, N, N] is one a sentence, here
    as many as heads; four axes are used as they are. Allowed scores may be far below zero.
    """
    w_v, w_heads = randn(6, 6), randn(2, 3, 6)
    for batch, shape in (
        (2, (2, 5, 5)),
        (5, (5, 5)),
        (2, (5, 5)),
        (2, (2, 1, 5, 5)),
        (2, (1, 2, 5, 5)),
    ):
        x = randn(batch, 5, 6)
        values = (x @ w_v).view(batch, 5, 2, 3).transpose(1, 2)  # [B, H, N, d_v]
        mask = (rand(*shape) < 0.5) | eye(5).bool()
        share = mask.double() / mask.double().sum(dim=-1, keepdim=True)
        share = share.unsqueeze(1) if share.dim() == 3 else share
        answer = student.multi_head_sum(
            x, zeros(6, 4), randn(6, 4), w_v, w_heads, 2, mask
        )
        expected = (share @ values @ w_heads).sum(dim=1)
        assert_close(
            answer, expected, what=f"the answer to a mask of {len(shape)} axes"
        )
    # the two keys that may be seen have scores of -16000
    tokens, w_q, w_v, w_heads = _far_apart(torch.float64)
    first_two = (arange(6) < 2).expand(6, 6)
    arguments = tokens, 8 * w_q, eye(4), w_v, w_heads, 1, first_two
    assert_close(
        student.multi_head_sum(*arguments), reference.multi_head_sum(*arguments)
    )


@points(1)
def test_gradients_reach_the_tokens_and_every_head_matrix(student, reference):
    """Each W_h gets the gradient of its own head's answer; x, laid out otherwise, that of the
    values it gave.
    """
    x, w_v, w_heads = randn(2, 6, 5, grad=True), randn(6, 6), randn(3, 2, 6, grad=True)
    arguments = x.transpose(1, 2), zeros(6, 6), zeros(6, 6), w_v, w_heads, 3
    assert_same_gradients(student.multi_head_sum, reference.multi_head_sum, *arguments)


@points(1)
def test_half_precision_stays_half_precision(student, reference):
    """float16 in, float16 out. Every head writes 2 here, so that rounding changes nothing. Scores
    of 2000 and of −2000 stand in one call.
    """
    x, nothing, w_v, w_heads = (
        t.half() for t in (ones(1, 3, 5), zeros(5, 6), ones(5, 6) / 5, ones(3, 2, 5))
    )
    assert_close(
        student.multi_head_sum(x, nothing, nothing, w_v, w_heads, 3),
        6 * ones(1, 3, 5).half(),
        atol=2e-2,
    )
    for dtype in (torch.float16, torch.float64):
        tokens, w_q, w_v, w_heads = _far_apart(dtype)
        arguments = tokens, w_q, eye(4).to(dtype), w_v, w_heads, 1
        expected = reference.multi_head_sum(*arguments)
        assert_close(student.multi_head_sum(*arguments), expected, atol=4e-3)


@points(1)
def test_the_wrong_number_of_matrices_is_refused(student):
    """Three heads and four output matrices, or two: ValueError, with both numbers in its
    message.
    """
    x, w = randn(2, 5, 7), randn(7, 15)
    assert_refused(student.multi_head_sum, x, w, w, w, randn(4, 5, 7), 3, sizes=(4, 3))
    assert_refused(student.multi_head_sum, x, w, w, w, randn(2, 5, 7), 3, sizes=(2, 3))
