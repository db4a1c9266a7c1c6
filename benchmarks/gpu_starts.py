"""Does CUDA start behind the walls? The first question on a GPU, and what it fails at.

    python benchmarks/gpu_starts.py --json starts.json

Tries, in this order: torch in a process of its own; a device host without walls; a device host
behind the walls, whose worker runs one kernel. Where the last fails, its worker plays the recorded
calls of CUDA's start (tests/autograder/kernels/driver_calls.py) and names those that are refused;
and where `strace` is there, the host is started once more under it, and the refused calls of all
its processes are written down. Each result is in the file before the next try begins.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from autograder.course import load_course  # noqa: E402
from autograder.sandbox import device as devices  # noqa: E402
from autograder.sandbox.host_process import Device  # noqa: E402
from autograder.sandbox.kit_program import run_program  # noqa: E402

_CALLS = ROOT / "tests" / "autograder" / "kernels" / "driver_calls.py"
_REFUSED = re.compile(r"^.*= -1 (?:EPERM|EACCES|EROFS|ENOSYS) .*$", re.MULTILINE)
_STRACE_SECONDS = 40
_MOST_LINES = 60


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=Path("starts.json"))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--walled-only", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.walled_only:
        print(_open(_find(options.device), "namespaces"))
        return 0
    report: dict[str, Any] = {}

    def note(name: str, step: Callable[[], Any]) -> Any:
        begin = time.monotonic()
        try:
            answer = step()
        except Exception as error:  # the next tries say more
            answer = {"problem": f"{type(error).__name__}: {error}"}
        report[name] = {"answer": answer, "seconds": round(time.monotonic() - begin, 1)}
        options.json.write_text(
            json.dumps(report, indent=1, default=str), encoding="utf-8"
        )
        print(f"{name}: {answer}", flush=True)
        return answer

    note("torch", devices._ask_torch)
    note("device", lambda: asdict(_find(options.device)))
    note("without walls", lambda: _open(_find(options.device), "none"))
    walled = note(
        "behind the walls", lambda: _open(_find(options.device), "namespaces")
    )
    if walled == "right":
        return 0
    note("calls of CUDA's start", lambda: _play(_find(options.device)))
    if shutil.which("strace"):
        note("refused calls", lambda: _traced(options.device))
    return 1


def _find(name: str) -> Device:
    return Device("cpu", "the CPU") if name == "cpu" else devices.find_device(name)


def _open(device: Device, isolation: str) -> str:
    """Start a device host and have its worker run a kernel; "right" where it does."""
    opened = devices.open_device(load_course(ROOT), isolation, device)
    opened.host.close()
    return "right"


def _play(device: Device) -> dict[str, str]:
    """The recorded calls that a worker behind the walls may not make, with the GPU's own files."""
    course = load_course(ROOT)
    stand_in = Device(
        "cpu", "walls of a GPU", nodes=device.nodes, visible=device.visible
    )
    opened = devices.open_device(course, "namespaces", stand_in)
    try:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "calls.py")
            text = _CALLS.read_text(encoding="utf-8")
            program.write_text(
                text.replace("from __future__ import annotations\n", ""),
                encoding="utf-8",
            )
            with run_program(program, opened.client, opened.limits, 20.0) as calls:
                outcomes: dict[str, str] = calls.start_of_cuda(list(device.nodes))
    finally:
        opened.host.close()
    return {name: outcome for name, outcome in outcomes.items() if outcome != "allowed"}


def _traced(device: str) -> list[str]:
    """Refused system calls of a device host and its worker, the last ones."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "calls.txt")
        command = [
            *("strace", "-f", "--seccomp-bpf", "-o", str(log), "-e", "signal=none"),
            *(sys.executable, __file__, "--walled-only", "--device", device),
        ]
        subprocess.run(
            command, timeout=_STRACE_SECONDS, check=False, env=dict(os.environ)
        )
        lines = _REFUSED.findall(log.read_text(encoding="utf-8", errors="replace"))
    return lines[-_MOST_LINES:]


if __name__ == "__main__":
    raise SystemExit(main())
