"""Library functions that a question may not lean on, stopped by whatever name they are called."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class ForbiddenCall(Exception):
    """The student's code called what this question forbids."""


class Ban(TorchFunctionMode):
    """Raises on forbidden torch functions while a call runs, and remembers it where the student swallows the error."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.called: str | None = None
        self._by_name = {_plain(name.rsplit(".", 1)[-1]): name for name in names}
        self._replaced: list[tuple[Any, str, Any]] = []
        self._patch_classes(names)

    def lift(self) -> None:
        """Put back what was replaced."""
        for owner, name, value in reversed(self._replaced):
            setattr(owner, name, value)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # `torch.softmax`, `F.softmax`, `x.softmax` and `torch.ops.aten.softmax` share their last name
        name = _plain(str(getattr(func, "__name__", "")).rsplit(".", 1)[-1])
        if name in self._by_name:
            self.refuse(self._by_name[name])
        return func(*args, **(kwargs or {}))

    def refuse(self, name: str) -> None:
        """Note the call and raise ForbiddenCall."""
        self.called = name
        raise ForbiddenCall(f"this question is about writing what {name} does: it may not be called here")

    def _patch_classes(self, names: list[str]) -> None:
        """Modules such as `torch.nn.LSTM` and functions outside torch are replaced by ones that refuse."""
        for name in names:
            owner_name, _, last = name.rpartition(".")
            owner = _loaded(owner_name)
            found = getattr(owner, last, None)
            if isinstance(found, type) and issubclass(found, torch.nn.Module):
                self._replace(found, "forward", name)
            elif found is not None and not owner_name.startswith("torch"):
                self._replace(owner, last, name)

    def _replace(self, owner: Any, attribute: str, forbidden: str) -> None:
        self._replaced.append((owner, attribute, getattr(owner, attribute)))
        setattr(owner, attribute, _refusing(self, forbidden))


def _loaded(name: str) -> Any:
    """A module, or None where there is none, or it is a part of torch that is not loaded yet: some take seconds, and
    what their functions do is seen as torch operations."""
    if name.startswith("torch"):
        return sys.modules.get(name)
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _refusing(ban: Ban, name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        ban.refuse(name)

    return refuse


def _plain(name: str) -> str:
    for prefix in ("_", "native_", "special_"):
        name = name.removeprefix(prefix)
    return name.rstrip("_")
