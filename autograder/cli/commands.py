"""The command line. Each command reads its options, calls one function, prints what came of it.

Nothing heavy is imported before it is needed: `--help` answers at once.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from autograder import __version__
from autograder.basics.errors import KitError
from autograder.basics.file_transaction import recover_transactions
from autograder.cli.base import Commands, CountOrAll, LaterChoice, LocalPath, beside, find_course
from autograder.cli.summaries import not_graded, tell_graded, tell_proofs
from autograder.course import Course
from autograder.sandbox.tiers import ISOLATIONS

if TYPE_CHECKING:
    from autograder.cluster.driver import Cluster

DEVICES = ("cpu", "cuda")


def _registry() -> ModuleType:
    from autograder.platforms import registry

    return registry


def what_and_how(command: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments and options that `grade` and `regrade` share."""
    shared = (
        click.argument("assignment"),
        click.argument("paths", metavar="[NOTEBOOK|FOLDER]...", nargs=-1, type=LocalPath()),
        click.option(
            "--workers", type=click.IntRange(1), help="How many processes (default: one a core)."
        ),
        click.option(
            "--isolation",
            type=click.Choice(ISOLATIONS),
            default="auto",
            help="Which walls must stand (default: auto).",
        ),
        click.option(
            "--device",
            type=click.Choice(DEVICES),
            default="cpu",
            help="Where kernels run: in the interpreter (cpu), or there and on a GPU (cuda).",
        ),
    )
    return functools.reduce(lambda made, add: add(made), reversed(shared), command)


def count_option(name: str, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option of `verify` that takes a number or `all`, 0 by default."""
    return click.option(name, type=CountOrAll(), default="0", help=text)


where_results_lie = click.option(
    "--results", type=LocalPath(), help="Where the results lie (default: results/)."
)


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__)
def main() -> None:
    """Attention Kit: build assignments, grade what students hand in, behind walls."""


@main.result_callback()
def print_lines(lines: Iterable[str] | None) -> None:
    """Print the lines that a command returns, each as soon as it is known."""
    for line in lines or ():
        click.echo(line)


@main.command()
@click.argument("folder", type=LocalPath())
def init(folder: Path) -> Iterable[str]:
    """Make a new course without assignments in FOLDER."""
    from autograder.authoring.scaffold import new_course

    recover_transactions(Course(folder).kept, beside)
    return new_course(folder)


@main.command()
@click.argument("name", metavar="ASSIGNMENT")
def new(name: str) -> Iterable[str]:
    """Write an assignment of one question, with its suite, that builds and is proven as it is."""
    from autograder.authoring.scaffold import new_assignment

    return new_assignment(find_course(), name)


@main.command()
@click.argument("names", metavar="[ASSIGNMENT]...", nargs=-1)
@click.option(
    "--check",
    is_flag=True,
    help="Change nothing: fail where a built notebook is stale, leaks or does not run.",
)
def build(names: tuple[str, ...], check: bool) -> Iterable[str]:
    """Make releases and answer keys from source/ (all assignments, or those named)."""
    from autograder.authoring.build_commands import build_command

    return build_command(find_course(), names, check)


@main.command()
@click.argument("names", metavar="[ASSIGNMENT]...", nargs=-1)
@click.option("--question", default="", metavar="NAME", help="Only this question.")
@count_option(
    "--mutants",
    "Also try so many mutants of the answer key (the same ones each time), or all of them.",
)
@click.option(
    "--draws", type=click.IntRange(1), default=1, help="With so many draws of the random inputs."
)
@count_option(
    "--samples",
    "Also diagnose so many of the samples of students' answers (the same ones each time), or "
    "all of them.",
)
@count_option(
    "--alone",
    "Also grade so many known answers as submissions that are right otherwise, or all of them.",
)
@count_option(
    "--unfinished",
    "Also leave so many earlier questions unfinished: what builds on them must lose nothing.",
)
@count_option(
    "--pairs",
    "Also price so many pairs of known mistakes in one answer, and a third as many triples.",
)
@click.option(
    "--report",
    type=LocalPath(),
    help="Write what was found to this page, or put the figures into the table of this .md file.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the figures as one JSON array and nothing else."
)
@click.option("--workers", type=click.IntRange(1), help="How many processes (default: one a core).")
def verify(names: tuple[str, ...], report: Path | None, as_json: bool, **wanted: Any) -> None:
    """Prove hidden suites: every known mistake is caught, every right answer passes."""
    from autograder.basics.errors import NotProven
    from autograder.proof import proof_report as reports
    from autograder.proof.verify import ProofRequest, verify_command

    proofs = verify_command(find_course(), names, ProofRequest(**wanted))
    if report is not None:
        reports.write_report(report, proofs)
    if as_json:
        click.echo(reports.as_json(proofs))
    else:
        tell_proofs(proofs)
    if problems := [
        f"{proof.assignment}: {problem}" for proof in proofs for problem in proof.problems
    ]:
        raise NotProven("\n".join(problems))


@main.command()
@click.argument("assignment")
@click.option(
    "--to", required=True, type=LocalPath(), help="A folder, or a file that ends in .zip."
)
def release(assignment: str, to: Path) -> Iterable[str]:
    """Put what students get into a folder or a .zip file."""
    from autograder.authoring.build_commands import release_command

    return release_command(find_course(), assignment, to)


@main.command()
@click.argument("assignment")
@click.argument("source", type=LocalPath(exists=True))
@click.option(
    "--from",
    "origin",
    required=True,
    type=LaterChoice(lambda: _registry().with_downloads()),
)
@click.option(
    "--roster",
    type=LocalPath(exists=True, dir_okay=False),
    help="The platform's own file of everybody: it says who is who, and perhaps who is in a group.",
)
@click.option(
    "--ask-times",
    is_flag=True,
    help="Ask the platform's interface when everybody handed in (see export --push).",
)
@click.option("--column", default="", help="With --ask-times: what the assignment is called there.")
def collect(
    assignment: str, source: Path, origin: str, roster: Path | None, ask_times: bool, column: str
) -> Iterable[str]:
    """Take in what a learning platform exports: an archive or a folder, into submitted/."""
    from autograder.platforms.collect import collect as take_in

    course = find_course()
    asked = {}
    if ask_times:
        from autograder.platforms.push import hand_in_times

        asked = hand_in_times(course, origin, column or assignment)
    return take_in(course, course.assignment(assignment), source, origin, roster, asked)


@main.command()
@click.argument("assignment")
@click.option("--to", type=LocalPath(), help="Folder (default: submitted/ of the course).")
@click.option("--if-empty", is_flag=True, help="Do nothing where there are submissions already.")
def demo(assignment: str, to: Path | None, if_empty: bool) -> Iterable[str]:
    """Write a demo class: right answers, known mistakes, and every awkward notebook that people
    hand in.
    """
    course = find_course()
    folder = to or course.submitted
    if if_empty and any(folder.glob(f"*/{assignment}")):
        return [f"{folder} holds submissions of {assignment}: no demo class written"]
    # imports torch, through the suite's mistakes
    from autograder.authoring.demo_class import write_demo_class

    written = write_demo_class(course, course.assignment(assignment), folder)
    return [f"{len(written)} demo submissions of {assignment} in {folder}"]


@main.command()
@what_and_how
@click.option("--out", type=LocalPath(), help="Where results go (default: results/ of the course).")
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
    help="Grade each N-th submission, from the K-th on: for N machines, K is 1 to N.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the results as one JSON array and nothing else."
)
def grade(
    assignment: str,
    paths: tuple[Path, ...],
    out: Path | None,
    cluster: str | None,
    share: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Grade notebooks or folders of them (default: submitted/), one result a submission."""
    from autograder.grading.request import GradeRequest, Progress, Watcher
    from autograder.grading.run import grade_command
    from autograder.grading.share import parse_share
    from autograder.records.results import results_as_json

    if share is not None:
        asked["share"] = parse_share(share)
        if cluster is not None:
            raise KitError("--share does not go with --cluster: a cluster grades the whole class")
    course = find_course()
    folder = out or course.results
    elsewhere = (
        _on_cluster(cluster, asked["workers"], asked["device"]) if cluster is not None else None
    )
    request = GradeRequest(
        course, course.assignment(assignment), paths, folder, elsewhere=elsewhere, **asked
    )
    summary = grade_command(request, Watcher(sys.stderr) if as_json else Progress(sys.stderr))
    if as_json:
        for part in results_as_json(
            folder, assignment, [result.student for result in summary.results]
        ):
            click.echo(part, nl=False)
        for line in not_graded(summary):
            beside(line)
    else:
        tell_graded(summary, request)
    sys.exit(1 if summary.problems or summary.overlooked else 0)


def _on_cluster(address: str, workers: int | None, device: str) -> Cluster:
    if workers is not None or device != "cpu":
        raise KitError(
            "--cluster goes with neither --workers nor --device: a machine has as many graders "
            "as its Dask worker has "
            "threads, and kernels run in the interpreter there"
        )
    from autograder.cluster.driver import Cluster  # Dask comes in with this

    return Cluster(address)


@main.command()
@what_and_how
@click.option(
    "--results", type=LocalPath(), help="Where the results that count lie (default: results/)."
)
@click.option(
    "--apply",
    is_flag=True,
    help="Make the new results those that count; the old ones are kept by date.",
)
def regrade(
    assignment: str, paths: tuple[Path, ...], results: Path | None, apply: bool, **asked: Any
) -> Iterable[str]:
    """Grade into a side folder, and show whose mark would move, by how much and because of which
    test.
    """
    from autograder.basics.safe_text import one_line
    from autograder.grading.regrade import regrade as grade_aside
    from autograder.grading.regrade import take_over
    from autograder.grading.request import GradeRequest, Progress

    course = find_course()
    folder = results or course.results
    request = GradeRequest(course, course.assignment(assignment), paths, folder, **asked)
    comparison = grade_aside(request, Progress(sys.stderr))
    yield from map(one_line, comparison.lines())
    if not apply:
        yield "nothing has changed yet; `--apply` makes these results those that count"
    elif comparison.untried:
        beside("nothing was taken over: this run did not come to everybody; run it again")
    else:
        take_over(request)
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
    return similarity_command(course, course.assignment(assignment), paths, course.results)


@main.command()
@click.argument("assignment")
@where_results_lie
def report(assignment: str, results: Path | None) -> Iterable[str]:
    """Write a feedback page for each student, and the class report."""
    from autograder.cli.marks_commands import report_command

    course = find_course()
    return report_command(course, course.assignment(assignment), results or course.results, beside)


@main.command()
@click.argument("assignment")
@click.option("--format", required=True, type=LaterChoice(lambda: _registry().export_formats()))
@click.option(
    "--to", type=LocalPath(), help="A file (default: standard output; gradebook.db for gradebook)."
)
@where_results_lie
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
@click.option("--push", is_flag=True, help="Send the marks to the platform; no file is written.")
@click.option(
    "--dry-run", is_flag=True, help="With --push: say who would get what, and send nothing."
)
def export(assignment: str, results: Path | None, **asked: Any) -> Iterable[str]:
    """Marks for other systems: CSV, Canvas, Moodle, JUnit XML, or nbgrader's gradebook; feedback as
    a zip.
    """
    from autograder.cli.marks_commands import ExportRequest, export_command

    course = find_course()
    request = ExportRequest(
        course, course.assignment(assignment), results or course.results, **asked
    )
    if request.dry_run and not request.push:
        raise KitError("--dry-run says what would be sent: add --push")
    return export_command(request, beside)


@main.command()
@click.argument("assignment")
@click.option("--to", type=LocalPath(), help="Write a table of all marks by hand, to be filled in.")
@click.option(
    "--from", "back", type=LocalPath(exists=True, dir_okay=False), help="Take such a table in."
)
@click.option("--question", default="", metavar="NAME", help="With --to: only this one.")
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
        raise click.UsageError("give --to FILE [--question NAME], or --from FILE [--apply]")
    from autograder.nbgrader.marks_csv import marks_command

    course = find_course()
    return marks_command(
        course, course.assignment(assignment), to=to, back=back, question=question, apply=apply
    )


@main.command()
@click.option("--to", type=LocalPath(), help="A file (default: standard output).")
@where_results_lie
@click.option(
    "--provisional",
    is_flag=True,
    help="Count those who wait for a person's points with what they have.",
)
def totals(to: Path | None, results: Path | None, provisional: bool) -> Iterable[str]:
    """The mark of the course: all assignments that have results, without the lowest, as CSV."""
    from autograder.cli.marks_commands import totals_command

    course = find_course()
    return totals_command(course, results or course.results, to, beside, provisional=provisional)


@main.command()
@click.argument("assignment")
@click.option("--for", "target", required=True, type=LaterChoice(lambda: _registry().bundles()))
@click.option("--to", required=True, type=LocalPath(), help="A .zip file (gradescope) or a folder.")
def bundle(assignment: str, target: str, to: Path) -> Iterable[str]:
    """Pack an autograder for Gradescope, GitHub Classroom or the course's own repository at
    GitHub.
    """
    from autograder.authoring.build_commands import bundle_command

    return bundle_command(find_course(), assignment, target, to)


@main.command()
def doctor() -> Iterable[str]:
    """Say which walls stand on this machine, and what to do about those that do not."""
    from autograder.sandbox.doctor import doctor_command

    is_strict = yield from doctor_command(find_course())
    sys.exit(0 if is_strict else 1)
