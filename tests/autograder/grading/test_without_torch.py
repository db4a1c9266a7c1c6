"""An assignment in numpy where torch is not installed, in the command, its host and its workers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from courses import handed_in
from numpy_course import RIGHT, SUITE, write_course
from refusing_python import refusing_python

from autograder.course import load_course
from autograder.grading.extras import HELPERS_WITH_TORCH, find_extras, needs_torch


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python in which torch and Triton cannot be imported."""
    refused = ("torch", "torchgen", "functorch", "triton")
    return refusing_python(tmp_path_factory.mktemp("bin"), refused)


def run(
    python: Path, course: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-m", "autograder", *arguments],
        cwd=course,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def hand_in(
    course: Path, student: str, cells: dict[str, str], extra: list[str] | None = None
) -> None:
    folder = course / "submitted" / student / "columns"
    folder.mkdir(parents=True)
    (folder / "columns.ipynb").write_text(
        handed_in(cells, extra or []), encoding="utf-8"
    )


def result(course: Path, student: str) -> Any:
    return json.loads(
        (course / "results" / "columns" / f"{student}.json").read_text(encoding="utf-8")
    )


@pytest.fixture(scope="module")
def graded(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course built, proven and graded without torch."""
    course = tmp_path_factory.mktemp("course")
    write_course(course)
    of_all = "def centered(x):\n    return x - np.mean(x)\n"
    by_counter = "import collections\ndef counts(words):\n    return dict(collections.Counter(words))\n"
    in_torch = "import torch\ndef counts(words):\n    return {}\n"
    hand_in(course, "right", RIGHT)
    hand_in(course, "mean-of-all", {**RIGHT, "centered": of_all})
    hand_in(course, "counter", {**RIGHT, "counts": by_counter})
    hand_in(course, "torch", {**RIGHT, "counts": in_torch})
    for command in (
        ["--help"],
        ["build"],
        ["verify", "columns"],
        ["grade", "columns"],
        ["report", "columns"],
        ["export", "columns", "--format", "csv"],
    ):
        done = run(python, course, *command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    return course


@pytest.mark.parametrize(
    ("student", "score", "questions"),
    [
        (
            "right",
            9.0,
            {"centered": (3.0, 0.0), "spread": (3.0, 0.0), "counts": (3.0, 0.0)},
        ),
        # 2 of 3 points are for means that differ; the spread is right with a right function for
        # them: carried
        (
            "mean-of-all",
            7.0,
            {"centered": (1.0, 0.0), "spread": (3.0, 3.0), "counts": (3.0, 0.0)},
        ),
        (
            "counter",
            6.0,
            {"centered": (3.0, 0.0), "spread": (3.0, 0.0), "counts": (0.0, 0.0)},
        ),
        (
            "torch",
            6.0,
            {"centered": (3.0, 0.0), "spread": (3.0, 0.0), "counts": (0.0, 0.0)},
        ),
    ],
)
def test_marks_worked_out_by_hand(
    graded: Path, student: str, score: float, questions: dict[str, tuple[float, float]]
) -> None:
    of_student = result(graded, student)
    assert of_student["score"] == score
    assert {
        q["name"]: (q["score"], q["carried"]) for q in of_student["questions"]
    } == questions


def test_what_students_read(graded: Path) -> None:
    by_question = {q["name"]: q for q in result(graded, "mean-of-all")["questions"]}
    assert by_question["centered"]["diagnosis"]["mistake"] == "mean_of_all"
    assert by_question["centered"]["tests"][0]["message"].startswith(
        "`centered(x[4, 3])` differs from the expected"
    )
    first = result(graded, "counter")["questions"][2]["tests"][0]
    assert first["message"].startswith(
        "`counts` calls collections.Counter, which this question is about"
    )
    first = result(graded, "torch")["questions"][2]["tests"][0]
    assert "ModuleNotFoundError: No module named 'torch'" in first["message"]


def test_its_hosts_load_nothing_more(graded: Path) -> None:
    """Where torch is installed, as here: the check in every notebook names it in a text, and
    imports nothing.
    """
    course = load_course(graded)
    assert find_extras(course.assignment("columns"), (), course.limits) == ()


def test_a_suite_that_needs_torch_says_so(python: Path, tmp_path: Path) -> None:
    write_course(tmp_path)
    suite = tmp_path / "tests" / "hidden" / "columns" / "test_spread.py"
    suite.write_text(
        SUITE["test_spread.py"].replace("points, uses", "points, randn, uses"),
        encoding="utf-8",
    )
    built = run(python, tmp_path, "build")
    assert "ImportError: randn needs torch, which is not installed here" in built.stderr
    assert built.returncode == 2


def test_which_suites_need_torch(tmp_path: Path) -> None:
    write_course(tmp_path)
    columns = load_course(tmp_path).assignment("columns")
    assert not needs_torch(columns)
    for text in (
        "import torch\n",
        "import math, torch.nn as nn\n",
        "from autograder.suite import (\n    points,\n    randn,\n)\n",
        'pytestmark = forbid("torch.softmax")\n',
        "def test_f(student):\n    student.cost('f', 1)\n",
    ):
        (columns.suite / "helper.py").write_text(text, encoding="utf-8")
        assert needs_torch(columns), text
    (columns.suite / "helper.py").write_text(
        "# as torch has it\nfrom torchless import randn\n", encoding="utf-8"
    )
    assert not needs_torch(columns)


def test_helpers_with_torch_are_those_that_are_imported_late() -> None:
    """In a fresh process the package has all of its names but them."""
    program = (
        "import autograder.suite as s; print(*sorted(set(s.__all__) - set(vars(s))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == sorted(HELPERS_WITH_TORCH)
