"""What the search for an example costs, for each failed question of a class.

    python benchmarks/example_costs.py ASSIGNMENT FOLDER [--show]

In a course, on Linux. FOLDER holds submissions, such as those of `autograder demo`. They are graded
twice by one process behind this machine's best walls; the first time the scripts of each question
are planned, and does not count. Printed are milliseconds of processor time of the grader and of all
processes below it for each failed question of the second time, less what reading the processes'
times takes; their mean, also of those alone that call the submission again; and with `--show` the
examples.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "long"))

from process_tree import family

from autograder.course import load_course
from autograder.grading.bench import Bench
from autograder.intake.find import find_submissions
from autograder.records.model import Result
from autograder.suite.collection import SuiteQuestion

_NO_SEARCH = 2.0
"""Milliseconds below which no call of the submission was made: the example is words, or none."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("assignment")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    course = load_course(Path.cwd())
    assignment = course.assignment(options.assignment)
    submissions = find_submissions(course, assignment, [options.folder])
    with Bench(course, assignment) as bench:
        for submission in submissions:
            bench.grade(submission)
        costs: list[tuple[str, float]] = []
        find = bench.grader._examples.find

        def find_and_measure(question: SuiteQuestion, *arguments: Any) -> Any:
            start = _processor_times()
            before = _processor_times()
            example = find(question, *arguments)
            after = _processor_times()
            of_reading = _spent_between(start, before)
            costs.append(
                (question.name, max(0.0, _spent_between(before, after) - of_reading))
            )
            return example

        bench.grader._examples.find = find_and_measure  # type: ignore[assignment, method-assign]
        for submission in submissions:
            result = bench.grade(submission).result
            if options.show and result is not None:
                show(result)
    for name, cost in costs:
        print(f"{name:30} {cost:6.1f} ms")
    calling = [cost for _, cost in costs if cost > _NO_SEARCH]
    for title, chosen in (
        ("failed questions", [cost for _, cost in costs]),
        ("that call the submission again", calling),
    ):
        if chosen:
            print(f"{len(chosen)} {title}: {statistics.mean(chosen):.1f} ms each")


def _spent_between(before: dict[int, int], after: dict[int, int]) -> float:
    """Milliseconds of processor time between two readings."""
    spent = sum(time - before.get(pid, 0) for pid, time in after.items())
    return spent / 1e6


def _processor_times() -> dict[int, int]:
    """Nanoseconds of processor time of this process and of those below it, by process number. A
    process that has ended since is not among them: a search leaves its worker open.
    """
    times = {}
    for pid in family(os.getpid()):
        tasks = Path(f"/proc/{pid}/task")
        with contextlib.suppress(OSError):
            times[pid] = sum(
                int((task / "schedstat").read_text(encoding="ascii").split()[0])
                for task in tasks.iterdir()
            )
    return times


def show(result: Result) -> None:
    for question in result.questions:
        if question.score < question.max_score:
            print(f"--- {result.student} {question.name}")
            if question.example is not None:
                example = question.example
                print(example.call)
                print(
                    f"  yours {example.yours}\n  expected {example.expected}\n  {example.note}"
                )
                print(f"  {example.table}" if example.table else "")


if __name__ == "__main__":
    main()
