"""grouped_query_attention: neighbouring query heads share a key and value head."""

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
    full,
    ones,
    points,
    rand,
    randn,
    zeros,
)

from .ready_made import ATTENTION

pytestmark = forbid(*ATTENTION)


LOW = full((5, 5, 3, 7), -1e12)


@points(2)
def test_neighbouring_query_heads_share_one_value_head(student):
    """Value head g holds the number g + 1 everywhere. Read the answers off head by head: equal ones
    are neighbours.
    """
    v = arange(1, 4).view(1, 3, 1, 1).expand(1, 3, 5, 7)
    answer = student.grouped_query_attention(randn(1, 6, 2, 11), randn(1, 3, 5, 11), v)
    assert_close(answer, _one_number_a_head([1, 1, 2, 2, 3, 3], 2, 7))


@points(2)
def test_scores_use_the_shared_key_head(student):
    """Each key head points at another token, so the answer tells which key head a query head has
    read.
    """
    q, k = ones(1, 6, 1, 2), -1e3 * ones(1, 2, 5, 2)
    k[0, 0, 1], k[0, 1, 3] = 1e3, 1e3  # key head 0 prefers token 1, key head 1 token 3
    v = arange(5).view(1, 1, 5, 1).expand(1, 2, 5, 1)
    assert_close(
        student.grouped_query_attention(q, k, v),
        _one_number_a_head([1, 1, 1, 3, 3, 3], 1, 1),
    )


@points(2)
def test_equals_one_attention_a_head(student, reference):
    """Compared with a plain loop; N_q, N_k, d and d_v all differ."""
    q, k, v = randn(2, 6, 5, 3), randn(2, 3, 7, 3), randn(2, 3, 7, 4)
    expected = torch.stack(
        [
            reference.masked_attention(q[:, h], k[:, h // 2], v[:, h // 2])
            for h in range(6)
        ],
        dim=1,
    )
    assert_close(call_twice(student.grouped_query_attention, q, k, v), expected)
    assert_close_in_turn(
        student.grouped_query_attention, reference.grouped_query_attention, q, k, v
    )


@points(1)
def test_one_key_head_for_all_and_one_for_each(student, reference):
    """The two ends: multi-query attention, and as many key heads as query heads."""
    q, k, v = randn(2, 5, 3, 7), randn(2, 5, 6, 7), randn(2, 5, 6, 7)
    f = student.grouped_query_attention
    assert_close(f(q, k, v), reference.masked_attention(q, k, v), what="H_kv = H")
    assert_close(
        f(q, k[:, :1], v[:, :1]),
        reference.masked_attention(q, k[:, :1], v[:, :1]),
        what="H_kv = 1",
    )


@points(2)
def test_masks_of_two_three_and_four_axes(student):
    """[N_q, N_k] is for all, also for three sentences of three tokens; [B, N_q, N_k] is one a
    sentence, here as many as heads; four axes are used as they are. There the scores are −10¹²:
    whatever stands in for "forbidden" must be smaller than any number.
    """
    keys, values = ones(5, 1, 3, 7), randn(5, 1, 3, 2)
    for shape, q in (
        ((3, 3), zeros(5, 5, 3, 7)),
        ((3, 3), zeros(3, 5, 3, 7)),
        ((5, 3, 3), zeros(5, 5, 3, 7)),
        ((1, 5, 3, 3), LOW),
    ):
        k, v = keys[: len(q)], values[: len(q)]
        mask = (rand(*shape) < 0.5) | eye(3).bool()
        share = mask.double() / mask.double().sum(dim=-1, keepdim=True)
        share = share.unsqueeze(1) if share.dim() == 3 else share
        expected = (share @ v).expand(len(q), 5, 3, 2)
        # float64 has 1e12 + ln 3 to 1e-4, and weights may be exp(score - log of the sum)
        answer = student.grouped_query_attention(q, k, v, mask)
        assert_close(
            answer,
            expected,
            atol=1e-3 if q is LOW else 2e-6,
            what=f"a mask of {len(shape)} axes",
        )


@points(1)
def test_half_precision_stays_half_precision(student, reference):
    """float16 in, float16 out; a product of 90000, before the scale, is beyond float16: widen
    before you multiply. Scores of 2000 and of −2000 stand in one call.
    """
    q, k = (
        (300 * torch.eye(2)).half().expand(1, 2, 2, 2),
        (300 * torch.eye(2)).half().expand(1, 1, 2, 2),
    )
    assert_close(
        student.grouped_query_attention(q, k, k),
        q,
        what="the answer to products of 90000",
    )
    q, k, v = (
        randn(1, 6, 2, 3).half(),
        randn(1, 2, 5, 3).half(),
        full((1, 2, 5, 3), 3.0).half(),
    )
    assert_close(
        student.grouped_query_attention(q, k, v),
        full((1, 6, 2, 3), 3.0).half(),
        atol=2e-2,
    )
    for dtype in (torch.float16, torch.float64):
        q, k = far_apart(dtype)
        arguments = (
            q.expand(1, 2, 2, 4),
            k.expand(1, 1, 6, 4),
            randn(1, 1, 6, 3).to(dtype),
        )
        expected = reference.grouped_query_attention(*arguments)
        assert_close(student.grouped_query_attention(*arguments), expected, atol=4e-3)


@points(1)
def test_a_shared_head_collects_the_gradients_of_its_group(student, reference):
    """Each value head is read by three query heads: its gradient is the sum of three."""
    qkv = (
        randn(2, 6, 5, 3, grad=True),
        randn(2, 2, 7, 3, grad=True),
        randn(2, 2, 7, 3, grad=True),
    )
    assert_same_gradients(
        student.grouped_query_attention, reference.grouped_query_attention, *qkv
    )


@points(1)
def test_heads_that_cannot_be_shared_evenly_are_refused(student):
    """Seven query heads for three key heads, or three for six; three key heads and two or six value
    heads: ValueError, both numbers.
    """
    f = student.grouped_query_attention
    assert_refused(
        f, randn(1, 7, 2, 5), randn(1, 3, 2, 5), randn(1, 3, 2, 5), sizes=(7, 3)
    )
    assert_refused(
        f, randn(1, 3, 2, 5), randn(1, 6, 2, 5), randn(1, 6, 2, 5), sizes=(3, 6)
    )
    assert_refused(
        f, randn(1, 6, 4, 5), randn(1, 3, 4, 5), randn(1, 2, 4, 5), sizes=(3, 2)
    )
    assert_refused(
        f, randn(1, 6, 4, 5), randn(1, 3, 4, 5), randn(1, 6, 4, 5), sizes=(3, 6)
    )


def _one_number_a_head(numbers, n, d):
    """[1, H, n, d] with one number a head."""
    return (
        torch.tensor(numbers, dtype=torch.float64)
        .view(1, -1, 1, 1)
        .expand(1, len(numbers), n, d)
    )
