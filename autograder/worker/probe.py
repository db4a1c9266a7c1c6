"""The probe of the walls: tries the attacks of a hostile submission and reports their outcomes.

The trusted side sends this file's text as the cell of a worker, before any student's.
"""

from __future__ import annotations

import json
import os
import resource
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path


def attempts(targets: str) -> list[tuple[str, bool, str]]:
    """Make every attempt; one row each: (the action, whether it worked, what happened).

    Args:
        targets: JSON: the `folders` and `files` to read, and the number of the `grader` process.
    """
    paths = json.loads(targets)
    grader = paths["grader"]
    actions: list[tuple[str, Callable[[], object]]] = [
        *((f"list {path}", partial(_entries, path)) for path in paths["folders"]),
        *((f"read {path}", partial(_length, path)) for path in paths["files"]),
        ("signal the grader", lambda: os.kill(_other(grader), 0)),
        ("lower the grader's limits", lambda: _limit(grader)),
        (
            "open an internet socket",
            lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
        ),
        ("open a Unix socket", lambda: socket.socket(socket.AF_UNIX).close()),
        ("start a process", _start),
        ("read another process's memory", lambda: _memory(grader)),
        ("become root", _root),
    ]
    return [(name, *_outcome(action)) for name, action in actions]


def _outcome(action: Callable[[], object]) -> tuple[bool, str]:
    try:
        return True, f"got {action()!r}"[:200]
    except BaseException as error:
        return False, f"{type(error).__name__}: {error}"[:200]


def _entries(folder: str) -> int:
    return len(list(Path(folder).iterdir()))


def _length(file: str) -> int:
    return len(Path(file).read_bytes())


def _other(process: int) -> int:
    """The number of another process. In a process namespace this one may have the same number: a
    grader in a container can be process 1, as every worker is.
    """
    if process in (0, os.getpid()):
        raise ProcessLookupError("this process has that number here")
    return process


def _limit(process: int) -> None:
    resource.prlimit(_other(process), resource.RLIMIT_CPU)


def _memory(process: int) -> bytes:
    with Path(f"/proc/{_other(process)}/mem").open("rb") as memory:
        return memory.read(0)


def _start() -> None:
    if os.fork() == 0:
        os._exit(0)


def _root() -> None:
    os.setresuid(0, 0, 0)
    if os.getuid() != 0:
        raise PermissionError("still not root")
