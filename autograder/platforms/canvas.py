"""Canvas: downloaded submissions, marks for the gradebook, and feedback pages.

    lastfirst_LATE_12345_67890_name-2.ipynb  user 12345, upload 67890, late, second of that name
    anon_Ab3dE_67890_name.ipynb              where grading is anonymous
    lastfirst_12345_text.html

In canvas-lms, `lib/content_zipper.rb` names the files of a download, and
`app/models/abstract_assignment.rb` takes feedback back. The gradebook has a module of its own,
`canvas_gradebook.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from autograder.basics.safe_text import one_line
from autograder.basics.tables import write_table
from autograder.course.platform_names import ANONYMOUS
from autograder.intake.archives import UploadedFile, archive_stem, notebook_stem
from autograder.intake.owners import FindOwner, KnowsId, Owner, inner_stem
from autograder.ledger import Identity
from autograder.marks.marks import Mark
from autograder.outputs.difference import (
    Change,
    Difference,
    full_marks,
    missing_students,
    points_to_give,
)
from autograder.outputs.export import points_cell, safe_cell
from autograder.platforms.canvas_gradebook import (
    POINTS_TITLE,
    read_gradebook,
    read_people,
)
from autograder.platforms.platform import (
    Download,
    DownloadFormat,
    Interface,
    InterfaceFormat,
    OwnFileFormat,
    Platform,
)

_FILE = r"(?:(?P<upload>\d+)_(?P<name>.+)|(?:text|link)\.html)"
_ANONYMOUS = re.compile(
    rf"(?P<late>LATE_)?anon_(?P<user>[^_]+)_(?P<late_too>LATE_)?{_FILE}", re.DOTALL
)
_NAMED = (
    re.compile(rf"(?P<who>.+?)(?P<late>_LATE)?_(?P<user>\d+)_{_FILE}", re.DOTALL),
    re.compile(rf"(?P<who>[^_]*_\d+)(?P<late>)_(?P<user>\d+)_{_FILE}", re.DOTALL),
)
_AGAIN = re.compile(r"-\d+$")
_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


def find_owners(download: Download) -> FindOwner:
    """A function that tells the owner of each file.

    Canvas takes numbers between underscores out of a name, but not one at its end:
    `doejane_777_101_9001_m1.ipynb` is user 777's file `9001_m1.ipynb`, or user 101's `m1.ipynb`
    whose name ends in `_777`.
    """
    names = [file.parts[-1] for file in download.files if notebook_stem(file.name)]
    anonymous = all(
        _ANONYMOUS.fullmatch(name) for name in names
    )  # somebody may be called Anon
    names_of_users = {}
    for name in names:
        readings = _readings(name)
        if len(readings) == 1:
            names_of_users[readings[0]["user"]] = readings[0]["who"]

    def find_owner(file: UploadedFile) -> Owner | None:
        name = file.parts[-1]
        if anonymous and (reading := _ANONYMOUS.fullmatch(name)):
            late = "LATE_" in (reading["late"] or "") + (reading["late_too"] or "")
            identity = Identity(((ANONYMOUS, reading["user"]),))
            student = f"anon_{reading['user']}"
            return _handed_in(
                file,
                student,
                identity,
                reading,
                late,
            )
        readings = _readings(name)
        if not readings:
            return None
        consistent = [
            reading
            for reading in readings
            if names_of_users.get(reading["user"], reading["who"]) == reading["who"]
        ]
        possible = consistent or readings
        reading = _likeliest(possible, file, download.assignment, download.is_known_id)
        who, user = reading["who"], reading["user"]
        identity = Identity((("canvas", user),), (), who)
        owner = _handed_in(
            file,
            f"{who}_{user}",
            identity,
            reading,
            bool(reading["late"]),
        )
        rejected = [other["user"] for other in possible if other["user"] != user]
        if not rejected or download.is_known_id("canvas", user):
            return owner
        return replace(owner, doubt=f"user {user}, or {rejected[0]}")

    return find_owner


def _readings(name: str) -> list[re.Match[str]]:
    return [match for form in _NAMED if (match := form.fullmatch(name))]


def _likeliest(
    readings: Sequence[re.Match[str]],
    file: UploadedFile,
    assignment: str,
    knows: KnowsId,
) -> re.Match[str]:
    """The likeliest reading of a file's name: with an id that is known; else with an upload number
    above the user's, since Canvas has fewer users than uploads; else with a file that is called
    like the assignment.
    """
    known_readings = [
        reading for reading in readings if knows("canvas", reading["user"])
    ]
    if len(known_readings) == 1:
        return known_readings[0]
    likely = []
    for reading in readings:
        upload = reading["upload"]
        if upload is None or int(reading["user"]) < int(upload):
            likely.append(reading)
    likely = likely or list(readings)
    if not known_readings:
        for reading in likely:
            name = reading["name"]
            if name and _AGAIN.sub("", inner_stem(file, name)) == assignment:
                return reading
    return likely[0]


def _handed_in(
    file: UploadedFile,
    student: str,
    identity: Identity,
    reading: re.Match[str],
    late: bool,
) -> Owner:
    stem = _AGAIN.sub("", inner_stem(file, reading["name"] or ""))
    upload = float(reading["upload"] or 0)
    return Owner(
        student,
        identity,
        stem,
        rank=(upload,),
        late=late,
    )


def canvas_csv(
    marks: Sequence[Mark], assignment: str, column: str = "", provisional: bool = False
) -> tuple[str, Difference]:
    """Make a file by Canvas's ids, or by logins where no id is known, where Canvas's gradebook was
    not given.
    """
    points = points_to_give(marks, provisional=provisional)
    rows = [
        [*_COLUMNS, safe_cell(column or assignment)],
        [POINTS_TITLE, "", "", "", "", points_cell(full_marks(marks))],
    ]
    changes = []
    for mark in marks:
        id_ = mark.platform_id("canvas")
        # Canvas's anonymous ids are of one assignment, and its gradebook does not know them.
        is_anonymous = ANONYMOUS in mark.ids and not id_
        if mark.student not in points or is_anonymous:
            continue
        name = one_line(mark.name)
        login = "" if id_ else mark.student
        section = mark.person.section if mark.person else ""
        cells = map(safe_cell, (name, id_, "", login, section))
        rows.append([*cells, points_cell(points[mark.student])])
        changes.append(
            Change(
                name,
                mark.student,
                "gets",
                "",
                points[mark.student],
            )
        )
    note = (
        "what Canvas has is not known without `--roster`: it shows every change before it "
        "takes the file"
    )
    return write_table(rows), Difference(
        (), missing_students(marks, points, changes), (note,)
    )


def feedback_name(mark: Mark, assignment: str) -> str:
    """The page's path in the zip: the name of the submitted file, since Canvas reads user and
    upload from the name.
    """
    if mark.arrival is None or mark.arrival.origin != "canvas":
        return ""
    handed_in = PurePosixPath(mark.arrival.file).name
    return f"{notebook_stem(handed_in) or archive_stem(handed_in)}.html"


def connect(
    url: str,
    course: str,
    title: str,
    token: str,
) -> Interface:
    """One assignment's marks through Canvas's REST API."""
    # imports canvasapi, which only `--push` needs
    from autograder.platforms.canvas_api import CanvasInterface

    return CanvasInterface(url, course, title, token)


PLATFORM = Platform(
    download=DownloadFormat(
        example="lastfirst_12345_67890_name.ipynb",
        find_owners=find_owners,
        calls_by_student=True,
    ),
    own_file=OwnFileFormat(
        read_people=read_people,
        read=read_gradebook,
        make=canvas_csv,
        name_of_group=(
            "Canvas gives a group's work the group's name, and the id of who handed it in; write "
            "a group's members into the column `group` of students.csv"
        ),
    ),
    feedback_name=feedback_name,
    interface=InterfaceFormat(connect=connect, knows_times=True),
)
