"""cross_attention: queries from one sequence, keys and values from the other."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    far_apart,
    forbid,
    points,
    randn,
    randperm,
)

from .ready_made import ATTENTION, WITH_PROJECTIONS

pytestmark = forbid(*ATTENTION, *WITH_PROJECTIONS)


def inputs(*batch, n_q=3, n_k=7, d=5, d_kv=6, d_k=2, d_v=9, grad=False):
    return (
        randn(*batch, n_q, d, grad=grad),
        randn(*batch, n_k, d_kv, grad=grad),
        randn(d, d_k, grad=grad),
        randn(d_kv, d_k, grad=grad),
        randn(d_kv, d_v, grad=grad),
    )


@points(2)
def test_queries_come_from_one_sequence_keys_and_values_from_the_other(
    student, reference
):
    """Three queries and seven keys, widths 5 and 6: every matrix fits only one of the two
    inputs.
    """
    arguments = inputs(2)
    assert_close_in_turn(student.cross_attention, reference.cross_attention, *arguments)


@points(1)
def test_equal_widths_do_not_hide_a_swap(student, reference):
    """Both sequences are 5 wide here, so a swap does not crash: one output for each query."""
    arguments = inputs(n_q=2, n_k=6, d=5, d_kv=5, d_k=5, d_v=5)
    assert_close(
        student.cross_attention(*arguments), reference.cross_attention(*arguments)
    )


@points(1)
def test_the_order_of_the_source_does_not_matter(student, reference):
    """Attention is a weighted sum over the source. Shuffled source, same sum; and each query on its
    own.
    """
    x_q, x_kv, *weights = inputs(2)
    expected = reference.cross_attention(x_q, x_kv, *weights)
    assert_close(student.cross_attention(x_q, x_kv[:, randperm(7)], *weights), expected)
    assert_close(student.cross_attention(x_q[:, 1:2], x_kv, *weights), expected[:, 1:2])


@points(1)
def test_gradients_reach_both_sequences_and_all_weights(student, reference):
    """The source gets its gradient through keys and values, the asking sequence through the
    queries.
    """
    assert_same_gradients(
        student.cross_attention, reference.cross_attention, *inputs(2, grad=True)
    )


@points(0.5)
def test_a_single_source_token_is_all_there_is_to_say(student):
    """With one key the only weight is 1: every query gets the value of that token."""
    x_q, x_kv, w_q, w_k, w_v = inputs(1, n_k=1)
    assert_close(
        student.cross_attention(x_q, x_kv, w_q, w_k, w_v), (x_kv @ w_v).expand(1, 3, 9)
    )


@points(0.5)
def test_half_precision_any_strides_and_untouched_inputs(student, reference):
    """float16 in, float16 out; a transposed input; the same answer twice. Scores of 2000 and 70000
    source tokens are no reason to fail, in no precision.
    """
    arguments = [value.half() for value in inputs(3)]
    assert_close(
        student.cross_attention(*arguments),
        reference.cross_attention(*arguments),
        atol=2e-2,
        rtol=2e-2,
    )
    x_q, x_kv, *weights = inputs(3)
    strided = x_kv.transpose(-1, -2).contiguous().transpose(-1, -2)
    expected = reference.cross_attention(x_q, x_kv, *weights)
    assert_close(call_twice(student.cross_attention, x_q, strided, *weights), expected)
    for dtype in (torch.float16, torch.float32, torch.float64):
        same, w_v = torch.eye(4).to(dtype), randn(4, 3).to(dtype)
        arguments = *far_apart(dtype), same, same, w_v
        expected = reference.cross_attention(*arguments)
        assert_close(student.cross_attention(*arguments), expected, atol=4e-3)
    one, many = torch.ones(1, 1).half(), torch.ones(70_000, 1).half()
    assert_close(student.cross_attention(one, many, one, one, one), one, atol=4e-3)


@points(1)
def test_sizes_that_cannot_match_are_refused(student):
    """w_q takes the features of x_q, w_k and w_v those of x_kv; queries and keys are equally
    wide.
    """
    x_q, x_kv, w_q, w_k, w_v = inputs()
    assert_refused(
        student.cross_attention, x_q, x_kv, randn(11, 2), w_k, w_v, sizes=(5, 11)
    )
    assert_refused(
        student.cross_attention, x_q, x_kv, randn(4, 2), w_k, w_v, sizes=(5, 4)
    )
    assert_refused(
        student.cross_attention, x_q, x_kv, w_q, w_k, randn(11, 9), sizes=(6, 11)
    )
    assert_refused(
        student.cross_attention, x_q, x_kv, w_q, randn(6, 13), w_v, sizes=(2, 13)
    )
    assert_refused(
        student.cross_attention, x_q, x_kv, randn(5, 4), randn(6, 3), w_v, sizes=(4, 3)
    )
