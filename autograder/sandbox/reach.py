"""Finds every path of a folder: a wall that hides the folder must hide it by all of them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")


@dataclass(frozen=True, slots=True)
class _Mount:
    """One line of mountinfo: the folder `root` of a file system, shown at `point`."""

    device: str
    root: str
    point: str


def every_path(folder: Path) -> list[str]:
    """All paths of a folder.

    The path as named, the path without links, the path in the shell that started this process, and
    the paths through mounts that show the folder or a part of it.
    """
    named = os.path.normpath(folder.absolute())
    real = os.path.realpath(folder)
    return list(dict.fromkeys([named, real, *_shell_paths(named), *_mount_paths(real)]))


def _shell_paths(named: str) -> Iterator[str]:
    """The path by way of $PWD: a shell keeps the links of the path that a person typed."""
    typed = os.environ.get("PWD", "")
    current = os.fspath(Path.cwd())
    below = _path_below(named, current)
    with contextlib.suppress(OSError):
        if below is not None and Path(typed).samefile(current):
            yield os.path.normpath(typed + named[len(current) :])


def _mount_paths(real: str) -> Iterator[str]:
    """The paths through other mounts of the same file system."""
    mounts = _read_mounts()
    holders = [mount for mount in mounts if _path_below(real, mount.point) is not None]
    if not holders:
        return
    # of several mounts on one point the last one counts
    holder = max(reversed(holders), key=lambda mount: len(mount.point))
    place = _join(holder.root, _path_below(real, holder.point) or "")
    for mount in mounts:
        if mount.device != holder.device or mount is holder:
            continue
        below = _path_below(place, mount.root)
        if below is not None:
            yield _join(mount.point, below)
        elif _path_below(mount.root, place) is not None:
            yield mount.point


def _path_below(path: str, folder: str) -> str | None:
    """The part of a path below a folder: "" for the folder itself, None for a path elsewhere."""
    if path == folder:
        return ""
    start = folder.rstrip("/") + "/"
    return path.removeprefix(start) if path.startswith(start) else None


def _join(folder: str, path: str) -> str:
    return f"{folder.rstrip('/')}/{path}".rstrip("/") or "/"


def _read_mounts() -> list[_Mount]:
    try:
        text = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    mounts = []
    for line in text.splitlines():
        fields = line.split(" ")
        if len(fields) > 4:
            mounts.append(_Mount(fields[2], _unescape(fields[3]), _unescape(fields[4])))
    return mounts


def _unescape(text: str) -> str:
    """A path of mountinfo, where a space is written as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), text)
