"""Names of students' folders in submitted/, autograded/ and feedback/, where nbgrader takes a
folder's name for the student's id.

A student's name may have any characters, and a folder's may not. The two are almost always equal.
Where they differ, the ledger remembers the folder; only the ledger and nbgrader's tables see it.
"""

from __future__ import annotations

import hashlib
import os
import unicodedata

LONGEST = 80
"""Characters, and twice as many bytes: room for endings such as `.json` in a file name of 255
bytes.
"""

_RESERVED = {"CON", "PRN", "AUX", "NUL"} | {
    f"{device}{n}" for device in ("COM", "LPT") for n in range(1, 10)
}
_FORBIDDEN = frozenset('/\\:*?"<>|%[]{}')
"""Characters that Windows, macOS or Linux refuse in a file name; the character with which results
escape them; and brackets, since nbgrader puts the folder's name into a glob pattern.
"""

_FORBIDDEN_FIRST = "-. =+@~"
"""Characters that mark an option, a home folder, a hidden file or a formula."""


def safe_folder(name: str) -> str:
    """A folder's name for a new student: the student's name where every system takes it, else a
    cleaned name that ends in a hash.
    """
    if _is_safe(name):
        return name
    composed = unicodedata.normalize("NFC", name[: 4 * LONGEST])
    cleaned = "".join(
        character if _is_allowed(character) else "_" for character in composed
    )
    cleaned = cleaned.lstrip(_FORBIDDEN_FIRST).strip("-. ")
    cleaned = cleaned[: LONGEST - 12]  # room for the hash
    cleaned = cleaned.encode()[: 2 * LONGEST - 24].decode(errors="ignore")
    cleaned = cleaned.strip("-. ")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    if not cleaned.strip("_"):
        return f"student-{digest}"
    if _is_reserved(cleaned):
        cleaned = f"student-{cleaned}"
    return f"{cleaned}-{digest}"


def is_one_component(name: str) -> bool:
    """Whether this machine can make a folder of exactly this name, and in no other place."""
    if not _is_encodable(name) or name in ("", ".", ".."):
        return False
    return "/" not in name and "\0" not in name and len(os.fsencode(name)) <= 255


def can_be_shown(folder: str) -> bool:
    """Whether the folder's name can be the student's: it is text, without control characters."""
    return _is_encodable(folder) and not any(
        unicodedata.category(character) == "Cc" for character in folder
    )


def _is_safe(name: str) -> bool:
    if not 0 < len(name) <= LONGEST or not _is_encodable(name):
        return False
    return (
        len(name.encode()) <= 2 * LONGEST
        and unicodedata.normalize("NFC", name) == name
        and all(map(_is_allowed, name))
        and name[0] not in _FORBIDDEN_FIRST
        and name[-1] not in ". "
        and not _is_reserved(name)
    )


def _is_reserved(name: str) -> bool:
    """Whether Windows takes the name for a device."""
    return name.split(".")[0].upper() in _RESERVED


def _is_allowed(character: str) -> bool:
    """Whether a character is a space or has a shape of its own: no control character, surrogate,
    invisible mark or private character.
    """
    if character == " ":
        return True
    return character not in _FORBIDDEN and unicodedata.category(character)[0] in "LMNPS"


def _is_encodable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
