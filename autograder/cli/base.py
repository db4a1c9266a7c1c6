"""The command group, and what its commands share: the end of errors, lines beside the answer, kinds
of options.
"""

from __future__ import annotations

import io
import os
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from autograder.basics.errors import KitError
from autograder.basics.explain import explain_error
from autograder.basics.file_transaction import recover_transactions
from autograder.course import Course
from autograder.course import find_course as course_of_folder
from autograder.course.folders import BUCKET_ADVICE


def find_course() -> Course:
    """The course that the current folder lies in. A line names the names in its course.toml that
    nobody has; the transaction of a command that was cut off is finished first, or undone.

    Raises:
        KitError: there is no course, or its course.toml has a mistake.
    """
    from autograder.ledger.unknown_names import unknown_names

    course = course_of_folder()
    for line in unknown_names(course):
        beside(line)
    recover_transactions(course.kept, beside)
    return course


def beside(line: str) -> None:
    """Write a line for a person, beside the command's output: to standard error."""
    click.echo(line, err=True)


class Commands(click.Group):
    """The one place where an error ends a command: in one line, and never with a traceback unless
    one was asked for.
    """

    def invoke(self, ctx: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            # a name may hold what no encoding has, like half a surrogate pair
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            beside(
                "autograder: interrupted; what was graded is safe, run the same command to go on"
            )
            ctx.exit(130)
        except BrokenPipeError:
            raise  # whoever read the output has stopped; click ends quietly
        except Exception as error:
            line = explain_error(error)
            if line is None:
                raise
            if os.environ.get("AUTOGRADER_DEBUG"):
                traceback.print_exception(error)
            beside(f"autograder: {line}")
            ctx.exit(error.exit_status if isinstance(error, KitError) else 2)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="attention-kit")
def main() -> None:
    """Attention Kit: build assignments, grade what students hand in, behind walls."""


@main.result_callback()
def print_lines(lines: Iterable[str] | None) -> None:
    """Print the lines that a command returns, each as soon as it is known."""
    for line in lines or ():
        click.echo(line)


class LocalPath(click.Path):
    """A file or folder of this machine, as a `Path`. An address such as s3://bucket/results ends
    the command in one line.
    """

    def __init__(self, *, exists: bool = False, dir_okay: bool = True) -> None:
        super().__init__(exists=exists, dir_okay=dir_okay, path_type=Path)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        is_address = isinstance(value, str) and re.match(
            r"[A-Za-z][A-Za-z0-9+.-]+:/", value
        )
        if is_address and not Path(value).exists():
            raise KitError(
                f"{value} is an address: name a file or folder of this machine; {BUCKET_ADVICE}"
            )
        return super().convert(value, param, ctx)


workers_option = click.option(
    "--workers",
    type=click.IntRange(1),
    help="How many graders at once (default: one a core).",
)


class CountOrAll(click.ParamType["int | None"]):
    """A number, or `all`, which is None."""

    name = "N|all"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        if value is None or value == "all":
            return None
        if not str(value).isdecimal():
            self.fail(f"{value!r} is neither a number nor `all`", param, ctx)
        return int(value)


class PlatformChoice(click.Choice[str]):
    """A choice among the words that a function of the platforms' registry gives. The platforms are
    imported when the option is used: `autograder --help` answers at once.
    """

    def __init__(self, function: str) -> None:
        self._function = function
        self.case_sensitive = True

    @property
    def choices(self) -> Sequence[str]:  # type: ignore[override]
        """The words."""
        from autograder.platforms import registry

        return list(getattr(registry, self._function)())
