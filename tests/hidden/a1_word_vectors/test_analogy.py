"""analogy: a is to b as c is to …"""

from torch import cartesian_prod, linalg

from autograder.suite import (
    assert_equal,
    assert_refused,
    call_twice,
    points,
    randn,
    tensor,
    uses,
)

pytestmark = [uses("nearest")]


@points(1.5)
def test_a_parallelogram_is_completed(student):
    """The target is b − a + c: only the first word is subtracted. Here the fourth corner is in the
    table. Another word gives another target.
    """
    for _ in range(3):
        table = randn(9, 5)
        table[6] = table[1] - table[4] + table[2]
        table[7] = table[4] - table[1] + table[2]  # b and a exchanged
        table[8] = table[1] - table[2] + table[4]  # a and c exchanged
        assert_equal(student.analogy(table, 4, 1, 2), 6)
    corners = cartesian_prod(*[tensor([-1.0, 1.0])] * 3)
    table = corners @ linalg.qr(randn(5, 3)).Q.T  # a cube, all words equally long
    for *words, answer in ((0, 1, 2, 3), (0, 1, 4, 5), (0, 4, 2, 6), (3, 1, 2, 0)):
        assert_equal(student.analogy(table, *words), answer)


@points(1)
def test_the_words_asked_with_are_no_answer(student, reference):
    """A small difference b − a leaves the target beside c, a large one beside b. None of the three
    may be the answer.
    """
    for step in (0.05, 20.0):
        table = randn(8, 3)
        table[5] = table[0] + step * randn(3)
        expected = reference.analogy(table, 0, 5, 3)
        assert_equal(student.analogy(table, 0, 5, 3), expected)
    table = tensor([[4.0, 1.0], [1.0, 5.0], [1.5, 1.0], [-1.0, 3.0], [2.0, -1.0]])
    assert_equal(student.analogy(table, 2, 2, 0), reference.analogy(table, 2, 2, 0))


@points(1)
def test_the_first_word_is_left_out_too(student):
    """The target b − a + c may come out on a itself: a is no answer either."""
    # b − a + c = (5, 5), parallel to a
    table = tensor([[4.0, 4.0], [7.0, 1.0], [2.0, 8.0], [5.0, 7.0], [-4.0, 1.0]])
    assert_equal(student.analogy(table, 0, 1, 2), 3)


@points(1)
def test_the_angle_to_the_target_decides(student):
    """Nearest by cosine: neither the longest word in that direction nor the one at the smallest
    distance.
    """
    # target (3, 4)
    table = tensor(
        [[0.0, 1.0], [3.0, 1.0], [0.0, 4.0], [90.0, 60.0], [0.3, 0.41], [3.0, 3.2]]
    )
    assert_equal(student.analogy(table, 0, 1, 2), 4)


@points(0.5)
def test_the_vectors_are_used_as_they_are(student):
    """The arithmetic is done on the rows as they stand. Normalizing them before changes the
    target.
    """
    table = tensor([[2.0, 0.0], [0.0, 10.0], [6.0, 6.0], [4.0, 16.0], [-0.293, 1.707]])
    assert_equal(student.analogy(table, 0, 1, 2), 3)


@points(0.5)
def test_the_answer_is_a_python_int(student, reference):
    """An id as an int, not a tensor and not a word's vector; asked twice it is the same, and the
    table (a view here) is unchanged. It may be the only word that is left.
    """
    table = randn(5, 7).T
    assert_equal(
        call_twice(student.analogy, table, 6, 0, 3), reference.analogy(table, 6, 0, 3)
    )
    assert_equal(student.analogy(table[:4], 0, 1, 3), 2)
    assert_equal(student.analogy(table[:3], 0, 0, 2), 1)


@points(0.5)
def test_unknown_words_are_refused(student):
    """All three ids must be rows of the table; −1 is none."""
    table = randn(7, 3)
    assert_refused(student.analogy, table, 0, 19, 2, sizes=(19,))
    assert_refused(student.analogy, table, 0, 1, 7, sizes=(7,))
    assert_refused(student.analogy, table, -1, 1, 2)


@points(0.5)
def test_no_word_left_is_refused(student):
    """A table that holds only the three words asked with has no answer."""
    assert_refused(student.analogy, randn(3, 5), 0, 1, 2)
