"""The short form of benchmarks/faults.py: a class is graded while its processes are killed, and every byte is right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FAULTS = Path(__file__).resolve().parents[3] / "benchmarks" / "faults.py"


def test_processes_killed_at_seeded_moments_change_no_result() -> None:
    command = [sys.executable, str(FAULTS), "--kills", "4", "--seed", "3", "--only-kills"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("| SIGKILL to the ")]
