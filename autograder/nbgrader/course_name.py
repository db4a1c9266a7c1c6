"""What nbgrader needs of its surroundings. Light to import: nbgrader_config.py needs it for every
command.
"""

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
    """Let nbgrader find `alembic`, which it runs when it makes a database, where no environment is
    activated.
    """
    if shutil.which("alembic") is None:
        os.environ["PATH"] = (
            f"{os.environ.get('PATH', '')}{os.pathsep}{Path(sys.executable).parent}"
        )


def shown_gradebook(db_url: str) -> str:
    """The database of that address for people: a file's path, or a server's without the
    password.
    """
    from sqlalchemy import make_url

    return str(make_url(db_url).render_as_string(hide_password=True)).removeprefix("sqlite:///")
