"""What nbgrader needs of its surroundings. Light to import: nbgrader_config.py needs it for every command."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path


def course_id(name: str) -> str:
    """The course's name as nbgrader's exchange wants it: "Attention Kit" → "attention-kit"."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "course"


def put_alembic_on_path() -> None:
    """Let nbgrader find `alembic`, which it runs when it makes a database, where no environment is activated."""
    if shutil.which("alembic") is None:
        os.environ["PATH"] = f"{os.environ.get('PATH', '')}{os.pathsep}{Path(sys.executable).parent}"
