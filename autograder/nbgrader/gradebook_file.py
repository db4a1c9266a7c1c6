"""The file of a gradebook: nothing else is ever taken for one, and half of one is not left
behind.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.basics.whole_files import name_file_in_errors

_MAGIC = b"SQLite format 3\0"


@contextlib.contextmanager
def gradebook_file(path: Path, files: FileTransaction) -> Iterator[tuple[Path, int]]:
    """Where to write the gradebook at `path`, and which `user_version` it must have then, together
    with other files.

    A new one is written to a file that takes its place at the end. One that was there SQLite
    changes as a whole.

    Raises:
        KitError: something else lies at `path`.
        OSError: it cannot be read.
    """
    if path.exists():
        _refuse_other_files(path)
        yield path, files.change_database(path)
    else:
        part = files.stage(path)
        with name_file_in_errors(path):  # a database that cannot be made does not say why
            part.touch()
            part.unlink()
        try:
            yield part, 0
        except Exception as error:  # errors of a database are told with the file's name in a note
            error.__notes__ = [
                note.replace(str(part), str(path)) for note in getattr(error, "__notes__", [])
            ]
            raise


def _refuse_other_files(path: Path) -> None:
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
    if not start:  # an empty file is an empty database
        return
    if start != _MAGIC:
        raise KitError(
            f"{path} is no gradebook, and no database at all: name another file; nothing was "
            "changed in it"
        )
    with contextlib.closing(
        sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    ) as database:
        try:
            tables = {
                name
                for (name,) in database.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                )
            }
        except sqlite3.Error as error:
            error.add_note(str(path))
            raise
    if tables and "submitted_assignment" not in tables:
        raise KitError(
            f"{path} is the database of another program (it holds "
            f"{', '.join(sorted(tables)[:3])}): name another file; "
            "nothing was changed in it"
        )
