"""The workflows of both GitHub bundles, run to their end with real git, from the wheel that the kit
is released as.

The course is one of `autograder init`. The steps run as they are written, in bash as GitHub's
runner starts it; what the runner itself does (checkouts, Python, expressions) stands here.
`python -m venv` makes an environment that sees the libraries of this one, so that pip asks no
index.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml

from autograder.outputs.bundle import render_script
from autograder.outputs.kit_wheel import kit_wheel
from autograder.platforms import github

TEMPLATES = Path(github.__file__).parent / "templates" / "github"
ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = Path(sys.prefix)
ACTIONLINT = shutil.which("actionlint")
TOOLS = (
    "bash",
    "env",
    "git",
    "mkdir",
    "ls",
    "cat",
    "tr",
    "grep",
    "openssl",
    "rm",
    "dirname",
    "uname",
)
ANSWER = """\
def centered(x):
    if x.shape[-1] == 0:
        raise ValueError(f"rows of {x.shape[-1]} numbers have no mean")
    return x - x.mean(dim=-1, keepdim=True)
"""
UNREFUSED = "def centered(x):\n    return x - x.mean(dim=-1, keepdim=True)\n"
"""Fails the test of the refusal, which is worth 5 of the 90 points."""


class Runner:
    """A machine of GitHub's: what the steps of one job find there.

    Attributes:
        hub: folder of the repositories, as "owner/name".
        settings: values of expressions, like `vars.COURSE_REPOSITORY`.
    """

    def __init__(
        self, folder: Path, hub: Path, repository: str, settings: Mapping[str, str]
    ) -> None:
        self.workspace, self.temp = folder / "workspace", folder / "temp"
        self.hub, self.repository, self.settings = hub, repository, settings
        self.printed: dict[str, str] = {}
        for path in (self.workspace, self.temp, folder / "tools"):
            path.mkdir(parents=True)
        for tool in TOOLS:
            if found := shutil.which(tool):
                (folder / "tools" / tool).symlink_to(found)
        libraries = folder / "libraries"
        libraries.mkdir()
        for path in next(ENVIRONMENT.glob("lib/python3*/site-packages")).iterdir():
            if not re.match(
                r"(?i)attention.kit|__editable__|pip|distutils-precedence", path.name
            ):
                (libraries / path.name).symlink_to(path)
        self._tool("python", _PYTHON.format(python=sys.executable, libraries=libraries))
        self._tool(
            "gh",
            f"#!/bin/sh\nls {hub}/class | while read name; do echo class/$name; done\n",
        )
        self.environment = {
            "PATH": str(folder / "tools"),
            "HOME": str(folder),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            "PIP_NO_INDEX": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.file://{hub}/.insteadOf",
            "GIT_CONFIG_VALUE_0": "https://github.com/",
        }

    def _tool(self, name: str, script: str) -> None:
        path = self.temp.parent / "tools" / name
        path.write_text(script, encoding="utf-8")
        path.chmod(0o755)

    def run(self, job: Mapping[str, Any]) -> int:
        """Every step in its order; the first exit status that is not 0, after which only
        `if: always()` runs.
        """
        status = 0
        for step in job["steps"]:
            if status and step.get("if") != "always()":
                continue
            action = step.get("uses", "").partition("@")[0]
            if action == "actions/checkout":
                with_ = step.get("with", {})
                repository = self._value(with_.get("repository", self.repository))
                subprocess.run(
                    [
                        "git",
                        "clone",
                        "--quiet",
                        str(self.hub / repository),
                        str(self.workspace / with_.get("path", "")),
                    ],
                    check=True,
                )
            elif "run" in step:
                status = self._run(step) or status
            else:
                assert action in ("actions/setup-python", "actions/upload-artifact")
        return status

    def _run(self, step: Mapping[str, Any]) -> int:
        environment = {
            name: self._value(text) for name, text in step.get("env", {}).items()
        }
        done = subprocess.run(
            [
                "bash",
                "--noprofile",
                "--norc",
                "-e",
                "-o",
                "pipefail",
                "-c",
                self._value(step["run"]),
            ],
            cwd=self.workspace / step.get("working-directory", ""),
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        self.printed[step["name"]] = done.stdout + done.stderr
        return done.returncode

    def _value(self, text: str) -> str:
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda match: self.settings[match[1]], text)


_PYTHON = """\
#!/bin/sh
"{python}" "$@" || exit
if [ "$1 $2" = "-m venv" ]; then
  for folder in "$3"/lib/python3*/site-packages; do
    rm -rf "$folder"/setuptools* "$folder"/pkg_resources
    echo "{libraries}" > "$folder/libraries.pth"
  done
fi
"""
"""As in Python 3.12, which the workflows ask for, a new environment has no setuptools of its
own.
"""


def autograder(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "autograder", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)


def push(folder: Path, hub: Path, name: str) -> None:
    """The folder as a repository of the hub, with what git does not ignore."""
    git = [
        "git",
        "-C",
        str(folder),
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
    ]
    (hub / name).parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["git", "init", "-q", "--bare", "-b", "main", str(hub / name)], check=True
    )
    for command in (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        ["commit", "-qm", "x"],
        ["push", "-q", str(hub / name), "main"],
    ):
        subprocess.run([*git, *command], check=True)


def answered(template: Path, to: Path, source: str) -> Path:
    """A student's repository: the template, with an answer."""
    shutil.copytree(template, to)
    path = to / "rows.ipynb"
    notebook = nbformat.read(path, as_version=4)
    cell = next(cell for cell in notebook.cells if "def centered" in cell.source)
    cell.source = source
    nbformat.write(notebook, path)
    return to


def test_both_workflows_grade_a_course_of_init_to_their_end(tmp_path: Path) -> None:
    course, hub = tmp_path / "course", tmp_path / "hub"
    autograder(tmp_path, "init", "course")
    autograder(course, "new", "rows")
    autograder(course, "build")
    autograder(
        course, "bundle", "rows", "--for", "github", "--to", str(tmp_path / "template")
    )
    autograder(course, "bundle", "rows", "--for", "github-course", "--to", ".")
    push(course, hub, "staff/course")
    push(
        answered(tmp_path / "template", tmp_path / "ada", ANSWER), hub, "class/rows-ada"
    )
    push(
        answered(tmp_path / "template", tmp_path / "ben", UNREFUSED),
        hub,
        "class/rows-ben",
    )

    # 1 In a student's repository: all of the tests' 90 points, and 90 go back to GitHub Classroom.
    workflow = yaml.safe_load(
        (tmp_path / "ada/.github/workflows/classroom.yml").read_text(encoding="utf-8")
    )
    settings = {
        "vars.COURSE_REPOSITORY": "staff/course",
        "secrets.COURSE_TOKEN": "",
        "github.ref": "main",
    }
    runner = Runner(tmp_path / "runner", hub, "class/rows-ada", settings)
    (job,) = workflow["jobs"].values()
    assert runner.run(job) == 0, runner.printed
    assert (tmp_path / "runner/output").read_text(
        encoding="utf-8"
    ) == "points=90\nmax_points=90\n"
    assert (
        (tmp_path / "runner/summary")
        .read_text(encoding="utf-8")
        .startswith("## rows: 90 of 90 points\n")
    )
    assert runner.printed["Report"].splitlines() == [
        "::notice title=Autograding complete::Points 90/90",
        '::notice title=Autograding report::{"totalPoints":90,"maxPoints":90}',
    ]

    # 2 In the course's repository: everybody.
    workflow = yaml.safe_load(
        (course / ".github/workflows/grade-rows.yml").read_text(encoding="utf-8")
    )
    settings = {"vars.STUDENTS_OWNER": "class", "secrets.STUDENTS_TOKEN": ""}
    runner = Runner(tmp_path / "machine", hub, "staff/course", settings)
    assert runner.run(workflow["jobs"]["grade"]) == 0, runner.printed
    with (runner.workspace / "grades.csv").open(
        encoding="utf-8-sig", newline=""
    ) as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert {name: row["status"] for name, row in rows.items()} == dict.fromkeys(
        ("ada", "ben"), "waits for a person"
    )
    results = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in runner.workspace.glob("results/rows/*")
    }
    assert {
        name: (result["score"], result["isolation"]) for name, result in results.items()
    } == {
        "ada": (90.0, "strict"),
        "ben": (85.0, "strict"),
    }
    assert (runner.workspace / "feedback/ben/rows/rows.html").is_file()


def test_our_wheel_is_the_one_that_the_build_makes(tmp_path: Path) -> None:
    """`pip wheel` of this checkout beside ours: the same files of the package and the same
    requirements.
    """
    shutil.copytree(
        ROOT / "autograder",
        tmp_path / "kit/autograder",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / "kit" / name)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-q",
        ".",
    ]
    done = subprocess.run(
        command, cwd=tmp_path / "kit", capture_output=True, text=True, check=False
    )
    if "setuptools" in done.stderr:
        pytest.skip("no setuptools in this environment")
    assert done.returncode == 0, done.stderr
    (built,) = (tmp_path / "kit").glob("*.whl")
    name, content = kit_wheel()
    assert built.name == name
    (tmp_path / name).write_bytes(content)
    with zipfile.ZipFile(built) as theirs, zipfile.ZipFile(tmp_path / name) as ours:
        generated = ("RECORD", "WHEEL", "top_level.txt")
        for path in theirs.namelist():
            if not path.endswith(generated):
                assert ours.read(path) == theirs.read(path), path
        # nothing reads it any more
        top_level = f"{name.removesuffix('-py3-none-any.whl')}.dist-info/top_level.txt"
        assert set(theirs.namelist()) - set(ours.namelist()) == {top_level}
        assert set(ours.namelist()) <= set(theirs.namelist())
    assert kit_wheel() == (name, content)


def workflows() -> dict[str, str]:
    """Our own, and those that bundles carry."""
    made = {
        name: render_script(TEMPLATES / name, assignment="rows", prefix="rows-")
        for name in ("classroom.yml", "course.yml")
    }
    ours = {
        path.name: path.read_text(encoding="utf-8")
        for path in (ROOT / ".github/workflows").glob("*.yml")
    }
    return ours | made


@pytest.mark.parametrize("name", workflows())
def test_every_workflow_has_the_form_that_github_reads(name: str) -> None:
    """What GitHub's workflow syntax allows, as far as ours use it; actionlint, below, knows all of
    it.
    """
    workflow = yaml.safe_load(workflows()[name])
    # YAML reads `on` as a truth value
    assert set(workflow) <= {"name", True, "permissions", "concurrency", "jobs"}
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert {"runs-on", "timeout-minutes", "steps"} <= set(job)
        assert set(job) <= {
            "if",
            "runs-on",
            "timeout-minutes",
            "environment",
            "outputs",
            "steps",
            "strategy",
            "needs",
            "permissions",
        }
        assert set(job.get("permissions", {})) <= {
            "contents",
            "id-token",
            "packages",
            "pages",
        }
        ids = {step["id"] for step in job["steps"] if "id" in step}
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            assert set(step) <= {
                "name",
                "id",
                "if",
                "uses",
                "with",
                "run",
                "env",
                "working-directory",
            }
            assert "run" in step or re.fullmatch(r"[\w-]+/[\w-]+@\S+", step["uses"])
            bash = subprocess.run(
                ["bash", "-n"], input=step.get("run", ""), text=True, check=False
            )
            assert bash.returncode == 0
            outside = re.search(r"\$\{\{(?! *matrix\.)", step.get("run", ""))
            assert outside is None, "a value from outside would be read as a command"
        for expression in re.findall(r"\$\{\{ *(.*?) *\}\}", str(job)):
            assert re.fullmatch(
                r"(vars|secrets|matrix|github)\.\w+|steps\.\w+\.outputs\.\w+",
                expression,
            )
            assert (
                not expression.startswith("steps.") or expression.split(".")[1] in ids
            )


@pytest.mark.skipif(
    ACTIONLINT is None and "REQUIRE_ACTIONLINT" not in os.environ,
    reason="no actionlint on PATH",
)
def test_actionlint_finds_nothing(tmp_path: Path) -> None:
    """In our own workflows and in those that bundles carry; with REQUIRE_ACTIONLINT it may not be
    missing.
    """
    assert ACTIONLINT is not None
    for name, text in workflows().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [ACTIONLINT, *map(str, tmp_path.glob("*.yml"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
