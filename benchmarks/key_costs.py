"""What grading the answer keys costs, and which tests of theirs take it.

    python benchmarks/key_costs.py [ASSIGNMENT …] [--rounds 5] [--tests 0]

In a course, whose solutions must be built. Each key is graded once to warm up and then `--rounds`
times by one process behind this machine's best walls; the medians are printed as a table for
docs/performance.md: milliseconds of CPU of the grader, and of the host and the workers together.
With `--tests N` follow the N tests that take longest, with the time on the wall: grader and worker
wait for each other, so that is the CPU of both where the machine does nothing else.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "long"))

from process_tree import cpu_of

from autograder.course import Assignment, Course, load_course
from autograder.grading.bench import Bench
from autograder.grading.extras import find_extras
from autograder.records.submission import FoundSubmission


def measure(course: Course, assignment: Assignment, rounds: int, tests: int) -> None:
    """Grade the key of one assignment again and again, and print what it took."""
    found = FoundSubmission("key", assignment.solution)
    took: dict[tuple[str, str], list[float]] = defaultdict(list)
    with Bench(
        course, assignment, extras=find_extras(assignment, [found], course.limits)
    ) as bench:
        suite, run = bench.grader.suite, bench.grader.suite.run

        def timed(question: str, test: str) -> BaseException | None:
            started = time.perf_counter()
            try:
                return run(question, test)
            finally:
                took[question, test].append(1e3 * (time.perf_counter() - started))

        suite.run = timed  # type: ignore[method-assign]
        result = bench.grade(found).result
        if result is None or result.score != result.max_score:
            raise SystemExit(
                f"{assignment.name}: the answer key does not get all points: {result}"
            )
        took.clear()
        graders, others, walls = [], [], []
        for _ in range(rounds):
            wall, own, every = time.perf_counter(), time.process_time(), cpu_of()
            bench.grade(found)
            own, wall = time.process_time() - own, time.perf_counter() - wall
            # workers that have ended count once the host has waited for them, every second
            time.sleep(1.2)
            graders.append(1e3 * own)
            others.append(1e3 * (cpu_of() - every - own))
            walls.append(1e3 * wall)
    both = statistics.median(map(sum, zip(graders, others, strict=True)))
    grader, other, wall = map(statistics.median, (graders, others, walls))
    print(
        f"| {assignment.name} | {len(took)} | {both:.0f} | {grader:.0f} | {other:.0f} | "
        f"{wall:.0f} |",
        flush=True,
    )
    for (question, test), its in sorted(
        took.items(), key=lambda item: -statistics.median(item[1])
    )[:tests]:
        print(f"    {statistics.median(its):7.1f} ms  {question}: {test}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("assignments", nargs="*", metavar="ASSIGNMENT")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tests", type=int, default=0)
    options = parser.parse_args()
    course = load_course(Path.cwd())
    print(
        "| answer key | tests | CPU, ms | of it the grader | host and workers | on the wall |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    named = [course.assignment(name) for name in options.assignments]
    for assignment in named or course.assignments():
        measure(course, assignment, options.rounds, options.tests)


if __name__ == "__main__":
    main()
