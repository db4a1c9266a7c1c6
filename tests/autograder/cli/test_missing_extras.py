"""`pip install attention-kit` alone grades; what needs an extra says in one line which."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from courses import built_course, handed_in
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from refusing_python import refusing_python
from tiny_course import SUITE, TINY, write_assignment

import autograder
from autograder.basics.missing_extras import EXTRAS
from autograder.cli.commands import main

PACKAGE = Path(autograder.__file__).parent
ANSWERS = {
    "double": "def double(x):\n    return 2 * x\n",
    "half": "def half(x):\n    return x / 2\n",
}
NEEDS = {
    "build": "notebook",
    "release tiny --to given": "notebook",
    "solutions tiny --to key": "notebook",
    "export tiny --format gradebook": "nbgrader",
    "harder tiny": "notebook",
    "serve": "server",
    "serve --demo": "server",
    "grade tiny --cluster local:2": "cluster",
    "export tiny --format canvas --push": "platforms",
    "collect tiny download --from canvas --ask-times": "platforms",
}
"""Command → the extra that it asks for where no extra is installed."""
ALONE = (
    "init another",
    "new another_topic",
    "demo tiny --to class",
    "collect tiny download --from folder",
    "grade tiny",
    "regrade tiny",
    "verify tiny",
    "report tiny",
    "export tiny --format csv",
    "export tiny --format junit",
    "totals",
    "similarity tiny",
    "mistakes tiny",
    "bundle tiny --for gradescope --to bundle.zip",
)
"""Commands that need no extra."""
UNTRIED = {"doctor", "hunt", "leaderboard", "marks"}
"""The first two take long: hosts of every tier, many graders. The others say that this course has no
leaderboard, and no gradebook.
"""
IN_ONE_PROCESS = """
import json, sys
from click.testing import CliRunner
from autograder.cli.commands import main
for command in sys.argv[1:]:
    done = CliRunner().invoke(main, command.split())
    print(json.dumps([command, done.exit_code, done.output, repr(done.exception)]))
"""
COURSE_ON_CANVAS = """
[canvas]
url = "http://127.0.0.1:9"
course = "1"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built course, and a download of one student."""
    root = tmp_path_factory.mktemp("course")
    built_course(root, lambda path: write_assignment(path, "tiny", TINY, SUITE))
    with (root / "course.toml").open("a", encoding="utf-8") as settings:
        settings.write(COURSE_ON_CANVAS)
    notebook = root / "download" / "ada" / "tiny.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.write_text(handed_in(ANSWERS), encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    modules = set().union(*EXTRAS.values())
    return refusing_python(tmp_path_factory.mktemp("bin"), modules)


def run(python: Path, folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-m", "autograder", *command.split()],
        cwd=folder,
        env=os.environ | {"CANVAS_TOKEN": "a token"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_grader_without_extras_does_all_that_grading_is(
    python: Path, folder: Path
) -> None:
    done = subprocess.run(
        [python, "-c", IN_ONE_PROCESS, *ALONE],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [command for command, *_ in answers] == list(ALONE)
    for command, status, output, exception in answers:
        # the suite of this course has no known mistakes, so that nothing proves it
        assert status == (1 if command == "verify tiny" else 0), (
            command,
            output,
            exception,
        )
    result = json.loads((folder / "results/tiny/ada.json").read_text(encoding="utf-8"))
    assert (result["score"], result["max_score"]) == (5.5, 5.5)


@pytest.mark.parametrize("command", NEEDS)
def test_a_command_that_needs_an_extra_names_it(
    python: Path, folder: Path, command: str
) -> None:
    done = run(python, folder, command)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    extra = NEEDS[command]
    assert re.fullmatch(
        rf"autograder: \w+ is not installed here: pip install 'attention-kit\[{extra}\]'",
        last,
    )
    assert "Traceback" not in done.stderr


def test_every_command_was_tried() -> None:
    tried = {command.split()[0] for command in (*NEEDS, *ALONE)}
    assert set(main.commands) - tried == UNTRIED


def brought_by(requirements: Iterable[str]) -> set[str]:
    """The distributions that pip would install for some requirements."""
    waiting = [Requirement(line) for line in requirements]
    brought: set[str] = set()
    done: set[tuple[str, str]] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in done:
                continue
            done.add((name, extra))
            brought.add(name)
            try:
                needed = metadata.requires(name) or []
            except metadata.PackageNotFoundError:
                continue
            for line in map(Requirement, needed):
                if line.marker is None or line.marker.evaluate({"extra": extra}):
                    waiting.append(line)
    return brought


def distributions(modules: Iterable[str]) -> dict[str, set[str]]:
    owners = metadata.packages_distributions()
    return {
        module: {canonicalize_name(name) for name in owners.get(module, ())}
        for module in modules
    }


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_brings_the_modules_that_stand_under_it(extra: str) -> None:
    alone, with_extra = (
        brought_by(["attention-kit"]),
        brought_by([f"attention-kit[{extra}]"]),
    )
    for module, names in distributions(EXTRAS[extra]).items():
        assert names & with_extra, module
        assert not names & alone, module


IMPORTS = """
import importlib, pkgutil, sys
room = importlib.import_module(sys.argv[1])
for module in pkgutil.iter_modules(room.__path__):
    importlib.import_module(f"{room.__name__}.{module.name}")
"""


@pytest.mark.parametrize(
    ("room", "extra"),
    [
        ("authoring", "notebook"),
        ("nbgrader", "nbgrader"),
        ("cluster", "cluster"),
        ("platforms", "platforms,server"),
        ("server", "server"),
        ("grading", ""),
    ],
)
def test_a_room_can_be_imported_with_its_extra_alone(
    room: str, extra: str, tmp_path: Path
) -> None:
    brought = brought_by([f"attention-kit[{extra}]" if extra else "attention-kit"])
    modules = distributions(set().union(*EXTRAS.values()))
    refused = [module for module, names in modules.items() if not names & brought]
    python = refusing_python(tmp_path, refused)
    subprocess.run(
        [python, "-c", IMPORTS, f"autograder.{room}"], check=True, timeout=300
    )


def test_a_module_that_is_imported_is_of_the_core_or_of_an_extra() -> None:
    imported = set()
    for path in PACKAGE.rglob("*.py"):
        if "templates" in path.parts or "student_tools" in path.parts:
            continue  # written for other machines
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    foreign = imported - sys.stdlib_module_names - {"autograder"}
    core = brought_by(["attention-kit"])
    of_extras = set().union(*EXTRAS.values())
    strangers = {
        module
        for module, names in distributions(foreign - of_extras).items()
        if not names & core
    }
    assert strangers == set()
