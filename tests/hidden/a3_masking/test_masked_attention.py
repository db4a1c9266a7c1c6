"""masked_attention: attention in which a query gets nothing from a key that it may not see."""

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
    tensor,
    uses,
    zeros,
)

from .ready_made import ATTENTION

pytestmark = [uses("masked_softmax"), forbid(*ATTENTION)]


def inputs(*batch, n_q=3, n_k=5, d=6, d_v=7, grad=False):
    return (
        randn(*batch, n_q, d, grad=grad),
        randn(*batch, n_k, d, grad=grad),
        randn(*batch, n_k, d_v, grad=grad),
    )


def last_rows(n_q, n_k):
    return torch.ones(n_k, n_k).tril().bool()[n_k - n_q :]


@points(1)
def test_without_a_mask_it_is_plain_attention(student):
    """None and all True are the same, and both are softmax(QKᵀ/√d) V."""
    q, k, v = inputs(2)
    expected = torch.softmax(q @ k.transpose(-1, -2) / 6**0.5, dim=-1) @ v
    assert_close(student.masked_attention(q, k, v), expected)
    assert_close(
        student.masked_attention(q[:1], k[:1], v[:1]),
        expected[:1],
        what="a batch of one",
    )
    assert_close(student.masked_attention(q, k, v, torch.ones(3, 5).bool()), expected)


@points(1.5)
def test_the_mask_stands_between_scale_and_softmax(student, reference):
    """Three queries, five keys, d = 6, d_v = 7. Which keys take part, and which length is under the
    root?
    """
    q, k, v = inputs(2)
    mask = last_rows(3, 5)
    assert_close_in_turn(
        student.masked_attention,
        reference.masked_attention,
        *(q, k, v, mask),
        others=(None, None, None, mask.flip(1)),
    )


@points(1)
def test_each_sequence_ends_where_its_padding_begins(student, reference):
    """The output of a padded sequence is that of the same sequence without its padding."""
    q, k, v = inputs(3, n_q=5, n_k=5)
    lengths = [2, 5, 4]
    mask = torch.arange(5) < tensor(lengths)[:, None, None]
    y = student.masked_attention(q, k, v, mask)
    for b, n in enumerate(lengths):
        expected = reference.masked_attention(q[b], k[b, :n], v[b, :n])
        assert_close(y[b], expected, what=f"sequence {b}")
    q, k, v = inputs(3, 3)  # two leading axes: a mask of three has the last ones
    mask = randn(3, 3, 5) > -0.5
    assert_close(
        student.masked_attention(q, k, v, mask),
        reference.masked_attention(q, k, v, mask),
    )


@points(1)
def test_a_query_that_sees_nothing_gets_zeros(student):
    """And the query beside it, which sees one key, gets exactly the value of that key."""
    q, k, v = inputs(n_q=2, n_k=3)
    y = student.masked_attention(q, k, v, tensor([[0, 0, 0], [0, 1, 0]]).bool())
    assert_close(y, torch.stack([zeros(7), v[1]]))


@points(1)
def test_hidden_keys_and_values_have_no_influence(student, reference):
    """Replace what a query may not see by something large: its output must not move."""
    q, k, v = inputs(n_q=5)
    mask = torch.ones(5, 5).tril().bool()
    expected = reference.masked_attention(q, k, v, mask)
    k[4], v[4] = 1e4 * k[4], 1e4 * v[4]
    assert_close(
        student.masked_attention(q, k, v, mask)[:4],
        expected[:4],
        what="the rows that do not see key 4",
    )
    q, k = far_apart(torch.float64)
    v, first_two = randn(6, 2), torch.arange(6) < 2
    expected = reference.masked_attention(
        8 * q, k, v, first_two
    )  # their scores are below -16000
    assert_close(student.masked_attention(8 * q, k, v, first_two), expected)


@points(1)
def test_gradients_reach_what_is_seen_and_nothing_else(student, reference):
    """All finite, also beside a query that sees nothing; a key that nobody sees gets the gradient
    0.
    """
    mask = tensor([[1, 0, 1, 0, 1], [0, 0, 0, 0, 0], [1, 1, 1, 0, 0]]).bool()
    assert_same_gradients(
        student.masked_attention,
        reference.masked_attention,
        *inputs(2, grad=True),
        mask,
    )


@points(1)
def test_half_precision_survives_large_scores(student, reference):
    """q · k is 90000 before the scale, and float16 ends at 65504: make the scores in float32, give
    back float16. Scores of 2000 and 70000 keys are no reason to fail, in no precision.
    """
    q = tensor([[150.0, 150.0, 0.0], [0.0, 1.0, 0.0]]).half()
    k = tensor([[300.0, 300.0, 0.0], [300.0, 299.0, 1.0], [0.0, 0.0, 7.0]]).half()
    # small: q and k scaled in float16 cost 0.002 of a weight
    v = tensor([[1.0, 0.0], [0.0, 1.0], [7.0, 5.0]]).half()
    mask = tensor([[1, 1, 0], [1, 1, 1]]).bool()
    assert_close(
        student.masked_attention(q, k, v, mask),
        reference.masked_attention(q, k, v, mask),
        atol=4e-3,
    )
    for dtype in (torch.float16, torch.float32, torch.float64):
        q, k = far_apart(dtype)
        v, mask = randn(6, 2).to(dtype), torch.ones(2, 6).bool()
        expected = reference.masked_attention(q, k, v, mask)
        assert_close(student.masked_attention(q, k, v, mask), expected, atol=4e-3)
    one, many = torch.ones(1, 1).half(), torch.ones(70_000, 1).half()
    assert_close(student.masked_attention(one, many, many), one, atol=4e-3)


@points(0.5)
def test_inputs_are_untouched_and_strides_do_not_matter(student, reference):
    """The caller still needs q, k and v; one of them arrives transposed."""
    q, k, v = inputs(2)
    strided = k.transpose(-1, -2).contiguous().transpose(-1, -2)
    y = call_twice(student.masked_attention, q, strided, v, last_rows(3, 5))
    assert_close(y, reference.masked_attention(q, k, v, last_rows(3, 5)))


@points(0.5)
def test_queries_and_keys_of_unequal_width_are_refused(student):
    """ValueError with both widths."""
    q, _, v = inputs()
    assert_refused(student.masked_attention, q, randn(5, 11), v, sizes=(6, 11))
    assert_refused(student.masked_attention, q, randn(5, 4), v, sizes=(6, 4))


@points(0.5)
def test_keys_values_and_mask_of_unequal_length_are_refused(student):
    """As many values as keys, and a mask for that many keys."""
    q, k, v = inputs()
    assert_refused(student.masked_attention, q, k, randn(11, 7), sizes=(5, 11))
    assert_refused(student.masked_attention, q, k, randn(4, 7), sizes=(5, 4))
    assert_refused(
        student.masked_attention, q, k, v, torch.ones(3, 11).bool(), sizes=(5, 11)
    )
