"""Which libraries a host loads besides torch: those that many of its workers would load otherwise."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from autograder.course import Assignment, Limits
from autograder.errors import UnreadableSubmission
from autograder.handed_in import read_handed_in
from autograder.intake.release import load_release
from autograder.model import FoundSubmission

EXTRAS = {
    "matplotlib": re.compile(r"matplotlib"),
    "dynamo": re.compile(r"\boptim\.|checkpoint|torch\.func\b|flex_attention"),
    "sympy": re.compile(r"\.backward\([^)]|autograd\.grad\(|gradcheck|testing\.assert_close"),
    "triton": re.compile(r"triton"),
}
"""What the host can load besides torch, and how a notebook looks that makes torch load it: a second or two each."""


def extras_for(assignment: Assignment, submissions: Sequence[FoundSubmission], limits: Limits) -> tuple[str, ...]:
    """Libraries that the host loads besides torch, because a worker would pay for them again and again.

    Those that the assignment's own running cells or its known answers use, and those that the answer key or some
    submission names more often than the release does (whose demo cells, which do not run, name them too).
    """
    release = assignment.release.read_text(encoding="utf-8")
    running = "".join(cell.source for cell in load_release(assignment).cells if cell.role in ("given", "question"))
    for name in ("mistakes.py", "alternates.py"):
        known = assignment.suite / name
        running += known.read_text(encoding="utf-8") if known.exists() else ""
    wanted = {name for name, sign in EXTRAS.items() if sign.search(running)}
    notebooks = itertools.chain(
        [assignment.solution.read_text(encoding="utf-8") if assignment.solution.exists() else ""],
        (_text_of(found.path, limits) for found in submissions),
    )
    for text in notebooks:
        if len(wanted) == len(EXTRAS):
            break
        wanted |= {n for n, sign in EXTRAS.items() if len(sign.findall(text)) > len(sign.findall(release))}
    return tuple(sorted(wanted))


def _text_of(path: Path, limits: Limits) -> str:
    """ "" where the notebook cannot be read: the grader will say so."""
    try:
        return read_handed_in(path, limits.notebook_mb << 20).decode("utf-8", errors="ignore")
    except UnreadableSubmission:
        return ""
