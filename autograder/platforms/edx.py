"""Open edX: the submission files of open response assessments (edx-ora2, `openassessment/data.py`).

[1]Section, [1]Subsection, [1]Unit/[1] - username - name.ipynb
"""

from __future__ import annotations

import re

from autograder.intake.archives import UploadedFile
from autograder.intake.owners import Owner, inner_stem
from autograder.ledger.identity_matching import Identity
from autograder.platforms.platform import DownloadFormat, Platform

_FILE = re.compile(r"\[(?:\d+|x)\] - (?P<user>\S+) - (?P<name>.+)", re.DOTALL)


def find_owner(file: UploadedFile) -> Owner | None:
    """The owner of a file. The username is an external or an anonymous id where the course uses
    these.
    """
    match = _FILE.fullmatch(file.parts[-1])
    if match is None:
        return None
    user = match["user"]
    identity = Identity((("edx", user),), (user,), user)
    return Owner(
        user,
        identity,
        inner_stem(file, match["name"]),
        place=(user,),
    )


PLATFORM = Platform(
    download=DownloadFormat(
        example="[1] - username - name.ipynb",
        find_owners=lambda download: find_owner,
        recognises=lambda file: _FILE.fullmatch(file.parts[-1]) is not None,
        own_files={"submissions.csv"},
    )
)
