"""padding_mask: which keys are real, ready to broadcast over the queries."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    call_twice,
    points,
    randn,
    tensor,
)


@points(2)
def test_the_first_length_keys_are_real(student, reference):
    """A sequence of length 2 has the keys 0 and 1. Look at True and False, and at the last real
    key.
    """
    mask = student.padding_mask(tensor([2, 5, 3]), 7)
    expected = tensor(
        [[1, 1, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0, 0]]
    ).bool()
    assert_close(mask.reshape(-1, 7), expected, what="the mask, one row a sequence,")
    assert_close_in_turn(
        lambda lengths, n: student.padding_mask(lengths, n).reshape(-1, n),
        lambda lengths, n: reference.padding_mask(lengths, n).reshape(-1, n),
        *(tensor([2, 5, 3]), 7),
        others=(tensor([1, 7, 2]), 6),
    )


@points(0.5)
def test_there_is_an_axis_for_the_queries(student):
    """[B, 1, N]: the axis in the middle lets the mask broadcast over the queries. Boolean, inputs
    untouched.
    """
    mask = call_twice(student.padding_mask, tensor([2, 5, 3]), 7)
    assert mask.dtype == torch.bool, "the mask should be boolean"
    assert mask.any(), "every key is hidden"
    assert not mask.all(), "no key is hidden"
    assert list(mask.shape) == [3, 1, 7], (
        f"the shape is {list(mask.shape)}, and should be [B, 1, N] = [3, 1, 7]"
    )


@points(1.5)
def test_it_hides_keys_from_every_query_of_its_own_sequence(student):
    """Five sequences, five queries, five keys: with equal sizes a wrong axis broadcasts without a
    word.
    """
    lengths = [1, 4, 2, 5, 3]
    scores = randn(5, 5, 5)
    hidden = scores.masked_fill(~student.padding_mask(tensor(lengths), 5), 0.0)
    for b, length in enumerate(lengths):
        expected = scores[b].clone()
        expected[:, length:] = 0.0
        assert_close(
            hidden[b],
            expected,
            what=f"the masked scores of sequence {b}, with the mask",
        )


@points(1)
def test_empty_and_full_sequences(student):
    """Length 0 hides every key, length N none."""
    mask = student.padding_mask(tensor([0, 6]), 6)
    assert_close(mask, torch.stack([torch.zeros(1, 6), torch.ones(1, 6)]).bool())


@points(1)
def test_n_is_the_padded_length_even_if_nobody_is_so_long(student):
    """The longest of these sentences has 3 tokens, the tensors have 11 places."""
    mask = student.padding_mask(tensor([3, 2]), 11)
    assert_close(
        mask.reshape(2, -1).sum(dim=-1), tensor([3, 2]), what="the number of real keys"
    )
    assert_close(
        mask.reshape(2, -1)[:, 3:],
        torch.zeros(2, 8).bool(),
        what="the places from 3 on",
    )


@points(0.5)
def test_a_length_above_n_is_refused(student):
    """Cutting it off would hide a bug of the caller: ValueError, with the length and n in the
    message.
    """
    assert_refused(student.padding_mask, tensor([3, 13, 2]), 7, sizes=(13, 7))


@points(0.5)
def test_a_negative_length_is_refused(student):
    """There is no sequence of −1 tokens: ValueError, with the length in the message."""
    assert_refused(student.padding_mask, tensor([2, -1]), 7, sizes=(-1,))
