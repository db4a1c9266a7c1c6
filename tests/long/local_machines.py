"""A small course, and a Dask scheduler with machines that are processes here."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scratch_course import ScratchCourse

CLASS = (
    "student-002",
    "student-003",
    "student-005",
    "student-014",
    "student-023",
    "student-030",
)
COPIES = 6
LIMITS = {
    "call_seconds = 5.0": "call_seconds = 1.0",
    "cell_seconds = 10.0": "cell_seconds = 3.0",
}
SLEEPS = "import time\n\ntime.sleep(0.8)"
MACHINES = 2
GIVEN_UP = 6
"""Seconds after which the scheduler gives a silent machine up."""
QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "30s",
}
"""As docs/cluster.md advises."""


class SmallCourse(ScratchCourse):
    """What `autograder init` and `new` write, with a few of the demo class."""

    def write(self) -> None:
        self.temporary.mkdir()
        name = self.assignment
        for command in (("init", "."), ("new", name), ("build", name), ("demo", name)):
            if self.command(*command).wait():
                raise SystemExit(f"autograder {' '.join(command)} failed")
        settings = self.root / "course.toml"
        text = settings.read_text(encoding="utf-8")
        for default, ours in LIMITS.items():
            text = text.replace(default, ours)
        settings.write_text(text, encoding="utf-8")
        for student in (self.root / "submitted").iterdir():
            if student.name not in CLASS:
                shutil.rmtree(student)

    def grade_on(self, address: str, out: Path) -> subprocess.Popen[str]:
        return self.command(
            "grade", self.assignment, "--cluster", address, "--out", out
        )


class SleepyCourse(SmallCourse):
    """Each of the class several times, and with a cell that sleeps."""

    def write(self) -> None:
        super().write()
        for student in sorted((self.root / "submitted").iterdir()):
            path = student / self.assignment / f"{self.assignment}.ipynb"
            notebook = json.loads(path.read_text(encoding="utf-8"))
            cell: dict[str, Any] = {
                "cell_type": "code",
                "metadata": {},
                "execution_count": None,
                "outputs": [],
            }
            named = {"id": "sleeps"} if "id" in notebook["cells"][0] else {}
            notebook["cells"].append({**cell, **named, "source": SLEEPS})
            path.write_text(json.dumps(notebook), encoding="utf-8")
            for copy in range(1, COPIES):
                shutil.copytree(student, student.with_name(f"{student.name}-{copy}"))


@dataclass
class Cluster:
    """A scheduler and machines of this course. What has ended is started again by `mend`."""

    course: SleepyCourse
    port: int
    scheduler: subprocess.Popen[bytes] | None = None
    machines: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def mend(self) -> None:
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.scheduler = self._start(
                "scheduler", "--host", "127.0.0.1", "--port", str(self.port)
            )
        self.machines = [machine for machine in self.machines if machine.poll() is None]
        while len(self.machines) < MACHINES:
            options = (
                "--nthreads",
                "1",
                "--no-nanny",
                "--memory-limit",
                "0",
                "--death-timeout",
                "60",
            )
            folder = ("--local-directory", self.course.temporary)
            self.machines.append(self._start("worker", self.address, *options, *folder))

    def _start(self, program: str, *arguments: str | Path) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            f"distributed.cli.dask_{program}",
            *map(str, arguments),
        ]
        # else a page at port 8787 all the same
        command += ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
        settings = QUIET | {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{GIVEN_UP}s"}
        log = (self.course.root / f"{program}.log").open("ab")
        with log:
            return subprocess.Popen(
                command,
                env=self.course.environment() | settings,
                stdout=log,
                stderr=log,
            )

    def end(self) -> None:
        for process in (*self.machines, *([self.scheduler] if self.scheduler else [])):
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
