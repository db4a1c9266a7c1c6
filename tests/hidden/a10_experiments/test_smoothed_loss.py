"""smoothed_loss: a cross-entropy whose target is a mixture."""

import math

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    forbid,
    points,
    randn,
    tensor,
)

from .setups import tokens

pytestmark = [
    forbid(
        "torch.nn.functional.cross_entropy",
        "torch.nn.CrossEntropyLoss",
        "torch.nn.functional.nll_loss",
    )
]


@points(1.5)
def test_without_smoothing_it_is_the_cross_entropy(student):
    """Probabilities of 3/4 and 1/4 in turn, and against torch's on random logits."""
    logits = tensor([[[0.0, math.log(3.0)], [math.log(3.0), 0.0]]])
    assert_close(
        student.smoothed_loss(logits, torch.tensor([[1, 1]])),
        tensor((math.log(4 / 3) + math.log(4)) / 2),
    )
    logits, targets = 3 * randn(2, 4, 7), tokens(2, 4)
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten()
    )
    assert_close(call_twice(student.smoothed_loss, logits, targets), expected)
    assert_close(
        student.smoothed_loss(logits.float(), targets), expected.float(), atol=1e-5
    )
    turned = logits.transpose(0, 1).contiguous().transpose(0, 1)
    assert_close(student.smoothed_loss(turned, targets.T.contiguous().T), expected)


@points(2)
def test_all_tokens_share_the_smoothing(student, reference):
    """With s = 1/2 and probabilities of 3/4 and 1/4; then s = 0.1 and 0.9 against torch's."""
    logits = tensor([[[0.0, math.log(3.0)]]])
    expected = 0.75 * math.log(4 / 3) + 0.25 * math.log(4)
    assert_close(
        student.smoothed_loss(logits, torch.tensor([[1]]), 0.5), tensor(expected)
    )
    logits, targets = 3 * randn(2, 4, 7), tokens(2, 4)
    for s in (0.1, 0.9):
        expected = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), label_smoothing=s
        )
        assert_close(student.smoothed_loss(logits, targets, smoothing=s), expected)
    others = (3 * randn(2, 4, 7), tokens(2, 4), 0.7, 2)
    assert_close_in_turn(
        student.smoothed_loss,
        reference.smoothed_loss,
        logits,
        targets,
        0.4,
        -100,
        others=others,
    )


@points(1.25)
def test_ignored_targets_count_neither_above_nor_below(student):
    """Targets of -100, and of 3 where that is ignored, with smoothing and without."""
    logits, targets = 3 * randn(2, 5, 7), tokens(2, 5)
    targets[0, 1:] = -100
    for s in (0.0, 0.3):
        expected = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), label_smoothing=s
        )
        assert_close(student.smoothed_loss(logits, targets, s), expected)
    targets = torch.tensor([[3, 1, 3, 0, 6]])
    for ignored, s in ((3, 0.0), (3, 0.3), (10**6, 0.3)):
        expected = torch.nn.functional.cross_entropy(
            logits[0], targets[0], ignore_index=ignored, label_smoothing=s
        )
        answer = student.smoothed_loss(
            logits[:1], targets, smoothing=s, ignore_index=ignored
        )
        assert_close(answer, expected)
    for settings in ({"ignore_index": 3}, {}):
        answer = student.smoothed_loss(logits[:1], targets, **settings)
        expected = torch.nn.functional.cross_entropy(logits[0], targets[0], **settings)
        assert_close(answer, expected)


@points(0.5)
def test_a_batch_without_targets_has_a_loss_of_zero(student):
    """And gradients of zero."""
    logits = randn(1, 3, 4, grad=True)
    loss = student.smoothed_loss(logits, torch.full((1, 3), -100), 0.1)
    assert_close(loss, tensor(0.0))
    loss.backward()
    assert_close(logits.grad, torch.zeros(1, 3, 4, dtype=torch.float64))


@points(0.5)
def test_gradients_are_those_of_the_loss(student, reference):
    """Of every logit, with smoothing; a token with a target of -100 has none; logits in the
    thousands have a finite loss.
    """
    targets = tokens(2, 3)
    targets[1, 2] = -100
    assert_same_gradients(
        student.smoothed_loss,
        reference.smoothed_loss,
        randn(2, 3, 5, grad=True) * 1.0,
        targets % 5,
        0.2,
    )
    logits = tensor([[[0.0, -2000.0, 3000.0], [-3000.0, -3001.0, -5000.0]]])
    for given in (logits, logits.float()):
        answer = student.smoothed_loss(given, torch.tensor([[1, 1]]), 0.3)
        expected = reference.smoothed_loss(given, torch.tensor([[1, 1]]), 0.3)
        assert_close(answer, expected, rtol=1e-5)


@points(0.25)
def test_smoothing_of_one_or_below_zero_is_refused(student):
    """1 and -1."""
    logits, targets = randn(1, 2, 3), torch.tensor([[0, 2]])
    assert torch.isfinite(student.smoothed_loss(logits, targets, 0.5)), (
        "The loss is not finite."
    )
    for s in (1, -1):
        assert_refused(student.smoothed_loss, logits, targets, s, sizes=(s,))
