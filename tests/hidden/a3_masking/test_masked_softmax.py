"""masked_softmax: a distribution over the allowed keys, and nothing at all where there are none."""

import math

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    full,
    ones,
    points,
    randn,
    tensor,
    zeros,
)

FAR_APART = torch.tensor(
    [
        [2000.0, 1999.0, 0.0, 0.0, 0.0, 0.0],
        [-2040.0, -2039.0, -40.0, -40.0, -40.0, -40.0],
    ]
)
TRIANGLE = torch.ones(5, 5).tril().bool()


@points(1)
def test_with_everything_allowed_it_is_softmax(student):
    """An all-True mask forbids nothing. If this fails, print the weights: is True "keep" or
    "drop"?
    """
    scores = randn(2, 3, 7)
    assert_close(
        student.masked_softmax(scores, torch.ones(3, 7).bool()),
        torch.softmax(scores, dim=-1),
    )


@points(1.5)
def test_allowed_keys_share_as_if_the_others_did_not_exist(student):
    """Compute the softmax of the allowed scores of a row alone: that is the row, with zeros in
    between.
    """
    scores = 2 * randn(5, 5)
    weights = student.masked_softmax(scores, TRIANGLE)
    for i in range(5):
        assert_close(
            weights[i, : i + 1],
            torch.softmax(scores[i, : i + 1], dim=-1),
            what=f"the allowed part of row {i}",
        )


@points(1)
def test_forbidden_keys_get_exactly_nothing_and_the_rest_sums_to_one(student):
    """Add up a row: 1. Look at a forbidden key: 0, not a small number, also where scores are
    negative or 0.
    """
    scores = torch.cat([randn(2, 5, 5) - 4, zeros(1, 5, 5)])
    weights = student.masked_softmax(scores, TRIANGLE)
    assert_close(weights.sum(dim=-1), ones(3, 5), what="the sum of each row")
    hidden = (~TRIANGLE).expand(3, 5, 5)
    assert_close(
        weights[hidden], zeros(30), atol=0, what="the weight of the forbidden keys"
    )


@points(1)
def test_rows_of_the_mask_are_queries(student, reference):
    """A square mask that is no triangle and not symmetric: rows are queries, columns are keys."""
    mask = tensor(
        [
            [0, 1, 1, 0, 1],
            [1, 0, 0, 0, 0],
            [1, 1, 0, 1, 0],
            [0, 0, 0, 1, 1],
            [0, 1, 0, 0, 1],
        ]
    ).bool()
    scores = randn(5, 5)
    assert_close(
        student.masked_softmax(scores, mask), reference.masked_softmax(scores, mask)
    )


@points(1)
def test_each_sequence_of_the_batch_has_its_own_mask(student, reference):
    """A mask [B, 1, N_k] says something else for each sequence, and the same for all its
    queries.
    """
    mask = (
        tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]]).bool().unsqueeze(1)
    )
    scores = randn(3, 3, 5)
    assert_close_in_turn(
        student.masked_softmax,
        reference.masked_softmax,
        scores,
        mask,
        others=(None, mask.flip(0)),
    )


@points(0.5)
def test_any_leading_dimensions_and_any_strides(student, reference):
    """Two batch dimensions, a mask with a 1 among them or without the first one, transposed
    scores.
    """
    scores = randn(2, 3, 7, 5).transpose(-1, -2)
    mask = randn(2, 1, 5, 7) > -0.5
    assert_close(
        student.masked_softmax(scores, mask),
        reference.masked_softmax(scores.contiguous(), mask),
    )
    scores, mask = (
        randn(3, 3, 2, 5),
        randn(3, 2, 5) > -0.5,
    )  # three axes: the last three of scores
    assert_close(
        student.masked_softmax(scores, mask), reference.masked_softmax(scores, mask)
    )


@points(1.5)
def test_a_row_with_nothing_allowed_is_zero(student):
    """Not NaN, and not a uniform guess. The mask knows which rows these are; the neighbours are
    unaffected.
    """
    mask = tensor([[1, 0, 1], [0, 0, 0], [0, 1, 0]]).bool()
    scores = tensor(
        [[1.0 + math.log(3.0), 7.0, 1.0], [3.0, -2.0, 0.5], [-9.0, 4.0, 8.0]]
    )
    expected = tensor([[0.75, 0.0, 0.25], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert_close(student.masked_softmax(scores, mask), expected)
    batch = student.masked_softmax(
        torch.stack([scores, scores]), torch.stack([mask, mask])
    )
    assert_close(batch, torch.stack([expected, expected]))


@points(1.5)
def test_gradients_are_right_and_finite_beside_an_empty_row(student, reference):
    """A NaN that is painted over in the forward pass comes back in the backward pass, since 0 · NaN
    is NaN.
    """
    mask = tensor([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 1]]).bool()
    assert_same_gradients(
        student.masked_softmax,
        reference.masked_softmax,
        randn(2, 3, 4, grad=True),
        mask,
    )


@points(0.5)
def test_a_huge_forbidden_score_changes_nothing(student):
    """The forbidden key has a score of 100000. If it takes part in the maximum or in the sum, the
    others vanish. Each row has its own largest score.
    """
    scores = tensor([[1.0, 1e5, 1.0, 1.0 + math.log(2.0)]]).float()
    mask = tensor([[1, 0, 1, 1]]).bool()
    assert_close(
        student.masked_softmax(scores, mask),
        tensor([[0.25, 0.0, 0.25, 0.5]]).float(),
        atol=1e-5,
    )
    for dtype in (torch.float32, torch.float16):
        weights = student.masked_softmax(FAR_APART.to(dtype), ones(2, 6).bool())
        assert_close(weights, torch.softmax(FAR_APART, dim=1).to(dtype), atol=1e-3)


@points(0.5)
def test_a_forbidden_score_may_be_infinite_or_none(student):
    """The forbidden key has an infinite score, then none at all (NaN); in the last row all keys
    are forbidden, and NaN. Sums and products with NaN are NaN, in gradients too: put something in
    its place.
    """
    scores = tensor([1.0, 1.0, 1.0, 1.0 + math.log(2.0)]).float().repeat(3, 1)
    scores[:, 1] = torch.tensor([math.inf, math.nan, math.nan])
    scores[2] = math.nan
    scores.requires_grad_()
    mask = tensor([[1, 0, 1, 1], [1, 0, 1, 1], [0, 0, 0, 0]]).bool()
    weights = student.masked_softmax(scores, mask)
    row = [0.25, 0.0, 0.25, 0.5]
    assert_close(weights, tensor([row, row, [0.0] * 4]).float(), atol=1e-5)
    weights[:, 0].sum().backward()
    expected = [0.1875, 0.0, -0.0625, -0.125]  # 1/4 times (3/4, 0, -1/4, -1/2)
    assert_close(
        scores.grad,
        tensor([expected, expected, [0.0] * 4]).float(),
        atol=1e-5,
        what="the gradient of the scores",
    )


@points(1)
def test_very_negative_allowed_scores_still_win(student):
    """All allowed scores are below −100000, or even −10¹². Whatever stands in for "forbidden" must
    be smaller than any number.
    """
    mask = tensor([[1, 0, 1], [1, 1, 0]]).bool()
    expected = tensor([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
    for scores in (
        tensor([[-1e5, 3.0, -1e5], [-2e5, -1e5, -1e3]]).float(),
        tensor([[-1e12, 3.0, -1e12], [-2e12, -1e12, -1e3]]),
    ):  # rounding is this coarse at such sizes
        assert_close(
            student.masked_softmax(scores, mask), expected, atol=1e-2, same_dtype=False
        )


@points(0.5)
def test_nan_in_an_allowed_score_stays_visible(student):
    """A NaN among the allowed scores is somebody's bug. Washing it away would hide it."""
    scores = tensor([[1.0, float("nan"), 2.0], [4.0, 4.0, 1.0]])
    weights = student.masked_softmax(scores, tensor([[1, 1, 1], [1, 1, 0]]).bool())
    assert bool(weights[0].isnan().all()), (
        "an allowed score is NaN, and the weights of its row are not"
    )
    assert_close(weights[1], tensor([0.5, 0.5, 0.0]), what="the row without NaN")


@points(0.5)
def test_half_precision_comes_back_as_half(student):
    """Compute in float32, return the dtype that came in. 70000 keys: their exponentials add up
    beyond float16.
    """
    many = student.masked_softmax(zeros(1, 70_000).half(), ones(70_000).bool())
    assert_close(
        many[:, :3],
        full((1, 3), 1 / 70_000).half(),
        what="the weights of 70000 equal scores",
    )
    weights = student.masked_softmax(
        full((2, 6), 3.0).half(), tensor([[1, 1, 1, 1, 0, 0]]).bool()
    )
    assert_close(
        weights,
        tensor([[0.25, 0.25, 0.25, 0.25, 0.0, 0.0]]).half().expand(2, 6),
        atol=1e-3,
    )


@points(0.5)
def test_scores_and_mask_are_left_alone(student):
    """The caller uses the mask again in the next layer. Functions with a trailing underscore write
    in place.
    """
    weights = call_twice(student.masked_softmax, 1 + randn(3, 5, 5), TRIANGLE)
    assert_close(weights[:, 0, 0], ones(3), what="the weight of the only key of row 0")
    assert weights.std() > 0.01, "all weights are the same"


@points(0.5)
def test_a_mask_that_does_not_fit_is_refused(student):
    """Five keys, a mask for eleven: ValueError with both numbers."""
    assert_refused(
        student.masked_softmax, randn(3, 5), torch.ones(3, 11).bool(), sizes=(5, 11)
    )
