"""Reads the nickname that a student chooses for the leaderboard: the first line of a small file
beside the notebook.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

from autograder.basics.errors import UnreadableSubmission
from autograder.basics.handed_in import read_handed_in
from autograder.basics.safe_text import clean, one_line
from autograder.course import Assignment, Course

NICKNAME_FILE = "nickname.txt"
MOST_NICKNAME_BYTES = 1000
LONGEST_NICKNAME = 24


def takes_nickname(course: Course, assignment: Assignment) -> bool:
    """Whether students choose what they are called on the assignment's leaderboard."""
    has_leaderboard = assignment.leaderboard.is_file()
    return has_leaderboard and course.leaderboard.names == "nicknames"


def shown_nickname(text: str) -> str:
    """The nickname as the leaderboard shows it: the text's first line, cleaned, at most
    `LONGEST_NICKNAME` characters; "" where nothing of it is seen.
    """
    first_line = text.strip().partition("\n")[0]
    nickname = clean(one_line(first_line), LONGEST_NICKNAME).strip()
    return nickname if comparable_nickname(nickname) else ""


def comparable_nickname(nickname: str) -> str:
    """What two nicknames share that look the same to most people, such as "Ada" and "ADA "."""
    folded = unicodedata.normalize("NFKC", nickname).casefold()
    return "".join(character for character in folded if _is_seen(character))


def _is_seen(character: str) -> bool:
    """Whether a character can be seen: no space, no joiner, no control character."""
    return unicodedata.category(character)[0] not in "CZ"


def decode_nickname(data: bytes) -> str:
    """The nickname that a file holds; "" where it holds none, or is larger than a nickname's.

    Windows' editor may write a mark before the text.
    """
    if len(data) > MOST_NICKNAME_BYTES:
        return ""
    try:
        return shown_nickname(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return ""


def why_not_nickname(data: bytes) -> str:
    """Why a file gives its student no nickname, for the student; "" where it gives one."""
    if decode_nickname(data):
        return ""
    return (
        f"{NICKNAME_FILE}: its first line is the nickname, in UTF-8, and the file has at most "
        f"{MOST_NICKNAME_BYTES} bytes"
    )


def read_nickname(notebook: Path) -> str:
    """The nickname that lies beside a notebook; "" where none does."""
    path = notebook.with_name(NICKNAME_FILE)
    try:
        return decode_nickname(read_handed_in(path, MOST_NICKNAME_BYTES))
    except UnreadableSubmission:
        return ""
