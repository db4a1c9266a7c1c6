"""Every path by which a folder can be reached: what hides it by one name must hide it by all of
them.
"""

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
    """One line of mountinfo: which part of which file system lies where."""

    device: str
    root: str
    point: str


def every_path(folder: Path) -> list[str]:
    """Paths of a folder: as named, without its links, as the shell that started this process names
    it, and through every mount that shows it, or a part of it.
    """
    named = os.path.normpath(folder.absolute())
    real = os.path.realpath(folder)
    return list(dict.fromkeys([named, real, *_as_the_shell_says(named), *_through_mounts(real)]))


def _as_the_shell_says(named: str) -> Iterator[str]:
    """A shell keeps the links of the path that somebody typed."""
    typed, here = os.environ.get("PWD", ""), os.fspath(Path.cwd())
    with contextlib.suppress(OSError):
        if typed != here and Path(typed).samefile(here) and (f"{named}/").startswith(f"{here}/"):
            yield os.path.normpath(typed + named[len(here) :])


def _through_mounts(real: str) -> Iterator[str]:
    mounts = _mounts()
    holding = [mount for mount in mounts if _inside(real, mount.point) is not None]
    if not holding:
        return
    # of several on one point the last one counts
    own = max(reversed(holding), key=lambda mount: len(mount.point))
    place = _joined(own.root, _inside(real, own.point) or "")
    for mount in mounts:
        if mount.device != own.device or mount is own:
            continue
        if (below := _inside(place, mount.root)) is not None:
            yield _joined(mount.point, below)
        elif _inside(mount.root, place) is not None:
            yield mount.point


def _inside(path: str, folder: str) -> str | None:
    """The rest of a path that is a folder's or lies in it; None for others."""
    if path == folder:
        return ""
    start = folder.rstrip("/") + "/"
    return path[len(start) :] if path.startswith(start) else None


def _joined(folder: str, rest: str) -> str:
    return f"{folder.rstrip('/')}/{rest}".rstrip("/") or "/"


def _mounts() -> list[_Mount]:
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    fields = [line.split(" ") for line in lines]
    return [_Mount(f[2], _plain(f[3]), _plain(f[4])) for f in fields if len(f) > 4]


def _plain(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), text)
