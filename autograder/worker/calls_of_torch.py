"""Every call of torch while a call of the student's runs. Imported where torch is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.overrides import TorchFunctionMode


class CallsOfTorch(TorchFunctionMode):
    """Inside, `meet` is told the name of each function and method of torch before it runs, and may
    raise.
    """

    def __init__(self, meet: Callable[[str], None]) -> None:
        super().__init__()
        self._meet = meet

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._meet(str(getattr(func, "__name__", "")))
        return func(*args, **(kwargs or {}))
