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
from autograder.sandbox import machine_limits
from autograder.sandbox.machine_limits import (
    Limit,
    limit_problems,
    raise_open_files,
    temporary_problem,
)

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


@pytest.mark.parametrize(
    ("user", "free", "available", "files", "free_files", "is_full"),
    [
        # blocks of 4096 bytes: 256 are a megabyte
        (0, 256, 0, 100, 1, False),
        (0, 255, 256, 100, 1, True),
        (1000, 255, 256, 100, 1, False),
        (1000, 256, 255, 100, 1, True),
        (0, 256, 256, 100, 0, True),
        # a file system that counts no files
        (0, 256, 256, 0, 0, False),
    ],
)
def test_a_megabyte_and_a_file_must_be_free(
    monkeypatch: pytest.MonkeyPatch,
    user: int,
    free: int,
    available: int,
    files: int,
    free_files: int,
    is_full: bool,
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/elsewhere")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    disk = os.statvfs_result(
        (8192, 4096, 1000, free, available, files, 50, free_files, 0, 255)
    )
    monkeypatch.setattr(os, "statvfs", lambda folder: disk)
    assert bool(temporary_problem()) == is_full


@pytest.mark.parametrize(
    ("soft", "hard", "raised"),
    [
        (1024, OPEN, (4096, OPEN)),
        (1024, 8192, (4096, 8192)),
        (1024, 2048, (2048, 2048)),
        (2048, 2048, None),
        (4096, 8192, None),
        (OPEN, OPEN, None),
    ],
)
def test_open_files_are_raised_as_far_as_allowed(
    monkeypatch: pytest.MonkeyPatch,
    soft: int,
    hard: int,
    raised: tuple[int, int] | None,
) -> None:
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: calls.append(pair))
    raise_open_files()
    assert calls == ([] if raised is None else [raised])


def test_processes_are_counted_for_each_grader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """100 run, and each of 2 graders needs 8 more; root is not counted."""
    monkeypatch.setattr(machine_limits, "_own_tasks", lambda: 100)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    nproc = resource.RLIMIT_NPROC
    assert list(limit_problems(LIMITS, 2, only(nproc, 116))) == []
    assert list(limit_problems(LIMITS, 2, only(nproc, OPEN))) == []
    assert list(limit_problems(LIMITS, 2, only(nproc, 115))) == [
        "`ulimit -u` allows 115 processes and threads here, of which 100 run: raise it, "
        "end others, or use fewer --workers"
    ]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert list(limit_problems(LIMITS, 2, only(nproc, 3))) == []


def test_tasks_of_this_user_alone_are_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for process, tasks in (("1", 2), ("22", 3), ("self", 4)):
        for task in range(tasks):
            (tmp_path / process / "task" / str(task)).mkdir(parents=True)
    (tmp_path / "3").mkdir()  # it has ended: no tasks any more
    monkeypatch.setattr(machine_limits, "Path", lambda proc: tmp_path)
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner)
    assert machine_limits._own_tasks() == 5
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert machine_limits._own_tasks() == 0


def test_all_problems_of_a_machine_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        machine_limits, "limit_problems", lambda limits, graders: iter(["low"])
    )
    monkeypatch.setattr(machine_limits, "temporary_problem", lambda: "full")
    assert list(machine_limits.machine_problems(LIMITS, 1)) == ["low", "full"]
    monkeypatch.setattr(machine_limits, "temporary_problem", lambda: "")
    assert list(machine_limits.machine_problems(LIMITS, 1)) == ["low"]
