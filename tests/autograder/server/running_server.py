"""`autograder serve` in a process of its own, as a person starts it."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunningServer:
    """A server that answers.

    Attributes:
        address: of its first page, without a slash at the end.
        links: person → the link that signs the person in.
        log: the file with what it printed.
    """

    process: subprocess.Popen[bytes]
    address: str
    links: dict[str, str]
    log: Path


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _is_listening(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def running_server(
    root: Path, *people: str, graders: int = 1
) -> Iterator[RunningServer]:
    """Serve a course, with links for these people; Ctrl-C ends it."""
    port = free_port()
    command = [sys.executable, "-m", "autograder", "serve", "--port", str(port)]
    command += [
        "--graders",
        str(graders),
        *[word for name in people for word in ("--link", name)],
    ]
    log = root.parent / f"{root.name}.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(command, cwd=root, stderr=stream, stdout=stream)
    try:
        while "serving" not in (text := log.read_text(encoding="utf-8")):
            assert process.poll() is None, text
            time.sleep(0.05)
        while not _is_listening(port):
            assert process.poll() is None, log.read_text(encoding="utf-8")
            time.sleep(0.05)
        links = dict(re.findall(r"^(\S+) \(\w+\): (\S+)$", text, re.MULTILINE))
        yield RunningServer(process, f"http://127.0.0.1:{port}", links, log)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
