"""What the examples of failed questions cost when a class is graded.

    python benchmarks/example_costs.py ASSIGNMENT FOLDER [--rounds 3] [--show]

In a course. FOLDER holds submissions, such as those of `autograder demo`. Those that get an example
are graded by one process behind this machine's best walls, with examples and without, in turns.
Printed are milliseconds of CPU of grader, host and workers for each example, and with `--show` the
examples.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "long"))

from process_tree import cpu_of

from autograder.course import load_course
from autograder.grading.bench import Bench
from autograder.intake.find import find_submissions
from autograder.records.model import Result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("assignment")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    course = load_course(Path.cwd())
    assignment = course.assignment(options.assignment)
    found = find_submissions(course, assignment, [options.folder])
    with Bench(course, assignment) as bench:
        graded = [(each, bench.grade(each).result) for each in found]
        failing = [
            (each, result)
            for each, result in graded
            if result is not None
            and any(question.example is not None for question in result.questions)
        ]
        if options.show:
            for _, result in failing:
                show(result)
        questions = sum(
            question.example is not None
            for _, result in failing
            for question in result.questions
        )
        find = bench.grader._examples.find
        costs: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(options.rounds):
            for with_examples in (False, True):
                bench.grader._examples.find = (  # type: ignore[method-assign]
                    find if with_examples else lambda *_: None
                )
                started = cpu_of()
                for each, _ in failing:
                    bench.grade(each)
                time.sleep(1.2)  # workers count once the host has waited for them
                costs[with_examples].append(1e3 * (cpu_of() - started))
        without, with_them = (statistics.median(costs[key]) for key in (False, True))
        print(
            f"{len(failing)} submissions, {questions} examples: {without:.0f} ms without, "
            f"{with_them:.0f} ms with, {(with_them - without) / max(1, questions):.1f} ms each"
        )


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
