"""Implements `autograder leaderboard`: measures the class, writes the page, says who is ranked."""

from __future__ import annotations

from collections.abc import Iterator

from autograder.basics.file_transaction import FileTransaction
from autograder.basics.safe_text import one_line
from autograder.leaderboard.leaderboard_page import (
    rank_rows,
    render_leaderboard,
    shown_names,
)
from autograder.leaderboard.ranking import LeaderboardRequest, rank_class
from autograder.records.results import Tell


def leaderboard_command(
    request: LeaderboardRequest, tell: Tell, *, with_students: bool
) -> Iterator[str]:
    """Rank the class and write the page; yields a line on each measure.

    Args:
        with_students: whether the lines say who is who, and why somebody has no number.

    Raises:
        KitError: the assignment has no leaderboard, nobody was graded, or this machine cannot
            grade.
    """
    course, name = request.course, request.assignment.name
    ranking = rank_class(request, tell)
    measures, standings = ranking.measures, ranking.standings
    names = shown_names(course, ranking.files, standings)
    path = request.results / f"{name}.leaderboard.html"
    page = "".join(render_leaderboard(name, measures, standings, names))
    with FileTransaction(course.kept, f"`autograder leaderboard {name}`") as files:
        files.write(path, page.encode("utf-8", "backslashreplace"))
    for measure in measures:
        rows = rank_rows(measure, standings, names)
        first = (
            f"; first: {rows[0].shown} with {rows[0].number} {measure.unit}"
            if rows
            else ""
        )
        yield one_line(f"{measure.title}: {len(rows)} ranked{first}")
        if not with_students:
            continue
        for row in rows:
            yield one_line(f"{row.place}. {row.shown} ({row.student}): {row.number}")
        for standing in standings.standings:
            if reason := standing.reasons.get(measure.name):
                yield one_line(f"not ranked: {standing.student}: {reason}")
    yield f"leaderboard: {path.resolve().as_uri()}"
