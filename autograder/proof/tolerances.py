"""Comparisons that allow less than the default, though the question's text names no tolerance: a
right answer may lose points by its last digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from autograder.intake.released_notebook import Release
from autograder.proof.trials import TrialOutcome

_TOLERANCE = re.compile(r"\b(?:within|to)\s+\$?(?:(\d+(?:\.\d+)?e-\d+)|10\^\{-(\d+)\})")
"""A tolerance in a text: within 1e-9, or to $10^{-9}$."""
_EXACTLY = re.compile(r"\bexactly\b")


def unstated_tolerances(
    release: Release,
    keys: Iterable[TrialOutcome],
) -> Iterator[str]:
    """Tests that compare more closely than by default, and than the question's text states.

    Args:
        keys: the answer key's outcomes.
    """
    for key in keys:
        text = question_text(release, key.trial.question)
        for test in key.tests:
            if test.tolerance is not None and not _states(text, test.tolerance):
                allowed = f"{test.tolerance:.1g}"
                yield (
                    f"{key.trial.question}: {test.name} allows {allowed}, less than by default, "
                    f"and the question's text does not say so: write 'within {allowed}' there "
                    "('exactly' for 0), or leave out atol and rtol"
                )


def question_text(release: Release, question: str) -> str:
    """The text that a student reads for a question: its cell, and the text cells right above it.
    Given cells and demos, such as a prediction, may stand between.
    """
    cells = release.cells
    places = [
        place
        for place, cell in enumerate(cells)
        if (cell.role, cell.name) == ("question", question)
    ]
    place = places[0] if places else 0
    first = place
    while first > 0 and cells[first - 1].role in ("text", "given", "demo"):
        first -= 1
    shown = cells[first : place + 1]
    return "\n".join(cell.source for cell in shown if cell.role in ("text", "question"))


def _states(text: str, allowed: float) -> bool:
    """Whether the text names a tolerance as small as the allowed one."""
    if allowed == 0:
        return _EXACTLY.search(text) is not None
    for number, power in _TOLERANCE.findall(text):
        tolerance = float(number) if number else 10.0 ** -int(power)
        if tolerance <= 1.001 * allowed:
            return True
    return False
