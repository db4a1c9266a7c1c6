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
    """The student's code called a function that this question forbids."""


class Ban:
    """Raises where a call uses a forbidden function, and remembers that for where the student
    swallows the error.

    Attributes:
        called: the forbidden function that was called last, by the name that the student used.
    """

    def __init__(self, names: list[str]) -> None:
        self.called: str | None = None
        self._by_name = {_plain(name): name for name in names}
        self._replaced: list[tuple[Any, str, Any]] = []
        self._patch(names)

    def watching(self) -> contextlib.AbstractContextManager[Any]:
        """A block in which each call of torch is compared with the forbidden names: that takes as
        long as a small operation.
        """
        if not self._by_name or loaded_torch() is None:
            return contextlib.nullcontext()
        from autograder.worker.calls_of_torch import CallsOfTorch

        return CallsOfTorch(self._check)

    def lift(self) -> None:
        """Allow the functions again."""
        for owner, name, value in reversed(self._replaced):
            setattr(owner, name, value)

    def _check(self, operation: str, is_method: bool) -> None:
        # `torch.softmax`, `F.softmax`, `x.softmax` and `torch.ops.aten.softmax` share their last
        # name
        name = self._by_name.get(_plain(operation))
        if name is not None:
            self.refuse(name, f"Tensor.{operation}" if is_method else name)

    def refuse(self, name: str, called: str = "") -> None:
        """Note the call and raise ForbiddenCall.

        Args:
            name: the forbidden function.
            called: the function as the student called it, where that is another one of its name:
                `Tensor.unfold` is not torch.nn.functional.unfold.
        """
        self.called = called or name
        subject = "it" if called in ("", name) else name
        raise ForbiddenCall(
            f"{called or name} may not be called here: this question is about writing what "
            f"{subject} does"
        )

    def _patch(self, names: list[str]) -> None:
        """Replace what is no torch operation by a function that refuses: modules as
        `torch.nn.LSTM`, other classes as `torch.optim.Adam`, functions as
        `torch.nn.utils.clip_grad_norm_`, and everything outside torch.
        """
        module_class = loaded_torch().nn.Module if loaded_torch() else ()
        for name in names:
            owner_name, _, last = name.rpartition(".")
            owner = _loaded(owner_name)
            value = getattr(owner, last, None)
            if value is None:
                continue
            is_class = isinstance(value, type)
            if is_class and self._by_name.get(_plain(name)) == name:
                del self._by_name[_plain(name)]  # no operation is called like a class
            if is_class and issubclass(value, module_class):
                self._replace(value, "forward", name)
            elif not owner_name.startswith("torch"):
                self._replace(owner, last, name)
            elif is_class:
                self._replace(value, "__init__", name)
            elif isinstance(value, FunctionType):
                function = inspect.unwrap(value)
                if not _is_seen_by_modes(function):
                    self._replace_code(function, name)

    def _replace(self, owner: Any, attribute: str, forbidden: str) -> None:
        self._replaced.append((owner, attribute, getattr(owner, attribute)))
        setattr(owner, attribute, _refusing(self, forbidden))

    def _replace_code(self, function: Any, forbidden: str) -> None:
        """Let the function itself refuse, since the submission may hold it under a name of its
        own.
        """
        refuse = _refusing(self, forbidden)
        for attribute in ("__code__", "__kwdefaults__"):
            self._replaced.append((function, attribute, getattr(function, attribute)))
            setattr(function, attribute, getattr(refuse, attribute))


def _is_seen_by_modes(function: Any) -> bool:
    """Whether a TorchFunctionMode is asked about each call, as of `torch.nn.functional.softmax`."""
    return any(
        name.startswith("has_torch_function") for name in function.__code__.co_names
    )


def _loaded(name: str) -> Any:
    """A module; None where there is none, and for parts of torch that are not loaded yet: some take
    seconds to load, and their functions are seen as torch operations.
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


@lru_cache(maxsize=4096)  # called for every operation
def _plain(name: str) -> str:
    """The last part of a name, without what torch puts around it."""
    name = name.rpartition(".")[2]
    for prefix in ("_", "native_", "special_"):
        name = name.removeprefix(prefix)
    return name.rstrip("_")
