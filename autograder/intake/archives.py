"""Unpack an archive that somebody uploaded: into an empty folder, within limits, plain files only.

The names in an archive do not decide where a file goes: members get numbers for names, and their
own names are stored beside, as text. So no path can escape, no two names can collide, and no link
is ever made. An archive that a student handed in is opened too, one level deep.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.explain import explain_error
from autograder.basics.handed_in import describe_size, printable_name
from autograder.intake.archive_entries import (
    CHUNK,
    DAMAGED,
    MAX_NAME,
    Bounds,
    Entry,
    NoArchive,
    TooMuch,
    archive_entries,
    folder_entries,
)
from autograder.intake.handed_in_weights import explain_other_name
from autograder.intake.wanted_files import WantedFiles

MAX_ENTRIES = 200_000
"""Files of every kind in a download."""
MAX_TAKEN = 20_000
"""Files that are taken out of a download."""
MAX_TOTAL = 4_000_000_000
"""Bytes of all files together once unpacked: a class of 800 with 5 MB each."""
MAX_WEIGHTS_TOTAL = 16_000_000_000
"""Bytes of all weights together: a class of 1000 with 16 MB each."""
MAX_WITHIN = 64_000_000
"""Bytes of an archive that a student handed in."""
MAX_STATED_WITHIN = 1_000_000_000
"""Bytes of all files in an archive that a student handed in, and `MAX_ENTRIES_WITHIN` files: a
larger archive is skipped, and no other student's.
"""
MAX_ENTRIES_WITHIN = 2_000

_DOWNLOAD_BOUNDS = Bounds(header=16_000_000, content=50_000_000_000)
_HAND_IN_BOUNDS = Bounds(header=2_000_000, content=MAX_STATED_WITHIN)
Parts = tuple[str, ...]
"""The parts of a path in a download."""

_NOTEBOOK = re.compile(r"(.+)\.ipynb(?:\.(?:txt|json))?", re.IGNORECASE | re.DOTALL)
_ARCHIVE = re.compile(r"\.(?:zip|tar|tar\.gz|tgz)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """One file of an upload: the path in the upload, as text, and where the bytes lie now.

    Attributes:
        parts: the path's parts; never absolute, no "..". Of a file in an archive that a student
            handed in, they are the archive's.
        file: a regular file with the bytes; an empty path where they were not unpacked.
        modified: when the file was written, where the upload knows.
        inside: the path within that archive.
    """

    parts: Parts
    file: Path = Path()
    modified: datetime | None = None
    inside: Parts = ()

    @property
    def name(self) -> str:
        """The file's name, without folders."""
        return (self.inside or self.parts)[-1]

    @property
    def display_path(self) -> str:
        """The end of the file's path, as messages write it."""
        return printable_name("/".join((*self.parts[-2:], *self.inside)))

    @property
    def folders(self) -> Parts:
        """The folders above the file; an archive at the top of the download counts as one."""
        if len(self.parts) == 1 and self.inside:
            return (archive_stem(self.parts[0]),)
        return self.parts[:-1]


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file of an upload that was skipped, and why.

    Attributes:
        name: the path as it may be shown.
        parts: the path, empty where that leads out of the upload.
        reason: in words, for the instructor.
        companion: whether the file is nothing to wonder about beside a notebook, like a picture.
    """

    name: str
    parts: Parts
    reason: str
    companion: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Upload:
    """The files of an upload that the kit reads, and the skipped ones."""

    files: tuple[UploadedFile, ...]
    skipped: tuple[SkippedFile, ...]


def notebook_stem(name: str) -> str | None:
    """The name of a notebook without its ending; None for any other file.

    Browsers save unknown files as `.ipynb.txt` or `.ipynb.json`, and old systems use capitals.
    """
    match = _NOTEBOOK.fullmatch(name)
    return match[1] if match else None


def archive_stem(name: str) -> str:
    """An archive's name without its ending."""
    return _ARCHIVE.sub("", name)


def open_upload(
    source: Path,
    scratch: Path,
    wanted: WantedFiles,
) -> Upload:
    """The notebooks in a folder or an archive, weights beside them where the assignment takes any,
    and the files that list their owners and times.

    Args:
        source: a folder, a .zip or a .tar (also .tar.gz, .tgz).
        scratch: an empty folder to unpack into.

    Raises:
        KitError: no such file, not an archive, or too much in it.
    """
    unpacker = _Unpacker(scratch, wanted)
    name = printable_name(source)
    if source.is_dir():
        unpacker.unpack_download(partial(folder_entries, source))
        return unpacker.upload()
    if not source.is_file():
        raise KitError(
            f"{name} does not exist: name the file or the folder that you downloaded"
        )
    try:
        unpacker.unpack_download(partial(archive_entries, source, _DOWNLOAD_BOUNDS))
    except NoArchive:
        raise KitError(
            f"{name} is no archive that can be read: name a .zip, a .tar.gz or a folder"
        ) from None
    except TooMuch:
        last = unpacker.last_entry
        place = f" (at {printable_name(last)})" if last else ""
        raise KitError(
            f"{name} holds far more than an export of one assignment{place}: "
            "unpack it, take that out, and name the folder"
        ) from None
    except DAMAGED as error:
        raise KitError(
            f"{name} cannot be unpacked ({error}): download it again"
        ) from error
    return unpacker.upload()


class _Unpacker:
    """Unpacks the files that the kit reads; sizes are checked as stated and while bytes come."""

    def __init__(self, scratch: Path, wanted: WantedFiles) -> None:
        self._scratch = scratch
        self._wanted = wanted
        self._files: list[UploadedFile] = []
        self._skipped: list[SkippedFile] = []
        self._unpacked = 0
        self._total = 0
        self._weights_total = 0
        self.last_entry = ""

    def upload(self) -> Upload:
        return Upload(tuple(self._files), tuple(self._skipped))

    def unpack_download(self, entries: Callable[[], Iterator[Entry]]) -> None:
        """Unpack or skip each entry of the download.

        The download is read twice: only the whole shows which student's folder holds too much.

        Raises:
            KitError: there is too much in it.
        """
        sizes = []
        for number, entry in enumerate(entries(), 1):
            if number > MAX_ENTRIES:
                raise KitError(
                    f"more than {MAX_ENTRIES} files: this is not an export of one assignment"
                )
            self.last_entry = entry.name
            parts = _split_path(entry.name)
            if (
                parts is not None
                and not _is_system_file(parts)
                and self._is_read(parts)
            ):
                # how large weights may be in all is bounded apart
                is_weights = self._wanted.is_weights(parts[-1])
                sizes.append((parts, 0 if is_weights else entry.size))
        crowded = _find_crowded(sizes)
        for folder, reason in crowded.items():
            self._skip("/".join(folder), folder, reason)
        for entry in entries():
            parts = self._path_of(entry)
            if parts is not None and not any(
                parts[: len(folder)] == folder for folder in crowded
            ):
                self._take(entry, parts)

    def _unpack_hand_in(self, archive: Path, within: Parts) -> None:
        """Unpack an archive that a student handed in, whose path in the download is `within`.

        Raises:
            TooMuch: there is too much in it.
        """
        stated = 0
        for number, entry in enumerate(archive_entries(archive, _HAND_IN_BOUNDS), 1):
            stated += max(entry.size, 0)
            if number > MAX_ENTRIES_WITHIN or stated > MAX_STATED_WITHIN:
                raise TooMuch
            parts = self._path_of(entry, within)
            if parts is not None:
                self._take(entry, parts, within)

    def _path_of(self, entry: Entry, within: Parts = ()) -> Parts | None:
        """The parts of a file's path; None for a folder, for a system's own file, and for a path
        that leads out of the upload, which is noted as skipped.
        """
        if entry.is_folder:
            return None
        parts = _split_path(entry.name)
        if parts is None:
            self._skip(
                entry.name,
                within,
                "its path leads out of the upload",
            )
        elif _is_system_file(parts):
            return None
        return parts

    def _take(
        self,
        entry: Entry,
        parts: Parts,
        within: Parts = (),
    ) -> None:
        name = "/".join((*within, *parts))
        owner = within or parts
        file_name = parts[-1]
        if entry.problem:
            self._skip(name, owner, entry.problem)
        elif _ARCHIVE.search(file_name) and not within:
            self._open_hand_in(entry, parts)
        elif not self._is_read(parts) or (within and not self._is_work(file_name)):
            reason = _explain_skipped(file_name, self._wanted)
            self._skip(
                name,
                owner,
                reason or "not a notebook",
                companion=not reason,
            )
        elif reason := self._too_large(entry, file_name):
            self._skip(name, owner, reason)
        elif file := self._unpack(entry, self._wanted.limit(file_name)):
            inside = parts if within else ()
            self._files.append(
                UploadedFile(
                    owner,
                    file,
                    entry.modified,
                    inside,
                )
            )
        else:
            self._skip(
                name,
                owner,
                "encrypted, damaged, or larger than it says",
            )

    def _open_hand_in(self, entry: Entry, parts: Parts) -> None:
        """Open an archive that a student handed in; without a notebook it is skipped as a whole."""
        files = len(self._files)
        skipped = len(self._skipped)
        reason = "an archive that cannot be unpacked: ask for the notebook itself"
        if entry.size > MAX_WITHIN:
            reason = (
                f"an archive of more than {MAX_WITHIN // 1_000_000} MB is not opened"
            )
        elif archive := self._unpack(entry, MAX_WITHIN):
            try:
                self._unpack_hand_in(archive, parts)
                if len(self._files) > files:
                    return
                reason = "an archive without a notebook that can be taken"
            except (TooMuch, MemoryError):
                reason = "an archive that holds too much: ask for the notebook itself"
            except (NoArchive, *DAMAGED):
                pass
            finally:
                archive.unlink()
        # One line for the archive, and none for the files in it.
        del self._files[files:]
        del self._skipped[skipped:]
        self._skip("/".join(parts), parts, reason)

    def _unpack(self, entry: Entry, limit: int) -> Path | None:
        """The file with the member's bytes; None where the member is larger than it says, or
        damaged.
        """
        if self._total + entry.size > MAX_TOTAL + self._weights_total:
            raise KitError(
                f"more than {MAX_TOTAL // 1_000_000_000} GB of notebooks: collect them in parts"
            )
        self._unpacked += 1
        target = self._scratch / str(self._unpacked)
        written = _copy(entry, target, min(limit, entry.size))
        if written is None:
            return None
        self._total += written
        return target

    def _too_large(self, entry: Entry, file_name: str) -> str:
        """Why a file is too large to be unpacked; "" where it is not. Weights count apart: they
        never keep a notebook from being collected.
        """
        limit = self._wanted.limit(file_name)
        if entry.size > limit:
            return f"larger than {describe_size(limit)}"
        if self._wanted.is_weights(file_name):
            if self._weights_total + entry.size > MAX_WEIGHTS_TOTAL:
                return "more weights than are unpacked at once: collect in parts"
            self._weights_total += entry.size
        return ""

    def _is_read(self, parts: Parts) -> bool:
        """Whether the kit reads a file of that path: a notebook or what lies beside it, an
        archive, or a description.
        """
        name = parts[-1]
        if self._is_work(name) or _ARCHIVE.search(name):
            return True
        return self._wanted.describes(name)

    def _is_work(self, name: str) -> bool:
        return notebook_stem(name) is not None or self._wanted.lies_beside(name)

    def _skip(
        self,
        name: str,
        parts: Parts,
        reason: str,
        *,
        companion: bool = False,
    ) -> None:
        self._skipped.append(
            SkippedFile(
                printable_name(name),
                parts,
                reason,
                companion,
            )
        )


def _is_system_file(parts: Parts) -> bool:
    """Whether a system, an editor or a repository keeps the file for itself: not worth a line."""
    *folders, name = parts
    if any(folder.startswith(".") or folder == "__MACOSX" for folder in folders):
        return True
    return name.startswith("._") or (
        name.startswith(".") and notebook_stem(name) is None
    )


def _find_crowded(files: Sequence[tuple[Parts, int]]) -> dict[Parts, str]:
    """Folders of single hand-ins that alone hold too much, and why, where the download holds too
    much altogether.

    Hand-ins are the folders right below the deepest folder that all files lie in.

    Args:
        files: path and size of every file that would be unpacked.
    """
    if len(files) <= MAX_TAKEN and sum(size for _, size in files) <= MAX_TOTAL:
        return {}
    folders = [parts[:-1] for parts, _ in files]
    depth = 1
    for first, last in zip(min(folders), max(folders), strict=False):
        if first != last:
            break
        depth += 1
    counts = Counter[Parts]()
    sizes = Counter[Parts]()
    for parts, size in files:
        if len(parts) > depth:
            counts[parts[:depth]] += 1
            sizes[parts[:depth]] += size
    crowded = sorted(
        folder
        for folder in counts
        if counts[folder] > MAX_ENTRIES_WITHIN or sizes[folder] > MAX_STATED_WITHIN
    )
    if len(files) - sum(counts[folder] for folder in crowded) > MAX_TAKEN:
        raise KitError(
            f"more than {MAX_TAKEN} notebooks: this is not an export of one assignment"
        )
    what_to_do = "ask for the one that counts"
    return {
        folder: f"holds {counts[folder]} notebooks: {what_to_do}" for folder in crowded
    }


def _explain_skipped(name: str, wanted: WantedFiles) -> str:
    """Why a file is skipped that may be somebody's work; "" for any other file."""
    if wanted.has_weights_ending(name):
        return explain_other_name(wanted.assignment)
    name = name.lower()
    if name.endswith((".html", ".htm")):
        return "a web page, not a notebook: ask for the .ipynb file"
    if name.endswith((".7z", ".rar")):
        return (
            "an archive that is not opened here: ask for the notebook itself, or a .zip"
        )
    if _ARCHIVE.search(name):
        return "an archive in an archive is not opened: ask for the notebook itself"
    return ""


def _copy(
    entry: Entry,
    target: Path,
    limit: int,
) -> int | None:
    """Copy at most `limit` bytes; None where there are more, or the member is damaged.

    Raises:
        KitError: the disk that is written to is at fault: as one of `DAMAGED` that would be the
            student's.
    """
    written = 0
    try:
        with target.open("xb") as sink:
            for chunk in _read_chunks(entry):
                written += len(chunk)
                if written > limit:
                    break
                sink.write(chunk)
    except OSError as error:
        named = OSError(error.errno, error.strerror, str(target))
        raise KitError(str(explain_error(named))) from error
    except _Damaged:
        written = limit + 1
    if written > limit:
        target.unlink(missing_ok=True)
        return None
    return written


class _Damaged(Exception):
    """A member cannot be read to its end."""


def _read_chunks(entry: Entry) -> Iterator[bytes]:
    try:
        with entry.open() as source:
            while chunk := source.read(CHUNK):
                yield chunk
    except DAMAGED as error:
        raise _Damaged from error


def _split_path(name: str) -> Parts | None:
    """The parts of a member's path; None where the path is absolute, climbs, or is longer than a
    path can be.
    """
    if len(name) > MAX_NAME or "\0" in name:
        return None
    name = name.replace("\\", "/")
    is_absolute = name.startswith("/") or name[1:2] == ":"
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if is_absolute or ".." in parts or not parts:
        return None
    return parts
