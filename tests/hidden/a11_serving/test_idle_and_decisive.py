"""idle_and_decisive: two tokens whose weights say nothing about what they do."""

import math

import torch

from autograder.suite import (
    assert_equal,
    assert_refused,
    call_twice,
    points,
    randn,
    tensor,
    zeros,
)

CASES = ((4, 3, 2), (1, 5, 1), (7, 2, 6), (3, 1, 3))
"""(N, d, d_v)."""


def _draw(n, d, d_v, scale=1.0):
    return scale * randn(d), randn(n, d), randn(n, d_v)


def _added(q, k, v, key, value):
    """(weight of an added token, by how much it moves the output)."""
    assert_equal(list(key.shape), [len(q)], what="the shape of a key")
    assert_equal(list(value.shape), [v.shape[1]], what="the shape of a value")
    root = math.sqrt(len(q))
    before = torch.softmax(k @ q / root, dim=0) @ v
    weights = torch.softmax(torch.cat([k, key[None]]) @ q / root, dim=0)
    after = weights @ torch.cat([v, value[None]])
    return float(weights[-1]), float((after - before).norm())


def _answer(student, q, k, v):
    answer = call_twice(student.idle_and_decisive, q, k, v)
    is_four = isinstance(answer, (tuple, list)) and len(answer) == 4
    assert is_four, "four tensors are asked for: a key and a value, twice."
    return answer


@points(1.5)
def test_the_idle_token_has_the_weight_and_does_nothing(student):
    """A weight of at least 0.9, and the same output within 1e-9. Several sizes; scores of any
    size.
    """
    for sizes in CASES:
        for scale in (1.0, 30.0):
            q, k, v = _draw(*sizes, scale)
            weight, moved = _added(q, k, v, *_answer(student, q, k, v)[:2])
            assert weight >= 0.9, f"the idle token gets a weight of {weight:.4f}"
            assert moved <= 1e-9, f"the idle token moves the output by {moved:.2e}"


@points(1.5)
def test_the_decisive_token_has_no_weight_and_moves_the_output(student):
    """A weight of at most 0.01, and the output moves by 10 or more. Several sizes."""
    for sizes in CASES:
        for scale in (1.0, 30.0):
            q, k, v = _draw(*sizes, scale)
            weight, moved = _added(q, k, v, *_answer(student, q, k, v)[2:])
            assert weight <= 0.01, f"the decisive token gets a weight of {weight:.4f}"
            assert moved >= 10, f"the decisive token moves the output by {moved:.2f}"


@points(0.5)
def test_large_values_and_small_queries(student):
    """Values near 100, a query of length 0.001, scores of thousands, tensors that are not contiguous;
    and each argument exchanged in turn: the same is asked for.
    """
    query, across, values = randn(3), randn(3, 4).T, randn(2, 4).T
    for q, k, v in (
        (0.001 * randn(3), randn(4, 3), randn(4, 2)),
        (randn(3), randn(4, 3), 100 + 100 * randn(4, 2)),
        (
            4000 + randn(3),
            randn(4, 3) + tensor([[1.0], [0.0], [0.5], [-3.0]]),
            randn(4, 2),
        ),
        (query, across, values),
        (query, across, values + 1),
        (query, across + randn(4, 3), values),
        (-query, across, values),
    ):
        answer = _answer(student, q, k, v)
        weight, moved = _added(q, k, v, *answer[:2])
        assert weight >= 0.9, f"the idle token gets a weight of {weight:.4f}"
        assert moved <= 1e-9, f"the idle token moves the output by {moved:.2e}"
        weight, moved = _added(q, k, v, *answer[2:])
        assert weight <= 0.01, f"the decisive token gets a weight of {weight:.4f}"
        assert moved >= 10, f"the decisive token moves the output by {moved:.2f}"


@points(0.5)
def test_a_query_of_zeros_is_refused(student):
    """Every key gets the same weight: ValueError with the size, 3."""
    assert_refused(
        student.idle_and_decisive, zeros(3), randn(4, 3), randn(4, 2), sizes=(3,)
    )
    q = zeros(3)
    q[1] = -2.0
    weight, _ = _added(
        q, *(parts := (randn(4, 3), randn(4, 2))), *_answer(student, q, *parts)[:2]
    )
    assert weight >= 0.9, f"the idle token gets a weight of {weight:.4f}"
