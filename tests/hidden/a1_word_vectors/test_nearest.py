"""nearest: the best k rows by angle."""

import torch

from autograder.suite import (
    assert_close,
    assert_equal,
    assert_refused,
    call_twice,
    eye,
    points,
    rand,
    randn,
    tensor,
    uses,
)

pytestmark = [uses("cosine_similarity")]


def unequal_rows(vocab_size, d):
    """Rows whose lengths differ by a factor of a thousand, so that length and direction
    disagree.
    """
    return randn(vocab_size, d) * 10 ** (3 * rand(vocab_size, 1) - 1.5)


def assert_ids(found, expected):
    assert isinstance(found, torch.Tensor), "the ids should be a tensor of shape [k]"
    assert_equal(found.tolist(), expected.tolist(), what="the list of ids")


@points(1.5)
def test_the_best_words_come_first(student, reference):
    """Ids by falling similarity: the first one is the nearest."""
    table = randn(11, 5)
    table = table / table.norm(dim=1, keepdim=True)
    for _ in range(3):
        query = randn(5)
        assert_ids(student.nearest(table, query, 4), reference.nearest(table, query, 4))
    assert_ids(student.nearest(table, query, 11), reference.nearest(table, query, 11))


@points(1.5)
def test_the_angle_decides_not_the_length(student, reference):
    """Rows of very different lengths: a long row must not win because it is long, nor a short one
    because it is near.
    """
    for _ in range(4):
        table, query = unequal_rows(13, 3), 20 * randn(3)
        assert_ids(student.nearest(table, query, 5), reference.nearest(table, query, 5))


@points(1)
def test_excluded_words_do_not_come_back(student, reference):
    """The ids to leave out are taken from the whole table, and the answers are ids of the whole
    table, too.
    """
    table = randn(9, 5)
    query = table[2] + 0.1 * randn(5)
    for exclude in ((2,), (2, 0, 5), [8, 2], (0, 0, 2)):
        expected = reference.nearest(table, query, 4, exclude=exclude)
        assert_ids(student.nearest(table, query, 4, exclude=exclude), expected)


@points(1)
def test_words_that_point_away_still_beat_excluded_ones(student):
    """All similarities may be negative, down to −1. Whatever score an excluded word gets must be
    below.
    """
    query = tensor([2.0, 0.0])
    table = tensor([[-3.0, 0.0], [-1.0, 0.5], [5.0, 0.1], [-2.0, 0.1]])
    found = student.nearest(table, query, 3, exclude=(2,))
    assert_ids(found, torch.tensor([1, 3, 0]))
    found = student.nearest(
        table.flip(0), query, 3, exclude=(1,)
    )  # among equals another is first
    assert_ids(found, torch.tensor([2, 0, 3]))


@points(1)
def test_as_many_words_as_are_left(student, reference):
    """k may be as large as the number of words that are not excluded, and as small as 1."""
    table, query = randn(6, 3), randn(3)
    expected = reference.nearest(table, query, 4, exclude=(1, 4))
    assert_ids(student.nearest(table, query, 4, exclude=(1, 4)), expected)
    assert_ids(student.nearest(table, query, 1), reference.nearest(table, query, 1))
    expected = reference.nearest(table, query, 5, exclude=(1,))
    assert_ids(
        student.nearest(table, query, 5, exclude=(1, 1)), expected
    )  # one word, said twice
    assert_ids(student.nearest(table[:1], query, 1), torch.tensor([0]))


@points(0.5)
def test_ids_are_int64(student):
    """Ids are whole numbers in a tensor of dtype int64, ready to index a table."""
    table, query = eye(5), tensor([0.0, 0.0, 3.0, 0.0, 2.0])
    assert_close(student.nearest(table, query, 2), torch.tensor([2, 4]))


@points(0.5)
def test_the_table_is_left_alone(student, reference):
    """Leaving words out must not write into the caller's table."""
    table, query = randn(5, 7).T, randn(5)
    found = call_twice(student.nearest, table, query, 3, exclude=(0, 3))
    assert_ids(found, reference.nearest(table, query, 3, exclude=(0, 3)))


@points(1)
def test_no_loop_over_the_vocabulary(student):
    """The number of torch operations must not grow with the vocabulary: compare the query with all
    rows at once.
    """
    table = randn(45, 3)
    query = table[3] = tensor([0.0, 9.0, 0.0])
    assert student.nearest(table, query, 2, exclude=(1,))[0].item() == 3, (
        "not even a row equal to the query is found"
    )
    small = student.cost("nearest", table[:5], query, 2, exclude=(1,)).operations
    large = student.cost("nearest", table, query, 2, exclude=(1,)).operations
    assert large <= small + 5, (
        f"{small} operations for 5 words and {large} for 45: is there a loop over the words?"
    )


@points(0.5)
def test_more_words_than_are_left_are_refused(student):
    """Count what is left after the excluded words; k of 0 makes no sense either."""
    table, query = randn(6, 3), randn(3)
    assert_refused(student.nearest, table, query, 7, sizes=(7,))
    assert_refused(student.nearest, table, query, 5, exclude=(0, 2), sizes=(5,))
    assert_refused(student.nearest, table, query, 0)


@points(0.5)
def test_excluding_an_unknown_word_is_refused(student):
    """An excluded id must be a row of the table; −1 is none."""
    table, query = randn(6, 3), randn(3)
    assert_refused(student.nearest, table, query, 2, exclude=(6,), sizes=(6,))
    assert_refused(student.nearest, table, query, 2, exclude=(-1,))
