"""Runs as the cell of a worker, before any student's: tries what a hostile submission would try, reports what it got.

It is sent as text and runs inside the walls, so it imports what it needs in its functions.
"""


def attempts(targets):  # type: ignore[no-untyped-def]
    """One row an attempt: (what, whether it worked, what happened)."""
    import json

    wanted = json.loads(targets)
    rows = []

    def attempt(name, action):  # type: ignore[no-untyped-def]
        try:
            rows.append((name, True, f"got {action()!r}"[:200]))
        except BaseException as error:
            rows.append((name, False, f"{type(error).__name__}: {error}"[:200]))

    for folder in wanted["folders"]:
        attempt(f"list {folder}", lambda folder=folder: _list(folder))
    for file in wanted["files"]:
        attempt(f"read {file}", lambda file=file: _read(file))
    attempt("signal the grader", lambda: _signal(wanted["grader"]))
    attempt("lower the grader's limits", lambda: _limit(wanted["grader"]))
    attempt("open an internet socket", _internet)
    attempt("open a Unix socket", _local)
    attempt("start a process", _start)
    attempt("read another process's memory", lambda: _memory(wanted["grader"]))
    attempt("become root", _root)
    return rows


def _list(folder):  # type: ignore[no-untyped-def]
    import os

    return len(os.listdir(folder))


def _read(file):  # type: ignore[no-untyped-def]
    with open(file) as opened:
        return len(opened.read())


def _signal(process):  # type: ignore[no-untyped-def]
    import os

    os.kill(process, 0)


def _limit(process):  # type: ignore[no-untyped-def]
    import resource

    if process in (0, __import__("os").getpid()):
        raise ProcessLookupError("it has the number of this process here")
    resource.prlimit(process, resource.RLIMIT_CPU)


def _internet():  # type: ignore[no-untyped-def]
    import socket

    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()


def _local():  # type: ignore[no-untyped-def]
    import socket

    socket.socket(socket.AF_UNIX).close()


def _start():  # type: ignore[no-untyped-def]
    import os

    if os.fork() == 0:
        os._exit(0)


def _memory(process):  # type: ignore[no-untyped-def]
    with open(f"/proc/{process}/mem", "rb") as memory:
        return memory.read(0)


def _root():  # type: ignore[no-untyped-def]
    import os

    os.setresuid(0, 0, 0)
    if os.getuid() != 0:
        raise PermissionError("still not root")
