"""Open a file that a student handed in: a regular file, within a limit, without waiting.

The file may be a pipe that nobody writes to, a device without end, a link to the answer key, or a
terabyte of zeros, or may grow during the read. All but a regular file is refused with one line that
names the file and says what to do.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from pathlib import Path

from autograder.basics.errors import OutOfReach, UnreadableSubmission

MAX_TIMESTAMP = 1000
"""Bytes of a file with the time of a hand-in: far above any honest file."""

_CHUNK = 1 << 20
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link",
}


def printable_name(name: object) -> str:
    """A file's name as it may stand in a message: printable, on one line, not too long."""
    text = "".join(c if _is_printable(c) else "?" for c in str(name))
    return text if len(text) <= 100 else text[:60] + "…" + text[-30:]


def _is_printable(character: str) -> bool:
    return character.isprintable() and unicodedata.category(character) != "Cf"


def read_handed_in(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes; the last part of the path may be no link.

    Raises:
        UnreadableSubmission: any other file. OutOfReach: the system did not let the file be read.
    """
    name = printable_name(path.name)
    try:
        handle = os.open(path, _FLAGS)
    except FileNotFoundError:
        raise OutOfReach(
            f"{name}: there is no such file; a notebook must be handed in"
        ) from None
    except (OSError, ValueError) as error:
        raise _refusal(name, error) from None
    try:
        mode = stat.S_IFMT(os.fstat(handle).st_mode)
        if mode != stat.S_IFREG:
            raise UnreadableSubmission(
                f"{name}: is {_KINDS.get(mode, 'a device')}; hand in the .ipynb file itself"
            )
        data = _read_at_most(handle, limit)
    except OSError as error:
        raise _refusal(name, error) from None
    finally:
        os.close(handle)
    if data is None:
        raise UnreadableSubmission(
            f"{name}: is larger than {describe_size(limit)}; clear the outputs "
            "(Kernel > Restart and Clear Outputs), save, and hand it in again"
        )
    return data


def first_link(path: Path, below: Path) -> Path | None:
    """The first part of the path below the folder `below` that is a link; None for no link."""
    part = below
    for name in path.relative_to(below).parts:
        part /= name
        if part.is_symlink():
            return part
    return None


def describe_non_file(path: Path) -> str:
    """The kind of a path that is no regular file, such as "a pipe" or "a link"; "" for a file.

    The path is not opened, and no link is followed.

    Raises:
        OSError: the path does not exist.
    """
    mode = stat.S_IFMT(path.lstat().st_mode)
    return "" if mode == stat.S_IFREG else _KINDS.get(mode, "a device")


def _read_at_most(handle: int, limit: int) -> bytes | None:
    """Read to the end of the file; None where the file has more than `limit` bytes.

    A stated size is believed only where it is too large: a file may grow during the read.
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
        return UnreadableSubmission(
            f"{name}: is a link, not a file; hand in the notebook itself"
        )
    if error.errno in (errno.ENXIO, errno.ENODEV):
        return UnreadableSubmission(
            f"{name}: is a socket or a device; hand in the .ipynb file itself"
        )
    return OutOfReach(
        f"{name}: cannot be read ({error.strerror}); hand in the notebook again"
    )


def describe_size(limit: int) -> str:
    """A limit in words, such as "20 MB" or "1000 bytes"."""
    return f"{limit >> 20} MB" if limit >= 1 << 20 else f"{limit} bytes"
