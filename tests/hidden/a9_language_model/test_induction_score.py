"""induction_score: the mean weight on the token after the last occurrence of the present one."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    call_twice,
    points,
    randn,
    tensor,
    zeros,
)


def _expected(weights, period):
    n = weights.shape[-1]
    return torch.stack(
        [weights[..., i, i - period + 1] for i in range(period, n)]
    ).mean(dim=0)


def _attention(*shape):
    """Attention weights of a language model: each row has the sum 1, and nothing stands right of
    the diagonal.
    """
    return torch.softmax(
        randn(*shape).masked_fill(~torch.ones(shape[-2:]).tril().bool(), -torch.inf),
        dim=-1,
    )


@points(1.5)
def test_a_head_that_looks_there_has_1_and_others_0(student):
    """Eight tokens, period 3: one head looks at key i - 2, one at i - 3, one at i - 1, one at i."""
    n, period = 8, 3
    heads = zeros(4, n, n)
    for head, back in enumerate((2, 3, 1, 0)):
        for i in range(n):
            heads[head, i, max(i - back, 0)] = 1.0
    assert_close(student.induction_score(heads, period), tensor([1.0, 0.0, 0.0, 0.0]))


@points(1)
def test_only_queries_that_have_seen_their_token_count(student):
    """Query 2 with period 3 has key 0 on the same diagonal, and has not seen its token yet."""
    weights = zeros(6, 6)
    weights[:, 0] = 1.0  # where a row looks at nothing else, it looks at key 0
    weights[5, [0, 3]] = tensor([0.4, 0.6])
    assert_close(student.induction_score(weights, 3), tensor(0.2))


@points(1)
def test_layers_and_heads_are_kept(student):
    """[3, 2, 9, 9] becomes [3, 2], for periods from 1 to 8, and [1, 9, 9] becomes [1]."""
    weights = _attention(3, 2, 9, 9).mT.contiguous().mT
    assert_close(
        student.induction_score(weights[0, :1], 4), _expected(weights[0, :1], 4)
    )
    for period in (1, 4, 8):
        assert_close(
            call_twice(student.induction_score, weights, period),
            _expected(weights, period),
        )
    assert_close(
        student.induction_score(weights.float(), 4), _expected(weights, 4).float()
    )
    other = _attention(3, 2, 9, 9)
    assert_close_in_turn(
        student.induction_score, _expected, weights, 4, others=(other, 5)
    )


@points(0.5)
def test_impossible_periods_are_refused(student):
    """A period of 0, one as long as the text, and weights that are not square."""
    weights = _attention(2, 5, 5)
    assert_close(student.induction_score(weights, 2), _expected(weights, 2))
    assert_refused(student.induction_score, weights, 0, sizes=(0,))
    assert_refused(student.induction_score, weights, 5, sizes=(5,))
    for rows, columns in ((4, 5), (5, 4)):
        assert_refused(
            student.induction_score,
            _attention(2, rows, columns),
            2,
            sizes=(rows, columns),
        )
