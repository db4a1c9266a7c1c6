"""Late days in nbgrader's gradebook: its penalties are those of reports and exports."""

from __future__ import annotations

import csv
from typing import Any

import pytest
from nbgrader.apps import ExportApp
from nbgrader.coursedir import CourseDirectory
from nbgrader_course import TinyCourse
from traitlets.config import Config

from autograder.nbgrader.csv_exporter import SafeCsvExport
from autograder.nbgrader.gradebook import open_gradebook

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SETTINGS = """
[course]
name = "Tiny Course"
[totals]
assignment_points = 0
[late]
policy = "per_day"
penalty_per_day = 0.1
late_days = 3
[due]
warmup = "2026-03-01 12:00 UTC"
tiny = "2026-03-08 12:00 UTC"
"""
AFTER_PENALTY = {"ada": 3.0, "ben": 4.0, "cay": 2.0}
"""Each has 4 of 10 points in `tiny`; a day costs 1.

Ada's warmup was 25 hours late and used two of her three late days. `tiny` came 47 hours late: two
days begun, of which she has one left. Ben has both. Cay came 100 hours late: five days begun, of
which three are free.
"""


@pytest.fixture
def late_class(tiny: TinyCourse) -> TinyCourse:
    (tiny.root / "course.toml").write_text(SETTINGS, encoding="utf-8")
    warmup = tiny.root / "submitted" / "ada" / "warmup"
    warmup.mkdir(parents=True)
    (warmup / "timestamp.txt").write_text("2026-03-02 13:00:00 UTC", encoding="utf-8")
    for student in ("ada", "ben"):
        tiny.store_result(student, tiny.hand_in(student, at="2026-03-10 11:00:00 UTC"))
    tiny.store_result("cay", tiny.hand_in("cay", at="2026-03-12 16:00:00 UTC"))
    return tiny


def in_gradebook(tiny: TinyCourse) -> dict[str, float]:
    """Student → the score after the penalty, as the gradebook has them."""
    with open_gradebook(tiny.course) as gradebook:
        return {
            row.student_id: row.score - row.late_submission_penalty
            for row in gradebook.assignment_submissions("tiny")
        }


def in_nbgraders_csv(tiny: TinyCourse) -> dict[str, float]:
    with open_gradebook(tiny.course) as gradebook:
        app = ExportApp(config=Config())
        app.coursedir = CourseDirectory(root=str(tiny.root))
        SafeCsvExport(parent=app, to="out.csv").export(gradebook)
    with (tiny.root / "out.csv").open(encoding="utf-8", newline="") as file:
        return {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}


def test_late_days_count_in_nbgraders_gradebook_feedback_and_export(
    late_class: TinyCourse, graded: dict[str, Any]
) -> None:
    late_class.autograde()
    assert in_gradebook(late_class) == AFTER_PENALTY
    assert in_nbgraders_csv(late_class) == AFTER_PENALTY
    assert "(Score: 3.0 / 10.0)" in late_class.feedback("ada")
    for student, score in AFTER_PENALTY.items():
        page = late_class.root / "feedback" / student / "tiny" / "tiny.html"
        assert f"(Score: {score} / 10.0)" in page.read_text(encoding="utf-8")


def test_the_export_to_the_gradebook_has_the_marks_of_the_other_exports(
    late_class: TinyCourse,
) -> None:
    rows = late_class.exported(provisional=True)
    late_class.export_gradebook()
    assert in_gradebook(late_class) == AFTER_PENALTY
    totals = {student: float(row["total_after_late"]) for student, row in rows.items()}
    assert totals == AFTER_PENALTY


def test_without_a_late_policy_old_penalties_go(late_class: TinyCourse) -> None:
    late_class.export_gradebook()
    settings = SETTINGS.replace('"per_day"', '"none"')
    (late_class.root / "course.toml").write_text(settings, encoding="utf-8")
    assert in_nbgraders_csv(late_class) == {"ada": 4.0, "ben": 4.0, "cay": 4.0}
