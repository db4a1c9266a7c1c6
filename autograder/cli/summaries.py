"""What `grade` and `verify` say at their end, to a person in front of a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from autograder.basics.safe_text import one_line

if TYPE_CHECKING:
    from autograder.grading.request import GradeRequest, GradeSummary
    from autograder.proof.verify import Proof

MOST_OVERLOOKED = 20
"""Lines about files that were not taken for submissions; there may be as many as there are
students.
"""


def describe_ungraded(summary: GradeSummary) -> list[str]:
    """A line for each submission without a new result, for files that were not taken for a
    submission, and for machines that refused their share.
    """
    lines = [
        f"not graded: {problem.student}: {problem.problem}"
        for problem in summary.problems
    ]
    overlooked = summary.overlooked[:MOST_OVERLOOKED]
    lines += [f"not taken for a submission: {line}" for line in overlooked]
    if more := len(summary.overlooked) - len(overlooked):
        lines.append(f"not taken for a submission: {more} more")
    lines += [f"refused its share: {line}" for line in summary.refused]
    return [one_line(line) for line in lines]


def tell_graded(summary: GradeSummary, request: GradeRequest) -> None:
    """Print the table of the class, and lines on everybody else."""
    from rich.console import Console

    from autograder.intake.released_notebook import written_points
    from autograder.outputs.speed_table import describe_speeds
    from autograder.outputs.terminal import select_rows, terminal_table
    from autograder.records.results import read_result

    name = request.assignment.name
    shown, left_out = select_rows(summary.results)
    stored = [read_result(request.results, name, row.student) for row in shown]
    results = [result for result in stored if result is not None]
    unwalled = sum(row.walls == "none" for row in summary.results)
    table = terminal_table(results, left_out, unwalled)
    Console(width=None if sys.stdout.isatty() else 100).print(table)
    lines = describe_ungraded(summary)
    for row in summary.results:
        if row.flagged:
            flagged = f"{row.student}: {', '.join(row.flagged)}"
            lines.append(
                one_line(f"two answers to one call: {flagged}; look at the cells")
            )
    for timed in summary.speeds:
        speeds = f"{timed.student}: {describe_speeds(timed.speeds)}"
        lines.append(one_line(f"speed beside the baseline: {speeds}"))
    if points := written_points(request.assignment):
        lines.append(
            f"not in these scores: {points:g} points of written answers, which a person gives"
        )
    parts = [f"graded {summary.graded} in {summary.seconds:.1f} s"]
    if unchanged := len(summary.results) - summary.graded:
        parts.append(f"{unchanged} unchanged")
    if summary.problems:
        parts.append(f"{len(summary.problems)} could not be graded")
    lines.append(", ".join(parts))
    if summary.results:
        lines.append(
            f"results in {request.results / name}; `autograder report {name}` writes the "
            "pages to read"
        )
    for line in lines:
        click.echo(line)


def tell_proofs(proofs: Sequence[Proof]) -> None:
    """Print a line for each proven suite, and a table of its questions for a single suite."""
    from rich.console import Console

    from autograder.proof.proof_report import question_table

    for proof in proofs:
        if not proof.problems:
            click.echo(str(proof))
    if len(proofs) == 1:
        Console(width=None if sys.stdout.isatty() else 120).print(
            question_table(proofs[0].figures)
        )
