"""What `autograder build` and `autograder release` print, and how they fail."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tiny_course import HEADER, write_assignment

from autograder.authoring import build_check, build_commands
from autograder.authoring.build import BuiltNotebooks, build_assignment
from autograder.authoring.build_commands import (
    build_command,
    release_command,
    suite_questions,
)
from autograder.basics.errors import BadSource, KitError, UnknownAssignment
from autograder.course import Assignment, Course
from autograder.suite.collection import SuiteQuestion

SECOND = (
    HEADER
    + '# %% question="double"\ndef double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### '
    "END SOLUTION\n"
)
SECOND_SUITE = {
    "test_double.py": "from autograder.suite import points\n\n\n@points(4)\ndef "
    "test_doubles_one(student):\n"
    "    assert student.double(1) == 2\n"
}


@pytest.fixture
def two(course: Course) -> Course:
    write_assignment(course.root, "second", SECOND, SECOND_SUITE)
    return course


def test_points_come_from_the_suite(tiny: Assignment) -> None:
    questions = suite_questions(tiny)
    assert {name: question.points for name, question in questions.items()} == {
        "double": 2.5,
        "half": 3.0,
    }


def test_building_says_what_changed(course: Course) -> None:
    assert build_command(course, ["tiny"], check=False) == [
        "tiny: 4 files changed (2 questions, 10.5 points)"
    ]
    assert build_command(course, ["tiny"], check=False) == [
        "tiny: up to date (2 questions, 10.5 points)"
    ]


def test_where_nothing_changed_nothing_is_collected_or_built(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_command(course, ["tiny"], check=False)
    monkeypatch.setattr(build_commands, "build_assignment", None)
    assert build_command(course, ["tiny"], check=False) == [
        "tiny: up to date (2 questions, 10.5 points)"
    ]


@pytest.mark.parametrize("part", ["source", "release", "solution", "suite"])
def test_whatever_changed_since_the_last_build_it_is_made_again(
    course: Course, tiny: Assignment, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    build_command(course, ["tiny"], check=False)
    changed = tiny.suite / "test_half.py" if part == "suite" else getattr(tiny, part)
    changed.write_text(changed.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    built = []

    def counted(
        course: Course, assignment: Assignment, questions: Mapping[str, SuiteQuestion]
    ) -> BuiltNotebooks:
        built.append(assignment.name)
        return build_assignment(course, assignment, questions)

    monkeypatch.setattr(build_commands, "build_assignment", counted)
    (said,) = build_command(course, ["tiny"], check=False)
    assert built == ["tiny"]
    assert said.startswith(
        "tiny: 1 file changed"
        if part in ("release", "solution")
        else "tiny: up to date"
    )


def test_all_assignments_are_built_where_none_is_named_each_with_its_own_points(
    two: Course,
) -> None:
    assert build_command(two, [], check=False) == [
        "second: 4 files changed (1 question, 4 points)",
        "tiny: 4 files changed (2 questions, 10.5 points)",
    ]


def test_checking_builds_nothing(two: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        build_check, "execute_notebook", lambda notebook, files, seconds: ()
    )
    build_command(two, ["second"], check=False)
    assert build_command(two, ["second"], check=True) == [
        "second: sound (1 question, 4 points)"
    ]
    assert not two.assignment("tiny").release.exists()


def test_an_unknown_name_stops_before_anything_is_built(two: Course) -> None:
    with pytest.raises(UnknownAssignment):
        build_command(two, ["tiny", "third"], check=False)
    assert not two.assignment("tiny").release.exists()


def test_one_broken_assignment_keeps_no_other_from_being_built(two: Course) -> None:
    broken = two.assignment("second").source
    broken.write_text(broken.read_text() + "\n# %%\n1\n")
    with pytest.raises(
        BadSource, match=r"^source/second/second\.py:14: a code cell without a tag"
    ):
        build_command(two, [], check=False)
    assert two.assignment("tiny").release.exists()


def test_all_broken_assignments_are_named(two: Course) -> None:
    for name in ("second", "tiny"):
        broken = two.assignment(name).source
        broken.write_text(broken.read_text() + "\n# %%\n1\n")
    with pytest.raises(KitError) as caught:
        build_command(two, [], check=False)
    assert [line.split(":")[0] for line in str(caught.value).split("\n")] == [
        "source/second/second.py",
        "source/tiny/tiny.py",
    ]


def test_releasing_says_where_it_went(course: Course, tmp_path: Path) -> None:
    build_command(course, ["tiny"], check=False)
    target = tmp_path / "tiny.zip"
    assert release_command(course, "tiny", target) == [f"tiny: 7 files in {target}"]
    assert target.exists()


def test_the_modules_load_without_jupyter_and_torch() -> None:
    heavy = ("torch", "nbgrader", "nbformat", "jupytext", "nbclient", "pytest")
    code = (
        f"import sys, autograder.authoring.build_commands; print([name for name in {heavy!r} if "
        "name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "[]\n"
