"""What a folder, a zip or a tar holds, entry by entry, within bounds on every header.

A header states how long the header after it is, and zipfile and tarfile read that much at once: 6
MB of tar.gz whose PAX header is 6 GB long would end the whole command. So both libraries get a file
that refuses such a read.
"""

from __future__ import annotations

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
MAX_NAME = 4_096
"""Characters of a path in an archive: what Linux takes."""

_READABLE = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""How a zip's files may be compressed. zipfile unpacks bzip2 and LZMA without a bound: 1 MB of them
becomes 20 GB.
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
"""What a damaged or an encrypted archive raises."""


class NoArchive(Exception):
    """The file is no archive that is read here."""


class TooMuch(Exception):
    """An archive holds more than it may: too many entries, or a header beyond its bound."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an archive may hold.

    Attributes:
        header: bytes of one header: a zip's whole directory, or all that stands before one file of
            a tar.
        content: bytes of a tar once unpacked: all of it has to be read, even past what is not
            wanted.
    """

    header: int
    content: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A member before it is unpacked: what it says of itself, and how to read it.

    Attributes:
        problem: why it cannot be taken, or "".
        is_folder: it has no content of its own.
    """

    name: str
    size: int
    problem: str
    modified: datetime | None
    opener: Callable[[], IO[bytes] | None]
    is_folder: bool = False

    def open(self) -> IO[bytes]:
        """Its content. Raises: any of `DAMAGED`."""
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
        self._file, self._bounds = file, bounds
        self._header_left: int | None = None
        self.tell, self.seekable = file.tell, file.seekable

    def begin_header(self) -> None:
        self._header_left = self._bounds.header

    def begin_content(self) -> None:
        self._header_left = None

    def read(self, size: int = -1) -> bytes:
        bound = max(self._bounds.header, CHUNK) if self._header_left is None else self._header_left
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
    """The entries of a .zip, a .tar or a .tar.gz, whatever it is called: its first bytes say what
    it is.

    The end of the file decides nothing: a tar whose last member is a zip ends like a zip.

    Raises:
        NoArchive: it is none of these.
        TooMuch: a header or the content is beyond its bound. Any of `DAMAGED` likewise, while
            entries are asked for.
    """
    with archive.open("rb") as file:
        start = file.read(2)
        if start == b"PK":
            yield from _zip_entries(file, bounds)
        elif start == b"\x1f\x8b":
            file.seek(0)
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield from _tar_entries(cast(IO[bytes], unpacked), bounds)
        else:
            file.seek(0)
            yield from _tar_entries(file, bounds)


def folder_entries(folder: Path) -> Iterator[Entry]:
    """The files in a folder and below; hidden folders are not entered, links are named and not
    followed.
    """
    for here, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (Path(here) / name for name in folders):
            if path.is_symlink():
                yield Entry(
                    path.relative_to(folder).as_posix(),
                    0,
                    "a link, not followed",
                    None,
                    lambda: None,
                )
        for name in sorted(names):
            path = Path(here) / name
            status = path.lstat()
            problem = "" if stat.S_ISREG(status.st_mode) else "a link or a device, not a file"
            modified = datetime.fromtimestamp(status.st_mtime).replace(microsecond=0)
            yield Entry(
                path.relative_to(folder).as_posix(),
                status.st_size,
                problem,
                modified,
                _opener(path),
            )


def _opener(path: Path) -> Callable[[], IO[bytes]]:
    return lambda: os.fdopen(
        os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb"
    )


def _zip_entries(file: IO[bytes], bounds: Bounds) -> Iterator[Entry]:
    """The directory at a zip's end is read in one piece, and with it everything that the zip says
    of its entries.
    """
    bounded = cast(IO[bytes], _BoundedFile(file, bounds))
    if not zipfile.is_zipfile(bounded):
        raise NoArchive
    with zipfile.ZipFile(bounded) as archive:
        for info in archive.infolist():
            mode = stat.S_IFMT(info.external_attr >> 16) if info.create_system == 3 else 0
            problem = "a link or a device, not a file" if mode not in (0, stat.S_IFREG) else ""
            if info.compress_type not in _READABLE:
                problem = (
                    problem or "packed in a way that is not read here: ask for an ordinary .zip"
                )
            try:
                modified = datetime(*info.date_time)
            except ValueError:
                modified = None
            opener = partial(archive.open, info)
            yield Entry(_zip_name(info), info.file_size, problem, modified, opener, info.is_dir())


def _zip_name(info: zipfile.ZipInfo) -> str:
    """Names without the UTF-8 flag are read as CP437 by Python; most tools write UTF-8 all the
    same.
    """
    if info.flag_bits & 0x800:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


def _tar_entries(file: IO[bytes], bounds: Bounds) -> Iterator[Entry]:
    """A tar has no directory: each header stands before its file. PAX and GNU put long names and
    maps of sparse files into headers of their own, as many and as long as they like.
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
            modified = (
                datetime.fromtimestamp(info.mtime).replace(microsecond=0)
                if 0 < info.mtime < 1e11
                else None
            )
            problem = "" if info.isreg() else "a link or a device, not a file"
            yield Entry(
                info.name,
                info.size,
                problem,
                modified,
                partial(tape.extractfile, info),
                info.isdir(),
            )
            tape.members = []  # type: ignore[attr-defined]  # tarfile keeps every member, a million folders too
            bounded.begin_header()
