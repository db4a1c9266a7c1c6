"""For how many failing answers the feedback page has a small example.

    python benchmarks/example_shares.py [ASSIGNMENT …] [--question Q] [--list]

In a course. Every known mistake of an assignment is graded like a student's submission, in an
answer key that is right otherwise. The table counts the mistakes that lose points, those with an
example that a student can run, and those with a call and a sentence in its place, where the
difference is no value (cost, refusal, gradient). With `--list` follow the mistakes that get none.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.course import Assignment, Course, load_course
from autograder.grading.bench import Bench
from autograder.grading.extras import find_extras
from autograder.proof.trials import Replacement, examine_each, grade_answer
from autograder.sandbox.host_process import HostClient


@dataclass(frozen=True, slots=True)
class ExampleOfMistake:
    """What the feedback page of a mistake has.

    Attributes:
        kind: "right" where the mistake loses nothing; "example"; "sentence"; "nothing".
    """

    question: str
    name: str
    kind: str


def examine(
    course: Course, assignment: Assignment, question: str
) -> list[ExampleOfMistake]:
    """Every known mistake of an assignment, or of one question, with what its page has."""
    extras = find_extras(assignment, (), course.limits)
    with Bench(course, assignment, "auto", os.cpu_count() or 1, extras) as bench:
        mistakes = [
            mistake
            for mistake in bench.grader.mistakes
            if question in ("", mistake.question) and not mistake.is_students
        ]

        def look(client: HostClient, mistake: Replacement) -> ExampleOfMistake:
            (result,) = grade_answer(bench, client, mistake, [mistake.question])
            kind = "nothing"
            if result.score == result.max_score:
                kind = "right"
            elif result.example is not None:
                kind = "example" if result.example.yours else "sentence"
            return ExampleOfMistake(mistake.question, mistake.name, kind)

        examined, problems = examine_each(bench, mistakes, look, ExampleOfMistake)
    if problems:
        raise SystemExit("\n".join(problems))
    return examined


def lines_of(
    assignment: str, examined: list[ExampleOfMistake], *, is_listed: bool
) -> Iterator[str]:
    """The row of an assignment, and the mistakes without anything."""
    counts = Counter(mistake.kind for mistake in examined)
    failing = len(examined) - counts["right"]
    missing = [mistake for mistake in examined if mistake.kind == "nothing"]
    by_question = Counter(mistake.question for mistake in missing)
    where = ", ".join(f"{name} {count}" for name, count in by_question.most_common(4))
    share = len(missing) / max(1, failing)
    yield (
        f"| {assignment} | {failing} | {counts['example']} | {counts['sentence']} | "
        f"{len(missing)} ({share:.0%}) | {where} |"
    )
    if is_listed:
        yield from (f"    {mistake.question}: {mistake.name}" for mistake in missing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("assignments", nargs="*", metavar="ASSIGNMENT")
    parser.add_argument("--question", default="")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    course = load_course(Path.cwd())
    print(
        "| assignment | failing answers | an example | a call in words | neither | where |"
    )
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    named = [course.assignment(name) for name in options.assignments]
    for assignment in named or course.assignments():
        examined = examine(course, assignment, options.question)
        for line in lines_of(assignment.name, examined, is_listed=options.list):
            print(line, flush=True)


if __name__ == "__main__":
    main()
