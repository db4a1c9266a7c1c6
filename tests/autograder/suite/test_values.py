"""Inputs for tests of a suite."""

from __future__ import annotations

import torch

from autograder.suite import moved


def test_moved_tensors_are_moved_by_one_draw_in_their_order() -> None:
    torch.manual_seed(0)
    draw = torch.randn(4, dtype=torch.float64)
    torch.manual_seed(0)
    row, corner = moved([torch.tensor([1.0, 2.0, 3.0]), torch.tensor([[5.0]])], 0.5)
    assert torch.equal(row, torch.tensor([1.0, 2.0, 3.0]).double() + 0.5 * draw[:3])
    assert torch.equal(
        corner, torch.tensor([[5.0]]).double() + 0.5 * draw[3:].reshape(1, 1)
    )
