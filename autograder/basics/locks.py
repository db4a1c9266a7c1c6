"""A lock that ends with the process of its holder, and names the holder."""

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
    lock: Path,
    action: str,
    alternative: str = "",
    *,
    shared: bool = False,
) -> Iterator[bool]:
    """Hold a lock, alone among all processes. False where nothing can be locked: a read-only
    course, or a file system without locks.

    Args:
        action: the other process's work, for the message: "collects into submitted/".
        alternative: another way than to wait, for the message.
        shared: other processes may hold the lock too, if they ask for it as `shared`.

    Raises:
        ResultsInUse: another process holds the lock; says which.
    """
    with contextlib.ExitStack() as stack:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(lock.open("a+", encoding="utf-8"))
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            file.truncate(0)
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            file.write(
                f"process {os.getpid()} on {socket.gethostname()}, since {since}"
            )
            file.flush()
        except BlockingIOError:
            file.seek(0)
            holder = one_line(file.read()[:200]) or "of which nothing is known"
            raise ResultsInUse(
                f"another run ({holder}) {action}: wait until it has ended{alternative}"
            ) from None
        except OSError:
            yield False
        else:
            yield True
