"""The tiny course in a temporary folder, and a stand-in for the sandbox."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from nbgrader_course import (
    REPOSITORY,
    TinyCourse,
    notebook,
    release_cells,
    result_for,
    write,
)

from autograder.course import About, Course
from autograder.nbgrader import warm_graders
from autograder.nbgrader.gradebook import fill_gradebook, open_gradebook
from autograder.records.model import Graded
from autograder.records.results import write_result
from autograder.records.submission import FoundSubmission


@pytest.fixture(scope="session")
def empty_gradebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without rows; making one starts a process, so it is made once and copied. It is
    made where no environment is activated, as the program of whoever starts `.venv/bin/autograder`
    by its path.
    """
    root = tmp_path_factory.mktemp("gradebook")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "/usr/bin:/bin")
        with open_gradebook(Course(root, About("Tiny Course"))):
            return root / "gradebook.db"


@pytest.fixture
def tiny(
    tmp_path: Path, empty_gradebook: Path, monkeypatch: pytest.MonkeyPatch
) -> TinyCourse:
    root = tmp_path / "course"
    root.mkdir()
    monkeypatch.setattr(
        sys, "path", sys.path[:]
    )  # nbgrader_config.py adds the course's folder
    monkeypatch.setenv("PATH", os.environ["PATH"])
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    shutil.copy(empty_gradebook, root)
    (root / "course.toml").write_text(
        '[course]\nname = "Tiny Course"\n[totals]\nassignment_points = 0\n',
        encoding="utf-8",
    )
    suite = root / "tests" / "hidden" / "tiny"
    suite.mkdir(parents=True)
    for question in ("double", "half"):
        (suite / f"test_{question}.py").write_text(
            "# graded by a stand-in here\n", encoding="utf-8"
        )
    source = root / "source" / "tiny" / "tiny.py"
    source.parent.mkdir(parents=True)
    source.write_text(
        "# not built here: the release is written by hand\n", encoding="utf-8"
    )
    write(root / "assignments" / "tiny" / "tiny.ipynb", notebook(release_cells()))
    write(root / "solutions" / "tiny" / "tiny.ipynb", notebook(release_cells()))
    monkeypatch.chdir(root)
    return TinyCourse(root)


@pytest.fixture
def graded_class(tiny: TinyCourse, request: pytest.FixtureRequest) -> TinyCourse:
    """The module's STUDENTS in the gradebook, with 4 of 6 points from the tests.

    The written answers (4 points) of all wait, but those of the module's LEFT_BLANK, and Ada's,
    which has 2.5.
    """
    results = [result_for(student) for student in request.module.STUDENTS]
    for result in results:
        write_result(tiny.root / "results", result)
    fill_gradebook(
        tiny.course,
        tiny.course.assignment("tiny"),
        [(result, None) for result in results],
    )
    tiny.score_by_hand("ada", "written_why", 2.5)
    with open_gradebook(tiny.course) as gradebook:
        gradebook.find_comment(
            "written_why", "tiny", "tiny", "ada"
        ).manual_comment = "Say why.\nAnd how."
        for student in getattr(request.module, "LEFT_BLANK", ()):
            blank = gradebook.find_grade("written_why", "tiny", "tiny", student)
            blank.auto_score, blank.needs_manual_grade = 0.0, False
        gradebook.db.commit()
    return tiny


@pytest.fixture
def graded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Graded | Exception]:
    """student → what grading makes of the submission, in place of the sandbox; `result_for` where
    nothing is set.
    """
    given: dict[str, Graded | Exception] = {}

    def grade(course: Course, assignment: Any, found: FoundSubmission) -> Graded:
        made = given.get(found.student) or Graded(
            found.student, result_for(found.student)
        )
        if isinstance(made, Exception):
            raise made
        return made

    monkeypatch.setattr(warm_graders, "grade", grade)
    monkeypatch.setattr(warm_graders, "warm_up", lambda course, assignment: None)
    return given
