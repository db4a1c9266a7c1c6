"""The record of what a test asked of a student's code, and what came back.

Comparisons read it to say what was called; diagnosis reads it to tell one mistake from another.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.basics.errors import StudentFault
from autograder.wire.libraries import is_tensor, loaded_torch
from autograder.wire.values import dtype_name


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call cost, counted by the worker, not timed.

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
    """What the Triton kernels of one call did, counted by the worker's strict interpreter.

    Attributes:
        kernels, programs: how many were launched, and how many programs they had together.
        dots: calls of `tl.dot`.
        largest: elements of the largest tile that was loaded, stored or came out of a dot.
        loads, stores: elements moved, by tensor: the function's parameter (a copy of it counts as
            it), or the kernel's parameter without `_ptr`.
        unfilled: tensors of which masked lanes were loaded without `other`.
        computed: torch operations outside the kernels that compute (allocating, padding and copying
            do not).
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
    """One call: what was asked, and either a result or a fault.

    Attributes:
        name: "softmax", or "KVCache.append" for a method of a handle.
        arguments, keywords: as the suite gave them.
        changed: where the call changed its arguments in place ("x", "params['w1']").
        of_suite: whether it called code of the suite's own (`student.define`), and not the
            student's.
        is_attribute: whether an attribute was read, and nothing called.
        refused: whether the test asked for the ValueError that it ended in.
        launch: what its kernels did, where that was asked for.
        cost: what it cost, where that was asked for.
        gradients: what came back through it, one list a backward pass.
        let_go: whether the result was too large to be kept.
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
    gradients: list[Any] = field(default_factory=list)
    let_go: bool = False


@dataclass(slots=True)
class CallLog:
    """The calls of one test, in order.

    Attributes:
        signatures: names of the answer key, for the arguments' names and to tell classes from
            functions.
        asked: whether anything of the submission was asked for yet: a call, or the text of a cell.
        about_arguments: whether the test is about arguments that stay as they are.
        distances: those between values that were compared, each as a multiple of what was allowed.
        tolerance: the least that a comparison allowed, of those that allowed less than the default;
            None where none did.
    """

    signatures: Mapping[str, Any] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    asked: bool = False
    about_arguments: bool = False
    distances: list[float] = field(default_factory=list)
    tolerance: float | None = None

    def note_tolerance(self, allowed: float | None) -> None:
        """Add a comparison that allowed less than the default, or None for another."""
        if allowed is not None:
            self.tolerance = allowed if self.tolerance is None else min(self.tolerance, allowed)

    def note(self, call: Call) -> None:
        """Add a call that is about to be made."""
        self.calls.append(call)
        self.asked = True

    def parameter_names(self, function: str) -> list[str]:
        """Names of the parameters of a function, or of a method as "Class.method"; none where they
        are not known.
        """
        known: Any = self.signatures
        for part in function.split("."):
            known = known.get(part) if isinstance(known, Mapping) else getattr(known, part, None)
        try:
            return _parameters(known)
        except (TypeError, ValueError):
            return []

    def describe(self, call: Call) -> str:
        """The call as a person would write it, shapes instead of values:
        `softmax(z[4, 7], dim=-1)`.
        """
        if call.is_attribute:
            return call.name
        names = self.parameter_names(call.name)
        parts = []
        for position, value in enumerate(call.arguments):
            name = names[position] if position < len(names) else ""
            parts.append(_show(value, name))
        parts += [_show(value, name) for name, value in call.keywords.items()]
        return f"{call.name}({', '.join(parts)})"


def weight(value: Any) -> int:
    """About how many bytes a value takes: the numbers in its tensors, and a hundred for each
    part.
    """
    total, waiting = 0, [value]
    while waiting:
        part = waiting.pop()
        total += 100
        if is_tensor(part):
            total += part.numel() * part.element_size()
        elif isinstance(part, np.ndarray):
            total += part.nbytes
        elif isinstance(part, str):
            total += len(part)
        elif isinstance(part, (list, tuple, set)):
            waiting += part
        elif isinstance(part, dict):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, SimpleNamespace):
            waiting += vars(part).values()
    return total


@lru_cache(maxsize=1024)
def _parameters(function: Any) -> list[str]:
    names = list(inspect.signature(function).parameters)
    return names[1:] if names[:1] == ["self"] else names


_current: ContextVar[CallLog | None] = ContextVar("call_log", default=None)


def start_log(signatures: Mapping[str, Any]) -> CallLog:
    """Begin the log of one test; it stays the current one until the next begins."""
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


def describe_last() -> str:
    """The most recent call of the student's code in words, or "the call" where there was none."""
    calls = [call for call in current_log().calls if not call.of_suite] or current_log().calls
    call = calls[-1] if calls else None
    return f"`{current_log().describe(call)}`" if call else "the call"


def may_be_none() -> bool:
    """Whether None may be a right answer to the most recent call: the answer key's docstring says
    what it returns.
    """
    log = current_log()
    names = [call.name for call in log.calls if not call.of_suite]
    documented = inspect.getdoc(log.signatures.get(names[-1])) if names else None
    return "None" in (documented or "").partition("Returns:")[2]


_USUAL = ("float64", "int64", "bool")
"""Dtypes that go without saying."""


def _show(value: Any, name: str) -> str:
    equals = f"{name}=" if name else ""
    if is_tensor(value) or isinstance(value, np.ndarray):
        if value.ndim == 0:
            return f"{equals}{value.item()!r}"
        dtype = dtype_name(value.dtype)
        return f"{name or 'tensor'}{list(value.shape)}{'' if dtype in _USUAL else f' {dtype}'}"
    torch = loaded_torch()
    if isinstance(value, (bool, int, float, str, torch.dtype if torch else str)) or value is None:
        text = repr(value)
    elif isinstance(value, dict):
        text = ", ".join(f"{key!r}: {_show(part, '')}" for key, part in list(value.items())[:5])
        text = f"{{{text}}}" if len(text) <= 58 and len(value) <= 4 else f"{{{len(value)} entries}}"
    elif isinstance(value, (list, tuple)) and not _is_short(value):
        text = f"{type(value).__name__} of {len(value)}"
    elif isinstance(value, (list, tuple)):
        text = repr(value)
    elif callable(value):
        text = getattr(value, "name", "function")
    else:
        text = type(value).__name__
    return f"{equals}{text}" if len(text) <= 60 else f"{equals}{text[:57]}…"


def _is_short(values: list[Any] | tuple[Any, ...]) -> bool:
    return len(values) <= 4 and all(
        isinstance(v, (bool, int, float, str)) or v is None for v in values
    )
