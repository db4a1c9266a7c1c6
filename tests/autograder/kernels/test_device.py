"""Grading with a device beside the interpreter. No GPU is needed: "cpu" drives the same code, with
kernels in Triton's own interpreter, in workers of a second host behind the walls that a GPU gets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kernel_course import ON_DEVICE, answer, notebook

from autograder.basics.errors import DeviceUnavailable, StudentError
from autograder.course import Course, load_course
from autograder.grading import speed_meter
from autograder.grading.bench import Bench
from autograder.grading.graded_bytes import pack_graded, unpack_graded
from autograder.records.model import Graded, QuestionResult, Speed
from autograder.records.submission import FoundSubmission
from autograder.sandbox import device as devices
from autograder.sandbox.host_process import Device
from autograder.sandbox.student import Student
from autograder.sandbox.worker_process import Worker
from autograder.suite.timed_functions import BASELINE

REPOSITORY = Path(__file__).resolve().parents[3]
SECONDS_OF_THE_BASELINE, SECONDS_OF_AN_ANSWER = 0.008, 0.002


@pytest.fixture(scope="module")
def bench(course: Course) -> Iterator[Bench]:
    try:
        opened = Bench(
            course,
            course.assignment("kernels"),
            extras=("triton",),
            device=Device("cpu", "the CPU"),
        )
    except DeviceUnavailable as error:
        pytest.skip(str(error))
    with opened as started:
        yield started


@pytest.fixture
def grade(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Graded]:
    """Grades an answer. Calls are made as often as ever; what they take is said, and not
    measured.
    """
    monkeypatch.setattr(speed_meter, "LONG_ENOUGH", 0.02)
    monkeypatch.setattr(speed_meter, "ROUNDS", 1)
    honest = Student.repeat

    def repeat(
        self: Student,
        name: str,
        times: int,
        given: tuple[Any, Any] | None = None,
        *,
        give: bool = False,
    ) -> tuple[Any, float]:
        result, _ = honest(self, name, times, given, give=give)
        return result, times * (
            SECONDS_OF_THE_BASELINE if name == BASELINE else SECONDS_OF_AN_ANSWER
        )

    monkeypatch.setattr(Student, "repeat", repeat)

    def run(double: str) -> Graded:
        path = tmp_path / "student-001.ipynb"
        path.write_text(notebook(double), encoding="utf-8")
        return bench.grader.grade(bench.clients[0], FoundSubmission("student-001", path))

    return run


def question(graded: Graded) -> QuestionResult:
    assert graded.result is not None
    return graded.result.questions[0]


def test_a_right_answer_passes_in_both_and_has_a_speed(
    grade: Callable[[str], Graded], bench: Bench
) -> None:
    graded = grade(answer())
    assert graded.result is not None
    assert (graded.result.score, graded.result.max_score) == (5.0, 5.0), graded.result
    assert graded.result.isolation == bench.isolation
    assert bench.isolation.endswith("+cpu")
    (measured,) = graded.speeds
    assert (measured.case, measured.problem) == ("n = 50", "")
    assert measured.ratio == pytest.approx(4.0)
    assert "speed" in graded.seconds
    scored, content = unpack_graded(pack_graded(graded))
    assert content.decode() == graded.result.to_json()
    assert scored.result == graded.result.headline()
    assert (scored.seconds, scored.speeds) == (graded.seconds, graded.speeds)


def test_an_answer_that_is_wrong_on_the_device_alone_fails_there(
    grade: Callable[[str], Graded],
) -> None:
    graded = grade(answer(f"y += {ON_DEVICE}"))
    double = question(graded)
    assert [test.outcome for test in double.tests] == ["failed", "failed", "failed"]
    assert double.tests[0].message.startswith(
        "On the GPU (in the interpreter it passes): `double(x[70] float32)`"
    )
    assert double.diagnosis is None
    assert double.score == 0.0  # a refusal counts where the function also answers
    assert graded.speeds == ()


def test_an_answer_that_is_wrong_in_the_interpreter_fails_as_without_a_device(
    grade: Callable[[str], Graded],
) -> None:
    double = question(grade(answer("y += x")))
    assert [test.outcome for test in double.tests] == ["failed", "failed", "failed"]
    assert "GPU" not in double.tests[0].message
    assert double.diagnosis is not None
    assert double.diagnosis.mistake == "triples"


def test_an_answer_that_numpy_writes_over_the_kernels_is_none(
    grade: Callable[[str], Graded],
) -> None:
    """The wrapper doubles x, as it should, past torch: the kernel has left 3 x."""
    import_and_write = "import numpy as np; y += x; np.from_dlpack(y)[...] = 2 * np.from_dlpack(x)"
    double = question(grade(answer(import_and_write)))
    assert [test.outcome for test in double.tests] == ["error", "error", "failed"]
    assert (
        "raised KernelFault: Something other than torch and the kernels has written into y."
        in double.tests[0].message
    )
    assert double.score == 0.0


def test_an_exception_on_the_device_has_the_students_own_line(
    grade: Callable[[str], Graded],
) -> None:
    double = question(grade(answer(f"y = y.no_such_thing() if {ON_DEVICE} else y")))
    assert [test.outcome for test in double.tests] == ["error", "error", "failed"]
    said = double.tests[0].message
    assert said.startswith(
        "On the GPU (in the interpreter it passes): `double(x[70] float32)` raised AttributeError"
    )
    assert "no_such_thing" in said


def test_the_end_of_the_process_on_the_device_costs_its_test_and_no_other(
    grade: Callable[[str], Graded],
) -> None:
    double = question(grade(answer(f"len(x) == 70 and {ON_DEVICE} and os._exit(1)")))
    assert [test.outcome for test in double.tests] == ["crashed", "passed", "passed"]


def test_a_call_that_hangs_on_the_device_is_ended(grade: Callable[[str], Graded]) -> None:
    forever = f"while len(x) == 70 and {ON_DEVICE}: pass"
    double = question(grade(answer(f"exec({forever!r})")))
    assert [test.outcome for test in double.tests] == ["timeout", "passed", "passed"]
    assert "3 s" in double.tests[0].message


def test_a_function_that_does_nothing_when_it_is_timed_has_no_speed(
    grade: Callable[[str], Graded],
) -> None:
    (empty,) = grade(answer("y = y if len(x) != 50 else torch.zeros_like(x)")).speeds
    assert (empty.ratio, empty.seconds) == (0.0, 0.0)
    assert "differs from the baseline's by 98" in empty.problem  # 2 · 49
    (none,) = grade(answer("y = y if len(x) != 50 else None")).speeds
    assert none.ratio == 0.0
    assert "not of the baseline's shape" in none.problem


def test_a_hostile_answer_reads_nothing_hidden_and_reaches_nobody(
    grade: Callable[[str], Graded], course: Course
) -> None:
    canary = course.root / "tests" / "hidden" / "kernels" / "canary.txt"
    canary.write_text("CANARY", encoding="utf-8")
    steal = (
        "import glob, os\n"
        f"found = glob.glob('/proc/*/root{canary}') + glob.glob('/proc/*/cwd/tests') + "
        "glob.glob('/**/canary.txt')\n"
        f"for path in [{str(canary)!r}, *found, '/proc/1/environ', '/proc/1/maps']:\n"
        "    try:\n"
        "        text = open(path).read()\n"
        "    except OSError:\n"
        "        continue\n"
        "    raise RuntimeError('READ ' + path + text)\n"
    )
    try:
        graded = grade(answer(f"exec({steal!r}) if {ON_DEVICE} else None"))
    finally:
        canary.unlink()
    assert graded.result is not None
    assert graded.result.score == 5.0, graded.result
    assert "CANARY" not in graded.result.to_json()


PROBE = """
import ctypes, errno, os, signal, socket
libc = ctypes.CDLL(None, use_errno=True)

def _errno(result):
    return "allowed" if result >= 0 else errno.errorcode[ctypes.get_errno()]

def tried(action):
    try:
        action()
        return "allowed"
    except OSError as error:
        return errno.errorcode[error.errno]

def walls():
    ioctl = lambda number: _errno(libc.ioctl(-1, ctypes.c_ulong(number)))
    return {
        "fork": tried(os.fork),
        "spawn": tried(lambda: os.posix_spawn("/bin/true", ["true"], {})),
        "exec": tried(lambda: os.execv("/bin/true", ["true"])),
        "network": tried(lambda: socket.socket(socket.AF_INET)),
        "unix": tried(lambda: socket.socket(socket.AF_UNIX)),
        "kill": tried(lambda: os.kill(2, signal.SIGKILL)),
        "mount": _errno(libc.mount(b"none", b"/scratch", b"tmpfs", 0, None)),
        "ptrace": _errno(libc.ptrace(16, 1, 0, 0)),
        "the host's memory": tried(lambda: open("/proc/1/mem", "rb")),
        "write to /proc": tried(lambda: open("/proc/sys/kernel/hostname", "w")),
        "write to the root": tried(lambda: open("/file", "w")),
        "TIOCSTI": ioctl(0x5412),
        "of a disk": ioctl(0x1261),
        "of a GPU": ioctl(0xC020462A),
        "of a GPU's memory": ioctl(0x30000001),
        "of a range of it": ioctl(75),
        "mlock": _errno(libc.mlock(ctypes.create_string_buffer(10), 10)),
        "own maps": tried(lambda: open("/proc/self/maps").read()),
        "processors": tried(lambda: os.listdir("/sys/devices/system/cpu")),
        "a file": tried(lambda: open("/dev/shm/cuda.shm", "w")),
    }
"""


@pytest.fixture
def inside(bench: Bench) -> Iterator[Callable[[str], Student]]:
    """A worker with a device that has run a cell."""
    workers = []

    def run(cell: str) -> Student:
        workers.append(Worker(bench.device.client, bench.device.limits))
        load = {"op": "load", "cells": [["cell", cell]], "forbid": []}
        loaded = workers[-1].request(load, {}, 20.0, "the cell").header
        assert loaded["ok"] is True, loaded
        return Student.in_worker(workers[-1], 30.0)

    yield run
    for worker in workers:
        worker.kill()


def test_walls_let_a_driver_through_and_nothing_else(inside: Callable[[str], Student]) -> None:
    found = inside(PROBE).walls()
    through = {
        "of a GPU": "EBADF",
        "of a GPU's memory": "EBADF",
        "of a range of it": "EBADF",
        "mlock": "allowed",
        "own maps": "allowed",
        "processors": "allowed",
        "a file": "allowed",
    }
    assert {name: found[name] for name in through} == through
    refused = {
        "TIOCSTI": "ENOTTY",
        "of a disk": "ENOTTY",
        "write to the root": "EROFS",
        "write to /proc": "EROFS",
    }
    assert {name: found[name] for name in refused} == refused
    rest = {
        name: said for name, said in found.items() if name not in through and name not in refused
    }
    assert set(rest.values()) <= {"EPERM", "EACCES"}, rest
    assert len(rest) == 9


COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import compiler
from triton.knobs import NvidiaTool
from triton.runtime.jit import JITFunction

compiler.get_ptxas = lambda arch: NvidiaTool("", "12.8")  # a host asks for it by starting it, before the walls
assemble_in_the_driver("13.0")

def compiled():
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = triton.compiler.ASTSource(JITFunction(_twice.fn), signature, {(3,): 64})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["cubin"].decode()
"""


def test_a_kernel_is_compiled_behind_the_walls_without_another_process(
    inside: Callable[[str], Student],
) -> None:
    worker = REPOSITORY / "autograder" / "worker"
    parts = [
        (worker / name).read_text(encoding="utf-8") for name in ("device_probe.py", "gpu_setup.py")
    ]
    text = inside(
        "\n".join(parts).replace("from __future__ import annotations\n", "") + COMPILED
    ).compiled()
    assert ".version 8.7" in text  # of the older of the two, CUDA 12.8
    assert ".target sm_90a" in text
    assert "_twice" in text


def test_a_repeated_call_gives_its_last_result(inside: Callable[[str], Student]) -> None:
    student = inside(
        "seen = []\ndef f(x, *, by):\n    seen.append(1)\n    return x * by + len(seen)\n"
    )
    assert student.repeat("f", 3, ((10,), {"by": 2}), give=True)[0] == 23
    assert student.repeat("f", 2)[0] is None
    assert student.repeat("f", 1, give=True)[0] == 26
    with pytest.raises(StudentError, match="by"):
        student.repeat("f", 1, ((10,), {}))


# without CUDA


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_built_with_cuda", lambda: False)
    with pytest.raises(DeviceUnavailable, match="this build of torch has no CUDA"):
        devices.find_device("cuda")
    assert devices.describe_gpu().startswith(
        "GPU: none to grade on: this build of torch has no CUDA"
    )
    monkeypatch.setattr(devices, "_built_with_cuda", lambda: True)
    assert "no NVIDIA driver runs here" in devices.cuda_problem(tmp_path)
    (tmp_path / "nvidiactl").touch()
    assert devices.cuda_problem(tmp_path) == ""
    monkeypatch.setattr(devices, "cuda_problem", lambda: "")
    asked = {"cuda": "13.0", "name": "", "pci": "", "driver": "", "error": "RuntimeError: no GPUs"}
    monkeypatch.setattr(devices, "_ask_torch", lambda: asked)
    with pytest.raises(
        DeviceUnavailable, match=r"CUDA 13\.0, but no GPU answers: RuntimeError: no GPUs"
    ):
        devices.find_device("cuda")
    monkeypatch.setattr(
        devices, "_ask_torch", lambda: asked | {"error": "", "name": "GPU", "driver": "13.0"}
    )
    monkeypatch.setattr(devices, "_CONTROL_NODE", str(tmp_path / "nvidiactl"))
    monkeypatch.setattr(devices, "_MEMORY_NODE", str(tmp_path / "nvidia-uvm"))
    with pytest.raises(DeviceUnavailable, match="nvidia-uvm is not there: run"):
        devices.find_device("cuda")


def test_torch_here_answers_when_it_is_asked() -> None:
    found = devices._ask_torch()
    assert set(found) == {"cuda", "name", "pci", "driver", "error"}
    assert found["name"] or found["error"]


def test_the_file_of_the_gpu_at_an_address(tmp_path: Path) -> None:
    about = tmp_path / "0000:3b:00.0"
    about.mkdir()
    (about / "information").write_text("Model: \t\t GPU\nDevice Minor: \t 2\n", encoding="utf-8")
    for name in ("nvidia0", "nvidia2", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert devices._gpu_nodes("0000:3b:00.0", tmp_path, tmp_path) == (str(tmp_path / "nvidia2"),)
    both = (str(tmp_path / "nvidia0"), str(tmp_path / "nvidia2"))
    assert devices._gpu_nodes("0000:af:00.0", tmp_path, tmp_path) == both
    assert devices._gpu_nodes("", tmp_path, tmp_path) == both


@pytest.mark.parametrize("isolation", ["landlock", "uid", "no-open"])
def test_walls_that_do_not_go_with_a_device_are_refused(isolation: str) -> None:
    with pytest.raises(
        DeviceUnavailable, match=f"behind the walls '{isolation}' no GPU can be used"
    ):
        devices.device_tier(isolation)
    assert [devices.device_tier(name) for name in ("auto", "strict", "none")] == [
        "namespaces",
        "namespaces",
        "none",
    ]


def test_a_host_that_cannot_load_cuda_says_so(course: Course) -> None:
    """Here there is no driver, so that its library is missing when the host wants to link it."""
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a driver")
    with pytest.raises(
        DeviceUnavailable, match="Triton's part for NVIDIA GPUs cannot be compiled here"
    ):
        devices.open_device(course, "none", Device("cuda", "a GPU", (), "13.0"))


def test_a_device_takes_longer_than_the_interpreter() -> None:
    limits = load_course(REPOSITORY).limits
    slower = devices.device_limits(
        dataclasses.replace(limits, gpu_call_seconds=50.0, submission_seconds=100.5)
    )
    assert (slower.call_seconds, slower.cell_seconds, slower.cpu_seconds, slower.scratch_mb) == (
        50.0,
        50.0,
        101,
        256,
    )


def test_folders_of_the_driver_are_those_of_its_library() -> None:
    from autograder.worker.gpu_setup import driver_folders

    maps = (
        "7f00-7f01 r-xp 00000000 08:01 1 /usr/lib/x86_64-linux-gnu/libcuda.so.580.1\n"
        "7f02-7f03 r-xp 00000000 08:01 2 /usr/lib/x86_64-linux-gnu/libc.so.6\n"
        "7f04-7f05 rw-p 00000000 00:00 0 [heap]\n"
    )
    assert driver_folders(maps) == ["/usr/lib/x86_64-linux-gnu"]


def test_a_ratio_is_of_the_baseline() -> None:
    assert Speed("n", 0.5, 2.0).ratio == 4.0
    assert Speed("n", 0.5, 2.0, "wrong").ratio == 0.0
