"""is_permutation_equivariant: does a function commute with one shuffle? Every test has a function
of each kind.
"""

import torch

from autograder.suite import (
    arange,
    assert_equal,
    assert_refused,
    call_twice,
    points,
    randn,
    tensor,
)

SHUFFLE = [3, 0, 4, 6, 1, 2, 5]  # 0 → 3 → 6 → 5 → 2 → 4 → 1 → 0, one cycle of seven


def attention(x):
    return torch.softmax(x @ x.T, dim=-1) @ x


def centred(x):
    return x - x.mean(dim=0)


def running(x):
    return x.cumsum(dim=0)


def numbered(x):
    return x + arange(len(x)).unsqueeze(1)


def first_negated(x):
    return torch.cat([-2 * x[:1], 2 * x[1:]])


def one_number_moved(x):
    """A single one, by two thousandths of the largest."""
    return x + 0.002 * x.abs().max() * torch.zeros_like(x).index_put(
        (tensor([2]), tensor([1])), tensor(1.0)
    )


def third_grown(x):
    """Row 3 by a hundredth."""
    return torch.cat([x[:3], 1.01 * x[3:4], x[4:]])


def verdict(student, f, x, perm):
    return student.is_permutation_equivariant(f, x, tensor(perm))


@points(1.5)
def test_it_tells_attention_from_a_running_sum(student):
    """Without a mask or positions attention commutes with a shuffle; a running sum and numbered
    tokens do not.
    """
    x = randn(7, 5)
    assert_equal(verdict(student, attention, x, SHUFFLE), True)
    assert_equal(verdict(student, running, x, SHUFFLE), False)
    assert_equal(verdict(student, numbered, x, SHUFFLE), False)


@points(1)
def test_ignoring_the_order_is_not_equivariance(student):
    """Sorted tokens come out the same whatever the shuffle: F(σX) = F(X), and that is another
    property.
    """
    x = randn(7, 5)
    assert_equal(verdict(student, lambda x: x.sort(dim=0).values, x, SHUFFLE), False)
    assert_equal(verdict(student, lambda x: torch.tanh(x) * x, x, SHUFFLE), True)


@points(1)
def test_it_is_about_this_shuffle(student):
    """A function may commute with one shuffle and not with another: use the one that you are
    given.
    """
    x = randn(7, 5)
    rotation = [2, 3, 4, 5, 6, 0, 1]
    assert_equal(verdict(student, lambda x: x.roll(1, dims=0), x, rotation), True)
    assert_equal(verdict(student, lambda x: x.roll(1, dims=0), x, SHUFFLE), False)
    assert_equal(verdict(student, first_negated, x, [0, 3, 1, 2, 6, 4, 5]), True)
    assert_equal(verdict(student, first_negated, x, SHUFFLE), False)
    assert_equal(verdict(student, running, x, list(range(7))), True)


@points(1)
def test_tokens_are_shuffled_and_not_features(student):
    """Five tokens of five features: rows are tokens. One function treats features unequally, one
    treats tokens so.
    """
    x, perm = randn(5, 5), [3, 0, 4, 2, 1]
    assert_equal(verdict(student, lambda x: x.cumsum(dim=1), x, perm), True)
    assert_equal(verdict(student, running, x, perm), False)


@points(1)
def test_rounding_is_not_a_difference(student):
    """A sum of shuffled numbers differs in its last digits, whatever else is 0; a real difference
    is at least a thousandth of the largest number.
    """
    x, perm = randn(23, 5), [*range(1, 23, 2), *range(0, 23, 2)]
    x[:, 2] = 0.0
    assert_equal(verdict(student, centred, 1e3 * x, perm), True)
    assert_equal(verdict(student, attention, x, perm), True)
    assert_equal(verdict(student, third_grown, x, perm), False)
    assert_equal(
        verdict(student, one_number_moved, randn(97, 5), list(range(96, -1, -1))), False
    )


@points(1)
def test_outputs_may_have_any_size_and_sign(student):
    """What counts as different depends on how large the outputs are: here 1e-9, 1e12, all negative,
    and 0. And where they differ in one direction only, they differ.
    """
    x = randn(7, 5)
    assert_equal(verdict(student, lambda x: -1 - x.abs(), x, SHUFFLE), True)
    assert_equal(verdict(student, lambda x: 0 * x, x, SHUFFLE), True)
    x[[0, 1, 3], 0] = tensor([0.0, 1.0, 2.0])
    assert_equal(
        verdict(student, lambda x: x - (x[0, 0] - x[1, 0]).relu(), x, SHUFFLE), False
    )
    assert_equal(verdict(student, lambda x: 1e-9 * running(x), x, SHUFFLE), False)
    assert_equal(verdict(student, lambda x: 1e12 * centred(x), x, SHUFFLE), True)


@points(0.5)
def test_arguments_stay_as_they_are_and_must_fit(student):
    """Shuffle a copy (x may be a view), return a bool, and refuse a permutation of the wrong length
    with both sizes.
    """
    x = randn(5, 7).T
    assert_equal(
        call_twice(student.is_permutation_equivariant, attention, x, tensor(SHUFFLE)),
        True,
    )
    assert_refused(
        student.is_permutation_equivariant,
        attention,
        x,
        tensor([*SHUFFLE, 0, 1]),
        sizes=(7, 9),
    )
    assert_refused(
        student.is_permutation_equivariant,
        attention,
        randn(7, 5),
        tensor([2, 0, 1]),
        sizes=(7, 3),
    )
    for perm in ([3], [[0, 1, 2, 3, 4, 5, 6]] * 2):
        assert_refused(
            student.is_permutation_equivariant, attention, randn(7, 5), tensor(perm)
        )
