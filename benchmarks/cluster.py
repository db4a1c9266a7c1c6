"""A large class on a local cluster beside the local pool: the same bytes, throughput, CPU time,
memory.

    python benchmarks/cluster.py [--size 10000] [--workers 2] [--pool-size N]

The demo class of the assignment that `autograder new` writes, repeated. It is graded by the pool
and by `--cluster local:N`; then a hundredth of the results is removed and graded again. With
`--pool-size` the pool grades the first N of the class alone, and only their results are compared;
throughputs are compared by what a submission beyond the tenth took, so that no start counts. Memory
is the most that the command's own process held. The last lines on standard output are a table for
docs/performance.md; the exit status is 1 where a result differs.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "long"))

from local_machines import SmallCourse

POOL, CLUSTER = "grade, pool", "grade, cluster"
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Step:
    """One command: seconds on the wall, seconds of CPU of all its processes and of its own, and its
    own memory.
    """

    name: str
    size: int
    wall: float
    cpu: float
    own_cpu: float
    own_mb: float

    def row(self) -> str:
        return (
            f"| {self.name} | {self.size} | {self.wall:.1f} | {self.size / self.wall:.1f} "
            f"| {1e3 * self.cpu / self.size:.0f} | {1e3 * self.own_cpu / self.size:.1f} | "
            f"{self.own_mb:.0f} |"
        )


class LargeClass(SmallCourse):
    """The demo class, again and again."""

    def write(self) -> None:
        super().write()
        self.command("demo", self.assignment).wait()

    def repeat(self, size: int) -> None:
        demo = sorted(
            path
            for path in (self.root / "submitted").iterdir()
            if path.name.startswith("student-")
        )
        for number in range(len(demo), size):
            to = self.root / "submitted" / f"student-{number + 1:05d}"
            if not to.exists():
                shutil.copytree(demo[number % 32], to, symlinks=True)


def adopt_orphans() -> None:
    """Processes whose parent ends before them become this one's: their CPU would be counted
    nowhere.
    """
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def reap_orphans() -> None:
    end = time.monotonic() + 10.0
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < end:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.05)


def timed(course: LargeClass, name: str, size: int, *arguments: str | Path) -> Step:
    """Run a command of the kit; one that ends with 1 has named what could not be graded."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = course.command(*arguments)
    own_mb = own_cpu = 0.0
    while process.poll() is None:
        with contextlib.suppress(OSError, ValueError, IndexError):
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
            own_mb = max(own_mb, int(status.split("VmHWM:")[1].split()[0]) / 1024)
            fields = (
                Path(f"/proc/{process.pid}/stat")
                .read_text(encoding="ascii")
                .rpartition(")")[2]
                .split()
            )
            own_cpu = (int(fields[11]) + int(fields[12])) / TICK
        time.sleep(0.1)
    wall = time.monotonic() - started
    reap_orphans()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{name} failed: {process.communicate()[1][-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    step = Step(name, size, wall, cpu, own_cpu, own_mb)
    print(step.row(), file=sys.stderr)
    return step


def measure(
    course: LargeClass, size: int, pool_size: int, workers: int
) -> tuple[list[Step], int]:
    """All steps for a tenth of the class and for all of it, and how many results differ between
    pool and cluster.
    """
    steps, differing = [], 0
    tenth = max(32, size // 10)
    for by_pool, by_cluster in ((tenth, tenth), (pool_size, size)):
        pool, cluster = (
            course.root / f"pool-{by_pool}",
            course.root / f"cluster-{by_cluster}",
        )
        course.repeat(by_pool)
        grade = ("grade", course.assignment, "--out")
        steps.append(
            timed(course, POOL, by_pool, *grade, pool, "--workers", str(workers))
        )
        course.repeat(by_cluster)
        on_cluster = (*grade, cluster, "--cluster", f"local:{workers}")
        steps.append(timed(course, CLUSTER, by_cluster, *on_cluster))
        for path in sorted((cluster / course.assignment).glob("*.json"))[::100]:
            path.unlink()
        steps.append(
            timed(course, "grade, a hundredth missing", by_cluster, *on_cluster)
        )
        ours, theirs = course.results(pool), course.results(cluster)
        names = ours.keys() | (theirs.keys() if by_pool == by_cluster else set())
        differing += sum(ours.get(name) != theirs.get(name) for name in names)
    return steps, differing


def beyond_the_tenth(steps: Sequence[Step], name: str) -> tuple[float, float]:
    """Of the submissions that the tenth has not: how many a second, and the milliseconds of the
    command's own CPU.
    """
    small, large = (step for step in steps if step.name == name)
    more = large.size - small.size
    return more / (large.wall - small.wall), 1e3 * (
        large.own_cpu - small.own_cpu
    ) / more


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pool-size", type=int)
    options = parser.parse_args()
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="cluster-") as folder:
        course = LargeClass(Path(folder) / "course", "small")
        course.root.mkdir()
        course.write()
        steps, differing = measure(
            course, options.size, options.pool_size or options.size, options.workers
        )
    print(
        "| step | class | seconds | a second | CPU a submission, ms | its own alone, ms | its "
        "own memory, MB |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join(step.row() for step in steps))
    pool, pool_cpu = beyond_the_tenth(steps, POOL)
    cluster, cluster_cpu = beyond_the_tenth(steps, CLUSTER)
    print(
        f"beyond the tenth, pool: {pool:.2f} a second, {pool_cpu:.1f} ms of the command's own "
        "CPU for each"
    )
    print(
        f"beyond the tenth, cluster: {cluster:.2f} a second, {cluster_cpu:.1f} ms of the "
        "command's own CPU for each"
    )
    print(f"the cluster's throughput is {100 * cluster / pool:.0f} % of the pool's")
    print(f"results that differ between pool and cluster: {differing}")
    raise SystemExit(differing > 0)


if __name__ == "__main__":
    main()
