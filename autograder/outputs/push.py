"""Marks through a platform's own interface, `export --push`: the same difference as in the platform's file.

| platform | interface | who may call it |
| --- | --- | --- |
| Canvas | its REST API, through canvasapi (`canvas_api.py`) | an access token of somebody who may grade |
| Moodle | its web services (`moodle_api.py`) | a token of a service with the functions named there |
| Google Classroom | its REST API (`classroom_api.py`) | an access token of the project that made the course work |

What the platform has is read first. Nothing is sent where it is not certain whose a mark is, and after sending
everything is read once more: whoever does not have the mark then is named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from autograder.course import Course, Platform
from autograder.errors import KitError, PlatformUnavailable
from autograder.ledger import assert_certain, read_ledger
from autograder.outputs.difference import (
    SAME,
    Change,
    Difference,
    Outcome,
    change_of,
    full_marks,
    missing_students,
    points_to_give,
)
from autograder.outputs.export import points_cell
from autograder.outputs.marks import Mark
from autograder.outputs.standings import Interface, Standing, Standings
from autograder.points import shown

PushFormat = Literal["canvas", "moodle", "classroom"]
PUSHES: tuple[PushFormat, ...] = ("canvas", "moodle", "classroom")
_ADDRESSES = {"classroom": "https://classroom.googleapis.com"}
"""Platforms that are at one address for everybody."""
_MOST_OF_A_TOKEN = 4096  # bytes


def push_marks(
    course: Course,
    assignment: str,
    marks: Sequence[Mark],
    platform: PushFormat,
    *,
    column: str = "",
    provisional: bool = False,
    dry_run: bool = False,
) -> Iterator[str]:
    """Send the marks; yields the difference, then how many marks were sent.

    Args:
        column: what the assignment is called on the platform; default: its name here.
        dry_run: only say what would be sent.

    Raises:
        KitError: it is not said where the platform is, there is no token, or it is not certain whose a mark is.
        PlatformUnavailable: the platform does not answer, or did not take everything.
    """
    interface = open_interface(course, platform, column or assignment)
    standings = interface.read()
    points = points_to_give(marks, provisional=provisional)
    difference, to_send = _difference(course, assignment, marks, points, platform, standings)
    yield from difference.lines(platform.capitalize())
    if dry_run:
        yield f"nothing was sent to {platform}, since --dry-run was given"
        return
    if to_send:
        interface.give(to_send)
        _assert_taken(platform, to_send, interface.read())
    yield f"marks of {assignment} sent to {platform}, {standings.title!r}: {len(to_send)}"


def hand_in_times(course: Course, platform: str, title: str) -> dict[str, datetime]:
    """When everybody handed in, by what the platform knows them by: Canvas alone, whose download has no times.

    Raises:
        KitError: the platform is not Canvas, or Canvas's interface cannot be asked.
    """
    if platform != "canvas":
        raise KitError("--ask-times is for --from canvas: other downloads have their times, or --roster has them")
    people = open_interface(course, "canvas", title).read().people
    return {person.id: person.handed_in for person in people if person.handed_in is not None}


def open_interface(course: Course, platform: PushFormat, title: str) -> Interface:
    """The platform's interface, with the address from course.toml and the token from where it lies.

    Raises:
        KitError: there is no address, no course, no token, or a package is missing.
    """
    settings: Platform = getattr(course, platform)
    url = settings.url or _ADDRESSES.get(platform, "")
    if not settings.course or not url:
        raise KitError(
            f"course.toml does not say which course on {platform} is meant: write `url` and `course` under [{platform}]"
        )
    token = read_token(course.root, platform)
    try:
        if platform == "canvas":
            from autograder.outputs.canvas_api import CanvasInterface

            return CanvasInterface(url, settings.course, title, token)
        if platform == "moodle":
            from autograder.outputs.moodle_api import MoodleInterface

            return MoodleInterface(url, settings.course, title, token)
        from autograder.outputs.classroom_api import ClassroomInterface

        return ClassroomInterface(url, settings.course, title, token)
    except ImportError as error:
        raise KitError(f"{error.name} is not installed: pip install 'attention-kit[platforms]'") from error


def read_token(root: Path, platform: str) -> str:
    """The token: from the environment, or from a file that the environment names, outside the course's folder.

    Raises:
        KitError: there is no token, or the file with the token could be read by others or committed.
    """
    name = f"{platform.upper()}_TOKEN"
    if token := os.environ.get(name, "").strip():
        return token
    place = os.environ.get(f"{name}_FILE", "")
    if not place:
        raise KitError(f"no token for {platform}: put it into ${name}, or the path of a file with it into ${name}_FILE")
    path = Path(place).expanduser().absolute()
    if path.resolve().is_relative_to(root.resolve()):
        raise KitError(f"{path} lies in the course's folder, where it could be committed: move it out")
    try:
        if path.stat().st_mode & 0o077:
            raise KitError(f"{path} can be read by others: chmod 600 {path}")
        with path.open(encoding="utf-8") as file:
            token = file.read(_MOST_OF_A_TOKEN).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise KitError(f"the token's file {path} cannot be read ({type(error).__name__})") from error
    if not token.isprintable() or not token or " " in token:
        raise KitError(f"{path} holds no token: one line with nothing else in it")
    return token


def _difference(
    course: Course,
    assignment: str,
    marks: Sequence[Mark],
    points: Mapping[str, float],
    platform: PushFormat,
    standings: Standings,
) -> tuple[Difference, dict[str, float]]:
    """The difference, and the marks to send: the platform's id of a person → points."""
    identities = [person.identity for person in standings.people]
    students = [mark.student for mark in marks]
    matches, conflicts = read_ledger(course).match_rows(platform, assignment, identities, students)
    assert_certain(conflicts, points, platform)
    if any(match.key for match in matches):
        _check_maximum(platform, standings, full_marks(marks))
    by_student = {mark.student: mark for mark in marks}
    changes, to_send = [], {}
    for person, match in zip(standings.people, matches, strict=True):
        change = _change(person, by_student.get(match.key or ""), points, standings)
        changes.append(change)
        if change.outcome == "gets" and change.mark is not None:
            to_send[person.id] = change.mark
    missing = missing_students(marks, points, changes)
    return Difference(tuple(changes), missing, standings.notes), to_send


def _check_maximum(platform: str, standings: Standings, full: float) -> None:
    if full and standings.maximum is not None and abs(standings.maximum - full) > SAME:
        raise KitError(
            f"{standings.title!r} has {shown(standings.maximum)} points on {platform}, and the marks here are out of "
            f"{shown(full)}: give it {shown(full)} points there"
        )


def _change(person: Standing, mark: Mark | None, points: Mapping[str, float], standings: Standings) -> Change:
    name, had = str(person.identity) or person.id, points_cell(person.mark)

    def decide(mark_here: float) -> tuple[Outcome, str]:
        if person.refused:
            return "skipped", person.refused
        if standings.maximum is not None and mark_here > standings.maximum and not standings.extra:
            return "skipped", f"it is above the {shown(standings.maximum)} there"
        return "gets", ""

    return change_of(name, mark, points, had, person.mark, decide)


def _assert_taken(platform: str, sent: Mapping[str, float], standings: Standings) -> None:
    now = {person.id: person for person in standings.people}
    lost = [
        str(now[id_].identity) if id_ in now else id_
        for id_, points in sent.items()
        if id_ not in now or now[id_].mark is None or abs((now[id_].mark or 0.0) - points) > SAME
    ]
    if lost:
        raise PlatformUnavailable(
            f"{platform} took {len(sent) - len(lost)} of {len(sent)} marks, and not those of {', '.join(lost)}: they "
            "may be locked or overridden there"
        )
