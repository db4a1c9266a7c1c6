"""Unpack an archive that somebody uploaded: into an empty folder, within limits, plain files only.

What is in it decides nothing about where a file goes: members get numbers for names, and their own names are
kept beside, as text. So no path can escape, no two names can collide, and no link is ever made.
"""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
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
SIDE_FILES = ("submission_metadata.yml", "timestamp.txt")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Incoming:
    """One file of an upload: the path it had there, as text, and where its bytes lie now.

    Attributes:
        parts: the path's parts; never absolute, no "..".
        file: a regular file that holds its bytes.
        modified: when it was written, where the upload knows.
    """

    parts: tuple[str, ...]
    file: Path
    modified: datetime | None = None


@dataclass(frozen=True, slots=True)
class Upload:
    """The files of an upload that are wanted, and what was left out.

    Attributes:
        files: notebooks, and the files that say whose they are.
        refused: what cannot be taken, as "name: reason".
        others: paths of what is no notebook.
    """

    files: tuple[Incoming, ...]
    refused: tuple[str, ...]
    others: tuple[tuple[str, ...], ...]


def open_upload(source: Path, scratch: Path, file_limit: int) -> Upload:
    """The notebooks (and Gradescope's list of submissions) in a folder or an archive.

    Args:
        source: a folder, a .zip or a .tar (also .tar.gz, .tgz).
        scratch: an empty folder to unpack into.
        file_limit: bytes of the largest file that is taken.

    Raises:
        KitError: no such file, not an archive, or too much in it.
    """
    if source.is_dir():
        return _sift(_walk(source), scratch, file_limit)
    if not source.is_file():
        raise KitError(f"{shown(source)} does not exist: name the file or the folder that you downloaded")
    try:
        if zipfile.is_zipfile(source):
            with zipfile.ZipFile(source) as archive:
                return _sift(_zipped(archive), scratch, file_limit)
        if tarfile.is_tarfile(source):
            with tarfile.open(source) as tape:
                return _sift(_taped(tape), scratch, file_limit)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, NotImplementedError) as error:
        raise KitError(f"{shown(source)} cannot be unpacked ({error}): download it again") from error
    raise KitError(f"{shown(source)} is no archive that can be read: name a .zip, a .tar.gz or a folder")


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


def _sift(entries: Iterator[_Entry], scratch: Path, file_limit: int) -> Upload:
    """Unpack what is wanted; sizes are checked as stated and again as they come."""
    files: list[Incoming] = []
    refused: list[str] = []
    others: list[tuple[str, ...]] = []
    total = 0
    for number, entry in enumerate(entries):
        if number >= MAX_ENTRIES:
            raise KitError(f"more than {MAX_ENTRIES} files: this is not an export of one assignment")
        parts = _parts(entry.name)
        if parts and _is_systems_own(parts):
            continue
        reason = _why_not(entry, parts, file_limit)
        if parts and not reason and not _is_notebook(parts):
            others.append(parts)
            continue
        if parts and not reason:
            if total + entry.size > MAX_TOTAL:
                raise KitError(f"more than {MAX_TOTAL // 1_000_000_000} GB of notebooks: collect them in parts")
            target = scratch / str(number)
            written = _copy(entry, target, min(file_limit, entry.size))
            if written is not None:
                total += written
                files.append(Incoming(parts, target, entry.modified))
                continue
            reason = "encrypted, damaged, or larger than it says"
        refused.append(f"{shown(entry.name)}: {reason}")
    return Upload(tuple(files), tuple(refused), tuple(others))


def _is_systems_own(parts: tuple[str, ...]) -> bool:
    """What a system, an editor or a repository keeps for itself: not worth a line."""
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in parts[:-1])
    last = parts[-1]
    return hidden or last.startswith("._") or (last.startswith(".") and not last.endswith(".ipynb"))


def _is_notebook(parts: tuple[str, ...]) -> bool:
    return parts[-1].endswith(".ipynb") or parts[-1] in SIDE_FILES


def _why_not(entry: _Entry, parts: tuple[str, ...] | None, file_limit: int) -> str:
    """Why a member cannot be taken; "" where it can."""
    if entry.problem:
        return entry.problem
    if parts is None:
        return "its path leads out of the upload"
    if parts[-1].lower().endswith((".zip", ".tar", ".gz", ".tgz", ".7z", ".rar")):
        return "an archive in the upload is not unpacked"
    return f"larger than {file_limit >> 20} MB" if _is_notebook(parts) and entry.size > file_limit else ""


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
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, RuntimeError, NotImplementedError, ValueError, OSError):
        written = limit + 1  # RuntimeError: an encrypted member
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
