"""Draws examples of hypothesis strategies: the same ones for the same seed, on every machine.

hypothesis would add numbers that it finds in the source of loaded modules, which differ from one
installation to another, and keep them in a folder `.hypothesis`. Its backend here leaves them out.
"""

from __future__ import annotations

import contextlib
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.internal.conjecture.providers import (
    AVAILABLE_PROVIDERS,
    HypothesisProvider,
)
from hypothesis.strategies import SearchStrategy

Example = TypeVar("Example")
_BACKEND = "autograder"


class SeededProvider(HypothesisProvider):
    """hypothesis's own draws, without constants from anybody's source."""

    def _maybe_draw_constant(self, *_: Any, **__: Any) -> None:
        return None


AVAILABLE_PROVIDERS[_BACKEND] = f"{__name__}.{SeededProvider.__name__}"


def draw_examples(
    strategy: SearchStrategy[Example],
    count: int,
    number: int,
) -> list[Example]:
    """At most `count` examples, all different to hypothesis; none where every draw is rejected.

    Args:
        number: the seed.
    """
    examples: list[Example] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        backend=_BACKEND,
    )
    @given(strategy)
    def collect(example: Example) -> None:
        examples.append(example)

    with contextlib.suppress(Unsatisfiable):
        collect()
    return examples
