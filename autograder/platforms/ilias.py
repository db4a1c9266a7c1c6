"""ILIAS: its downloads (`class.ilExSubmission.php`) and its feedback for several people
(`class.ilExAssignment.php`).

…/Last_First_login_12345/name.ipynb
…/Last_First_login_12345/Late Submission - name.ipynb
multi_feedback/Last_First_login_12345/assignment.html    as it takes feedback back
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from autograder.intake.archives import UploadedFile
from autograder.intake.owners import Owner, inner_stem
from autograder.ledger.identity_matching import Identity
from autograder.marks.marks import Mark
from autograder.platforms.platform import DownloadFormat, Platform

_PERSON = re.compile(
    r"(?P<last>[^_]+)_(?P<first>[^_]*)_(?P<login>.+)_(?P<user>\d+)", re.DOTALL
)
_LATE = re.compile(r"(?:late submission|versp(?:ae|ä)tete abgabe) - ", re.IGNORECASE)


def find_owner(file: UploadedFile) -> Owner | None:
    """The owner of a file in a person's folder. The folder has no folders in it; feedback of peers
    lies deeper, and is no submission.
    """
    match = (
        _PERSON.fullmatch(file.parts[-2])
        if len(file.parts) > 1 and "Feedback_files" not in file.parts
        else None
    )
    if match is None:
        return None
    name = _LATE.sub("", file.parts[-1], count=1)
    identity = Identity(
        (("ilias", match["user"]),),
        (match["login"],),
        f"{match['first']} {match['last']}",
    )
    late = name != file.parts[-1]
    return Owner(
        file.parts[-2],
        identity,
        inner_stem(file, name),
        late=late,
    )


def feedback_name(mark: Mark, assignment: str) -> str:
    """The page's path in the zip: the person's folder of the download."""
    if mark.arrival is None or mark.arrival.origin != "ilias":
        return ""
    return f"multi_feedback/{PurePosixPath(mark.arrival.file).parent.name}/{assignment}.html"


PLATFORM = Platform(
    download=DownloadFormat(
        example="Last_First_login_12345/name.ipynb",
        find_owners=lambda download: find_owner,
    ),
    feedback_name=feedback_name,
)
