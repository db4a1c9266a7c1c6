"""filtered_probabilities: temperature, then exactly k, then the smallest set that reaches p; rows
sum to 1.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    call_twice,
    ones,
    points,
    randn,
    tensor,
    zeros,
)


def _slow(logits, temperature, top_k=None, top_p=None):
    """Token by token, for rows without ties."""
    rows = []
    for row in torch.softmax(logits / temperature, dim=-1):
        p = row.clone()
        ranked = sorted(range(len(p)), key=lambda i: -float(p[i]))
        kept = ranked if top_k is None else ranked[:top_k]
        if top_p is not None:
            share, nucleus = float(sum(p[i] for i in kept)), []
            while kept and (
                not nucleus or float(sum(p[i] for i in nucleus)) < top_p * share
            ):
                nucleus.append(kept[len(nucleus)])
            kept = nucleus
        mask = torch.zeros(len(p), dtype=torch.bool)
        mask[kept] = True
        p = p.masked_fill(~mask, 0.0)
        rows.append(p / p.sum())
    return torch.stack(rows)


def _kept(p):
    """How many tokens each row keeps."""
    assert isinstance(p, torch.Tensor), "filtered_probabilities should return a tensor."
    return (p > 0).sum(dim=-1)


@points(1)
def test_temperature_divides_the_logits(student):
    """T = 1/2 sharpens and T = 1.7 flattens, before the softmax."""
    logits = 2 * randn(3, 7)
    for temperature in (0.5, 1.7, 1):
        answer = call_twice(student.filtered_probabilities, logits, temperature)
        assert_close(answer, torch.softmax(logits / temperature, dim=-1))
    assert_close_in_turn(
        student.filtered_probabilities, _slow, logits, 0.5, others=(None, 1.7)
    )


@points(1)
def test_temperature_zero_is_the_likeliest_token(student):
    """All probability on one token of each row; where two are equally likely, on one of the two."""
    logits = tensor([[1.0, 5.0, -2.0, 4.0, 0.0], [-7.0, -9.0, -8.0, -6.0, -5.0]])
    assert_close(
        student.filtered_probabilities(logits, 0),
        tensor([[0.0, 1.0, 0, 0, 0], [0.0, 0, 0, 0, 1.0]]),
    )
    assert_close(
        student.filtered_probabilities(logits, 0.0, 3, 0.9).sum(dim=-1), ones(2)
    )
    tied = student.filtered_probabilities(tensor([[2.0, 7.0, 7.0, 1.0, 7.0]]), 0.0)
    assert_close(
        tied.sort(dim=-1).values,
        tensor([[0.0, 0.0, 0.0, 0.0, 1.0]]),
        what="with a tie, the sorted row",
    )


@points(1.5)
def test_top_k_keeps_exactly_k_where_they_stand(student):
    """The k likeliest of each row keep their places and share the whole; of equally likely ones
    exactly k stay.
    """
    logits = 2 * randn(3, 7)
    for k in (1, 3, 6):
        assert_close(
            student.filtered_probabilities(logits, 1.0, top_k=k), _slow(logits, 1.0, k)
        )
    ties = tensor([[3.0, 1.0, 3.0, 1.0, 1.0, -2.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    for k in (3, 5):
        kept = _kept(student.filtered_probabilities(ties, 1.0, top_k=k)).tolist()
        assert kept == [k, k], (
            f"With equally likely tokens and top_k = {k} your rows keep {kept} tokens."
        )
    assert_close(
        student.filtered_probabilities(logits, 1.0), torch.softmax(logits, dim=-1)
    )


@points(0.5)
def test_more_than_the_vocabulary_is_all_of_it(student):
    """top_k = 7 and top_k = 50 for seven tokens: no filter."""
    logits = randn(2, 7)
    for k in (7, 50):
        assert_close(
            student.filtered_probabilities(logits, 1.0, top_k=k),
            torch.softmax(logits, dim=-1),
        )


@points(1.5)
def test_top_p_keeps_the_smallest_set_that_reaches_p(student):
    """Likeliest first, including the token with which the sum crosses p; rows keep different
    numbers of tokens, and every token stays in its own place.
    """
    logits = 1.5 * randn(5, 11)
    for p in (0.3, 0.6, 0.9):
        assert_close(
            student.filtered_probabilities(logits, 1.0, top_p=p),
            _slow(logits, 1.0, None, p),
        )
    assert_close(
        student.filtered_probabilities(logits, 1.0, top_p=1.0),
        torch.softmax(logits, dim=-1),
    )
    kept = _kept(student.filtered_probabilities(zeros(1, 4), 1.0, top_p=0.5)).tolist()
    assert kept == [2], (
        f"Of four equally likely tokens two reach p = 0.5, and yours keeps {kept[0]}."
    )


@points(0.5)
def test_at_least_one_token_stays(student):
    """A tiny p, and a model that is nearly sure: the likeliest token alone, with probability 1."""
    logits = tensor([[0.5, 0.1, 0.9, 0.3, 0.7], [30.0, 0.0, 1.0, 2.0, 3.0]])
    expected = tensor([[0.0, 0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]])
    assert_close(student.filtered_probabilities(logits, 1.0, top_p=1e-6), expected)
    assert_close(
        student.filtered_probabilities(logits[1:], 1.0, top_p=0.5), expected[1:]
    )


@points(1)
def test_top_p_counts_what_top_k_left(student):
    """Probabilities 0.4, 0.3, 0.2, 0.1 and top_k = 2: the two left have 4/7 and 3/7, and 4/7 alone
    reaches 0.55.
    """
    logits = torch.log(tensor([[0.3, 0.1, 0.4, 0.2]]))
    assert_close(
        student.filtered_probabilities(logits, 1.0, 2, 0.55),
        tensor([[0.0, 0.0, 1.0, 0.0]]),
    )
    assert_close(
        student.filtered_probabilities(logits, 1.0, 2, 0.6),
        tensor([[3 / 7, 0.0, 4 / 7, 0.0]]),
    )
    assert_close(
        student.filtered_probabilities(logits, 1.0, 3, 0.75),
        tensor([[3 / 7, 0.0, 4 / 7, 0.0]]),
    )


@points(0.5)
def test_temperature_comes_before_top_p(student):
    """0.64 and 0.36 at T = 1 become 0.76 and 0.24 at T = 1/2, and 0.57 and 0.43 at T = 2: p = 0.7
    and p = 0.6.
    """
    logits = torch.log(tensor([[0.36, 0.64]]))
    assert_close(
        student.filtered_probabilities(logits, 0.5, top_p=0.7), tensor([[0.0, 1.0]])
    )
    assert_close(
        student.filtered_probabilities(logits, 2.0, top_p=0.6), tensor([[3 / 7, 4 / 7]])
    )


@points(0.5)
def test_large_logits_and_half_precision(student):
    """Logits near a thousand at T = 1/2 stay finite; float16 in, float16 out, without overflow at T
    = 0.01.
    """
    logits = tensor([[1000.0, 999.0, -1200.0, 998.5], [-5e4, -5e4 - 2, 0.0, 0.5]])
    assert_close(student.filtered_probabilities(logits, 0.5, 3), _slow(logits, 0.5, 3))
    deep = tensor([[-1e12, -1e12, -2e12]])
    expected = tensor([[0.5, 0.5, 0.0]])
    # float64 has 1e12 + ln 2 to 1e-4
    assert_close(student.filtered_probabilities(deep, 1.0, 2), expected, atol=1e-3)
    narrow = tensor([[900.0, 890.0, 0.0, -900.0]]).half()
    assert_close(
        student.filtered_probabilities(narrow, 0.01, 3, 0.9),
        tensor([[1.0, 0.0, 0.0, 0.0]]).half(),
    )
    rows = tensor([[2000.0, 1968.0, 0.0, 0.0], [-2040.0, -2008.0, -40.0, -40.0]]).half()
    expected = tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]).half()
    assert_close(student.filtered_probabilities(rows, 1.0), expected, atol=1e-3)


@points(0.5)
def test_settings_that_mean_nothing_are_refused(student):
    """temperature -1, top_k 0, top_p 0 and 2: ValueError with the number in it. (The logits are a
    view.)
    """
    logits = zeros(5, 2).T
    assert_close(student.filtered_probabilities(logits, 1.0, 5, 1), 0.2 * ones(2, 5))
    assert_refused(student.filtered_probabilities, logits, -1, sizes=(-1,))
    assert_refused(student.filtered_probabilities, logits, 1.0, 0, sizes=(0,))
    assert_refused(student.filtered_probabilities, logits, 1.0, None, 0, sizes=(0,))
    assert_refused(student.filtered_probabilities, logits, 1.0, None, 2, sizes=(2,))
