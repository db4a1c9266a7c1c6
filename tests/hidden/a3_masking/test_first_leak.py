"""first_leak: an instrument that finds the first output row that knows the future.

Every test has functions that leak and functions that do not, so that no constant answer earns
anything. They stay in this process: what the student's code is given tells nothing but what they
answer.
"""

import torch

from autograder.suite import arange, assert_equal, call_twice, points, randn, tensor


def running(x):
    return x.cumsum(dim=0)


def attention(x):
    past = torch.ones(len(x), len(x), dtype=torch.bool).tril()
    return torch.softmax((x @ x.T).masked_fill(~past, -torch.inf), dim=-1) @ x


def open_attention(x):
    return torch.softmax(x @ x.T, dim=-1) @ x


def centred(x):
    return x - x.mean(dim=0)


def shifted(x):
    return torch.cat([torch.zeros_like(x[:1]), x[:-1]])


def running_by_subtraction(x):
    """A running sum that takes the rest away from the total: no leak, but every row moves in its
    last digit.
    """
    return x.sum(dim=0) - x.flip(0).cumsum(dim=0).flip(0) + x


def adding(*edits):
    """A pointwise function, and to some of its outputs something is added: (where, what of x)."""

    def function(x):
        y = torch.tanh(x)
        for where, what in edits:
            y[where] += what(x)
        return y

    return function


@points(1.5)
def test_it_tells_open_attention_from_causal_attention(student):
    """Causal attention and a running sum are clean. Open attention and a mean over all tokens leak
    from row 0 on.
    """
    x = randn(5, 6)
    assert_equal(student.first_leak(open_attention, x), 0)
    assert_equal(student.first_leak(attention, x), None)
    assert_equal(student.first_leak(centred, x), 0)
    assert_equal(student.first_leak(running, x), None)
    assert_equal(student.first_leak(shifted, x), None)


@points(1.5)
def test_it_looks_at_near_and_far_tokens(student):
    """A row may peek at its neighbour only, at the last token only, or at one in between."""
    x = randn(5, 6)
    assert_equal(student.first_leak(adding((2, lambda x: x[3])), x), 2)
    assert_equal(student.first_leak(adding((2, lambda x: x[4])), x), 2)
    assert_equal(student.first_leak(adding((1, lambda x: x[3])), x), 1)
    assert_equal(student.first_leak(adding((3, lambda x: x[1])), x), None)


@points(1)
def test_it_reports_the_smallest_output_row(student):
    """Row 2 sees token 3 and row 1 sees token 4. The answer is the row of the output, not the
    token.
    """
    x = randn(5, 6)
    assert_equal(
        student.first_leak(adding((2, lambda x: x[3]), (1, lambda x: x[4])), x), 1
    )
    assert_equal(
        student.first_leak(adding((2, lambda x: x[4]), (3, lambda x: x[4])), x), 2
    )


@points(1)
def test_it_looks_at_the_first_row_and_at_the_last_that_can_leak(student):
    """Row 0 is a row. The last row has no future, the one before it has one token of future."""
    x = randn(5, 6)
    assert_equal(student.first_leak(adding((0, lambda x: x[1])), x), 0)
    assert_equal(student.first_leak(adding((3, lambda x: x[4])), x), 3)
    assert_equal(student.first_leak(adding((4, lambda x: x.sum(dim=0))), x), None)
    assert_equal(student.first_leak(open_attention, randn(1, 6)), None)


@points(1.5)
def test_it_is_not_fooled_by_a_special_change(student):
    """Leaks through differences, squares, sums, and tokens that are zero: change them to something
    unrelated.
    """
    x = randn(5, 6)
    assert_equal(student.first_leak(adding((2, lambda x: x[3] - x[3].mean())), x), 2)
    assert_equal(student.first_leak(adding((1, lambda x: x[4] ** 2)), x), 1)
    assert_equal(student.first_leak(adding((1, lambda x: x[2:].sum(dim=0))), x), 1)
    x[3:] = 0.0
    assert_equal(student.first_leak(adding((2, lambda x: x[3])), x), 2)
    assert_equal(student.first_leak(attention, x), None)


@points(1)
def test_it_sees_leaks_that_have_no_gradient(student):
    """A token that is rounded before it is used leaks as well: the change has to be of ordinary
    size.
    """
    x = tensor(
        [
            [0.3, -1.2, 2.1, 0.4],
            [1.4, 0.7, -0.6, -2.2],
            [-0.8, 1.1, 0.2, 0.9],
            [2.3, -0.4, 1.2, -1.3],
            [0.6] * 4,
        ]
    )
    assert_equal(student.first_leak(adding((1, lambda x: x[3].round())), x), 1)
    assert_equal(student.first_leak(adding((3, lambda x: x[2].round())), x), None)


@points(1)
def test_rounding_is_no_leak_and_a_small_leak_is_one(student):
    """A clean row may move in its last digit. A leak may be a hundredth of the row, and in one
    feature only.
    """
    x = randn(5, 6)
    assert_equal(student.first_leak(running_by_subtraction, x), None)
    assert_equal(student.first_leak(adding(((2, 0), lambda x: 0.02 * x[3, 4])), x), 2)
    for highest in (9.0, -9.0):  # whatever it is replaced by, the row falls, or rises
        x[3, 4] = highest
        assert_equal(
            student.first_leak(adding(((2, 0), lambda x: 0.02 * x[3, 4])), x), 2
        )


@points(1)
def test_outputs_may_be_tiny_or_huge(student):
    """What counts as moved depends on how large the row is: 1e-9 and 1e12, and a row of 1e-9 beside
    others of 1.
    """
    x = randn(5, 6)
    sizes = torch.ones(5, 1).double().index_fill(0, tensor([2]), 1e-9)
    assert_equal(
        student.first_leak(lambda x: sizes * adding((2, lambda x: x[4]))(x), x), 2
    )
    assert_equal(student.first_leak(lambda x: 1e-9 * open_attention(x), x), 0)
    assert_equal(
        student.first_leak(lambda x: 1e12 * running_by_subtraction(x), x), None
    )


@points(0.5)
def test_the_function_gets_the_shape_that_it_was_made_for(student):
    """These mix tokens by a table of fixed size, as a layer with learned positions does; and x
    stays as it is, and may be a view of another tensor.
    """
    table = torch.sin(arange(25)).reshape(5, 5)
    x = randn(6, 5).T
    assert_equal(
        call_twice(student.first_leak, lambda x: table.tril().to(x.dtype) @ x, x), None
    )
    assert_equal(
        call_twice(
            student.first_leak, lambda x: table.triu(-2).tril(1).to(x.dtype) @ x, x
        ),
        0,
    )
