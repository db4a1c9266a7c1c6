"""Assignments that come as an installed package: where their archives lie, and how one is found.

An archive holds hidden suites and answer keys, and the packages of a Python environment are what
workers can read. So archives lie beside the packages: pip puts data files into `share/` of the
environment, which no wall shows.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

from autograder.basics.errors import KitError

ARCHIVES = "share/attention-kit"
"""The folder of archives, below an environment's folder."""


def archive_folders() -> list[Path]:
    """The folders in which pip puts archives: for everybody here, and for this user."""
    user_scheme = sysconfig.get_preferred_scheme("user")
    bases = [sysconfig.get_path("data"), sysconfig.get_path("data", user_scheme)]
    return [Path(base) / ARCHIVES for base in dict.fromkeys(bases)]


def find_archive(name: str) -> Path:
    """The archive of a package's assignments.

    Raises:
        KitError: no installed package brings such assignments.
    """
    archives = {
        path.stem: path
        for folder in reversed(archive_folders())
        for path in sorted(folder.glob("*.zip"))
    }
    if name in archives:
        return archives[name]
    if name == "attention":
        remedy = "pip install attention-kit-course"
    else:
        remedy = f"installed are: {', '.join(sorted(archives)) or 'none'}"
    raise KitError(f"the assignments of {name!r} are not installed here: {remedy}")
