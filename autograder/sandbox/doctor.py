"""`autograder doctor`: walls that stand on this machine, reasons why others fall, and advice."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Generator, Iterator
from importlib import metadata
from pathlib import Path

from autograder.course import Course
from autograder.sandbox.device import describe_gpu
from autograder.sandbox.machine_limits import machine_problems
from autograder.sandbox.tiers import STRICT, platform_problem, survey

ADVICE = (
    (
        "Ubuntu 24.04 (GitHub's runners too)",
        "AppArmor refuses user namespaces to ordinary users: run as root (`sudo`), or set "
        "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`; without either, landlock stands.",
    ),
    (
        "Docker",
        "the default profile refuses namespaces: run with `--security-opt seccomp=unconfined "
        "--cap-add SYS_ADMIN`; without it, landlock stands on kernels from 5.13 on.",
    ),
    (
        "Gradescope",
        "containers run as root, some without Landlock: then uid is what stands.",
    ),
    (
        "Slurm",
        "nodes seldom allow user namespaces: landlock stands on kernels from 5.13 on.",
    ),
    (
        "macOS, Windows",
        "the walls are made of Linux: use a Linux machine, WSL 2, or a container.",
    ),
)


def doctor_command(course: Course) -> Generator[str, None, bool]:
    """Yields lines to print; returns whether a strict tier stands."""
    yield from _machine()
    problem = platform_problem()
    if problem:
        yield problem
        return False
    yield describe_gpu()
    for problem in machine_problems(course.limits, 1):
        yield f"nothing can be graded here: {problem}"
    best = ""
    for tier, walls, readable, reason in survey(course):
        kind = "strict" if tier in STRICT else "weaker"
        if reason:
            yield f"\n{tier} ({kind}): does not stand: {reason}"
        else:
            yield f"\n{tier} ({kind}): stands"
            best = best or tier
        for wall in walls:
            yield f"  {'yes' if wall.stands else 'NO '}  cannot {wall.name}  [{wall.detail}]"
        if walls:
            yield f"       can read {', '.join(readable) or 'nothing'}"
    yield (
        "\ngrading here uses: "
        f"{best or 'nothing: no walls stand, and only --isolation none grades'}"
    )
    is_strict = best in STRICT
    if not is_strict:
        yield "\nFor stronger walls:"
        for platform_name, advice in ADVICE:
            yield f"  {platform_name}: {advice}"
    return is_strict


def _machine() -> Iterator[str]:
    yield (
        f"{platform.system()} {platform.release()}, {platform.machine()}, Python "
        f"{platform.python_version()}"
    )
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    user = "root" if is_root else "an ordinary user"
    yield f"running as {user}, {os.cpu_count()} cores, {_memory()}"
    for package in ("torch", "triton", "numpy", "pytest", "nbgrader", "safetensors"):
        try:
            yield f"  {package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            yield (
                f"  {package} is missing: install the kit again with pip, or with `make "
                "venv` in a clone"
            )
    on_path = "" if shutil.which("autograder") else "  (autograder is not on PATH)"
    yield f"  python {sys.executable}{on_path}"


def _memory() -> str:
    try:
        kilobytes = int(Path("/proc/meminfo").read_text(encoding="utf-8").split()[1])
    except (OSError, ValueError, IndexError):
        return "memory unknown"
    return f"{kilobytes / 1e6:.0f} GB of memory"
