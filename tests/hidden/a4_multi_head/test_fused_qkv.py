"""fused_qkv: one product, cut first into queries, keys, values and then into heads."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    ones,
    points,
    randn,
    uses,
    zeros,
)

pytestmark = [uses("split_heads")]


@points(3)
def test_equals_three_separate_projections(student, reference):
    """Multiply by each of the three matrices alone and compare with what comes out of the fused
    one.
    """
    x, w_q, w_k, w_v = randn(2, 5, 11), randn(11, 21), randn(11, 21), randn(11, 21)
    answers = call_twice(student.fused_qkv, x, torch.cat([w_q, w_k, w_v], dim=1), 3)
    assert len(answers) == 3, (
        "fused_qkv should return three tensors: queries, keys, values."
    )
    for answer, w, name in zip(answers, (w_q, w_k, w_v), "qkv", strict=True):
        assert_close(answer, reference.split_heads(x @ w, 3), what=name)
    w_qkv = torch.cat([w_q, w_k, w_v], dim=1)
    assert_close_in_turn(
        student.fused_qkv, reference.fused_qkv, x, w_qkv, 3, others=(None, None, 7)
    )


@points(2)
def test_the_thirds_are_queries_keys_values(student):
    """All weights of W_Q are 1, those of W_K 2, those of W_V 3: each of the results should hold one
    number only.
    """
    w_qkv = torch.cat([ones(1, 10), 2 * ones(1, 10), 3 * ones(1, 10)], dim=1)
    for i, answer in enumerate(student.fused_qkv(ones(1, 3, 1), w_qkv, 2)):
        assert_close(answer, (i + 1) * ones(1, 2, 3, 5), what="qkv"[i])


@points(1)
def test_three_heads_of_three_numbers(student, reference):
    """B, N, H and d are all 3, as many as there are parts: nothing here tells the axes apart but
    their meaning.
    """
    x, w_qkv = randn(3, 3, 9), randn(9, 27)
    for answer, expected, name in zip(
        student.fused_qkv(x, w_qkv, 3),
        reference.fused_qkv(x, w_qkv, 3),
        "qkv",
        strict=True,
    ):
        assert_close(answer, expected, what=name)


@points(1)
def test_one_token_of_a_transposed_batch(student, reference):
    """One sentence of one token, and an x whose memory is not in the order of its axes; five heads,
    and one alone.
    """
    w_qkv = randn(7, 30)
    for x, heads in ((randn(1, 1, 7), 5), (randn(2, 7, 3).transpose(1, 2), 1)):
        assert_close(
            student.fused_qkv(x, w_qkv, heads)[2],
            reference.fused_qkv(x, w_qkv, heads)[2],
            what="v",
        )


@points(1)
def test_gradients_reach_x_and_every_column(student, reference):
    """All three parts are used here: x and each column of w_qkv should get the gradient of three
    projections.
    """
    x, w_qkv = randn(2, 5, 7, grad=True), randn(7, 18, grad=True)
    assert_same_gradients(
        lambda *a: torch.stack([*student.fused_qkv(*a)]),
        lambda *a: torch.stack(reference.fused_qkv(*a)),
        x,
        w_qkv,
        2,
    )


@points(1)
def test_half_precision_stays_half_precision(student):
    """The dtype that comes in goes out."""
    q, k, v = student.fused_qkv(ones(2, 3, 5).half(), ones(5, 12).half(), 2)
    for answer, name in ((q, "q"), (k, "k"), (v, "v")):
        assert_close(answer, (zeros(2, 2, 3, 2) + 5).half(), what=name)


@points(1)
def test_columns_that_do_not_divide_are_refused(student):
    """20 columns are no three parts, and 21 are three parts of 7, which neither two heads nor none
    can share. 12 divide by 3 and by six heads: three parts of 4, which six heads cannot share.
    """
    for columns, num_heads in ((20, 2), (21, 2), (21, 0), (21, -1), (12, 6)):
        w_qkv = randn(7, columns)
        assert_refused(
            student.fused_qkv,
            randn(2, 5, 7),
            w_qkv,
            num_heads,
            sizes=(columns, num_heads),
        )
