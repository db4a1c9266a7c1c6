"""The command line: exit statuses, one clear line for wrong use, and nothing but JSON where JSON
was asked for.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from courses import handed_in
from small_course import ANSWERS

from autograder.cli.commands import main
from autograder.course import Course

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def run(
    course: Course, standing_host: None, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    monkeypatch.chdir(course.root)

    def invoke(*arguments: object) -> Result:
        return CliRunner().invoke(main, [str(a) for a in arguments])

    return invoke


def test_json_is_all_that_is_printed(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    good = tmp_path / "student-001.ipynb"
    good.write_text(handed_in(ANSWERS), encoding="utf-8")
    done = run("grade", "small", good, "--out", tmp_path / "results", "--json")
    assert done.exit_code == 0, done.output
    assert [(r["student"], r["score"]) for r in json.loads(done.stdout)] == [
        ("student-001", 11.0)
    ]
    assert "not graded" not in done.stderr


def test_grade_names_who_gave_two_answers_to_one_call(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    """In a worker that has served softmax, attention is something else."""
    served = "served = []\n" + ANSWERS["softmax"].replace(
        "    e =", "    served.append(1)\n    e ="
    )
    hedged = ANSWERS["attention"].replace(
        "    return softmax(", "    return 0 * v[:2] if served else softmax("
    )
    notebook = tmp_path / "student-001.ipynb"
    notebook.write_text(
        handed_in({**ANSWERS, "softmax": served, "attention": hedged}), encoding="utf-8"
    )
    said = "two answers to one call: student-001: attention; look at the cells"
    assert said in run("grade", "small", notebook, "--out", tmp_path / "results").output
    # of a result that was there
    assert said in run("grade", "small", notebook, "--out", tmp_path / "results").output


def test_what_cannot_be_graded_is_named_and_the_rest_is_graded(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "student-001.ipynb").write_text(handed_in(ANSWERS), encoding="utf-8")
    (tmp_path / "student-002.ipynb").write_text("{}", encoding="utf-8")
    done = run("grade", "small", tmp_path, "--out", tmp_path / "results")
    assert done.exit_code == 1
    assert "not graded: student-002" in done.stdout
    assert (tmp_path / "results" / "small" / "student-001.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("grade", "nothing"), "no assignment 'nothing'"),
        (("grade", "small", "no-such-folder"), "no-such-folder"),
        (("build", "nothing"), "no assignment 'nothing'"),
        (("verify", "nothing"), "no assignment 'nothing'"),
        (("report", "small"), "small"),
        (("export", "small", "--format", "csv"), "small"),
        (("release", "nothing", "--to", "x"), "no assignment 'nothing'"),
    ],
)
def test_wrong_use_gets_one_line_and_status_2(
    run: Callable[..., Result], arguments: tuple[str, ...], said: str
) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.startswith("autograder: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("grade", "small", "--out", "s3://bucket/results"),
        ("grade", "small", "gs://bucket/submitted"),
        ("report", "small", "--results", "file:///mnt/results"),
        ("collect", "small", "sftp://host/export.zip", "--from", "canvas"),
    ],
)
def test_an_address_is_not_taken_for_a_folder(
    run: Callable[..., Result], arguments: tuple[str, ...]
) -> None:
    done = run(*arguments)
    address = next(argument for argument in arguments if "://" in argument)
    assert done.exit_code == 2
    assert done.output == (
        f"autograder: {address} is an address: name a file or folder of this machine; "
        "a bucket is mounted, or copied before and after: docs/instructors.md, Keep the class "
        "in a bucket\n"
    )


def test_a_folder_whose_name_reads_like_an_address_is_found(
    course: Course,
    run: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "s3:" / "class").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    shutil.copy(course.root / "course.toml", tmp_path)
    assert "is an address" not in run("totals", "--results", "s3:/class").output


def test_a_folder_without_notebooks_says_what_was_looked_for(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    done = run("grade", "small", tmp_path)
    assert done.exit_code == 2
    assert "looked for" in done.stderr


def test_outside_a_course_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["grade", "small"])
    assert done.exit_code == 2
    assert "course.toml" in done.stderr


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\nfrom autograder.cli.commands import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'numpy', 'pytest', 'nbformat', 'jupytext', 'nbgrader', "
        "'rich', 'jinja2'}\n"
        "sys.exit(f'imported {heavy}' if (heavy := heavy & sys.modules.keys()) else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


TORCH = """
import os, sys

class Torch:
    def find_spec(self, name, *_):
        if name == "torch":
            sys.exit(os.environ.get("OMP_NUM_THREADS"))

sys.meta_path.insert(0, Torch())
"""


@pytest.mark.parametrize("module", ["proof.verify", "grading.batch", "grading.run"])
def test_grading_never_starts_a_second_thread_of_torch(module: str) -> None:
    """A fork of a process whose torch has run two threads hangs: the limit must stand when torch is
    loaded.
    """
    program = f"{TORCH}\nimport autograder.{module}, torch"
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith("_NUM_THREADS")
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=clean,
        cwd=REPOSITORY,
    )
    assert done.stderr == "1\n"


def test_what_is_not_built_says_what_to_run(
    run: Callable[..., Result],
    course: Course,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elsewhere = tmp_path / "course"
    shutil.copytree(course.root, elsewhere)
    shutil.rmtree(elsewhere / "solutions")
    (tmp_path / "student-001.ipynb").write_text(handed_in(ANSWERS), encoding="utf-8")
    monkeypatch.chdir(elsewhere)
    done = run("grade", "small", tmp_path / "student-001.ipynb")
    assert done.exit_code == 2
    assert "is not built; run `autograder build small`" in done.stderr


def test_another_platform_is_told_what_to_use(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "student-001.ipynb").write_text(handed_in(ANSWERS), encoding="utf-8")
    monkeypatch.setattr("autograder.sandbox.tiers.sys.platform", "darwin")
    done = run(
        "grade", "small", tmp_path, "--isolation", "none", "--out", tmp_path / "results"
    )
    assert done.exit_code == 2
    assert "made of Linux" in done.stderr
