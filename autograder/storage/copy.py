"""A folder's copy on this disk, and what of it is known to stand at the folder's address.

<kept>/storage/<name>/          the copy
<kept>/storage/<name>.index     a line for each file that is the same here and there
<kept>/storage/<name>.id        a number that tells it from every other copy
<kept>/storage/<name>.aside/    what was changed here while somebody changed it there
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import IO

from autograder.errors import ResultsInUse
from autograder.whole_files import is_part, write_whole

IN_USE = ".in-use"
"""The object that says who writes into a folder."""

_PATIENCE = 5.0
"""Seconds that the courier of a run which was killed may take to end."""
_LONGEST_PART, _LONGEST_PATH = 255, 3000
_READ = 1 << 20

Stamp = tuple[int, int, int]
"""Size, time of change in nanoseconds, number of the file: another one means that a file was written."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as the address lists it.

    Attributes:
        signature: changes with the content.
    """

    size: int
    signature: str


@dataclass(frozen=True, slots=True)
class Known:
    """A file that is the same here and there.

    Attributes:
        signature: as listed there.
        stamp: as it lies here.
        md5: of its content; "" where it was too large to be fetched.
    """

    signature: str
    stamp: Stamp
    md5: str


@dataclass(frozen=True, slots=True)
class Difference:
    """What a listing says that must be done here.

    Attributes:
        fetch: what changed there.
        remove: what is not there any more, and did not change here.
    """

    fetch: tuple[str, ...]
    remove: tuple[str, ...]


def why_no_file(key: str) -> str:
    """Why an object of this name cannot be a file of the copy; "" where it can."""
    parts = key.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "its name has an empty part, . or .."
    try:
        lengths = [len(os.fsencode(part)) for part in parts]
    except UnicodeEncodeError:
        return "its name is not text"
    if "\0" in key:
        return "its name holds a zero byte"
    if "?versionId=" in key:
        return "its name reads like that of a version"
    if max(lengths) > _LONGEST_PART or sum(lengths) > _LONGEST_PATH:
        return "its name is too long for a file"
    return ""


def is_passing(name: str) -> bool:
    """Whether a file or folder of this name is half written, or no part of what the folder holds."""
    return name == IN_USE or is_part(name) or name.startswith(".collecting-")


class Copy:
    """The copy. While it is held nobody else on this machine uses it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[str, Known] = {}
        self._index_path = folder.with_name(f"{folder.name}.index")
        self._lines: IO[str] | None = None
        self._writing = threading.Lock()

    def hold(self, shown: str) -> None:
        """Wait a moment for the copy, keep it until this process ends, and read its index.

        Args:
            shown: the folder's address, for people.

        Raises:
            ResultsInUse: another command uses it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = self.folder.with_name(f"{self.folder.name}.lock").open("a+", encoding="utf-8")
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise ResultsInUse(
                        f"another command uses the copy of {shown} on this machine: wait until it has ended"
                    ) from None
                time.sleep(0.1)
        self.known = dict(_read_index(self._index_path))

    def files(self) -> dict[str, Stamp]:
        """Every regular file of the copy by its path below it."""
        return dict(_below(os.fspath(self.folder), ""))

    def difference(self, listing: Mapping[str, Listed]) -> Difference:
        """What must be fetched and removed, so that the copy is as listed but for what changed here."""
        here = self.files()
        fetch = [
            key
            for key, listed in listing.items()
            if key not in here or (known := self.known.get(key)) is None or known.signature != listed.signature
        ]
        remove = [
            key
            for key, stamp in here.items()
            if key not in listing and (known := self.known.get(key)) is not None and known.stamp == stamp
        ]
        for key in self.known.keys() - listing.keys():
            self.forget(key)
        return Difference(tuple(fetch), tuple(remove))

    def changed(self) -> tuple[list[str], list[str], list[str]]:
        """What must be put, since it was written after it was last the same there: first what keeps what results have
        replaced, then these, then the times."""
        changed = [
            key for key, stamp in self.files().items() if key not in self.known or self.known[key].stamp != stamp
        ]
        first = [key for key in changed if key.startswith("history/")]
        last = [key for key in changed if key.endswith(".timing.json") and "/" not in key]
        return first, [key for key in changed if key not in {*first, *last}], last

    def gone(self) -> list[str]:
        """What was removed here. Nothing, where the copy itself was."""
        here = self.files()
        return sorted(self.known.keys() - here.keys()) if self.folder.is_dir() else []

    def identity(self) -> str:
        """What tells this copy from every other, on this machine or another."""
        path = self.folder.with_name(f"{self.folder.name}.id")
        if not path.exists():
            write_whole(path, secrets.token_hex(16))
        return path.read_text(encoding="ascii")

    def path(self, key: str) -> Path:
        """Where the file lies."""
        return self.folder / key

    def read(self, key: str) -> tuple[bytes, Stamp]:
        """A file's content, and the stamp of just this content."""
        handle = os.open(self.path(key), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(handle, "rb") as file:
            return file.read(), _stamp(os.fstat(handle))

    def write(self, key: str, content: bytes, listed: Listed) -> bool:
        """Take in what stands there. Returns whether another version that was changed here was put aside."""
        path = self.path(key)
        self._make_way(path)
        aside = path.is_file() and self._changed_here(key) and self.read(key)[0] != content
        if aside:
            self._put_aside(key)
        write_whole(path, content, to_disk=False)
        self.note(key, listed.signature, _stamp(path.stat()), md5_of(content))
        return aside

    def stand_for(self, key: str, size: int, listed: Listed) -> None:
        """A file without content in place of one that is too large: what reads it sees its size and refuses it."""
        path = self.path(key)
        self._make_way(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with path.open("wb") as file:
            file.truncate(size)
        self.note(key, listed.signature, _stamp(path.stat()), "")

    def is_content(self, key: str, listed: Listed) -> bool:
        """Whether the file here is what is listed there, told by the MD5 that many stores make their signature of."""
        path = self.path(key)
        if not path.is_file() or path.stat().st_size != listed.size or len(listed.signature) != _LENGTH_OF_MD5:
            return False
        content, stamp = self.read(key)
        if md5_of(content) != listed.signature:
            return False
        self.note(key, listed.signature, stamp, listed.signature)
        return True

    def remove(self, key: str) -> None:
        """Remove a file, and the folders that are empty then."""
        path = self.path(key)
        path.unlink(missing_ok=True)
        self.forget(key)
        while (path := path.parent) != self.folder and not any(os.scandir(path)):
            path.rmdir()

    def note(self, key: str, signature: str, stamp: Stamp, md5: str) -> None:
        """The file is the same here and there now. From any thread."""
        with self._writing:
            self.known[key] = Known(signature, stamp, md5)
            self._append([key, *astuple(self.known[key])])

    def forget(self, key: str) -> None:
        """The file is there no more."""
        with self._writing:
            if self.known.pop(key, None) is not None:
                self._append([key])

    def compact(self) -> None:
        """Write the index anew, a line a file."""
        with self._writing:
            if self._lines is not None:
                self._lines.close()
                self._lines = None
            lines = (json.dumps([key, *astuple(known)]) + "\n" for key, known in self.known.items())
            write_whole(self._index_path, lines, to_disk=False)

    def _append(self, line: list[object]) -> None:
        if self._lines is None:
            self._lines = self._index_path.open("a", encoding="utf-8", buffering=1)
        self._lines.write(json.dumps(line) + "\n")

    def _changed_here(self, key: str) -> bool:
        known = self.known.get(key)
        return known is None or known.stamp != _stamp(self.path(key).lstat())

    def _make_way(self, path: Path) -> None:
        """A file where a folder is needed, or the other way round, was another object's, which is not there now."""
        for parent in path.parents:
            if parent == self.folder:
                break
            if parent.is_file():
                self._put_aside(parent.relative_to(self.folder).as_posix())
        if path.is_dir():
            self._put_aside(path.relative_to(self.folder).as_posix())

    def _put_aside(self, key: str) -> None:
        aside = self.folder.with_name(f"{self.folder.name}.aside")
        places = (aside / str(number) / key for number in itertools.count(1))
        place = next(place for place in places if not place.exists())
        place.parent.mkdir(parents=True, exist_ok=True)
        self.path(key).rename(place)


_LENGTH_OF_MD5 = 32


def md5_of(content: bytes) -> str:
    """The hash that stores know content by. It tells accidents apart and proves nothing."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_size, status.st_mtime_ns, status.st_ino


def _below(folder: str, before: str) -> Iterator[tuple[str, Stamp]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if is_passing(entry.name) or why_no_file(entry.name):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _below(entry.path, f"{before}{entry.name}/")
        elif entry.is_file(follow_symlinks=False):
            try:
                yield before + entry.name, _stamp(entry.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue  # it was replaced just now


def _read_index(path: Path) -> Iterable[tuple[str, Known]]:
    """The last line of each file counts. One that was cut off when its writer was killed says nothing."""
    found: dict[str, Known] = {}
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    for line in text.splitlines():
        try:
            key, *rest = json.loads(line)
            if rest:
                signature, stamp, md5 = rest
                found[key] = Known(str(signature), (stamp[0], stamp[1], stamp[2]), str(md5))
            else:
                found.pop(key, None)
        except (ValueError, TypeError, IndexError):
            continue
    return found.items()
