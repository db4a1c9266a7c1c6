"""What was replaced, by date: earlier results and feedback pages, kept beside the results for people to read.

<results>/history/<assignment>/<day>/<student>.json            a result
<results>/history/<assignment>/<day>/feedback/<student>.html   a feedback page
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from pathlib import Path

from autograder.whole_files import write_whole

FOLDER = "history"


def keep_replaced(results: Path, assignment: str, old: Path, new: bytes | None, name: str) -> None:
    """Copy a file into the history where it is about to be replaced by other content, or removed.

    Args:
        old: the file; nothing happens where it is not there.
        new: what takes its place; None where nothing does.
        name: the copy's name in the day's folder. Where that is taken, the folder is the next of that day.
    """
    if not old.is_file() or (content := old.read_bytes()) == new:
        return
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    days = itertools.chain([day], (f"{day}.{number}" for number in itertools.count(2)))
    paths = (results / FOLDER / assignment / each / name for each in days)
    write_whole(next(path for path in paths if not path.exists()), content)
