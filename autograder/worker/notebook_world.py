"""What code written in a notebook expects to find around it: IPython's names, Colab's, a display,
`my_course`.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any


class _Quiet:
    """Stands where an object of the notebook's stood: takes every call and gives itself back."""

    def __getattr__(self, name: str) -> _Quiet:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> _Quiet:
        return self


def no_input(prompt: object = "") -> str:
    """There is nobody to answer while grading."""
    raise EOFError("input() has nobody to ask while grading: give the value in the code instead")


def new_namespace() -> dict[str, Any]:
    """The namespace that the cells of a submission share, as module `__main__` of a notebook."""
    module = types.ModuleType("student")
    sys.modules["student"] = module
    names = vars(module)
    names["__name__"] = "student"
    quiet = _Quiet()
    names.update(get_ipython=lambda: quiet, display=quiet, input=no_input)
    return names


def install_colab() -> None:
    """`from google.colab import drive` works on Colab alone: give the import something that does
    nothing.
    """
    if "google" in sys.modules:
        return
    google, colab = types.ModuleType("google"), types.ModuleType("google.colab")
    google.__path__ = []  # a package without files
    colab.__path__ = []
    for name in ("drive", "files", "output", "userdata", "auth", "data_table"):
        setattr(colab, name, _Quiet())
        sys.modules[f"google.colab.{name}"] = types.ModuleType(f"google.colab.{name}")
    google.colab = colab  # type: ignore[attr-defined]
    sys.modules.update({"google": google, "google.colab": colab})


class _MyCourse(MetaPathFinder, Loader):
    """Finds `my_course` and whatever is below it: the student's own code of earlier assignments,
    which is not here.

    A name that is taken from it is the notebook's own of that name: the staff's, since given cells
    run as released.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> ModuleSpec | None:
        ours = fullname.partition(".")[0] == "my_course"
        return ModuleSpec(fullname, self, is_package=True) if ours else None

    def exec_module(self, module: types.ModuleType) -> None:
        module.__getattr__ = self._taken  # type: ignore[method-assign]  # where Python looks for names of a module

    def _taken(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._names:
            return self._names[name]

        def later(*args: Any, **kwargs: Any) -> Any:
            found = self._names.get(name, later)  # the given code may stand below the import
            if found is later:
                raise NameError(
                    f"{name} of my_course is not there when grading, nor in the given code: "
                    "copy it here"
                )
            return found(*args, **kwargs)

        return later


def install_my_course(names: dict[str, Any]) -> None:
    """`from my_course import …` gives what the notebook itself has under that name.

    Args:
        names: the namespace that the cells share.
    """
    sys.meta_path.insert(0, _MyCourse(names))  # in front: no file of that name is looked for


def run_eagerly() -> None:
    """`torch.compile` gives back what it is given: it changes no number, and there is no compiler
    behind the walls.
    """

    def compile_(model: Any = None, **_: Any) -> Any:
        return model if model is not None else lambda function: function

    if torch := sys.modules.get("torch"):
        torch.compile = compile_  # type: ignore[attr-defined]


def fresh_seeds() -> None:
    """The same random numbers in every worker, so that the same submission gives the same
    result.
    """
    import random

    import numpy as np

    random.seed(0)
    np.random.seed(0)
    if torch := sys.modules.get("torch"):
        torch.default_generator.manual_seed(0)
