"""The serving half of the host: forks one walled worker at a request, and says how each one ended.

Control messages are JSON on SOCK_SEQPACKET pairs, one pair a client; descriptors travel with
SCM_RIGHTS. Each request has a number, which its answer repeats: a client may have died between the
two.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import select
import signal
import socket
import tempfile
from pathlib import Path
from typing import Any, NoReturn

from autograder.wire.frames import Frame, send_frame
from autograder.worker import loop, system_calls, walls
from autograder.worker.warm_up import interpreter_environment, triton_environment

_WORKER_SOCKET = 3
"""The descriptor of a worker's socket."""
_FIRST_SPARE = 200
"""The lowest descriptor for those that are moved aside."""
_MOST_ENDS = 1024
"""How many workers' ends are remembered: a client asks for one as soon as it has seen it."""


class ForkServer:
    """Answers the requests of several clients, one control socket each, with one worker a request.

    Args:
        kit: the folder that the package lies in, which workers never see.
    """

    def __init__(
        self, controls: list[socket.socket], config: dict[str, Any], kit: Path
    ) -> None:
        self._controls = controls
        self._tier: str = config["tier"]
        self._device: str = config["device"]  # "" on a host whose workers have none
        self._nodes: list[str] = config["nodes"]
        self._visible: str = config["visible"]
        self._scratch: str = config["scratch"] or walls.SCRATCH
        self._readable = walls.with_folders(
            walls.python_paths(kit), config["libraries"]
        )
        self._hidden = [os.path.normpath(path) for path in config.pop("hidden")]
        self._pid_namespace = -1
        ground = walls.survey(self._tier, self._readable)
        self._ground = dataclasses.replace(ground, for_device=bool(self._device))
        self._forked = (
            os.getpid() * 64
        )  # two hosts of one machine begin with different users
        self._clients: dict[int, socket.socket] = {}  # by the number of a living worker
        self._ends: dict[int, tuple[int, float]] = {}

    @property
    def readable(self) -> list[str]:
        """Paths of the machine's files that workers can read."""
        by_tier = {
            "none": ["/"],
            "no-open": [],
            "uid": ["/, where every user of the machine may"],
        }
        return by_tier.get(self._tier, self._readable)

    def raise_walls(self) -> None:
        """Put up what stands once for all workers: new root, own namespaces, the Landlock rules.

        Raises:
            OSError, WallRefused: the tier cannot stand here.
        """
        if self._tier == "none":
            return
        walls.refuse_overlap(self._readable, self._hidden, self._tier)
        walls.make_hidden(self._readable, self._hidden)
        if self._tier == "namespaces":
            self._enter_namespaces()
            # made once for all: every worker is process 1 of a namespace
            walls.filter_program(self._tier, 1, self._ground.for_device)
        else:
            system_calls.use_huge_pages()
        if self._tier == "landlock":
            readable = [*self._readable, *walls.DEVICES]
            rules = system_calls.landlock_rules(readable, [])
            self._ground = dataclasses.replace(self._ground, landlock=rules)
        system_calls.set_dumpable(False)
        self._hidden = []

    def _enter_namespaces(self) -> None:
        uid = os.getuid()
        gid = os.getgid()
        flags = (
            system_calls.NEW_NS
            | system_calls.NEW_NET
            | system_calls.NEW_IPC
            | system_calls.NEW_UTS
            | system_calls.NEW_PID
        )
        if self._ground.is_root:
            system_calls.unshare(flags)
        else:
            system_calls.unshare(flags | system_calls.NEW_USER)
            system_calls.map_own_user(uid, gid)
            system_calls.die_with_parent(
                signal.SIGKILL
            )  # which the new credentials have cleared
        first = os.fork()
        if first:
            self._wait_for(first)
        # from here on we are process 1 of the jail: if we end, every worker ends
        system_calls.die_with_parent(signal.SIGKILL)
        system_calls.mount(
            None, "/", None, system_calls.MS_REC | system_calls.MS_PRIVATE
        )
        system_calls.mount(
            "proc",
            "/proc",
            "proc",
            system_calls.MS_NOSUID | system_calls.MS_NODEV | system_calls.MS_NOEXEC,
        )
        self._pid_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        # only in the process that forks workers: huge pages shared with a parent fall apart as soon
        # as this process writes
        system_calls.use_huge_pages()
        nodes = self._nodes if self._device else None
        walls.build_root(self._readable, self._hidden, nodes)

    def _wait_for(self, child: int) -> NoReturn:
        for control in self._controls:
            control.close()
        while True:
            with contextlib.suppress(InterruptedError):
                _, status = os.waitpid(child, 0)
                os._exit(os.waitstatus_to_exitcode(status) & 255)

    def serve(self) -> None:
        """Answer requests until every client is gone."""
        self._set_environment()
        poller = select.poll()
        by_descriptor = {control.fileno(): control for control in self._controls}
        for descriptor in by_descriptor:
            poller.register(descriptor, select.POLLIN)
        while by_descriptor:
            for descriptor, _ in poller.poll(1000):
                control = by_descriptor[descriptor]
                try:
                    message, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 4)
                except ConnectionResetError:
                    message, descriptors = b"", []
                if message:
                    self._answer(control, json.loads(message), descriptors)
                else:
                    poller.unregister(descriptor)
                    del by_descriptor[descriptor]
            self._reap()

    def _set_environment(self) -> None:
        """Set the workers' environment, once, since each of them is a fork of this process."""
        home = self._scratch if self._tier == "namespaces" or self._device else "/"
        for_triton = triton_environment(home) if self._device else {}
        os.environ.clear()
        os.environ.update(
            PATH="/usr/bin",
            HOME=home,
            TMPDIR=home,
            LANG="C.UTF-8",
            OMP_NUM_THREADS="1",
            MPLBACKEND="Agg",
            MPLCONFIGDIR=home,
            **for_triton,
            **interpreter_environment(self._device),
        )
        if self._visible:
            os.environ["CUDA_VISIBLE_DEVICES"] = self._visible
        tempfile.tempdir = None

    def _answer(
        self, control: socket.socket, request: dict[str, Any], descriptors: list[int]
    ) -> None:
        """Fork a worker, say how one ended, or end all that were forked for this client."""
        answer: dict[str, Any] = {"number": request["number"]}
        handles: list[int] = []
        try:
            if request["op"] == "fork":
                worker = self._fork(request, descriptors[0])
                self._clients[worker] = control
                answer["pid"] = worker
                handles.append(os.pidfd_open(worker))
            elif request["op"] == "end_of":
                self._reap()
                answer["end"] = self._ends.get(request["pid"])
            else:
                self._end_workers(control)
        except OSError as error:
            answer["error"] = f"no worker could be forked: {error}"
        socket.send_fds(control, [json.dumps(answer).encode()], handles)
        for descriptor in (*descriptors, *handles):
            os.close(descriptor)

    def _fork(self, request: dict[str, Any], worker_socket: int) -> int:
        self._forked += 1
        worker = self._fork_apart()
        if not worker:
            self._become_worker(request, worker_socket)
        return worker

    def _fork_apart(self) -> int:
        """As os.fork; where the tier has namespaces, the child is process 1 of a new one."""
        if self._tier != "namespaces":
            return os.fork()
        system_calls.unshare(system_calls.NEW_PID)
        worker = -1
        try:
            worker = os.fork()
            return worker
        finally:
            if worker:  # -1 where the fork failed: later forks into that namespace would fail too
                system_calls.setns(self._pid_namespace, system_calls.NEW_PID)

    def _become_worker(self, request: dict[str, Any], worker_socket: int) -> NoReturn:
        """In the child: close all but the worker's socket, put the walls up, run the loop."""
        try:
            system_calls.set_dumpable(True)
            os.setsid()
            rules = _close_all_but(worker_socket, self._ground.landlock)
            connection = socket.socket(fileno=_WORKER_SOCKET)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            user = walls.FIRST_USER + self._forked % walls.USERS
            ground = dataclasses.replace(self._ground, landlock=rules, user=user)
            limits = walls.WorkerLimits(**request["limits"])
            try:
                walls.enter(self._tier, limits, ground)
            except (OSError, ValueError) as error:
                refusal = {"id": 0, "ok": False, "refused": f"{error}"}
                send_frame(connection, Frame(refusal, {}))
                os._exit(1)
            send_frame(connection, Frame({"id": 0, "ok": True}, {}))
            loop.Loop(connection, self._device or "cpu").serve()
            os._exit(0)  # nothing that the student left behind runs
        finally:
            os._exit(1)

    def _reap(self) -> None:
        """Note how the workers ended that have ended since."""
        while self._clients:
            try:
                worker, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self._clients.clear()
                return
            if worker == 0:
                return
            self._clients.pop(worker, None)
            killed_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            self._ends[worker] = killed_by, usage.ru_utime + usage.ru_stime
            if len(self._ends) > _MOST_ENDS:
                oldest = next(iter(self._ends))
                del self._ends[oldest]

    def _end_workers(self, control: socket.socket) -> None:
        self._reap()
        for worker, client in self._clients.items():
            if client is control:
                os.kill(worker, signal.SIGKILL)


def _close_all_but(worker_socket: int, rules: int | None) -> int | None:
    """Leave open the worker's socket, as number 3, and the Landlock rules, whose new number is
    returned; standard input and outputs go nowhere.
    """

    def move_aside(descriptor: int) -> int:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD, _FIRST_SPARE)

    spare_socket = move_aside(worker_socket)
    spare_null = move_aside(os.open("/dev/null", os.O_RDWR))
    spare_rules = None if rules is None else move_aside(rules)
    for standard in (0, 1, 2):
        os.dup2(spare_null, standard)
    os.dup2(spare_socket, _WORKER_SOCKET)
    first_closed = _WORKER_SOCKET + 1
    if spare_rules is not None:
        rules = first_closed
        os.dup2(spare_rules, rules)
        first_closed += 1
    os.closerange(first_closed, 1 << 20)
    return rules
