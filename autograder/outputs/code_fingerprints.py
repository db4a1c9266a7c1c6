"""Fingerprints of code: what stays of it when names, comments and layout change, and in which order
its parts stand.

Winnowing (Schleimer, Wilkerson and Aiken, 2003): every run of `RUN` tokens is hashed, and of each
`WINDOW` neighbouring hashes the least is kept. Two texts that share a run of `RUN + WINDOW - 1`
tokens share a fingerprint. The code is text here; it is neither parsed nor run.
"""

from __future__ import annotations

import hashlib
import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass

RUN = 16
WINDOW = 6

_TOKEN = re.compile(
    r"""(?P<space>\s+|\\\n|\#[^\n]*)
    |(?P<text>[A-Za-z]{0,2}(?:'''.*?(?:'''|\Z)|\"\"\".*?(?:\"\"\"|\Z)|'(?:\\.|[^'\\\n])*'?|\"(?:\\.|[^\"\\\n])*\"?))
    |(?P<number>\d[\w.]*)
    |(?P<name>\w+)
    |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_KEPT = frozenset(keyword.kwlist)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A kept hash, and the lines (from 0) of the run of tokens that it stands for."""

    value: bytes
    first: int
    last: int


def fingerprints(source: str) -> list[Fingerprint]:
    """The fingerprints of a piece of code, in its order; none where it is shorter than a run."""
    tokens = _tokens(source)
    hashes = [
        _hash([symbol for symbol, _ in tokens[i : i + RUN]]) for i in range(len(tokens) - RUN + 1)
    ]
    return [Fingerprint(hashes[i], tokens[i][1], tokens[i + RUN - 1][1]) for i in _winnowed(hashes)]


def _tokens(source: str) -> list[tuple[str, int]]:
    """(symbol, line): keywords and signs as they are, a name after a dot too (it is mostly a
    library's), every other name, number and text as one symbol of its kind. A text that stands
    alone, as a docstring does, says nothing.
    """
    tokens: list[tuple[str, int]] = []
    line = 0
    for match in _TOKEN.finditer(source):
        kind, text = match.lastgroup, match.group()
        if kind == "name":
            after_dot = bool(tokens) and tokens[-1][0] == "."
            tokens.append((text if text in _KEPT or after_dot else "name", line))
        elif kind in ("text", "number"):
            tokens.append((kind, line))
        elif kind == "sign":
            tokens.append((text, line))
        line += text.count("\n")
    return tokens


def _hash(run: Sequence[str]) -> bytes:
    return hashlib.blake2b("\0".join(run).encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _winnowed(hashes: Sequence[bytes]) -> list[int]:
    """Places of the least hash of each window; of equal ones the last."""
    kept: dict[int, None] = {}
    for start in range(max(len(hashes) - WINDOW + 1, 1 if hashes else 0)):
        window = range(start, min(start + WINDOW, len(hashes)))
        kept[min(window, key=lambda i: (hashes[i], -i))] = None
    return list(kept)
