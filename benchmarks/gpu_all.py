"""All that is measured on a GPU, in one command of at most 9 minutes, into one JSON file.

    benchmarks/gpu_all.sh                    on a GPU; writes gpu.json
    benchmarks/gpu_all.sh --dry-run          the steps that a CPU can do, at tiny sizes
    benchmarks/gpu_all.sh --only speed       one step

Needs a clone of the kit, torch and triton. The steps `starts` and `grade` need the kit's own
environment (`make grade` makes it), `transformers` that library; where they are missing these steps
say so. Each step is a process with its own time limit, and the file is written after each: a step
that fails, or takes too long, keeps what it had written, is named with its last lines, and costs no
other step. What a step leaves of its time, later ones do not need: the limits add up to the whole.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SECONDS = 520.0
_SAID = 12  # lines of a step that are kept


@dataclass(frozen=True)
class Step:
    """One measurement.

    Attributes:
        seconds: its time limit.
        command: what runs it; it writes JSON to the path that is added as its last argument.
        missing: why it cannot run here; "" where it can.
    """

    name: str
    seconds: float
    command: tuple[str, ...]
    missing: str = ""


def steps(dry_run: bool) -> list[Step]:
    """What runs, in this order: first whether it is right, then how fast it is."""
    transformers = (
        ""
        if importlib.util.find_spec("transformers")
        else "transformers is not installed"
    )
    if dry_run:
        gpu = "only on a GPU"
        decode: tuple[str, ...] = (
            "--device",
            "cpu",
            "--model",
            "tiny",
            "--new",
            "4",
            "--rounds",
            "1",
        )
        return [
            _step("starts", 60, "gpu_starts.py", "--device", "cpu"),
            _step("right", 300, "gpu_attention.py", "--check-cpu"),
            _step("memory", 0, "gpu_attention.py", missing=gpu),
            _step("grade", 400, "gpu_grade.py", "--device", "cpu"),
            _step("decode", 120, "decode.py", "--alone", *decode),
            _step("transformers", 120, "decode.py", *decode, missing=transformers),
            _step("speed", 0, "gpu_attention.py", missing=gpu),
        ]
    decode = (
        "--device",
        "cuda",
        "--model",
        "gpt2",
        "--dtype",
        "float16",
        "--new",
        "32",
        "--rounds",
        "3",
    )
    return [
        _step("starts", 60, "gpu_starts.py"),
        _step("right", 80, "gpu_attention.py", "--only", "right"),
        _step("grade", 150, "gpu_grade.py", "--device", "cuda"),
        _step("speed", 130, "gpu_attention.py", "--only", "speed", "--seconds", "105"),
        _step("decode", 35, "decode.py", "--alone", *decode),
        _step("memory", 30, "gpu_attention.py", "--only", "memory"),  # up to N = 131072
        _step("transformers", 35, "decode.py", *decode, missing=transformers),
    ]


def _step(
    name: str, seconds: float, script: str, *arguments: str, missing: str = ""
) -> Step:
    return Step(
        name,
        seconds,
        (sys.executable, str(HERE / script), *arguments, "--json"),
        missing,
    )


def run(step: Step, folder: Path, seconds: float) -> dict[str, Any]:
    """Run one step for at most `seconds`. What it wrote is there, also where it failed
    afterwards.
    """
    if step.missing:
        return {"ok": False, "why": step.missing}
    if seconds < 1:
        return {"ok": False, "why": "no time was left"}
    result, said = folder / f"{step.name}.json", folder / f"{step.name}.txt"
    begin = time.monotonic()
    with said.open("wb") as out:
        process = subprocess.Popen(
            [*step.command, str(result)],
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            status = process.wait(seconds)
            why = "" if status == 0 else f"ended with {status}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            why = f"took more than {seconds:.0f} s"
    row: dict[str, Any] = {
        "ok": not why,
        "why": why,
        "seconds": round(time.monotonic() - begin, 1),
    }
    try:
        row["result"] = json.loads(result.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        row |= {"ok": False, "why": why or "wrote no result"}
    if not row["ok"]:
        row["said"] = said.read_text(encoding="utf-8", errors="replace").splitlines()[
            -_SAID:
        ]
    return row


def machine() -> dict[str, Any]:
    """The card, its driver, and the versions that matter."""
    query = [
        "nvidia-smi",
        "--query-gpu=name,driver_version,memory.total",
        "--format=csv,noheader",
    ]
    versions = {name: _version(name) for name in ("torch", "triton", "transformers")}
    python = ".".join(str(part) for part in sys.version_info[:3])
    return {
        "gpu": _first_line(query),
        "commit": _first_line(["git", "-C", str(HERE), "rev-parse", "HEAD"]),
        "python": python,
        **versions,
    }


def _first_line(command: list[str]) -> str:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=20
        ).stdout.split("\n")[0]
    except (OSError, subprocess.SubprocessError):
        return ""


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def write(path: Path, report: dict[str, Any]) -> None:
    """The whole report, or the older one."""
    whole = path.with_name(path.name + ".part")
    whole.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    whole.replace(path)


def measure(chosen: list[Step], path: Path, seconds: float = SECONDS) -> bool:
    """Run the steps one after the other; whether all that can run here is right."""
    deadline = time.monotonic() + seconds
    report: dict[str, Any] = {"machine": machine(), "steps": {}}
    with tempfile.TemporaryDirectory(prefix="gpu-all-") as scratch:
        for step in chosen:
            print(f"{step.name} …", end=" ", flush=True)
            row = run(
                step, Path(scratch), min(step.seconds, deadline - time.monotonic())
            )
            report["steps"][step.name] = row
            write(path, report)
            print(f"{row['seconds']} s" if row["ok"] else row["why"], flush=True)
    return all(report["steps"][step.name]["ok"] for step in chosen if not step.missing)


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Ends with 0 where every step that can run here went well, else with 1.",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="on the CPU, at tiny sizes: does each step work?",
    )
    parser.add_argument(
        "--json",
        type=Path,
        default=Path("gpu.json"),
        help="where the numbers go (gpu.json)",
    )
    parser.add_argument(
        "--only", action="append", help="run this step; may be given several times"
    )
    asked = parser.parse_args(given)
    chosen = steps(asked.dry_run)
    names = [step.name for step in chosen]
    if unknown := sorted(set(asked.only or ()) - set(names)):
        parser.error(f"no step {', '.join(unknown)}; there are {', '.join(names)}")
    if not asked.json.absolute().parent.is_dir():
        parser.error(f"{asked.json.absolute().parent} is no folder")
    if not asked.dry_run and not machine()["gpu"]:
        parser.error("nvidia-smi names no GPU here; --dry-run does what a CPU can")
    fine = measure(
        [step for step in chosen if not asked.only or step.name in asked.only],
        asked.json,
    )
    print(f"written to {asked.json}")
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
