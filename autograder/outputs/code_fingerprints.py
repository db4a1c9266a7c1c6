"""Fingerprints of code, which changed names, comments, layout and order of parts leave alike.

Winnowing (Schleimer, Wilkerson and Aiken, 2003): every run of `RUN` tokens is hashed, and of each
`WINDOW` neighbouring hashes the least is kept. Two texts that share a run of `RUN + WINDOW - 1`
tokens share a fingerprint. Code is handled as text, and neither parsed nor run.
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
    """A kept hash, and the first and last line (from 0) of its run of tokens."""

    value: bytes
    first: int
    last: int


def fingerprints(source: str) -> list[Fingerprint]:
    """The fingerprints of a piece of code, in order; code that is shorter than a run has none."""
    tokens = _tokens(source)
    runs = []
    for start in range(len(tokens) - RUN + 1):
        run = tokens[start : start + RUN]
        value = hash_run([symbol for symbol, _ in run])
        _, first = run[0]
        _, last = run[-1]
        runs.append(Fingerprint(value, first=first, last=last))
    return _winnow(runs)


def _tokens(source: str) -> list[tuple[str, int]]:
    """(symbol, line) of each token.

    Keywords, signs and names after a dot (mostly a library's) stand as written; every other name,
    number and text becomes the symbol of its kind.
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


def hash_run(run: Sequence[str]) -> bytes:
    """The hash of a run of tokens or words."""
    text = "\0".join(run).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=8).digest()


def _winnow(runs: Sequence[Fingerprint]) -> list[Fingerprint]:
    """The least hash of each window; of equal hashes the last."""
    least: dict[int, Fingerprint] = {}
    full_windows = len(runs) - WINDOW + 1
    for start in range(
        max(full_windows, min(len(runs), 1))
    ):  # short code has one short window
        window = range(start, min(start + WINDOW, len(runs)))
        best = min(window, key=lambda i: (runs[i].value, -i))
        least[best] = runs[best]
    return list(least.values())
