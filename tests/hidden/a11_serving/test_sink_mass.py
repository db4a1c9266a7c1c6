"""sink_mass: the share of the attention on the first tokens."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    call_twice,
    points,
    rand,
    tensor,
)


def _causal(batch, heads, n, dtype=torch.float64):
    weights = (rand(batch, heads, n, n) + 0.1).tril()
    return (weights / weights.sum(dim=-1, keepdim=True)).to(dtype)


@points(1)
def test_the_share_of_each_head(student):
    """Two heads, four tokens, worked by hand for the first token and for the first two."""
    heads = tensor(
        [
            [
                [1.0, 0, 0, 0],
                [0.5, 0.5, 0, 0],
                [0.2, 0.3, 0.5, 0],
                [0.1, 0.2, 0.3, 0.4],
            ],
            [
                [1.0, 0, 0, 0],
                [0.9, 0.1, 0, 0],
                [0.6, 0.2, 0.2, 0],
                [0.9, 0.1, 0.0, 0.0],
            ],
        ]
    )
    answer = call_twice(student.sink_mass, heads[None], 1)
    assert_close(answer, tensor([0.8 / 3, 0.8]), what="the mass on the first token")
    answer = student.sink_mass(heads[None], 2)
    assert_close(answer, tensor([0.4, 0.9]), what="the mass on the first two tokens")
    answer = student.sink_mass(heads[None], 3)
    assert_close(answer, tensor([0.6, 1.0]), what="the mass on the first three tokens")


@points(0.5)
def test_the_mean_is_over_the_batch(student, reference):
    """Three texts, five heads, six tokens; float32 stays float32."""
    for dtype, tolerance in ((torch.float64, 2e-6), (torch.float32, 1e-5)):
        weights = _causal(3, 5, 6, dtype)
        answer = student.sink_mass(weights, 2)
        assert_close(answer, reference.sink_mass(weights, 2), atol=tolerance)
    weights = _causal(5, 2, 4).transpose(0, 1)
    assert_close(student.sink_mass(weights, 3), reference.sink_mass(weights, 3))
    weights = _causal(2, 3, 5)
    assert_close_in_turn(
        student.sink_mass, reference.sink_mass, weights, 2, others=(None, 3)
    )


@points(0.5)
def test_a_number_of_first_tokens_that_leaves_no_query_is_refused(student):
    """0, 4 and 5 of four tokens: ValueError with both numbers."""
    for num_first in (0, 4, 5):
        assert_refused(
            student.sink_mass, _causal(1, 1, 4), num_first, sizes=(num_first, 4)
        )
    assert_close(student.sink_mass(_causal(1, 1, 2) * 0 + 0.5, 1), tensor([0.5]))
