"""is_permutation_equivariant: does a function commute with one shuffle? Every test has a function of each kind."""

from autograder.suite import assert_equal, assert_refused, call_twice, points, randn, tensor

SHUFFLE = [3, 0, 4, 6, 1, 2, 5]  # 0 → 3 → 6 → 5 → 2 → 4 → 1 → 0, one cycle of seven
ATTENTION = "    s = x @ x.T\n    return torch.softmax(s, dim=-1) @ x\n"
CENTRED = "    return x - x.mean(dim=0)\n"
RUNNING = "    return x.cumsum(dim=0)\n"
NUMBERED = "    return x + torch.arange(x.shape[0], dtype=x.dtype).unsqueeze(1)\n"


def verdict(student, body, x, perm):
    f = student.define("def f(x):\n" + body, "f")
    return student.is_permutation_equivariant(f, x, tensor(perm))


@points(1.5)
def test_it_tells_attention_from_a_running_sum(student):
    """Without a mask or positions attention commutes with a shuffle; a running sum and numbered tokens do not."""
    x = randn(7, 5)
    assert_equal(verdict(student, ATTENTION, x, SHUFFLE), True)
    assert_equal(verdict(student, RUNNING, x, SHUFFLE), False)
    assert_equal(verdict(student, NUMBERED, x, SHUFFLE), False)


@points(1)
def test_ignoring_the_order_is_not_equivariance(student):
    """Sorted tokens come out the same whatever the shuffle: F(σX) = F(X), and that is another property."""
    x = randn(7, 5)
    assert_equal(verdict(student, "    return x.sort(dim=0).values\n", x, SHUFFLE), False)
    assert_equal(verdict(student, "    return torch.tanh(x) * x\n", x, SHUFFLE), True)


@points(1)
def test_it_is_about_this_shuffle(student):
    """A function may commute with one shuffle and not with another: use the one that you are given."""
    x = randn(7, 5)
    roll, rotation = "    return x.roll(1, dims=0)\n", [2, 3, 4, 5, 6, 0, 1]
    first = "    y = 2 * x\n    y[0] = -y[0]\n    return y\n"
    assert_equal(verdict(student, roll, x, rotation), True)
    assert_equal(verdict(student, roll, x, SHUFFLE), False)
    assert_equal(verdict(student, first, x, [0, 3, 1, 2, 6, 4, 5]), True)
    assert_equal(verdict(student, first, x, SHUFFLE), False)
    assert_equal(verdict(student, RUNNING, x, list(range(7))), True)


@points(1)
def test_tokens_are_shuffled_and_not_features(student):
    """Five tokens of five features: rows are tokens. One function treats features unequally, one treats tokens so."""
    x, perm = randn(5, 5), [3, 0, 4, 2, 1]
    assert_equal(verdict(student, "    return x.cumsum(dim=1)\n", x, perm), True)
    assert_equal(verdict(student, RUNNING, x, perm), False)


@points(1)
def test_rounding_is_not_a_difference(student):
    """A sum of shuffled numbers differs in its last digits; a real difference is at least a thousandth of it."""
    x, perm = randn(23, 5), [*range(1, 23, 2), *range(0, 23, 2)]
    assert_equal(verdict(student, CENTRED, 1e3 * x, perm), True)
    assert_equal(verdict(student, ATTENTION, x, perm), True)
    assert_equal(verdict(student, "    y = x.clone()\n    y[3] = y[3] * 1.01\n    return y\n", x, perm), False)


@points(1)
def test_outputs_may_be_tiny_or_huge(student):
    """What counts as different depends on how large the outputs are: here 1e-9 and 1e12."""
    x = randn(7, 5)
    assert_equal(verdict(student, "    return 1e-9 * x.cumsum(dim=0)\n", x, SHUFFLE), False)
    assert_equal(verdict(student, "    return 1e12 * (x - x.mean(dim=0))\n", x, SHUFFLE), True)


@points(0.5)
def test_arguments_stay_as_they_are_and_must_fit(student):
    """Shuffle a copy, return a Python bool, and refuse a permutation of the wrong length with both sizes."""
    f = student.define("def f(x):\n" + ATTENTION, "f")
    assert_equal(call_twice(student.is_permutation_equivariant, f, randn(7, 5), tensor(SHUFFLE)), True)
    assert_refused(student.is_permutation_equivariant, f, randn(7, 5), tensor([2, 0, 1]), sizes=(7, 3))
