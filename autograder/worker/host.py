"""The host: a warm process that forks a walled worker at every request. Of the course it holds the
given cells alone.

Started by exec with a clean environment, as `python -I host.py CONTROL_FDS`. It imports the heavy
libraries once, warms what they do late, builds the new root where the tier has one, and then
serves. It runs no student code.

The first control message says what to be: tier, extras, a device, where the given cells lie, and
the folders that workers must not see, whose names are forgotten again before the first worker is
forked.

Control messages are JSON on SOCK_SEQPACKET pairs, one pair a client; descriptors travel with
SCM_RIGHTS. Each request has a number, which its answer repeats: a client may have died between the
two.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import site
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

KIT = Path(__file__).resolve().parents[2]
_CONTROL, _WORKER_SOCKET = 200, 3
_MOST_ENDS = 1024
"""How many workers' ends are remembered: a client asks for one as soon as it has seen it."""
_EXTRA = {
    "matplotlib": ("matplotlib.pyplot",),
    "dynamo": ("torch._dynamo", "torch.optim"),
    "sympy": ("torch.fx.experimental.symbolic_shapes",),
    "triton": (
        "triton",
        "triton.language",
        "triton.runtime.interpreter",
        "autograder.worker.warm_triton",
    ),
    "triton on a device": ("triton", "triton.language", "triton.runtime.interpreter"),
}


def prepare_environment(scratch: str, device: str) -> None:
    """One thread (a fork of a process that has run two hangs), no files written, and on a CPU the
    interpreter for Triton.
    """
    for variable in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
    ):
        os.environ[variable] = "1"
    for variable in ("TRITON_HOME", "TORCHINDUCTOR_CACHE_DIR", "MPLCONFIGDIR"):
        os.environ[variable] = scratch
    os.environ.update(MPLBACKEND="Agg", **_triton_environment(device))
    sys.dont_write_bytecode = True


def _triton_environment(device: str, scratch: str = "") -> dict[str, str]:
    """Kernels are interpreted on a CPU, and compiled for anything else; a worker keeps in its
    scratch folder what it compiles, and the driver keeps nothing.
    """
    chosen = {"TRITON_INTERPRET": "1"} if device == "cpu" else {}
    if scratch:
        chosen.update(
            TRITON_HOME=scratch, TRITON_CACHE_DIR=f"{scratch}/triton", CUDA_CACHE_DISABLE="1"
        )
    return chosen


def warm_up(extras: list[str]) -> None:
    """Do once, single-threaded and before any wall, what the libraries would do late in every
    worker.
    """
    import numpy

    numpy.linalg.svd(numpy.eye(3))
    if "torch" in extras:
        with contextlib.suppress(ImportError):
            warm_up_torch()
    for extra in extras:
        for module in _EXTRA.get(extra, ()):
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
    if torch := sys.modules.get("torch"):
        # torch's table of FLOPs imports triton where it is installed: seventy mappings more for
        # every fork to copy
        with without("triton"):
            importlib.import_module("autograder.wire.cost_counter")
        importlib.import_module("autograder.wire.gradients")
        torch.manual_seed(0)


def warm_up_torch() -> None:
    """Load torch and do what it does late."""
    import torch

    torch.set_num_threads(1)
    functional = torch.nn.functional
    q = torch.randn(1, 2, 6, 6, requires_grad=True)
    functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        a = torch.ones(6, 6, dtype=dtype)
        (a @ a).softmax(-1)
    functional.layer_norm(torch.ones(2, 6), (6,))
    functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, 1]))
    functional.conv2d(torch.ones(1, 3, 6, 6), torch.ones(2, 3, 3, 3))
    torch.einsum("ij,jk->ik", torch.eye(3), torch.eye(3))
    torch.linalg.svd(torch.eye(3))
    repr(q)


@contextlib.contextmanager
def without(module: str) -> Iterator[None]:
    """Inside, `module` cannot be imported unless it was before."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]  # what the import system takes for "is not there"
    try:
        yield
    finally:
        del sys.modules[module]


def warm_wire() -> None:
    """One call through a worker's own code, so that nothing of it is imported or compiled behind
    the walls.
    """
    import numpy

    from autograder.wire.frames import Frame, receive_frame, send_frame
    from autograder.wire.libraries import loaded_torch
    from autograder.wire.values import Encoder
    from autograder.worker.loop import Loop

    here, there = socket.socketpair()
    encoder = Encoder(lambda _: None)
    torch = loaded_torch()
    argument = torch.ones(3) if torch else numpy.ones(3)
    answer = "torch.softmax(x * 2, -1)" if torch else "np.exp(x * 2).sum(-1)"
    cells = [
        ["warm", f"import {'torch' if torch else 'numpy as np'}\ndef f(x):\n    return {answer}\n"]
    ]
    forbidden = ["torch.nn.functional.gelu"] if torch else []
    call = {
        "op": "call",
        "name": "f",
        "value": encoder.encode([[argument], {}]),
        "cost": torch is not None,
    }
    send_frame(here, Frame({"id": 1, "op": "load", "cells": cells, "forbid": forbidden}, {}))
    send_frame(here, Frame({"id": 2, **call}, encoder.tensors))
    here.shutdown(socket.SHUT_WR)
    Loop(there).serve()
    receive_frame(here, 1 << 20)
    header = receive_frame(here, 1 << 20).header
    if not header["ok"]:
        raise RuntimeError(f"the host's own trial call failed: {header}")
    here.close()
    there.close()
    for name in ("student", "google", "google.colab"):
        sys.modules.pop(name, None)


def compile_given(cells: Path) -> None:
    """Compile the release's given cells, id to text in a JSON file: else each worker does."""
    from autograder.worker.cells import compile_ahead

    compile_ahead(json.loads(cells.read_text(encoding="utf-8")))


class Host:
    """The serving loop: one client a control socket, one worker a request."""

    def __init__(self, controls: list[socket.socket], config: dict[str, Any]) -> None:
        from autograder.worker import system_calls, walls

        self._kernel, self._walls = system_calls, walls
        self._controls = controls
        self._tier: str = config["tier"]
        self._device: str = config["device"]  # "" on a host whose workers have none
        self._nodes: list[str] = config["nodes"]
        self._scratch: str = config["scratch"] or walls.SCRATCH
        self._readable = walls.with_folders(walls.python_paths(KIT), config["libraries"])
        self._hidden = [os.path.normpath(path) for path in config.pop("hidden")]
        self._processes = -1
        self._ground = dataclasses.replace(
            walls.survey(self._tier, self._readable), for_device=bool(self._device)
        )
        self._forked = os.getpid() * 64  # two hosts of one machine begin with other users
        self._live: dict[int, socket.socket] = {}
        self._ends: dict[int, tuple[int, float]] = {}

    @property
    def readable(self) -> list[str]:
        """What workers can read of the machine's files."""
        by_tier = {"none": ["/"], "no-open": [], "uid": ["/, where every user of the machine may"]}
        return by_tier.get(self._tier, self._readable)

    def raise_walls(self) -> None:
        """What is put up once, for all workers: new root, own namespaces, the Landlock rules.

        Raises:
            OSError, WallRefused: the tier cannot stand here.
        """
        system_calls, walls = self._kernel, self._walls
        if self._tier == "none":
            return
        walls.refuse_overlap(self._readable, self._hidden, self._tier)
        walls.make_hidden(self._readable, self._hidden)
        if self._tier == "namespaces":
            self._enter_namespaces()
            # every worker is process 1 of its own namespace
            walls.filter_program(self._tier, 1, self._ground.for_device)
        else:
            system_calls.use_huge_pages()
        if self._tier == "landlock":
            rules = system_calls.landlock_rules([*self._readable, *walls.DEVICES], [])
            self._ground = dataclasses.replace(self._ground, landlock=rules)
        system_calls.set_dumpable(False)
        self._hidden = []

    def _enter_namespaces(self) -> None:
        system_calls = self._kernel
        uid, gid = os.getuid(), os.getgid()
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
            system_calls.die_with_parent(signal.SIGKILL)  # which the new credentials have cleared
        first = os.fork()
        if first:
            self._wait_for(first)
        # from here on we are process 1 of the jail: if we end, every worker ends
        system_calls.die_with_parent(signal.SIGKILL)
        system_calls.mount(None, "/", None, system_calls.MS_REC | system_calls.MS_PRIVATE)
        system_calls.mount(
            "proc",
            "/proc",
            "proc",
            system_calls.MS_NOSUID | system_calls.MS_NODEV | system_calls.MS_NOEXEC,
        )
        self._processes = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        # in the process that forks: what it shares with another falls apart when it writes
        system_calls.use_huge_pages()
        self._walls.build_root(self._readable, self._hidden, self._nodes if self._device else None)

    def _wait_for(self, child: int) -> NoReturn:
        for control in self._controls:
            control.close()
        while True:
            with contextlib.suppress(InterruptedError):
                os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)

    def serve(self) -> None:
        """Answer spawn requests until every client is gone."""
        self._set_environment()
        poller = select.poll()
        by_descriptor = {control.fileno(): control for control in self._controls}
        for descriptor in by_descriptor:
            poller.register(descriptor, select.POLLIN)
        while by_descriptor:
            for descriptor, _ in poller.poll(1000):
                try:
                    message, descriptors, _, _ = socket.recv_fds(
                        by_descriptor[descriptor], 1 << 16, 4
                    )
                except ConnectionResetError:
                    message, descriptors = b"", []
                if not message:
                    poller.unregister(descriptor)
                    del by_descriptor[descriptor]
                    continue
                self._answer(by_descriptor[descriptor], json.loads(message), descriptors)
            self._reap()

    def _set_environment(self) -> None:
        """What workers find in theirs: set once, since each of them is a fork of this process."""
        home = self._scratch if self._tier == "namespaces" or self._device else "/"
        os.environ.clear()
        os.environ.update(
            PATH="/usr/bin",
            HOME=home,
            TMPDIR=home,
            LANG="C.UTF-8",
            OMP_NUM_THREADS="1",
            MPLBACKEND="Agg",
            MPLCONFIGDIR=home,
            **_triton_environment(self._device or "cpu", home if self._device else ""),
        )
        tempfile.tempdir = None

    def _answer(
        self, control: socket.socket, request: dict[str, Any], descriptors: list[int]
    ) -> None:
        """A new worker, how one ended, or an end to all that were forked for this client."""
        answer: dict[str, Any] = {"number": request["number"]}
        handles: list[int] = []
        try:
            if request["op"] == "fork":
                answer["pid"] = self._fork(request, descriptors[0], control)
                handles.append(os.pidfd_open(answer["pid"]))
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

    def _fork(self, request: dict[str, Any], sock: int, control: socket.socket) -> int:
        self._forked += 1
        worker = self._fork_apart()
        if not worker:
            self._become_worker(request, sock)
        self._live[worker] = control
        return worker

    def _fork_apart(self) -> int:
        """As os.fork; where the tier has namespaces, the child is process 1 of one of its own."""
        if self._tier != "namespaces":
            return os.fork()
        self._kernel.unshare(self._kernel.NEW_PID)
        worker = -1
        try:
            worker = os.fork()
            return worker
        finally:
            if worker:  # also where the fork failed: from there every later one would fail too
                self._kernel.setns(self._processes, self._kernel.NEW_PID)

    def _become_worker(self, request: dict[str, Any], sock: int) -> NoReturn:
        """In the child: nothing open but the worker's socket, walls up, then the loop."""
        from autograder.wire.frames import Frame, send_frame
        from autograder.worker import loop

        try:
            self._kernel.set_dumpable(True)
            os.setsid()
            keep = fcntl.fcntl(sock, fcntl.F_DUPFD, _CONTROL)
            null = fcntl.fcntl(os.open("/dev/null", os.O_RDWR), fcntl.F_DUPFD, _CONTROL)
            rules = self._ground.landlock
            if rules is not None:
                rules = fcntl.fcntl(rules, fcntl.F_DUPFD, _CONTROL)
            for target, descriptor in ((0, null), (1, null), (2, null), (_WORKER_SOCKET, keep)):
                os.dup2(descriptor, target)
            first_closed = _WORKER_SOCKET + 1
            if rules is not None:
                os.dup2(rules, first_closed)
                rules, first_closed = first_closed, first_closed + 1
            os.closerange(first_closed, 1 << 20)
            connection = socket.socket(fileno=_WORKER_SOCKET)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            user = self._walls.FIRST_USER + self._forked % self._walls.USERS
            ground = dataclasses.replace(self._ground, landlock=rules, user=user)
            try:
                self._walls.enter(self._tier, self._walls.WorkerLimits(**request["limits"]), ground)
            except (OSError, ValueError) as error:
                send_frame(connection, Frame({"id": 0, "ok": False, "refused": f"{error}"}, {}))
                os._exit(1)
            send_frame(connection, Frame({"id": 0, "ok": True}, {}))
            loop.run(connection, self._device or "cpu")
        finally:
            os._exit(1)

    def _reap(self) -> None:
        while self._live:
            try:
                worker, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self._live.clear()
                return
            if worker == 0:
                return
            self._live.pop(worker, None)
            self._ends[worker] = (
                os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
                used.ru_utime + used.ru_stime,
            )
            if len(self._ends) > _MOST_ENDS:
                del self._ends[next(iter(self._ends))]

    def _end_workers(self, control: socket.socket) -> None:
        self._reap()
        for worker in [pid for pid, its in self._live.items() if its is control]:
            os.kill(worker, signal.SIGKILL)


def _prepare_device(config: dict[str, Any]) -> list[str]:
    """Folders of libraries that workers need for the device; none for a CPU.

    Raises:
        OSError: the device cannot be used.
    """
    if config["device"] in ("", "cpu"):
        return []
    from autograder.worker import gpu_setup

    return gpu_setup.prepare(config["cuda"])


def _refuse(controls: list[socket.socket], error: Exception) -> NoReturn:
    for control in controls:
        control.send(json.dumps({"error": str(error)}).encode())
    raise SystemExit(3) from None


def main() -> None:
    """Load the libraries, build what can be built once, and answer requests until nobody is
    connected.
    """
    gc.disable()  # nothing that is imported is ever freed
    controls = [socket.socket(fileno=descriptor) for descriptor in json.loads(sys.argv[1])]
    config = json.loads(controls[0].recv(1 << 16))
    with contextlib.suppress(OSError):
        # where the machine runs out of memory, workers go before whoever grades
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    # only a real folder can be importable: the kit's own stays on the path until its modules are
    # loaded
    sys.path.insert(0, str(KIT))
    from autograder.worker import system_calls
    from autograder.worker.walls import WallRefused

    with contextlib.suppress(OSError):
        system_calls.die_with_parent(signal.SIGKILL)
    try:
        prepare_environment(config["warm_up"], config["device"] or "cpu")
        warm_up(config["extras"])
        warm_wire()
        compile_given(Path(config["given"]))
        config["libraries"] = _prepare_device(config)
    except OSError as error:
        _refuse(controls, error)
    sys.path.remove(str(KIT))
    # then it lies among the packages that workers import
    installed = str(KIT) in site.getsitepackages()
    sys.path[:] = [entry for entry in sys.path if installed or Path(entry).resolve() != KIT]
    gc.collect()
    gc.freeze()
    gc.enable()
    try:
        host = Host(controls, config)
        if len(list(Path("/proc/self/task").iterdir())) != 1:
            raise OSError(
                errno.EBUSY, "the host has more than one thread, and a fork of it would hang"
            )
        host.raise_walls()
    except (OSError, ValueError, WallRefused) as error:
        _refuse(controls, error)
    for control in controls:
        control.send(json.dumps({"ready": config["tier"], "readable": host.readable}).encode())
    host.serve()


if __name__ == "__main__":
    main()
