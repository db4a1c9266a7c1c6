"""A claim of harder inputs: a gradient tells how the answer changes where the arguments do."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from autograder.student_tools.harder_draws import float_arguments
from autograder.student_tools.harder_trial import (
    ClaimBroken,
    HarderTrial,
    replacing,
)
from autograder.suite.script_steps import play_step, weighted_sum
from autograder.suite.scripts import Script

_STEP = 1e-3
_GRADIENT_SHARE = 5e-3


def gradient_is_the_slope(trial: HarderTrial) -> None:
    """The gradient is the slope: it tells how the answer changes where the arguments do."""
    if not (trial.drawn.allowed.gradients and trial.drawn.is_tame):
        return
    step = trial.the_call()
    if step is None or trial.dtype not in (torch.float64, torch.float32):
        return
    script = trial.script.map_arguments(trial.widen)
    inputs = float_arguments(script)
    generator = torch.Generator().manual_seed(1)
    ways = [
        torch.randn(
            x.shape,
            generator=generator,
            dtype=torch.float64,
        )
        for x in inputs
    ]
    answer, _ = play_step(
        script.steps[0],
        [],
        trial.find_function,
        with_gradients=True,
    )
    if all(gradient is None for gradient in answer.gradients):
        raise ClaimBroken("No gradient arrives at the arguments.")
    slope = sum(
        float((gradient * way).sum())
        for gradient, way in zip(
            answer.gradients,
            ways,
            strict=True,
        )
        if gradient is not None
    )
    measured = [
        _measure_slope(
            trial,
            script,
            inputs,
            ways,
            step,
        )
        for step in (_STEP, _STEP / 2)
    ]
    scale = max(
        1.0,
        abs(measured[1]),
        abs(slope),
    )
    is_smooth = abs(measured[0] - measured[1]) < _GRADIENT_SHARE * scale / 5
    if is_smooth and not abs(slope - measured[1]) <= _GRADIENT_SHARE * scale:
        raise ClaimBroken(
            "The arguments are moved a little in one direction: by the gradient the answer "
            f"should change at the rate {slope:.4g}, and it changes at the rate {measured[1]:.4g}."
        )


def _measure_slope(
    trial: HarderTrial,
    script: Script,
    inputs: Sequence[Tensor],
    ways: Sequence[Tensor],
    step: float,
) -> float:
    """The difference quotient of the weighted sum of all floats, along a direction."""
    totals = []
    for sign in (1, -1):
        moved = {
            id(x): x + sign * step * way for x, way in zip(inputs, ways, strict=True)
        }
        answer = trial.play(script.map_arguments(replacing(moved)))
        total = weighted_sum(answer[0])
        totals.append(0.0 if total is None else float(total))
    return (totals[0] - totals[1]) / (2 * step)
