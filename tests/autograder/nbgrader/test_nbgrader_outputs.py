"""Feedback pages and the CSV export."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.apps import ExportApp
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import GetGrades
from nbgrader_course import TinyCourse, release_cells, result_for
from traitlets.config import Config

from autograder.nbgrader import feedback_exporter
from autograder.nbgrader.csv_exporter import SafeCsvExport, plain
from autograder.nbgrader.feedback_exporter import HideFromStudents
from autograder.nbgrader.gradebook import fill_gradebook, open_gradebook
from autograder.records.submission import FoundSubmission

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_feedback_shows_scores_and_messages_as_text(
    tiny: TinyCourse, graded: dict[str, Any]
) -> None:
    cells = release_cells()
    cells[0].source = "# Mine\n\n<script>alert(1)</script>\n\n$a<b$ **bold**"
    cells[-1].source = "Because <img src=x onerror=alert(2)>."
    tiny.hand_in("ada", cells)
    tiny.autograde()
    html = tiny.feedback("ada")
    assert "(Score: 4.0 / 10.0)" in html
    assert "half: 1 of 3 points" in html
    assert "&lt;b&gt;1&lt;/b&gt;; it should be 1.5." in html
    assert "<b>1</b>" not in html
    assert "<script>alert(1)" not in html
    assert "onerror=alert" not in html.replace("&lt;", "")
    assert "<strong>bold</strong>" in html


@pytest.mark.filterwarnings("ignore:No lexer found")
@pytest.mark.parametrize("size", [1, 30_000])
def test_a_cell_is_shown_whatever_its_language_and_size(size: int) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("half = 1 / 2\n" * size)]
    )
    notebook.metadata["language_info"] = {"name": "no such"}
    html, _ = feedback_exporter.FeedbackExporter().from_notebook_node(notebook)
    assert html.count("half = 1 / 2") == size


def test_scores_and_comments_are_those_that_nbgraders_own_step_gives(
    tiny: TinyCourse, graded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.hand_in("ada")
    tiny.hand_in("ben")
    tiny.autograde()
    with open_gradebook(tiny.course) as gradebook:
        grade = gradebook.find_grade("check_half", "tiny", "tiny", "ben")
        grade.manual_score, grade.extra_credit = 1.5, 0.25
        gradebook.find_comment("half", "tiny", "tiny", "ben").manual_comment = "Nearly."
        gradebook.db.commit()
    pages = [tiny.feedback(student) for student in ("ada", "ben")]
    assert "Nearly." in pages[1]
    assert "Nearly." not in pages[0]
    assert "(Score: 1.75 / 3.0)" in pages[1]
    monkeypatch.setattr(feedback_exporter, "GradesAtOnce", GetGrades)
    assert [tiny.feedback(student) for student in ("ada", "ben")] == pages


def test_hidden_tests_of_nbgraders_own_kind_are_taken_out() -> None:
    source = "assert f(1) == 1\n### BEGIN HIDDEN TESTS\nassert f(2) == 4\n### END HIDDEN TESTS\nf(1)"
    cell = nbformat.v4.new_code_cell(source)
    cell.metadata["nbgrader"] = {"grade": True, "grade_id": "check_f", "points": 1}
    cell.outputs = [
        nbformat.v4.new_output(
            "error",
            ename="AssertionError",
            evalue="4",
            traceback=["----> assert f(2) == 4"],
        )
    ]
    HideFromStudents().preprocess_cell(cell, {}, 0)
    assert cell.source == "assert f(1) == 1\nf(1)"
    assert cell.outputs[0].traceback == ["AssertionError: a hidden test failed"]
    assert cell.outputs[0].evalue == ""

    unclosed = nbformat.v4.new_code_cell(
        "assert f(1) == 1\n    ### BEGIN HIDDEN TESTS\nassert f(2) == 4"
    )
    unclosed.metadata["nbgrader"] = {"grade": True, "grade_id": "check_f", "points": 1}
    HideFromStudents().preprocess_cell(unclosed, {}, 0)
    assert unclosed.source == "assert f(1) == 1"


@pytest.mark.parametrize(
    ("kind", "is_graded", "text"),
    [
        ("code", False, "### BEGIN HIDDEN TESTS\nf(1)"),
        ("markdown", True, "### BEGIN HIDDEN TESTS\nf(1)"),
        ("code", True, "f(1)"),
    ],
)
def test_a_cell_without_hidden_tests_stays(
    kind: str, is_graded: bool, text: str
) -> None:
    outputs = [{"output_type": "error", "evalue": "4", "traceback": ["line"]}]
    metadata = {"nbgrader": {"grade": is_graded}}
    cell = nbformat.from_dict(
        {"cell_type": kind, "metadata": metadata, "source": text, "outputs": outputs}
    )
    HideFromStudents().preprocess_cell(cell, {}, 0)
    assert cell.source == text
    assert cell.outputs == outputs


def test_the_late_penalty_in_the_feedback_is_that_of_today(
    tiny: TinyCourse, graded: dict[str, Any]
) -> None:
    (tiny.root / "course.toml").write_text(
        '[late]\npolicy = "zero"\n', encoding="utf-8"
    )
    tiny.hand_in("ada", at="2026-03-02 10:00:00 UTC")
    tiny.autograde()
    with open_gradebook(tiny.course) as gradebook:
        gradebook.update_or_create_assignment("tiny", duedate="2026-03-01 10:00:00 UTC")
    assert "(Score: 0.0 / 10.0)" in tiny.feedback("ada")
    tiny.autograde(force=True)
    with open_gradebook(tiny.course) as gradebook:
        assert gradebook.find_submission("tiny", "ada").late_submission_penalty == 4.0
        gradebook.update_or_create_assignment("tiny", duedate="2026-03-03 10:00:00 UTC")
    assert "(Score: 4.0 / 10.0)" in tiny.feedback("ada")


def test_the_export_is_quoted_and_holds_no_formula(tiny: TinyCourse) -> None:
    fill_gradebook(
        tiny.course,
        tiny.course.assignment("tiny"),
        [(result_for("ada", half=1 / 3), None), (result_for("ben", half=3.0), None)],
        {"ben": "2026-03-01 10:00:00 UTC"},
    )
    with open_gradebook(tiny.course) as gradebook:
        gradebook.update_or_create_student(
            "ada", last_name='=HYPERLINK("http://x")', first_name="Ada, Countess\nof L"
        )
        gradebook.update_or_create_student("zoe", first_name="Zoë")  # handed in nothing
        app = ExportApp(config=Config())
        app.coursedir = CourseDirectory(root=str(tiny.root))
        SafeCsvExport(parent=app, to="out.csv").export(gradebook)
    with Path("out.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    assert rows["ada"]["last_name"] == '\'=HYPERLINK("http://x")'
    assert rows["ada"]["first_name"] == "Ada, Countess\nof L"
    assert (
        rows["ada"]["raw_score"],
        rows["ada"]["max_score"],
        rows["ada"]["needs_manual_grade"],
    ) == (
        "3.333333",
        "10",
        "yes",
    )
    assert (rows["ben"]["score"], rows["ben"]["timestamp"]) == (
        "6",
        "2026-03-01 10:00:00",
    )
    assert (
        rows["zoe"]["score"],
        rows["zoe"]["timestamp"],
        rows["zoe"]["first_name"],
    ) == (
        "0",
        "",
        "Zoë",
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (3.0, "3"),
        (2.5, "2.5"),
        (-1.5, "-1.5"),
        ("-1+2", "'-1+2"),
        ("@x", "'@x"),
        ("a=b", "a=b"),
    ],
)
def test_plain_values(value: Any, text: str) -> None:
    assert plain(value) == text


def test_found_submissions_name_the_file_as_handed_in(
    tiny: TinyCourse, monkeypatch: pytest.MonkeyPatch
) -> None:
    from autograder.nbgrader import warm_graders
    from autograder.records.model import Graded

    seen: list[FoundSubmission] = []

    def grade(course: Any, assignment: Any, found: FoundSubmission) -> Graded:
        seen.append(found)
        return Graded(found.student, result_for(found.student))

    monkeypatch.setattr(warm_graders, "grade", grade)
    monkeypatch.setattr(warm_graders, "warm_up", lambda course, assignment: None)
    path = tiny.hand_in("ada")
    tiny.autograde()
    assert seen == [FoundSubmission("ada", path)]
