"""The learning platforms that this kit knows, with the facts that the ledger, the class list and
course.toml need of each.

Everything else of a platform stands in its module, `platforms/<name>.py`, which `registry.py` finds
by the name in this list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class PlatformName:
    """A platform as the ledger, the class list and messages know it.

    Attributes:
        name: how `--from`, course.toml, the columns of students.csv and ledger.json write it.
        title: how people write it.
        ids: how far an id of a person holds, in the whole course or in one assignment alone;
            "none" for a platform without ids.
        groups_have_ids: whether a group's number stands in a download where a person's number
            would.
        own_file: what people call the platform's file of people and marks, which `--roster` takes;
            "" for no file.
        takes_pushes: whether `export --push` sends marks to the platform, which then has a section
            in course.toml.
    """

    name: str
    title: str
    ids: Literal["course", "assignment", "none"] = "course"
    groups_have_ids: bool = False
    own_file: str = ""
    takes_pushes: bool = False


PLATFORM_NAMES = (
    PlatformName("canvas", "Canvas", own_file="gradebook", takes_pushes=True),
    PlatformName(
        "moodle",
        "Moodle",
        ids="assignment",
        groups_have_ids=True,
        own_file="grading worksheet",
        takes_pushes=True,
    ),
    PlatformName("gradescope", "Gradescope"),
    PlatformName("github", "GitHub"),
    PlatformName("blackboard", "Blackboard"),
    PlatformName("brightspace", "Brightspace", own_file="file of grades"),
    PlatformName("sakai", "Sakai"),
    PlatformName("edx", "Open edX"),
    PlatformName("ilias", "ILIAS"),
    PlatformName("classroom", "Classroom", takes_pushes=True),
    PlatformName("lti", "LTI"),
    PlatformName("folder", "Folder", ids="none"),
)
NAMES = {platform.name: platform for platform in PLATFORM_NAMES}
PUSH_PLATFORMS = tuple(
    platform.name for platform in PLATFORM_NAMES if platform.takes_pushes
)
WITH_IDS = tuple(platform.name for platform in PLATFORM_NAMES if platform.ids != "none")
ANONYMOUS = "canvas-anonymous"
"""Not a platform: ids that Canvas gives to submissions which are graded anonymously."""

PER_ASSIGNMENT = frozenset(
    {ANONYMOUS, *(p.name for p in PLATFORM_NAMES if p.ids == "assignment")}
)
"""Platforms, and ways of grading, that number people anew in each assignment."""

GROUPS_HAVE_IDS = frozenset(
    platform.name for platform in PLATFORM_NAMES if platform.groups_have_ids
)
