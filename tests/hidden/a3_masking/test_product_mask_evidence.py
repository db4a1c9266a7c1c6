"""product_mask_evidence: when the notes' product works, and the two ways in which it fails. Any
evidence will do.
"""

import math

import torch

from autograder.suite import points


def products(student, n):
    """The student's three matrices, checked, and each multiplied by the notes' mask."""
    answer = student.product_mask_evidence(n)
    assert isinstance(answer, (tuple, list)), (
        "three matrices are wanted: (fine, one_way, other_way)"
    )
    assert len(answer) == 3, (
        f"three matrices are wanted, (fine, one_way, other_way), and there are {len(answer)}"
    )
    for name, scores in zip(("fine", "one_way", "other_way"), answer, strict=True):
        assert isinstance(scores, torch.Tensor), f"{name} should be a tensor"
        assert list(scores.shape) == [n, n], (
            f"{name} has shape {list(scores.shape)}, and should be [{n}, {n}]"
        )
        assert scores.is_floating_point(), f"{name} should hold floating point numbers"
        assert bool(scores.isfinite().all()), (
            f"{name} itself has to be finite: the notes' product is what breaks"
        )
    fine, one_way, other_way = (scores.detach().double() for scores in answer)
    pairs = ((fine, one_way), (fine, other_way), (one_way, other_way))
    assert not any(torch.equal(a, b) for a, b in pairs), (
        "two of the three matrices are equal: they show the same thing"
    )
    mask = torch.ones(n, n, dtype=torch.float64).masked_fill(
        torch.ones(n, n).triu(1).bool(), -math.inf
    )
    return fine, fine * mask, one_way * mask, other_way * mask


@points(1.5)
def test_some_scores_hide_the_error(student):
    """For `fine`, every score of the future must turn into −inf. Which sign does it need before the
    product?
    """
    for n in (2, 5, 7):
        scores, product, _, _ = products(student, n)
        meant = torch.softmax(
            scores.masked_fill(torch.ones(n, n).triu(1).bool(), -math.inf), dim=-1
        )
        got = torch.softmax(product, dim=-1)
        assert torch.allclose(got, meant), (
            f"with n = {n} the product gives other weights than causal attention on `fine`"
        )


@points(1.5)
def test_a_score_can_turn_the_future_into_plus_infinity(student):
    """For `one_way`, look at the product itself: somewhere above the diagonal it is +inf, and
    nowhere NaN.
    """
    for n in (2, 5, 7):
        _, _, product, _ = products(student, n)
        assert bool((product == math.inf).any()), (
            f"with n = {n} the product of `one_way` has no +inf"
        )
        assert not bool(product.isnan().any()), (
            f"with n = {n} the product of `one_way` has NaN: that is the other way"
        )


@points(1.5)
def test_a_score_can_turn_the_future_into_no_number_at_all(student):
    """For `other_way`, the product is NaN somewhere, and nowhere +inf. One number times infinity
    has no value.
    """
    for n in (2, 5, 7):
        _, _, _, product = products(student, n)
        assert bool(product.isnan().any()), (
            f"with n = {n} the product of `other_way` has no NaN"
        )
        assert not bool((product == math.inf).any()), (
            f"with n = {n} the product of `other_way` has +inf: the first way"
        )


@points(0.5)
def test_the_size_is_the_one_asked_for(student):
    """Finite matrices of the size n that is given, all different, whatever n is."""
    for n in (3, 11):
        products(student, n)
