"""one_hot: a coordinate for every word."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    call_twice,
    forbid,
    points,
    randint,
    tensor,
)

pytestmark = [forbid("torch.nn.functional.one_hot")]


@points(1)
def test_each_id_has_its_own_coordinate(student, reference):
    """Every row should have exactly one 1, in the column of its id. Look at a vocabulary larger
    than the ids you use.
    """
    ids = tensor([4, 0, 2, 2, 5])
    assert_close_in_turn(
        student.one_hot,
        reference.one_hot,
        ids,
        7,
        others=(ids.flip(0), 9),
        same_dtype=False,
    )


@points(1)
def test_ids_may_have_any_number_of_dimensions(student, reference):
    """The vocabulary is a new last dimension behind all dimensions of ids: [2, 3] becomes [2, 3,
    V]. A single id counts.
    """
    ids = randint(0, 6, (2, 5, 3))
    assert_close_in_turn(
        student.one_hot,
        reference.one_hot,
        ids,
        6,
        others=(5 - ids, 8),
        same_dtype=False,
    )
    for single in (tensor(3), tensor([[3]])):
        assert_close(
            student.one_hot(single, 5), reference.one_hot(single, 5), same_dtype=False
        )


@points(1)
def test_the_result_is_a_matrix_of_floats(student):
    """The result is multiplied with weights: it needs torch's default float dtype."""
    hot = student.one_hot(tensor([1, 0, 2]), 3)
    assert_close(hot, torch.tensor([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]]))


@points(1)
def test_ids_are_left_alone(student, reference):
    """The same call gives the same answer twice; the ids may be a transposed view."""
    ids = randint(0, 5, (3, 2)).T
    assert_close(
        call_twice(student.one_hot, ids, 5), reference.one_hot(ids, 5), same_dtype=False
    )


@points(1)
def test_an_id_beyond_the_vocabulary_is_refused(student):
    """With V words the largest id is V − 1. Anything above is a ValueError that names the id and
    V.
    """
    assert_refused(student.one_hot, tensor([0, 11]), 11, sizes=(11,))
    assert_refused(student.one_hot, tensor([[0, 3], [13, 2]]), 6, sizes=(13, 6))


@points(1)
def test_a_negative_id_is_refused(student):
    """−1 is no word: it must not quietly become the last one."""
    assert_refused(student.one_hot, tensor([2, -1, 0]), 5, sizes=(5,))
