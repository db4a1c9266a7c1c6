"""How far two answers lie apart, and in which ways an answer departs from the answer key.

Diagnosis compares three answers to one call: the student's, a known mistake's and the answer key's.
Two ways to compute the same wrong answer differ by rounding, two mistakes by more, and how much
rounding is depends on the dtype.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.basics.errors import StudentError, StudentFault
from autograder.sandbox.student import Handle
from autograder.suite.calls import Call, Launch
from autograder.suite.kinds import is_array
from autograder.suite.rounding import array_distance
from autograder.wire.trees import leaves

_SECOND_FAULT_ROUNDINGS = 100.0
_SECOND_FAULT_SHARE = 0.02
"""How far a second, smaller fault moves an answer: up to a hundred roundings, and a fiftieth of the
way to the right answer.
"""
_COSTLIER = 1.5
_COST_SHARE = 0.15
"""The share of a mistake's excess over the answer key that an answer with the mistake costs too."""
_AMBIGUOUS_ERRORS = frozenset(
    {
        "RuntimeError",
        "NameError",
        "UnboundLocalError",
        "AttributeError",
        "KeyError",
        "IndexError",
    }
)
"""Errors that mean a hundred things: two agree only where their messages do. The sizes count: torch
says of nearly every wrong shape that two matrices cannot be multiplied, and of which sizes.
"""
_KERNEL_FAULTS = frozenset({"KernelFault", "MemoryFault"})
_KERNEL_ACCESS = re.compile(
    r"\b(?:reads(?: \w+(?=\[))?|writes)\b(?: memory between| an address)?"
)
"""What a kernel did, in the message of a fault: the hint of a load that is not masked says nothing
to somebody whose store is not, or whose load of another tensor. A tensor that is written has a name
of the student's: the wrapper makes it.
"""
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def distance(first: Any, second: Any) -> float:
    """How far two values lie apart, in roundings of the coarser dtype.

    0 is equal, up to 1 agrees, inf is another shape, structure, kind, or exact value.
    """
    first, second = _comparable(first), _comparable(second)
    if is_array(first) and is_array(second):
        return array_distance(first, second)
    if isinstance(first, SimpleNamespace) and isinstance(second, SimpleNamespace):
        first, second = vars(first), vars(second)
    if isinstance(first, dict) and isinstance(second, dict):
        if first.keys() != second.keys():
            return math.inf
        return max([distance(first[key], second[key]) for key in first], default=0.0)
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        if len(first) != len(second):
            return math.inf
        return max(
            [distance(a, b) for a, b in zip(first, second, strict=True)], default=0.0
        )
    return 0.0 if type(first) is type(second) and first == second else math.inf


def _comparable(value: Any) -> Any:
    """A float as an array, so that there is one way to compare numbers, and an object of the
    worker's as the name of its class.
    """
    return np.array(value) if isinstance(value, float) else _as_stored(value)


def _as_stored(value: Any) -> Any:
    """A value as a stored run has it: of an object of the worker's the name of its class."""
    return value.reference.kind if isinstance(value, Handle) else value


def type_name(value: Any) -> str:
    """The name of an answer's type, the same for a stored answer and one that was given now."""
    return type(_as_stored(value)).__name__


def answers_agree(
    student: Call,
    mistake: Call,
    key: Call | None,
) -> bool:
    """Whether a known mistake answered one call as the student did.

    A difference that is small beside the student's distance from the answer key may be the doing
    of a second fault.

    Args:
        key: the answer key's call; None where the answer key made no such call.
    """
    if student.name != mistake.name:
        return False
    if student.fault is not None or mistake.fault is not None:
        return _faults_agree(student.fault, mistake.fault)
    if _returns_a_number_alone(mistake, student, key):
        return False
    difference = distance(student.result, mistake.result)
    wrongness = math.inf
    if key is not None:
        wrongness = distance(student.result, key.result)
    if wrongness <= 1:
        return difference <= 1
    second_fault = min(_SECOND_FAULT_ROUNDINGS, _SECOND_FAULT_SHARE * wrongness)
    return difference <= max(min(1.0, wrongness / 2), second_fault)


def _returns_a_number_alone(mistake: Call, student: Call, key: Call | None) -> bool:
    """Whether a mistake returns a number in place of a tensor, and the student a tensor."""
    has_tensors = key is not None and is_array(key.result) and is_array(student.result)
    return has_tensors and not is_array(mistake.result)


def gradients_agree(student: Call, mistake: Call) -> bool:
    """Whether the gradients that came back through a call agree."""
    return distance(student.gradients, mistake.gradients) <= 1


def dtypes_agree(first: Call, second: Call) -> bool:
    """Whether the arrays in the answers of two calls have the same dtypes."""
    return _dtypes(first.result) == _dtypes(second.result)


def same_answer(first: Call, second: Call) -> bool | None:
    """Whether one function answered one call alike in two runs: value, dtype, gradients, changed
    arguments, error.

    None where one of the calls has no answer (a hang, a crash, a function that is missing or
    forbidden), or an answer that was too large to be kept.
    """
    for call in (first, second):
        if call.was_dropped or not isinstance(call.fault, StudentError | None):
            return None
    if first.fault is not None or second.fault is not None:
        return _error_text(first.fault) == _error_text(second.fault)
    if first.changed != second.changed or not dtypes_agree(first, second):
        return False
    if distance(first.result, second.result) > 1:
        return False
    # a run that ended early asked for fewer gradients
    pairs = zip(first.gradients, second.gradients, strict=False)
    return all(distance(first, second) <= 1 for first, second in pairs)


def _error_text(fault: StudentFault | None) -> str:
    """An error's text without addresses: an object has another address in each process."""
    if not isinstance(fault, StudentError):
        return ""
    return without_addresses(f"{fault.type_name}: {fault.message}")


def without_addresses(text: str) -> str:
    """A text without addresses in memory, which differ from one run to the next."""
    return _ADDRESS.sub("0x…", text)


def find_departures(call: Call, key: Call) -> frozenset[str]:
    """In which ways a call departs from the answer key's: "fault", "value", "dtype", "changed",
    "gradient", and "cost of …" for each figure of its cost, lines or kernels that is larger.
    """
    if call.fault is not None or key.fault is not None:
        return (
            frozenset()
            if _faults_agree(call.fault, key.fault)
            else frozenset({"fault"})
        )
    ways = set()
    if distance(call.result, key.result) > 1:
        ways.add("value")
    elif not dtypes_agree(call, key):
        ways.add("dtype")
    if set(call.changed) != set(key.changed):
        ways.add("changed")
    if distance(call.gradients, key.gradients) > 1:
        ways.add("gradient")
    if call.cost is not None and key.cost is not None:
        allowed = asdict(key.cost)
        for name, figure in asdict(call.cost).items():
            if figure > _COSTLIER * allowed[name]:
                ways.add(f"cost of {name}")
    if (
        call.lines is not None
        and key.lines is not None
        and call.lines > _COSTLIER * key.lines
    ):
        ways.add("cost of lines")
    if call.launch is not None and key.launch is not None:
        ways |= _launch_departures(call.launch, key.launch)
    return frozenset(ways)


def _launch_departures(launch: Launch, key: Launch) -> set[str]:
    ways = set()
    if launch.computed and not key.computed:
        ways.add("cost of torch")
    if set(launch.unfilled) - set(key.unfilled):
        ways.add("cost of unfilled")
    if not launch.dots and key.dots:
        ways.add("cost of dots")
    if launch.largest > _COSTLIER * key.largest:
        ways.add("cost of largest")
    for name in ("loads", "stores"):
        moved = sum(getattr(launch, name).values())
        key_moved = sum(getattr(key, name).values())
        if _are_apart(moved, key_moved):
            ways.add(f"cost of {name}")
    return ways


def _are_apart(moved: int, key_moved: int) -> bool:
    """Whether clearly more, or fewer, numbers are moved than by the answer key."""
    return moved > _COSTLIER * key_moved or _COSTLIER * moved < key_moved


def tensors_moved_otherwise(call: Call, key: Call) -> frozenset[str]:
    """The tensors of the answer key's kernels of which a call's kernels load, or store, more or
    fewer numbers.
    """
    if call.launch is None or key.launch is None:
        return frozenset()
    names = set()
    for way in ("loads", "stores"):
        moved, key_moved = getattr(call.launch, way), getattr(key.launch, way)
        for name, count in key_moved.items():
            if _are_apart(moved.get(name, 0), count):
                names.add(name)
    return frozenset(names)


def costs_about_as_much(
    student: Call, mistake: Call, key: Call, ways: Collection[str]
) -> bool:
    """Whether a student's call costs about as much as a mistake's, or more, in each figure in which
    the mistake's is too high. Two loops differ by the operations of one turn, and a loop from a
    wide product by far more.

    Args:
        ways: the costs that count ("cost of operations").
    """
    if student.cost is None or mistake.cost is None or key.cost is None:
        return True
    student_figures, key_figures = asdict(student.cost), asdict(key.cost)
    for name, figure in asdict(mistake.cost).items():
        key_figure = key_figures[name]
        if f"cost of {name}" not in ways or figure <= _COSTLIER * key_figure:
            continue
        if student_figures[name] - key_figure < _COST_SHARE * (figure - key_figure):
            return False
    return True


def describe_form(value: Any) -> Any:
    """The form of an answer without its numbers: types, and of tensors and arrays shape and
    dtype.
    """
    kind = type_name(value)
    if is_array(value):
        return kind, tuple(value.shape), str(value.dtype)
    if isinstance(value, (list, tuple)):
        return kind, len(value), describe_form(value[0]) if value else None
    if isinstance(value, dict):
        return "dict", tuple(sorted(map(str, value)))
    return kind


def _dtypes(value: Any) -> list[Any]:
    return [leaf.dtype for leaf in leaves(value) if is_array(leaf)]


def _faults_agree(first: StudentFault | None, second: StudentFault | None) -> bool:
    if not isinstance(first, StudentError) or not isinstance(second, StudentError):
        return type(first) is type(second)
    if first.type_name != second.type_name:
        return False
    if first.type_name in _KERNEL_FAULTS:
        return _kernel_accesses(first.message) == _kernel_accesses(second.message)
    if first.type_name not in _AMBIGUOUS_ERRORS:
        return True
    return without_addresses(first.message) == without_addresses(second.message)


def _kernel_accesses(message: str) -> list[str]:
    """What the message of a kernel's fault says was done; of a message about something else its
    words.
    """
    return _KERNEL_ACCESS.findall(message) or _words(message)


def _words(message: str) -> list[str]:
    return "".join(letter for letter in message if not letter.isdigit()).split()
