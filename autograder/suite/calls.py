"""The log of a test's calls of a student's code, with their results.

Comparisons name the last call in their messages; diagnosis tells mistakes apart by the results.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.basics.errors import StudentFault
from autograder.wire.libraries import dtype_name, is_tensor, loaded_torch


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one call, counted by the worker, not timed.

    Attributes:
        operations: torch operations executed, forward only.
        flops: floating point operations of matrix products and convolutions; a multiply-add is 2.
        largest: elements of the largest tensor that any operation made.
        peak: elements of all tensors made by the call that were alive at once, at most.
        moved: elements written by all operations (views and reshapes that copy nothing write none).
    """

    operations: int
    flops: int
    largest: int
    peak: int
    moved: int


@dataclass(frozen=True, slots=True)
class Launch:
    """The work of the Triton kernels of one call, counted by the worker's strict interpreter.

    Attributes:
        kernels, programs: launches, and programs of all launches.
        dots: calls of `tl.dot`.
        largest: elements of the largest tile that was loaded, stored or the result of a dot.
        loads, stores: elements moved, by tensor. A tensor has the name of the function's parameter
            (a copy has its original's name), or of the kernel's parameter without `_ptr`.
        unfilled: tensors whose masked lanes were loaded without `other`.
        computed: torch operations outside the kernels that compute. Allocating, padding and copying
            do not compute.
    """

    kernels: int
    programs: int
    dots: int
    largest: int
    loads: dict[str, int]
    stores: dict[str, int]
    unfilled: tuple[str, ...]
    computed: tuple[str, ...]


@dataclass(slots=True)
class Call:
    """A call with either a result or a fault.

    Attributes:
        name: "softmax", or "KVCache.append" for a method of a handle.
        arguments, keywords: as the suite passed them.
        changed: the arguments that the call changed in place ("x", "params['w1']").
        of_suite: whether the called code is the suite's (`student.define`), not the student's.
        is_attribute: whether an attribute was read, and nothing called.
        refused: whether the call ended in a ValueError that the test had asked for.
        launch: the work of the call's kernels, where the test asked for it.
        cost: the cost of the call, where the test asked for it.
        lines: lines of the notebook's Python that the call ran, where the test asked for them.
        gradients: gradients of the call's inputs, one list for each backward pass.
        was_dropped: whether the result was too large to be stored.
        inputs: the fingerprint of the arguments, where a run was stored without them.
    """

    name: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    result: Any = None
    fault: StudentFault | None = None
    changed: tuple[str, ...] = ()
    of_suite: bool = False
    is_attribute: bool = False
    refused: bool = False
    launch: Launch | None = None
    cost: Cost | None = None
    lines: int | None = None
    gradients: list[Any] = field(default_factory=list)
    was_dropped: bool = False
    inputs: str = ""


@dataclass(slots=True)
class CallLog:
    """The calls of one test, in order.

    Attributes:
        signatures: names of the answer key, for names of parameters and to tell classes from
            functions.
        used_submission: whether the test has used the submission yet: a call, or the text of a
            cell.
        about_arguments: whether the test's claim is that arguments stay unchanged.
        distances: distances between compared values, as multiples of the allowed distance.
        tolerance: the smallest allowed distance below the default one; None where there is none.
    """

    signatures: Mapping[str, Any] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    used_submission: bool = False
    about_arguments: bool = False
    distances: list[float] = field(default_factory=list)
    tolerance: float | None = None

    def note_tolerance(self, allowed: float | None) -> None:
        """Note a comparison that allowed less than the default, or None for any other."""
        if self.tolerance is None:
            self.tolerance = allowed
        elif allowed is not None:
            self.tolerance = min(self.tolerance, allowed)

    def note(self, call: Call) -> None:
        """Add a call that is about to be made."""
        self.calls.append(call)
        self.used_submission = True

    def parameter_names(self, function: str) -> list[str]:
        """Names of the parameters of a function, or of a method as "Class.method".

        Empty where the answer key has no such function.
        """
        signature = self.signature(function)
        return list(signature.parameters) if signature else []

    def signature(self, function: str) -> inspect.Signature | None:
        """The signature of a function, or of a method as "Class.method" without `self`; None where
        the answer key has no such function.
        """
        name, *attributes = function.split(".")
        target: Any = self.signatures.get(name)
        for attribute in attributes:
            target = getattr(target, attribute, None)
        try:
            return _signature(target)
        except (TypeError, ValueError):
            return None

    def describe(self, call: Call) -> str:
        """The call as a person would write it, tensors as shapes: `softmax(z[4, 7], dim=-1)`."""
        if call.is_attribute:
            return call.name
        names = self.parameter_names(call.name)
        arguments = [
            *zip_longest(names[: len(call.arguments)], call.arguments),
            *call.keywords.items(),
        ]
        parts = [_show(value, name or "") for name, value in arguments]
        return f"{call.name}({', '.join(parts)})"


def size_in_bytes(value: Any) -> int:
    """About how many bytes a value takes: the numbers in its tensors, and a hundred for each
    part.
    """
    total = 0
    queue = [value]
    while queue:
        part = queue.pop()
        total += 100
        if is_tensor(part) or isinstance(part, np.ndarray):
            total += part.nbytes
        elif isinstance(part, str):
            total += len(part)
        elif isinstance(part, (list, tuple, set)):
            queue += part
        elif isinstance(part, dict):
            queue += [*part.keys(), *part.values()]
        elif isinstance(part, SimpleNamespace):
            queue += vars(part).values()
    return total


@lru_cache(maxsize=1024)
def _signature(function: Any) -> inspect.Signature:
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].name == "self":
        return signature.replace(parameters=parameters[1:])
    return signature


_current: ContextVar[CallLog | None] = ContextVar("call_log", default=None)


def start_log(signatures: Mapping[str, Any]) -> CallLog:
    """Begin the log of one test, which is current until the next log begins."""
    log = CallLog(signatures)
    _current.set(log)
    return log


def current_log() -> CallLog:
    """The log of the running test (an empty one outside a test)."""
    return _current.get() or CallLog()


def last_call() -> Call | None:
    """The most recent call of the running test."""
    calls = current_log().calls
    return calls[-1] if calls else None


def _last_student_call() -> Call | None:
    """The most recent call of the student's code; of the suite's code where there is no other."""
    calls = [call for call in current_log().calls if not call.of_suite]
    return calls[-1] if calls else last_call()


def describe_last() -> str:
    """The most recent call of the student's code in words, or "the call" where there was none."""
    call = _last_student_call()
    return f"`{current_log().describe(call)}`" if call else "the call"


def describe_call_of(value: Any) -> str:
    """In words, the call that a compared value comes from: the most recent one of the student's
    code, or the one before where that read a number of an object and the value is another.
    """
    call = _last_student_call()
    if call is None or not call.is_attribute or not isinstance(call.result, _SCALARS):
        return describe_last()
    number = value.item() if getattr(value, "ndim", None) == 0 else value
    parts = number if isinstance(number, (list, tuple)) else [number]
    if any(isinstance(part, _SCALARS) and part == call.result for part in parts):
        return describe_last()
    calls = [call for call in current_log().calls if not call.of_suite]
    answering = [call for call in calls if not call.is_attribute] or calls
    return f"`{current_log().describe(answering[-1])}`"


def none_may_be_right() -> bool:
    """Whether None may be a right answer to the most recent call.

    The answer key's docstring says so in its section "Returns:".
    """
    call = _last_student_call()
    if call is None:
        return False
    documented = inspect.getdoc(current_log().signatures.get(call.name)) or ""
    return "None" in documented.partition("Returns:")[2]


_USUAL_DTYPES = ("float64", "int64", "bool")
"""Dtypes that a description leaves out."""
_SCALARS = (bool, int, float, str, type(None))


def _show(value: Any, name: str) -> str:
    """An argument as a person would write it, of at most 60 characters besides its name."""
    equals = f"{name}=" if name else ""
    if is_tensor(value) or isinstance(value, np.ndarray):
        if value.ndim == 0:
            return f"{equals}{value.item()!r}"
        dtype = dtype_name(value.dtype)
        suffix = "" if dtype in _USUAL_DTYPES else f" {dtype}"
        return f"{name or 'tensor'}{list(value.shape)}{suffix}"
    text = _describe(value)
    if len(text) > 60:
        text = f"{text[:57]}…"
    return equals + text


def _describe(value: Any) -> str:
    """An argument that is no tensor, as a person would write it."""
    torch = loaded_torch()
    is_dtype = torch is not None and isinstance(value, torch.dtype)
    if is_dtype or isinstance(value, _SCALARS):
        return repr(value)
    if isinstance(value, SimpleNamespace):  # a configuration
        value = vars(value)
    if isinstance(value, dict):
        entries = [
            f"{key!r}: {_show(part, '')}" for key, part in list(value.items())[:5]
        ]
        text = ", ".join(entries)
        if len(text) <= 58 and len(value) <= 4:
            return f"{{{text}}}"
        return f"{{{len(value)} entries}}"
    if isinstance(value, (list, tuple)):
        if len(value) <= 4 and all(isinstance(part, _SCALARS) for part in value):
            return repr(value)
        return f"{type(value).__name__} of {len(value)}"
    if callable(value):
        return getattr(value, "name", "function")
    return type(value).__name__
