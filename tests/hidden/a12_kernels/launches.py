"""Claims about launches that several questions share."""

import torch

from autograder.suite import assert_close


def assert_answer(answer, expected, launch, atol=2e-6, rtol=2e-6, what=""):
    """The answer is right, and kernels have computed it."""
    assert launch.loads, "No kernel loads anything: the work is not done in a kernel."
    assert not launch.computed, (
        f"The wrapper computes with torch ({', '.join(launch.computed)}). It may allocate, rearrange "
        "and launch; arithmetic belongs in the kernel."
    )
    if (
        launch.unfilled
        and isinstance(answer, torch.Tensor)
        and bool(answer.isnan().any())
    ):
        raise AssertionError(
            f"There is nan in the answer, and masked lanes of {', '.join(launch.unfilled)} were "
            "loaded without other=. On a GPU they would hold anything; here they are nan."
        )
    assert_close(answer, expected, atol=atol, rtol=rtol, what=what)


def assert_precise(answer, expected, atol, what=""):
    """Right to what float32 can; a product in tf32 is named as such."""
    if isinstance(answer, torch.Tensor) and answer.shape == expected.shape:
        error = float((answer.double() - expected.double()).abs().max())
        scale = float(expected.abs().max())
        assert not atol < error < 5e-3 * scale, (
            f"{what} is right to about {error:.0e} only. tl.dot rounds float32 to 10 bits of "
            'mantissa (tf32) unless it is told not to: input_precision="ieee".'
        )
    assert_close(answer, expected, atol=atol, what=what)


def rounded(x, parts=8):
    """x in whole multiples of 1 / parts: tf32 has these numbers, too."""
    return ((x * parts).round() / parts).float()
