"""The command `serve`."""

from __future__ import annotations

import os

import click

from autograder.cli.base import beside, find_course, main
from autograder.sandbox.tiers import ISOLATIONS


@main.command()
@click.option(
    "--host", default="127.0.0.1", help="Where to listen (default: this machine alone)."
)
@click.option("--port", type=click.IntRange(1, 65535), default=8000)
@click.option(
    "--graders",
    type=click.IntRange(0, 1000),
    help="How many attempts are graded at once (default: one a core; 0: other machines grade).",
)
@click.option(
    "--isolation",
    type=click.Choice(ISOLATIONS),
    default="auto",
    help="Which walls must stand (default: auto).",
)
@click.option(
    "--link",
    multiple=True,
    metavar="ID",
    help="Print a link with which this person signs in; may be repeated.",
)
@click.option(
    "--grade-only",
    is_flag=True,
    help="Grade for a server on another machine, same database.",
)
@click.option(
    "--demo",
    is_flag=True,
    help="Show it: a class hands in by itself, in a folder of its own.",
)
def serve(
    host: str,
    port: int,
    graders: int | None,
    isolation: str,
    link: tuple[str, ...],
    grade_only: bool,
    demo: bool,
) -> None:
    """Let students hand in on a page, see their result at once, and try again."""
    from autograder.server.serve_command import (
        ServeRequest,
        grade_for_server,
        serve_command,
    )

    count = graders if graders is not None else os.cpu_count() or 1
    if demo:
        from autograder.server.demo_day import serve_demo

        serve_demo(find_course(), host, port, count, beside)
        return
    request = ServeRequest(find_course(), host, port, count, isolation, link)
    if grade_only:
        grade_for_server(request, beside)
    else:
        serve_command(request, beside)
