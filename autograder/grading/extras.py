"""Which libraries grading an assignment needs: those that hosts load before they fork workers,
torch among them.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from autograder.basics.errors import BadSuite, UnreadableSubmission
from autograder.basics.handed_in import read_handed_in
from autograder.course import Assignment, Limits
from autograder.intake.reading import parse_notebook
from autograder.intake.released_notebook import load_release
from autograder.records.model import FoundSubmission

EXTRAS = {
    "torch": re.compile(r"\b(import|from) +torch\b"),
    "matplotlib": re.compile(r"matplotlib"),
    "dynamo": re.compile(r"\boptim\.|checkpoint|torch\.func\b|flex_attention"),
    "sympy": re.compile(r"\.backward\([^)]|autograd\.grad\(|gradcheck|testing\.assert_close"),
    "triton": re.compile(r"triton"),
}
"""What the host can load, and how a notebook looks that does or makes torch do: a second or two
each.
"""
WITHOUT_TORCH = frozenset({"matplotlib"})
HELPERS_WITH_TORCH = frozenset(
    {
        "arange",
        "assert_same_gradients",
        "eye",
        "full",
        "moved",
        "ones",
        "rand",
        "randint",
        "randn",
        "randperm",
        "tensor",
        "zeros",
    }
)
"""Names of `autograder.suite` that make tensors of torch's, or differentiate them."""
_IMPORTS_TORCH = re.compile(r"^\s*(import\s[^#\n]*\b|from\s+)(torch|triton)\b", re.MULTILINE)
_COUNTS_OR_FORBIDS = re.compile(
    r"""\bforbid\([^)]*["']torch\.|\bstudent\.(cost|counted|launch)\b"""
)
"""In a suite: a function of torch's that is forbidden, and what counts operations of torch's."""
_FROM_SUITE = re.compile(r"\bautograder\.suite\s+import\s+(\([^)]*\)|.*)")


def needs_torch(assignment: Assignment) -> bool:
    """Whether the answer key or the suite uses torch.

    Raises:
        BadSuite: it does, and torch is not installed.
    """
    place = next(
        filter(_uses_torch, [assignment.solution, *sorted(assignment.suite.glob("**/*.py"))]), None
    )
    if place is not None and not _is_installed("torch"):
        raise BadSuite(
            f"{place} uses torch, and torch is not installed here: install it to grade "
            f"{assignment.name}"
        )
    return place is not None


def _uses_torch(file: Path) -> bool:
    """Whether an answer key or a file of a suite does; False for what cannot be read, as whoever
    needs it will say.
    """
    try:
        if file.suffix == ".ipynb":
            cells = parse_notebook(file.read_bytes(), file.name).cells
            return any(cell.kind == "code" and _IMPORTS_TORCH.search(cell.source) for cell in cells)
        code = file.read_text(encoding="utf-8")
    except (OSError, ValueError, UnreadableSubmission):
        return False
    taken = set(re.findall(r"\w+", " ".join(_FROM_SUITE.findall(code))))
    return bool(
        _IMPORTS_TORCH.search(code) or _COUNTS_OR_FORBIDS.search(code) or taken & HELPERS_WITH_TORCH
    )


def _is_installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except (ImportError, ValueError):
        return False


def extras_for(
    assignment: Assignment, submissions: Sequence[FoundSubmission], limits: Limits
) -> tuple[str, ...]:
    """Libraries that the host loads, because a worker would pay for them again and again.

    Those that the assignment's own running cells or its known answers use, and those that the
    answer key or some submission names more often than the release does (whose demo cells, which do
    not run, name them too). All but one are parts of torch, or need it.

    Raises:
        BadSuite: the assignment needs torch, and torch is not installed.
    """
    wanted = {"torch"} if needs_torch(assignment) else set()
    release = assignment.release.read_text(encoding="utf-8")
    running = "".join(
        cell.source for cell in load_release(assignment).cells if cell.role in ("given", "question")
    )
    for name in ("mistakes.py", "alternates.py"):
        known = assignment.suite / name
        running += known.read_text(encoding="utf-8") if known.exists() else ""
    wanted |= {name for name, sign in EXTRAS.items() if sign.search(running)}
    notebooks = itertools.chain(
        [assignment.solution.read_text(encoding="utf-8") if assignment.solution.exists() else ""],
        (_text_of(found.path, limits) for found in submissions),
    )
    for text in notebooks:
        if len(wanted) == len(EXTRAS):
            break
        wanted |= {
            n for n, sign in EXTRAS.items() if len(sign.findall(text)) > len(sign.findall(release))
        }
    return tuple(sorted(wanted if "torch" in wanted else wanted & WITHOUT_TORCH))


def _text_of(path: Path, limits: Limits) -> str:
    """ "" where the notebook cannot be read: the grader will say so."""
    try:
        return read_handed_in(path, limits.notebook_mb << 20).decode("utf-8", errors="ignore")
    except UnreadableSubmission:
        return ""
