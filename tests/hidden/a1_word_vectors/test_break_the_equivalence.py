"""break_the_equivalence: a large dot product and a small angle are two things.

The answer is evidence: any vectors with the properties are right, on every table.
"""

import torch

from autograder.suite import assert_refused, call_twice, points, randn, zeros


def evidence(student, table, word):
    """The two vectors, after a look at their kind, with the word's vector."""
    answer = student.break_the_equivalence(table, word)
    assert isinstance(answer, (tuple, list)), "return two vectors, (loud, quiet)"
    assert len(answer) == 2, "return two vectors, (loud, quiet)"
    for name, vector in zip(("loud", "quiet"), answer, strict=True):
        assert isinstance(vector, torch.Tensor), f"{name} should be a tensor"
        assert vector.shape == table[word].shape, (
            f"{name} has shape {list(vector.shape)}, not a row's"
        )
        assert bool(vector.isfinite().all()), f"{name} has entries that are not finite"
    return (*(vector.to(table.dtype) for vector in answer), table[word])


def cosine(x, v):
    return (x @ v / (x.norm() * v.norm())).item()


def assert_loud(student, table, word):
    loud, _, v = evidence(student, table, word)
    product, largest = (loud @ v).item(), (table @ v).max().item()
    assert product > largest, (
        f"loud · v is {product:.4g}, and a row of the table reaches {largest:.4g}"
    )
    assert cosine(loud, v) <= 0.1, (
        f"the cosine of loud and v is {cosine(loud, v):.4g}; it should be at most 0.1"
    )


def assert_quiet(student, table, word):
    _, quiet, v = evidence(student, table, word)
    products = table @ v
    product, smallest = (quiet @ v).item(), products[products > 0].min().item()
    assert product > 0, f"quiet · v is {product:.4g}; it should be positive"
    assert product < smallest, (
        f"quiet · v is {product:.4g}, and a row of the table has {smallest:.4g} already"
    )
    assert cosine(quiet, v) >= 0.999, (
        f"the cosine of quiet and v is {cosine(quiet, v):.4g}, not 0.999 or more"
    )


@points(1.5)
def test_loud_has_the_largest_product_and_a_wide_angle(student):
    """Change the direction first, then the length: a length never changes a cosine."""
    for vocab_size, d in ((6, 5), (9, 3), (3, 7)):
        assert_loud(student, randn(vocab_size, d), 2)


@points(1)
def test_quiet_has_the_smallest_product_and_no_angle(student):
    """Which vectors have cosine 1 with v? Among them, one with a dot product as small as you
    like.
    """
    for vocab_size, d in ((6, 5), (9, 3), (3, 7)):
        assert_quiet(student, randn(vocab_size, d), 1)


@points(1)
def test_large_and_small_tables_work(student):
    """Vectors of size 1000 or 0.001, in two dimensions too: a fixed length or a fixed factor is not
    enough.
    """
    for scale in (1e3, 1e-3):
        table = scale * randn(7, 2)
        table[4] = 40 * table[0]  # a row with a large product, whatever the draw
        # and one with a product that is small beside the word's with itself
        table[5] = 1e-5 * table[0]
        assert_loud(student, table, 0)
        assert_quiet(student, table, 0)


@points(1)
def test_every_word_has_a_counterexample(student):
    """Words that lie on an axis, or have equal entries, or all entries negative: the direction
    across must not vanish.
    """
    table = randn(6, 3)
    table[0] = torch.tensor([2.0, 0.0, 0.0])
    table[1] = torch.tensor([0.0, 0.0, -3.0])
    table[2] = torch.tensor([1.5, 1.5, 1.5])
    table[3] = torch.tensor([0.0, 4.0, 0.0])
    table[4] = -table[5].abs()
    for word in range(6):
        assert_loud(student, table, word)
        assert_quiet(student, table, word)


@points(0.5)
def test_the_table_is_left_alone(student):
    """The evidence is two new vectors; the table stays as it was."""
    call_twice(student.break_the_equivalence, randn(5, 6).T, 3)
    assert_loud(student, randn(5, 6).T, 3)


@points(0.5)
def test_words_without_a_direction_are_refused(student):
    """In one dimension nothing is nearly perpendicular, and the zero vector has no angle:
    ValueError.
    """
    assert_refused(student.break_the_equivalence, randn(5, 1), 2)
    table = randn(5, 3)
    table[2] = zeros(3)
    assert_refused(student.break_the_equivalence, table, 2)
