"""Refuses forbidden functions while a visible check calls an answer: as grading does, but on the
student's own machine.

It imports no torch: a notebook without torch has no forbidden function of torch's.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any


class NotAllowed(AssertionError):
    """An answer called a function that its question rules out."""


@contextlib.contextmanager
def refusing(names: Sequence[str]) -> Iterator[None]:
    """Inside, torch's functions and modules of these names may not be called, by whatever path."""
    torch: Any = sys.modules.get("torch")
    if not names or torch is None:
        yield
        return

    def refuse(name: str) -> None:
        if name in names:
            raise NotAllowed(
                f"Not allowed here: {name}. Write out what it does: that is the question."
            )

    mode = importlib.import_module("torch.overrides").TorchFunctionMode
    mock = importlib.import_module(
        "unittest.mock"
    )  # takes longer to import than all of this file

    class Refusal(mode):  # type: ignore[misc, valid-type]  # torch may be missing
        """Looks at the name of each function of torch that is called."""

        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            name = getattr(function, "__name__", "").strip("_")
            refuse(name.removeprefix("native_").removeprefix("special_"))
            return function(*args, **(kwargs or {}))

    hook = torch.nn.modules.module.register_module_forward_pre_hook(
        lambda module, inputs: refuse(type(module).__name__)
    )
    with contextlib.ExitStack() as stack:
        stack.callback(hook.remove)
        stack.enter_context(Refusal())
        for path in names:
            if "." in path:  # not every function of torch asks a mode
                refusal = mock.Mock(
                    side_effect=lambda *args, name=path, **kwargs: refuse(name)
                )
                stack.enter_context(mock.patch(f"torch.{path}", refusal))
        yield
