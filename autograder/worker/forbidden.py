"""Library functions that a question may not lean on, stopped by whatever name they are called."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
from functools import lru_cache
from types import FunctionType
from typing import Any

from autograder.wire.libraries import loaded_torch


class ForbiddenCall(Exception):
    """The student's code called what this question forbids."""


class Ban:
    """Raises on forbidden functions while a call runs, and remembers it where the student swallows
    the error.
    """

    def __init__(self, names: list[str]) -> None:
        self.called: str | None = None
        self._by_name = {_plain(name): name for name in names}
        self._replaced: list[tuple[Any, str, Any]] = []
        self._patch(names)

    def watching(self) -> contextlib.AbstractContextManager[Any]:
        """Looks inside at each call of torch, where one is forbidden: that takes as long as a small
        operation.
        """
        if not self._by_name or loaded_torch() is None:
            return contextlib.nullcontext()
        from autograder.worker.calls_of_torch import CallsOfTorch

        return CallsOfTorch(self._meet)

    def lift(self) -> None:
        """Put back what was replaced."""
        for owner, name, value in reversed(self._replaced):
            setattr(owner, name, value)

    def _meet(self, name: str) -> None:
        # `torch.softmax`, `F.softmax`, `x.softmax` and `torch.ops.aten.softmax` share their last
        # name
        name = _plain(name)
        if name in self._by_name:
            self.refuse(self._by_name[name])

    def refuse(self, name: str) -> None:
        """Note the call and raise ForbiddenCall."""
        self.called = name
        raise ForbiddenCall(
            f"this question is about writing what {name} does: it may not be called here"
        )

    def _patch(self, names: list[str]) -> None:
        """What is no torch operation is replaced by what refuses: modules as `torch.nn.LSTM`, other
        classes as `torch.optim.Adam`, functions as `torch.nn.utils.clip_grad_norm_`, and everything
        outside torch.
        """
        module = loaded_torch().nn.Module if loaded_torch() else ()
        for name in names:
            owner_name, _, last = name.rpartition(".")
            owner = _loaded(owner_name)
            found = getattr(owner, last, None)
            if isinstance(found, type) and self._by_name.get(_plain(name)) == name:
                del self._by_name[_plain(name)]  # no operation is called like a class
            if isinstance(found, type) and issubclass(found, module):
                self._replace(found, "forward", name)
            elif found is not None and not owner_name.startswith("torch"):
                self._replace(owner, last, name)
            elif isinstance(found, type):
                self._replace(found, "__init__", name)
            elif isinstance(found, FunctionType) and not _is_seen_by_modes(inspect.unwrap(found)):
                self._replace_code(inspect.unwrap(found), name)

    def _replace(self, owner: Any, attribute: str, forbidden: str) -> None:
        self._replaced.append((owner, attribute, getattr(owner, attribute)))
        setattr(owner, attribute, _refusing(self, forbidden))

    def _replace_code(self, function: FunctionType, forbidden: str) -> None:
        """Let the function itself refuse, since the submission may hold it under a name of its
        own.
        """
        refuse = _refusing(self, forbidden)
        for attribute in ("__code__", "__kwdefaults__"):
            self._replaced.append((function, attribute, getattr(function, attribute)))
            setattr(function, attribute, getattr(refuse, attribute))


def _is_seen_by_modes(function: FunctionType) -> bool:
    """Whether a TorchFunctionMode is asked about each call, as of `torch.nn.functional.softmax`."""
    return any(name.startswith("has_torch_function") for name in function.__code__.co_names)


def _loaded(name: str) -> Any:
    """A module, or None where there is none, or it is a part of torch that is not loaded yet: some
    take seconds, and what their functions do is seen as torch operations.
    """
    if name.startswith("torch"):
        return sys.modules.get(name)
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _refusing(ban: Ban, name: str) -> Any:
    # no closure: code can be moved
    def refuse(*args: Any, _ban: Ban = ban, _name: str = name, **kwargs: Any) -> Any:
        _ban.refuse(_name)

    return refuse


@lru_cache(maxsize=4096)  # it is asked for every operation
def _plain(name: str) -> str:
    """The last part of a name, without what torch puts around it."""
    name = name.rpartition(".")[2]
    for prefix in ("_", "native_", "special_"):
        name = name.removeprefix(prefix)
    return name.rstrip("_")
