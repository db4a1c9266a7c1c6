"""The course on disk: where things lie, and its settings from `course.toml`."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from autograder.errors import BadCourseFile, CourseNotFound, UnknownAssignment
from autograder.times import known_zone

COURSE_FILE = "course.toml"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one submission may use. Kept by the trusted side; the comments in course.toml say what each means."""

    call_seconds: float = 5.0
    cell_seconds: float = 10.0
    submission_seconds: float = 180.0
    cpu_seconds: int = 60
    memory_mb: int = 2000
    processes: int = 64
    file_mb: int = 16
    scratch_mb: int = 32
    reply_mb: int = 64
    notebook_mb: int = 20
    run_minutes: float = 360.0
    gpu_call_seconds: float = 60.0

    def check(self) -> None:
        for setting in dataclasses.fields(self):
            if getattr(self, setting.name) <= 0:
                raise ValueError(f"limits.{setting.name} must be above 0")


@dataclass(frozen=True, slots=True)
class Grading:
    """How scores are made of outcomes."""

    carry_credit: float = 1.0
    speed_bonus: float = 0.0
    speed_bonus_at: float = 4.0

    def check(self) -> None:
        if not 0 <= self.carry_credit <= 1:
            raise ValueError("grading.carry_credit must lie between 0 and 1")
        if self.speed_bonus < 0:
            raise ValueError("grading.speed_bonus must not be negative")
        if self.speed_bonus_at <= 1:
            raise ValueError("grading.speed_bonus_at must be above 1")


@dataclass(frozen=True, slots=True)
class Late:
    """What handing in late costs."""

    policy: str = "none"
    penalty_per_day: float = 0.1
    grace_minutes: int = 0

    def check(self) -> None:
        if self.policy not in ("none", "zero", "per_day"):
            raise ValueError(f'late.policy must be "none", "zero" or "per_day", not {self.policy!r}')
        if not 0 <= self.penalty_per_day <= 1:
            raise ValueError("late.penalty_per_day must lie between 0 and 1")
        if self.grace_minutes < 0:
            raise ValueError("late.grace_minutes must not be negative")


@dataclass(frozen=True, slots=True)
class About:
    """What the course is called."""

    name: str = "Attention Kit"
    timezone: str = ""

    def check(self) -> None:
        if self.timezone and known_zone(self.timezone) is None:
            raise ValueError(f"course.timezone is no time zone: {self.timezone!r}; write it like Europe/Berlin")


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where the parts of one assignment lie."""

    name: str
    root: Path

    @property
    def source(self) -> Path:
        """The source notebook: text form where there is one, else `.ipynb`."""
        text = self.root / "source" / self.name / f"{self.name}.py"
        notebook = text.with_suffix(".ipynb")
        return notebook if notebook.exists() and not text.exists() else text

    @property
    def release(self) -> Path:
        return self.root / "assignments" / self.name / f"{self.name}.ipynb"

    @property
    def solution(self) -> Path:
        return self.root / "solutions" / self.name / f"{self.name}.ipynb"

    @property
    def suite(self) -> Path:
        """Folder of the hidden suite."""
        return self.root / "tests" / "hidden" / self.name


@dataclass(frozen=True, slots=True)
class Course:
    """A course folder and its settings."""

    root: Path
    about: About = field(default_factory=About)
    limits: Limits = field(default_factory=Limits)
    grading: Grading = field(default_factory=Grading)
    late: Late = field(default_factory=Late)

    def assignments(self) -> list[Assignment]:
        """Every assignment that has a source notebook, by name."""
        found = (Assignment(folder.name, self.root) for folder in sorted((self.root / "source").glob("*")))
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
        raise UnknownAssignment(f"no assignment {name!r} in {self.root / 'source'}; there are: {names}")


_SECTIONS = {"course": ("about", About), "limits": ("limits", Limits), "grading": ("grading", Grading),
             "late": ("late", Late)}  # fmt: skip


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
    raise CourseNotFound(f"no {COURSE_FILE} in {start} or above it: run this inside a course folder")


def load_course(root: Path) -> Course:
    """Read `root/course.toml`.

    Raises:
        BadCourseFile: names the setting and what it may be.
    """
    path = root / COURSE_FILE
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        unknown = raw.keys() - _SECTIONS.keys()
        if unknown:
            raise ValueError(f"unknown section [{sorted(unknown)[0]}]; there are: {', '.join(_SECTIONS)}")
        parts = {name: _section(kind, section, raw.get(section, {})) for section, (name, kind) in _SECTIONS.items()}
    except (ValueError, OSError) as error:
        raise BadCourseFile(f"{path}: {error}") from error
    return Course(root, **parts)


def _section(kind: type, section: str, values: dict[str, Any]) -> Any:
    types = get_type_hints(kind)
    for key, value in values.items():
        if key not in types:
            raise ValueError(f"unknown setting {section}.{key}; there are: {', '.join(types)}")
        wanted = types[key]
        fits = isinstance(value, (int, float) if wanted is float else wanted) and not isinstance(value, bool)
        if not fits:
            raise ValueError(f"{section}.{key} must be of type {wanted.__name__}, not {value!r}")
    made = kind(**{key: types[key](value) for key, value in values.items()})
    made.check()
    return made
