"""Lists the entries of a folder, a zip or a tar, within bounds on every header.

A header states the length of the next header, and zipfile and tarfile read that much at once: 6 MB
of tar.gz whose PAX header is 6 GB long would end the whole command. So both libraries get a file
that refuses such a read.
"""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, cast

CHUNK = 1 << 20
_NO_FILE = "a link or a device, not a file"

MAX_NAME = 4_096
"""Characters of a path in an archive, the limit of Linux."""

_READABLE = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""How a zip's files may be compressed. zipfile unpacks bzip2 and LZMA without a bound: 1 MB becomes
20 GB.
"""

DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
)
"""Exceptions of a damaged or an encrypted archive."""


class NoArchive(Exception):
    """The file is no archive that the kit reads."""


class TooMuch(Exception):
    """An archive holds more than it may: too many entries, or a header beyond its bound."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits on an archive.

    Attributes:
        header: bytes of one header: a zip's whole directory, or all headers before one file of a
            tar.
        content: bytes of a tar once unpacked: the whole tar is read, also past skipped files.
    """

    header: int
    content: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A member of an archive before it is unpacked, as its header states.

    Attributes:
        problem: why the member cannot be unpacked, or "".
        opener: opens the content; None where there is no regular file.
        is_folder: the member has no content.
    """

    name: str
    size: int
    problem: str
    modified: datetime | None
    opener: Callable[[], IO[bytes] | None]
    is_folder: bool = False

    def open(self) -> IO[bytes]:
        """Open the content. Raises: any of `DAMAGED`."""
        stream = self.opener()
        if stream is None:
            raise ValueError("no regular file")
        return stream


class _BoundedFile:
    """A file for zipfile and tarfile: no read takes more than its bound, and no position lies
    beyond `bounds.content`.

    After `begin_header` all reads together count as one header, until `begin_content`.
    """

    def __init__(self, file: IO[bytes], bounds: Bounds) -> None:
        self._file = file
        self._bounds = bounds
        self._header_left: int | None = None
        self.tell = file.tell
        self.seekable = file.seekable

    def begin_header(self) -> None:
        self._header_left = self._bounds.header

    def begin_content(self) -> None:
        self._header_left = None

    def read(self, size: int = -1) -> bytes:
        bound = self._header_left
        if bound is None:
            bound = max(self._bounds.header, CHUNK)
        if size > bound:
            raise TooMuch
        data = self._file.read(bound + 1 if size < 0 else size)
        if len(data) > bound:
            raise TooMuch
        if self._header_left is not None:
            self._header_left -= len(data)
        return data

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_SET and position > self._bounds.content:
            raise TooMuch
        return self._file.seek(position, whence)


def archive_entries(archive: Path, bounds: Bounds) -> Iterator[Entry]:
    """The entries of a .zip, a .tar or a .tar.gz; the first bytes tell them apart, not the name.

    The end of the file decides nothing: a tar whose last member is a zip ends like a zip.

    Raises:
        NoArchive: the file is no such archive.
        TooMuch: a header or the content is beyond its bound. Any of `DAMAGED` likewise, while the
            iterator runs.
    """
    with archive.open("rb") as file:
        start = file.read(2)
        file.seek(0)
        if start == b"PK":
            yield from _zip_entries(file, bounds)
        elif start == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield from _tar_entries(cast(IO[bytes], unpacked), bounds)
        else:
            yield from _tar_entries(file, bounds)


def folder_entries(folder: Path) -> Iterator[Entry]:
    """The files in a folder and below; hidden folders are not entered, links are named and not
    followed.
    """
    for root, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in folders:
            path = Path(root, name)
            if path.is_symlink():
                relative = path.relative_to(folder).as_posix()
                yield Entry(
                    relative,
                    0,
                    "a link, not followed",
                    None,
                    lambda: None,
                )
        for name in sorted(names):
            path = Path(root, name)
            status = path.lstat()
            yield Entry(
                name=path.relative_to(folder).as_posix(),
                size=status.st_size,
                problem="" if stat.S_ISREG(status.st_mode) else _NO_FILE,
                modified=_as_time(status.st_mtime),
                opener=partial(_open_without_links, path),
            )


def _as_time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds).replace(microsecond=0)


def _open_without_links(path: Path) -> IO[bytes]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags), "rb")


def _zip_entries(file: IO[bytes], bounds: Bounds) -> Iterator[Entry]:
    """The entries of a zip, whose directory at the end of the file is read in one piece."""
    bounded = cast(IO[bytes], _BoundedFile(file, bounds))
    if not zipfile.is_zipfile(bounded):
        raise NoArchive
    with zipfile.ZipFile(bounded) as archive:
        for info in archive.infolist():
            mode = (
                stat.S_IFMT(info.external_attr >> 16) if info.create_system == 3 else 0
            )
            problem = ""
            if mode not in (0, stat.S_IFREG):
                problem = _NO_FILE
            elif info.compress_type not in _READABLE:
                problem = (
                    "packed in a way that is not read here: ask for an ordinary .zip"
                )
            modified = None
            with contextlib.suppress(ValueError):
                modified = datetime(*info.date_time)
            yield Entry(
                name=_zip_name(info),
                size=info.file_size,
                problem=problem,
                modified=modified,
                opener=partial(archive.open, info),
                is_folder=info.is_dir(),
            )


def _zip_name(info: zipfile.ZipInfo) -> str:
    """The name of a zip's entry: Python reads names without the UTF-8 flag as CP437, but most tools
    write UTF-8 all the same.
    """
    if info.flag_bits & 0x800:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


def _tar_entries(file: IO[bytes], bounds: Bounds) -> Iterator[Entry]:
    """The entries of a tar, which has no directory: each header stands before its file.

    PAX and GNU put long names and maps of sparse files into further headers, as many and as long
    as they like.
    """
    bounded = _BoundedFile(file, bounds)
    bounded.begin_header()
    try:
        tape = tarfile.TarFile(fileobj=cast(IO[bytes], bounded))
    except tarfile.ReadError:
        raise NoArchive from None
    with tape:
        while (info := tape.next()) is not None:
            bounded.begin_content()
            yield Entry(
                name=info.name,
                size=info.size,
                problem="" if info.isreg() else _NO_FILE,
                modified=_as_time(info.mtime) if 0 < info.mtime < 1e11 else None,
                opener=partial(tape.extractfile, info),
                is_folder=info.isdir(),
            )
            tape.members = []  # type: ignore[attr-defined]  # tarfile keeps every member, a million folders too
            bounded.begin_header()
