"""Writes a gradebook's file whole or not at all, and refuses files that are no gradebook."""

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
    """Include the gradebook at `path` in a transaction of files.

    A new gradebook is written to another file, which is renamed at the end. An existing one is
    changed by a transaction of SQLite.

    Yields:
        The file to write, and the `user_version` that the database must have at the end.

    Raises:
        KitError: another kind of file lies at `path`.
        OSError: the file cannot be read.
    """
    if path.exists():
        _refuse_other_files(path)
        yield path, files.change_database(path)
    else:
        part = files.stage(path)
        with name_file_in_errors(
            path
        ):  # a database that cannot be made does not say why
            part.touch()
            part.unlink()
        try:
            yield part, 0
        except (
            Exception
        ) as error:  # errors of a database are told with the file's name in a note
            error.__notes__ = [
                note.replace(str(part), str(path))
                for note in getattr(error, "__notes__", [])
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
            f"{', '.join(sorted(tables)[:3])}): name another file; nothing was changed in it"
        )
