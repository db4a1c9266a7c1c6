"""The commands on a class, from `collect` to `totals`: each reads its options and calls a function.

A command returns its lines, and `cli/base.py` prints each as soon as it is known. `grade` alone
prints by itself: its JSON has no lines, and its exit status says whether anything needs a person.

Nothing heavy is imported before it is needed: `--help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autograder.basics.errors import KitError
from autograder.cli import (  # noqa: F401  # importing them adds their commands to `main`
    authoring_commands,
    learning_commands,
    server_commands,
)
from autograder.cli.base import (
    LocalPath,
    PlatformChoice,
    beside,
    find_course,
    main,
    workers_option,
)
from autograder.cli.summaries import describe_ungraded, tell_graded
from autograder.sandbox.tiers import ISOLATIONS

if TYPE_CHECKING:
    from autograder.cluster.driver import Cluster

__all__ = ["main"]

_DEVICES = ("cpu", "cuda")
_GRADING_OPTIONS = (
    click.argument("assignment"),
    click.argument("paths", metavar="[NOTEBOOK|FOLDER]...", nargs=-1, type=LocalPath()),
    workers_option,
    click.option(
        "--isolation",
        type=click.Choice(ISOLATIONS),
        default="auto",
        help="Which walls must stand (default: auto, the best of this machine).",
    ),
    click.option(
        "--device",
        type=click.Choice(_DEVICES),
        default="cpu",
        help="Where Triton kernels run: on the CPU (cpu), or on the CPU and then on a GPU (cuda).",
    ),
)


def grading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments and options that `grade` and `regrade` share."""
    for add_option in reversed(_GRADING_OPTIONS):
        command = add_option(command)
    return command


results_option = click.option(
    "--results", type=LocalPath(), help="Where the results lie (default: results/)."
)


@main.command()
@click.argument("assignment")
@click.argument("source", type=LocalPath(exists=True))
@click.option(
    "--from",
    "origin",
    required=True,
    type=PlatformChoice("with_downloads"),
)
@click.option(
    "--roster",
    type=LocalPath(exists=True, dir_okay=False),
    help="The class list that the platform exports: who is who, and perhaps who is in a group.",
)
@click.option(
    "--ask-times",
    is_flag=True,
    help="Ask the platform at what time each student handed in (token: see export --push).",
)
@click.option(
    "--column",
    default="",
    help="With --ask-times: what the platform calls the assignment.",
)
def collect(
    assignment: str,
    source: Path,
    origin: str,
    roster: Path | None,
    ask_times: bool,
    column: str,
) -> Iterable[str]:
    """Take in what a learning platform exports: an archive or a folder, into submitted/."""
    from autograder.platforms.collect import collect as collect_download

    course = find_course()
    times = {}  # of the platform; without them, those that the download states
    if ask_times:
        from autograder.platforms.push import hand_in_times

        times = hand_in_times(course, origin, column or assignment)
    return collect_download(
        course, course.assignment(assignment), source, origin, roster, times
    )


@main.command()
@grading_options
@click.option(
    "--out",
    type=LocalPath(),
    help="Where results go (default: results/ of the course).",
)
@click.option("--force", is_flag=True, help="Grade again what has not changed.")
@click.option(
    "--cluster",
    metavar="ADDRESS|local:N",
    help="Grade on the machines of a Dask scheduler (tls://HOST:PORT), or of a cluster of N on "
    "this machine.",
)
@click.option(
    "--share",
    metavar="K/N",
    help="Grade each N-th submission in the order of the names, from the K-th on: N machines that "
    "see the same folder share a class.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the results as one JSON array and nothing else.",
)
def grade(
    assignment: str,
    paths: tuple[Path, ...],
    out: Path | None,
    cluster: str | None,
    share: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Grade notebooks or folders of them (default: submitted/), one result a submission.

    The exit status is 1 where a submission could not be graded, or a file was overlooked.
    """
    from autograder.grading.request import GradeRequest, Progress, Watcher
    from autograder.grading.run import grade_command
    from autograder.grading.share import parse_share
    from autograder.records.results import results_as_json

    if share is not None:
        options["share"] = parse_share(share)
        if cluster is not None:
            raise KitError(
                "--share does not go with --cluster: a cluster grades the whole class"
            )
    course = find_course()
    folder = out or course.results
    if cluster is not None:
        options["other_machines"] = _on_cluster(
            cluster, options["workers"], options["device"]
        )
    request = GradeRequest(
        course, course.assignment(assignment), paths, folder, **options
    )
    summary = grade_command(
        request, Watcher(sys.stderr) if as_json else Progress(sys.stderr)
    )
    if as_json:
        # the summary has a line for each result; the whole results are in the files
        students = [result.student for result in summary.results]
        for part in results_as_json(folder, assignment, students):
            click.echo(part, nl=False)
        for line in describe_ungraded(summary):
            beside(line)
    else:
        tell_graded(summary, request)
    sys.exit(1 if summary.problems or summary.overlooked else 0)


def _on_cluster(address: str, workers: int | None, device: str) -> Cluster:
    if workers is not None or device != "cpu":
        raise KitError(
            "--cluster goes with neither --workers nor --device: a machine has as many graders "
            "as its Dask worker has threads, and kernels run in the interpreter there"
        )
    from autograder.cluster.driver import Cluster  # Dask comes in with this

    return Cluster(address)


@main.command()
@grading_options
@click.option(
    "--results",
    type=LocalPath(),
    help="Where the results that count lie (default: results/).",
)
@click.option(
    "--apply",
    is_flag=True,
    help="Make the new results those that count; the old ones are kept by date.",
)
def regrade(
    assignment: str,
    paths: tuple[Path, ...],
    results: Path | None,
    apply: bool,
    **options: Any,
) -> Iterable[str]:
    """Grade into a folder apart, and show whose mark would move, by how much and because of which
    test.

    The exit status is 1 where the run did not reach every submission.
    """
    from autograder.basics.safe_text import one_line
    from autograder.grading.regrade import apply_regrade
    from autograder.grading.regrade import regrade as grade_aside
    from autograder.grading.request import GradeRequest, Progress

    course = find_course()
    folder = results or course.results
    request = GradeRequest(
        course, course.assignment(assignment), paths, folder, **options
    )
    comparison = grade_aside(request, Progress(sys.stderr))
    yield from map(one_line, comparison.lines())
    if not apply:
        yield "nothing has changed yet; `--apply` makes these results those that count"
    elif comparison.untried:
        beside(
            "nothing was taken over: this run did not reach every submission; run it again"
        )
    else:
        apply_regrade(request)
        yield (
            f"taken over; what they replace lies in {folder / 'history' / assignment}. Write "
            "pages and exports anew."
        )
    sys.exit(1 if comparison.untried else 0)


@main.command()
@click.argument("assignment")
@click.argument("paths", metavar="[NOTEBOOK|FOLDER]...", nargs=-1, type=LocalPath())
def similarity(assignment: str, paths: tuple[Path, ...]) -> Iterable[str]:
    """Show which submissions share more than the assignment explains: for a person to look at,
    never a score.
    """
    from autograder.outputs.similarity import similarity_command

    course = find_course()
    return similarity_command(
        course, course.assignment(assignment), paths, course.results
    )


@main.command()
@click.argument("assignment")
@results_option
def report(assignment: str, results: Path | None) -> Iterable[str]:
    """Write a feedback page for each student, and the class report."""
    from autograder.reporting.marks_commands import report_command

    course = find_course()
    return report_command(
        course, course.assignment(assignment), results or course.results, beside
    )


@main.command()
@click.argument("assignment")
@click.option("--format", required=True, type=PlatformChoice("export_formats"))
@click.option(
    "--to",
    type=LocalPath(),
    help="A file (default: standard output; gradebook.db for gradebook).",
)
@results_option
@click.option(
    "--roster",
    type=LocalPath(exists=True, dir_okay=False),
    help="The platform's own file of everybody and their marks, as it exports it. It is filled in.",
)
@click.option("--column", default="", help="What the platform calls the column.")
@click.option(
    "--provisional",
    is_flag=True,
    help="Export those who wait for a person's points with what they have.",
)
@click.option(
    "--push", is_flag=True, help="Send the marks to the platform; no file is written."
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="With --push: say who would get what, and send nothing.",
)
def export(assignment: str, results: Path | None, **options: Any) -> Iterable[str]:
    """Marks for other systems: CSV, Canvas, Moodle, JUnit XML, or nbgrader's gradebook; feedback as
    a zip.
    """
    from autograder.reporting.marks_commands import ExportRequest, export_command

    course = find_course()
    request = ExportRequest(
        course, course.assignment(assignment), results or course.results, **options
    )
    if request.dry_run and not request.push:
        raise KitError("--dry-run says what would be sent: add --push")
    return export_command(request, beside)


@main.command()
@click.argument("assignment")
@click.option(
    "--to",
    type=LocalPath(),
    help="Write a table of all marks by hand, to be filled in.",
)
@click.option(
    "--from",
    "back",
    type=LocalPath(exists=True, dir_okay=False),
    help="Take such a table in.",
)
@click.option(
    "--question", default="", metavar="NAME", help="With --to: only this one."
)
@click.option(
    "--apply",
    is_flag=True,
    help="With --from: store the marks. Without it the difference is shown only.",
)
def marks(
    assignment: str, to: Path | None, back: Path | None, question: str, apply: bool
) -> Iterable[str]:
    """Marks that people give, out of the gradebook as CSV and back into it."""
    if (to is None) == (back is None) or (to and apply) or (back and question):
        raise click.UsageError(
            "give --to FILE [--question NAME], or --from FILE [--apply]"
        )
    from autograder.nbgrader.marks_csv import marks_command

    course = find_course()
    return marks_command(
        course,
        course.assignment(assignment),
        to=to,
        back=back,
        question=question,
        apply=apply,
    )


@main.command()
@click.argument("assignment")
@click.option(
    "--students", is_flag=True, help="Say who is who, and why somebody is not ranked."
)
@workers_option
@results_option
def leaderboard(
    assignment: str, students: bool, workers: int | None, results: Path | None
) -> Iterable[str]:
    """Rank a class by counts, and by the weights that people trained; never part of a mark."""
    from autograder.leaderboard.leaderboard_command import leaderboard_command
    from autograder.leaderboard.ranking import LeaderboardRequest

    course = find_course()
    request = LeaderboardRequest(
        course, course.assignment(assignment), results or course.results, workers
    )
    return leaderboard_command(request, beside, with_students=students)


@main.command()
@click.option("--to", type=LocalPath(), help="A file (default: standard output).")
@results_option
@click.option(
    "--provisional",
    is_flag=True,
    help="Count those who wait for a person's points with what they have.",
)
def totals(to: Path | None, results: Path | None, provisional: bool) -> Iterable[str]:
    """The mark of the course: all assignments that have results, without the lowest, as CSV."""
    from autograder.reporting.marks_commands import totals_command

    course = find_course()
    return totals_command(
        course, results or course.results, to, beside, provisional=provisional
    )
