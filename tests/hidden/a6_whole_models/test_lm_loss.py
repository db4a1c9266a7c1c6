"""lm_loss: the next token, one shift, no ignored targets in the sum or in the number that divides
it.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    points,
    randint,
    randn,
    tensor,
    zeros,
)

IGNORED = -100


def _by_hand(logits, ids, ignored=IGNORED):
    """Target by target."""
    losses = []
    for b in range(ids.shape[0]):
        for t in range(ids.shape[1] - 1):
            target = int(ids[b, t + 1])
            if target != ignored:
                losses.append(
                    torch.logsumexp(logits[b, t], dim=0) - logits[b, t, target]
                )
    return torch.stack(losses).mean()


@points(1.5)
def test_the_mean_over_all_next_tokens(student):
    """Position t predicts token t + 1; the mean is over B·(N - 1) targets."""
    for b, n, v in ((3, 5, 7), (1, 2, 11), (3, 3, 3)):
        logits, ids = randn(n, b, v).transpose(0, 1), randint(0, v, (b, n))
        assert_close(call_twice(student.lm_loss, logits, ids), _by_hand(logits, ids))
        assert_close_in_turn(
            student.lm_loss, _by_hand, logits, ids, others=(None, v - 1 - ids)
        )


@points(1)
def test_the_last_prediction_and_the_first_token_do_not_count(student):
    """The logits of the last position have no target, and the first token was predicted by
    nobody.
    """
    logits, ids = randn(3, 5, 7), randint(0, 7, (3, 5))
    loss = student.lm_loss(logits, ids)
    assert float(loss) > 0.1, "Random logits have a loss that is not 0."
    assert float(student.lm_loss(3 * logits, ids)) != float(loss), (
        "Other logits have the same loss."
    )
    other, first = logits.clone(), ids.clone()
    other[:, -1] += 3 * randn(3, 7)
    first[:, 0] = (first[:, 0] + 1) % 7
    assert_close(
        student.lm_loss(other, ids),
        loss.detach(),
        what="with other logits at the last position, the loss",
    )
    assert_close(
        student.lm_loss(logits, first),
        loss.detach(),
        what="with another first token, the loss",
    )


@points(1)
def test_who_knows_the_next_token_has_no_loss(student):
    """Logits of 50 at token t + 1: loss 0. Logits of 50 at token t itself, or at t + 2: a very
    large loss.
    """
    ids = tensor([[0, 3, 1, 4, 2, 5], [5, 2, 0, 1, 3, 4]])
    for ahead in (0, 1, 2):
        logits = zeros(2, 6, 7)
        logits.scatter_(2, ids.roll(-ahead, dims=1)[..., None], 50.0)
        loss = float(student.lm_loss(logits, ids))
        right = loss < 1e-6 if ahead == 1 else loss > 20
        assert right, (
            f"A model that is sure of the token {ahead} places ahead has the loss {loss:.4g}."
        )


@points(1.5)
def test_ignored_targets_leave_the_sum_and_the_count(student):
    """Rows with 4, 2 and 1 targets left: the mean is over seven targets, not over all, and not a
    mean of row means. Then other values of ignore_index: -1, and a padding token 0 that is in the
    vocabulary.
    """
    logits, ids = randn(3, 5, 7), randint(1, 7, (3, 5))
    for ignored in (IGNORED, -1, 0, 1000, IGNORED):
        padded = ids.clone()
        padded[1, 3:], padded[2, 2:] = ignored, ignored
        arguments = (
            (logits, padded) if ignored == IGNORED else (logits, padded, ignored)
        )
        assert_close(student.lm_loss(*arguments), _by_hand(logits, padded, ignored))
    padded = ids.clone()
    padded[1, 3:], padded[2, 2:] = 0, 0
    assert_close(
        student.lm_loss(logits, padded),
        _by_hand(logits, padded),
        what="with no padding,",
    )


@points(0.5)
def test_no_target_at_all_is_zero(student):
    """All targets ignored, and a text of one token: the loss is 0 and its gradient zero, not
    NaN.
    """
    for n in (4, 1):
        logits, ids = randn(2, n, 7, grad=True), randint(0, 7, (2, n))
        ids[:, 1:] = IGNORED
        loss = assert_same_gradients(
            student.lm_loss, lambda logits, _: 0 * logits.sum(), logits, ids
        )
        assert_close(loss, zeros(()))


@points(0.5)
def test_logits_of_a_thousand(student):
    """Probabilities that underflow to 0 have a logarithm all the same."""
    logits, ids = 1500 * randn(3, 5, 7), randint(0, 7, (3, 5))
    assert_close(student.lm_loss(logits, ids), _by_hand(logits, ids), rtol=1e-5)


@points(0.5)
def test_gradients_push_towards_the_next_token(student):
    """The gradient of the logits, ignored targets included: softmax minus one-hot, over the count;
    0 elsewhere.
    """
    logits, ids = randn(2, 4, 5, grad=True), randint(0, 5, (2, 4))
    ids[1, 3] = IGNORED
    assert_same_gradients(student.lm_loss, _by_hand, logits, ids)


@points(0.5)
def test_half_precision_is_computed_wide_and_stays_half(student):
    """float16 logits of size 100 over 601 words: the loss is float16, and right."""
    logits, ids = (30 * randn(2, 4, 601)).half(), randint(0, 601, (2, 4))
    assert_close(
        student.lm_loss(logits, ids), _by_hand(logits.double(), ids).half(), rtol=4e-3
    )
    logits = tensor([[[300.0, 0.0], [-2000.0, -1990.0], [0.0, 0.0]]]).half()
    assert_close(
        student.lm_loss(logits, tensor([[0, 0, 0]])), tensor(5.0).half(), atol=1e-2
    )
    # a hundred losses of 1000 each are more than float16 can add
    logits = tensor([[[1000.0, 0.0]]]).half().expand(1, 101, 2)
    loss = student.lm_loss(logits, torch.ones(1, 101, dtype=torch.int64))
    assert_close(loss, tensor(1000.0).half())


@points(0.5)
def test_ids_that_cannot_belong_are_refused(student):
    """Logits for five places and ids for four; a target 7 among seven words, 0 … 6: ValueError,
    with the numbers.
    """
    assert_refused(student.lm_loss, randn(2, 5, 7), randint(0, 7, (2, 4)), sizes=(5, 4))
    assert_refused(student.lm_loss, randn(2, 5, 7), randint(0, 7, (2, 6)), sizes=(5, 6))
    assert_refused(student.lm_loss, randn(1, 3, 7), tensor([[1, 2, 7]]), sizes=(7,))
    assert_refused(student.lm_loss, randn(1, 3, 6), tensor([[1, -3, 2]]), sizes=(-3, 6))
