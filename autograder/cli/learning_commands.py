"""The command that makes known mistakes of a class's wrong answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.cli.base import (
    LocalPath,
    beside,
    find_course,
    main,
    workers_option,
)

if TYPE_CHECKING:
    from autograder.learning.class_groups import MistakesRequest


@main.command()
@click.argument("assignment")
@click.argument("paths", metavar="[NOTEBOOK|FOLDER]...", nargs=-1, type=LocalPath())
@click.option(
    "--results",
    type=LocalPath(),
    help="Where the results lie (default: results/ of the course).",
)
@click.option("--students", is_flag=True, help="Show who is in each group.")
@click.option(
    "--name",
    "named",
    nargs=2,
    metavar="GROUP SENTENCE",
    help="Make a known mistake of this group: say in one sentence what is wrong.",
)
@click.option(
    "--ask",
    is_flag=True,
    help="Show one group after the other, and ask for its sentence.",
)
@click.option("--hint", help="With --name: what students read (default: the sentence).")
@click.option(
    "--keeps",
    type=click.FloatRange(0, 1, max_open=True),
    help="With --name: the share of the points that such an answer keeps (default: 0.5).",
)
@click.option(
    "--as", "mistake", metavar="NAME", help="With --name: the mistake's name."
)
@workers_option
def mistakes(
    assignment: str,
    paths: tuple[Path, ...],
    results: Path | None,
    students: bool,
    named: tuple[str, str] | None,
    ask: bool,
    hint: str | None,
    keeps: float | None,
    mistake: str | None,
    workers: int | None,
) -> Iterable[str]:
    """Group the wrong answers that no known mistake explains, and make known mistakes of them."""
    from autograder.learning.class_groups import MistakesRequest
    from autograder.learning.learn_command import name_command, show_command

    if (hint or keeps is not None or mistake) and not named:
        raise click.UsageError("--hint, --keeps and --as say more of a --name")
    if named and ask:
        raise click.UsageError("give --name or --ask")
    course = find_course()
    request = MistakesRequest(
        course, course.assignment(assignment), results or course.results, paths, workers
    )
    if ask:
        return _ask(request)
    if named:
        name, sentence = named
        return name_command(
            request, name, sentence, beside, hint=hint, keeps=keeps, mistake=mistake
        )
    return show_command(request, beside, with_students=students)


def _ask(request: MistakesRequest) -> Iterator[str]:
    """Name groups as a person at the terminal says."""
    from autograder.basics.errors import KitError
    from autograder.learning.class_groups import load_groups, load_results
    from autograder.learning.learn_command import describe_group, name_command
    from autograder.learning.naming import KEEPS

    groups = load_groups(request, load_results(request, beside), beside)
    for group in groups.groups:
        if group.mistake or group.problem:
            continue
        yield from describe_group(group, with_students=False)
        sentence = click.prompt(
            "What is wrong, in one sentence (Enter for the next group)",
            default="",
            show_default=False,
            err=True,
        )
        if not sentence:
            continue
        hint = click.prompt(
            "What students read (Enter for the sentence)",
            default="",
            show_default=False,
            err=True,
        )
        keeps = click.prompt(
            "The share of the points that such an answer keeps",
            default=KEEPS,
            type=click.FloatRange(0, 1, max_open=True),
            err=True,
        )
        try:
            yield from name_command(
                request, group.name, sentence, beside, hint=hint or None, keeps=keeps
            )
        except KitError as error:  # the next group may be named all the same
            beside(f"autograder: {error}")
        yield ""
