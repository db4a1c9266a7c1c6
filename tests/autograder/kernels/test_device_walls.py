"""The walls of a worker with a GPU, on a machine without one: NVIDIA's driver could start behind
them, and all else is refused.

A device host named "cpu" has the same walls. Its worker plays the calls of `driver_calls.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograder.basics.errors import DeviceUnavailable, IsolationUnavailable
from autograder.course import Course
from autograder.sandbox import device as devices
from autograder.sandbox.device import DeviceHost
from autograder.sandbox.host_process import Device
from autograder.sandbox.student import Student
from autograder.sandbox.worker_process import Worker

REPOSITORY = Path(__file__).resolve().parents[3]
DRIVER_CALLS = Path(__file__).with_name("driver_calls.py")
NODE = "/dev/full"
"""Stands for a file of a GPU: a device that a worker sees only where it is given one."""
GPU = Device("cpu", "the CPU", nodes=(NODE,), visible="GPU-1234")


@pytest.fixture(scope="module")
def device_host(course: Course) -> Iterator[DeviceHost]:
    try:
        opened = devices.open_device(course, "auto", GPU)
    except DeviceUnavailable as error:
        if isinstance(error.__cause__, IsolationUnavailable):
            pytest.skip(str(error))
        raise
    yield opened
    opened.host.close()


@pytest.fixture
def inside(device_host: DeviceHost) -> Iterator[Callable[[str], Student]]:
    """A worker with a device that has run a cell."""
    workers = []

    def run(cell: str) -> Student:
        worker = Worker(device_host.client, device_host.limits)
        workers.append(worker)
        text = cell.replace("from __future__ import annotations\n", "")
        load = {"op": "load", "cells": [["cell", text]], "forbid": []}
        loaded = worker.request(load, {}, 20.0, "the cell").header
        assert loaded["ok"] is True, loaded
        return Student.in_worker(worker, 30.0)

    yield run
    for worker in workers:
        worker.kill()


def test_every_call_of_cuda_s_start_is_allowed(
    inside: Callable[[str], Student],
) -> None:
    outcomes = inside(DRIVER_CALLS.read_text(encoding="utf-8")).start_of_cuda([NODE])
    assert [name for name, outcome in outcomes.items() if outcome != "allowed"] == []
    assert f"open {NODE}" in outcomes
    assert len(outcomes) == 35


def test_all_else_stays_refused(inside: Callable[[str], Student]) -> None:
    outcomes = inside(DRIVER_CALLS.read_text(encoding="utf-8")).what_stays_refused()
    by_the_filter = {
        "accept": "EPERM",
        "accept by another call": "EPERM",
        "connect": "ENOENT",  # as where no MPS server runs
        "send": "ENOTCONN",
        "whoever takes a file's signals": "EINVAL",
        "type for a terminal": "ENOTTY",
        "command of a disk": "ENOTTY",
        "write to the root": "EROFS",
    }
    assert {name: outcomes.pop(name) for name in by_the_filter} == by_the_filter
    in_proc = {
        outcomes.pop(name) for name in list(outcomes) if name.startswith("write ")
    }
    assert in_proc <= {"EROFS", "EACCES", "ENOENT"}
    assert set(outcomes.values()) == {"EPERM"}, outcomes
    assert len(outcomes) == 17


def test_proc_shows_the_worker_alone_and_takes_nothing_but_its_threads_files(
    inside: Callable[[str], Student],
) -> None:
    student = inside(DRIVER_CALLS.read_text(encoding="utf-8"))
    assert student.own_processes() == ["1"]
    writable = student.writable_below_proc()
    of_a_thread = "/proc/THREAD/task/THREAD/"
    assert f"{of_a_thread}comm" in writable
    others = [path for path in writable if not path.startswith(of_a_thread)]
    assert others == ["/proc/THREAD/comm"]


def test_a_worker_is_told_which_gpu_is_its_own(
    inside: Callable[[str], Student],
) -> None:
    student = inside(
        "import os\ndef gpu():\n    return os.environ['CUDA_VISIBLE_DEVICES']\n"
    )
    assert student.gpu() == "GPU-1234"


COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import compiler
from triton.knobs import NvidiaTool
from triton.runtime.jit import JITFunction

compiler.get_ptxas = lambda arch: NvidiaTool("", "12.8")  # a host starts it before the walls
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
        (worker / name).read_text(encoding="utf-8")
        for name in ("device_probe.py", "gpu_setup.py")
    ]
    text = inside("\n".join([*parts, COMPILED])).compiled()
    assert ".version 8.7" in text  # of the older of the two, CUDA 12.8
    assert ".target sm_90a" in text
    assert "_twice" in text
