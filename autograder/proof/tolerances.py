"""Comparisons that allow less than the default, of which a question's text says nothing: a right
answer may lose points by its last digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from autograder.intake.released_notebook import Release
from autograder.proof.trials import Tried

_TOLD = re.compile(r"\b(?:within|to)\s+\$?(?:(\d+(?:\.\d+)?e-\d+)|10\^\{-(\d+)\})")
"""How a text tells a tolerance: within 1e-9, or to $10^{-9}$."""
_EXACTLY = re.compile(r"\bexactly\b")


def untold_tolerances(release: Release, tried: Iterable[Tried]) -> Iterator[str]:
    """Tests of the answer key that compare more closely than by default, and than the question's
    text tells.
    """
    for key in tried:
        text = question_text(release, key.trial.question)
        for test in key.tests:
            if test.tolerance is not None and not _tells(text, test.tolerance):
                yield (
                    f"{key.trial.question}: {test.name} allows {test.tolerance:.1g}, less than "
                    "by default, and the "
                    f"question's text does not say so: write 'within {test.tolerance:.1g}' there "
                    "('exactly' for 0), or "
                    "leave out atol and rtol"
                )


def question_text(release: Release, question: str) -> str:
    """What a student reads for a question: its cell, and the text cells right above it."""
    cells = release.cells
    place = next(
        (
            place
            for place, cell in enumerate(cells)
            if (cell.role, cell.name) == ("question", question)
        ),
        0,
    )
    first = place
    while first > 0 and cells[first - 1].role in ("text", "given"):
        first -= 1
    return "\n".join(cell.source for cell in cells[first : place + 1] if cell.role != "given")


def _tells(text: str, allowed: float) -> bool:
    """Whether the text names a tolerance as small as this one."""
    if allowed == 0:
        return _EXACTLY.search(text) is not None
    tolerances = (
        float(number) if number else 10.0 ** -int(power) for number, power in _TOLD.findall(text)
    )
    return any(tolerance <= 1.001 * allowed for tolerance in tolerances)
