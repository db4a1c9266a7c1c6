"""A course on disk: its folders, its assignments, and its settings from `course.toml`."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from autograder.basics.errors import BadCourseFile, CourseNotFound, UnknownAssignment
from autograder.basics.natural_order import natural_order
from autograder.course.allowed import (
    COURSE_ID,
    NAMES_IN_A_LINE,
    SERVERS_ADDRESS,
    WEB_ADDRESS,
    ZONE_NAME,
    above,
    between,
    one_line,
    one_of,
    read_settings,
    read_table,
    suggest,
)
from autograder.course.course_packages import archive_folders
from autograder.course.due import Extension, read_due_times, read_extensions
from autograder.course.folders import BUCKET_ADVICE, GRADEBOOK, Folder
from autograder.course.platform_names import PUSH_PLATFORMS
from autograder.course.weights import Weights, read_weights

COURSE_FILE = "course.toml"
ASSIGNMENT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""The characters of an assignment's name, which stands in paths, scripts, addresses and nbgrader's
patterns.
"""

Seconds = Annotated[float, above(0, 86_400)]
Count = Annotated[int, between(1, 100_000)]
Share = Annotated[float, between(0, 1)]


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources of one submission, enforced by the trusted side. The comments in course.toml
    explain each limit.
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
    """The points that outcomes and speed give."""

    carry_credit: Share = 1.0
    speed_bonus: Annotated[float, between(0, 1000)] = 0.0
    speed_bonus_at: Annotated[float, above(1, 1000)] = 4.0


@dataclass(frozen=True, slots=True)
class Late:
    """The penalty for handing in late."""

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
    """The name and the time zone of the course."""

    name: Annotated[str, one_line(200)] = "Attention Kit"
    timezone: Annotated[str, ZONE_NAME] = ""


@dataclass(frozen=True, slots=True)
class Gradescope:
    """When a bundle for Gradescope shows test results to students."""

    visibility: Annotated[
        str, one_of("visible", "after_due_date", "after_published", "hidden")
    ] = "visible"


@dataclass(frozen=True, slots=True)
class FeedbackSettings:
    """When feedback shows a small call with a wrong answer and the right one."""

    examples: Annotated[str, one_of("always", "after due", "never")] = "always"


@dataclass(frozen=True, slots=True)
class LeaderboardSettings:
    """What `autograder leaderboard` calls people, and the weights that are handed in for it.

    Attributes:
        weights: assignments that take a file of weights beside the notebook, with spaces between.
        weights_mb: the largest such file.
    """

    names: Annotated[str, one_of("nicknames", "names", "ids")] = "nicknames"
    weights: Annotated[str, NAMES_IN_A_LINE] = ""
    weights_mb: Annotated[int, between(1, 1_000)] = 16


@dataclass(frozen=True, slots=True)
class Submit:
    """How often students hand in at `autograder serve`, which attempt counts, and what they see of
    a result before the due time.

    Attributes:
        groups: assignments that the groups of the class list hand in together, with spaces between.
    """

    tries: Annotated[int, between(0, 10_000)] = 0
    pause_minutes: Annotated[float, between(0, 100_000)] = 0.0
    counts: Annotated[str, one_of("best", "last")] = "best"
    show: Annotated[str, one_of("all", "failed questions", "score")] = "all"
    groups: Annotated[str, NAMES_IN_A_LINE] = ""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The web application of `autograder serve`.

    Attributes:
        address: the address that people type; "" for this machine alone.
        db_url: a database on a server; "" for a file in `.autograder/`.
        instructors: student ids or sign-in names of those who may see the class, with spaces
            between.
    """

    address: Annotated[str, WEB_ADDRESS] = ""
    db_url: Annotated[str, SERVERS_ADDRESS] = ""
    instructors: Annotated[str, NAMES_IN_A_LINE] = ""


@dataclass(frozen=True, slots=True)
class GradebookAddress:
    """The address of nbgrader's database on a server; "" for the file in the course's folder."""

    db_url: Annotated[str, SERVERS_ADDRESS] = ""


@dataclass(frozen=True, slots=True)
class PlatformAddress:
    """Where `export --push` sends marks: a platform's address and the course's id there.

    The token stands in the environment or in a file outside the course, never in course.toml.
    """

    url: Annotated[str, WEB_ADDRESS] = ""
    course: Annotated[str, COURSE_ID] = ""


@dataclass(frozen=True, slots=True)
class LtiRegistration:
    """A learning platform that may send people to `autograder serve` by LTI 1.3: what the platform
    shows when a tool is registered there.
    """

    issuer: Annotated[str, WEB_ADDRESS]
    client_id: Annotated[str, one_line(300)]
    deployment_id: Annotated[str, one_line(300)]
    auth_url: Annotated[str, WEB_ADDRESS]
    token_url: Annotated[str, WEB_ADDRESS]
    keys_url: Annotated[str, WEB_ADDRESS]


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assignment with the paths of its parts."""

    name: str
    root: Path

    @property
    def source(self) -> Path:
        """The source notebook, in text form unless only an `.ipynb` exists."""
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

    @property
    def leaderboard(self) -> Path:
        """The file of the suite with the leaderboard's measures; not each suite has it."""
        return self.suite / "leaderboard.py"


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
    feedback_settings: FeedbackSettings = field(default_factory=FeedbackSettings)
    on_server: GradebookAddress = field(default_factory=GradebookAddress)
    leaderboard: LeaderboardSettings = field(default_factory=LeaderboardSettings)
    submit: Submit = field(default_factory=Submit)
    server: ServerSettings = field(default_factory=ServerSettings)
    platforms: Mapping[str, PlatformAddress] = field(default_factory=dict)
    lti: Mapping[str, LtiRegistration] = field(default_factory=dict)
    due: Mapping[str, datetime] = field(default_factory=dict)
    extensions: Mapping[str, Mapping[str, Extension]] = field(default_factory=dict)
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
        """Folder of submissions, as <student>/<assignment>/."""
        return self.root / Folder.SUBMITTED.path

    @property
    def results(self) -> Path:
        """Folder of the results, unless a command names another folder."""
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
        """Folder of the kit's state between two runs: locks, and answers of known mistakes."""
        return self.root / Folder.KEPT.path

    @property
    def gradebook(self) -> Path:
        """nbgrader's database, where it is a file."""
        return self.root / GRADEBOOK

    @property
    def db_url(self) -> str:
        """The address of nbgrader's database, as SQLAlchemy writes it, perhaps with a password."""
        return self.on_server.db_url or f"sqlite:///{self.gradebook}"

    @property
    def has_gradebook(self) -> bool:
        """Whether nbgrader's database exists."""
        return bool(self.on_server.db_url) or self.gradebook.is_file()

    @property
    def hidden(self) -> list[Path]:
        """Folders that no worker may see. The kit's package is no secret."""
        folders = [self.root / folder.path for folder in Folder if folder.hidden]
        return [*folders, *filter(Path.is_dir, archive_folders())]

    def assignments(self) -> list[Assignment]:
        """Every assignment that has a source notebook, in the natural order of their names."""
        folders = sorted(
            self.sources.glob("*"), key=lambda folder: natural_order(folder.name)
        )
        assignments = [Assignment(folder.name, self.root) for folder in folders]
        return [assignment for assignment in assignments if assignment.source.exists()]

    def assignment(self, name: str) -> Assignment:
        """The assignment of that name.

        Raises:
            UnknownAssignment: names the course's assignments.
        """
        assignments = {assignment.name: assignment for assignment in self.assignments()}
        if name in assignments:
            return assignments[name]
        names = ", ".join(assignments) or "none: source/ is empty"
        raise UnknownAssignment(
            f"no assignment {name!r} in {self.sources}; there are: {names}"
        )


_SECTIONS = {
    "course": ("about", About),
    "limits": ("limits", Limits),
    "grading": ("grading", Grading),
    "late": ("late", Late),
    "totals": ("totals", Totals),
    "gradescope": ("gradescope", Gradescope),
    "feedback": ("feedback_settings", FeedbackSettings),
    "leaderboard": ("leaderboard", LeaderboardSettings),
    "submit": ("submit", Submit),
    "gradebook": ("on_server", GradebookAddress),
    "server": ("server", ServerSettings),
}
"""Section → the course's field, and the record of its settings."""
_SECTION_NAMES = (*_SECTIONS, *PUSH_PLATFORMS, "lti", "due", "extensions")


def find_course(start: Path | None = None) -> Course:
    """The course that `start` (default: the current folder) lies in.

    Raises:
        CourseNotFound: neither `start` nor a folder above has a course.toml.
        BadCourseFile: the course.toml has a mistake.
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
        BadCourseFile: a setting is unknown or not allowed.
    """
    path = root / COURSE_FILE
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        _refuse_other_folders(raw.pop("folders", {}))
        if unknown := sorted(raw.keys() - set(_SECTION_NAMES)):
            suggestion = suggest(unknown[0], _SECTION_NAMES)
            raise ValueError(f"unknown section [{repr(unknown[0])[1:-1]}]{suggestion}")
        parts: dict[str, Any] = {"weights": _take_weights(raw.get("totals"))}
        parts |= {
            name: read_settings(kind, section, raw.get(section, {}))
            for section, (name, kind) in _SECTIONS.items()
        }
        parts["platforms"] = {
            platform: read_settings(PlatformAddress, platform, raw.get(platform, {}))
            for platform in PUSH_PLATFORMS
        }
        parts["lti"] = {
            name: read_settings(LtiRegistration, f"lti.{name}", table)
            for name, table in read_table("lti", raw.get("lti", {})).items()
        }
        zone = parts["about"].timezone
        parts["due"] = read_due_times(raw.get("due", {}), zone)
        parts["extensions"] = read_extensions(raw.get("extensions", {}), zone)
    except (ValueError, OSError, RecursionError) as error:
        raise BadCourseFile(f"{path}: {error}") from error
    return Course(root, **parts)


def _refuse_other_folders(folders: object) -> None:
    """Refuse the section [folders], which named addresses of submissions and results in early
    versions. Empty values pass: `autograder init` wrote them.

    Raises:
        ValueError: the section names a place.
    """
    if not isinstance(folders, dict) or any(folders.values()):
        raise ValueError(
            "[folders] is no longer a section: remove it. Submissions and results lie in "
            f"{Folder.SUBMITTED.path}/ and {Folder.RESULTS.path}/ of the course's folder; "
            f"{BUCKET_ADVICE}"
        )


def _take_weights(totals: object) -> Weights:
    """Take the tables of weights out of [totals]: plain settings remain there.

    Raises:
        ValueError: a table has a mistake, or `drop_lowest` stands beside categories, which have
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


def settings_without_people(course: Course) -> str:
    """The settings as text of a course.toml for bundles: without due times and extensions, which
    name people, and without the addresses of gradebook and platforms, which may hold a password.
    """
    parts = []
    for section, (name, _) in _SECTIONS.items():
        if section in ("gradebook", "server"):
            continue
        values = dataclasses.asdict(getattr(course, name))
        # JSON's escapes are TOML's; its numbers too, but for infinity, which no setting may be
        parts += [
            f"[{section}]",
            *(
                f"{key} = {json.dumps(value, ensure_ascii=False)}"
                for key, value in values.items()
            ),
            "",
        ]
    return "\n".join(parts)
