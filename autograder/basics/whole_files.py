"""Write files whole or not at all, to a temporary file in the same folder that is then renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

_PART = ".part"
"""The ending of a temporary file's name."""
_NAME_LENGTH = 40
"""Characters of the final file's name in a temporary file's, since a name has at most 255 bytes."""

Content = str | bytes | Iterable[str | bytes]
"""The content of a file: text is written in UTF-8, and pieces one by one, so that a large file is
never in memory.
"""


def write_whole(
    path: Path,
    content: Content,
    *,
    to_disk: bool = True,
) -> None:
    """Write a file; where that fails, an existing file stays.

    Args:
        path: folders above the file are made.
        content: in text, a lone surrogate becomes a backslash escape, as in JSON.
        to_disk: flush the file before it is renamed, so that it outlasts a loss of power.

    Raises:
        OSError: the error names `path`.
    """
    part = part_path(path)
    with name_file_in_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write_part(
                path,
                part,
                content,
                to_disk=to_disk,
            )
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def make_private(path: Path, content: str) -> None:
    """Make a file that nobody else on the machine may read.

    Raises:
        FileExistsError: there is one already.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(content)


def part_path(path: Path) -> Path:
    """A new name for a temporary file beside `path`."""
    return path.with_name(f"{_prefix(path.name)}{secrets.token_hex(8)}{_PART}")


def write_part(
    path: Path,
    part: Path,
    content: Content,
    *,
    to_disk: bool,
) -> None:
    """Write the new content of `path` to its temporary file.

    Raises:
        OSError: the error names `path`.
    """
    pieces = [content] if isinstance(content, str | bytes) else content
    with name_file_in_errors(path), part.open("xb") as file:
        for piece in pieces:
            if isinstance(piece, str):
                piece = piece.encode("utf-8", "backslashreplace")
            file.write(piece)
        if to_disk:
            file.flush()
            os.fsync(file.fileno())
        os.fchmod(file.fileno(), 0o644)


def clear_parts(folder: Path, name: str = "") -> None:
    """Remove temporary files of killed writers from a folder, of one file or of all.

    The caller holds a lock, so that nobody else is writing there.
    """
    prefix = _prefix(name) if name else "."
    for path in folder.glob(f".*{_PART}"):
        if path.name.startswith(prefix):
            path.unlink(missing_ok=True)


def is_part(name: str) -> bool:
    """Whether a name is a temporary file's, perhaps of a writer that was killed."""
    return name.startswith(".") and name.endswith(_PART)


def _prefix(name: str) -> str:
    return f".{name[:_NAME_LENGTH]}."


@contextlib.contextmanager
def name_file_in_errors(path: Path) -> Iterator[None]:
    """Name `path` in errors of the system, which else name a temporary file, or no file where the
    disk is full.
    """
    try:
        yield
    except OSError as error:
        raise OSError(
            error.errno,
            error.strerror or str(error),
            str(path),
        ) from error
