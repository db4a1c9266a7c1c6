"""The licence of every package in the lock files, as its own metadata names it.

    python requirements/licences.py LOCK...

A package that is not installed here, since it is for another system, is listed without one.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

_PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;]+)", re.MULTILINE)
_CLASS = "License :: OSI Approved :: "


def licence_of(package: str) -> str:
    """The licence's expression, else its classifiers, else the first line of its text."""
    try:
        about = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return "(not installed on this system)"
    if expression := about.get("License-Expression"):
        return expression
    classes = [
        c.removeprefix(_CLASS)
        for c in about.get_all("Classifier") or ()
        if c.startswith(_CLASS)
    ]
    text = (about.get("License") or "").strip().split("\n")[0][:60]
    return ", ".join(classes) or text or "(not named)"


def main() -> None:
    pinned = [
        pair
        for lock in sys.argv[1:]
        for pair in _PINNED.findall(Path(lock).read_text(encoding="utf-8"))
    ]
    for package, version in sorted(set(pinned)):
        print(f"{package:28} {version:16} {licence_of(package)}")


if __name__ == "__main__":
    main()
