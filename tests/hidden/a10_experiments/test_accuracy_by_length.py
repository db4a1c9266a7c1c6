"""accuracy_by_length: a share for each length, of the words that count."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_equal,
    assert_refused,
    call_twice,
    points,
    randint,
)

TARGETS = torch.tensor([[1, 2, 9, 9], [4, 5, 6, 7], [3, 1, 9, 9], [8, 8, 8, 9]])
PREDICTED = torch.tensor([[1, 1, 9, 9], [4, 4, 6, 4], [3, 1, 4, 4], [8, 8, 7, 9]])
LENGTHS = torch.tensor([2, 4, 2, 3])


def _table(student, *arguments):
    answer = student.accuracy_by_length(*arguments)
    rows = isinstance(answer, (list, tuple)) and all(
        isinstance(row, (list, tuple)) and len(row) == 2 for row in answer
    )
    assert rows, "accuracy_by_length should return a list of pairs, (length, share)."
    return [tuple(row) for row in answer]


@points(1)
def test_there_is_a_row_for_each_length(student):
    """2, 3 and 4, shortest first, also where no word is right; a length of 3 alone."""
    table = _table(student, PREDICTED, TARGETS, LENGTHS)
    assert_equal([length for length, _ in table], [2, 3, 4], what="the lengths")
    table = _table(student, PREDICTED + 10, TARGETS, LENGTHS)
    assert_equal(
        [length for length, _ in table],
        [2, 3, 4],
        what="the lengths without a right word",
    )
    table = _table(student, PREDICTED[3:], TARGETS[3:], LENGTHS[3:])
    assert_equal([length for length, _ in table], [3], what="the lengths")
    assert isinstance(table[0][0], int), "a length should be a whole number."


@points(1.25)
def test_words_behind_the_end_do_not_count(student):
    """Right or wrong: 3 of 4 words of the two short sentences are right, 2 of 3 and 2 of 4 of the
    others.
    """
    shares = [float(share) for _, share in _table(student, PREDICTED, TARGETS, LENGTHS)]
    assert_close(shares, [0.75, 2 / 3, 0.5], what="the shares")


@points(1)
def test_all_sentences_of_a_length_share_it(student, reference):
    """Forty sentences of 1 to 6 words, several of each length; shares are Python
    floats.
    """
    predicted, targets = randint(0, 3, (40, 6)), randint(0, 3, (40, 6))
    lengths = randint(1, 7, (40,))
    expected = reference.accuracy_by_length(predicted, targets, lengths)
    table = call_twice(student.accuracy_by_length, predicted, targets, lengths)
    others = randint(0, 3, (40, 6)), randint(0, 3, (40, 6)), randint(1, 7, (40,))
    function, right = student.accuracy_by_length, reference.accuracy_by_length
    assert_close_in_turn(function, right, predicted, targets, lengths, others=others)
    assert isinstance(table[0][1], float), (
        f"A share is {type(table[0][1]).__name__}, not float."
    )
    assert_equal(
        [row[0] for row in table], [row[0] for row in expected], what="the lengths"
    )
    assert_close(
        [row[1] for row in table], [row[1] for row in expected], what="the shares"
    )


@points(0.75)
def test_what_does_not_fit_is_refused(student):
    """Predictions of three words for sentences of four, and of four for three; three lengths for
    four sentences, and four for three; lengths of 0 and 5.
    """
    _table(student, PREDICTED, TARGETS, LENGTHS)
    refused = student.accuracy_by_length
    assert_refused(refused, PREDICTED[:, :3], TARGETS, LENGTHS, sizes=(3, 4))
    assert_refused(
        refused, PREDICTED, TARGETS[:, :3], LENGTHS.clamp(max=3), sizes=(3, 4)
    )
    assert_refused(refused, PREDICTED, TARGETS, LENGTHS[:3], sizes=(3, 4))
    assert_refused(refused, PREDICTED[:3], TARGETS[:3], LENGTHS, sizes=(3, 4))
    for wrong in (0, 5):
        lengths = torch.tensor([2, wrong, 4, 1])
        assert_refused(refused, PREDICTED, TARGETS, lengths, sizes=(wrong, 4))
