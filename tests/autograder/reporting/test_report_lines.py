"""What the commands of reports and exports tell beside their files."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stored_class import course, hand_in, request, result

from autograder.basics.errors import KitError, NothingToGrade
from autograder.course import Assignment, Course
from autograder.course.course import Grading, Late
from autograder.intake.collected import Arrival
from autograder.ledger.ledger_file import LedgerContent, StudentRecord, write_content
from autograder.marks.late_policy import Lateness
from autograder.marks.marks import Mark, mark_from_result
from autograder.records.model import (
    Graded,
    ManualGrades,
    ManualScore,
    Speed,
    TwoAnswers,
)
from autograder.records.results import TimingFile, write_result
from autograder.reporting import stored_marks
from autograder.reporting.marks_commands import (
    _check_push,
    _has_carried,
    _lines,
    _read_roster,
    _speed_bonuses,
    _tell_possible_groups,
    _tell_unfinished,
    totals_command,
)
from autograder.reporting.stored_marks import StoredMarks, listing

__all__ = ["course"]


def stored(course: Course, lines: list[str]) -> StoredMarks:
    assignment = Assignment("m1", course.root)
    return StoredMarks(course, assignment, course.results, lines.append)


# lists of students


def test_twenty_students_are_named() -> None:
    names = [f"s{number}" for number in range(21)]
    assert listing(names[:2]) == "2: s0, s1"
    assert listing(names[:20]) == f"20: {', '.join(names[:20])}"
    assert listing(names) == f"21: {', '.join(names[:20])} and 1 more"


def test_who_has_no_mark_is_told_by_status() -> None:
    lines: list[str] = []
    marks = [
        Mark("ada", "graded"),
        Mark("bob", "waits for a person"),
        Mark("cyd", "handed in nothing"),
        Mark("dan", "handed in nothing"),
    ]
    _tell_unfinished(marks, False, lines.append)
    assert lines == [
        "without a mark, waits for a person: 1: bob (`--provisional` exports the points so "
        "far)",
        "without a mark, handed in nothing: 2: cyd, dan",
    ]
    lines.clear()
    _tell_unfinished(marks[:2], True, lines.append)
    assert lines == [
        "exported, waits for a person: 1: bob (exported with the points so far)"
    ]


def test_who_may_be_a_group_is_told() -> None:
    lines: list[str] = []
    arrival = Arrival("moodle", "17", "Red", "Red_17_assignsubmission_file/m1.ipynb")
    group = dataclasses.replace(mark_from_result(result("Red_17")), arrival=arrival)
    empty = Mark("Blue_18", "no notebook", arrival=arrival)
    _tell_possible_groups([group, empty, Mark("ada", "graded")], "moodle", lines.append)
    (line,) = lines
    assert line.startswith(
        "taken for people, though in a group assignment these are gro"
    )
    assert "1: Red_17; give Moodle's" in line
    lines.clear()
    _tell_possible_groups([empty], "moodle", lines.append)
    assert lines == []


# options


def test_the_platform_of_a_format(course: Course) -> None:
    assert request(course, "moodle-feedback").platform == "moodle"
    assert request(course, "canvas").platform == "canvas"
    assert request(course, "csv").platform == ""


def test_options_of_push_do_not_go_with_files(course: Course) -> None:
    _check_push(request(course, "csv"))
    _check_push(request(course, "canvas", push=True))
    _check_push(request(course, "canvas", to=Path("a.csv")))
    with pytest.raises(KitError, match=r"^classroom has no file: add --push$"):
        _check_push(request(course, "classroom"))
    with pytest.raises(KitError, match=r"--push goes with --format .*, not with csv$"):
        _check_push(request(course, "csv", push=True))
    for options in ({"to": Path("a.csv")}, {"roster": Path("a.csv")}):
        with pytest.raises(KitError, match="leave --to and --roster out"):
            _check_push(request(course, "canvas", push=True, **options))


def test_a_roster_goes_with_platforms_that_have_one(course: Course) -> None:
    assert _read_roster(request(course, "csv")) is None
    roster = course.root / "roster.csv"
    assert _read_roster(request(course, "canvas-feedback", roster=roster)) is None
    with pytest.raises(
        KitError, match=r"^--roster goes with --format .*, not with csv$"
    ):
        _read_roster(request(course, "csv", roster=roster))


def test_text_is_printed_line_by_line() -> None:
    assert list(_lines("csv", ["a\nb", "c\n", "d\ne"])) == ["a", "bc", "d", "e"]
    assert list(_lines("csv", ["a\n"])) == ["a"]
    assert list(_lines("csv", [])) == []
    with pytest.raises(
        KitError, match=r"^moodle-feedback is a zip: name a file for it"
    ):
        list(_lines("moodle-feedback", [b"PK"]))


def test_points_for_speed_are_given_where_the_course_gives_some(course: Course) -> None:
    timed = Graded("ada", speeds=(Speed("small", 1.0, 4.0),))
    fast = dataclasses.replace(
        course, grading=Grading(speed_bonus=5.0, speed_bonus_at=4.0)
    )
    assert _speed_bonuses(fast, [timed, Graded("bob")]) == {"ada": 5.0}
    assert _speed_bonuses(fast, [Graded("bob")]) is None
    assert _speed_bonuses(course, [timed]) is None


def test_points_are_carried_in_some_question() -> None:
    plain = mark_from_result(result("ada"))
    assert not _has_carried(plain)
    assert not _has_carried(Mark("bob", "no notebook"))
    answered = dataclasses.replace(result("ada").questions[0], carried=0.5)
    assert _has_carried(mark_from_result(result("ada", questions=(answered,))))


# stored marks


def test_without_results_there_is_nothing_to_report(course: Course) -> None:
    words = "run `autograder grade m1` first"
    lines: list[str] = []
    with pytest.raises(NothingToGrade, match=words):
        stored(course, lines).marks()
    TimingFile(course.results, "m1").note([Graded("ada", problem="no notebook")])
    (mark,) = stored(course, lines).marks()
    assert (mark.student, mark.status) == ("ada", "could not be graded")
    with pytest.raises(NothingToGrade, match="run `autograder grade` first"):
        list(
            totals_command(
                course, course.root / "x", None, lines.append, provisional=False
            )
        )


def test_older_results_and_two_answers_are_told(course: Course) -> None:
    hand_in(course, "ada", "bob")
    for student in ("ada", "bob"):
        write_result(course.results, result(student))
    timing = TimingFile(course.results, "m1")
    timing.mark_older(["bob"])
    lines: list[str] = []
    stored(course, lines).marks()
    assert lines == ["results from before, to be graded again: 1: bob"]
    lines.clear()
    twice = TwoAnswers("test_doubles", "double(1)", ("one", "other"), ("2", "3"))
    flagged = dataclasses.replace(result("ada").questions[0], two_answers=(twice,))
    whole = result("ada", questions=(flagged,))
    stored(course, lines).tell_flagged([whole, result("bob")])
    assert lines == [
        "two answers to one call, for a person to look at: 1: ada (double); `autograder "
        "report` shows them"
    ]
    stored(course, lines).tell_flagged([result("bob")])
    assert len(lines) == 1


def test_a_result_that_the_suite_values_otherwise_is_left_out(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    for student in ("ada", "bob"):
        write_result(course.results, result(student))
    monkeypatch.setattr(
        stored_marks, "find_misvalued", lambda *arguments: {"ada": "it is worth 4"}
    )
    lines: list[str] = []
    results = stored(course, lines).results
    assert [each.student for each in results] == ["bob"]
    (line,) = lines
    assert line.endswith(
        "ada.json: left out, it is worth 4; grade this submission again"
    )


def test_stale_results_are_told_by_reason(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[bool] = []

    def find(*arguments: Any, own_submissions: bool) -> dict[str, str]:
        calls.append(own_submissions)
        return {"ada": "old", "bob": "other", "cyd": "old"}

    monkeypatch.setattr(stored_marks, "find_stale", find)
    lines: list[str] = []
    own = stored(course, lines)
    assert own.tell_stale([]) == {"ada": "old", "bob": "other", "cyd": "old"}
    words = "; see what would move with `autograder regrade m1`, or grade again"
    assert lines == [
        f"stale results: old: 2: ada, cyd{words}",
        f"stale results: other: 1: bob{words}",
    ]
    elsewhere = StoredMarks(
        course, own.assignment, course.root / "elsewhere", lines.append
    )
    elsewhere.tell_stale([])
    assert calls == [True, False]


def test_hand_in_times_are_those_of_the_files(course: Course) -> None:
    hand_in(course, "ada", "bob", "cyd")
    for student, text in (("ada", "2026-10-01 12:00:00 UTC"), ("bob", "yesterday")):
        (course.submitted / student / "m1" / "timestamp.txt").write_text(text)
    lines: list[str] = []
    times = stored(course, lines).hand_in_times(["ada", "bob", "cyd"])
    assert {student: str(time) for student, time in times.items()} == {
        "ada": "2026-10-01 12:00:00+00:00"
    }
    (line,) = lines
    assert line.startswith(
        f"{course.submitted / 'bob' / 'm1'}: no time of submission, "
    )


def test_lateness_without_a_due_time_is_told(course: Course) -> None:
    hand_in(course, "ada")
    write_result(course.results, result("ada"))
    late = dataclasses.replace(course, late=Late(policy="zero"))
    lines: list[str] = []
    (mark,) = stored(late, lines).marks()
    assert mark.late is None
    assert lines == [
        "marks are without late penalties: nobody says when m1 is due; write it under [due] "
        "in course.toml, or into nbgrader's gradebook"
    ]


def test_who_handed_in_at_an_unknown_time_is_told(course: Course) -> None:
    hand_in(course, "ada", "bob")
    for student in ("ada", "bob"):
        write_result(course.results, result(student))
    time = course.submitted / "ada" / "m1" / "timestamp.txt"
    time.write_text("2026-10-01 12:00:00 UTC")
    due = {"m1": datetime(2026, 10, 1, 11, tzinfo=UTC)}
    late = dataclasses.replace(course, late=Late(policy="zero"), due=due)
    lines: list[str] = []
    ada, bob = stored(late, lines).marks()
    assert (ada.late, ada.total) == (Lateness(60.0), 0.0)
    assert bob.total == 1.0
    assert lines == [
        "no hand-in time is known, so nothing is taken off for lateness: 1: bob; write a "
        "timestamp.txt, or collect again with a file that has times"
    ]


def test_times_that_a_worksheet_alone_has_are_told(course: Course) -> None:
    """They count for this export; ada's file has the time that pages and totals know."""
    hand_in(course, "ada", "bob")
    for student in ("ada", "bob"):
        write_result(course.results, result(student))
    time = course.submitted / "ada" / "m1" / "timestamp.txt"
    time.write_text("2026-10-01 12:00:00 UTC")
    due = {"m1": datetime(2026, 10, 1, 13, tzinfo=UTC)}
    late = dataclasses.replace(course, late=Late(policy="zero"), due=due)
    handed_in = {
        "ada": datetime(2026, 10, 1, 12, tzinfo=UTC),
        "bob": datetime(2026, 10, 1, 14, tzinfo=UTC),
    }
    asked: list[Any] = []

    def hand_in_times(*given: Any) -> dict[str, datetime]:
        asked.append(given[1:3])
        return handed_in

    worksheet: Any = SimpleNamespace(hand_in_times=hand_in_times)
    lines: list[str] = []
    ada, bob = stored(late, lines).marks(worksheet)
    assert asked == [("m1", ["ada", "bob"])]
    assert (ada.late, bob.late) == (Lateness(0.0), Lateness(60.0))
    assert (ada.total, bob.total) == (1.0, 0.0)
    assert lines == [
        "hand-in times of 1 are this worksheet's: give it to `autograder collect` as "
        "`--roster` too, so that pages and totals know them"
    ]
    lines.clear()
    handed_in.pop("bob")
    stored(late, lines).marks(worksheet)
    assert [line.partition(",")[0] for line in lines] == ["no hand-in time is known"]


def test_points_by_hand_are_read_where_there_is_a_gradebook(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nbgrader calls a student as the folder is called."""
    reads: list[tuple[str, str]] = []

    def read(db_url: str, assignment: str) -> dict[str, ManualGrades]:
        reads.append((db_url, assignment))
        return {"folder-1": ManualGrades("folder-1", (), automatic={})}

    monkeypatch.setattr("autograder.nbgrader.manual_grades.read_manual_grades", read)
    monkeypatch.setattr(
        "autograder.nbgrader.answers.mark_earlier_answers",
        lambda course, assignment, results, grades: grades,
    )
    ledger = LedgerContent(1, {"ada": StudentRecord("ada", "folder-1")})
    write_content(course.root, ledger)
    lines: list[str] = []
    assert stored(course, lines)._manual_grades() is None
    assert reads == []
    course.gradebook.touch()
    assert stored(course, lines)._manual_grades() == {
        "ada": ManualGrades("ada", (), automatic={})
    }
    assert reads == [(course.db_url, "m1")]


def test_where_all_times_are_known_nothing_is_told(course: Course) -> None:
    hand_in(course, "ada")
    write_result(course.results, result("ada"))
    time = course.submitted / "ada" / "m1" / "timestamp.txt"
    time.write_text("2026-10-01 12:00:00 UTC")
    due = {"m1": datetime(2026, 10, 1, 13, tzinfo=UTC)}
    late = dataclasses.replace(course, late=Late(policy="zero"), due=due)
    lines: list[str] = []
    (ada,) = stored(late, lines).marks()
    assert (ada.late, ada.total, lines) == (Lateness(0.0), 1.0, [])


def test_results_newer_than_the_gradebook_are_told(course: Course) -> None:
    write_result(course.results, result("ada"))
    write_result(course.results, result("bob"))
    lines: list[str] = []
    marks = stored(course, lines)
    early = ManualScore("why", 5.0, 3.0, waits=True, earlier=True)
    grades = {
        "ada": ManualGrades("ada", (), automatic={"double": 2.0}),
        "bob": ManualGrades("bob", (early,), automatic={"double": 1.0}),
    }
    marks._tell_superseded(grades)
    command = "`autograder export m1 --format gradebook`"
    assert lines == [
        f"graded since gradebook.db was filled: 1: ada; fill it again with {command}, so "
        "that a person sees what changed",
        "points by hand are for an earlier answer and wait: 1: bob; fill the gradebook with "
        f"{command}, and look at the new answers",
    ]
    lines.clear()
    marks._tell_superseded({})
    assert lines == []
