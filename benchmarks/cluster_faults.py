"""Faults of a cluster, done for real: a Dask scheduler and two machines, each a process with graders of its own.

    python benchmarks/cluster_faults.py [--runs N] [--seed S]

A class of six is graded on this machine, undisturbed. Then it is graded on the cluster again and again. In each run one
thing goes wrong, at a moment that the seed decides: a process of a machine gets SIGKILL, a machine vanishes, the
scheduler is killed and started again, a machine is frozen until it has been given up and then wakes with its answers,
or the driver is killed and started again. Every result must equal the undisturbed one byte for byte, none may have been
replaced by another, and what was killed may leave no process. Printed last, on standard output, is a table for
docs/security.md; the exit status is 1 where anything was wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from faults import Row, ScratchCourse, alive, family, is_left_behind, table

CLASS = ("student-002", "student-003", "student-005", "student-014", "student-023", "student-030")
LIMITS = {"call_seconds = 5.0": "call_seconds = 1.0", "cell_seconds = 10.0": "cell_seconds = 1.0"}
MACHINES = 2
PATIENCE = 300.0
"""Seconds that one run may take on a crowded machine before it counts as hanging."""
GIVEN_UP = 4
"""Seconds after which the scheduler gives a silent machine up."""


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
        return self.command("grade", self.assignment, "--cluster", address, "--out", out)


# the cluster


@dataclass
class Cluster:
    """A scheduler and machines of this course. What has ended is started again by `mend`."""

    course: SmallCourse
    port: int
    scheduler: subprocess.Popen[bytes] | None = None
    machines: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def mend(self) -> None:
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")
        self.machines = [machine for machine in self.machines if machine.poll() is None]
        while len(self.machines) < MACHINES:
            self.machines.append(
                self._start("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
                            "--memory-limit", "0", "--death-timeout", "60", "--local-directory", self.course.temporary)
            )  # fmt: skip

    def _start(self, program: str, *arguments: str | Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{program}", *map(str, arguments)]
        settings = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{GIVEN_UP}s"}
        log = (self.course.root / f"{program}.log").open("ab")
        with log:
            return subprocess.Popen(command, env=self.course.environment() | settings, stdout=log, stderr=log)

    def end(self) -> None:
        for process in (*self.machines, *([self.scheduler] if self.scheduler else [])):
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


# faults: each is done while the driver runs, and gives what must have ended a little later


@dataclass
class Running:
    """A run in which something is about to go wrong."""

    cluster: Cluster
    driver: subprocess.Popen[str]
    rng: random.Random

    def at_work(self) -> list[subprocess.Popen[bytes]]:
        """Machines with graders."""
        return [machine for machine in self.cluster.machines if machine.poll() is None and self.graders(machine.pid)]

    def some_machine(self) -> subprocess.Popen[bytes] | None:
        """One that is at work; None where the driver ends first."""
        end = time.monotonic() + PATIENCE
        while self.driver.poll() is None and time.monotonic() < end:
            if them := self.at_work():
                return self.rng.choice(them)
            time.sleep(0.05)
        return None

    def station(self, machine: int) -> int | None:
        for pid, parent in family(machine).items():
            if parent == machine and b"autograder.cluster.station" in command_line(pid):
                return pid
        return None

    def graders(self, machine: int) -> list[int]:
        station = self.station(machine)
        return [
            pid
            for pid, parent in (family(station) if station else {}).items()
            if parent == station and b"worker/host.py" not in command_line(pid)
        ]


def command_line(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_worker(run: Running) -> dict[int, int] | None:
    """The Dask worker of a machine; it is started again at once."""
    if (machine := run.some_machine()) is None:
        return None
    before = family(machine.pid)
    kill([machine.pid])
    machine.wait()
    run.cluster.mend()
    return before


def kill_station(run: Running) -> dict[int, int] | None:
    """The program that grades on a machine."""
    if (machine := run.some_machine()) is None or (station := run.station(machine.pid)) is None:
        return None
    before = family(station)
    kill([station])
    return before


def kill_grader(run: Running) -> dict[int, int] | None:
    """A grader of a machine."""
    machine = run.some_machine()
    if machine is None or not (graders := run.graders(machine.pid)):
        return None
    grader = run.rng.choice(graders)
    before = family(grader)
    kill([grader])
    return before


def vanish(run: Running) -> dict[int, int] | None:
    """A machine with all that runs on it, for as long as the class is graded."""
    if (machine := run.some_machine()) is None:
        return None
    before = family(machine.pid)
    kill(list(before))
    machine.wait()
    return before


def restart_scheduler(run: Running) -> dict[int, int] | None:
    """The scheduler; machines go with it, and all are started again a little later."""
    scheduler = run.cluster.scheduler
    if run.some_machine() is None or scheduler is None:
        return None
    kill([scheduler.pid])
    scheduler.wait()
    time.sleep(run.rng.uniform(0.0, 3.0))
    run.cluster.mend()
    return {}


def freeze(run: Running) -> dict[int, int] | None:
    """A machine's Dask worker, while its graders go on: it wakes when others have its share."""
    if (machine := run.some_machine()) is None:
        return None
    os.kill(machine.pid, signal.SIGSTOP)
    time.sleep(GIVEN_UP + run.rng.uniform(1.0, 3.0))
    os.kill(machine.pid, signal.SIGCONT)
    return {}


def kill_driver(run: Running) -> dict[int, int] | None:
    """Whoever grades; the same command is run again."""
    if run.some_machine() is None:
        return None
    run.driver.kill()
    return {}


FAULTS: dict[str, Callable[[Running], dict[int, int] | None]] = {
    "SIGKILL to a machine's Dask worker": kill_worker,
    "SIGKILL to a machine's station": kill_station,
    "SIGKILL to a machine's grader": kill_grader,
    "a machine vanishes with its share": vanish,
    "SIGKILL to the scheduler, which is started again": restart_scheduler,
    "a machine is frozen, given up, and wakes with its answers": freeze,
    "SIGKILL to the driver, which is started again": kill_driver,
}


# runs


def one_run(cluster: Cluster, fault: str, out: Path, rng: random.Random, right: dict[str, bytes]) -> Row:
    """Grade the class, do the fault, grade until the command ends by itself, and compare."""
    course, row = cluster.course, Row(fault)
    cluster.mend()
    driver = course.grade_on(cluster.address, out)
    after = rng.randrange(len(right) - 2)
    while driver.poll() is None and len(course.results(out)) < after:
        time.sleep(0.02)
    time.sleep(rng.uniform(0.0, 0.3))
    gone = FAULTS[fault](Running(cluster, driver, rng))
    for _ in range(3):
        end = time.monotonic() + PATIENCE
        while driver.poll() is None and time.monotonic() < end:
            if FAULTS[fault] is not vanish:
                cluster.mend()
            time.sleep(0.1)
        hangs = driver.poll() is None
        driver.kill()
        said = driver.communicate()[1] + "it hangs" * hangs
        row.wrong += hangs
        if driver.returncode == 0:
            break
        cluster.mend()
        driver = course.grade_on(cluster.address, out)
    row.done = int(gone is not None)
    results = course.results(out)
    row.compared = len(right)
    wrong = [name for name, content in right.items() if results.get(name) != content]
    left = [path for path in out.rglob("*") if is_left_behind(path)]
    replaced = list((out / "history").rglob("*.json"))
    living = still_alive(gone or {})
    row.wrong += len(wrong) + len(left) + len(replaced) + len(living) + (driver.returncode != 0) + ("Traceback" in said)
    if row.wrong:
        print(f"{fault}: wrong {wrong}, left {left}, replaced {replaced}, alive {living}, status {driver.returncode}",
              file=sys.stderr)  # fmt: skip
        print(said, file=sys.stderr)
    return row


def still_alive(pids: dict[int, int]) -> list[int]:
    """What lives on; the seconds are for a machine that has other things to do."""
    end = time.monotonic() + 15.0
    while (left := alive(pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows = {fault: Row(fault) for fault in FAULTS}
    with tempfile.TemporaryDirectory(prefix="cluster-faults-") as folder:
        course = SmallCourse(Path(folder) / "course", "small")
        right = course.undisturbed(CLASS)
        cluster = Cluster(course, free_port())
        try:
            for number in range(options.runs):
                fault = list(FAULTS)[number % len(FAULTS)]
                rng = random.Random(f"{options.seed}-{number}")
                started = time.monotonic()
                row = one_run(cluster, fault, course.root / f"out-{number}", rng, right)
                total = rows[fault]
                total.done, total.compared = total.done + row.done, total.compared + row.compared
                total.wrong += row.wrong
                print(f"{number + 1}: {fault}, {time.monotonic() - started:.0f} s", file=sys.stderr)
                shutil.rmtree(course.root / f"out-{number}", ignore_errors=True)
        finally:
            cluster.end()
            print(table(list(rows.values())))
    raise SystemExit(any(row.wrong for row in rows.values()))


if __name__ == "__main__":
    main()
