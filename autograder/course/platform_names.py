"""The learning platforms that this kit knows, a line for each, and what the ledger must know of
their ids.

Everything else of a platform stands in its own module, `platforms/<name>.py`, which is found by the
name here.
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
        ids: whether it knows a person by one id in the whole course or by another one in each
            assignment. "none": it has no ids.
        groups_have_ids: whether a group's number stands in a download where a person's number
            would.
        own_file: what people call the platform's file of people and marks, which `--roster` takes;
            "" for no file.
    """

    name: str
    title: str
    ids: Literal["course", "assignment", "none"] = "course"
    groups_have_ids: bool = False
    own_file: str = ""


PLATFORM_NAMES = (
    PlatformName("canvas", "Canvas", own_file="gradebook"),
    PlatformName(
        "moodle", "Moodle", ids="assignment", groups_have_ids=True, own_file="grading worksheet"
    ),
    PlatformName("gradescope", "Gradescope"),
    PlatformName("github", "GitHub"),
    PlatformName("blackboard", "Blackboard"),
    PlatformName("brightspace", "Brightspace", own_file="file of grades"),
    PlatformName("sakai", "Sakai"),
    PlatformName("edx", "Open edX"),
    PlatformName("ilias", "ILIAS"),
    PlatformName("classroom", "Classroom"),
    PlatformName("folder", "Folder", ids="none"),
)
NAMES = {platform.name: platform for platform in PLATFORM_NAMES}
WITH_IDS = tuple(platform.name for platform in PLATFORM_NAMES if platform.ids != "none")
ANONYMOUS = "canvas-anonymous"
"""Not a platform: ids that Canvas gives to submissions which are graded anonymously."""

PER_ASSIGNMENT = frozenset({ANONYMOUS, *(p.name for p in PLATFORM_NAMES if p.ids == "assignment")})
"""Platforms, and ways of grading, that number people anew in each assignment."""

GROUPS_HAVE_IDS = frozenset(
    platform.name for platform in PLATFORM_NAMES if platform.groups_have_ids
)
