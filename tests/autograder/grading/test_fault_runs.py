"""Short forms of the fault runs of tests/long/: processes are killed while a class is graded,
commands are cut off at their writes, and files that they read are damaged.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LONG = Path(__file__).resolve().parents[2] / "long"


def program(name: str, *arguments: str) -> str:
    """What the program prints; it ends with status 0 where nothing was wrong."""
    command = [sys.executable, str(LONG / name), *arguments]
    in_memory = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | in_memory
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_processes_killed_at_seeded_moments_change_no_result() -> None:
    said = program("faults.py", "--kills", "4", "--seed", "3", "--only-kills")
    assert [line for line in said.splitlines() if line.startswith("| SIGKILL to the ")]


def test_commands_that_are_cut_off_leave_the_old_state_or_the_new() -> None:
    said = program(
        "file_faults.py",
        "--points",
        "1",
        "--seed",
        "3",
        "--only",
        "init,collect,regrade,a gradebook",
    )
    assert said.count("| 3 |") >= 4  # commands, each with three faults


def test_damaged_files_end_no_command_in_a_traceback_and_give_no_mark() -> None:
    said = program("fuzz_files.py", "--sample", "1", "--seed", "3")
    assert said.count("| 1 |") >= 15  # kinds of files, each with one case
