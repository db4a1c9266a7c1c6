"""What code written in a notebook expects to find around it: IPython's names, Colab's, a display."""

from __future__ import annotations

import sys
import types
from typing import Any

import torch


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
    """`from google.colab import drive` works on Colab alone: give the import something that does nothing."""
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


def run_eagerly() -> None:
    """`torch.compile` gives back what it is given: it changes no number, and there is no compiler behind the walls."""

    def compile_(model: Any = None, **_: Any) -> Any:
        return model if model is not None else lambda function: function

    torch.compile = compile_


def fresh_seeds() -> None:
    """The same random numbers in every worker, so that the same submission gives the same result."""
    import random

    import numpy as np

    random.seed(0)
    np.random.seed(0)
    torch.default_generator.manual_seed(0)
