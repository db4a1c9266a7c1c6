"""Measures the wall time of a submission, stage by stage."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Stopwatch:
    """Wall time by stage. Every second counts for one stage only, so that stages add up.

    run         forks, walls, and the submission's cells
    tests       the suite's tests, without the time of `run` in between
    diagnosis   known mistakes, their forks and tests
    carry       failed questions once more with stand-ins, their forks and tests
    """

    seconds: dict[str, float] = field(default_factory=dict)
    _open: list[tuple[str, bool]] = field(default_factory=list)
    _since: float = 0.0

    @contextlib.contextmanager
    def stage(self, name: str, *, whole: bool = False) -> Iterator[None]:
        """Time a stage. With `whole`, stages inside this one count for this one."""
        if self._open and self._open[-1][1]:
            yield
            return
        self._count()
        self._open.append((name, whole))
        try:
            yield
        finally:
            self._count()
            self._open.pop()

    def _count(self) -> None:
        now = time.monotonic()
        if self._open:
            name, _ = self._open[-1]
            self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now
