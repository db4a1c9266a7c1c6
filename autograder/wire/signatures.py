"""Digests of signatures: the two sides of the wire compare them, and neither shows the other a
signature.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from typing import Any

_PLAIN = (type(None), bool, int, float, str)


def signature_digest(function: Callable[..., Any]) -> str:
    """A hash of the names, kinds and defaults of a function's parameters.

    "" where the function has no signature, or a default whose text need not identify it.
    """
    try:
        parameters = inspect.signature(
            function, follow_wrapped=False
        ).parameters.values()
    except (TypeError, ValueError):
        return ""
    parts = []
    for parameter in parameters:
        default = parameter.default
        if default is not parameter.empty and type(default) not in _PLAIN:
            return ""
        text = ""
        if default is not parameter.empty:
            text = f"{type(default).__name__} {default!r}"
        parts.append((parameter.name, int(parameter.kind), text))
    signature = repr(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(signature).hexdigest()
