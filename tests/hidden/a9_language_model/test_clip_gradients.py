"""clip_gradients: one norm for all tensors, one factor, never above 1."""

import math

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    call_twice,
    forbid,
    points,
    randn,
    tensor,
    zeros,
)

pytestmark = [
    forbid(
        "torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grads_with_norm_",
        "torch.nn.utils.get_total_norm",
        "torch.nn.utils.clip_grad_value_",
    )
]  # fmt: skip


def _clip(function, gradients, max_norm):
    answer = function(gradients, max_norm)
    pair = (
        isinstance(answer, (tuple, list))
        and len(answer) == 2
        and isinstance(answer[0], (tuple, list))
    )
    assert pair, "clip_gradients should return a pair, (list of tensors, norm)."
    assert len(answer[0]) == len(gradients), (
        f"there are {len(answer[0])} tensors for {len(gradients)} gradients."
    )
    return answer


@points(1.5)
def test_all_tensors_have_one_norm_and_one_factor(student):
    """Gradients (3, 0), 4 and a matrix of 0 and 12, all times 1000: the norm is 13 000, and the
    bound 6500 halves everything.
    """
    gradients = [
        1e3 * tensor([3.0, 0.0]),
        1e3 * tensor(4.0),
        1e3 * tensor([[0.0, 12.0]]),
    ]
    clipped, _ = _clip(student.clip_gradients, gradients, 6500.0)
    for mine, own in zip(clipped, gradients, strict=True):
        assert_close(mine, own / 2, what=f"the gradient of shape {list(own.shape)}")


@points(1)
def test_small_gradients_are_left_alone(student):
    """A norm of 0.5 under a bound of 1, and a norm exactly at the bound: nothing is scaled, least
    of all up.
    """
    for gradients, bound in (
        ([tensor([0.3]), tensor([[0.4]])], 1.0),
        ([tensor([3.0, 4.0])], 5.0),
    ):
        clipped, _ = _clip(student.clip_gradients, gradients, bound)
        for mine, own in zip(clipped, gradients, strict=True):
            assert_close(mine, own)


@points(1)
def test_the_norm_is_the_one_before(student):
    """A Python float, above and below the bound, and below 1. One matrix is transposed."""
    given = [randn(4, 3).T, randn(5), randn(2, 1, 2)]
    for size, bound in ((1.0, 0.1), (2.0, 0.1), (1.0, 100.0), (0.01, 0.001)):
        gradients = [size * g for g in given]
        expected = math.sqrt(sum(float(g.pow(2).sum()) for g in gradients))
        clipped, norm = _clip(student.clip_gradients, gradients, bound)
        assert isinstance(norm, float), (
            f"The norm should be a Python float, and is {type(norm).__name__}."
        )
        assert_close(norm, expected, what="the norm")
        for mine, own in zip(clipped, gradients, strict=True):
            assert_close(mine, own * min(1.0, bound / expected))


@points(0.5)
def test_gradients_of_zero_stay_zero(student):
    """0 / 0 is not a number, and nothing has to be added to the norm for that: gradients of a
    millionth are cut to any bound. And what came in is not changed.
    """
    clipped, norm = _clip(
        lambda g, c: call_twice(student.clip_gradients, g, c),
        [zeros(3), zeros(2, 2)],
        1.0,
    )
    assert_close(norm, 0.0)
    assert_close(clipped[1], zeros(2, 2))
    clipped, norm = _clip(
        lambda g, c: call_twice(student.clip_gradients, g, c), [tensor([6e4, 8e4])], 1e4
    )
    assert_close(clipped[0], tensor([6e3, 8e3]))
    clipped, _ = _clip(student.clip_gradients, [tensor([3e-6, 4e-6])], 1e-6)
    assert isinstance(clipped[0], torch.Tensor), (
        "the clipped gradients should be tensors."
    )
    assert_close(
        1e6 * clipped[0],
        tensor([0.6, 0.8]),
        what="a million times the gradient of shape [2]",
    )


@points(0.5)
def test_half_precision_is_summed_in_float32(student):
    """Squares of 300 are infinite in float16, those of 302 inexact in bfloat16. The dtypes that
    came in come out.
    """
    gradients = [torch.full((4,), 300.0, dtype=torch.float16), torch.full((5,), 100.0)]
    clipped, norm = _clip(student.clip_gradients, gradients, 1.0)
    expected = math.sqrt(4 * 300**2 + 5 * 100**2)
    assert_close(norm, expected, rtol=1e-4)
    assert_close(clipped[0], torch.full((4,), 300 / expected).half(), atol=1e-3)
    assert_close(clipped[1], torch.full((5,), 100 / expected), atol=1e-4)
    _, norm = _clip(
        student.clip_gradients, [torch.full((4,), 302.0, dtype=torch.bfloat16)], 1.0
    )
    assert_close(norm, 604.0, rtol=1e-5)
    # of one tensor the norm alone is beyond float16, or has more digits than bfloat16
    for dtype, size, norm_of_many in (
        (torch.float16, 300.0, 9e4),
        (torch.bfloat16, 1.0, 300.0),
    ):
        many = [torch.full((90_000,), size, dtype=dtype), torch.zeros(1)]
        assert_close(
            _clip(student.clip_gradients, many, 1.0)[1], norm_of_many, rtol=1e-3
        )
    _, norm = _clip(
        student.clip_gradients, [torch.full((257,), 1.0, dtype=torch.bfloat16)], 1.0
    )
    assert_close(norm, math.sqrt(257), rtol=1e-3)


@points(0.5)
def test_what_cannot_be_bounded_is_refused(student):
    """A gradient with NaN or infinity in one place, and bounds of 0 and -1."""
    clipped, _ = _clip(student.clip_gradients, [tensor([6e4, 8e4])], 5e4)
    assert_close(clipped[0], tensor([3e4, 4e4]))
    for bad in (math.nan, math.inf):
        assert_refused(
            student.clip_gradients, [tensor([1.0, 2.0]), tensor([bad, 0.0])], 1.0
        )
    for bound in (0, -1):
        assert_refused(
            student.clip_gradients, [tensor([6.0, 8.0])], bound, sizes=(bound,)
        )
