import csv
import io
from pathlib import Path

import pytest

from autograder.course import load_course
from autograder.errors import KitError, NothingToGrade
from autograder.model import Graded
from autograder.outputs.commands import export_command, report_command
from autograder.outputs.feedback import feedback_path
from autograder.outputs.store import write_result, write_timing

SETTINGS = Path(__file__).parents[2] / "hidden" / "pytest.ini"
SUITE = """
from autograder.suite import points, uses

pytestmark = [uses({uses})]

@points(4)
def test_it(student):
    pass
"""


@pytest.fixture
def course(tmp_path):
    """A course whose question `attention` builds on `softmax`."""
    files = {
        "course.toml": "",
        "source/attention/attention.py": "",
        "tests/hidden/pytest.ini": SETTINGS.read_text(encoding="utf-8"),
        "tests/hidden/attention/test_softmax.py": SUITE.format(uses="'nothing'"),
        "tests/hidden/attention/test_attention.py": SUITE.format(uses="'softmax'"),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return load_course(tmp_path)


def test_report_writes_a_page_a_student_and_one_for_the_class(course, plain):
    results = course.root / "results"
    write_result(results, plain)
    lines = list(report_command(course, course.assignment("attention"), results))
    assert lines == [
        f"1 feedback pages in {course.root / 'feedback'}",
        f"class report: {results / 'attention.html'}",
    ]
    page = (course.root / "feedback" / "ada" / "attention" / "attention.html").read_text(encoding="utf-8")
    assert "the mistake in <code>softmax</code>" in page


def test_a_suite_that_does_not_import_stops_no_report(course, plain, capsys):
    (course.root / "tests/hidden/attention/test_broken.py").write_text("import nothing_of_that_name\n")
    write_result(course.root / "results", plain)
    assert len(list(report_command(course, course.assignment("attention"), course.root / "results"))) == 2
    assert "does not import" in capsys.readouterr().err


def test_a_class_of_problems_has_a_report(course, problem):
    results = course.root / "results"
    write_timing(results, "attention", [Graded(problem.student, problem.path, None, "unreadable")])
    old = feedback_path(course.root / "feedback", "attention", problem.student)
    old.parent.mkdir(parents=True)
    old.write_text("an old score", encoding="utf-8")
    assert list(report_command(course, course.assignment("attention"), results)) == [
        f"class report: {results / 'attention.html'}"
    ]
    assert not old.exists()


def test_nothing_graded_says_what_to_run(course):
    for command in (
        report_command(course, course.assignment("attention"), course.root / "results"),
        export_command(course, course.assignment("attention"), course.root / "results", "csv"),
    ):
        with pytest.raises(NothingToGrade, match="autograder grade attention"):
            list(command)


def test_export_to_the_screen_and_to_a_file(course, plain, tmp_path):
    results = course.root / "results"
    write_result(results, plain)
    assignment = course.assignment("attention")
    (text,) = export_command(course, assignment, results, "csv")
    assert list(csv.reader(io.StringIO(text)))[1] == ["ada", "2", "6", "3", "11", "20"]
    file = tmp_path / "scores.csv"
    assert list(export_command(course, assignment, results, "csv", file)) == [f"1 results of attention in {file}"]
    assert file.read_text(encoding="utf-8") == text + "\n"


def test_a_late_policy_without_due_times_is_said(course, plain, capsys):
    (course.root / "course.toml").write_text('[late]\npolicy = "zero"\n', encoding="utf-8")
    late = load_course(course.root)
    write_result(course.root / "results", plain)
    (text,) = export_command(late, late.assignment("attention"), course.root / "results", "moodle")
    assert text.splitlines()[1] == "ada,11"
    assert "without late penalties" in capsys.readouterr().err


def test_canvas_by_a_roster_file(course, plain, tmp_path):
    roster = tmp_path / "canvas.csv"
    roster.write_text('Student,ID,SIS Login ID,Section\n"Lovelace, Ada",7,ada,A\n', encoding="utf-8")
    write_result(course.root / "results", plain)
    (text,) = export_command(course, course.assignment("attention"), course.root / "results", "canvas", None, roster)
    others = tmp_path / "other.csv"
    others.write_text("name\n", encoding="utf-8")
    with pytest.raises(KitError, match=r"other\.csv: the roster is not"):
        list(export_command(course, course.assignment("attention"), course.root / "results", "canvas", None, others))
    assert text.splitlines()[2] == '"Lovelace, Ada",7,,ada,A,11'
