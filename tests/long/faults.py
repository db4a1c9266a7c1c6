"""Faults, done for real: processes killed at seeded moments, a full disk, a gradebook in use, two
runs at once.

    python tests/long/faults.py [--kills N] [--stops N] [--seed S] [--only-kills]

A class of six (right answers, mistakes with carried points, a crash, a hang) is graded undisturbed.
Then it is graded again and again; at random moments the command, its host, a grader or a worker
gets SIGKILL, and the command is run until it ends by itself with status 0. Then some of its
processes, or all, are stopped (SIGSTOP) at random moments for longer than a call may sleep, and
woken, as Ctrl-Z, a paused container or a suspended laptop do it. Every result must equal the
undisturbed one byte for byte, every process must have ended, and nothing may be left in the
temporary folder. The other faults are done once each. The last line on standard output is a table
for docs/security.md; the exit status is 1 where anything was wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from process_tree import alive, family
from scratch_course import ASSIGNMENT, CLASS, Row, ScratchCourse, is_left_behind, table

VICTIMS = ("command", "host", "grader", "worker")
PATIENCE = 240.0
"""Seconds that one run may take on a crowded machine before it counts as hanging."""
KILLS_A_CLASS = 6
STOPPED: dict[str, tuple[str, ...]] = {
    "the worker": ("worker",),
    "host and workers": ("host", "worker"),
    "command and graders (Ctrl-Z)": ("command", "grader"),
    "all of them": VICTIMS,
}
STOPPED_SECONDS = 13.0
"""Longer than a call of the class may take of a processor (5 s) and be asleep (10 s), and than a
worker that is stopped is waited for.
"""


# processes


def victims(root: int) -> dict[str, list[int]]:
    """The processes of a running command by kind. A host is a program of its own, and so are its
    forks.
    """
    found: dict[str, list[int]] = {kind: [] for kind in VICTIMS}
    found["command"] = [root]
    depth = namespaces_of(root)
    for pid, parent in family(root).items():
        with contextlib.suppress(OSError):
            if pid == root:
                continue
            if b"worker/host.py" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                found["grader"].append(pid)
            elif parent == root or namespaces_of(pid) == depth + 1:
                found["host"].append(pid)
            else:
                found["worker"].append(pid)
    return found


def namespaces_of(pid: int) -> int:
    """How many process namespaces a process lies in."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return len(line.split()) - 1
    return 0


# faults


class Killer:
    """Kills at random moments of one class's grading, until that ends by itself."""

    def __init__(
        self, course: ScratchCourse, rng: random.Random, rows: dict[str, Row]
    ) -> None:
        self._course, self._rng, self._rows = course, rng, rows

    def disturb(self, out: Path, plan: list[str]) -> Counter[str]:
        """Grade into `out`; kill as planned, one after the other. Gives what was killed."""
        waiting, killed = list(plan), Counter[str]()
        for _ in range(len(plan) + 3):
            process = self._course.grade(out)
            while waiting and process.poll() is None:
                if self._kill(process, waiting[0]):
                    killed[waiting.pop(0)] += 1
            try:
                _, said = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                said = "it hangs"
            if "Traceback" in said or said == "it hangs":
                self._rows[plan[0]].wrong += 1
                print(said, file=sys.stderr)
            if process.returncode == 0:
                break
        return killed

    def _kill(self, process: subprocess.Popen[str], kind: str) -> bool:
        """Whether there was one to kill before the command ended."""
        time.sleep(self._rng.uniform(0.0, 2.5))
        end = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < end:
            them = victims(process.pid)[kind]
            if them and (kind != "command" or victims(process.pid)["grader"]):
                before = family(process.pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._rng.choice(sorted(them)), signal.SIGKILL)
                if kind == "command":
                    process.wait()
                    self._orphans(before)
                return True
            time.sleep(0.02)
        return False

    def _orphans(self, before: dict[int, int]) -> None:
        """Nothing lives on after the command: the seconds are for a machine that has other things
        to do.
        """
        end = time.monotonic() + 5.0
        while (left := alive(before)) and time.monotonic() < end:
            time.sleep(0.02)
        if left:
            self._rows["command"].wrong += 1
            print(f"{len(left)} processes live on after the command", file=sys.stderr)


def kill_at_random(
    course: ScratchCourse, right: dict[str, bytes], kills: int, seed: int
) -> list[Row]:
    rng = random.Random(seed)
    rows = {kind: Row(f"SIGKILL to the {kind}") for kind in VICTIMS}
    killer = Killer(course, rng, rows)
    done = number = 0
    while done < kills:
        number += 1
        out = course.root / f"out-{number}"
        plan = [rng.choice(VICTIMS) for _ in range(min(KILLS_A_CLASS, kills - done))]
        killed = killer.disturb(out, plan)
        results = course.results(out)
        wrong = sum(results.get(name) != content for name, content in right.items())
        left = [
            path
            for folder in (out, course.temporary)
            for path in folder.rglob("*")
            if is_left_behind(path)
        ]
        if wrong or left:
            print(
                f"{plan}: {wrong} results are wrong or missing; left behind: {left}",
                file=sys.stderr,
            )
        for kind, count in killed.items():
            rows[kind].done += count
            rows[kind].compared += len(right)
            rows[kind].wrong += wrong + len(left)
        done += max(1, sum(killed.values()))
        print(f"{done} kills", file=sys.stderr)
        shutil.rmtree(out, ignore_errors=True)
    return list(rows.values())


def stop_at_random(
    course: ScratchCourse, right: dict[str, bytes], stops: int, seed: int
) -> list[Row]:
    rng = random.Random(seed)
    rows = {
        whom: Row(f"SIGSTOP to {whom} for {STOPPED_SECONDS:g} s") for whom in STOPPED
    }
    for number in range(stops):
        whom = list(STOPPED)[number % len(STOPPED)]
        out = course.root / f"stopped-{number}"
        process = course.grade(out)
        time.sleep(rng.uniform(0.0, 2.5))
        processes = stop(process, STOPPED[whom])
        time.sleep(STOPPED_SECONDS)
        for pid in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        process.communicate(timeout=PATIENCE)
        results = course.results(out)
        wrong = sum(results.get(name) != content for name, content in right.items()) + (
            process.returncode != 0
        )
        row = rows[whom]
        rows[whom] = Row(
            row.fault,
            row.done + bool(processes),
            row.compared + len(right),
            row.wrong + wrong,
        )
        print(f"{number + 1} stops", file=sys.stderr)
        shutil.rmtree(out, ignore_errors=True)
    return list(rows.values())


def stop(process: subprocess.Popen[str], kinds: tuple[str, ...]) -> list[int]:
    """Stop a command's processes of these kinds as soon as there is a worker; which they were."""
    while process.poll() is None:
        them = victims(process.pid)
        if them["worker"]:
            chosen = [pid for kind in kinds for pid in them[kind]]
            for pid in chosen:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            return chosen
        time.sleep(0.02)
    return []


def compare(row: Row, course: ScratchCourse, out: Path, right: dict[str, bytes]) -> Row:
    """Grade once more to the end, and compare."""
    process = course.grade(out)
    process.communicate()
    results = course.results(out)
    wrong = sum(results.get(name) != content for name, content in right.items())
    return dataclasses.replace(
        row, compared=len(right), wrong=row.wrong + wrong + (process.returncode != 0)
    )


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", folder], check=True
    )
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def full_disk(course: ScratchCourse, right: dict[str, bytes]) -> Row:
    row = Row("the disk of the results is full, then there is space")
    out = course.root / "small-disk"
    with small_disk(out):
        process = course.grade(out)
        _, said = process.communicate()
        told = (
            process.returncode == 2
            and "no space left" in said
            and "Traceback" not in said
        )
        subprocess.run(["mount", "-o", "remount,size=16m", out], check=True)
        return compare(
            dataclasses.replace(row, done=1, wrong=not told), course, out, right
        )


def two_at_once(course: ScratchCourse, right: dict[str, bytes]) -> Row:
    row = Row("two runs into one folder at once")
    out = course.root / "both"
    both = [course.grade(out), course.grade(out)]
    said = [process.communicate()[1] for process in both]
    told = sorted(process.returncode for process in both) == [0, 2] and any(
        "another run (process" in s for s in said
    )
    return compare(dataclasses.replace(row, done=1, wrong=not told), course, out, right)


def results_removed(course: ScratchCourse, right: dict[str, bytes]) -> Row:
    row = Row("the results are removed while the class is graded")
    out = course.root / "removed"
    process = course.grade(out)
    while process.poll() is None and len(course.results(out)) < 2:
        time.sleep(0.02)
    shutil.rmtree(out, ignore_errors=True)
    process.communicate()
    whole = course.results(out) == right
    return compare(
        dataclasses.replace(row, done=1, wrong=not whole), course, out, right
    )


def gradebook_in_use(course: ScratchCourse, right: dict[str, bytes]) -> Row:
    row = Row("the gradebook is in use by another program, then free")
    book, out = course.root / "book.db", course.root / "undisturbed"
    export = (
        "export",
        ASSIGNMENT,
        "--format",
        "gradebook",
        "--to",
        book,
        "--results",
        out,
    )
    wrong = course.command(*export).wait()
    with contextlib.closing(sqlite3.connect(book, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        process = course.command(*export)
        _, said = process.communicate()
        wrong += not (
            process.returncode == 2
            and "in use by another program" in said
            and "Traceback" not in said
        )
        holder.execute("ROLLBACK")
    wrong += course.command(*export).wait()
    return compare(
        dataclasses.replace(row, done=1, wrong=int(wrong)), course, out, right
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--stops", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only-kills", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        course = ScratchCourse(Path(folder) / "course")
        right = course.undisturbed(CLASS)
        rows = kill_at_random(course, right, options.kills, options.seed)
        if not options.only_kills:
            rows += stop_at_random(course, right, options.stops, options.seed)
            rows += [
                fault(course, right)
                for fault in (two_at_once, results_removed, gradebook_in_use)
            ]
            rows += [full_disk(course, right)] if os.geteuid() == 0 else []
    print(table(rows))
    raise SystemExit(any(row.wrong for row in rows))


if __name__ == "__main__":
    main()
