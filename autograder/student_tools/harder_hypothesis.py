"""Makes calls smaller with hypothesis, where it is installed."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

from autograder.student_tools.harder_draws import DrawnCalls
from autograder.suite.contract_draws import CallRejected

_MOST_EXAMPLES = 60


class _FailsAlike(Exception):  # tells hypothesis that a call fails
    """A smaller call fails in the same way."""


class _TimeIsUp(KeyboardInterrupt):
    """Ends hypothesis's search, which lets no other exception through."""


def shrink_with_hypothesis(
    drawn: DrawnCalls,
    seed: int,
    fails: Callable[[DrawnCalls], bool],
    is_over: Callable[[], bool],
) -> tuple[DrawnCalls, list[int]] | None:
    """Smaller calls that fail alike, found by hypothesis; None where it is not installed, or finds
    none in time.
    """
    if importlib.util.find_spec("hypothesis") is None:
        return None
    hypothesis: Any = importlib.import_module("hypothesis")
    whole = importlib.import_module("hypothesis.strategies")
    smallest: list[tuple[DrawnCalls, list[int]]] = []

    def search(data: Any) -> None:
        if is_over():
            raise _TimeIsUp
        made: list[int] = []

        def draw(low: int, high: int) -> int:
            made.append(data.draw(whole.integers(low, high)))
            return made[-1]

        try:
            smaller = drawn.allowed.draw(draw)
        except CallRejected:
            hypothesis.reject()
        if fails(smaller):
            smallest.append((smaller, made))
            raise _FailsAlike

    settings = hypothesis.settings(
        database=None,
        deadline=None,
        max_examples=_MOST_EXAMPLES,
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
    )
    run = hypothesis.seed(seed)(settings(hypothesis.given(whole.data())(search)))
    with contextlib.suppress(
        _FailsAlike,
        _TimeIsUp,
        hypothesis.errors.HypothesisException,
    ):
        run()
    return smallest[-1] if smallest else None
