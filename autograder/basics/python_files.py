"""Runs Python of a course: a file that lies beside a suite and in no package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def run_python_file(
    path: Path, name: str, *, is_registered: bool = False
) -> ModuleType:
    """The module of a file; raises what the file raises.

    Args:
        name: the module's name.
        is_registered: whether `sys.modules` gets the module: dataclasses with annotations as text
            look theirs up there.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if is_registered:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
