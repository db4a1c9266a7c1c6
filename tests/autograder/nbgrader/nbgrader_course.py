"""A course of one tiny assignment, written by hand: two questions of 3 points, a written answer of
4.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
from courses import on_stderr
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import compute_checksum
from traitlets.config import PyFileConfigLoader

from autograder.course import Course, load_course
from autograder.nbgrader.gradebook import open_gradebook
from autograder.records.model import QuestionResult, Result, TestOutcome
from autograder.records.results import write_result
from autograder.records.submission import CellOutcome
from autograder.reporting.marks_commands import ExportRequest, export_command

REPOSITORY = Path(__file__).resolve().parents[3]

HALF_ANSWERED = "def half(x):\n    return x // 2"


def cell(
    kind: str,
    source: str,
    grade_id: str = "",
    *,
    grade: bool = False,
    solution: bool = False,
    points: float = 0,
    role: str = "",
    name: str = "",
) -> Any:
    """A cell as the build writes it."""
    made = (
        nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    )(source)
    made.id = f"{grade_id or 'text'}".replace("_", "-")
    if role:
        made.metadata["attention_kit"] = {"role": role, "name": name}
    if grade_id:
        meta = {
            "schema_version": 3,
            "grade_id": grade_id,
            "grade": grade,
            "solution": solution,
            "locked": not solution,
            "task": False,
            "cell_type": kind,
        }
        made.metadata["nbgrader"] = meta | ({"points": points} if grade else {})
        made.metadata.nbgrader["checksum"] = compute_checksum(made)
    return made


def release_cells() -> list[Any]:
    stub = "    raise NotImplementedError"
    return [
        cell("markdown", "# Tiny"),
        cell("code", "import math", "given_library", role="given", name="library"),
        cell(
            "code",
            f"def double(x):\n{stub}",
            "double",
            solution=True,
            role="question",
            name="double",
        ),
        cell(
            "code",
            "assert double(2) == 4",
            "check_double",
            grade=True,
            points=3,
            role="check",
            name="double",
        ),
        cell(
            "code",
            f"def half(x):\n{stub}",
            "half",
            solution=True,
            role="question",
            name="half",
        ),
        cell(
            "code",
            "assert half(2) == 1",
            "check_half",
            grade=True,
            points=3,
            role="check",
            name="half",
        ),
        cell(
            "markdown",
            "Why? *Your answer here.*",
            "written_why",
            grade=True,
            solution=True,
            points=4,
            role="written",
            name="why",
        ),
    ]


def notebook(cells: list[Any]) -> Any:
    kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.from_dict(
        {
            "cells": cells,
            "metadata": {"kernelspec": kernelspec},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def write(path: Path, made: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made), encoding="utf-8")
    return path


def result_for(student: str, half: float = 1.0) -> Result:
    """A result with full marks for `double` and `half` points for the second question, one test of
    which failed.
    """
    passed = TestOutcome("test_doubles", "passed", 3.0, 3.0)
    failed = TestOutcome(
        "test_halves_an_odd_number",
        "failed",
        half,
        3.0,
        "`half(3)` is <b>1</b>; it should be 1.5.",
    )
    return Result(
        assignment="tiny",
        student=student,
        submission_sha256="0" * 64,
        suite_sha256="1" * 64,
        isolation="strict",
        score=3.0 + half,
        max_score=6.0,
        questions=(
            QuestionResult("double", 3.0, 3.0, 0.0, None, (passed,)),
            QuestionResult("half", half, 3.0, 0.0, None, (failed,)),
        ),
        cells=(CellOutcome("double", "ok"), CellOutcome("half", "ok")),
    )


class TinyCourse:
    """The course in a temporary folder, and nbgrader's own converters on it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def course(self) -> Course:
        return load_course(self.root)

    def hand_in(
        self,
        student: str,
        cells: list[Any] | None = None,
        *,
        at: str = "",
        name: str = "tiny",
    ) -> Path:
        """A submission; as released where no cells are given."""
        made = notebook(release_cells() if cells is None else cells)
        path = write(self.root / "submitted" / student / "tiny" / f"{name}.ipynb", made)
        if at:
            (path.parent / "timestamp.txt").write_text(at, encoding="utf-8")
        return path

    def hand_in_words(self, student: str, words: str | None) -> None:
        """A submission with this written answer, or none, and its result among those that are
        stored.
        """
        cells = release_cells()
        if words is not None:
            cells[-1].source = f"Why? {words}"
        self.store_result(student, self.hand_in(student, cells))

    def store_result(self, student: str, submission: Path) -> None:
        """What `result_for` says of a student, as grading this submission would store it."""
        digest = hashlib.sha256(submission.read_bytes()).hexdigest()
        write_result(
            self.root / "results",
            replace(result_for(student), submission_sha256=digest),
        )

    def write_guide(self) -> None:
        """The answer key's written answer, with a marking guide below it."""
        cells = release_cells()
        cells[-1].source = "Why? Since a sum is linear."
        guide = cell(
            "markdown",
            "**Marking guide**\n\n- 4 points: linear.",
            role="guide",
            name="why",
        )
        guide.id = "guide"
        write(
            self.root / "solutions" / "tiny" / "tiny.ipynb", notebook([*cells, guide])
        )

    def export(self, format_: str, **options: Any) -> list[str]:
        """`export` of the stored results; the lines that it prints."""
        request = ExportRequest(
            self.course,
            self.course.assignment("tiny"),
            self.root / "results",
            format_,
            **options,
        )
        return list(export_command(request, on_stderr))

    def export_gradebook(self) -> list[str]:
        return self.export("gradebook")

    def exported(self, **options: Any) -> dict[str, dict[str, str]]:
        """Student → the row of the CSV, by its headings."""
        (text,) = self.export("csv", **options)
        return {row["student"]: row for row in csv.DictReader(io.StringIO(text))}

    def convert(
        self, converter: type[Any], assignment: str = "tiny", **settings: Any
    ) -> None:
        """Run one of nbgrader's converters with this course's nbgrader_config.py."""
        config = PyFileConfigLoader(
            "nbgrader_config.py", path=str(self.root)
        ).load_config()
        coursedir = CourseDirectory(config=config)
        coursedir.assignment_id = assignment
        converter(coursedir=coursedir, config=config, **settings).start()

    def autograde(self, **settings: Any) -> None:
        self.convert(Autograde, **settings)

    def feedback(self, student: str) -> str:
        self.convert(GenerateFeedback, force=True)
        return (self.root / "feedback" / student / "tiny" / "tiny.html").read_text(
            encoding="utf-8"
        )

    def autograded(self, student: str) -> Any:
        return nbformat.read(
            self.root / "autograded" / student / "tiny" / "tiny.ipynb", as_version=4
        )

    def grades(
        self, student: str
    ) -> dict[str, tuple[float | None, float | None, bool]]:
        """grade_id → automatic score, manual score, waits for a person."""
        with open_gradebook(self.course) as gradebook:
            submitted = gradebook.find_submission_notebook("tiny", "tiny", student)
            return {
                g.name: (g.auto_score, g.manual_score, g.needs_manual_grade)
                for g in submitted.grades
            }

    def comments(self, student: str) -> dict[str, str | None]:
        with open_gradebook(self.course) as gradebook:
            submitted = gradebook.find_submission_notebook("tiny", "tiny", student)
            return {
                comment.name: comment.auto_comment for comment in submitted.comments
            }

    def score_by_hand(self, student: str, grade_id: str, score: float) -> None:
        with open_gradebook(self.course) as gradebook:
            grade = gradebook.find_grade(grade_id, "tiny", "tiny", student)
            grade.manual_score, grade.needs_manual_grade = score, False
            gradebook.db.commit()
