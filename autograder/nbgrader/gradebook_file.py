"""The file of a gradebook: nothing else is ever taken for one, and half of one is not left behind."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from autograder.errors import KitError

_MAGIC = b"SQLite format 3\0"


@contextlib.contextmanager
def gradebook_file(path: Path) -> Iterator[None]:
    """What happens inside writes to the gradebook at `path`. Where that fails, a file that was not there is removed.

    Raises:
        KitError: something else lies at `path`.
        OSError: it cannot be read.
    """
    new = not path.exists()
    if not new:
        _refuse_other_files(path)
    try:
        yield
    except BaseException:
        if new:
            path.unlink(missing_ok=True)
        raise


def _refuse_other_files(path: Path) -> None:
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
    if not start:  # an empty file is an empty database
        return
    if start != _MAGIC:
        raise KitError(f"{path} is no gradebook, and no database at all: name another file; nothing was changed in it")
    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        try:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        except sqlite3.Error as error:
            error.add_note(str(path))
            raise
    if tables and "submitted_assignment" not in tables:
        raise KitError(
            f"{path} is the database of another program (it holds {', '.join(sorted(tables)[:3])}): name another file; "
            "nothing was changed in it"
        )
