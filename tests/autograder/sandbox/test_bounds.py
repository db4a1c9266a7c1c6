"""Bounds on what the trusted side spends: they hold inside torch's backward pass too."""

from __future__ import annotations

import pytest
import torch

from autograder.sandbox.bounds import OutOfTime, interruptible_gradients, time_bound

STEPS = 20_000
"""Many times a hundredth of a second on the way back."""


def test_a_long_way_back_ends_when_its_time_is_up() -> None:
    x = torch.ones(3, requires_grad=True)
    with interruptible_gradients():
        y = x
        for _ in range(STEPS):
            y = torch.tanh(y)
    with pytest.raises(OutOfTime), time_bound(0.01):
        y.sum().backward()


def test_gradients_are_those_without() -> None:
    x = torch.linspace(-1, 1, 5, requires_grad=True)
    with interruptible_gradients():
        y = torch.tanh(x) * x
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(gradient, torch.autograd.grad((torch.tanh(x) * x).sum(), x)[0])
