"""The course of file_faults.py, and each command that writes, with a state before it that it
changes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autograder.course import Course, load_course
from autograder.records.model import QuestionResult, Result, TestOutcome

TOPIC = "my_topic"
STUDENTS = ("ada", "bob", "cyd")


@dataclass(frozen=True)
class Command:
    """A command that writes.

    Attributes:
        prepare: makes the state before it, in a copy of the course.
        arguments: of the command line, which is called in the course's folder.
        within: where the folder of what the kit keeps lies, seen from there.
    """

    name: str
    prepare: Callable[[Path], None]
    arguments: tuple[str, ...]
    within: str = "."

    def kept(self, root: Path) -> Path:
        return Course(root / self.within).kept

    def run(self, root: Path) -> int:
        """The exit status of the command line."""
        if self.arguments[0] == "take over":
            return _take_over(root)
        from autograder.cli.commands import main

        try:
            main(list(self.arguments), prog_name="autograder")
        except SystemExit as end:
            return int(end.code or 0)
        return 0


def _take_over(root: Path) -> int:
    """The last part of `regrade --apply`: the grading before it has fault runs of its own."""
    import click

    from autograder.basics.file_transaction import recover_transactions
    from autograder.cli.base import Commands, beside
    from autograder.grading.regrade import apply_regrade
    from autograder.grading.request import GradeRequest

    @click.group(cls=Commands)
    def group() -> None:
        pass

    @group.command()
    def apply() -> None:
        course = load_course(root)
        recover_transactions(course.kept, beside)
        apply_regrade(
            GradeRequest(course, course.assignment(TOPIC), (), course.results)
        )

    try:
        group(["apply"])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def make_course(root: Path) -> Path:
    """A course with one assignment, three submissions and their results; loads whatever a command
    may load later.
    """
    import nbgrader.api  # noqa: F401
    import torch

    import autograder.nbgrader.gradebook  # noqa: F401
    from autograder.authoring.build_commands import build_command
    from autograder.authoring.scaffold import new_assignment, new_course

    torch.set_num_threads(1)
    new_course(root)
    settings = root / "course.toml"
    settings.write_text(
        settings.read_text().replace(
            "assignment_points = 100.0", "assignment_points = 0"
        )
    )
    new_assignment(load_course(root), TOPIC)
    build_command(load_course(root), [], check=False)
    hand_in(root, *STUDENTS)
    grade(root, root / "results", 1.0)
    return root


def hand_in(root: Path, *students: str) -> None:
    for student in students:
        path = root / "submitted" / student / TOPIC / f"{TOPIC}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(load_course(root).assignment(TOPIC).release, path)


def grade(
    root: Path, results: Path, share: float, students: tuple[str, ...] = STUDENTS
) -> None:
    """Results in which everybody has this share of the points."""
    from autograder.intake.released_notebook import points_of_questions
    from autograder.records.model import Graded
    from autograder.records.results import TimingFile, course_sha256, write_result

    course = load_course(root)
    assignment = course.assignment(TOPIC)
    suite, made = course_sha256(course, assignment), []
    for student in students:
        notebook = (
            root / "submitted" / student / TOPIC / f"{TOPIC}.ipynb"
        ).read_bytes()
        questions = tuple(
            QuestionResult(
                name,
                share * most,
                most,
                0.0,
                None,
                (
                    TestOutcome(
                        "test_it",
                        "passed" if share == 1 else "failed",
                        share * most,
                        most,
                    ),
                ),
            )
            for name, most in points_of_questions(assignment).items()
        )
        full = sum(question.max_score for question in questions)
        sha256 = hashlib.sha256(notebook).hexdigest()
        result = Result(
            TOPIC, student, sha256, suite, "strict", share * full, full, questions, ()
        )
        write_result(results, result)
        made.append(Graded(student, result, "", {"tests": 1.0}))
    TimingFile(results, TOPIC).note(made)


def download(root: Path, texts: dict[str, str]) -> None:
    """What a course system lets one download."""
    notebook = json.loads(load_course(root).assignment(TOPIC).release.read_text())
    with zipfile.ZipFile(root / "download.zip", "w") as archive:
        for student, text in texts.items():
            notebook["cells"][0]["source"] = text
            archive.writestr(f"{student}/{TOPIC}/{TOPIC}.ipynb", json.dumps(notebook))


def called(root: Path, *arguments: str) -> None:
    """A command, undisturbed, before the one that is cut off."""
    import os

    before = Path.cwd()
    os.chdir(root)
    try:
        if Command("", lambda root: None, arguments).run(root):
            raise SystemExit(f"{arguments} failed before anything was disturbed")
    finally:
        os.chdir(before)


# States before


def nothing(root: Path) -> None:
    """The course as it is."""


def other_source(root: Path) -> None:
    """A source of which nothing is built yet, with a picture more, and one less."""
    folder = root / "source" / TOPIC
    (folder / "figures").mkdir(exist_ok=True)
    (folder / "figures" / "old.svg").write_text("<svg/>")
    called(root, "build")
    (folder / "figures" / "old.svg").unlink()
    (folder / "figures" / "new.svg").write_text("<svg></svg>")
    source = folder / f"{TOPIC}.py"
    source.write_text(source.read_text() + "\n# %% [markdown]\n# A last word.\n")


def older_release(root: Path) -> None:
    called(root, "release", TOPIC, "--to", "out")
    called(root, "release", TOPIC, "--to", "out.zip")
    called(root, "bundle", TOPIC, "--for", "github", "--to", "classroom")
    called(root, "bundle", TOPIC, "--for", "gradescope", "--to", "grader.zip")
    other_source(root)
    called(root, "build")


def collected_before(root: Path) -> None:
    download(root, {"ada": "first", "dan": "first"})
    called(root, "collect", TOPIC, "download.zip", "--from", "folder")
    download(root, {"ada": "second", "bob": "second", "eve": "first"})


def reported_before(root: Path) -> None:
    called(root, "report", TOPIC)
    called(
        root, "export", TOPIC, "--format", "csv", "--to", "marks.csv", "--provisional"
    )
    called(root, "totals", "--to", "totals.csv", "--provisional")
    grade(root, root / "results", 0.5)


def filled_before(root: Path) -> None:
    called(root, "export", TOPIC, "--format", "gradebook")
    grade(root, root / "results", 0.5)


def regraded(root: Path) -> None:
    grade(root, root / "results" / "regrade", 0.5)


COMMANDS = (
    Command("init", nothing, ("init", "fresh"), "fresh"),
    Command("new", nothing, ("new", "second")),
    Command("build", other_source, ("build",)),
    Command("release, a folder", older_release, ("release", TOPIC, "--to", "out")),
    Command("release, a zip", older_release, ("release", TOPIC, "--to", "out.zip")),
    Command(
        "bundle, a folder",
        older_release,
        ("bundle", TOPIC, "--for", "github", "--to", "classroom"),
    ),
    Command(
        "bundle, a zip",
        older_release,
        ("bundle", TOPIC, "--for", "gradescope", "--to", "grader.zip"),
    ),
    Command(
        "collect",
        collected_before,
        ("collect", TOPIC, "download.zip", "--from", "folder"),
    ),
    Command("demo", nothing, ("demo", TOPIC, "--to", "demo")),
    Command("regrade --apply", regraded, ("take over",)),
    Command("report", reported_before, ("report", TOPIC)),
    Command(
        "export, a file",
        reported_before,
        ("export", TOPIC, "--format", "csv", "--to", "marks.csv", "--provisional"),
    ),
    Command(
        "export, a gradebook", filled_before, ("export", TOPIC, "--format", "gradebook")
    ),
    Command(
        "export, a new gradebook", nothing, ("export", TOPIC, "--format", "gradebook")
    ),
    Command(
        "totals", reported_before, ("totals", "--to", "totals.csv", "--provisional")
    ),
)
