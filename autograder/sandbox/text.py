"""Text that came from a student, made harmless before it is stored or shown anywhere."""

from __future__ import annotations

import unicodedata

_REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")


def plain(text: str, longest: int) -> str:
    """The text without control characters, escape sequences and reordering marks, at most `longest` characters.

    Line breaks and tabs stay.
    """
    kept = "".join(c for c in text if c in "\n\t" or (unicodedata.category(c)[0] != "C" and c not in _REORDERING))
    return kept if len(kept) <= longest else kept[: longest - 1] + "…"
