"""Files that are written whole or not at all: to a temporary file in the same folder, which is then
renamed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

_PART, _OF_NAME = ".part", 40
"""How a temporary file's name ends, and how much of the file's own it holds: a name has at most 255
bytes.
"""

Content = str | bytes | Iterable[str | bytes]
"""Of a file: text is written in UTF-8; pieces are written as they come, so that a large file is
never in memory.
"""


def write_whole(path: Path, content: Content, *, to_disk: bool = True) -> None:
    """Write a file; where that fails, what was there before stays.

    Args:
        path: folders above it are made.
        content: text is written in UTF-8; a lone surrogate becomes a backslash escape, which is
            what JSON calls it too. Pieces are written as they come, so that a large file is never
            in memory.
        to_disk: flush it before it is renamed, so that it outlasts a loss of power.

    Raises:
        OSError: it names `path`.
    """
    part = part_path(path)
    with name_file_in_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write_part(path, part, content, to_disk=to_disk)
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def part_path(path: Path) -> Path:
    """A new name for a temporary file beside `path`, under which a new content of it is written."""
    return path.with_name(f"{_prefix(path.name)}{secrets.token_hex(8)}{_PART}")


def write_part(path: Path, part: Path, content: Content, *, to_disk: bool) -> None:
    """Write the new content of `path` to its temporary file.

    Raises:
        OSError: it names `path`.
    """
    pieces = [content] if isinstance(content, str | bytes) else content
    with name_file_in_errors(path), part.open("xb") as file:
        for piece in pieces:
            file.write(
                piece if isinstance(piece, bytes) else piece.encode("utf-8", "backslashreplace")
            )
        if to_disk:
            file.flush()
            os.fsync(file.fileno())
        os.fchmod(file.fileno(), 0o644)


def clear_parts(folder: Path, name: str = "") -> None:
    """Remove what writers that were killed left in a folder, of one file where `name` is given.

    Nobody else may be writing there: the caller holds a lock.
    """
    for path in folder.glob(f".*{_PART}"):
        if path.name.startswith(_prefix(name) if name else "."):
            path.unlink(missing_ok=True)


def is_part(name: str) -> bool:
    """Whether a file of this name is one that is being written, or was when its writer was
    killed.
    """
    return name.startswith(".") and name.endswith(_PART)


def _prefix(name: str) -> str:
    return f".{name[:_OF_NAME]}."


@contextlib.contextmanager
def name_file_in_errors(path: Path) -> Iterator[None]:
    """Errors of the system name `path`: by themselves they name a temporary file, or nothing where
    the disk is full.
    """
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
