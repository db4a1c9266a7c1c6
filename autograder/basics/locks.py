"""A lock that ends with its process, however that ends, and says who holds it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from autograder.basics.errors import ResultsInUse
from autograder.basics.safe_text import one_line


@contextlib.contextmanager
def hold_lock(
    lock: Path, what: str, otherwise: str = "", *, shared: bool = False
) -> Iterator[bool]:
    """Inside, no other process holds the lock. False where nothing can be locked: a course that can
    only be read, or a file system without locks.

    Args:
        what: what the other one does, for the message: "collects into submitted/".
        otherwise: what to do but wait.
        shared: others may hold the lock too, if they ask for it as `shared`.

    Raises:
        ResultsInUse: another process holds it; says which.
    """
    with contextlib.ExitStack() as stack:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(lock.open("a+", encoding="utf-8"))
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            file.truncate(0)
            file.write(
                f"process {os.getpid()} on {socket.gethostname()}, since "
                f"{time.strftime('%Y-%m-%d %H:%M:%S')}"
            )
            file.flush()
        except BlockingIOError:
            file.seek(0)
            holder = one_line(file.read()[:200]) or "of which nothing is known"
            raise ResultsInUse(
                f"another run ({holder}) {what}: wait until it has ended{otherwise}"
            ) from None
        except OSError:
            yield False
        else:
            yield True
