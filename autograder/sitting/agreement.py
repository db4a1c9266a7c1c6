"""How far two answers lie apart, and in which ways one departs from the answer key.

Diagnosis compares three answers to one call: the student's, a known mistake's and the answer key's.
Two ways to compute the same wrong answer differ by rounding, two mistakes by more, and how much
rounding is depends on the dtype.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import astuple
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.basics.errors import StudentError, StudentFault
from autograder.sandbox.student import Handle
from autograder.suite.calls import Call, Launch
from autograder.suite.kinds import is_array, numbers_in
from autograder.wire.values import dtype_name

ROUNDING = {"float64": 1e-6, "float32": 1e-4, "float16": 1e-2, "bfloat16": 1e-2}
"""What counts as rounding, relative to the largest element of a row; other numbers agree exactly or
not at all, in whatever dtypes: a mask of ones and zeros with one of yes and no.
"""
_FAR = 100.0
_SHARE = 0.02
"""A second, smaller fault moves an answer: up to a hundred roundings, and a fiftieth of the way to
the right answer.
"""
_COSTLIER = 1.5
_KINDS_WITH_WORDS = frozenset(
    {"RuntimeError", "NameError", "UnboundLocalError", "AttributeError", "KeyError"}
)
"""Errors that mean a hundred things: two agree only where their messages do, numbers aside."""
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def apart(left: Any, right: Any) -> float:
    """How far two values lie apart, in roundings of the coarser dtype.

    0 is equal, up to 1 agrees, inf is another shape, structure, kind, or exact value.
    """
    left, right = _plain(left), _plain(right)
    if is_array(left) and is_array(right):
        return _arrays_apart(left, right)
    if isinstance(left, SimpleNamespace) and isinstance(right, SimpleNamespace):
        left, right = vars(left), vars(right)
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() != right.keys():
            return math.inf
        return max((apart(left[key], right[key]) for key in left), default=0.0)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        if len(left) != len(right):
            return math.inf
        return max((apart(a, b) for a, b in zip(left, right, strict=True)), default=0.0)
    return 0.0 if type(left) is type(right) and left == right else math.inf


def _plain(value: Any) -> Any:
    """Floats as arrays, so that there is one way to compare numbers; objects of the worker's by
    their class.
    """
    if isinstance(value, Handle):
        return value.name
    return np.array(value) if isinstance(value, float) else value


def _arrays_apart(left: Any, right: Any) -> float:
    if left.shape != right.shape:
        return math.inf
    dtypes = dtype_name(left.dtype), dtype_name(right.dtype)
    rounding = max(ROUNDING.get(dtype, 0.0) for dtype in dtypes)
    mine, theirs = numbers_in(left), numbers_in(right)
    if "c" in (mine.dtype.kind, theirs.dtype.kind):
        return 0.0 if dtypes[0] == dtypes[1] and np.array_equal(mine, theirs) else math.inf
    if not rounding:
        return 0.0 if np.array_equal(mine.astype(np.int64), theirs.astype(np.int64)) else math.inf
    mine, theirs = (numbers.astype(np.float64, copy=False) for numbers in (mine, theirs))
    finite = np.isfinite(mine)
    if not np.array_equal(finite, np.isfinite(theirs)):
        return math.inf
    if not np.array_equal(np.nan_to_num(mine[~finite]), np.nan_to_num(theirs[~finite])):
        return math.inf
    mine, theirs = np.where(finite, mine, 0.0), np.where(finite, theirs, 0.0)
    if not mine.size:
        return 0.0
    size = np.maximum(abs(mine), abs(theirs))
    row = size.max(-1, keepdims=True) if size.ndim else size
    with np.errstate(over="ignore"):
        off = abs(mine - theirs) / np.maximum(row, np.finfo(np.float32).tiny)
    return float(off.max()) / rounding


def agree(student: Call, known: Call, key: Call | None) -> bool:
    """Whether a known mistake answered one call as the student did.

    A difference that is small beside the student's distance from the answer key (`key`; None where
    that made no such call) may be a second fault's.
    """
    if student.name != known.name:
        return False
    if student.fault is not None or known.fault is not None:
        return _same_fault(student.fault, known.fault)
    here = apart(student.result, known.result)
    wrong = apart(student.result, key.result) if key is not None and key.fault is None else math.inf
    if wrong <= 1:
        return here <= 1
    return here <= min(1.0, wrong / 2) or here <= min(_FAR, _SHARE * wrong)


def agree_in_gradients(student: Call, known: Call) -> bool:
    """Whether what came back through a call agrees as well."""
    return apart(student.gradients, known.gradients) <= 1


def same_answer(first: Call, second: Call) -> bool | None:
    """Whether one function answered one call alike in two runs: value, dtype, gradients, changed
    arguments, error.

    None where one of them is no answer (a hang, a crash, a function that is missing or forbidden)
    or was let go.
    """
    faults = [call.fault for call in (first, second)]
    if any(fault is not None and not isinstance(fault, StudentError) for fault in faults):
        return None
    if first.let_go or second.let_go:
        return None
    if first.fault is not None or second.fault is not None:
        return _error_text(first.fault) == _error_text(second.fault)
    if apart(first.result, second.result) > 1 or _dtypes(first.result) != _dtypes(second.result):
        return False
    if first.changed != second.changed:
        return False
    # a run that ended early asked for fewer gradients
    return all(
        apart(mine, theirs) <= 1
        for mine, theirs in zip(first.gradients, second.gradients, strict=False)
    )


def _error_text(fault: StudentFault | None) -> str:
    """An error as two runs have it in common: an object's address is another in each process."""
    return (
        _ADDRESS.sub("0x…", f"{fault.type_name}: {fault.message}")
        if isinstance(fault, StudentError)
        else ""
    )


def departures(call: Call, key: Call) -> frozenset[str]:
    """In which ways a call departs from the answer key's: "fault", "value", "dtype", "changed",
    "gradient", and "cost of …" for each figure of its cost or of its kernels that is larger.
    """
    if call.fault is not None or key.fault is not None:
        return frozenset() if _same_fault(call.fault, key.fault) else frozenset({"fault"})
    found = set()
    if apart(call.result, key.result) > 1:
        found.add("value")
    elif _dtypes(call.result) != _dtypes(key.result):
        found.add("dtype")
    if set(call.changed) != set(key.changed):
        found.add("changed")
    if apart(call.gradients, key.gradients) > 1:
        found.add("gradient")
    return frozenset(found | _dearer(call, key))


def _dearer(call: Call, key: Call) -> set[str]:
    found = set()
    if call.cost is not None and key.cost is not None:
        names = type(key.cost).__dataclass_fields__
        for name, mine, theirs in zip(names, astuple(call.cost), astuple(key.cost), strict=True):
            if mine > _COSTLIER * theirs:
                found.add(f"cost of {name}")
    if call.launch is not None and key.launch is not None:
        found |= _other_launch(call.launch, key.launch)
    return found


def _other_launch(mine: Launch, theirs: Launch) -> set[str]:
    found = {"cost of torch"} if mine.computed and not theirs.computed else set()
    if set(mine.unfilled) - set(theirs.unfilled):
        found.add("cost of unfilled")
    if not mine.dots and theirs.dots:
        found.add("cost of dots")
    for name in ("loads", "stores"):
        moved, wanted = sum(getattr(mine, name).values()), sum(getattr(theirs, name).values())
        if moved > _COSTLIER * wanted or _COSTLIER * moved < wanted:
            found.add(f"cost of {name}")
    if mine.largest > _COSTLIER * theirs.largest:
        found.add("cost of largest")
    return found


def form(value: Any) -> Any:
    """What kind of value an answer is, whatever its numbers: types, and of tensors and arrays shape
    and dtype.
    """
    if is_array(value):
        return type(value).__name__, tuple(value.shape), str(value.dtype)
    if isinstance(value, (list, tuple)):
        return type(value).__name__, len(value), form(value[0]) if value else None
    if isinstance(value, dict):
        return "dict", tuple(sorted(map(str, value)))
    return type(value).__name__


def _dtypes(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [dtype for part in value.values() for dtype in _dtypes(part)]
    if isinstance(value, (list, tuple)):
        return [dtype for part in value for dtype in _dtypes(part)]
    return [value.dtype] if is_array(value) else []


def _same_fault(left: StudentFault | None, right: StudentFault | None) -> bool:
    if not isinstance(left, StudentError) or not isinstance(right, StudentError):
        return type(left) is type(right)
    if left.type_name != right.type_name:
        return False
    return left.type_name not in _KINDS_WITH_WORDS or _words(left.message) == _words(right.message)


def _words(message: str) -> Sequence[str]:
    return "".join(letter for letter in message if not letter.isdigit()).split()
