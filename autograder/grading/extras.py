"""Finds the libraries that hosts load before they fork workers, torch among them."""

from __future__ import annotations

import contextlib
import importlib.util
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder.basics.errors import BadSource, BadSuite, UnreadableSubmission
from autograder.basics.handed_in import read_handed_in
from autograder.course import Assignment, Limits
from autograder.intake.companion_files import load_companions
from autograder.intake.reading import parse_notebook
from autograder.intake.released_notebook import load_release
from autograder.records.submission import FoundSubmission

EXTRAS = {
    "torch": re.compile(r"\b(import|from) +torch\b"),
    "matplotlib": re.compile(r"matplotlib"),
    "dynamo": re.compile(r"\boptim\.|checkpoint|torch\.func\b|flex_attention"),
    "sympy": re.compile(
        r"\.backward\([^)]|autograd\.grad\(|gradcheck|testing\.assert_close"
    ),
    "triton": re.compile(r"triton"),
}
"""Libraries that a host can load, and the text of notebooks that load them or make torch do so.

Each costs a second or two, which a worker would pay again and again.
"""
WITHOUT_TORCH = frozenset({"matplotlib"})
"""The other libraries are parts of torch, or need torch."""
HELPERS_WITH_TORCH = frozenset(
    {
        "arange",
        "assert_close_in_turn",
        "assert_same_gradients",
        "eye",
        "far_apart",
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
_IMPORTS_TORCH = re.compile(
    r"^\s*(import\s[^#\n]*\b|from\s+)(torch|triton)\b", re.MULTILINE
)
_COUNTS_OR_FORBIDS = re.compile(
    r"""\bforbid\([^)]*["']torch\.|\bstudent\.(cost|counted|launch)\b"""
)
"""In a suite: a function of torch's that is forbidden, or a count of torch's operations."""
_FROM_SUITE = re.compile(r"\bautograder\.suite\s+import\s+(\([^)]*\)|.*)")


def needs_torch(assignment: Assignment) -> bool:
    """Whether the answer key or the suite uses torch.

    Raises:
        BadSuite: torch is used, and is not installed.
    """
    for path in (assignment.solution, *sorted(assignment.suite.glob("**/*.py"))):
        if _uses_torch(path):
            if _is_installed("torch"):
                return True
            raise BadSuite(
                f"{path} uses torch, and torch is not installed here: install it to grade "
                f"{assignment.name}"
            )
    return False


def _uses_torch(path: Path) -> bool:
    """Whether an answer key or a file of a suite uses torch; False for a file that cannot be read:
    its reader reports that.
    """
    try:
        if path.suffix == ".ipynb":
            cells = parse_notebook(path.read_bytes(), path.name).cells
            texts = [cell.source for cell in cells if cell.kind == "code"]
            texts += load_companions(path).values()
            return any(map(_IMPORTS_TORCH.search, texts))
        code = path.read_text(encoding="utf-8")
    except (OSError, ValueError, BadSource, UnreadableSubmission):
        return False
    if _IMPORTS_TORCH.search(code) or _COUNTS_OR_FORBIDS.search(code):
        return True
    imported = set(re.findall(r"\w+", " ".join(_FROM_SUITE.findall(code))))
    return bool(imported & HELPERS_WITH_TORCH)


def _is_installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except (ImportError, ValueError):
        return False


def find_extras(
    assignment: Assignment,
    submissions: Sequence[FoundSubmission],
    limits: Limits,
) -> tuple[str, ...]:
    """The libraries that the host should load.

    Those that the assignment's own running cells or its known answers use, and those that the
    answer key or some submission names more often than the release does (whose demo cells, which do
    not run, name them too).

    Raises:
        BadSuite: the assignment needs torch, and torch is not installed.
    """
    extras = {"torch"} if needs_torch(assignment) else set()
    released = load_release(assignment)
    texts = [
        cell.source for cell in released.cells if cell.role in ("given", "question")
    ]
    texts += released.companions.values()
    for path in (assignment.suite / "mistakes.py", assignment.suite / "alternates.py"):
        if path.exists():
            texts.append(path.read_text(encoding="utf-8"))
    code = "".join(texts)
    extras |= {extra for extra, pattern in EXTRAS.items() if pattern.search(code)}
    release = assignment.release.read_text(encoding="utf-8")
    counts = {extra: len(pattern.findall(release)) for extra, pattern in EXTRAS.items()}
    for text in _notebook_texts(assignment, submissions, limits):
        if len(extras) == len(EXTRAS):
            break
        for extra, pattern in EXTRAS.items():
            if len(pattern.findall(text)) > counts[extra]:
                extras.add(extra)
    return tuple(sorted(extras if "torch" in extras else extras & WITHOUT_TORCH))


def _notebook_texts(
    assignment: Assignment,
    submissions: Sequence[FoundSubmission],
    limits: Limits,
) -> Iterator[str]:
    """The texts of the answer key and the submissions, as far as they can be read: the grader
    reports those that cannot.
    """
    if assignment.solution.exists():
        yield assignment.solution.read_text(encoding="utf-8")
    for submission in submissions:
        with contextlib.suppress(UnreadableSubmission):
            data = read_handed_in(submission.path, limits.notebook_mb << 20)
            yield data.decode("utf-8", errors="ignore")
