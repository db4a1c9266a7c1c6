"""Fingerprints of the arguments of calls: an example for a student is no input of a hidden test."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.suite.calls import Call
from autograder.suite.scripts import Script
from autograder.wire.libraries import is_tensor

_MOST_NUMBERS = 500
"""Numbers of a tensor in a fingerprint. No example has a larger tensor."""
_LARGE_NUMBER = 1 << 24
"""Whole numbers from here on have no float of their own."""


def call_fingerprint(call: Call) -> str:
    """The fingerprint of a call's arguments; of a call whose run was stored, the stored one."""
    return call.inputs or _fingerprint(
        call.name, [*call.arguments, *call.keywords.values()]
    )


def is_of_suite(script: Script, suite_inputs: Collection[str]) -> bool:
    """Whether every call of a script is a call of some test.

    Args:
        suite_inputs: the fingerprints of the tests' calls.
    """
    return all(
        fingerprint in suite_inputs for fingerprint in script_fingerprints(script)
    )


def script_fingerprints(script: Script) -> Iterator[str]:
    """The fingerprints of a script's calls. A call of a helper is no test's."""
    for step in script.steps:
        if step.kind != "read":
            yield _fingerprint(step.name, [*step.arguments, *step.keywords.values()])


def _fingerprint(name: str, values: list[Any]) -> str:
    """Equal for calls with equal numbers, whatever their dtype and whether they are keywords."""
    method = name.rpartition(".")[2]
    text = "\0".join([method, *_pieces(values)])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, SimpleNamespace):
        value = vars(value)
    if is_tensor(value):
        value = value.detach()
    if is_tensor(value) or isinstance(value, np.ndarray):
        yield str(tuple(value.shape))
        if math.prod(value.shape) <= _MOST_NUMBERS:
            yield from _array_pieces(value)
    elif isinstance(value, dict):
        yield from _pieces([*value.keys(), *value.values()])
    elif isinstance(value, (list, tuple)):
        yield str(len(value))
        for part in value:
            yield from _pieces(part)
    elif isinstance(value, float) or (
        isinstance(value, int) and abs(value) < _LARGE_NUMBER
    ):
        with np.errstate(over="ignore"):
            # a double beside the same number as a float; 0 beside -0
            yield repr(float(np.float32(value)) + 0.0)
    elif isinstance(value, (str, bytes)) or value is None:
        yield repr(value)
    elif isinstance(value, int):
        yield hex(value)
    else:
        yield type(value).__name__


def _array_pieces(array: Any) -> Iterator[str]:
    """The pieces of an array's nested lists. Floats are rounded all at once: one at a time they
    took a sixth of the time of an example.
    """
    if is_tensor(array):
        if array.is_floating_point():
            return _rounded_pieces((array.float().double() + 0.0).tolist())
    elif np.issubdtype(array.dtype, np.floating):
        with np.errstate(over="ignore"):
            rounded = array.astype(np.float32).astype(np.float64) + 0.0
        return _rounded_pieces(rounded.tolist())
    return _pieces(array.tolist())


def _rounded_pieces(value: Any) -> Iterator[str]:
    """The pieces of nested lists of floats that are rounded already."""
    if isinstance(value, list):
        yield str(len(value))
        for part in value:
            yield from _rounded_pieces(part)
    else:
        yield repr(value)
