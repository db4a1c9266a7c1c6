"""Names in the order in which people count them: a2 before a10."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"([0-9]+)")


def natural_order(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """What to sort names by, so that runs of digits count as numbers.

    A number comes before other text, and equal numbers written otherwise (`a2`, `a02`) stand in the
    order of their text.
    """
    parts: list[tuple[int, int, str]] = []
    for part in _DIGITS.split(name):
        if _DIGITS.fullmatch(part):
            parts.append((0, int(part), ""))
        elif part:
            parts.append((1, 0, part))
    return parts, name
