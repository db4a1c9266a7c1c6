"""Students' names as file names: what is safe stays as it is, what is not becomes safe and stays different."""

from __future__ import annotations

import hashlib
import os
import unicodedata

LONGEST = 80
"""Characters, and twice as many bytes: room for endings such as `.json` in a file name of 255 bytes."""

_RESERVED = {"CON", "PRN", "AUX", "NUL"} | {f"{device}{n}" for device in ("COM", "LPT") for n in range(1, 10)}
_PUNCTUATION = frozenset(" _-.@+,'()")


def is_safe(name: str) -> bool:
    """The name can be a file name on every system, and looks like what it is."""
    return (
        0 < len(name) <= LONGEST
        and len(os.fsencode(name) if _encodes(name) else b"?" * 999) <= 2 * LONGEST
        and unicodedata.normalize("NFC", name) == name
        and all(_allowed(c) for c in name)
        and name[0] not in "-. "
        and name[-1] not in ". "
        and name.split(".")[0].upper() not in _RESERVED
    )


def safe_student(name: str) -> str:
    """The student's name where it is safe; else a safe one that ends in a hash of the original."""
    if is_safe(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    cleaned = "".join(c if _allowed(c) else "_" for c in unicodedata.normalize("NFC", name[: 4 * LONGEST]))
    cleaned = cleaned.strip("-. ")[: LONGEST - 12].encode()[: 2 * LONGEST - 24].decode(errors="ignore").strip("-. ")
    if not cleaned.strip("_"):
        return f"student-{digest}"
    if cleaned.split(".")[0].upper() in _RESERVED:
        cleaned = f"student-{cleaned}"
    return f"{cleaned}-{digest}"


def _allowed(character: str) -> bool:
    return character in _PUNCTUATION or unicodedata.category(character)[0] in "LMN"


def _encodes(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
