"""What lies in a submission's folder and is no file: pipes, devices, links. nbgrader would open, follow and copy it.

A pipe that nobody writes to hangs it for ever, a link to an endless device fills the disk, and a link to the answer
key would end up in the feedback.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path

from autograder.handed_in import shown, what_else

TIMESTAMP = "timestamp.txt"
"""What nbgrader opens before anything else."""

_FEW = 20


def no_files(folder: Path) -> dict[Path, str]:
    """Everything in a submission's folder, and below, that is neither a file nor a folder → what it is instead."""
    found = {}
    for inside, _, names in os.walk(folder):
        for name in names:
            path = Path(inside, name)
            if path.is_symlink() or not path.is_file():
                found[path] = what_else(path)
    return dict(sorted(found.items()))


def not_to_be_copied(folder: Path, odd: dict[Path, str]) -> list[str]:
    """The patterns by which nbgrader leaves these out; it compares each with each file, so for many, the folder."""
    paths = odd if len(odd) <= _FEW else [folder]
    return [glob.escape(str(path)) for path in paths]


def told(folder: Path, odd: dict[Path, str]) -> str:
    """The first few, in words."""
    some = [f"{shown(path.relative_to(folder))} is {what}" for path, what in list(odd.items())[:3]]
    return ", ".join(some) + (f", and {len(odd) - len(some)} more" if len(odd) > len(some) else "")
