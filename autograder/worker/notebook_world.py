"""The surroundings that code of a notebook expects: IPython's names, Colab's, a display,
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
    """Stands in for an object of Jupyter's or Colab's: every attribute and every call gives the
    object itself.
    """

    def __getattr__(self, name: str) -> _Quiet:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> _Quiet:
        return self


def no_input(prompt: object = "") -> str:
    """Stands in for `input`: there is nobody to answer while grading."""
    raise EOFError(
        "input() has nobody to ask while grading: give the value in the code instead"
    )


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
    """Let `from google.colab import drive`, which works on Colab alone, import objects that do
    nothing.
    """
    if "google" in sys.modules:
        return
    google = types.ModuleType("google")
    colab = types.ModuleType("google.colab")
    google.__path__ = []  # a package without files
    colab.__path__ = []
    for name in ("drive", "files", "output", "userdata", "auth", "data_table"):
        setattr(colab, name, _Quiet())
        module = f"google.colab.{name}"
        sys.modules[module] = types.ModuleType(module)
    google.colab = colab  # type: ignore[attr-defined]
    sys.modules.update({"google": google, "google.colab": colab})


class _MyCourse(MetaPathFinder, Loader):
    """Imports `my_course` and its submodules, the student's code of earlier assignments, without
    that code.

    Names imported from `my_course` are the notebook's own: those of the staff, since given cells
    run as released.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "my_course":
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__getattr__ = self._find_name  # type: ignore[method-assign]  # Python's hook for names of a module

    def _find_name(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._names:
            return self._names[name]

        def defined_later(*args: Any, **kwargs: Any) -> Any:
            # the given code may stand below the import
            function = self._names.get(name, defined_later)
            if function is defined_later:
                raise NameError(
                    f"{name} of my_course is not there when grading, nor in the given code: "
                    "copy it here"
                )
            return function(*args, **kwargs)

        return defined_later


def install_my_course(names: dict[str, Any]) -> None:
    """Let `from my_course import …` give the notebook's own values of these names.

    Args:
        names: the namespace that the cells share.
    """
    sys.meta_path.insert(
        0, _MyCourse(names)
    )  # in front: no file of that name is looked for


def run_eagerly() -> None:
    """Let `torch.compile` return its argument: compiling changes no number, and there is no
    compiler behind the walls.
    """

    def compile_(model: Any = None, **_: Any) -> Any:
        if model is None:  # a decorator with options
            return lambda function: function
        return model

    if torch := sys.modules.get("torch"):
        torch.compile = compile_  # type: ignore[attr-defined]


def fresh_seeds() -> None:
    """Set all seeds: every worker draws equal random numbers, and a submission gives equal results
    each time.
    """
    import random

    import numpy as np

    random.seed(0)
    np.random.seed(0)
    if torch := sys.modules.get("torch"):
        torch.default_generator.manual_seed(0)
