"""A function's signature as both sides of the wire compare it, without either telling the other
what it is.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from typing import Any

_PLAIN = (type(None), bool, int, float, str)


def signature_digest(function: Callable[..., Any]) -> str:
    """A hash of the names, kinds and defaults of a function's parameters.

    "" where it has no signature, or a default that is not compared: then it equals no other.
    """
    try:
        parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):
        return ""
    parts = []
    for parameter in parameters:
        default = parameter.default
        if default is not parameter.empty and type(default) not in _PLAIN:
            return ""
        text = "" if default is parameter.empty else f"{type(default).__name__} {default!r}"
        parts.append((parameter.name, int(parameter.kind), text))
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
