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


def not_graded(summary: GradeSummary) -> list[str]:
    """A line for each submission that has no new result, and for what was not taken for a
    submission.
    """
    named = summary.overlooked[:MOST_OVERLOOKED]
    more = len(summary.overlooked) - len(named)
    return [
        *(
            one_line(f"not graded: {problem.student}: {problem.problem}")
            for problem in summary.problems
        ),
        *(one_line(f"not taken for a submission: {line}") for line in named),
        *([f"not taken for a submission: {more} more"] if more else []),
        *(one_line(f"refused its share: {line}") for line in summary.refused),
    ]


def tell_graded(summary: GradeSummary, request: GradeRequest) -> None:
    """The table of the class, and what became of everybody else."""
    from rich.console import Console

    from autograder.intake.released_notebook import written_points
    from autograder.outputs.speed_table import describe_speeds
    from autograder.outputs.terminal import select_rows, terminal_table
    from autograder.records.results import read_result

    name = request.assignment.name
    shown, left_out = select_rows(summary.results)
    results = [
        one for row in shown if (one := read_result(request.results, name, row.student)) is not None
    ]
    unwalled = sum(row.walls == "none" for row in summary.results)
    Console(width=None if sys.stdout.isatty() else 100).print(
        terminal_table(results, left_out, unwalled)
    )
    for line in not_graded(summary):
        click.echo(line)
    for row in summary.results:
        if row.flagged:
            click.echo(
                one_line(
                    f"two answers to one call: {row.student}: {', '.join(row.flagged)}; look "
                    "at the cells"
                )
            )
    for timed in summary.speeds:
        click.echo(
            one_line(f"speed beside the baseline: {timed.student}: {describe_speeds(timed.speeds)}")
        )
    if points := written_points(request.assignment):
        click.echo(
            f"not in these scores: {points:g} points of written answers, which a person gives"
        )
    unchanged = len(summary.results) - summary.graded
    parts = [f"graded {summary.graded} in {summary.seconds:.1f} s"]
    parts += [f"{unchanged} unchanged"] if unchanged else []
    parts += [f"{len(summary.problems)} could not be graded"] if summary.problems else []
    click.echo(", ".join(parts))
    if summary.results:
        click.echo(
            f"results in {request.results / name}; `autograder report {name}` writes the "
            "pages to read"
        )


def tell_proofs(proofs: Sequence[Proof]) -> None:
    """A line for each proven suite; of one alone, a table of its questions."""
    from rich.console import Console

    from autograder.proof.proof_report import question_table

    for proof in proofs:
        if not proof.problems:
            click.echo(str(proof))
    if len(proofs) == 1:
        Console(width=None if sys.stdout.isatty() else 120).print(question_table(proofs[0].figures))
