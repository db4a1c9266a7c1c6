"""The command `export --push`: sends marks through a platform's own interface, with the same
difference as for the platform's file.

The platform's marks are read first. Nothing is sent where it is not certain whose a mark is. After
sending all marks are read once more, and people who do not have their mark then are named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from autograder.basics.errors import KitError, PlatformUnavailable
from autograder.basics.points import format_points
from autograder.course import Course
from autograder.course.platform_names import NAMES
from autograder.ledger import assert_certain, match_rows, read_ledger
from autograder.marks.marks import Mark
from autograder.outputs.difference import (
    SAME,
    Difference,
    Outcome,
    PlatformPerson,
    compare_marks,
    full_marks,
    has_other_maximum,
    points_to_give,
)
from autograder.outputs.export import points_cell
from autograder.platforms.platform import Interface, Standing, Standings
from autograder.platforms.registry import platforms

_MOST_READ = 4096
"""Characters of a token's file: a token that ends there may be cut off."""


def push_marks(
    course: Course,
    assignment: str,
    marks: Sequence[Mark],
    platform: str,
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
        KitError: it is not said where the platform is, there is no token, or it is not certain
            whose a mark is.
        PlatformUnavailable: the platform does not answer, or did not take everything.
    """
    interface = open_interface(course, platform, column or assignment)
    standings = interface.read()
    points = points_to_give(marks, provisional=provisional)
    difference, to_send = _difference(
        course,
        assignment,
        marks,
        points,
        platform,
        standings,
    )
    yield from difference.lines(NAMES[platform].title)
    if dry_run:
        yield f"nothing was sent to {platform}, since --dry-run was given"
        return
    if to_send:
        interface.send(to_send)
        _assert_taken(platform, to_send, interface.read())
    yield f"marks of {assignment} sent to {platform}, {standings.title!r}: {len(to_send)}"


def hand_in_times(course: Course, platform: str, title: str) -> dict[str, datetime]:
    """When everybody handed in, by what the platform knows them by, for downloads that have no
    times.

    Raises:
        KitError: the platform's interface does not say so, or cannot be asked.
    """
    with_times = [
        name
        for name, entry in platforms().items()
        if entry.interface and entry.interface.knows_times
    ]
    if platform not in with_times:
        raise KitError(
            f"--ask-times is for --from {', '.join(with_times)}: other downloads have their times, "
            "or --roster has them"
        )
    people = open_interface(course, platform, title).read().people
    return {
        person.id: person.handed_in for person in people if person.handed_in is not None
    }


def open_interface(course: Course, platform: str, title: str) -> Interface:
    """The platform's interface, with the address from course.toml and the token from where it lies.

    Raises:
        KitError: there is no address, no course or no token.
    """
    settings = course.platforms[platform]
    interface = platforms()[platform].interface
    assert interface is not None
    url = settings.url or interface.address
    if not settings.course or not url:
        raise KitError(
            f"course.toml does not say which course on {platform} is meant: write `url` and "
            f"`course` under [{platform}]"
        )
    token = read_token(course.root, platform)
    return interface.connect(url, settings.course, title, token)


def read_token(root: Path, platform: str) -> str:
    """The token: from the environment, or from a file that the environment names, outside the
    course's folder.

    Raises:
        KitError: there is no token, or the file with the token could be read by others or
            committed.
    """
    name = f"{platform.upper()}_TOKEN"
    if token := os.environ.get(name, "").strip():
        return token
    place = os.environ.get(f"{name}_FILE", "")
    if not place:
        raise KitError(
            f"no token for {platform}: put it into ${name}, or the path of a file with it into "
            f"${name}_FILE"
        )
    path = Path(place).expanduser().absolute()
    if path.resolve().is_relative_to(root.resolve()):
        raise KitError(
            f"{path} lies in the course's folder, where it could be committed: move it out"
        )
    try:
        if path.stat().st_mode & 0o077:
            raise KitError(f"{path} can be read by others: chmod 600 {path}")
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_READ)
    except (OSError, UnicodeDecodeError) as error:
        raise KitError(
            f"the token's file {path} cannot be read ({type(error).__name__})"
        ) from error
    token = text.strip()
    is_one_word = token.isprintable() and " " not in token
    if not token or not is_one_word or len(text) == _MOST_READ:
        raise KitError(f"{path} holds no token: one line with nothing else in it")
    return token


def _difference(
    course: Course,
    assignment: str,
    marks: Sequence[Mark],
    points: Mapping[str, float],
    platform: str,
    standings: Standings,
) -> tuple[Difference, dict[str, float]]:
    """The difference, and the marks to send: the platform's id of a person → points."""
    identities = [person.identity for person in standings.people]
    students = [mark.student for mark in marks]
    matches, conflicts = match_rows(
        read_ledger(course),
        platform,
        assignment,
        identities,
        students,
    )
    assert_certain(conflicts, points, platform)
    if any(match.key for match in matches):
        _check_maximum(platform, standings, full_marks(marks))
    people = [
        _person(person, match.key or "", standings)
        for person, match in zip(standings.people, matches, strict=True)
    ]
    difference = compare_marks(marks, people, points, standings.notes)
    to_send = {
        person.id: change.mark
        for person, change in zip(standings.people, difference.changes, strict=True)
        if change.outcome == "gets" and change.mark is not None
    }
    return difference, to_send


def _check_maximum(platform: str, standings: Standings, full: float) -> None:
    maximum = standings.maximum
    if full and maximum is not None and has_other_maximum(maximum, full):
        raise KitError(
            f"{standings.title!r} has {format_points(maximum)} points on {platform}, and the marks "
            f"here are out of {format_points(full)}: give it {format_points(full)} points there"
        )


def _person(person: Standing, student: str, standings: Standings) -> PlatformPerson:
    def decide(mark_here: float) -> tuple[Outcome, str]:
        if person.refused:
            return "skipped", person.refused
        if (
            standings.maximum is not None
            and mark_here > standings.maximum
            and not standings.extra
        ):
            return (
                "skipped",
                f"it is above the {format_points(standings.maximum)} there",
            )
        return "gets", ""

    return PlatformPerson(
        str(person.identity) or person.id,
        student,
        points_cell(person.mark),
        person.mark,
        decide,
    )


def _assert_taken(
    platform: str, sent: Mapping[str, float], standings: Standings
) -> None:
    people = {person.id: person for person in standings.people}
    lost = []
    for id_, points in sent.items():
        person = people.get(id_)
        if person is None:
            lost.append(id_)
        elif person.mark is None or abs(person.mark - points) > SAME:
            lost.append(str(person.identity))
    if lost:
        raise PlatformUnavailable(
            f"{platform} took {len(sent) - len(lost)} of {len(sent)} marks, and not those of "
            f"{', '.join(lost)}: they may be locked or overridden there"
        )
