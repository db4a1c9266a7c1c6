"""The course on disk: where things lie, and its settings from `course.toml`."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from autograder.basics.errors import BadCourseFile, CourseNotFound, UnknownAssignment
from autograder.course.allowed import (
    COURSE_ID,
    SERVERS_ADDRESS,
    WEB_ADDRESS,
    ZONE_NAME,
    above,
    among,
    between,
    one_line,
    one_of,
    read_settings,
)
from autograder.course.due import DueTimes, due_times
from autograder.course.folders import GRADEBOOK, HOW_WITH_A_BUCKET, Folder
from autograder.course.platform_names import PUSH_PLATFORMS
from autograder.course.weights import Weights, read_weights

COURSE_FILE = "course.toml"
NAME_OF_AN_ASSIGNMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""It stands in paths, scripts, addresses and nbgrader's patterns."""

Seconds = Annotated[float, above(0, 86_400)]
Count = Annotated[int, between(1, 100_000)]
Share = Annotated[float, between(0, 1)]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one submission may use. Kept by the trusted side; the comments in course.toml say what
    each means.
    """

    call_seconds: Seconds = 5.0
    cell_seconds: Seconds = 10.0
    submission_seconds: Seconds = 180.0
    cpu_seconds: Count = 60
    memory_mb: Count = 2000
    processes: Count = 64
    file_mb: Count = 16
    scratch_mb: Count = 32
    reply_mb: Count = 64
    notebook_mb: Count = 20
    run_minutes: Annotated[float, above(0, 100_000)] = 360.0
    gpu_call_seconds: Seconds = 60.0


@dataclass(frozen=True, slots=True)
class Grading:
    """How scores are made of outcomes."""

    carry_credit: Share = 1.0
    speed_bonus: Annotated[float, between(0, 1000)] = 0.0
    speed_bonus_at: Annotated[float, above(1, 1000)] = 4.0


@dataclass(frozen=True, slots=True)
class Late:
    """What handing in late costs."""

    policy: Annotated[str, one_of("none", "zero", "per_day")] = "none"
    penalty_per_day: Share = 0.1
    grace_minutes: Annotated[int, between(0, 1_000_000)] = 0
    late_days: Annotated[int, between(0, 1000)] = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """How the assignments make one mark."""

    drop_lowest: Annotated[int, between(0, 1000)] = 0
    assignment_points: Annotated[float, between(0, 1_000_000)] = 100.0


@dataclass(frozen=True, slots=True)
class About:
    """What the course is called."""

    name: Annotated[str, one_line(200)] = "Attention Kit"
    timezone: Annotated[str, ZONE_NAME] = ""


@dataclass(frozen=True, slots=True)
class Gradescope:
    """What a bundle for Gradescope shows students, and when."""

    visibility: Annotated[str, one_of("visible", "after_due_date", "after_published", "hidden")] = (
        "visible"
    )


@dataclass(frozen=True, slots=True)
class Gradebook:
    """Where nbgrader's database is, if it is not the file in the course's folder."""

    db_url: Annotated[str, SERVERS_ADDRESS] = ""


@dataclass(frozen=True, slots=True)
class PlatformAddress:
    """Where `export --push` sends marks: a platform's address and the course's id there.

    The token stands in the environment or in a file outside the course, never in course.toml.
    """

    url: Annotated[str, WEB_ADDRESS] = ""
    course: Annotated[str, COURSE_ID] = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where the parts of one assignment lie."""

    name: str
    root: Path

    @property
    def source(self) -> Path:
        """The source notebook: text form where there is one, else `.ipynb`."""
        text = self.root / Folder.SOURCE.path / self.name / f"{self.name}.py"
        notebook = text.with_suffix(".ipynb")
        return notebook if notebook.exists() and not text.exists() else text

    @property
    def release(self) -> Path:
        """The notebook that students get."""
        return self.root / Folder.RELEASES.path / self.name / f"{self.name}.ipynb"

    @property
    def solution(self) -> Path:
        """The answer key, a notebook."""
        return self.root / Folder.SOLUTIONS.path / self.name / f"{self.name}.ipynb"

    @property
    def suite(self) -> Path:
        """Folder of the hidden suite."""
        return self.root / Folder.TESTS.path / "hidden" / self.name


@dataclass(frozen=True, slots=True)
class Course:
    """A course folder and its settings."""

    root: Path
    about: About = field(default_factory=About)
    limits: Limits = field(default_factory=Limits)
    grading: Grading = field(default_factory=Grading)
    late: Late = field(default_factory=Late)
    totals: Totals = field(default_factory=Totals)
    gradescope: Gradescope = field(default_factory=Gradescope)
    on_server: Gradebook = field(default_factory=Gradebook)
    platforms: Mapping[str, PlatformAddress] = field(default_factory=dict)
    due: DueTimes = field(default_factory=DueTimes)
    weights: Weights = field(default_factory=Weights)

    @property
    def sources(self) -> Path:
        """Folder of the source notebooks, each in a folder of its own."""
        return self.root / Folder.SOURCE.path

    @property
    def solutions(self) -> Path:
        """Folder of the answer keys."""
        return self.root / Folder.SOLUTIONS.path

    @property
    def suites(self) -> Path:
        """Folder of the hidden suites, each in a folder of its own."""
        return self.root / Folder.TESTS.path / "hidden"

    @property
    def submitted(self) -> Path:
        """Folder of what was handed in, as <student>/<assignment>/."""
        return self.root / Folder.SUBMITTED.path

    @property
    def results(self) -> Path:
        """Folder of the results, unless a command is told another."""
        return self.root / Folder.RESULTS.path

    @property
    def autograded(self) -> Path:
        """The notebooks that a person grades, as nbgrader keeps them."""
        return self.root / Folder.AUTOGRADED.path

    @property
    def feedback(self) -> Path:
        """Folder of the pages for students."""
        return self.root / Folder.FEEDBACK.path

    @property
    def kept(self) -> Path:
        """What the kit remembers between two runs."""
        return self.root / Folder.KEPT.path

    @property
    def gradebook(self) -> Path:
        """nbgrader's database, where it is a file."""
        return self.root / GRADEBOOK

    @property
    def db_url(self) -> str:
        """The address of nbgrader's database, as SQLAlchemy and nbgrader write it. It may hold a
        password.
        """
        return self.on_server.db_url or f"sqlite:///{self.gradebook}"

    @property
    def has_gradebook(self) -> bool:
        """Whether there is a database to ask."""
        return bool(self.on_server.db_url) or self.gradebook.is_file()

    @property
    def hidden(self) -> list[Path]:
        """Folders that no worker may see. The kit's package may lie beside them and is no
        secret.
        """
        return [self.root / folder.path for folder in Folder if folder.hidden]

    def assignments(self) -> list[Assignment]:
        """Every assignment that has a source notebook, by name."""
        found = (Assignment(folder.name, self.root) for folder in sorted(self.sources.glob("*")))
        return [assignment for assignment in found if assignment.source.exists()]

    def assignment(self, name: str) -> Assignment:
        """The assignment of that name.

        Raises:
            UnknownAssignment: names the assignments there are.
        """
        there = self.assignments()
        for assignment in there:
            if assignment.name == name:
                return assignment
        names = ", ".join(a.name for a in there) or "none: source/ is empty"
        raise UnknownAssignment(f"no assignment {name!r} in {self.sources}; there are: {names}")


_SECTIONS = {
    "course": ("about", About),
    "limits": ("limits", Limits),
    "grading": ("grading", Grading),
    "late": ("late", Late),
    "totals": ("totals", Totals),
    "gradescope": ("gradescope", Gradescope),
    "gradebook": ("on_server", Gradebook),
}
_OF_THE_INSTRUCTORS = ("gradebook",)
"""Sections that may hold a password. They stay out of bundles, as do the platforms' sections."""
_BY_NAME = ("due", "extensions")
"""Sections whose keys are assignments."""


def find_course(start: Path | None = None) -> Course:
    """The course that `start` (default: the current folder) lies in.

    Raises:
        CourseNotFound: no course.toml in it or above it.
        BadCourseFile: the file has a mistake.
    """
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / COURSE_FILE).is_file():
            return load_course(folder)
    raise CourseNotFound(
        f"no {COURSE_FILE} in {start} or above it: run this inside a course folder"
    )


def load_course(root: Path) -> Course:
    """Read `root/course.toml`.

    Raises:
        BadCourseFile: names the setting and what it may be.
    """
    path = root / COURSE_FILE
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        _refuse_other_folders(raw.pop("folders", {}))
        known = (*_SECTIONS, *PUSH_PLATFORMS, *_BY_NAME)
        if unknown := sorted(raw.keys() - set(known)):
            raise ValueError(
                f"unknown section [{repr(unknown[0])[1:-1]}]{among(unknown[0], known)}"
            )
        parts: dict[str, Any] = {"weights": _weights(raw.get("totals"))}
        parts |= {
            name: read_settings(kind, section, raw.get(section, {}))
            for section, (name, kind) in _SECTIONS.items()
        }
        parts["platforms"] = {
            platform: read_settings(PlatformAddress, platform, raw.get(platform, {}))
            for platform in PUSH_PLATFORMS
        }
        parts["due"] = due_times(
            raw.get("due", {}), raw.get("extensions", {}), parts["about"].timezone
        )
    except (ValueError, OSError, RecursionError) as error:
        raise BadCourseFile(f"{path}: {error}") from error
    return Course(root, **parts)


def _refuse_other_folders(folders: object) -> None:
    """Refuse the section [folders], by which early versions kept submissions and results at an
    address. Empty values pass: `autograder init` wrote them, and they named no place.

    Raises:
        ValueError: the section names a place; says where the two folders are.
    """
    if not isinstance(folders, dict) or any(folders.values()):
        raise ValueError(
            "[folders] is no longer a section: remove it. Submissions and results lie in "
            f"{Folder.SUBMITTED.path}/ and "
            f"{Folder.RESULTS.path}/ of the course's folder; {HOW_WITH_A_BUCKET}"
        )


def _weights(totals: object) -> Weights:
    """The tables below [totals], taken out of it: what is left are settings like those of any other
    section.

    Raises:
        ValueError: one of them is wrong, or `drop_lowest` stands beside categories, which have
            their own.
    """
    if not isinstance(totals, dict):
        return Weights()
    weights = read_weights(totals.pop("weights", {}), totals.pop("categories", {}))
    if weights.categories and totals.get("drop_lowest"):
        raise ValueError(
            "totals.drop_lowest stands beside [totals.categories]: write it into a category"
        )
    return weights


def settings_of_nobody(course: Course) -> str:
    """The settings as text of a course.toml, without the due times and extensions, which name
    people, and without the address of the gradebook, which may hold a password.
    """
    parts = []
    for section, (name, _) in _SECTIONS.items():
        if section in _OF_THE_INSTRUCTORS:
            continue
        values = dataclasses.asdict(getattr(course, name))
        # JSON's escapes are TOML's; its numbers too, but for infinity, which no setting may be
        parts += [
            f"[{section}]",
            *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()),
            "",
        ]
    return "\n".join(parts)
