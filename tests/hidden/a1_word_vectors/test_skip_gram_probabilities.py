"""skip_gram_probabilities: the softmax of the dot products with every word."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    assert_same_gradients,
    call_twice,
    points,
    randn,
    tensor,
    uses,
    zeros,
)

pytestmark = [uses("softmax")]


@points(2)
def test_the_whole_vocabulary_shares_one(student, reference):
    """One probability a word, from its dot product with the center word; all of them share 1."""
    for vocab_size, d in ((7, 5), (3, 6), (5, 5), (1, 3)):
        assert_close_in_turn(
            student.skip_gram_probabilities,
            reference.skip_gram_probabilities,
            randn(d),
            randn(vocab_size, d),
        )


@points(1)
def test_the_score_is_the_plain_dot_product(student, reference):
    """Longer vectors make a sharper distribution. No cosine, no division by a root."""
    center, table = 3 * randn(5), randn(6, 5) * 2
    assert_close(
        student.skip_gram_probabilities(center, table),
        reference.skip_gram_probabilities(center, table),
    )
    center = center / 10
    assert_close(
        student.skip_gram_probabilities(center, table),
        reference.skip_gram_probabilities(center, table),
    )


@points(1)
def test_long_vectors_do_not_overflow(student, reference):
    """Vectors of length 30 have dot products near 900, whose exponential is inf."""
    center, table = randn(5), randn(7, 5)
    center = 30 * center / center.norm()
    table = 30 * table / table.norm(dim=1, keepdim=True)
    table[2], table[4] = (
        1.001 * center,
        center,
    )  # two scores near 900, close enough that both count
    center, table = center.float(), table.float()
    expected = reference.skip_gram_probabilities(center, table)
    assert_close(student.skip_gram_probabilities(center, table), expected, atol=1e-3)


@points(1)
def test_gradients_flow_to_center_and_table(student, reference):
    """Both the center word and all context vectors learn, the ones of absent words too."""
    center, table = randn(3, grad=True), randn(5, 3, grad=True)
    assert_same_gradients(
        student.skip_gram_probabilities,
        reference.skip_gram_probabilities,
        center,
        table,
    )


@points(0.5)
def test_dtype_in_is_dtype_out(student, reference):
    """float32 stays float32, float16 stays float16, with scores of 2000 and with 70000 words too."""
    for dtype, atol in ((torch.float32, 1e-5), (torch.float16, 5e-3)):
        center, table = randn(5, dtype=dtype), randn(7, 5, dtype=dtype)
        expected = reference.skip_gram_probabilities(center, table)
        assert_close(
            student.skip_gram_probabilities(center, table), expected, atol=atol
        )
    table = tensor([[2000.0, 40.0], [1999.0, 40.0], [0.0, 40.0], [0.0, 40.0]]).half()
    for center in (tensor([1.0, 0.0]).half(), tensor([-1.0, -1.0]).half()):
        expected = reference.skip_gram_probabilities(center, table)
        assert_close(
            student.skip_gram_probabilities(center, table), expected, atol=1e-3
        )
    many = student.skip_gram_probabilities(zeros(1).half(), zeros(70_000, 1).half())
    assert_close(
        many[:2], torch.full((2,), 1 / 70_000).half(), what="the shares of 70000 words"
    )


@points(0.5)
def test_the_vectors_are_left_alone(student, reference):
    """Called twice, the same answer; the table may be a transposed view."""
    center, table = randn(3), randn(3, 7).T
    expected = reference.skip_gram_probabilities(center, table)
    assert_close(call_twice(student.skip_gram_probabilities, center, table), expected)


@points(0.5)
def test_rows_of_another_length_are_refused(student):
    """A table whose rows are not as long as the center vector: ValueError with both lengths."""
    assert_refused(student.skip_gram_probabilities, randn(3), randn(7, 5), sizes=(3, 5))
    assert_refused(student.skip_gram_probabilities, randn(5), randn(7, 3), sizes=(3, 5))
