"""Temporary files and folders that the next run removes, where a run was killed.

The owner holds a lock, which ends with the owner. A file or folder with such a name and without a
lock was left behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "attention-kit-"


class ScratchFolder:
    """A temporary folder, until `remove` or the death of this process and its forks."""

    def __init__(self) -> None:
        _remove_abandoned_folders()
        self.path = Path()
        self._lock = -1
        while self._lock < 0:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            self._lock = lock_path(self.path)

    def remove(self) -> None:
        """Remove the folder. A second call does nothing."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1
            # the last process of a run that was killed may have held its folder until now
            _remove_abandoned_folders()


def _remove_abandoned_folders() -> None:
    remove_abandoned(Path(tempfile.gettempdir()), f"{_PREFIX}*")


def lock_path(path: Path) -> int:
    """Lock a file or folder until the returned descriptor is closed; -1 where another run has just
    removed it as abandoned.
    """
    try:
        lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return -1
    # a file system without locks has no abandoned files either
    with contextlib.suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX)
    if not path.exists():
        os.close(lock)
        return -1
    return lock


def remove_abandoned(folder: Path, pattern: str) -> None:
    """Remove this user's files and folders of that name that nobody has locked."""
    for path in folder.glob(pattern):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid != os.geteuid():
                continue
            lock = os.open(
                path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            )
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()
            finally:
                os.close(lock)
