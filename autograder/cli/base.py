"""What all commands share: where an error ends one, where lines beside the answer go, a kind of
option.
"""

from __future__ import annotations

import io
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from autograder.basics.errors import KitError
from autograder.basics.explain import explain_error
from autograder.basics.file_transaction import recover_transactions
from autograder.course import Course
from autograder.course import find_course as course_of_folder
from autograder.course.folders import HOW_WITH_A_BUCKET


def find_course() -> Course:
    """The course that the current folder lies in. A line says which names in its course.toml nobody
    has; what a command that was cut off had begun is finished first, or undone.

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
    """A line that a person should read beside what was asked for: to standard error."""
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
            click.echo(
                "autograder: interrupted; what was graded is safe, run the same command to go on",
                err=True,
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
            click.echo(f"autograder: {line}", err=True)
            ctx.exit(error.exit_status if isinstance(error, KitError) else 2)


class LocalPath(click.Path):
    """A file or folder of this machine, as a `Path`. An address such as s3://bucket/results ends
    the command in one line.
    """

    def __init__(self, *, exists: bool = False, dir_okay: bool = True) -> None:
        super().__init__(exists=exists, dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if (
            isinstance(value, str)
            and re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", value)
            and not Path(value).exists()
        ):
            raise KitError(
                f"{value} is an address: name a file or folder of this machine; {HOW_WITH_A_BUCKET}"
            )
        return super().convert(value, param, ctx)


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


class LaterChoice(click.Choice[str]):
    """A choice that gets its words when its command runs: `autograder --help` need not import the
    platforms.
    """

    def __init__(self, words: Callable[[], Iterable[str]]) -> None:
        self._words = words
        self.case_sensitive = True

    @property
    def choices(self) -> Sequence[str]:  # type: ignore[override]
        """The words."""
        return list(self._words())
