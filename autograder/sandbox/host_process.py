"""Starts the warm host, and requests workers. The host is started by exec and shares no memory with
this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from autograder.basics.errors import HostFailed, IsolationUnavailable
from autograder.course import Course, Limits
from autograder.sandbox.leftovers import ScratchFolder
from autograder.sandbox.reach import every_path

_HOST_PROGRAM = Path(__file__).resolve().parents[1] / "worker" / "host.py"
_START_SECONDS = 120.0
_MAX_MESSAGE = 1 << 16
_WORKER_LIMITS = ("cpu_seconds", "memory_mb", "processes", "file_mb", "scratch_mb")
"""The limits that the host sets for a worker's process."""


@dataclass(frozen=True, slots=True)
class WorkerGrant:
    """A forked worker: process number and pidfd (race-free), and this side's end of the socket."""

    pid: int
    pidfd: int
    sock: socket.socket


class HostClient:
    """One connection to the host. Each grader process has its own.

    Attributes:
        tier: the walls of the workers.
        fault: the first fault of the machine. A suite that catches exceptions can swallow a raised
            fault, so the code that runs a test checks this attribute afterwards.
        readable: the machine's files that workers can read, once the host is ready.
    """

    def __init__(self, control: socket.socket, tier: str) -> None:
        self._control = control
        self.tier = tier
        self.fault: HostFailed | None = None
        self.readable: tuple[str, ...] = ()

    def wait_until_ready(self) -> None:
        """Wait for the host's first message.

        Raises:
            IsolationUnavailable: the tier cannot stand on this machine.
            HostFailed: the host ended, or took too long.
        """
        self._control.settimeout(_START_SECONDS)
        try:
            message = self._control.recv(_MAX_MESSAGE)
        except OSError as error:
            raise HostFailed(f"the sandbox host did not start: {error}") from error
        if not message:
            raise HostFailed(
                "the sandbox host ended before it was ready; `autograder doctor` says more"
            )
        greeting = json.loads(message)
        if "error" in greeting:
            raise IsolationUnavailable(greeting["error"])
        self.readable = tuple(greeting["readable"])

    def fork_worker(self, limits: Limits) -> WorkerGrant:
        """Have the host fork one worker.

        Raises:
            HostFailed: the host is gone, or cannot fork.
        """
        try:
            grader_end, worker_end = socket.socketpair()
        except OSError as error:
            raise self.failed(f"no socket for a worker: {error}") from error
        process_limits = {name: getattr(limits, name) for name in _WORKER_LIMITS}
        request = {"op": "fork", "limits": process_limits}
        try:
            answer, descriptors = self._ask(request, [worker_end.fileno()])
        except BaseException:
            grader_end.close()
            raise
        finally:
            worker_end.close()
        grader_end.setblocking(False)
        return WorkerGrant(answer["pid"], descriptors[0], grader_end)

    def worker_end(self, pid: int) -> tuple[int, float]:
        """The signal that ended a worker (0 for none), and the CPU time of its process.

        Args:
            pid: the worker's number in the host's namespace, as in `WorkerGrant`.

        Raises:
            HostFailed: the host is gone, or does not know the worker.
        """
        answer, _ = self._ask({"op": "end_of", "pid": pid})
        if answer["end"] is None:
            raise self.failed("the sandbox host does not know how a worker ended")
        ending_signal, cpu_seconds = answer["end"]
        return ending_signal, cpu_seconds

    def end_workers(self) -> None:
        """End every worker that was forked for this client, whose grader is gone.

        Raises:
            HostFailed: the host is gone.
        """
        self._ask({"op": "end_workers"})

    def failed(self, message: str, kind: type[HostFailed] = HostFailed) -> HostFailed:
        """Note a fault of the machine, and return it to be raised."""
        self.fault = kind(message)
        return self.fault

    def close(self) -> None:
        """Close the connection; the host ends when the last one is closed."""
        self._control.close()

    def _ask(
        self,
        request: dict[str, Any],
        descriptors: Sequence[int] = (),
    ) -> tuple[dict[str, Any], list[int]]:
        """Send a request with descriptors, and receive the answer with descriptors.

        Raises:
            HostFailed: the host is gone, or answers with an error.
        """
        if self.fault is not None:
            raise self.fault
        # random, since a grader that died in the middle may have left an answer here, and a counter
        # of the next grader would begin alike
        number = secrets.randbits(62)
        message = json.dumps({"number": number, **request}).encode()
        try:
            socket.send_fds(self._control, [message], descriptors)
            while True:
                message, received, _, _ = socket.recv_fds(
                    self._control, _MAX_MESSAGE, 1
                )
                if not message:
                    raise OSError("it has ended")
                answer = json.loads(message)
                if answer["number"] == number:
                    break
                for descriptor in received:
                    os.close(descriptor)
        except OSError as error:
            raise self.failed(f"the sandbox host does not answer: {error}") from error
        if "error" in answer:
            raise self.failed(answer["error"])
        return answer, received


@dataclass(frozen=True, slots=True)
class Device:
    """A device that runs kernels.

    Attributes:
        name: torch's name, "cuda" (or "cpu", see device.py); "" for no device.
        description: text for a person, with the driver's version.
        nodes: device files that a worker needs.
        cuda: the newest CUDA version that the driver knows.
        visible: the GPU, or the part of one, as CUDA_VISIBLE_DEVICES names it; "" where a worker
            sees no other.
        driver_folder: the folder of the driver's library libcuda.
        driver_searched: whether LD_LIBRARY_PATH leads to that folder.
    """

    name: str = ""
    description: str = ""
    nodes: tuple[str, ...] = ()
    cuda: str = ""
    visible: str = ""
    driver_folder: str = ""
    driver_searched: bool = False


@dataclass(frozen=True, slots=True)
class ReleasedCode:
    """The code of a release that a host compiles once for all workers.

    Attributes:
        cells: id of each given cell → text.
        companions: path of each companion → text.
    """

    cells: Mapping[str, str] = field(default_factory=dict)
    companions: Mapping[str, str] = field(default_factory=dict)


class HostProcess:
    """A running host, with one client for each grader.

    Args:
        extras: libraries that the host loads for its workers (grading/extras.py).
        device: the only one of the machine's devices that workers may use.
        released_code: what the host compiles for its workers.
    """

    def __init__(
        self,
        course: Course,
        tier: str,
        clients: int = 1,
        extras: tuple[str, ...] = ("torch",),
        device: Device | None = None,
        released_code: ReleasedCode | None = None,
    ) -> None:
        self.tier = tier
        self.extras = extras
        self.released_code = released_code or ReleasedCode()
        pairs = [
            socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            for _ in range(clients)
        ]
        controls = [control for control, _ in pairs]
        host_ends = [host_end for _, host_end in pairs]
        self.clients = [HostClient(control, tier) for control in controls]
        self._warm_up = ScratchFolder()
        code = self._warm_up.path / "released.json"  # too long for a control message
        code.write_text(json.dumps(asdict(self.released_code)), encoding="utf-8")
        # without walls a worker has no scratch folder for compiled kernels
        self._compiled = ScratchFolder() if device and tier == "none" else None
        device = device or Device()
        config = {
            "device": device.name,
            "nodes": list(device.nodes),
            "cuda": device.cuda,
            "visible": device.visible,
            "driver_folder": device.driver_folder,
            "warm_up": str(self._warm_up.path),
            "released": str(code),
            "scratch": str(self._compiled.path) if self._compiled else "",
            "tier": tier,
            "hidden": [path for folder in course.hidden for path in every_path(folder)],
            "extras": list(extras),
        }
        descriptors = [host_end.fileno() for host_end in host_ends]
        environment = {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": "/nonexistent",
        }
        if (
            device.driver_searched
        ):  # read when a process starts; workers inherit the search
            environment["LD_LIBRARY_PATH"] = device.driver_folder
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(_HOST_PROGRAM), json.dumps(descriptors)],
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE
            if os.environ.get("AUTOGRADER_DEBUG") is None
            else None,
            env=environment,
            cwd="/",
            process_group=0,  # Ctrl-C is for the command, which ends the host
        )
        for host_end in host_ends:
            host_end.close()
        # not on the command line, which every process of the machine may read
        controls[0].send(json.dumps(config).encode())

    def wait_until_ready(self) -> None:
        """Wait until every client may ask for workers. Raises as `HostClient.wait_until_ready`."""
        try:
            for client in self.clients:
                client.wait_until_ready()
            self._warm_up.remove()
        except (HostFailed, IsolationUnavailable) as error:
            message = str(error)
            if last_line := self.close():
                message += f" ({last_line})"
            raise type(error)(message) from error

    def close(self) -> str:
        """End the host, and return its last line on stderr. A second call does nothing."""
        for client in self.clients:
            client.close()
        last_line = self._end()
        for folder in (self._warm_up, self._compiled):
            if folder is not None:
                folder.remove()
        return last_line

    def _end(self) -> str:
        if self._process.returncode is not None:
            return ""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        self._process.kill()  # a host that still loads libraries does not look at its sockets
        _, errors = self._process.communicate()
        return (errors or b"").decode(errors="replace").strip().rpartition("\n")[2]
