"""The one way to open a file that a student handed in: a regular file, within a limit, and no wait
for anything.

The file may be a pipe that nobody writes to, a device without end, a link to the answer key, a
terabyte of nothing, or it may grow while it is read. Whatever else it is, it is refused with one
line that names it and says what to do.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from pathlib import Path

from autograder.basics.errors import OutOfReach, UnreadableSubmission

MAX_TIMESTAMP = 1000
"""Bytes of a note of when a submission came: far above any."""

_CHUNK = 1 << 20
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link",
}


def printable_name(name: object) -> str:
    """A file's name as it may stand in a message: printable, on one line, not too long."""
    text = "".join(
        c if c.isprintable() and unicodedata.category(c) != "Cf" else "?" for c in str(name)
    )
    return text if len(text) <= 100 else text[:60] + "…" + text[-30:]


def read_handed_in(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes; its last part may be no link.

    Raises:
        UnreadableSubmission: anything else. OutOfReach: the system did not let it be read.
    """
    name = printable_name(path.name)
    try:
        handle = os.open(
            path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
        )
    except FileNotFoundError:
        raise OutOfReach(f"{name}: there is no such file; a notebook must be handed in") from None
    except (OSError, ValueError) as error:
        raise _refusal(name, error) from None
    try:
        mode = stat.S_IFMT(os.fstat(handle).st_mode)
        if mode != stat.S_IFREG:
            raise UnreadableSubmission(
                f"{name}: is {_KINDS.get(mode, 'a device')}; hand in the .ipynb file itself"
            )
        data = _at_most(handle, limit)
    except OSError as error:
        raise _refusal(name, error) from None
    finally:
        os.close(handle)
    if data is None:
        raise UnreadableSubmission(
            f"{name}: is larger than {_size(limit)}; clear the outputs (Kernel > Restart and "
            "Clear Outputs), "
            "save, and hand it in again"
        )
    return data


def first_link(path: Path, below: Path) -> Path | None:
    """The first part of the path, from the folder `below` on, that is a link; None where there is
    none.
    """
    names = path.relative_to(below).parts
    parts = (below.joinpath(*names[: count + 1]) for count in range(len(names)))
    return next((part for part in parts if part.is_symlink()), None)


def describe_non_file(path: Path) -> str:
    """What there is in place of a regular file, without opening or following it: "a pipe", "a
    link"; "" for a file.

    Raises:
        OSError: there is nothing.
    """
    mode = stat.S_IFMT(path.lstat().st_mode)
    return "" if mode == stat.S_IFREG else _KINDS.get(mode, "a device")


def _at_most(handle: int, limit: int) -> bytes | None:
    """Everything up to the end of the file; None where that is more than `limit` bytes.

    The size that the system states is believed only where it is too large: a file may grow while it
    is read.
    """
    if os.fstat(handle).st_size > limit:
        return None
    data = bytearray()
    while chunk := os.read(handle, min(_CHUNK, limit + 1 - len(data))):
        data += chunk
        if len(data) > limit:
            return None
    return bytes(data)


def _refusal(name: str, error: OSError | ValueError) -> UnreadableSubmission:
    if isinstance(error, ValueError):
        return UnreadableSubmission(
            f"{name}: cannot be read (its name cannot be used); hand in the notebook again"
        )
    if error.errno == errno.ELOOP:
        return UnreadableSubmission(f"{name}: is a link, not a file; hand in the notebook itself")
    if error.errno in (errno.ENXIO, errno.ENODEV):
        return UnreadableSubmission(
            f"{name}: is a socket or a device; hand in the .ipynb file itself"
        )
    return OutOfReach(f"{name}: cannot be read ({error.strerror}); hand in the notebook again")


def _size(limit: int) -> str:
    return f"{limit >> 20} MB" if limit >= 1 << 20 else f"{limit} bytes"
