"""Starts the warm host and asks it for workers. The host is started by exec and shares no memory
with this process.
"""

from __future__ import annotations

import array
import contextlib
import dataclasses
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from autograder.basics.errors import HostFailed, IsolationUnavailable
from autograder.course import Course, Limits
from autograder.sandbox.leftovers import ScratchFolder
from autograder.sandbox.reach import every_path

_HOST_PROGRAM = Path(__file__).resolve().parents[1] / "worker" / "host.py"
_START_SECONDS = 120.0
_MAX_MESSAGE = 1 << 16


@dataclass(frozen=True, slots=True)
class WorkerGrant:
    """A worker that the host forked: its process (a pidfd, race-free) and our end of its socket."""

    pid: int
    pidfd: int
    sock: socket.socket


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """How a worker ended: the signal that ended it (0: none), and the CPU time that it had used."""

    signal: int
    cpu_seconds: float


class HostClient:
    """One connection to the host. Each grader process has its own.

    Attributes:
        tier: the walls that its workers are behind.
        fault: what the machine did wrong here, from the first time on. A suite that catches
            exceptions can swallow the one that told of it; whoever runs a test asks for it
            afterwards.
    """

    def __init__(self, control: socket.socket, tier: str) -> None:
        self._control = control
        self.tier = tier
        self.fault: HostFailed | None = None
        # what workers can read of the machine's files, once the host is ready
        self.readable: tuple[str, ...] = ()

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
        self.readable = tuple(word["readable"])

    def fork_worker(self, limits: Limits) -> WorkerGrant:
        """Have the host fork one worker.

        Raises:
            HostFailed: the host is gone, or cannot fork.
        """
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise self.failed(f"no socket for a worker: {error}") from error
        try:
            answer, descriptors = self._ask(
                {"op": "fork", "limits": _worker_limits(limits)}, [theirs.fileno()]
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        return WorkerGrant(answer["pid"], descriptors[0], ours)

    def worker_end(self, pid: int) -> WorkerEnd:
        """How a worker that has ended did so.

        Args:
            pid: its number in the host's own namespace, as in `WorkerGrant`.

        Raises:
            HostFailed: the host is gone, or does not know it.
        """
        answer, _ = self._ask({"op": "end_of", "pid": pid})
        if answer["end"] is None:
            raise self.failed("the sandbox host does not know how a worker ended")
        return WorkerEnd(*answer["end"])

    def end_workers(self) -> None:
        """End every worker that was forked for this client: the grader that asked for them is gone.

        Raises:
            HostFailed: the host is gone.
        """
        self._ask({"op": "end_workers"})

    def failed(self, message: str, kind: type[HostFailed] = HostFailed) -> HostFailed:
        """Note a fault of the machine's, to be raised."""
        self.fault = kind(message)
        return self.fault

    def close(self) -> None:
        """Close the connection; the host ends when the last one is closed."""
        self._control.close()

    def _receive(self) -> dict[str, Any]:
        try:
            message = self._control.recv(_MAX_MESSAGE)
        except OSError as error:
            raise HostFailed(f"the sandbox host did not start: {error}") from error
        if not message:
            raise HostFailed(
                "the sandbox host ended before it was ready; `autograder doctor` says more"
            )
        return dict(json.loads(message))

    def _ask(
        self,
        request: dict[str, Any],
        descriptors: Sequence[int] = (),
    ) -> tuple[dict[str, Any], list[int]]:
        if self.fault is not None:
            raise self.fault
        # not counted: a grader that died in the middle may have left an answer here, and the next
        # would count alike
        number = secrets.randbits(62)
        try:
            socket.send_fds(
                self._control, [json.dumps({"number": number, **request}).encode()], descriptors
            )
            answer, received = self._receive_answer()
            while answer["number"] != number:
                for descriptor in received:
                    os.close(descriptor)
                answer, received = self._receive_answer()
        except OSError as error:
            raise self.failed(f"the sandbox host does not answer: {error}") from error
        if "error" in answer:
            raise self.failed(answer["error"])
        return answer, received

    def _receive_answer(self) -> tuple[dict[str, Any], list[int]]:
        message, descriptors, _, _ = socket.recv_fds(self._control, _MAX_MESSAGE, 1)
        if not message:
            raise OSError("it has ended")
        return json.loads(message), list(array.array("i", descriptors))


@dataclass(frozen=True, slots=True)
class Device:
    """Where kernels run.

    Attributes:
        name: as torch calls it, "cuda" (or "cpu", see device.py).
        what: for a person, with the driver's version.
        nodes: device files that a worker needs.
        cuda: the newest CUDA version that the driver knows.
    """

    name: str
    what: str
    nodes: tuple[str, ...] = ()
    cuda: str = ""


class HostProcess:
    """A running host and one client for each grader. A context manager: leaving it ends the host
    and every worker.

    Its workers find the libraries of `extras` loaded (grading/extras.py), and compiled the cells of
    `given`, id to text. With a `device` they may use that, and nothing else of the machine's
    devices.
    """

    def __init__(
        self,
        course: Course,
        tier: str,
        clients: int = 1,
        extras: tuple[str, ...] = ("torch",),
        device: Device | None = None,
        given: Mapping[str, str] | None = None,
    ) -> None:
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(clients)]
        self.tier = tier
        self.extras, self.given = extras, given or {}
        self.clients = [HostClient(ours, tier) for ours, _ in pairs]
        theirs = [their for _, their in pairs]
        self._warm_up = ScratchFolder()
        cells = self._warm_up.path / "given.json"  # too long for a control message
        cells.write_text(json.dumps(self.given), encoding="utf-8")
        # without walls a worker has no scratch folder of its own, and what is compiled must lie
        # somewhere
        self._compiled = ScratchFolder() if device and tier == "none" else None
        config = {
            "device": device.name if device else "",
            "nodes": list(device.nodes) if device else [],
            "cuda": device.cuda if device else "",
            "warm_up": str(self._warm_up.path),
            "given": str(cells),
            "scratch": str(self._compiled.path) if self._compiled else "",
            "tier": tier,
            "hidden": [path for folder in course.hidden for path in every_path(folder)],
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
            process_group=0,  # Ctrl-C is for the command, which ends it
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
            self._warm_up.remove()
        except (HostFailed, IsolationUnavailable) as error:
            said = self.close()
            raise type(error)(f"{error}{f' ({said})' if said else ''}") from error

    def close(self) -> str:
        """End the host; returns the last line that it wrote to stderr, if any. Once is enough,
        twice does no harm.
        """
        for client in self.clients:
            client.close()
        said = self._end()
        for folder in (self._warm_up, self._compiled):
            if folder is not None:
                folder.remove()
        return said

    def _end(self) -> str:
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
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _worker_limits(limits: Limits) -> dict[str, int]:
    named = ("cpu_seconds", "memory_mb", "processes", "file_mb", "scratch_mb")
    return {name: value for name, value in dataclasses.asdict(limits).items() if name in named}
