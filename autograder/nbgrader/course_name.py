"""The course's name and database for nbgrader. Light to import, for nbgrader_config.py."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path


def course_id(name: str) -> str:
    """The course's id in nbgrader's exchange: "Attention Kit" → "attention-kit"."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "course"


def put_alembic_on_path() -> None:
    """Let nbgrader find the program `alembic` without an activated environment.

    nbgrader runs `alembic` when it makes a database.
    """
    if shutil.which("alembic") is None:
        os.environ["PATH"] = (
            f"{os.environ.get('PATH', '')}{os.pathsep}{Path(sys.executable).parent}"
        )


def shown_gradebook(db_url: str) -> str:
    """A database's address for messages: the path of a file, or a server without the password."""
    from sqlalchemy import make_url

    return str(make_url(db_url).render_as_string(hide_password=True)).removeprefix(
        "sqlite:///"
    )
