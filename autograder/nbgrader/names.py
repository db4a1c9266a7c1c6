"""The course's name for nbgrader. Light to import: nbgrader_config.py needs it for every command."""

from __future__ import annotations

import re


def course_id(name: str) -> str:
    """The course's name as nbgrader's exchange wants it: "Attention Kit" → "attention-kit"."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "course"
