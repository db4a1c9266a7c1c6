"""causal_mask: True where key j is not after query i, aligned to the bottom right."""

import torch

from autograder.suite import assert_close, assert_refused, points, tensor


@points(2)
def test_each_token_sees_itself_and_the_past(student):
    """Write the 3 × 3 mask on paper: rows are queries, columns are keys, and row 0 has exactly one
    True.
    """
    assert_close(
        student.causal_mask(3), tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1]]).bool()
    )
    assert_close(student.causal_mask(7), torch.ones(7, 7).tril().bool())
    assert_close(student.causal_mask(7, 7), torch.ones(7, 7).tril().bool())


@points(2)
def test_fewer_queries_than_keys_are_the_last_positions(student):
    """Two queries and five keys: the queries stand at positions 3 and 4, so the first already sees
    four keys.
    """
    assert_close(
        student.causal_mask(2, 5), tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]).bool()
    )
    assert_close(student.causal_mask(3, 7), torch.ones(7, 7).tril().bool()[4:])


@points(1.5)
def test_the_last_query_sees_every_key_and_the_one_before_all_but_one(student):
    """Whatever the two sizes: the bottom-right corner is True and its upper neighbour False."""
    for n_q, n_k in ((2, 3), (5, 11), (3, 13), (6, 6)):
        mask = student.causal_mask(n_q, n_k)
        expected = torch.ones(2, n_k).bool()
        expected[0, -1] = False
        assert_close(mask[-2:], expected, what="the last two rows")


@points(1)
def test_queries_before_the_first_key_see_nothing(student):
    """Five queries and two keys: the keys are the last two positions, so the first three rows are
    empty.
    """
    assert_close(
        student.causal_mask(5, 2),
        tensor([[0, 0], [0, 0], [0, 0], [1, 0], [1, 1]]).bool(),
    )


@points(0.5)
def test_one_query_and_a_long_past(student):
    """One new token with a cache of ten others may look at everything."""
    assert_close(student.causal_mask(1, 11), torch.ones(1, 11).bool())
    assert_close(student.causal_mask(1), torch.ones(1, 1).bool())
    assert not student.causal_mask(2).all(), (
        "Of two tokens the first must not see the second."
    )


@points(0.5)
def test_no_keys_is_not_the_same_as_no_argument(student):
    """n_k = 0 is a size, None is a missing one; and 0 counts as false in Python. No queries are a
    size too.
    """
    assert_close(student.causal_mask(3, 0), torch.ones(3, 0).bool())
    assert_close(student.causal_mask(0, 5), torch.ones(0, 5).bool())
    share = student.causal_mask(2).double().mean()
    assert_close(share, tensor(0.75), what="the share of keys that two tokens see")


@points(0.5)
def test_negative_sizes_are_refused(student):
    """ValueError, with the negative size in the message. Two of them make no right one."""
    assert_refused(student.causal_mask, -1, 5, sizes=(-1,))
    assert_refused(student.causal_mask, 3, -1, sizes=(-1,))
    assert_refused(student.causal_mask, -2, -3)
