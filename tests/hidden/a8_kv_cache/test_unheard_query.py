"""unheard_query: evidence against the notes' formula, checked as a property of whatever is
returned.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_refused,
    call_twice,
    points,
    randn,
    tensor,
    zeros,
)


def _check(student, q, k, twice=False):
    query = (call_twice if twice else (lambda f, *a: f(*a)))(
        student.unheard_query, q, k
    )
    assert isinstance(query, torch.Tensor), "a query is a tensor"
    assert query.shape == q.shape[1:], (
        f"a query of shape {list(query.shape)}, where [{q.shape[1]}] is asked for"
    )
    root = q.shape[1] ** 0.5
    changed = torch.cat([q[:-1], query[None].to(q.dtype)])
    notes = [
        torch.softmax((queries * k).sum(dim=1) / root, dim=0)
        for queries in (q, changed)
    ]
    assert_close(
        notes[1],
        notes[0],
        atol=1e-8,
        rtol=0,
        what="by the notes' formula, the weights with the answer",
    )
    attention = [
        torch.softmax(k @ queries[-1] / root, dim=0) for queries in (q, changed)
    ]
    moved = float((attention[1] - attention[0]).abs().max())
    assert moved >= 0.1, (
        f"no weight of attention moves by 0.1 with this query; the largest change is {moved:.3g}."
    )


@points(1)
def test_the_notes_formula_cannot_tell_the_two_apart(student):
    """Three tokens of size 2, random. Both formulas are evaluated with your query, as the text
    says.
    """
    for _ in range(3):
        _check(student, randn(3, 2), randn(3, 2), twice=True)


@points(1)
def test_more_tokens_and_larger_sizes(student):
    """Eleven tokens of size 7, as views, and two of size 5; keys that are small, and two keys that
    are nearly on one line: how far must the query move for a score to move? At last an earlier key
    that is a multiple of the last one, or 0: take another.
    """
    _check(student, randn(7, 11).T, randn(7, 11).T)
    q, k = randn(2, 5), randn(2, 5)
    for queries, keys in ((q, k), (randn(2, 5), k), (q, randn(2, 5))):
        _check(student, queries, keys)
    _check(student, randn(3, 3), 1e-3 * randn(3, 3))
    _check(student, zeros(2, 2), tensor([[1.5, -0.5], [-2.0, 0.5]]))
    for first in ([0.0, 0.0, 3.0], [0.0, 0.0, 0.0]):
        _check(student, zeros(3, 3), tensor([first, [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]))


@points(1)
def test_it_works_where_one_token_has_nearly_all_the_weight(student):
    """The last query already asks for one earlier token, or for itself, with weight nearly 1: go
    the other way. At last it asks for the first of three tokens, and its own score is far below 0:
    that score stays, and says nothing of where a weight moves.
    """
    for n, wanted in ((5, 0), (5, 1), (5, 4), (2, 0), (2, 1)):
        q, k = randn(n, 6), randn(n, 6)
        q[-1] = 40 * k[wanted] / k[wanted].norm()
        _check(student, q, k)
    k = tensor([[0.0, 2.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
    _check(student, tensor([[0.0, 0.0, 0.0]] * 2 + [[0.0, 30.0, -100.0]]), k)


@points(1)
def test_where_no_such_query_exists_it_is_refused(student):
    """A single token; keys that are all multiples of one: then nothing can be asked that the
    formula misses.
    """
    assert_refused(student.unheard_query, randn(1, 5), randn(1, 5))
    assert_refused(
        student.unheard_query,
        randn(4, 3),
        tensor([[1.0], [-2.0], [0.5], [3.0]]) * randn(1, 3),
    )
