"""Which libraries grading an assignment needs: those that hosts load before they fork workers, torch among them."""

from __future__ import annotations

import importlib.util
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder.course import Assignment, Limits
from autograder.errors import BadSuite, UnreadableSubmission
from autograder.handed_in import read_handed_in
from autograder.intake.built import load_built
from autograder.intake.release import load_release
from autograder.model import FoundSubmission

EXTRAS = {
    "matplotlib": re.compile(r"matplotlib"),
    "dynamo": re.compile(r"\boptim\.|checkpoint|torch\.func\b|flex_attention"),
    "sympy": re.compile(r"\.backward\([^)]|autograd\.grad\(|gradcheck|testing\.assert_close"),
    "triton": re.compile(r"triton"),
}
"""What the host can load besides torch, and how a notebook looks that makes torch load it: a second or two each."""
_PARTS_OF_TORCH = frozenset({"dynamo", "sympy", "triton"})
_IMPORTS_TORCH = re.compile(r"^\s*(import|from)\s[^#\n]*\b(torch|triton)\b", re.MULTILINE)
_SUBMISSION_IMPORTS_TORCH = re.compile(r"\b(import|from)\s[^#\n]*\btorch\b")
"""As it stands in a notebook's JSON."""
_FROM_SUITE = re.compile(r"^\s*from\s+autograder\.suite\s+import\s+(\([^)]*\)|.*)", re.MULTILINE)
_ASKS_FOR_TORCH = re.compile(r"""["']torch\.|\bstudent\.(cost|counted|launch)\b""")
"""In a suite: a function of torch's that is forbidden, and what counts operations of torch's."""
HELPERS_WITH_TORCH = frozenset({
    "arange", "assert_same_gradients", "eye", "full", "moved", "ones", "rand", "randint", "randn", "randperm", "tensor",
    "zeros",
})  # fmt: skip
"""Names of `autograder.suite` that make tensors of torch's, or differentiate them."""


def needs_torch(assignment: Assignment) -> bool:
    """Whether the assignment's notebooks or its suite use torch.

    Raises:
        BadSuite: they do, and torch is not installed.
    """
    place = next(_places_with_torch(assignment), None)
    if place is not None and not _is_installed("torch"):
        raise BadSuite(f"{place} uses torch, and torch is not installed here: install it to grade {assignment.name}")
    return place is not None


def _places_with_torch(assignment: Assignment) -> Iterator[Path]:
    """Files of the assignment that use torch."""
    for notebook in (assignment.release, assignment.solution):
        try:
            cells = [cell for cell in load_built(notebook).cells if cell.cell_type == "code"]
        except (OSError, ValueError):
            continue  # whoever needs the notebook says so
        if any(_IMPORTS_TORCH.search("".join(cell.source)) for cell in cells):
            yield notebook
    for file in sorted(assignment.suite.glob("**/*.py")):
        text = file.read_text(encoding="utf-8")
        taken = set(re.findall(r"\w+", " ".join(_FROM_SUITE.findall(text))))
        if _IMPORTS_TORCH.search(text) or _ASKS_FOR_TORCH.search(text) or taken & HELPERS_WITH_TORCH:
            yield file


def _is_installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except (ImportError, ValueError):
        return False


def extras_for(assignment: Assignment, submissions: Sequence[FoundSubmission], limits: Limits) -> tuple[str, ...]:
    """Libraries that the host loads, because a worker would pay for them again and again.

    Torch, where the assignment or some submission uses it. And those that the assignment's own running cells or its
    known answers use, or that the answer key or some submission names more often than the release does (whose demo
    cells, which do not run, name them too).

    Raises:
        BadSuite: the assignment needs torch, and torch is not installed.
    """
    wanted = {"torch"} if needs_torch(assignment) else set()
    release = assignment.release.read_text(encoding="utf-8")
    running = "".join(cell.source for cell in load_release(assignment).cells if cell.role in ("given", "question"))
    for name in ("mistakes.py", "alternates.py"):
        known = assignment.suite / name
        running += known.read_text(encoding="utf-8") if known.exists() else ""
    wanted |= {name for name, sign in EXTRAS.items() if sign.search(running)}
    notebooks = itertools.chain(
        [assignment.solution.read_text(encoding="utf-8") if assignment.solution.exists() else ""],
        (_text_of(found.path, limits) for found in submissions),
    )
    for text in notebooks:
        if len(wanted) == len(EXTRAS) + 1:
            break
        wanted |= {n for n, sign in EXTRAS.items() if len(sign.findall(text)) > len(sign.findall(release))}
        if _SUBMISSION_IMPORTS_TORCH.search(text):
            wanted.add("torch")
    return tuple(sorted(wanted if "torch" in wanted else wanted - _PARTS_OF_TORCH))


def _text_of(path: Path, limits: Limits) -> str:
    """ "" where the notebook cannot be read: the grader will say so."""
    try:
        return read_handed_in(path, limits.notebook_mb << 20).decode("utf-8", errors="ignore")
    except UnreadableSubmission:
        return ""
