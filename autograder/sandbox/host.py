"""Starts the warm host and asks it for workers. The host is started by exec and shares no memory with this process."""

from __future__ import annotations

import array
import contextlib
import dataclasses
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from autograder.course import Course, Limits
from autograder.errors import HostFailed, IsolationUnavailable

if TYPE_CHECKING:
    from autograder.sandbox.device import Device

_HOST_PROGRAM = Path(__file__).resolve().parents[1] / "worker" / "host.py"
_START_SECONDS = 120.0
_MAX_MESSAGE = 1 << 16

HIDDEN_FOLDERS = (
    "tests",
    "solutions",
    "source",
    "submitted",
    "results",
    "autograded",
    "feedback",
    ".autograder",
    ".git",
)
"""Folders of the course that no worker may see. The kit's package lies beside them and is no secret."""


@dataclass(frozen=True, slots=True)
class WorkerGrant:
    """A worker that the host forked: its process (a pidfd, race-free) and our end of its socket."""

    pid: int
    pidfd: int
    sock: socket.socket


class HostClient:
    """One connection to the host. Each grader process has its own."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control

    def wait_until_ready(self) -> None:
        """Wait for the host's first word.

        Raises:
            IsolationUnavailable: the tier cannot stand on this machine.
            HostFailed: the host ended, or took too long.
        """
        self._control.settimeout(_START_SECONDS)
        word = self._receive()
        if "error" in word:
            raise IsolationUnavailable(word["error"])

    def fork_worker(self, limits: Limits) -> WorkerGrant:
        """Have the host fork one worker.

        Raises:
            HostFailed: the host is gone, or cannot fork.
        """
        ours, theirs = socket.socketpair()
        try:
            request = json.dumps({"limits": _worker_limits(limits)}).encode()
            socket.send_fds(self._control, [request], [theirs.fileno()])
            message, descriptors = self._receive_descriptor()
        except OSError as error:
            ours.close()
            raise HostFailed(f"the sandbox host does not answer: {error}") from error
        finally:
            theirs.close()
        if "error" in message or not descriptors:
            ours.close()
            raise HostFailed(message.get("error", "the sandbox host sent no process"))
        ours.setblocking(False)
        return WorkerGrant(message["pid"], descriptors[0], ours)

    def close(self) -> None:
        self._control.close()

    def _receive(self) -> dict[str, str]:
        try:
            message = self._control.recv(_MAX_MESSAGE)
        except OSError as error:
            raise HostFailed(f"the sandbox host did not start: {error}") from error
        if not message:
            raise HostFailed("the sandbox host ended before it was ready; `autograder doctor` says more")
        return dict(json.loads(message))

    def _receive_descriptor(self) -> tuple[dict[str, int], list[int]]:
        message, descriptors, _, _ = socket.recv_fds(self._control, _MAX_MESSAGE, 1)
        if not message:
            raise OSError("it has ended")
        return json.loads(message), list(array.array("i", descriptors))


class HostProcess:
    """A running host and one client for each grader. A context manager: leaving it ends the host and every worker.

    With a `device` its workers may use that, and nothing else of the machine's devices.
    """

    def __init__(
        self,
        course: Course,
        tier: str,
        clients: int = 1,
        extras: tuple[str, ...] = (),
        device: Device | None = None,
    ) -> None:
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(clients)]
        self.tier = tier
        self.extras = extras
        self.clients = [HostClient(ours) for ours, _ in pairs]
        theirs = [their for _, their in pairs]
        # without walls a worker has no scratch folder of its own, and what is compiled must lie somewhere
        self._scratch = tempfile.mkdtemp(prefix="device-") if device and tier == "none" else ""
        config = {
            "device": device.name if device else "",
            "nodes": list(device.nodes) if device else [],
            "cuda": device.cuda if device else "",
            "scratch": self._scratch,
            "tier": tier,
            "hidden": [str(course.root / folder) for folder in HIDDEN_FOLDERS],
            "extras": list(extras),
        }
        descriptors = [sock.fileno() for sock in theirs]
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(_HOST_PROGRAM), json.dumps(descriptors)],
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if os.environ.get("AUTOGRADER_DEBUG") is None else None,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent"},
            cwd="/",
        )
        for sock in theirs:
            sock.close()
        # not on the command line, which every process of the machine may read
        pairs[0][0].send(json.dumps(config).encode())

    def wait_until_ready(self) -> None:
        """Wait until every client may ask for workers. Raises as `HostClient.wait_until_ready`."""
        try:
            for client in self.clients:
                client.wait_until_ready()
        except (HostFailed, IsolationUnavailable) as error:
            said = self.close()
            raise type(error)(f"{error}{f' ({said})' if said else ''}") from error

    def close(self) -> str:
        """End the host; returns the last line that it wrote to stderr, if any. Once is enough, twice does no harm."""
        for client in self.clients:
            client.close()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)
        if self._process.returncode is not None:
            return ""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        self._process.kill()  # one that is still loading its libraries does not look at its sockets
        _, errors = self._process.communicate()
        return (errors or b"").decode(errors="replace").strip().rpartition("\n")[2]

    def __enter__(self) -> HostProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _worker_limits(limits: Limits) -> dict[str, int]:
    named = ("cpu_seconds", "memory_mb", "processes", "file_mb", "scratch_mb")
    return {name: value for name, value in dataclasses.asdict(limits).items() if name in named}
