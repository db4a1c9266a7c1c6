"""Limits of the shell and a full temporary folder are told by their names, before anything is
started.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from autograder.course import Limits
from autograder.sandbox.machine_limits import Limit, limit_problems, temporary_problem

LIMITS = Limits(memory_mb=2000, cpu_seconds=60, file_mb=16)
OPEN = resource.RLIM_INFINITY


def only(what: int, most: int) -> Limit:
    return lambda asked: (most, most) if asked == what else (OPEN, OPEN)


@pytest.mark.parametrize(
    ("what", "low", "high", "line"),
    [
        (
            resource.RLIMIT_NOFILE,
            271,
            272,
            "`ulimit -n` allows 271 open files here, and grading needs 272: raise it",
        ),
        (
            resource.RLIMIT_AS,
            614_400_000,
            3_170_893_824,
            "`ulimit -v` allows 600000 kB of addresses here, and grading needs 3096576: raise it",
        ),
        (
            resource.RLIMIT_CPU,
            5,
            120,
            "`ulimit -t` allows 5 seconds of CPU time here, and grading needs 120: raise it",
        ),
        (
            resource.RLIMIT_FSIZE,
            1024,
            16 << 20,
            "`ulimit -f` allows 1 kB in a file here, and grading needs 16384: raise it",
        ),
    ],
)
def test_a_limit_that_is_too_low_is_called_by_its_name(
    what: int, low: int, high: int, line: str
) -> None:
    assert list(limit_problems(LIMITS, 2, only(what, low))) == [line]
    assert list(limit_problems(LIMITS, 2, only(what, high))) == []
    assert list(limit_problems(LIMITS, 2, only(what, OPEN))) == []


def test_an_ordinary_user_is_told_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() or 65534)
    (line,) = limit_problems(LIMITS, 2, only(resource.RLIMIT_NPROC, 3))
    assert line.startswith("`ulimit -u` allows 3 processes and threads here, of which ")


def test_a_temporary_folder_without_space_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/elsewhere")
    full = os.statvfs_result((4096, 4096, 100, 0, 0, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda folder: full)
    assert (
        temporary_problem()
        == "/elsewhere has no space left: free some there, or set TMPDIR to a folder elsewhere"
    )


def test_no_temporary_folder_at_all_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    assert "set TMPDIR" in temporary_problem()


@pytest.mark.parametrize(
    ("name", "most"), [("n", 40), ("v", 600_000), ("t", 5), ("f", 16)]
)
def test_nothing_is_started_under_a_limit_that_is_too_low(
    tmp_path: Path, name: str, most: int
) -> None:
    """`launch_host` is where every grading begins."""
    program = (
        "from autograder.course import Course\nfrom autograder.sandbox.tiers import launch_host\n"
        "from autograder.basics.errors import KitError\nfrom pathlib import Path\n"
        "try: launch_host(Course(Path('.')), 'auto', 1)\nexcept KitError as error: print(error)"
    )
    command = [
        "sh",
        "-c",
        f'ulimit -{name} {most}; exec "$0" -c "$1"',
        sys.executable,
        program,
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert f"`ulimit -{name}` allows {most if name != 'f' else 8} " in done.stdout, (
        done.stderr
    )
