"""Finds a GPU of NVIDIA for kernels, and starts a host whose workers may use the GPU.

The worker knows a device by its name alone. The name "cpu" drives the same code without a GPU:
kernels then run in Triton's own interpreter, not in the strict one. The kit's tests use that name,
and no command offers it.
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
from autograder.sandbox.tiers import find_fallen_wall

_COMPILED_MB = 256
"""Space for a submission's compiled kernels: half a megabyte for each kernel and each kind of
arguments.
"""
_ASK_SECONDS = 120.0
_CONTROL_NODE, _MEMORY_NODE = "/dev/nvidiactl", "/dev/nvidia-uvm"
_TOOLS_NODE = "/dev/nvidia-uvm-tools"
"""Drivers from 570 on do not start where this file exists and cannot be opened."""
_PROBE = Path(__file__).resolve().parents[1] / "worker" / "device_probe.py"
_ASK = """
import json, torch
facts = ("name", "pci", "driver", "uuid", "library", "error")
found = {"cuda": torch.version.cuda, **dict.fromkeys(facts, "")}
try:
    torch.cuda.init()
    about = torch.cuda.get_device_properties(0)
    number = torch._C._cuda_getDriverVersion()
    pci = [getattr(about, name, None) for name in ("pci_domain_id", "pci_bus_id", "pci_device_id")]
    found["name"], found["driver"] = about.name, f"{number // 1000}.{number % 1000 // 10}"
    found["pci"] = "" if None in pci else "{:04x}:{:02x}:{:02x}.0".format(*pci)
    found["uuid"] = str(getattr(about, "uuid", ""))
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = [line.split(maxsplit=5)[-1].strip() for line in maps if "/libcuda.so" in line]
    found["library"] = paths[0] if paths else ""
except Exception as error:
    found["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class DeviceHost:
    """A proven host of workers with a device, for one client and one submission at a time.

    Attributes:
        limits: the course's limits, with more time for a device to start and to compile.
    """

    device: Device
    host: HostProcess
    limits: Limits

    @property
    def client(self) -> HostClient:
        """The one connection to the host of the device."""
        return self.host.clients[0]


def find_device(name: str) -> Device:
    """Find the device "cuda": the first GPU, or part of a GPU, that CUDA shows. As everywhere,
    CUDA_VISIBLE_DEVICES chooses which it is.

    Raises:
        DeviceUnavailable: there is none. The message names the missing part, and what to do.
    """
    if name != "cuda":
        raise DeviceUnavailable(f"no device {name!r}: kernels run on cpu or cuda")
    if problem := cuda_problem():
        raise DeviceUnavailable(problem)
    gpu = _ask_torch()
    if gpu["error"]:
        raise DeviceUnavailable(
            f"torch has CUDA {gpu['cuda']}, but no GPU answers: {gpu['error']}"
        )
    gpu_nodes = _gpu_nodes(gpu["pci"])
    nodes = (_CONTROL_NODE, _MEMORY_NODE, *gpu_nodes)
    missing = [node for node in nodes if not Path(node).exists()]
    if missing:
        raise DeviceUnavailable(
            f"{missing[0]} is not there: run `nvidia-modprobe -c 0 -u` as root, or `nvidia-smi`"
        )
    if Path(_TOOLS_NODE).exists():
        nodes += (_TOOLS_NODE,)
    parts = _part_nodes(gpu_nodes)
    if os.geteuid() == 0:
        _refuse_locked(nodes, 0o666)
        _refuse_locked(parts, 0o444)
    driver_folder, driver_searched = _driver_folder(gpu["library"])
    return Device(
        "cuda",
        description=f"{gpu['name']}, driver for CUDA {gpu['driver']}",
        nodes=(*nodes, *parts),
        cuda=gpu["driver"],
        visible=_visible_name(gpu["name"], gpu["uuid"]),
        driver_folder=driver_folder,
        driver_searched=driver_searched,
    )


def _refuse_locked(nodes: tuple[str, ...], mode: int) -> None:
    """Refuse device files that other users than root may not use with the rights of `mode`."""
    for node in nodes:
        needed = mode & 0o007
        if Path(node).stat().st_mode & needed != needed:
            raise DeviceUnavailable(
                f"{node} is not open to all, and a worker is another user: chmod {mode:o} {node}"
            )


def _visible_name(name: str, uuid: str) -> str:
    """The name of the first visible GPU for a worker's CUDA_VISIBLE_DEVICES.

    An index would not do: a worker has the files of one GPU, and there that GPU is number 0.
    """
    first, _, _ = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")
    if first.strip().startswith("MIG-"):
        return first.strip()
    if (
        not uuid or " MIG " in name
    ):  # torch's number of a part may be that of the whole GPU
        return ""
    return f"GPU-{uuid}"


def _driver_folder(library: str) -> tuple[str, bool]:
    """The folder of the driver's library, and whether LD_LIBRARY_PATH leads to it.

    A host's LD_LIBRARY_PATH is that folder alone: folders in it come before those that Python's own
    libraries name.
    """
    if not library:
        return "", False
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder and os.path.realpath(Path(folder, "libcuda.so.1")) == library:
            return folder, True
    return str(Path(library).parent), False


def cuda_problem(dev: Path = Path("/dev")) -> str:
    """Why CUDA cannot work here, as far as that is known without torch; "" for no reason."""
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
    """Torch's facts about the first GPU, from a process of its own: this process forks, and CUDA
    does not survive a fork.
    """
    try:
        completed = subprocess.run(
            [sys.executable, "-I", "-c", _ASK],
            capture_output=True,
            text=True,
            timeout=_ASK_SECONDS,
            check=True,
        )
        return dict(json.loads(completed.stdout))
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        output = getattr(error, "stderr", "") or str(error)
        last_line = output.strip().rpartition("\n")[2]
        raise DeviceUnavailable(
            f"torch could not be asked for a GPU: {last_line}"
        ) from error


def _gpu_nodes(
    pci: str,
    drivers: Path = Path("/proc/driver/nvidia/gpus"),
    dev: Path = Path("/dev"),
) -> tuple[str, ...]:
    """The device file of the GPU at an address of the bus; the files of all GPUs where the driver
    does not tell.
    """
    with contextlib.suppress(OSError):
        about = (drivers / pci / "information").read_text(encoding="utf-8")
        if minor := re.search(r"^Device Minor:\s*(\d+)", about, re.MULTILINE):
            return (str(dev / f"nvidia{minor[1]}"),)
    return tuple(sorted(str(path) for path in dev.glob("nvidia[0-9]*")))


def _part_nodes(
    gpu_nodes: tuple[str, ...],
    capabilities: Path = Path("/proc/driver/nvidia/capabilities"),
    dev: Path = Path("/dev/nvidia-caps"),
) -> tuple[str, ...]:
    """The device files that open the parts (MIG) of these GPUs: a file for each GPU instance and
    for each compute instance. Without them the driver shows no part.

    The driver does not tell which of them belongs to the name of a part; `visible` chooses it.
    """
    nodes = []
    for gpu_node in gpu_nodes:
        minor = Path(gpu_node).name.removeprefix("nvidia")
        parts = capabilities / f"gpu{minor}" / "mig"
        for access in (*parts.glob("gi*/access"), *parts.glob("gi*/ci*/access")):
            about = access.read_text(encoding="utf-8")
            if capability := re.search(
                r"^DeviceFileMinor:\s*(\d+)", about, re.MULTILINE
            ):
                nodes.append(dev / f"nvidia-cap{capability[1]}")
    return tuple(sorted(str(node) for node in nodes if node.exists()))


def device_limits(limits: Limits) -> Limits:
    """Limits of a worker with a device, which takes seconds to start and to compile a kernel."""
    slow = limits.gpu_call_seconds
    return dataclasses.replace(
        limits,
        call_seconds=slow,
        cell_seconds=max(limits.cell_seconds, slow),
        cpu_seconds=max(limits.cpu_seconds, math.ceil(limits.submission_seconds)),
        scratch_mb=max(limits.scratch_mb, _COMPILED_MB),
        file_mb=max(limits.file_mb, _COMPILED_MB),  # of files in memory too
    )


def device_tier(isolation: str) -> str:
    """The tier of workers with a device.

    Other tiers than these do not work: compiled kernels must be written to a file, and the driver
    reads files that landlock and uid hide.

    Raises:
        DeviceUnavailable: `isolation` does not allow such a tier.
    """
    if isolation in ("auto", "strict", "namespaces"):
        return "namespaces"
    if isolation == "none":
        return "none"
    raise DeviceUnavailable(
        f"behind the walls {isolation!r} no GPU can be used: a kernel that is compiled must be "
        "written to a file. `--device cuda` needs the tier namespaces (`autograder doctor` says "
        "what would make it stand)"
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
        HostProcess(
            course, tier, extras=("torch", "triton on a device"), device=device
        ),
        device_limits(course.limits),
    )
    try:
        opened.host.wait_until_ready()
        fallen = find_fallen_wall(course, opened.host)
        if fallen is not None:
            raise DeviceUnavailable(
                f"the wall against {fallen.name!r} falls with a GPU ({fallen.detail})"
            )
        _run_kernel(opened)
    except (IsolationUnavailable, HostFailed) as error:
        opened.host.close()
        raise DeviceUnavailable(
            f"no GPU can be used behind the walls of {tier} here: {error}. `autograder doctor` "
            "says more; without `--device` kernels run in the interpreter"
        ) from error
    except BaseException:
        opened.host.close()
        raise
    return opened


def _run_kernel(opened: DeviceHost) -> None:
    """Run one small kernel in a worker, before any student's.

    Raises:
        DeviceUnavailable: the kernel does not run, or gives a wrong answer.
    """
    from autograder.sandbox.kit_program import run_program

    try:
        with run_program(
            _PROBE, opened.client, opened.limits, opened.limits.call_seconds
        ) as program:
            total = program.twice_the_sum(opened.device.name)
    except StudentFault as fault:
        raise DeviceUnavailable(
            f"{opened.device.description} does not work behind the walls: {fault}"
        ) from fault
    if total != 2 * sum(range(100)):
        raise DeviceUnavailable(
            f"the probe's kernel gives {total!r} on {opened.device.description}, and not 9900"
        )


def describe_gpu() -> str:
    """One line about the GPU for `doctor`."""
    try:
        gpu = find_device("cuda").description
        return f"GPU: {gpu}; `--device cuda` needs the tier namespaces"
    except DeviceUnavailable as problem:
        return f"GPU: none to grade on: {problem}"
