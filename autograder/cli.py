"""The command line. Each command reads its options, calls one function, prints what came of it.

Nothing heavy is imported before it is needed: `--help` answers at once.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder import __version__
from autograder.cli_base import Commands, CountOrAll, LocalPath, beside, find_course
from autograder.course import Course
from autograder.errors import KitError
from autograder.sandbox.tiers import ISOLATIONS
from autograder.summaries import not_graded, tell_graded, tell_proofs
from autograder.together import finish_unfinished

if TYPE_CHECKING:
    from autograder.cluster.driver import Cluster
    from autograder.intake.origins import Origin
    from autograder.outputs.bundle import Target

DEVICES = ("cpu", "cuda")
ORIGINS = (
    "canvas", "moodle", "gradescope", "github", "blackboard", "brightspace", "sakai", "edx", "ilias", "folder",
)  # fmt: skip
EXPORTS = (
    "csv",
    "tests",
    "canvas",
    "moodle",
    "classroom",
    "gradebook",
    "junit",
    "canvas-feedback",
    "moodle-feedback",
    "ilias-feedback",
)


def what_and_how(command: Callable[..., None]) -> Callable[..., None]:
    """The arguments and options that `grade` and `regrade` share."""
    shared = (
        click.argument("assignment"),
        click.argument("paths", metavar="[NOTEBOOK|FOLDER]...", nargs=-1, type=LocalPath()),
        click.option("--workers", type=click.IntRange(1), help="How many processes (default: one a core)."),
        click.option(
            "--isolation", type=click.Choice(ISOLATIONS), default="auto", help="Which walls must stand (default: auto)."
        ),
        click.option(
            "--device",
            type=click.Choice(DEVICES),
            default="cpu",
            help="Where kernels run: in the interpreter (cpu), or there and on a GPU (cuda).",
        ),
    )
    return functools.reduce(lambda made, add: add(made), reversed(shared), command)


where_results_lie = click.option("--results", type=LocalPath(), help="Where the results lie (default: results/).")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def main() -> None:
    """Attention Kit: build assignments, grade what students hand in, behind walls."""


def _course() -> Course:
    """The course of this folder, in which nothing is half done: what a command that was cut off had begun is finished
    first, or undone."""
    course = find_course()
    finish_unfinished(course.kept, beside)
    return course


@main.command()
@click.argument("folder", type=LocalPath())
def init(folder: Path) -> None:
    """Make a new course without assignments in FOLDER."""
    from autograder.authoring.new import new_course

    finish_unfinished(Course(folder).kept, beside)
    for line in new_course(folder):
        click.echo(line)


@main.command()
@click.argument("name", metavar="ASSIGNMENT")
def new(name: str) -> None:
    """Write an assignment of one question, with its suite, that builds and is proven as it is."""
    from autograder.authoring.new import new_assignment

    for line in new_assignment(_course(), name):
        click.echo(line)


@main.command()
@click.argument("names", metavar="[ASSIGNMENT]...", nargs=-1)
@click.option(
    "--check", is_flag=True, help="Change nothing: fail where a built notebook is stale, leaks or does not run."
)
def build(names: tuple[str, ...], check: bool) -> None:
    """Make releases and answer keys from source/ (all assignments, or those named)."""
    from autograder.authoring.commands import build_command

    for line in build_command(_course(), names, check):
        click.echo(line)


@main.command()
@click.argument("names", metavar="[ASSIGNMENT]...", nargs=-1)
@click.option("--question", default="", metavar="NAME", help="Only this question.")
@click.option(
    "--mutants",
    type=CountOrAll(),
    default="0",
    help="Also try so many mutants of the answer key (the same ones each time), or all of them.",
)
@click.option("--draws", type=click.IntRange(1), default=1, help="With so many draws of the random inputs.")
@click.option(
    "--samples",
    type=CountOrAll(),
    default="0",
    help="Also diagnose so many of the samples of students' answers (the same ones each time), or all of them.",
)
@click.option(
    "--alone",
    type=CountOrAll(),
    default="0",
    help="Also grade so many known answers as submissions that are right otherwise, or all of them.",
)
@click.option(
    "--unfinished",
    type=CountOrAll(),
    default="0",
    help="Also leave so many earlier questions unfinished: what builds on them must lose nothing.",
)
@click.option(
    "--pairs",
    type=CountOrAll(),
    default="0",
    help="Also price so many pairs of known mistakes in one answer, and a third as many triples.",
)
@click.option(
    "--report",
    type=LocalPath(),
    help="Write what was found to this page, or put the figures into the table of this .md file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON array and nothing else.")
@click.option("--workers", type=click.IntRange(1), help="How many processes (default: one a core).")
def verify(
    names: tuple[str, ...],
    question: str,
    mutants: int | None,
    draws: int,
    samples: int | None,
    alone: int | None,
    unfinished: int | None,
    pairs: int | None,
    report: Path | None,
    as_json: bool,
    workers: int | None,
) -> None:
    """Prove hidden suites: every known mistake is caught, every right answer passes."""
    from autograder.errors import NotProven
    from autograder.proof import report as reports
    from autograder.proof.verify import Wanted, verify_command

    wanted = Wanted(question, mutants, draws, workers, samples, alone, unfinished, pairs)
    proofs = verify_command(_course(), names, wanted)
    if report is not None:
        reports.write_report(report, proofs)
    if as_json:
        click.echo(reports.as_json(proofs))
    else:
        tell_proofs(proofs)
    if problems := [f"{proof.assignment}: {problem}" for proof in proofs for problem in proof.problems]:
        raise NotProven("\n".join(problems))


@main.command()
@click.argument("assignment")
@click.option("--to", required=True, type=LocalPath(), help="A folder, or a file that ends in .zip.")
def release(assignment: str, to: Path) -> None:
    """Put what students get into a folder or a .zip file."""
    from autograder.authoring.commands import release_command

    for line in release_command(_course(), assignment, to):
        click.echo(line)


@main.command()
@click.argument("assignment")
@click.argument("source", type=LocalPath(exists=True))
@click.option(
    "--from",
    "origin",
    required=True,
    type=click.Choice(ORIGINS),
)
@click.option(
    "--roster",
    type=LocalPath(exists=True, dir_okay=False),
    help="moodle: its grading worksheet. canvas: the gradebook it exports. They say who is who, and who is in a group.",
)
@click.option(
    "--ask-times", is_flag=True, help="canvas: ask its interface when everybody handed in (see export --push)."
)
@click.option("--column", default="", help="With --ask-times: what the assignment is called there.")
def collect(assignment: str, source: Path, origin: Origin, roster: Path | None, ask_times: bool, column: str) -> None:
    """Take in what a learning platform exports: an archive or a folder, into submitted/."""
    from autograder.intake.collect import collect as take_in

    course = _course()
    asked = {}
    if ask_times:
        from autograder.outputs.push import hand_in_times

        asked = hand_in_times(course, origin, column or assignment)
    for line in take_in(course, course.assignment(assignment), source, origin, roster, asked):
        click.echo(line)


@main.command()
@click.argument("assignment")
@click.option("--to", type=LocalPath(), help="Folder (default: submitted/ of the course).")
@click.option("--if-empty", is_flag=True, help="Do nothing where there are submissions already.")
def demo(assignment: str, to: Path | None, if_empty: bool) -> None:
    """Write a demo class: right answers, known mistakes, and every awkward notebook that people hand in."""
    course = _course()
    folder = to or course.submitted
    if if_empty and any(folder.glob(f"*/{assignment}")):
        click.echo(f"{folder} holds submissions of {assignment}: no demo class written")
        return
    from autograder.intake.demo import write_demo_class  # imports torch, through the suite's mistakes

    written = write_demo_class(course, course.assignment(assignment), folder)
    click.echo(f"{len(written)} demo submissions of {assignment} in {folder}")


@main.command()
@what_and_how
@click.option("--out", type=LocalPath(), help="Where results go (default: results/ of the course).")
@click.option("--force", is_flag=True, help="Grade again what has not changed.")
@click.option(
    "--cluster",
    metavar="ADDRESS|local:N",
    help="Grade on the machines of a Dask scheduler (tls://HOST:PORT), or of a cluster of N on this machine.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON array and nothing else.")
def grade(
    assignment: str,
    paths: tuple[Path, ...],
    out: Path | None,
    workers: int | None,
    isolation: str,
    device: str,
    force: bool,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Grade notebooks or folders of them (default: submitted/), one result a submission."""
    from autograder.grading.progress import Progress, Warned
    from autograder.grading.request import GradeRequest
    from autograder.grading.run import grade_command
    from autograder.results import as_json_array

    course = _course()
    folder = out or course.results
    elsewhere = _on_cluster(cluster, workers, device) if cluster is not None else None
    request = GradeRequest(
        course, course.assignment(assignment), paths, folder, workers, isolation, force, device, elsewhere
    )
    summary = grade_command(request, Warned(sys.stderr) if as_json else Progress(sys.stderr))
    if as_json:
        for part in as_json_array(folder, assignment, (result.student for result in summary.results)):
            click.echo(part, nl=False)
        for line in not_graded(summary):
            beside(line)
    else:
        tell_graded(summary, request)
    sys.exit(1 if summary.problems or summary.overlooked else 0)


def _on_cluster(address: str, workers: int | None, device: str) -> Cluster:
    if workers is not None or device != "cpu":
        raise KitError(
            "--cluster goes with neither --workers nor --device: a machine has as many graders as its Dask worker has "
            "threads, and kernels run in the interpreter there"
        )
    from autograder.cluster.driver import Cluster  # Dask comes in with this

    return Cluster(address)


@main.command()
@what_and_how
@click.option("--results", type=LocalPath(), help="Where the results that count lie (default: results/).")
@click.option("--apply", is_flag=True, help="Make the new results those that count; the old ones are kept by date.")
def regrade(
    assignment: str,
    paths: tuple[Path, ...],
    results: Path | None,
    workers: int | None,
    isolation: str,
    device: str,
    apply: bool,
) -> None:
    """Grade into a side folder, and show whose mark would move, by how much and because of which test."""
    from autograder.grading.progress import Progress
    from autograder.grading.regrade import regrade as grade_aside
    from autograder.grading.regrade import take_over
    from autograder.grading.request import GradeRequest
    from autograder.text import one_line

    course = _course()
    folder = results or course.results
    request = GradeRequest(course, course.assignment(assignment), paths, folder, workers, isolation, False, device)
    comparison = grade_aside(request, Progress(sys.stderr))
    for line in comparison.lines():
        click.echo(one_line(line))
    if apply and not comparison.untried:
        take_over(request)
    if apply and comparison.untried:
        beside("nothing was taken over: this run did not come to everybody; run it again")
    elif apply:
        kept = folder / "history" / assignment
        click.echo(f"taken over; what they replace lies in {kept}. Write pages and exports anew.")
    else:
        click.echo("nothing has changed yet; `--apply` makes these results those that count")
    sys.exit(1 if comparison.untried else 0)


@main.command()
@click.argument("assignment")
@click.argument("paths", metavar="[NOTEBOOK|FOLDER]...", nargs=-1, type=LocalPath())
def similarity(assignment: str, paths: tuple[Path, ...]) -> None:
    """Show which submissions share more than the assignment explains: for a person to look at, never a score."""
    from autograder.outputs.similarity import similarity_command

    course = _course()
    for line in similarity_command(course, course.assignment(assignment), paths, course.results):
        click.echo(line)


@main.command()
@click.argument("assignment")
@where_results_lie
def report(assignment: str, results: Path | None) -> None:
    """Write a feedback page for each student, and the class report."""
    from autograder.commands import report_command

    course = _course()
    for line in report_command(course, course.assignment(assignment), results or course.results, beside):
        click.echo(line)


@main.command()
@click.argument("assignment")
@click.option("--format", "format_", required=True, type=click.Choice(EXPORTS))
@click.option("--to", type=LocalPath(), help="A file (default: standard output; gradebook.db for gradebook).")
@where_results_lie
@click.option(
    "--roster",
    type=LocalPath(exists=True, dir_okay=False),
    help="canvas: the gradebook that Canvas exports. moodle: its grading worksheet. It is filled in.",
)
@click.option("--column", default="", help="canvas, moodle: what the column is called there.")
@click.option("--provisional", is_flag=True, help="Export those who wait for a person's points with what they have.")
@click.option("--push", is_flag=True, help="canvas, moodle, classroom: send the marks there; no file is written.")
@click.option("--dry-run", is_flag=True, help="With --push: say who would get what, and send nothing.")
def export(
    assignment: str,
    format_: str,
    to: Path | None,
    results: Path | None,
    roster: Path | None,
    column: str,
    provisional: bool,
    push: bool,
    dry_run: bool,
) -> None:
    """Marks for other systems: CSV, Canvas, Moodle, JUnit XML, or nbgrader's gradebook; feedback as a zip."""
    from autograder.commands import ExportRequest, export_command

    course = _course()
    folder = results or course.results
    if (format_ == "classroom" and not push) or (dry_run and not push):
        raise KitError("classroom has no file, and --dry-run says what would be sent: add --push")
    request = ExportRequest(
        course, course.assignment(assignment), folder, format_, to, roster, column, provisional, push, dry_run
    )
    for line in export_command(request, beside):
        click.echo(line)


@main.command()
@click.argument("assignment")
@click.option("--to", type=LocalPath(), help="Write a table of all marks by hand, to be filled in.")
@click.option("--from", "back", type=LocalPath(exists=True, dir_okay=False), help="Take such a table in.")
@click.option("--question", default="", metavar="NAME", help="With --to: only this one.")
@click.option("--apply", is_flag=True, help="With --from: store the marks. Without it the difference is shown only.")
def marks(assignment: str, to: Path | None, back: Path | None, question: str, apply: bool) -> None:
    """Marks that people give, out of the gradebook as CSV and back into it."""
    if (to is None) == (back is None) or (to and apply) or (back and question):
        raise click.UsageError("give --to FILE [--question NAME], or --from FILE [--apply]")
    from autograder.nbgrader.marks_csv import marks_command

    course = _course()
    for line in marks_command(course, course.assignment(assignment), to=to, back=back, question=question, apply=apply):
        click.echo(line)


@main.command()
@click.option("--to", type=LocalPath(), help="A file (default: standard output).")
@where_results_lie
@click.option("--provisional", is_flag=True, help="Count those who wait for a person's points with what they have.")
def totals(to: Path | None, results: Path | None, provisional: bool) -> None:
    """The mark of the course: all assignments that have results, without the lowest, as CSV."""
    from autograder.commands import totals_command

    course = _course()
    for line in totals_command(course, results or course.results, to, beside, provisional=provisional):
        click.echo(line)


@main.command()
@click.argument("assignment")
@click.option("--for", "target", required=True, type=click.Choice(["gradescope", "github", "github-course"]))
@click.option("--to", required=True, type=LocalPath(), help="A .zip file (gradescope) or a folder.")
def bundle(assignment: str, target: Target, to: Path) -> None:
    """Pack an autograder for Gradescope, GitHub Classroom or the course's own repository at GitHub."""
    from autograder.authoring.commands import bundle_command

    for line in bundle_command(_course(), assignment, target, to):
        click.echo(line)


@main.command()
def doctor() -> None:
    """Say which walls stand on this machine, and what to do about those that do not."""
    from autograder.sandbox.doctor import doctor_command

    strict = False
    for line, stands in doctor_command(_course()):
        strict |= stands
        click.echo(line)
    sys.exit(0 if strict else 1)
