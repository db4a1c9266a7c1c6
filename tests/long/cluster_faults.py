"""Faults of a cluster, done for real: a Dask scheduler and two machines, each a process with
graders of its own.

    python tests/long/cluster_faults.py [--faults N] [--seed S]

A class of 36 is graded on this machine, undisturbed. Then it is graded on the cluster again and
again, and while it is, one thing after the other goes wrong, at moments that the seed decides: a
process of a machine gets SIGKILL, a machine vanishes, the scheduler is killed and started again, a
machine is frozen until it has been given up and then wakes with its answers, or the driver is
killed and started again. What has been written since the last fault is compared before the next
one, and all of it when the class is done: every result must equal the undisturbed one byte for
byte, none may have been replaced by another, and what was killed may leave no process. A cell that
sleeps is put into each notebook, so that a class lasts for several faults and takes little CPU.

Printed last, on standard output, is a table for docs/security.md; the exit status is 1 where
anything was wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from local_machines import CLASS, COPIES, GIVEN_UP, Cluster, SleepyCourse, free_port
from process_tree import alive, family
from scratch_course import Row, is_left_behind, table

PATIENCE = 300.0
"""Seconds for which one class may stand still on a crowded machine before it counts as hanging."""


# faults: each is done while the driver runs, and gives what must have ended a little later


class Running:
    """A class that is graded on a cluster while things go wrong."""

    def __init__(self, cluster: Cluster, out: Path) -> None:
        self.cluster, self.out = cluster, out
        self.said = ""
        self.rng = random.Random()
        cluster.mend()
        self.start()

    def start(self) -> None:
        """The driver, anew where there was one."""
        self.driver = self.cluster.course.grade_on(self.cluster.address, self.out)

    def end(self) -> int:
        """The driver is over, or is ended: its status."""
        self.driver.kill()
        self.said += self.driver.communicate()[1]
        return self.driver.returncode

    def written(self) -> int:
        """How many results there are."""
        return sum(
            1 for _ in (self.out / self.cluster.course.assignment).glob("*.json")
        )

    def waited(self, results: int, *, mending: bool = True) -> bool:
        """Wait until there are so many results, or the driver has ended by itself; machines that
        end are started again.

        Gives whether that came before it stood still.
        """
        last, since = self.written(), time.monotonic()
        while self.driver.poll() is None and (there := self.written()) < results:
            if there != last:
                last, since = there, time.monotonic()
            if time.monotonic() > since + PATIENCE:
                self.said += "it hangs"
                return False
            if mending or all(
                machine.poll() is not None for machine in self.cluster.machines
            ):
                self.cluster.mend()
            time.sleep(0.1)
        return True

    def at_work(self) -> list[subprocess.Popen[bytes]]:
        """Machines with graders."""
        return [
            machine
            for machine in self.cluster.machines
            if machine.poll() is None and self.graders(machine.pid)
        ]

    def some_machine(self) -> subprocess.Popen[bytes] | None:
        """One that is at work; None where the driver ends first."""
        end = time.monotonic() + PATIENCE
        while self.driver.poll() is None and time.monotonic() < end:
            if them := self.at_work():
                return self.rng.choice(them)
            self.cluster.mend()
            time.sleep(0.2)
        return None

    def station(self, machine: int) -> int | None:
        for pid, parent in family(machine).items():
            if (
                parent == machine
                and b"autograder.grading.station_program" in command_line(pid)
            ):
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
    """The Dask worker of a machine."""
    if (machine := run.some_machine()) is None:
        return None
    before = family(machine.pid)
    kill([machine.pid])
    machine.wait()
    return before


def kill_station(run: Running) -> dict[int, int] | None:
    """The program that grades on a machine."""
    if (machine := run.some_machine()) is None or (
        station := run.station(machine.pid)
    ) is None:
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
    """A machine with all that runs on it, until others have got on without it."""
    if (machine := run.some_machine()) is None:
        return None
    before = family(machine.pid)
    kill(list(before))
    machine.wait()
    return before


def restart_scheduler(run: Running) -> dict[int, int] | None:
    """The scheduler, which is started again a little later; the machines end with it, or are
    ended.
    """
    scheduler = run.cluster.scheduler
    if run.some_machine() is None or scheduler is None:
        return None
    kill([scheduler.pid])
    scheduler.wait()
    time.sleep(run.rng.uniform(0.0, 3.0))
    end = time.monotonic() + 20.0
    while (
        any(machine.poll() is None for machine in run.cluster.machines)
        and time.monotonic() < end
    ):
        time.sleep(0.1)
    for machine in run.cluster.machines:
        machine.kill()
        machine.wait()
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
    run.end()
    run.start()
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


# classes


def one_class(
    cluster: Cluster, plan: Sequence[int], seed: int, out: Path, right: dict[str, bytes]
) -> list[Row]:
    """Grade the class to its end, with the faults of these numbers one after the other for as long
    as it lasts.

    Gives a row for each that was done.
    """
    run = Running(cluster, out)
    rows: list[Row] = []
    good: set[str] = set()
    for number in plan:
        run.rng = random.Random(f"{seed}-{number}")
        calm = not rows or FAULTS[rows[-1].fault] is not vanish
        if not run.waited(run.written() + run.rng.randrange(1, 4), mending=calm):
            break
        time.sleep(run.rng.uniform(0.0, 0.5))
        if rows:
            compare(rows[-1], cluster.course.results(out), right, good)
        if run.driver.poll() is not None or (gone := FAULTS[kind(number)](run)) is None:
            break
        rows.append(Row(kind(number), done=1))
        if living := still_alive(gone):
            rows[-1].wrong += len(living)
            print(f"{number}: alive {living}", file=sys.stderr)
    finish(run, rows, right, good)
    return rows


def compare(
    row: Row, results: dict[str, bytes], right: dict[str, bytes], good: set[str]
) -> None:
    """Those that are new."""
    for name in results.keys() - good:
        row.compared += 1
        if results[name] == right.get(name):
            good.add(name)
        else:
            row.wrong += 1
            print(f"{row.fault}: {name} is wrong", file=sys.stderr)


def finish(
    run: Running, rows: list[Row], right: dict[str, bytes], good: set[str]
) -> None:
    """Grade until the command ends by itself, and look at everything: the last fault answers for
    what is wrong.
    """
    row = rows[-1] if rows else Row("none")
    for _ in range(3):
        row.wrong += not run.waited(len(right) + 1)
        if (status := run.end()) == 0:
            break
        run.cluster.mend()
        run.start()
    results = run.cluster.course.results(run.out)
    row.compared += len(results.keys() - good)
    wrong = [name for name, content in right.items() if results.get(name) != content]
    left = [path for path in run.out.rglob("*") if is_left_behind(path)]
    replaced = list((run.out / "history").rglob("*.json"))
    row.wrong += (
        len(wrong)
        + len(left)
        + len(replaced)
        + (status != 0)
        + ("Traceback" in run.said)
    )
    if row.wrong:
        print(
            f"{row.fault}: wrong {wrong}, left {left}, replaced {replaced}, status {status}",
            file=sys.stderr,
        )
        print(run.said, file=sys.stderr)


def kind(number: int) -> str:
    return list(FAULTS)[number % len(FAULTS)]


def still_alive(pids: dict[int, int]) -> list[int]:
    """What lives on; the seconds are for a machine that has other things to do."""
    end = time.monotonic() + 15.0
    while (left := alive(pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def totals(rows: Sequence[Row]) -> list[Row]:
    """A row for each kind of fault, in the order of `FAULTS`."""
    summed = {fault: Row(fault) for fault in FAULTS}
    for row in rows:
        total = summed[row.fault]
        total.done, total.compared = (
            total.done + row.done,
            total.compared + row.compared,
        )
        total.wrong += row.wrong
    return list(summed.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows: list[Row] = []
    classes = 0
    with tempfile.TemporaryDirectory(prefix="cluster-faults-") as folder:
        course = SleepyCourse(Path(folder) / "course", "small")
        right = course.undisturbed(COPIES * CLASS)
        cluster = Cluster(course, free_port())
        try:
            while len(rows) < options.faults:
                started, out = time.monotonic(), course.root / "out"
                more = one_class(
                    cluster, range(len(rows), options.faults), options.seed, out, right
                )
                if not more:
                    raise SystemExit(
                        "the class was over before anything could go wrong, or stood still"
                    )
                rows += more
                classes += 1
                print(
                    f"{len(rows)} faults, {time.monotonic() - started:.0f} s",
                    file=sys.stderr,
                )
                shutil.rmtree(out, ignore_errors=True)
        finally:
            cluster.end()
            print(table(totals(rows)))
            print(f"{classes} classes of {len(right)}")
    raise SystemExit(any(row.wrong for row in rows))


if __name__ == "__main__":
    main()
