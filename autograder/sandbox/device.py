"""The device that kernels run on beside the interpreter: a GPU of NVIDIA's. Finds it, and starts a
host whose workers may use it.

A device is a plain string all the way down. "cpu" drives the same code where there is no GPU:
kernels run in Triton's own interpreter then, not the strict one. That is for the kit's tests, and
no command offers it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.basics.errors import (
    DeviceUnavailable,
    HostFailed,
    IsolationUnavailable,
    StudentFault,
)
from autograder.course import Course, Limits
from autograder.sandbox.host_process import Device, HostClient, HostProcess
from autograder.sandbox.tiers import probe

_COMPILED_MB = 256
"""Files of a submission's compiled kernels: half a megabyte for each kernel and each kind of
arguments.
"""
_ASK_SECONDS = 120.0
_CONTROL_NODE, _MEMORY_NODE = "/dev/nvidiactl", "/dev/nvidia-uvm"
_PROBE = Path(__file__).resolve().parents[1] / "worker" / "device_probe.py"
_ASK = """
import json, torch
found = {"cuda": torch.version.cuda, "name": "", "pci": "", "driver": "", "error": ""}
try:
    torch.cuda.init()
    about = torch.cuda.get_device_properties(0)
    number = torch._C._cuda_getDriverVersion()
    pci = [getattr(about, name, None) for name in ("pci_domain_id", "pci_bus_id", "pci_device_id")]
    found["name"], found["driver"] = about.name, f"{number // 1000}.{number % 1000 // 10}"
    found["pci"] = "" if None in pci else "{:04x}:{:02x}:{:02x}.0".format(*pci)
except Exception as error:
    found["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class DeviceHost:
    """A proven host of workers with a device: one client, one submission at a time.

    Attributes:
        limits: the course's, with the time that a device takes to start and to compile.
    """

    device: Device
    host: HostProcess
    limits: Limits

    @property
    def client(self) -> HostClient:
        """The one connection to the host of the device."""
        return self.host.clients[0]


def find_device(name: str) -> Device:
    """The device of that name on this machine. For CUDA it is the first one visible.

    Raises:
        DeviceUnavailable: says what is missing, and what to do.
    """
    if name != "cuda":
        raise DeviceUnavailable(f"no device {name!r}: kernels run on cpu or cuda")
    if problem := cuda_problem():
        raise DeviceUnavailable(problem)
    found = _ask_torch()
    if found["error"]:
        raise DeviceUnavailable(
            f"torch has CUDA {found['cuda']}, but no GPU answers: {found['error']}"
        )
    nodes = (_CONTROL_NODE, _MEMORY_NODE, *_nodes_of(found["pci"]))
    missing = [node for node in nodes if not Path(node).exists()]
    if missing:
        raise DeviceUnavailable(
            f"{missing[0]} is not there: run `nvidia-modprobe -c 0 -u` as root, or `nvidia-smi`"
        )
    locked = [node for node in nodes if Path(node).stat().st_mode & 0o006 != 0o006]
    if locked and os.geteuid() == 0:
        raise DeviceUnavailable(
            f"{locked[0]} is not open to all, and a worker is another user: chmod 666 {locked[0]}"
        )
    return Device(
        "cuda", f"{found['name']}, driver for CUDA {found['driver']}", nodes, found["driver"]
    )


def cuda_problem(dev: Path = Path("/dev")) -> str:
    """What can be said against CUDA here without loading torch; "" where nothing can."""
    if not sys.platform.startswith("linux"):
        return f"kernels run on a GPU under Linux only, not on {sys.platform}"
    if not _built_with_cuda():
        return (
            "this build of torch has no CUDA: install a build of torch for your driver, "
            "or grade on the CPU, without `--device`"
        )
    if not (dev / Path(_CONTROL_NODE).name).exists():
        return (
            f"no NVIDIA driver runs here: {_CONTROL_NODE} is not there (in a container, start "
            "it with a GPU)"
        )
    return ""


def _built_with_cuda() -> bool:
    spec = importlib.util.find_spec("torch")  # loads nothing
    if spec is None or spec.origin is None:
        return False
    try:
        text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    except OSError:
        return False
    return re.search(r"^cuda\b.*=\s*['\"]\d", text, re.MULTILINE) is not None


def _ask_torch() -> dict[str, Any]:
    """What torch says of the first GPU, asked in a process of its own: this one forks, which CUDA
    does not bear.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _ASK],
            capture_output=True,
            text=True,
            timeout=_ASK_SECONDS,
            check=True,
        )
        return dict(json.loads(done.stdout))
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip().rpartition("\n")[2]
        raise DeviceUnavailable(f"torch could not be asked for a GPU: {said}") from error


def _nodes_of(
    pci: str,
    drivers: Path = Path("/proc/driver/nvidia/gpus"),
    dev: Path = Path("/dev"),
) -> tuple[str, ...]:
    """The device file of the GPU at this address of the bus; those of all GPUs where it cannot be
    told.
    """
    with contextlib.suppress(OSError):
        about = (drivers / pci / "information").read_text(encoding="utf-8") if pci else ""
        if minor := re.search(r"^Device Minor:\s*(\d+)", about, re.MULTILINE):
            return (str(dev / f"nvidia{minor[1]}"),)
    return tuple(sorted(str(path) for path in dev.glob("nvidia[0-9]*")))


def device_limits(limits: Limits) -> Limits:
    """Limits of a worker with a device: a context takes seconds to make, and a kernel to
    compile.
    """
    slow = limits.gpu_call_seconds
    return dataclasses.replace(
        limits,
        call_seconds=slow,
        cell_seconds=max(limits.cell_seconds, slow),
        cpu_seconds=max(limits.cpu_seconds, math.ceil(limits.submission_seconds)),
        scratch_mb=max(limits.scratch_mb, _COMPILED_MB),
    )


def device_tier(isolation: str) -> str:
    """The tier in which workers get a device. Others do not do: what is compiled must be written to
    a file, and the driver reads what landlock and uid hide.

    Raises:
        DeviceUnavailable: none of those that `isolation` allows.
    """
    if isolation in ("auto", "strict", "namespaces"):
        return "namespaces"
    if isolation == "none":
        return "none"
    raise DeviceUnavailable(
        f"behind the walls {isolation!r} no GPU can be used: a kernel that is compiled must be "
        "written to a file. "
        "`--device cuda` needs the tier namespaces (`autograder doctor` says what would "
        "make it stand)"
    )


def open_device(course: Course, isolation: str, device: Device) -> DeviceHost:
    """Start a host whose workers may use the device, prove its walls, and that the device works
    behind them.

    Raises:
        DeviceUnavailable: the walls do not stand, or the device does not work behind them.
    """
    tier = device_tier(isolation)
    opened = DeviceHost(
        device,
        HostProcess(course, tier, extras=("torch", "triton on a device"), device=device),
        device_limits(course.limits),
    )
    try:
        opened.host.wait_until_ready()
        fallen = (
            []
            if tier == "none"
            else [wall for wall in probe(course, opened.host) if not wall.stands]
        )
        if fallen:
            raise DeviceUnavailable(
                f"the wall against {fallen[0].name!r} falls with a GPU ({fallen[0].detail})"
            )
        _run_a_kernel(opened)
    except (IsolationUnavailable, HostFailed) as error:
        opened.host.close()
        raise DeviceUnavailable(
            f"no GPU can be used behind the walls of {tier} here: {error}. `autograder "
            "doctor` says more; "
            "without `--device` kernels run in the interpreter"
        ) from error
    except BaseException:
        opened.host.close()
        raise
    return opened


def _run_a_kernel(opened: DeviceHost) -> None:
    """One small kernel in a worker, before any student's.

    Raises:
        DeviceUnavailable: it does not run, or gives a wrong answer.
    """
    from autograder.sandbox.student import run_program

    try:
        with run_program(_PROBE, opened.client, opened.limits, opened.limits.call_seconds) as kit:
            total = kit.twice_the_sum(opened.device.name)
    except StudentFault as fault:
        raise DeviceUnavailable(
            f"{opened.device.what} does not work behind the walls: {fault}"
        ) from fault
    if total != 2 * sum(range(100)):
        raise DeviceUnavailable(
            f"the probe's kernel gives {total!r} on {opened.device.what}, and not 9900"
        )


def about_gpu() -> str:
    """One line for `doctor`."""
    try:
        return f"GPU: {find_device('cuda').what}; `--device cuda` needs the tier namespaces"
    except DeviceUnavailable as problem:
        return f"GPU: none to grade on: {problem}"
