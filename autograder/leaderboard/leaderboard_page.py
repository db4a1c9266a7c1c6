"""The page of a leaderboard, and what people are called on it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from autograder.course import Course
from autograder.intake.nicknames import comparable_nickname, read_nickname
from autograder.leaderboard.measures import Measure
from autograder.leaderboard.standings import RankedClass
from autograder.ledger import read_ledger
from autograder.outputs.pages import render_pieces
from autograder.records.submission import FoundSubmission


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: equal numbers have equal places."""

    place: int
    student: str
    shown: str
    number: str


def shown_names(
    course: Course, files: Mapping[str, FoundSubmission], standings: RankedClass
) -> dict[str, str]:
    """What each student is called, as the course's settings say.

    Args:
        files: the submissions by student.
    """
    students = [standing.student for standing in standings.standings]
    if course.leaderboard.names == "ids":
        return {student: student for student in students}
    if course.leaderboard.names == "names":
        ledger = read_ledger(course)
        return {student: ledger.name(student) for student in students}
    names: dict[str, str] = {}
    taken: set[str] = set()
    for student in students:
        nickname = read_nickname(files[student].path)
        comparable = comparable_nickname(nickname)
        if not nickname or comparable in taken:
            continue
        names[student] = nickname
        taken.add(comparable)
    for student in students:
        if student in names:
            continue
        number = _number_of(student, standings.suite_sha256)
        while comparable_nickname(f"nobody {number:04}") in taken:
            number += 1
        names[student] = f"nobody {number:04}"
        taken.add(comparable_nickname(names[student]))
    return names


def _number_of(student: str, suite_sha256: str) -> int:
    """A number in place of a nickname. Nobody else knows the suite's hash, so that the number does
    not tell the student.
    """
    digest = hashlib.sha256(f"{suite_sha256} {student}".encode()).hexdigest()
    return int(digest[:8], 16) % 10_000


def rank_rows(
    measure: Measure, standings: RankedClass, names: Mapping[str, str]
) -> list[Row]:
    """The rows of a measure's table, the smallest number first."""
    numbers = {
        standing.student: standing.numbers[measure.name]
        for standing in standings.standings
        if measure.name in standing.numbers
    }
    in_order = sorted(numbers.values())
    rows = []
    for student, number in sorted(
        numbers.items(), key=lambda item: (item[1], names[item[0]])
    ):
        place = in_order.index(number) + 1
        rows.append(
            Row(place, student, names[student], f"{number:,.{measure.decimals}f}")
        )
    return rows


def render_leaderboard(
    assignment: str,
    measures: Sequence[Measure],
    standings: RankedClass,
    names: Mapping[str, str],
) -> Iterator[str]:
    """The page as HTML, in pieces: names and numbers, and of nobody why there is no number."""
    tables = [(measure, rank_rows(measure, standings, names)) for measure in measures]
    return render_pieces(
        "leaderboard.html",
        assignment=assignment,
        tables=tables,
        people=len(standings.standings),
    )
