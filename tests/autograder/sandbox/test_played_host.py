"""How a host is started and ended, with a process that the test plays; canaries, and devices that
fail behind walls.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import (
    DeviceUnavailable,
    HostFailed,
    IsolationUnavailable,
    StudentError,
    StudentTimeout,
)
from autograder.course import Course, Limits
from autograder.sandbox import device as device_module
from autograder.sandbox import doctor, host_process, kit_program, tiers
from autograder.sandbox.device import device_limits, device_tier, open_device
from autograder.sandbox.host_process import Device, HostProcess, ReleasedCode
from autograder.sandbox.tiers import Wall, _canary, _targets
from autograder.wire.frames import Frame

GPU = Device("cuda", "a GPU", ("/dev/nvidia0",), "13.0", "GPU-1", "/driver", True)
READY = {"readable": ["/etc/hosts"]}


class PlayedProcess:
    """A host's process; `said` is what it writes to stderr, None where nobody reads it. It keeps the host's sockets."""

    started: list[PlayedProcess]

    def __init__(self, command: list[str], **options: Any) -> None:
        self.command, self.options = command, options
        self.returncode: int | None = None
        self.calls: list[str] = []
        self.said: bytes | None = b"a warning\nno memory \xff\n"
        numbers = json.loads(command[-1])
        assert tuple(numbers) == tuple(options["pass_fds"])
        self.sockets = [socket.socket(fileno=os.dup(number)) for number in numbers]
        self.started.append(self)

    def wait(self, timeout: float) -> None:
        assert timeout == 1
        self.calls.append("wait")
        raise subprocess.TimeoutExpired("host", timeout)

    def kill(self) -> None:
        self.calls.append("kill")

    def communicate(self) -> tuple[None, bytes | None]:
        self.calls.append("communicate")
        self.returncode = -9
        return None, self.said

    def read_config(self) -> dict[str, Any]:
        config: dict[str, Any] = json.loads(self.sockets[0].recv(1 << 16))
        return config


@pytest.fixture
def start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., tuple[HostProcess, PlayedProcess]]]:
    """Starts a host of a course, whose process is played."""
    PlayedProcess.started = []
    monkeypatch.setattr(subprocess, "Popen", PlayedProcess)
    monkeypatch.delenv("AUTOGRADER_DEBUG", raising=False)
    (tmp_path / "tests").mkdir()

    def make(*arguments: Any, **options: Any) -> tuple[HostProcess, PlayedProcess]:
        host = HostProcess(Course(tmp_path), *arguments, **options)
        return host, PlayedProcess.started[-1]

    yield make
    for process in PlayedProcess.started:
        for end in process.sockets:
            end.close()


Start = Callable[..., tuple[HostProcess, PlayedProcess]]


def test_a_host_is_started_apart_and_told_of_its_work_by_socket(
    start: Start, tmp_path: Path
) -> None:
    code = ReleasedCode({"imports": "import math"}, {"p.py": "x = 1"})
    host, process = start("landlock", 2, ("torch", "sympy"), released_code=code)
    python, isolated, program, _ = process.command
    assert (python, isolated) == (sys.executable, "-I")
    assert program.endswith("worker/host.py")
    assert process.options["env"] == {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": "/nonexistent",
    }
    assert process.options["cwd"] == "/"
    assert process.options["process_group"] == 0
    assert process.options["stderr"] == subprocess.PIPE
    config = process.read_config()
    hidden = config.pop("hidden")
    assert str(tmp_path / "tests") in hidden
    released = Path(config.pop("released"))
    assert json.loads(released.read_text()) == {
        "cells": {"imports": "import math"},
        "companions": {"p.py": "x = 1"},
    }
    assert Path(config.pop("warm_up")) == released.parent
    assert config == {
        "device": "",
        "nodes": [],
        "cuda": "",
        "visible": "",
        "driver_folder": "",
        "scratch": "",
        "tier": "landlock",
        "extras": ["torch", "sympy"],
    }
    assert (host.tier, host.extras, len(host.clients)) == (
        "landlock",
        ("torch", "sympy"),
        2,
    )
    assert [client.tier for client in host.clients] == ["landlock"] * 2
    for end in process.sockets:
        end.send(json.dumps(READY).encode())
    host.wait_until_ready()
    assert not released.parent.exists()
    assert [client.readable for client in host.clients] == [("/etc/hosts",)] * 2
    assert host.close() == "no memory \ufffd"
    assert process.calls == ["wait", "kill", "communicate"]
    assert host.close() == ""
    assert process.calls == ["wait", "kill", "communicate"]


def test_who_debugs_sees_a_hosts_words_alone(start: Start) -> None:
    host, process = start("none")
    process.said = None
    assert host.close() == ""


def test_a_host_without_more_words_has_torch_and_no_code(start: Start) -> None:
    host, process = start("none")
    config = process.read_config()
    assert (config["extras"], config["scratch"]) == (["torch"], "")
    assert host.released_code == ReleasedCode()
    assert len(host.clients) == 1
    host.close()


def test_a_host_with_a_device_searches_the_driver_where_it_is(start: Start) -> None:
    host, process = start("none", device=GPU)
    config = process.read_config()
    assert process.options["env"]["LD_LIBRARY_PATH"] == "/driver"
    assert (config["device"], config["nodes"], config["cuda"]) == (
        "cuda",
        ["/dev/nvidia0"],
        "13.0",
    )
    assert (config["visible"], config["driver_folder"]) == ("GPU-1", "/driver")
    scratch = Path(config["scratch"])
    assert scratch.is_dir()
    host.close()
    assert not scratch.exists()
    host, process = start("namespaces", device=GPU)
    assert process.read_config()["scratch"] == ""
    host.close()


def test_who_debugs_sees_what_a_host_says(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOGRADER_DEBUG", "1")
    host, process = start("none")
    assert process.options["stderr"] is None
    host.close()


def test_a_host_that_cannot_begin_says_its_last_line(start: Start) -> None:
    host, process = start("landlock")
    process.sockets[0].send(json.dumps({"error": "no landlock"}).encode())
    with pytest.raises(
        IsolationUnavailable, match=r"^no landlock \(no memory \ufffd\)$"
    ):
        host.wait_until_ready()
    assert process.calls == ["wait", "kill", "communicate"]


def test_a_host_that_ended_silently_has_no_last_line(start: Start) -> None:
    host, process = start("landlock")
    process.said = b""
    process.read_config()
    for end in process.sockets:
        end.close()
    with pytest.raises(HostFailed, match=r"`autograder doctor` says more$"):
        host.wait_until_ready()


# canaries


def test_a_canary_lies_among_the_suites_while_walls_are_proven(tmp_path: Path) -> None:
    left_behind = tmp_path / ".canary-left"
    left_behind.touch()
    with _canary(tmp_path):
        (canary,) = tmp_path.iterdir()
        assert canary.name.startswith(".canary-")
        assert canary != left_behind
        assert len(canary.read_text()) == 32
        canary.unlink()  # somebody tidied up
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match=r"^seen$"), _canary(tmp_path):
        raise ValueError("seen")
    assert list(tmp_path.iterdir()) == []


def test_a_canary_that_another_run_removed_is_laid_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = iter([-1, os.open(os.devnull, os.O_RDONLY)])
    monkeypatch.setattr(tiers, "lock_path", lambda path: next(locks))
    with _canary(tmp_path):
        assert len(list(tmp_path.iterdir())) == 2
    assert next(locks, None) is None


def test_without_a_folder_to_write_to_there_is_no_canary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _canary(tmp_path / "missing"):
        assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with _canary(tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_a_probe_aims_at_a_file_of_each_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PWD", raising=False)
    suites = tmp_path / "tests" / "hidden"
    files = [
        suites / ".canary-1",
        suites / "a1" / "test_softmax.py",
        tmp_path / "solutions" / "a1" / "a1.ipynb",
        tmp_path / "source" / "a1" / "a1.py",
    ]
    for path in [*files, suites / ".canary-2", suites / "a1" / "test_other.py"]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    targets = _targets(Course(tmp_path))
    aimed = [path for path in targets["files"] if path.startswith(str(tmp_path))]
    assert len(aimed) == 4
    assert {Path(path).parent for path in aimed} == {path.parent for path in files}
    assert targets["grader"] == os.getpid()
    assert str(suites.parent) in targets["folders"]


# devices


class PlayedHost:
    """A host with a device, which fails as `fault` says."""

    fault: BaseException | None = None
    closed = 0

    def __init__(self, course: Course, tier: str, **options: Any) -> None:
        self.tier, self.options = tier, options
        self.clients = [SimpleNamespace()]

    def wait_until_ready(self) -> None:
        if self.fault is not None:
            raise self.fault

    def close(self) -> None:
        type(self).closed += 1


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """Opens a device: with a fault of the host, a fallen wall, or the probe's answer."""

    def make(
        isolation: str = "auto",
        fault: BaseException | None = None,
        fallen: Wall | None = None,
        total: Any = 9900,
    ) -> Any:
        PlayedHost.fault, PlayedHost.closed = fault, 0
        monkeypatch.setattr(device_module, "HostProcess", PlayedHost)
        monkeypatch.setattr(
            device_module, "find_fallen_wall", lambda course, host: fallen
        )

        def twice_the_sum(name: str) -> Any:
            assert name == "cuda"
            if isinstance(total, BaseException):
                raise total
            return total

        class Program:
            def __enter__(self) -> Any:
                return SimpleNamespace(twice_the_sum=twice_the_sum)

            def __exit__(self, *error: object) -> None: ...

        def run_program(path: Path, client: Any, limits: Limits, seconds: float) -> Any:
            assert seconds == limits.call_seconds == 60.0
            return Program()

        monkeypatch.setattr(kit_program, "run_program", run_program)
        return open_device(Course(tmp_path), isolation, GPU)

    return make


def test_a_device_is_opened_behind_walls(opened: Callable[..., Any]) -> None:
    device = opened("strict")
    assert device.host.tier == "namespaces"
    assert device.host.options == {
        "extras": ("torch", "triton on a device"),
        "device": GPU,
    }
    assert device.client is device.host.clients[0]
    assert device.limits.call_seconds == 60.0
    assert PlayedHost.closed == 0


@pytest.mark.parametrize("kind", [IsolationUnavailable, HostFailed])
def test_a_device_whose_host_does_not_stand_is_closed(
    opened: Callable[..., Any], kind: type[Exception]
) -> None:
    words = r"^no GPU can be used behind the walls of namespaces here: no walls\. `auto"
    with pytest.raises(DeviceUnavailable, match=words):
        opened(fault=kind("no walls"))
    assert PlayedHost.closed == 1


def test_a_device_with_a_fallen_wall_is_closed(opened: Callable[..., Any]) -> None:
    words = r"^the wall against 'open a socket' falls with a GPU \(it opened\)$"
    with pytest.raises(DeviceUnavailable, match=words):
        opened(fallen=Wall("open a socket", False, "it opened"))
    assert PlayedHost.closed == 1


@pytest.mark.parametrize(
    ("total", "words"),
    [
        (9901, r"^the probe's kernel gives 9901 on a GPU, and not 9900$"),
        (9899, r"^the probe's kernel gives 9899 on a GPU, and not 9900$"),
        (
            StudentTimeout("it hangs"),
            r"^a GPU does not work behind the walls: it hangs$",
        ),
        (KeyboardInterrupt(), "^$"),
    ],
)
def test_a_device_that_does_not_compute_is_closed(
    opened: Callable[..., Any], total: Any, words: str
) -> None:
    interrupted = isinstance(total, KeyboardInterrupt)
    kind = KeyboardInterrupt if interrupted else DeviceUnavailable
    with pytest.raises(kind, match=words):
        opened(total=total)
    assert PlayedHost.closed == 1


def test_limits_of_a_device_are_the_larger_ones() -> None:
    low = Limits(
        call_seconds=5.0,
        cell_seconds=10.0,
        submission_seconds=90.5,
        cpu_seconds=60,
        scratch_mb=32,
        file_mb=16,
        gpu_call_seconds=40.0,
    )
    limits = device_limits(low)
    assert (limits.call_seconds, limits.cell_seconds) == (40.0, 40.0)
    assert (limits.cpu_seconds, limits.scratch_mb, limits.file_mb) == (91, 256, 256)
    high = Limits(cell_seconds=70.0, cpu_seconds=200, scratch_mb=300, file_mb=400)
    limits = device_limits(high)
    assert (limits.call_seconds, limits.cell_seconds) == (60.0, 70.0)
    assert (limits.cpu_seconds, limits.scratch_mb, limits.file_mb) == (200, 300, 400)


def test_a_device_has_one_tier_or_none() -> None:
    for isolation in ("auto", "strict", "namespaces"):
        assert device_tier(isolation) == "namespaces"
    assert device_tier("none") == "none"
    for isolation in ("landlock", "uid", "no-open"):
        with pytest.raises(DeviceUnavailable, match=f"^behind the walls '{isolation}'"):
            device_tier(isolation)


# programs of the kit's own


class PlayedWorker:
    def __init__(self, header: dict[str, Any]) -> None:
        self.header = header
        self.killed = 0
        self.loads: list[Any] = []

    def load(self, cells: Any, seconds: float, call: str) -> Any:
        self.loads.append((cells, seconds, call))
        return iter([Frame(self.header, {})])

    def kill(self) -> None:
        self.killed += 1


def test_a_program_is_loaded_and_its_worker_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "probe.py"
    program.write_text("x = 1", encoding="utf-8")
    worker = PlayedWorker({"ok": True})
    monkeypatch.setattr(kit_program, "Worker", lambda client, limits: worker)
    client: Any = None
    with kit_program.run_program(program, client, Limits(), 7.0) as student:
        assert worker.killed == 0
        assert student._call_seconds == 7.0
    assert worker.killed == 1
    assert worker.loads == [([("probe", "x = 1")], 7.0, "probe")]
    worker.header = {"ok": False, "error": {"type": "KeyError", "message": "'x'"}}
    with (
        pytest.raises(StudentError, match="'x'"),
        kit_program.run_program(program, client, Limits(), 7.0),
    ):
        pass
    assert worker.killed == 2


# the doctor


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("MemTotal:       24000000 kB\nMemFree: 1 kB\n", "24 GB of memory"),
        ("MemTotal:       15500000 kB\n", "16 GB of memory"),
        ("MemTotal: much\n", "memory unknown"),
        ("", "memory unknown"),
        (None, "memory unknown"),
    ],
)
def test_the_memory_of_a_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, words: str
) -> None:
    file = tmp_path / "meminfo"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(doctor, "Path", lambda path: file)
    assert doctor._memory() == words


def test_the_doctor_tells_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    monkeypatch.setattr(doctor, "_memory", lambda: "24 GB of memory")
    monkeypatch.setattr(shutil, "which", lambda name: None)

    def version(package: str) -> str:
        if package == "nbgrader":
            raise metadata.PackageNotFoundError
        return f"1.{len(package)}"

    monkeypatch.setattr(metadata, "version", version)
    _, user, *packages, python = doctor._machine()
    assert user == "running as root, 7 cores, 24 GB of memory"
    assert packages[0] == "  torch 1.5"
    assert [line.split()[0] for line in packages] == [
        "torch",
        "triton",
        "numpy",
        "pytest",
        "nbgrader",
        "safetensors",
    ]
    assert packages[4].startswith("  nbgrader is missing: install the kit again")
    assert python == f"  python {sys.executable}  (autograder is not on PATH)"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/autograder")
    _, user, *_, python = doctor._machine()
    assert user == "running as an ordinary user, 7 cores, 24 GB of memory"
    assert python == f"  python {sys.executable}"


def test_a_platform_without_linux_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tiers.platform_problem() == ""
    monkeypatch.setattr(sys, "platform", "darwin")
    words = "the walls are made of Linux: on darwin run the kit in a Linux machine"
    assert tiers.platform_problem().startswith(words)


def test_a_host_names_its_program() -> None:
    assert host_process._HOST_PROGRAM.is_file()
