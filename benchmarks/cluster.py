"""A large class on a local cluster beside the local pool: the same bytes, throughput, memory, and what comes after.

    python benchmarks/cluster.py [--size 10000] [--workers 2]

The demo class of the assignment that `autograder new` writes, repeated. It is graded by the pool and by `--cluster
local:N`; a hundredth of the results is removed and graded again; then the reports and exports are made, for a tenth of
the class and for all of it. Memory is the most that the command's own process held. The last lines on standard output
are a table for docs/performance.md; the exit status is 1 where a result differs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_faults import SmallCourse

EXPORTS = ("csv", "tests", "junit", "gradebook")
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Step:
    """One command: seconds on the wall, seconds of CPU of all its processes and of its own, and its own memory."""

    name: str
    size: int
    wall: float
    cpu: float
    own_cpu: float
    own_mb: float

    def row(self) -> str:
        return (
            f"| {self.name} | {self.size} | {self.wall:.1f} | {self.size / self.wall:.1f} | {self.cpu:.1f} "
            f"| {1e3 * self.own_cpu / self.size:.1f} | {self.own_mb:.0f} |"
        )


class LargeClass(SmallCourse):
    """The demo class, again and again."""

    def write(self) -> None:
        super().write()
        self.command("demo", self.assignment).wait()

    def repeat(self, size: int) -> None:
        demo = sorted(path for path in (self.root / "submitted").iterdir() if path.name.startswith("student-"))
        for number in range(len(demo), size):
            to = self.root / "submitted" / f"student-{number + 1:05d}"
            if not to.exists():
                shutil.copytree(demo[number % 32], to, symlinks=True)


def timed(course: LargeClass, name: str, size: int, *arguments: str | Path) -> Step:
    """Run a command of the kit; one that ends with 1 has named what could not be graded."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = course.command(*arguments)
    own_mb = own_cpu = 0.0
    while process.poll() is None:
        with contextlib.suppress(OSError, ValueError, IndexError):
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
            own_mb = max(own_mb, int(status.split("VmHWM:")[1].split()[0]) / 1024)
            fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            own_cpu = (int(fields[11]) + int(fields[12])) / TICK
        time.sleep(0.1)
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{name} failed: {process.communicate()[1][-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    step = Step(name, size, wall, cpu, own_cpu, own_mb)
    print(step.row(), file=sys.stderr)
    return step


def measure(course: LargeClass, sizes: Sequence[int], workers: int) -> tuple[list[Step], int]:
    """All steps for each size, and how many results differ between pool and cluster."""
    steps, differing = [], 0
    for size in sizes:
        course.repeat(size)
        pool, cluster = course.root / f"pool-{size}", course.root / f"cluster-{size}"
        grade = ("grade", course.assignment, "--out")
        on_cluster = (*grade, cluster, "--cluster", f"local:{workers}")
        steps.append(timed(course, "grade, pool", size, *grade, pool, "--workers", str(workers)))
        steps.append(timed(course, "grade, cluster", size, *on_cluster))
        for path in sorted((cluster / course.assignment).glob("*.json"))[::100]:
            path.unlink()
        steps.append(timed(course, "grade, a hundredth missing", size, *on_cluster))
        ours, theirs = course.results(pool), course.results(cluster)
        differing += sum(ours.get(name) != theirs.get(name) for name in ours.keys() | theirs.keys())
        steps.append(timed(course, "report", size, "report", course.assignment, "--results", cluster))
        for kind in EXPORTS:
            to = course.root / f"{size}.{kind}"
            export = ("export", course.assignment, "--format", kind, "--results", cluster, "--to", to)
            steps.append(timed(course, f"export {kind}", size, *export))
    return steps, differing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cluster-") as folder:
        course = LargeClass(Path(folder) / "course", "small")
        course.root.mkdir()
        course.write()
        steps, differing = measure(course, (max(32, options.size // 10), options.size), options.workers)
    print("| step | class | seconds | a second | CPU, seconds | own CPU a submission, ms | own memory, MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join(step.row() for step in steps))
    print(f"results that differ between pool and cluster: {differing}")
    raise SystemExit(differing > 0)


if __name__ == "__main__":
    main()
