"""speculative_accept: the distribution of what comes out is the target's."""

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    call_twice,
    ones,
    points,
    rand,
    randint,
    tensor,
)


def _distributions(k, v):
    """k random distributions over v tokens, some tokens nearly impossible."""
    logits = 3 * rand(k, v) - 3 * (rand(k, v) < 0.2)
    return torch.softmax(logits, dim=-1)


def _kept(student, p, q, drafted, u):
    """The student's count for one place."""
    return _number(student.speculative_accept(p, q, tensor([drafted]), tensor([u]))[0])


def _number(count):
    """A count that came as a tensor, as a number: one test asks for an int, the others for how
    many.
    """
    return (
        count.item()
        if isinstance(count, torch.Tensor) and count.numel() == 1
        else count
    )


@points(1)
def test_a_token_is_kept_when_u_times_q_is_at_most_p(student):
    """One place. p = 0.3 and q = 0.6 for the drafted token: u = 0.49 keeps it, 0.51 does not. Then
    p = 0.25, q = 0.5 and u = 0.5: at most is enough.
    """
    p, q = tensor([[0.2, 0.3, 0.5]]), tensor([[0.1, 0.6, 0.3]])
    assert_equal(_kept(student, p, q, 1, 0.49), 1, what="num_accepted")
    assert_equal(_kept(student, p, q, 1, 0.51), 0, what="num_accepted")
    assert_equal(
        _kept(student, p - 0.1, q, 1, 0.49), 0, what="num_accepted for a smaller p"
    )
    assert_equal(
        _kept(student, p, q + 0.1, 1, 0.49), 0, what="num_accepted for a larger q"
    )
    p, q = tensor([[0.25, 0.75]]), tensor([[0.5, 0.5]])
    assert_equal(_kept(student, p, q, 0, 0.5), 1, what="num_accepted at the border")


@points(1)
def test_what_the_target_likes_better_is_always_kept(student):
    """p above q at the drafted token: kept for every u. And p = 0: rejected, for u above 0."""
    p, q = tensor([[0.7, 0.3, 0.0]]), tensor([[0.2, 0.5, 0.3]])
    assert_equal(_kept(student, p, q, 0, 0.999), 1, what="num_accepted")
    assert_equal(_kept(student, p, q, 2, 0.001), 0, what="num_accepted")


@points(1)
def test_the_first_rejection_ends_it(student):
    """Places 0, 1 and 3 would pass, place 2 does not: two are kept. What came after was drafted for
    another text. (The distributions are views.)
    """
    q = tensor([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1], [0.5, 0.5], [0.5, 0.5]])
    p = tensor([[0.5, 0.5], [0.6, 0.4], [0.1, 0.9], [0.5, 0.5], [0.7, 0.3]])
    p, q = (t.T.contiguous().T for t in (p, q))
    answer = call_twice(
        student.speculative_accept,
        p,
        q,
        tensor([0, 0, 0, 1, 0]),
        tensor([0.9, 0.9, 0.9, 0.9, 0.9]),
    )
    assert_equal(_number(answer[0]), 2, what="num_accepted")


@points(1)
def test_the_residual_is_what_is_missing_at_the_rejected_place(student):
    """max(p − q, 0) of the place where the rejection is (not the first, not the last), then
    normalized to sum 1.
    """
    p, q = _distributions(5, 7), _distributions(5, 7)
    drafted = (q - p).argmax(
        dim=-1
    )  # at each place the token that the draft likes too much
    u = tensor([0.0, 0.0, 1.0, 0.0, 1.0]) * 0.9999
    kept, residual = student.speculative_accept(p, q, drafted, u)
    assert_equal(_number(kept), 2, what="num_accepted")
    missing = (p[2] - q[2]).clamp(min=0)
    assert_close(residual, missing / missing.sum(), what="the residual")


@points(1)
def test_the_residual_is_zero_where_all_are_kept(student):
    """p = q: nothing can be rejected, for any u below 1. Zeros of shape [V], and the count is K, as
    an int. One word, in float32, has a residual of one number.
    """
    kept, residual = student.speculative_accept(
        ones(1, 1).float(), ones(1, 1).float(), tensor([0]), tensor([0.5])
    )
    assert_close(residual, torch.zeros(1), what="the residual of one word")
    p, drafted = _distributions(5, 3).T.softmax(dim=-1), randint(0, 5, (3,))
    kept, residual = student.speculative_accept(
        p, p.clone(), drafted, tensor([0.999, 0.5, 0.0])
    )
    assert_equal(kept, 3, what="num_accepted")
    assert_close(residual, torch.zeros(5, dtype=torch.float64), what="the residual")


@points(2)
def test_what_comes_out_has_the_targets_distribution(student):
    """The same p, q and drafted x at 500 places, with u from 0 up to 1: x is kept up to some u, and
    the rest goes to the residual. All x weighed by q, what comes out is p.
    """
    p, q = _distributions(1, 5), _distributions(1, 5)
    comes_out = torch.zeros(5, dtype=torch.float64)
    for x in range(5):
        drafted, u = torch.full((500,), x), torch.arange(500, dtype=torch.float64) / 500
        kept, residual = student.speculative_accept(
            p.repeat(500, 1), q.repeat(500, 1), drafted, u
        )
        kept = _number(kept)
        assert isinstance(kept, int), "num_accepted should be an int."
        comes_out[x] += q[0, x] * kept / 500
        comes_out += q[0, x] * (1 - kept / 500) * residual
    assert_close(
        comes_out,
        p[0],
        atol=4e-3,
        what="the distribution of the token that comes out, by many calls like",
    )


@points(1)
def test_shapes_that_cannot_match_are_refused(student):
    """q with another vocabulary, a guess too few or too many, a u too many or too few: ValueError,
    with the sizes.
    """
    p, q, drafted, u = (
        _distributions(3, 5),
        _distributions(3, 5),
        randint(0, 5, (3,)),
        rand(3),
    )
    for wrong, places in ((7, 11), (4, 2)):
        assert_refused(
            student.speculative_accept,
            p,
            _distributions(3, wrong),
            drafted,
            u,
            sizes=(5, wrong),
        )
        assert_refused(
            student.speculative_accept,
            p,
            q,
            randint(0, 5, (places,)),
            u,
            sizes=(3, places),
        )
        assert_refused(
            student.speculative_accept, p, q, drafted, rand(places), sizes=(3, places)
        )
