"""Reads the weights that a student hands in beside a notebook: a safetensors file within limits.

The names of its tensors say where they stand in nested dicts and lists ("params.blocks.0.w_q"), and
its metadata has settings as JSON, as the last training cell of a9 writes them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from autograder.basics.errors import UnreadableSubmission
from autograder.basics.handed_in import printable_name, read_handed_in
from autograder.course import Course

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS_SUFFIX = ".safetensors"
_MAX_HEADER = 1 << 20
_MAX_TENSORS = 10_000
_MAX_LEVELS = 8
_MAX_SETTINGS = 100


@dataclass(frozen=True, slots=True)
class HandedInWeights:
    """Weights that were handed in.

    Attributes:
        tensors: tensors in nested dicts and lists, as they were saved.
        settings: numbers and words, such as the sizes of a model.
        sha256: the hash of the file.
    """

    tensors: dict[str, Any]
    settings: SimpleNamespace
    sha256: str


def weights_name(assignment: str) -> str:
    """The name of the file of weights: that of the assignment."""
    return f"{assignment}{WEIGHTS_SUFFIX}"


def explain_other_name(assignment: str) -> str:
    """What to say of weights under another name."""
    return f"the weights must be called {weights_name(assignment)}"


def weights_path(notebook: Path, assignment: str) -> Path:
    """Where a notebook's weights lie: beside it."""
    return notebook.with_name(weights_name(assignment))


def weights_limit(course: Course, assignment: str) -> int:
    """Bytes of the largest file of weights that the course takes beside a notebook; 0 where the
    assignment takes none.
    """
    if assignment not in course.leaderboard.weights.split():
        return 0
    return course.leaderboard.weights_mb << 20


def why_not_weights(name: str, data: bytes, assignment: str) -> str:
    """Why a file that was handed in cannot be kept as weights, for the student; "" where it can.

    No tensor is read: that needs torch, and happens where the leaderboard measures.
    """
    if name != weights_name(assignment):
        return f"{printable_name(name)}: {explain_other_name(assignment)}"
    try:
        _read_settings(_read_header(data, name), name)
    except UnreadableSubmission as problem:
        return str(problem)
    return ""


def hash_weights(path: Path, limit_mb: int) -> str:
    """The hash of the file at `path`; "" where nothing lies there, and "unreadable" for what
    `read_weights` does not read.
    """
    try:
        return hashlib.sha256(read_handed_in(path, limit_mb << 20)).hexdigest()
    except UnreadableSubmission:
        return "unreadable" if path.exists() or path.is_symlink() else ""


def read_weights(path: Path, limit_mb: int) -> HandedInWeights:
    """Read the weights at `path`, which must be a regular file and no link.

    Raises:
        UnreadableSubmission: the file is missing, too large, or holds no such weights.
    """
    name = printable_name(path.name)
    try:
        data = read_handed_in(path, limit_mb << 20)
    except UnreadableSubmission:
        raise UnreadableSubmission(
            f"{name}: weights are a regular file of at most {limit_mb} MB, no link and no folder"
        ) from None
    settings = _read_settings(_read_header(data, name), name)
    # torch is loaded by whoever measures weights, and by nobody else who reads submissions
    from safetensors.torch import load

    try:
        flat = load(data)
    except (SafetensorError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise UnreadableSubmission(
            f"{name}: is no safetensors file; save it again"
        ) from error
    return HandedInWeights(
        _nest(flat, name), settings, hashlib.sha256(data).hexdigest()
    )


def _read_header(data: bytes, name: str) -> dict[str, Any]:
    """The header of a safetensors file, whose length is checked before it is parsed.

    Raises:
        UnreadableSubmission: there is none, or the file ends before its last tensor does.
    """
    length = int.from_bytes(data[:8], "little")
    if not data or length > min(_MAX_HEADER, len(data)):
        raise UnreadableSubmission(f"{name}: is no safetensors file; save it again")
    try:
        header = json.loads(data[8 : 8 + length])
        places = [
            entry["data_offsets"]
            for key, entry in header.items()
            if key != "__metadata__"
        ]
        end = max((place[1] for place in places), default=0)
        is_cut_off = 8 + length + end > len(data)
    except (ValueError, AttributeError, TypeError, LookupError, RecursionError):
        raise UnreadableSubmission(
            f"{name}: its header cannot be read; save it again"
        ) from None
    if len(header) > _MAX_TENSORS:
        raise UnreadableSubmission(f"{name}: has more than {_MAX_TENSORS} tensors")
    if is_cut_off:
        raise UnreadableSubmission(f"{name}: is cut off; save it again")
    return header  # type: ignore[no-any-return]


def _read_settings(header: dict[str, Any], name: str) -> SimpleNamespace:
    """The settings that stand in the header as JSON.

    Raises:
        UnreadableSubmission: they are no numbers and words.
    """
    try:
        settings = json.loads(header.get("__metadata__", {}).get("settings", "{}"))
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise UnreadableSubmission(
            f"{name}: its header cannot be read; save it again"
        ) from None
    is_plain = isinstance(settings, dict) and len(settings) <= _MAX_SETTINGS
    if not is_plain or not all(
        type(value) in (int, float, str) for value in settings.values()
    ):
        raise UnreadableSubmission(
            f"{name}: its settings are no numbers and words; save it again"
        )
    return SimpleNamespace(**settings)


def _nest(flat: dict[str, Tensor], name: str) -> dict[str, Any]:
    """Tensors by place in nested dicts; a dict whose keys are 0, 1, 2 … is a list."""
    tree: dict[str, Any] = {}
    for place, tensor in flat.items():
        *parents, last = place.split(".")
        if len(parents) >= _MAX_LEVELS:
            raise UnreadableSubmission(f"{name}: is nested too deeply")
        level = tree
        for parent in parents:
            level = level.setdefault(parent, {})
            if not isinstance(level, dict):
                raise UnreadableSubmission(
                    f"{name}: {printable_name(place)} has two meanings"
                )
        if last in level:
            raise UnreadableSubmission(
                f"{name}: {printable_name(place)} has two meanings"
            )
        level[last] = tensor
    return {key: _with_lists(value) for key, value in tree.items()}


def _with_lists(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    children = {key: _with_lists(value) for key, value in tree.items()}
    numbers = [str(number) for number in range(len(children))]
    if children.keys() == set(numbers):
        return [children[number] for number in numbers]
    return children
