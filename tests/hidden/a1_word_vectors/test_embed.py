"""embed: each id picks its row."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    forbid,
    points,
    randint,
    randn,
    tensor,
)

pytestmark = [
    forbid("torch.nn.functional.embedding", "torch.embedding", "torch.nn.Embedding")
]


@points(1)
def test_each_id_picks_its_row(student, reference):
    """The id chooses the row, not the position in the sentence: repeated ids give repeated rows."""
    table, ids = randn(7, 5), tensor([6, 0, 3, 3, 6, 1])
    assert_close_in_turn(
        student.embed, reference.embed, table, ids, others=(randn(7, 5), ids.flip(0))
    )
    square = randn(5, 5)
    assert_close(
        student.embed(square, tensor([4, 4, 0, 1, 2])),
        reference.embed(square, tensor([4, 4, 0, 1, 2])),
    )


@points(1)
def test_ids_may_come_in_batches(student, reference):
    """[..., N] ids give [..., N, D]: the features are a new last dimension."""
    for shape in ((2, 3), (1, 1), (2, 5, 3), (3, 7)):
        table, ids = randn(7, 6), randint(0, 7, shape)
        assert_close_in_turn(
            student.embed, reference.embed, table, ids, others=(randn(7, 6), 6 - ids)
        )


@points(1)
def test_repeated_tokens_add_their_gradients(student, reference):
    """Each occurrence of a token adds its gradient to the token's row; rows that were not used get
    0.
    """
    assert_same_gradients(
        student.embed,
        reference.embed,
        randn(6, 3, grad=True),
        tensor([[2, 5, 2], [2, 0, 5]]),
    )


@points(0.5)
def test_rows_are_picked_not_multiplied(student):
    """Neither a loop over tokens nor a matrix with V columns: only N·D numbers are needed."""
    table = randn(95, 3)
    assert_close(student.embed(table, tensor([7, 7])), table[7].expand(2, 3))
    few, many = (student.cost("embed", table, randint(0, 95, (n,))) for n in (5, 35))
    assert many.operations <= few.operations + 5, (
        "the number of operations grows with N: is there a loop over tokens?"
    )
    assert many.largest < 35 * 95, (
        "a tensor of N·V elements was made: pick the rows instead"
    )


@points(0.5)
def test_dtype_and_values_are_kept(student, reference):
    """The rows come out as they are, in the table's dtype; the table may be a transposed view."""
    table, ids = randn(3, 6, dtype=torch.float16).T, tensor([[5, 0]])
    assert_close(call_twice(student.embed, table, ids), reference.embed(table, ids))


@points(1)
def test_ids_outside_the_table_are_refused(student):
    """Neither V nor −1 is a token. Indexing with −1 takes the last row without a word."""
    assert_refused(student.embed, randn(6, 3), tensor([0, 13]), sizes=(13, 6))
    assert_refused(student.embed, randn(7, 3), tensor([[0, 7]]), sizes=(7,))
    assert_refused(student.embed, randn(6, 3), tensor([[0, -1]]), sizes=(6,))
