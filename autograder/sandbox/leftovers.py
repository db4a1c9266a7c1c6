"""What a run needs on disk for a while, so that nothing stays where the run was killed.

The owner holds a lock on it, which ends with the owner. What has the same kind of name and no lock
was left behind, and the next run removes it.
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
            self._lock = hold(self.path)

    def remove(self) -> None:
        """Once is enough, twice does no harm."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1
            # of a run that was killed shortly before this one began, some process may have held the
            # folder until now
            _remove_abandoned_folders()


def _remove_abandoned_folders() -> None:
    remove_abandoned(Path(tempfile.gettempdir()), f"{_PREFIX}*")


def hold(path: Path) -> int:
    """Lock what lies at `path` until the descriptor is closed; -1 where another run has just taken
    it for abandoned.
    """
    try:
        lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return -1
    # no locks on this file system: then nothing is taken for abandoned either
    with contextlib.suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX)
    if not path.exists():
        os.close(lock)
        return -1
    return lock


def remove_abandoned(folder: Path, pattern: str) -> None:
    """Remove what is called like this in a folder, is this user's, and is held by nobody."""
    for path in folder.glob(pattern):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid != os.geteuid():
                continue
            lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()
            finally:
                os.close(lock)
