"""The course's name for nbgrader. Light to import: nbgrader_config.py needs it for every command."""

from __future__ import annotations

import re
from pathlib import Path

from autograder.course import load_course


def course_id(root: Path) -> str:
    """The course's name as nbgrader's exchange wants it: "Attention Kit" → "attention-kit"."""
    return re.sub(r"[^a-z0-9]+", "-", load_course(root).about.name.lower()).strip("-") or "course"
