"""Reports, exports and totals from results to files, and what is told beside them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stored_class import course, hand_in, request, result

from autograder.basics.errors import KitError, NothingToGrade
from autograder.course import Assignment, Course
from autograder.marks.marks import Mark
from autograder.records.model import Graded
from autograder.records.results import TimingFile, write_result
from autograder.reporting import marks_commands
from autograder.reporting.marks_commands import (
    _replace_feedback,
    export_command,
    report_command,
    totals_command,
)

__all__ = ["course"]


def test_a_report_writes_pages_and_the_history_keeps_older_ones(course: Course) -> None:
    hand_in(course, "ada")
    write_result(course.results, result("ada"))
    lines: list[str] = []
    assignment = Assignment("m1", course.root)

    def report() -> list[str]:
        return list(report_command(course, assignment, course.results, lines.append))

    pages, page = report()
    assert pages == f"1 feedback pages in {course.feedback}"
    assert page.startswith("class report: file:///")
    feedback = course.feedback / "ada" / "m1"
    (html,) = feedback.rglob("*.html")
    before = html.read_text(encoding="utf-8")
    assert "1 of 2" in before
    report()
    assert not list(course.results.glob("history/m1/*/feedback/*.html"))
    write_result(course.results, result("ada", 2.0))
    report()
    (kept,) = course.results.glob("history/m1/*/feedback/ada.html")
    assert kept.read_text(encoding="utf-8") == before
    (course.results / "m1" / "ada.json").unlink()
    TimingFile(course.results, "m1").note([Graded("ada", problem="no notebook")])
    (only,) = report()
    assert only.startswith("class report: ")
    assert not html.exists()


def test_an_export_goes_to_a_file_or_to_the_terminal(course: Course) -> None:
    hand_in(course, "ada")
    write_result(course.results, result("ada"))
    lines: list[str] = []
    printed = list(export_command(request(course, "csv"), lines.append))
    assert printed == ["student,double,total,max,status,note\nada,1,1,2,graded,"]
    file = course.root / "marks.csv"
    (line,) = export_command(request(course, "csv", to=file), lines.append)
    assert line == f"1 results of m1 in {file}"
    assert file.read_text() == printed[0] + "\n"
    tests = "\n".join(export_command(request(course, "tests"), lines.append))
    assert tests.splitlines()[1] == "ada,double,test_doubles,failed,1,2,,"
    junit = "\n".join(export_command(request(course, "junit"), lines.append))
    assert 'tests="1" failures="1" errors="0"' in junit


def test_totals_go_to_a_file_or_to_the_terminal(course: Course) -> None:
    hand_in(course, "ada")
    write_result(course.results, result("ada"))
    lines: list[str] = []

    def totals(to: Path | None) -> list[str]:
        return list(
            totals_command(course, course.results, to, lines.append, provisional=False)
        )

    # an assignment that nobody has graded yet is none of the course's totals
    source = Assignment("m2", course.root).source
    source.parent.mkdir(parents=True)
    source.touch()
    (table,) = totals(None)
    assert "50" in table.splitlines()[1].split(",")
    assert not table.endswith("\n")
    file = course.root / "totals.csv"
    assert totals(file) == [f"totals of 1 students over 1 assignments in {file}"]
    assert file.read_text() == table + "\n"
    assert lines == []


def test_marks_are_pushed_without_a_file(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(course, "ada")
    write_result(course.results, result("ada"))
    TimingFile(course.results, "m1").note([Graded("bob", problem="no notebook")])
    pushed: list[Any] = []

    def push(*arguments: Any, **options: Any) -> Any:
        pushed.append((arguments[1], len(arguments[2]), arguments[3], options))
        yield "sent"

    monkeypatch.setattr(marks_commands, "push_marks", push)
    lines: list[str] = []
    options = {"push": True, "dry_run": True, "column": "HW 1", "provisional": True}
    assert list(export_command(request(course, "canvas", **options), lines.append)) == [
        "sent"
    ]
    expected = {"column": "HW 1", "provisional": True, "dry_run": True}
    assert pushed == [("m1", 2, "canvas", expected)]
    assert lines[-1] == "without a mark, withdrawn: 1: bob"


def test_options_that_do_not_go_together_are_refused_before_anything_is_read(
    course: Course,
) -> None:
    with pytest.raises(KitError, match=r"^classroom has no file: add --push$"):
        list(export_command(request(course, "classroom"), lambda line: None))


def test_an_export_into_the_gradebook_writes_nothing_else(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    exports: list[Any] = []

    def export(stored: Any, to: Path | None) -> Any:
        exports.append((stored.assignment.name, stored.folder, to))
        yield "1 results of m1"

    monkeypatch.setattr(
        "autograder.reporting.gradebook_export.export_gradebook", export
    )
    to = course.root / "gradebook.db"
    lines = export_command(request(course, "gradebook", to=to), lambda line: None)
    assert list(lines) == ["1 results of m1"]
    assert exports == [("m1", course.results, to)]
    assert not to.exists()


class PlayedFiles:
    """A transaction that notes what is written and removed."""

    def __init__(self) -> None:
        self.steps: list[Any] = []

    def write(self, path: Path, content: bytes, **options: bool) -> None:
        self.steps.append((path.name, content, options))

    def remove(self, path: Path) -> None:
        self.steps.append(path.name)


def test_a_page_is_removed_only_where_there_is_one(course: Course) -> None:
    """The history keeps it, under the student's name."""
    stored: Any = SimpleNamespace(
        assignment=Assignment("m1", course.root), course=course, folder=course.results
    )
    files: Any = PlayedFiles()
    mark = Mark("a/b", "no notebook", folder="ada")
    _replace_feedback(files, stored, mark, None)
    assert files.steps == []
    page = course.feedback / "ada" / "m1" / "m1.html"
    page.parent.mkdir(parents=True)
    page.write_bytes(b"before")
    _replace_feedback(files, stored, mark, "before")
    assert files.steps == []
    _replace_feedback(files, stored, mark, None)
    assert files.steps == [("a%2Fb.html", b"before", {}), "m1.html"]
    files.steps.clear()
    _replace_feedback(files, stored, mark, "after")
    assert files.steps == [
        ("a%2Fb.html", b"before", {}),
        ("m1.html", b"after", {"to_disk": False}),
    ]


@pytest.mark.parametrize(
    ("format", "with_roster", "is_told"),
    [
        ("moodle-feedback", False, True),
        ("moodle-feedback", True, False),
        ("canvas-feedback", False, False),
        ("csv", False, False),
    ],
)
def test_possible_groups_are_told_where_no_own_file_tells_them_apart(
    course: Course,
    monkeypatch: pytest.MonkeyPatch,
    format: str,
    with_roster: bool,
    is_told: bool,
) -> None:
    hand_in(course, "ada")
    write_result(course.results, result("ada"))
    platforms: list[str] = []
    monkeypatch.setattr(
        marks_commands,
        "_tell_possible_groups",
        lambda marks, platform, tell: platforms.append(platform),
    )
    monkeypatch.setattr(marks_commands, "learn_people", lambda *_: None)
    monkeypatch.setattr(marks_commands, "_content", lambda *_: ["text\n"])
    roster = course.root / "theirs.csv" if with_roster else None
    asked = request(course, format, roster=roster)
    assert list(export_command(asked, lambda line: None)) == ["text"]
    assert platforms == (["moodle"] if is_told else [])


def test_who_has_no_total_and_who_may_stand_twice_is_told(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(course, "ada", "ben")
    for student in ("ada", "ben"):
        write_result(course.results, result(student))
    monkeypatch.setattr("autograder.marks.marks.written_points", lambda assignment: 2.0)
    monkeypatch.setattr(
        marks_commands,
        "find_split_students",
        lambda rows, names: {"ben": "moodle", "cyd": "canvas"},
    )
    lines: list[str] = []
    (table,) = totals_command(
        course, course.results, None, lines.append, provisional=False
    )
    assert len(table.splitlines()) == 3
    assert lines == [
        "without a total yet: 2: ada, ben",
        "Canvas, Moodle numbers people anew in each assignment, so these may stand here "
        "once for each: 2: ben, cyd; write students.csv with names or emails, or collect "
        "each assignment with its worksheet as `--roster`",
    ]


def test_totals_of_no_results_say_what_to_run(course: Course) -> None:
    with pytest.raises(NothingToGrade, match=r"run `autograder grade` first$"):
        list(totals_command(course, course.results, None, print, provisional=False))
