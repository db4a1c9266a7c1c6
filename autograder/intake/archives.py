"""Unpack an archive that somebody uploaded: into an empty folder, within limits, plain files only.

What is in it decides nothing about where a file goes: members get numbers for names, and their own names are
kept beside, as text. So no path can escape, no two names can collide, and no link is ever made. An archive that a
student handed in is opened too, one level deep.
"""

from __future__ import annotations

import lzma
import os
import re
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
from typing import IO

from autograder.errors import KitError
from autograder.handed_in import shown

MAX_ENTRIES = 20_000
MAX_TOTAL = 4_000_000_000
"""Bytes of all files together once unpacked: a class of 800 with 5 MB each."""
MAX_STATED = 50_000_000_000
"""Bytes that a tar may hold altogether: it has to be read through, even past what is not wanted."""
MAX_WITHIN = 64_000_000
"""Bytes of an archive that a student handed in."""
MAX_STATED_WITHIN = 1_000_000_000
"""Bytes of everything in it, and `MAX_ENTRIES_WITHIN` files: beyond, it alone is left out, and nobody else."""
MAX_ENTRIES_WITHIN = 2_000

_CHUNK = 1 << 20
_NOTEBOOK = re.compile(r"(.+)\.ipynb(?:\.(?:txt|json))?", re.IGNORECASE | re.DOTALL)
_ARCHIVE = re.compile(r"\.(?:zip|tar|tar\.gz|tgz)$", re.IGNORECASE)
RECEIPT = re.compile(r"_attempt_\d{4}(?:-\d\d){5}\.txt$")
"""What Blackboard writes of a hand-in, beside its files."""
_CLOSED = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error,
    EOFError, OSError, ValueError, RuntimeError,
)  # fmt: skip
"""What a damaged or an encrypted archive raises."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """One file of an upload: the path it had there, as text, and where its bytes lie now.

    Attributes:
        parts: the path's parts; never absolute, no "..". Of a file in an archive that a student handed in, they are
            the archive's.
        file: a regular file that holds its bytes; an empty path where they were not taken.
        modified: when it was written, where the upload knows.
        inside: the path within that archive.
    """

    parts: tuple[str, ...]
    file: Path = Path()
    modified: datetime | None = None
    inside: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's own name, without folders."""
        return (self.inside or self.parts)[-1]

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that it lies in, to which an archive at the top counts too."""
        return self.parts[:-1] or ((archive_stem(self.parts[-1]),) if self.inside else ())


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something in an upload that was not taken, and why.

    Attributes:
        name: as it may be shown.
        parts: its path, empty where that leads out of the upload.
        reason: in words, for the instructor.
        companion: whether it is nothing to wonder about where it lies beside a notebook, like a picture.
    """

    name: str
    parts: tuple[str, ...]
    reason: str
    companion: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Upload:
    """The files of an upload that are wanted, and what was left out."""

    files: tuple[Incoming, ...]
    left_out: tuple[LeftOut, ...]


def notebook_stem(name: str) -> str | None:
    """The name without its ending where it is a notebook's; None where it is none.

    Browsers save what they do not know as `.ipynb.txt` or `.ipynb.json`, and old systems shout.
    """
    found = _NOTEBOOK.fullmatch(name)
    return found[1] if found else None


def archive_stem(name: str) -> str:
    """An archive's name without its ending."""
    return _ARCHIVE.sub("", name)


def open_upload(source: Path, scratch: Path, file_limit: int) -> Upload:
    """The notebooks in a folder or an archive, and the files that say whose they are.

    Args:
        source: a folder, a .zip or a .tar (also .tar.gz, .tgz).
        scratch: an empty folder to unpack into.
        file_limit: bytes of the largest file that is taken.

    Raises:
        KitError: no such file, not an archive, or too much in it.
    """
    sifter = _Sifter(scratch, file_limit)
    if source.is_dir():
        sifter.sift(_walk(source))
        return sifter.upload()
    if not source.is_file():
        raise KitError(f"{shown(source)} does not exist: name the file or the folder that you downloaded")
    try:
        if not sifter.open(source):
            raise KitError(f"{shown(source)} is no archive that can be read: name a .zip, a .tar.gz or a folder")
    except _CLOSED as error:
        raise KitError(f"{shown(source)} cannot be unpacked ({error}): download it again") from error
    return sifter.upload()


@dataclass(frozen=True, slots=True)
class _Entry:
    """A member before it is unpacked: what it says of itself, and how to read it."""

    name: str
    size: int
    problem: str
    modified: datetime | None
    opener: Callable[[], IO[bytes] | None]

    def open(self) -> IO[bytes]:
        stream = self.opener()
        if stream is None:
            raise ValueError("no regular file")
        return stream


class _TooMuch(Exception):
    """An archive that a student handed in holds more than one assignment can."""


class _Sifter:
    """Unpacks what is wanted; sizes are checked as stated and again as they come."""

    def __init__(self, scratch: Path, file_limit: int) -> None:
        self._scratch, self._file_limit = scratch, file_limit
        self._files: list[Incoming] = []
        self._left_out: list[LeftOut] = []
        self._unpacked = self._total = 0

    def upload(self) -> Upload:
        return Upload(tuple(self._files), tuple(self._left_out))

    def open(self, archive: Path, within: tuple[str, ...] = ()) -> bool:
        """Sift an archive; `within` is its own path where it came in the upload. False where it is none."""
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                self.sift(_zipped(zipped), within)
        elif tarfile.is_tarfile(archive):
            with tarfile.open(archive) as tape:
                self.sift(_taped(tape), within)
        else:
            return False
        return True

    def sift(self, entries: Iterator[_Entry], within: tuple[str, ...] = ()) -> None:
        """Take or leave each entry.

        Raises:
            KitError: there is too much in the upload.
            _TooMuch: there is too much in an archive that came in it.
        """
        stated = 0
        for number, entry in enumerate(entries, 1):
            stated += entry.size
            if within and (number > MAX_ENTRIES_WITHIN or stated > MAX_STATED_WITHIN):
                raise _TooMuch
            if number > MAX_ENTRIES:
                raise KitError(f"more than {MAX_ENTRIES} files: this is not an export of one assignment")
            parts = _parts(entry.name)
            if parts is None:
                self._leave(entry.name, within, "its path leads out of the upload")
            elif not _is_systems_own(parts):
                self._take(entry, parts, within)

    def _take(self, entry: _Entry, parts: tuple[str, ...], within: tuple[str, ...]) -> None:
        name, where = "/".join((*within, *parts)), within or parts
        packed = bool(_ARCHIVE.search(parts[-1]))
        if entry.problem:
            self._leave(name, where, entry.problem)
        elif packed and not within:
            self._open_within(entry, parts)
        elif notebook_stem(parts[-1]) is None and (within or not _says_whose(parts)):
            reason = _why_not(parts[-1])
            self._leave(name, where, reason or "not a notebook", companion=not reason)
        elif entry.size > self._file_limit:
            self._leave(name, where, f"larger than {self._file_limit >> 20} MB")
        elif file := self._unpack(entry, self._file_limit):
            self._files.append(Incoming(where, file, entry.modified, parts if within else ()))
        else:
            self._leave(name, where, "encrypted, damaged, or larger than it says")

    def _open_within(self, entry: _Entry, parts: tuple[str, ...]) -> None:
        """An archive that a student handed in."""
        taken, left = len(self._files), len(self._left_out)
        reason = f"an archive of more than {MAX_WITHIN // 1_000_000} MB is not opened"
        if entry.size <= MAX_WITHIN:
            reason = "an archive that cannot be unpacked: ask for the notebook itself"
            packed = self._unpack(entry, MAX_WITHIN)
            try:
                if packed is not None and self.open(packed, parts):
                    reason = "" if len(self._files) > taken else "an archive without a notebook that can be taken"
            except _TooMuch:
                reason = "an archive that holds too much: ask for the notebook itself"
            except _CLOSED:
                pass
            if packed is not None:
                packed.unlink()
        if reason:  # one line for the archive, not one for each thing in it
            del self._files[taken:], self._left_out[left:]
            self._leave("/".join(parts), parts, reason)

    def _unpack(self, entry: _Entry, limit: int) -> Path | None:
        """The member's bytes as a file of its own; None where there are more than it says, or it is damaged."""
        if self._total + entry.size > MAX_TOTAL:
            raise KitError(f"more than {MAX_TOTAL // 1_000_000_000} GB of notebooks: collect them in parts")
        self._unpacked += 1
        target = self._scratch / str(self._unpacked)
        written = _copy(entry, target, min(limit, entry.size))
        self._total += written or 0
        return None if written is None else target

    def _leave(self, name: str, parts: tuple[str, ...], reason: str, *, companion: bool = False) -> None:
        self._left_out.append(LeftOut(shown(name), parts, reason, companion))


def _is_systems_own(parts: tuple[str, ...]) -> bool:
    """What a system, an editor or a repository keeps for itself: not worth a line."""
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in parts[:-1])
    last = parts[-1]
    return hidden or last.startswith("._") or (last.startswith(".") and notebook_stem(last) is None)


def _says_whose(parts: tuple[str, ...]) -> bool:
    """Whether the file says whose notebooks are, or when they came: Gradescope's list, nbgrader's note, a receipt."""
    return parts[-1] in ("submission_metadata.yml", "timestamp.txt") or bool(RECEIPT.search(parts[-1]))


def _why_not(name: str) -> str:
    """Why a file is not taken that may be somebody's work; "" where it is something else."""
    lower = name.lower()
    if lower.endswith((".html", ".htm")):
        return "a web page, not a notebook: ask for the .ipynb file"
    if lower.endswith((".7z", ".rar")):
        return "an archive that is not opened here: ask for the notebook itself, or a .zip"
    if _ARCHIVE.search(lower):
        return "an archive in an archive is not opened: ask for the notebook itself"
    return ""


def _copy(entry: _Entry, target: Path, limit: int) -> int | None:
    """Copy at most `limit` bytes; None where there are more, or the member is damaged."""
    written = 0
    try:
        with entry.open() as source, target.open("xb") as sink:
            while chunk := source.read(_CHUNK):
                written += len(chunk)
                if written > limit:
                    break
                sink.write(chunk)
    except _CLOSED:
        written = limit + 1
    if written > limit:
        target.unlink(missing_ok=True)
        return None
    return written


def _parts(name: str) -> tuple[str, ...] | None:
    """The parts of a member's path; None where it is absolute or climbs."""
    name = name.replace("\\", "/")
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts or "\0" in name or not parts or (len(name) > 1 and name[1] == ":"):
        return None
    return parts


def _walk(folder: Path) -> Iterator[_Entry]:
    for here, folders, names in os.walk(folder, followlinks=False):
        folders.sort()
        for path in (Path(here) / name for name in folders):
            if path.is_symlink():
                yield _Entry(path.relative_to(folder).as_posix(), 0, "a link, not followed", None, lambda: None)
        for name in sorted(names):
            path = Path(here) / name
            status = path.lstat()
            problem = "" if stat.S_ISREG(status.st_mode) else "a link or a device, not a file"
            modified = datetime.fromtimestamp(status.st_mtime).replace(microsecond=0)
            yield _Entry(path.relative_to(folder).as_posix(), status.st_size, problem, modified, _opener(path))


def _opener(path: Path) -> Callable[[], IO[bytes]]:
    return lambda: os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def _zipped(archive: zipfile.ZipFile) -> Iterator[_Entry]:
    for info in archive.infolist():
        if info.is_dir():
            continue
        mode = stat.S_IFMT(info.external_attr >> 16) if info.create_system == 3 else 0
        problem = "a link or a device, not a file" if mode not in (0, stat.S_IFREG) else ""
        try:
            modified = datetime(*info.date_time)
        except ValueError:
            modified = None
        yield _Entry(_zip_name(info), info.file_size, problem, modified, partial(archive.open, info))


def _zip_name(info: zipfile.ZipInfo) -> str:
    """Names without the UTF-8 flag are read as CP437 by Python; most tools write UTF-8 all the same."""
    if info.flag_bits & 0x800:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


def _taped(tape: tarfile.TarFile) -> Iterator[_Entry]:
    stated = 0
    for info in tape:
        stated += info.size
        if stated > MAX_STATED:
            raise KitError(f"holds more than {MAX_STATED // 1_000_000_000} GB: this is not an export of one assignment")
        if info.isdir():
            continue
        problem = "" if info.isreg() else "a link or a device, not a file"
        modified = datetime.fromtimestamp(info.mtime).replace(microsecond=0) if 0 < info.mtime < 1e11 else None
        yield _Entry(info.name, info.size, problem, modified, partial(tape.extractfile, info))
