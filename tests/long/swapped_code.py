"""Puts the functions of a changed module in the place of those that a process has loaded.

A mutant costs no import then. What stands outside of functions (constants, defaults, fields of
dataclasses) runs at import alone, so `can_swap` is False for a change there.
"""

from __future__ import annotations

import gc
import inspect
from collections import defaultdict
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

Functions = dict[str, list[FunctionType]]
"""Path of a module → the functions that were made of its text."""
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def loaded_functions(folder: Path) -> Functions:
    """All functions that modules below a folder have: methods and decorated ones too."""
    functions: Functions = defaultdict(list)
    for thing in gc.get_objects():
        if type(thing) is FunctionType:
            path = thing.__code__.co_filename
            if path.startswith(f"{folder}/"):
                functions[path].append(thing)
    return functions


def can_swap(original: str, changed: str) -> bool:
    """Whether two texts of a module differ within functions alone."""
    old = compile(original, "module", "exec")
    new = compile(changed, "module", "exec")
    if _outline(old) != _outline(new):
        return False
    old_functions = _outermost_functions(old)
    new_functions = _outermost_functions(new)
    places = {_place(code) for code in old_functions}
    return len(places) == len(old_functions) and all(
        code.co_freevars == changed_code.co_freevars
        for code, changed_code in zip(old_functions, new_functions, strict=True)
    )


def swap_code(functions: list[FunctionType], original: str, changed: str) -> None:
    """Have a module's functions run the changed text; `can_swap` is True for the two."""
    path = functions[0].__code__.co_filename
    old_functions = _outermost_functions(compile(original, path, "exec"))
    new_functions = _outermost_functions(compile(changed, path, "exec"))
    pairs = zip(old_functions, new_functions, strict=True)
    replacements = {_place(old): new for old, new in pairs}
    for function in functions:
        code = replacements.get(_place(function.__code__))
        if code is not None:
            function.__code__ = code


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _runs_at_import(code: CodeType) -> bool:
    """Whether a code object in a module's or class's body is no function: a class, a comprehension."""
    is_class = not code.co_flags & inspect.CO_OPTIMIZED
    return is_class or code.co_name in _COMPREHENSIONS


def _outermost_functions(code: CodeType) -> list[CodeType]:
    """The functions of a module or class, without those that stand in a function."""
    functions = []
    for constant in code.co_consts:
        if not isinstance(constant, CodeType):
            continue
        if _runs_at_import(constant):
            functions += _outermost_functions(constant)
        else:
            functions.append(constant)
    return functions


def _outline(code: CodeType) -> tuple[Any, ...]:
    """What runs at import, without numbers of lines and without the bodies of functions."""
    constants: list[object] = []
    for constant in code.co_consts:
        if not isinstance(constant, CodeType):
            constants.append((type(constant), repr(constant)))
        elif _runs_at_import(constant):
            constants.append(_outline(constant))
        else:
            constants.append(constant.co_qualname)
    return code.co_code, code.co_names, tuple(constants)
