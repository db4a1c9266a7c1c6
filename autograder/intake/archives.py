"""Unpack an archive that somebody uploaded: into an empty folder, within limits, plain files only.

What is in it decides nothing about where a file goes: members get numbers for names, and their own
names are kept beside, as text. So no path can escape, no two names can collide, and no link is ever
made. An archive that a student handed in is opened too, one level deep.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import takewhile
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.explain import explain_error
from autograder.basics.handed_in import printable_name
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

MAX_ENTRIES = 200_000
"""Files in a download, whatever they are."""
MAX_TAKEN = 20_000
"""Files that are taken out of it."""
MAX_TOTAL = 4_000_000_000
"""Bytes of all files together once unpacked: a class of 800 with 5 MB each."""
MAX_WITHIN = 64_000_000
"""Bytes of an archive that a student handed in."""
MAX_STATED_WITHIN = 1_000_000_000
"""Bytes of everything in it, and `MAX_ENTRIES_WITHIN` files: beyond, it alone is left out, and
nobody else.
"""
MAX_ENTRIES_WITHIN = 2_000

_OF_A_DOWNLOAD = Bounds(header=16_000_000, content=50_000_000_000)
_OF_A_HAND_IN = Bounds(header=2_000_000, content=MAX_STATED_WITHIN)
_NOTEBOOK = re.compile(r"(.+)\.ipynb(?:\.(?:txt|json))?", re.IGNORECASE | re.DOTALL)
_ARCHIVE = re.compile(r"\.(?:zip|tar|tar\.gz|tgz)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """One file of an upload: the path it had there, as text, and where its bytes lie now.

    Attributes:
        parts: the path's parts; never absolute, no "..". Of a file in an archive that a student
            handed in, they are the archive's.
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
    def display_path(self) -> str:
        """The end of the file's path, as messages write it."""
        return printable_name("/".join((*self.parts[-2:], *self.inside)))

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that it lies in, to which an archive at the top counts too."""
        return self.parts[:-1] or ((archive_stem(self.parts[-1]),) if self.inside else ())


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """Something in an upload that was not taken, and why.

    Attributes:
        name: as it may be shown.
        parts: its path, empty where that leads out of the upload.
        reason: in words, for the instructor.
        companion: whether it is nothing to wonder about where it lies beside a notebook, like a
            picture.
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

    files: tuple[UploadedFile, ...]
    skipped: tuple[SkippedFile, ...]


def notebook_stem(name: str) -> str | None:
    """The name without its ending where it is a notebook's; None where it is none.

    Browsers save what they do not know as `.ipynb.txt` or `.ipynb.json`, and old systems shout.
    """
    found = _NOTEBOOK.fullmatch(name)
    return found[1] if found else None


def archive_stem(name: str) -> str:
    """An archive's name without its ending."""
    return _ARCHIVE.sub("", name)


def open_upload(
    source: Path, scratch: Path, file_limit: int, describes: Callable[[str], bool]
) -> Upload:
    """The notebooks in a folder or an archive, and the files that say whose they are.

    Args:
        source: a folder, a .zip or a .tar (also .tar.gz, .tgz).
        scratch: an empty folder to unpack into.
        file_limit: bytes of the largest file that is taken.
        describes: whether a file, by its name, says whose notebooks are, or when they came.

    Raises:
        KitError: no such file, not an archive, or too much in it.
    """
    sifter = _Sifter(scratch, file_limit, describes)
    if source.is_dir():
        sifter.sift(partial(folder_entries, source))
        return sifter.upload()
    if not source.is_file():
        raise KitError(
            f"{printable_name(source)} does not exist: name the file or the folder that you "
            "downloaded"
        )
    try:
        sifter.sift(partial(archive_entries, source, _OF_A_DOWNLOAD))
    except NoArchive:
        raise KitError(
            f"{printable_name(source)} is no archive that can be read: name a .zip, a .tar.gz or "
            "a folder"
        ) from None
    except TooMuch:
        raise KitError(
            f"{printable_name(source)} holds far more than an export of one "
            f"assignment{sifter.last_seen()}: "
            "unpack it, take that out, and name the folder"
        ) from None
    except DAMAGED as error:
        raise KitError(
            f"{printable_name(source)} cannot be unpacked ({error}): download it again"
        ) from error
    return sifter.upload()


class _Sifter:
    """Unpacks what is wanted; sizes are checked as stated and again as they come."""

    def __init__(self, scratch: Path, file_limit: int, describes: Callable[[str], bool]) -> None:
        self._scratch, self._file_limit, self._describes = scratch, file_limit, describes
        self._files: list[UploadedFile] = []
        self._skipped: list[SkippedFile] = []
        self._unpacked = self._total = 0
        self._last = ""

    def upload(self) -> Upload:
        return Upload(tuple(self._files), tuple(self._skipped))

    def last_seen(self) -> str:
        """Where in the download the reading stopped, for a message."""
        return f" (at {printable_name(self._last)})" if self._last else ""

    def sift(self, entries: Callable[[], Iterator[Entry]]) -> None:
        """Take or leave each entry of the download, which is read twice: who brings too much shows
        in the whole alone.

        Raises:
            KitError: there is too much in it.
        """
        wanted = []
        for number, entry in enumerate(entries(), 1):
            if number > MAX_ENTRIES:
                raise KitError(
                    f"more than {MAX_ENTRIES} files: this is not an export of one assignment"
                )
            self._last = entry.name
            if (
                (parts := _parts(entry.name)) is not None
                and not _is_systems_own(parts)
                and self._is_wanted(parts)
            ):
                wanted.append((parts, entry.size))
        crowded = _crowded(wanted)
        for folder, reason in crowded.items():
            self._leave("/".join(folder), folder, reason)
        for entry in entries():
            parts = self._path(entry)
            if parts is not None and not any(parts[: len(folder)] == folder for folder in crowded):
                self._take(entry, parts, ())

    def _sift_within(self, entries: Iterator[Entry], within: tuple[str, ...]) -> None:
        """As `sift`, of an archive that a student handed in, whose path in the download is
        `within`.

        Raises:
            TooMuch: there is too much in it.
        """
        stated = 0
        for number, entry in enumerate(entries, 1):
            stated += max(entry.size, 0)
            if number > MAX_ENTRIES_WITHIN or stated > MAX_STATED_WITHIN:
                raise TooMuch
            parts = self._path(entry, within)
            if parts is not None:
                self._take(entry, parts, within)

    def _path(self, entry: Entry, within: tuple[str, ...] = ()) -> tuple[str, ...] | None:
        """The parts of a file's path; None for a folder, for what a system keeps for itself, and
        for what is no path, of which a line is noted.
        """
        if entry.is_folder:
            return None
        parts = _parts(entry.name)
        if parts is None:
            self._leave(entry.name, within, "its path leads out of the upload")
        return None if parts is None or _is_systems_own(parts) else parts

    def _take(self, entry: Entry, parts: tuple[str, ...], within: tuple[str, ...]) -> None:
        name, where = "/".join((*within, *parts)), within or parts
        packed = bool(_ARCHIVE.search(parts[-1]))
        if entry.problem:
            self._leave(name, where, entry.problem)
        elif packed and not within:
            self._open_within(entry, parts)
        elif not self._is_wanted(parts) or (within and notebook_stem(parts[-1]) is None):
            reason = _why_not(parts[-1])
            self._leave(name, where, reason or "not a notebook", companion=not reason)
        elif entry.size > self._file_limit:
            self._leave(name, where, f"larger than {self._file_limit >> 20} MB")
        elif file := self._unpack(entry, self._file_limit):
            self._files.append(UploadedFile(where, file, entry.modified, parts if within else ()))
        else:
            self._leave(name, where, "encrypted, damaged, or larger than it says")

    def _open_within(self, entry: Entry, parts: tuple[str, ...]) -> None:
        """An archive that a student handed in."""
        taken, left = len(self._files), len(self._skipped)
        reason = f"an archive of more than {MAX_WITHIN // 1_000_000} MB is not opened"
        if entry.size <= MAX_WITHIN:
            reason = "an archive that cannot be unpacked: ask for the notebook itself"
            packed = self._unpack(entry, MAX_WITHIN)
            try:
                if packed is not None:
                    self._sift_within(archive_entries(packed, _OF_A_HAND_IN), parts)
                    reason = (
                        ""
                        if len(self._files) > taken
                        else "an archive without a notebook that can be taken"
                    )
            except (TooMuch, MemoryError):
                reason = "an archive that holds too much: ask for the notebook itself"
            except (NoArchive, *DAMAGED):
                pass
            if packed is not None:
                packed.unlink()
        if reason:  # one line for the archive, not one for each thing in it
            del self._files[taken:], self._skipped[left:]
            self._leave("/".join(parts), parts, reason)

    def _unpack(self, entry: Entry, limit: int) -> Path | None:
        """The member's bytes as a file of its own; None where there are more than it says, or it is
        damaged.
        """
        if self._total + entry.size > MAX_TOTAL:
            raise KitError(
                f"more than {MAX_TOTAL // 1_000_000_000} GB of notebooks: collect them in parts"
            )
        self._unpacked += 1
        target = self._scratch / str(self._unpacked)
        written = _copy(entry, target, min(limit, entry.size))
        self._total += written or 0
        return None if written is None else target

    def _is_wanted(self, parts: tuple[str, ...]) -> bool:
        """Whether a file of that path is taken: a notebook, an archive, or what says whose they
        are.
        """
        name = parts[-1]
        return (
            notebook_stem(name) is not None or bool(_ARCHIVE.search(name)) or self._describes(name)
        )

    def _leave(
        self, name: str, parts: tuple[str, ...], reason: str, *, companion: bool = False
    ) -> None:
        self._skipped.append(SkippedFile(printable_name(name), parts, reason, companion))


def _is_systems_own(parts: tuple[str, ...]) -> bool:
    """What a system, an editor or a repository keeps for itself: not worth a line."""
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in parts[:-1])
    last = parts[-1]
    return hidden or last.startswith("._") or (last.startswith(".") and notebook_stem(last) is None)


def _crowded(wanted: Sequence[tuple[tuple[str, ...], int]]) -> dict[tuple[str, ...], str]:
    """Folders of single hand-ins that alone hold too much, and why, where the download holds too
    much altogether.

    Hand-ins are the folders right below the deepest one that everything lies in.

    Args:
        wanted: path and size of everything that would be taken.
    """
    if len(wanted) <= MAX_TAKEN and sum(size for _, size in wanted) <= MAX_TOTAL:
        return {}
    folders = [parts[:-1] for parts, _ in wanted]
    pairs = zip(min(folders), max(folders), strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    counts, sizes = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for parts, size in wanted:
        if len(parts) > shared + 1:
            counts[parts[: shared + 1]] += 1
            sizes[parts[: shared + 1]] += size
    crowded = {
        folder
        for folder in counts
        if counts[folder] > MAX_ENTRIES_WITHIN or sizes[folder] > MAX_STATED_WITHIN
    }
    if len(wanted) - sum(counts[folder] for folder in crowded) > MAX_TAKEN:
        raise KitError(f"more than {MAX_TAKEN} notebooks: this is not an export of one assignment")
    return {
        folder: f"holds {counts[folder]} notebooks: ask for the one that counts"
        for folder in sorted(crowded)
    }


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


def _copy(entry: Entry, target: Path, limit: int) -> int | None:
    """Copy at most `limit` bytes; None where there are more, or the member is damaged.

    Raises:
        KitError: the disk that is written to is at fault: as one of `DAMAGED` that would be the
            student's.
    """
    written = 0
    try:
        with target.open("xb") as sink:
            for chunk in _chunks(entry):
                written += len(chunk)
                if written > limit:
                    break
                sink.write(chunk)
    except OSError as error:
        raise KitError(
            str(explain_error(OSError(error.errno, error.strerror, str(target))))
        ) from error
    except _Damaged:
        written = limit + 1
    if written > limit:
        target.unlink(missing_ok=True)
        return None
    return written


class _Damaged(Exception):
    """A member cannot be read to its end."""


def _chunks(entry: Entry) -> Iterator[bytes]:
    try:
        with entry.open() as source:
            while chunk := source.read(CHUNK):
                yield chunk
    except DAMAGED as error:
        raise _Damaged from error


def _parts(name: str) -> tuple[str, ...] | None:
    """The parts of a member's path; None where it is absolute, climbs, or is longer than a path can
    be.
    """
    if len(name) > MAX_NAME:
        return None
    name = name.replace("\\", "/")
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if (
        name.startswith("/")
        or ".." in parts
        or "\0" in name
        or not parts
        or (len(name) > 1 and name[1] == ":")
    ):
        return None
    return parts
