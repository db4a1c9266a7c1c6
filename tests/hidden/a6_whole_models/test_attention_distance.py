"""attention_distance: the expected Euclidean distance in the grid, averaged over the patches that
look.
"""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    call_twice,
    eye,
    points,
    randn,
    tensor,
    zeros,
)


def _weights(*shape):
    return torch.softmax(2 * randn(*shape), dim=-1)


def _everybody_looks_at(patch, n):
    weights = zeros(n, n)
    weights[:, patch] = 1.0
    return weights


@points(1.5)
def test_heads_with_weights_of_all_sizes(student, reference):
    """Two images, three heads, a grid of 3 x 5: the distance of each pair of patches, by the weight
    between them.
    """
    weights = _weights(3, 2, 15, 15).transpose(0, 1)
    assert_close(
        call_twice(student.attention_distance, weights, 5),
        reference.attention_distance(weights, 5),
    )
    assert_close_in_turn(
        student.attention_distance,
        reference.attention_distance,
        weights,
        5,
        others=(None, 3),
    )


@points(0.5)
def test_one_row_and_one_column_are_lines(student):
    """Four patches in a line look at the first: 0, 1, 2 and 3 away. Where each looks at itself, it
    is 0.
    """
    for columns in (4, 1):
        answer = student.attention_distance(_everybody_looks_at(0, 4), columns)
        assert_close(answer, tensor(1.5), what=f"the distance with {columns} columns")
        assert_close(
            student.attention_distance(eye(4), columns),
            tensor(0.0),
            what="the distance to oneself",
        )


@points(0.5)
def test_the_shortest_way_goes_across(student):
    """On a grid of 2 x 2 one corner is √2 away from the opposite one. Only the two on that diagonal
    look away here.
    """
    weights = eye(4)[[3, 1, 2, 0]]
    assert_close(student.attention_distance(weights, 2), tensor(2**0.5 / 2))


@points(0.5)
def test_rows_and_columns_are_not_exchanged(student):
    """Six patches look at the first one, on a grid of two rows of three, then of three rows of
    two.
    """
    weights = _everybody_looks_at(0, 6)
    wide = (0 + 1 + 2 + 1 + 2**0.5 + 5**0.5) / 6
    assert_close(
        student.attention_distance(weights, 3),
        tensor(wide),
        what="the distance on 2 x 3",
    )
    weights = _everybody_looks_at(2, 6)
    tall = (1 + 2**0.5 + 0 + 1 + 1 + 2**0.5) / 6
    assert_close(
        student.attention_distance(weights, 2),
        tensor(tall),
        what="the distance on 3 x 2, to the patch in the middle",
    )


@points(0.5)
def test_any_number_of_leading_axes_and_float32(student, reference):
    """One head alone [N, N] gives a number; [layers, B, H, N, N] gives [layers, B, H]. One patch
    looks at itself. float16 in, float16 out, and bfloat16 too.
    """
    for shape in ((6, 6), (2, 1, 3, 6, 6)):
        weights = _weights(*shape).float()
        assert_close(
            student.attention_distance(weights, 3),
            reference.attention_distance(weights, 3),
            atol=1e-5,
        )
    assert_close(
        student.attention_distance(torch.ones(2, 1, 1, dtype=torch.float64), 1),
        zeros(2),
    )
    for dtype in (torch.float16, torch.bfloat16):
        far = student.attention_distance(eye(4)[[3, 1, 2, 0]].to(dtype), 2)
        assert_close(far, tensor(2**0.5 / 2).to(dtype), atol=8e-3)


@points(0.5)
def test_weights_of_another_grid_are_refused(student):
    """Six patches do not fill rows of four, or of none; and five queries of six keys are not one
    grid.
    """
    for shape, columns, sizes in (
        ((2, 6, 6), 4, (6, 4)),
        ((6, 6), 0, (6, 0)),
        ((6, 6), -3, (6, 3)),
        ((5, 6), 3, (5, 6)),
    ):
        assert_refused(
            student.attention_distance, _weights(*shape), columns, sizes=sizes
        )
    assert_refused(student.attention_distance, _weights(6, 3), 3, sizes=(6, 3))
    for shape in ((1, 6), (6, 1)):
        assert_refused(student.attention_distance, _weights(*shape), 1, sizes=shape)
