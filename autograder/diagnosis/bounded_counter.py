"""Counts the torch operations of a play, and ends one that takes too many."""

from __future__ import annotations

from typing import Any

from autograder.wire.cost_counter import CostCounter


class PlayTooLong(Exception):  # no error: the script is not tried
    """The answer key's play takes more operations than all candidates may take together."""


class BoundedCounter(CostCounter):
    """Ends a play that takes too many operations: a training run takes seconds.

    Args:
        most_operations: after so many the next one raises PlayTooLong.
    """

    def __init__(self, most_operations: int) -> None:
        super().__init__()
        self._most_operations = most_operations

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        if self.operations > self._most_operations:
            raise PlayTooLong
        return super().__torch_dispatch__(func, types, args, kwargs)
