"""Names of students' folders in submitted/, autograded/ and feedback/, which nbgrader takes for its
student ids.

A student's name may hold anything; a folder's may not. Almost always both are the same. Where they
are not, the ledger remembers the folder, and nothing but the ledger and nbgrader's tables sees it.
"""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Callable

LONGEST = 80
"""Characters, and twice as many bytes: room for endings such as `.json` in a file name of 255
bytes.
"""

_RESERVED = {"CON", "PRN", "AUX", "NUL"} | {
    f"{device}{n}" for device in ("COM", "LPT") for n in range(1, 10)
}
_FORBIDDEN = frozenset('/\\:*?"<>|%[]{}')
"""What Windows, macOS or Linux refuse in a file name; what results escape such characters with; and
brackets, since nbgrader looks for notebooks with a glob pattern that has the folder's name in it.
"""

_FIRST_FORBIDDEN = "-. =+@~"
"""What is taken for an option, a home folder, a hidden file or a formula."""


def safe_folder(name: str) -> str:
    """A folder for a new student: the name itself where every system takes it, else a safe one that
    ends in a hash.
    """
    return _safe(name, _FIRST_FORBIDDEN, _allowed)


def earlier_safe_name(folder: str) -> str:
    """What versions before the ledger called the student of this folder, in results and in the
    gradebook.
    """
    return _safe(folder, "-. ", _allowed_earlier)


def is_one_component(name: str) -> bool:
    """Whether a folder of exactly this name can be made on this machine, and leads nowhere else."""
    return (
        _encodes(name)
        and "/" not in name
        and "\0" not in name
        and name not in ("", ".", "..")
        and (len(os.fsencode(name)) <= 255)
    )


def can_be_shown(folder: str) -> bool:
    """Whether the folder's name can be the student's: it is text, without control characters."""
    return _encodes(folder) and not any(
        unicodedata.category(character) == "Cc" for character in folder
    )


def _safe(name: str, first_forbidden: str, allowed: Callable[[str], bool]) -> str:
    fits = 0 < len(name) <= LONGEST and _encodes(name) and len(name.encode()) <= 2 * LONGEST
    if (
        fits
        and unicodedata.normalize("NFC", name) == name
        and all(map(allowed, name))
        and name[0] not in first_forbidden
        and name[-1] not in ". "
        and name.split(".")[0].upper() not in _RESERVED
    ):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    composed = unicodedata.normalize("NFC", name[: 4 * LONGEST])
    cleaned = "".join(character if allowed(character) else "_" for character in composed)
    cleaned = cleaned.lstrip(first_forbidden).strip("-. ")[: LONGEST - 12]
    cleaned = cleaned.encode()[: 2 * LONGEST - 24].decode(errors="ignore").strip("-. ")
    if not cleaned.strip("_"):
        return f"student-{digest}"
    if cleaned.split(".")[0].upper() in _RESERVED:
        cleaned = f"student-{cleaned}"
    return f"{cleaned}-{digest}"


def _allowed(character: str) -> bool:
    """A space, or what has a shape of its own: no control, surrogate, invisible mark or private
    character.
    """
    return character == " " or (
        character not in _FORBIDDEN and unicodedata.category(character)[0] in "LMNPS"
    )


def _allowed_earlier(character: str) -> bool:
    return character in " _-.@+,'()" or unicodedata.category(character)[0] in "LMN"


def _encodes(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
