"""Says how often a mistake that nobody knows is told another one's hint.

    python benchmarks/left_out.py [ASSIGNMENT …] [--show]

In the course, whose solutions must be built. Each known mistake is graded like a student's answer
while it, and what has the same hint, is left out of the mistakes that have a name. What is told
then is at best a neighbour's hint, and mostly false of the answer: a person reads with `--show`
which. The hint for checks that are missing in general is true of whoever gets it, and counts by
itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.course import Course, load_course
from autograder.diagnosis.missing_checks import LACKS_A_CHECK
from autograder.grading.bench import Bench
from autograder.grading.extras import find_extras
from autograder.proof.proof_report import markdown_table
from autograder.proof.trials import examine_each, grade_answer
from autograder.records.submission import FoundSubmission
from autograder.sandbox.host_process import HostClient
from autograder.suite.known_answers import KnownAnswer

GRADERS = 2
"""Processes that grade beside each other."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a mistake was told while nobody knew it.

    Attributes:
        hint: the mistake's own.
        told: names and hints of other mistakes.
    """

    question: str
    name: str
    hint: str
    told: tuple[tuple[str, str], ...]

    @property
    def of_others(self) -> list[tuple[str, str]]:
        """What is told of it that is another mistake's."""
        return [(name, hint) for name, hint in self.told if name != LACKS_A_CHECK]


def leave_each_out(course: Course, assignment_name: str) -> list[LeftOut]:
    """What each mistake of an assignment is told while nobody knows it.

    Raises:
        SystemExit: mistakes could not be graded.
    """
    assignment = course.assignment(assignment_name)
    key = FoundSubmission("key", assignment.solution)
    extras = find_extras(assignment, [key], course.limits)
    with Bench(course, assignment, clients=GRADERS, extras=extras) as bench:
        mistakes = bench.grader.mistakes

        def grade_unknown(client: HostClient, mistake: KnownAnswer) -> LeftOut:
            bench.grader.name_only(
                [other for other in mistakes if other.hint != mistake.hint]
            )
            (result,) = grade_answer(bench, client, mistake, [mistake.question])
            diagnoses = [named for named in (result.diagnosis, *result.slips) if named]
            return LeftOut(
                mistake.question,
                mistake.name,
                mistake.hint,
                tuple((named.mistake, named.hint) for named in diagnoses),
            )

        records, problems = examine_each(bench, mistakes, grade_unknown, LeftOut)
    if problems:
        raise SystemExit("\n".join(problems))
    return records


def row(title: str, records: Sequence[LeftOut]) -> dict[str, str]:
    """The figures of some mistakes, as a row of a table."""

    def share(count: int) -> str:
        return f"{count} ({count / max(1, len(records)):.0%})"

    of_others = [record for record in records if record.of_others]
    general = [record for record in records if record.told and not record.of_others]
    return {
        "assignment": title,
        "mistakes": str(len(records)),
        "told nothing": share(len(records) - len(of_others) - len(general)),
        "that a check is missing": share(len(general)),
        "another's hint": share(len(of_others)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("assignments", nargs="*", metavar="ASSIGNMENT")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    course = load_course(Path.cwd())
    rows, all_records = [], list[LeftOut]()
    for name in options.assignments or [
        assignment.name for assignment in course.assignments()
    ]:
        records = leave_each_out(course, name)
        rows.append(row(name, records))
        all_records += records
        for record in records if options.show else ():
            if record.of_others:
                print(f"{record.question}: {record.name}: {record.hint}")
                for told, hint in record.of_others:
                    print(f"    {told}: {hint}")
    print(markdown_table([*rows, row("all", all_records)]))


if __name__ == "__main__":
    main()
