"""Watches every call of torch while a call of the student's runs. Imported where torch is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.overrides import TorchFunctionMode


class CallsOfTorch(TorchFunctionMode):
    """Passes the name of each function and method of torch to `note_call`, before it runs, and
    whether it is a tensor's method; `note_call` may raise.
    """

    def __init__(self, note_call: Callable[[str, bool], None]) -> None:
        super().__init__()
        self._note_call = note_call

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        is_method = hasattr(func, "__objclass__")
        self._note_call(str(getattr(func, "__name__", "")), is_method)
        return func(*args, **(kwargs or {}))
