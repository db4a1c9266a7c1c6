"""Refuses forbidden functions in visible checks: `build` copies this source into the release where
the suite forbids functions.
"""

import contextlib
import functools
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode


class _Refusal(TorchFunctionMode):
    """A mode in which these functions and modules of torch may not be called, under whatever
    name.
    """

    def __init__(self, names):  # type: ignore[no-untyped-def]  # students read this: no annotations
        super().__init__()
        self.names = names

    def refuse(self, name):  # type: ignore[no-untyped-def]  # students read this: no annotations
        if name in self.names:
            raise AssertionError(
                f"Not allowed here: {name}. Write out what it does: that is the question."
            )

    def replaced(self, path):  # type: ignore[no-untyped-def]  # as above
        """A context in which torch.<path> refuses: not every function of torch asks a mode."""
        return mock.patch(f"torch.{path}", side_effect=lambda *args, **kwargs: self.refuse(path))

    def __torch_function__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]  # as above
        name = getattr(function, "__name__", "").strip("_")
        self.refuse(name.removeprefix("native_").removeprefix("special_"))
        return function(*args, **(kwargs or {}))


def refusing(function, *names):  # type: ignore[no-untyped-def]  # students read this: no annotations
    """Wrap a function, so that a call of what is not allowed in this question fails."""

    @functools.wraps(function)
    def refuses(*args, **kwargs):  # type: ignore[no-untyped-def]  # students read this: no annotations
        refusal = _Refusal(names)
        hook = torch.nn.modules.module.register_module_forward_pre_hook(
            lambda module, inputs: refusal.refuse(type(module).__name__)
        )
        with refusal, contextlib.ExitStack() as replacements:
            for path in filter(lambda name: "." in name, names):
                replacements.enter_context(refusal.replaced(path))
            try:
                return function(*args, **kwargs)
            finally:
                hook.remove()

    return refuses
