"""The three marks of a suite: what a test is worth, what a question builds on, what it may not lean
on.
"""

from __future__ import annotations

import pytest


def points(worth: float) -> pytest.MarkDecorator:
    """What one test is worth. Every test of a hidden suite has one; 0 is allowed.

    Raises:
        ValueError: negative or not finite.
    """
    if (
        isinstance(worth, bool)
        or not isinstance(worth, (int, float))
        or not 0 <= worth < float("inf")
    ):
        raise ValueError(f"points must be a number of 0 or more, not {worth!r}")
    return pytest.mark.points(float(worth))


def uses(*questions: str) -> pytest.MarkDecorator:
    """Name the questions whose functions this question's answer calls:
    `pytestmark = [uses("softmax")]`.

    Where one of them failed, the tests of this question that failed are run again with a stand-in
    for it, so that one mistake is charged once.
    """
    return pytest.mark.uses(*questions)


def forbid(*names: str) -> pytest.MarkDecorator:
    """Name library functions that this question's answer may not call, by full dotted name.

    `forbid("torch.nn.functional.scaled_dot_product_attention")` stops the call under any other name
    too. It grades style among honest people: a hostile submission can get round it
    (docs/security.md).
    """
    return pytest.mark.forbid(*names)
