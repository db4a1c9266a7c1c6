"""Commands for authors and machines: make a course, build and prove assignments, pack them, look at
the walls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from autograder.basics.file_transaction import recover_transactions
from autograder.cli.base import (
    CountOrAll,
    LocalPath,
    PlatformChoice,
    beside,
    find_course,
    main,
    workers_option,
)
from autograder.cli.summaries import tell_proofs
from autograder.course import Course


def count_option(
    name: str, text: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option of `verify` that takes a number or `all`, 0 by default."""
    return click.option(name, type=CountOrAll(), default="0", help=text)


@main.command()
@click.argument("folder", type=LocalPath())
@click.option(
    "--with",
    "package",
    metavar="NAME",
    help="Bring the assignments of an installed package: `attention`, from attention-kit-course.",
)
def init(folder: Path, package: str | None) -> Iterable[str]:
    """Make a new course in FOLDER, without assignments unless --with names some."""
    from autograder.authoring.scaffold import new_course
    from autograder.course.course_packages import find_archive

    archive = None if package is None else find_archive(package)
    recover_transactions(Course(folder).kept, beside)
    return new_course(folder, archive)


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
    "--draws",
    type=click.IntRange(1),
    default=1,
    help="With so many draws of the random inputs.",
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
@count_option(
    "--evidence",
    "Also prove the predicates (shows=) of so many known mistakes, or all of them.",
)
@click.option(
    "--report",
    type=LocalPath(),
    help="Write what was found to this page, or put the figures into the table of this .md file.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the figures as one JSON array and nothing else.",
)
@workers_option
def verify(
    names: tuple[str, ...], report: Path | None, as_json: bool, **options: Any
) -> None:
    """Prove hidden suites: every known mistake is caught, every right answer passes."""
    from autograder.basics.errors import NotProven
    from autograder.proof import proof_report
    from autograder.proof.verify import ProofRequest, verify_command

    proofs = verify_command(find_course(), names, ProofRequest(**options))
    if report is not None:
        proof_report.write_report(report, proofs)
    if as_json:
        click.echo(proof_report.as_json(proofs))
    else:
        tell_proofs(proofs)
    problems = [
        f"{proof.assignment}: {problem}"
        for proof in proofs
        for problem in proof.problems
    ]
    if problems:
        raise NotProven("\n".join(problems))


@main.command()
@click.argument("names", metavar="[ASSIGNMENT]...", nargs=-1)
@click.option("--question", default="", metavar="NAME", help="Only this question.")
@click.option(
    "--seeds", type=click.IntRange(1), default=1, help="With so many draws of 20 calls."
)
@click.option(
    "--report",
    type=LocalPath(),
    help="Put the figures into the table of this .md file.",
)
@click.option(
    "--missed", is_flag=True, help="List the mistakes that nothing in a notebook shows."
)
def harder(
    names: tuple[str, ...], question: str, seeds: int, report: Path | None, missed: bool
) -> Iterable[str]:
    """Prove the harder inputs of notebooks, and count the mistakes that they catch."""
    from autograder.basics.errors import NotProven
    from autograder.proof.harder_proof import prove_harder
    from autograder.proof.harder_report import write_harder_rows

    proven = prove_harder(find_course(), names, seeds, question)
    problems = [f"{one.assignment}: {text}" for one in proven for text in one.problems]
    if problems:
        raise NotProven("\n".join(problems))
    if report is not None:
        write_harder_rows(report, proven)
    for figures in proven:
        yield str(figures)
        yield from (f"  nothing shows {name}" for name in figures.missed if missed)


@main.command()
@click.argument("assignment")
@click.option("--question", default="", metavar="NAME", help="Only this question.")
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    help="How long the hunt may take (default: 2 seconds of processor time for each question of "
    "each answer).",
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Draw other calls.")
@count_option(
    "--mutants",
    "Also put so many mutants in front of the suite, or all of them, and hunt those that survive.",
)
@click.option(
    "--write",
    is_flag=True,
    help="Add a test to the suite for each find; the sum of points stays.",
)
@click.option(
    "--results", type=LocalPath(), help="Where the results lie (default: results/)."
)
@workers_option
def hunt(assignment: str, seed: int, write: bool, **options: Any) -> Iterable[str]:
    """Look for calls that the docstrings allow, and in which an answer with full marks differs from
    the answer key: answers of the class, right known answers, and mutants that nothing kills.
    """
    from autograder.basics.safe_text import clean
    from autograder.proof import hunt as hunting
    from autograder.proof.hunt_search import HuntLimits

    course = find_course()
    suite = course.assignment(assignment)
    request = hunting.HuntRequest(limits=HuntLimits(seed=seed), **options)
    hunted = hunting.hunt(course, suite, request)
    yield from map(clean, hunting.describe_hunt(hunted))
    if write and hunted.finds:
        from autograder.proof.hunt_proposals import propose_tests

        yield from propose_tests(suite.suite, hunted.finds)
    sys.exit(1 if hunted.finds or hunted.problems else 0)


@main.command()
@click.argument("assignment")
@click.option(
    "--to",
    required=True,
    type=LocalPath(),
    help="A folder, a file that ends in .zip, or with --for one that ends in .ipynb.",
)
@click.option(
    "--for",
    "host",
    default="",
    type=click.Choice(["", "colab", "kaggle", "plain"]),
    help="Make one notebook that carries all files, to be opened there.",
)
def release(assignment: str, to: Path, host: str) -> Iterable[str]:
    """Put what students get into a folder, a .zip file, or one notebook."""
    from autograder.authoring.build_commands import release_command

    return release_command(find_course(), assignment, to, host)


@main.command()
@click.argument("assignment")
@click.option("--to", required=True, type=LocalPath(), help="A folder.")
@click.option(
    "--quick", is_flag=True, help="Let cells that train for minutes take a few steps."
)
def solutions(assignment: str, to: Path, quick: bool) -> Iterable[str]:
    """Run the answer key, and put it into a folder with outputs and pictures, as a page too."""
    from autograder.authoring.build_commands import solutions_command

    return solutions_command(find_course(), assignment, to, quick)


@main.command()
@click.argument("assignment")
@click.option("--for", "target", required=True, type=PlatformChoice("bundles"))
@click.option(
    "--to",
    required=True,
    type=LocalPath(),
    help="A .zip file (gradescope) or a folder.",
)
def bundle(assignment: str, target: str, to: Path) -> Iterable[str]:
    """Pack an autograder for Gradescope, GitHub Classroom or the course's own repository at
    GitHub.
    """
    from autograder.authoring.build_commands import bundle_command

    return bundle_command(find_course(), assignment, target, to)


@main.command()
@click.argument("assignment")
@click.option(
    "--to", type=LocalPath(), help="Folder (default: submitted/ of the course)."
)
@click.option(
    "--if-empty", is_flag=True, help="Do nothing where there are submissions already."
)
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
def doctor() -> Iterable[str]:
    """Say which walls stand on this machine, and what to do about those that do not."""
    from autograder.sandbox.doctor import doctor_command

    is_strict = yield from doctor_command(find_course())
    sys.exit(0 if is_strict else 1)
