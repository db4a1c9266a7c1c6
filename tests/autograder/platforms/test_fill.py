"""A platform's own file, filled in by the command: each mark goes to the row of its student, or
nothing is written.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from courses import on_stderr

from autograder.basics.errors import KitError
from autograder.course import Course, load_course
from autograder.intake.collected import Arrival, Collected, record_path
from autograder.ledger import Identity, link_download, read_ledger
from autograder.records.model import Result, TestOutcome
from autograder.records.results import write_result
from autograder.reporting.marks_commands import ExportRequest, export_command

WORKSHEET = (
    'Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed",'
    '"Last modified (submission)","Last modified (grade)","Feedback comments"\n'
    '"Participant 501","Jane Doe",jane@x.edu,"Submitted for grading - ",,{maximum},Yes,'
    '"Thursday, 1 October 2026, 9:59 PM",-,\n'
    '"Participant 502","John Doe",john@x.edu,"Submitted for grading - ",,{maximum},Yes,'
    '"Thursday, 1 October 2026, 8:59 PM",-,\n'
    '"Participant 503","John Doe",john3@x.edu,"Submitted for grading - ",,{maximum},Yes,-,-,\n'
)
GRADEBOOK = (
    "Student,ID,SIS User ID,SIS Login ID,Section,attention (4711),Current Score\n"
    "    Points Possible,,,,,20.00,(read only)\n"
    '"Doe, Jane",101,,jdoe1,A,,\n"Doe, John",102,,jdoe2,A,,\n"Doe, John",103,,jdoe3,B,,\n'
)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A course of one assignment, `attention`, without a written answer."""
    source = tmp_path / "source" / "attention" / "attention.py"
    source.parent.mkdir(parents=True)
    source.write_text("", encoding="utf-8")
    (tmp_path / "course.toml").write_text("", encoding="utf-8")
    return load_course(tmp_path)


def hand_in(
    course: Course, result: Result, arrivals: Mapping[str, Arrival | None]
) -> None:
    """Submissions with a result of 11, 12, 13 … 18 of 20 points, in the order of the students."""
    for number, student in enumerate(arrivals):
        (course.submitted / student / "attention").mkdir(parents=True)
        (course.submitted / student / "attention" / "attention.ipynb").write_text(
            "{}", encoding="utf-8"
        )
        *others, heads = result.questions
        points = min(heads.score + number, heads.max_score)
        last = replace(
            heads,
            score=points,
            tests=(TestOutcome("test_heads", "failed", points, heads.max_score),),
        )
        own = replace(
            result,
            student=student,
            questions=(*others, last),
            score=result.score + points - heads.score,
        )
        write_result(course.root / "results", own)
    collected = {student: arrival for student, arrival in arrivals.items() if arrival}
    path = record_path(course.submitted, "attention")
    path.parent.mkdir(parents=True)
    path.write_text(Collected(collected).to_json(), encoding="utf-8")
    ledger = read_ledger(course)
    for platform in {arrival.origin for arrival in collected.values()}:
        ids = {
            student: Identity(((platform, arrival.id),), (), arrival.name)
            for student, arrival in collected.items()
            if arrival.origin == platform
        }
        link_download(
            ledger, platform, "attention", list(ids.values()), list(ids), "all.zip"
        )
    ledger.save()


def moodle(number: str, name: str) -> Arrival:
    return Arrival(
        "moodle", number, name, f"{name}_{number}_assignsubmission_file/attention.ipynb"
    )


def canvas(number: str, name: str) -> Arrival:
    return Arrival("canvas", number, name, f"{name}_{number}_9001_attention.ipynb")


def exported(course: Course, platform: str, text: str) -> list[list[str]]:
    roster = course.root / "theirs.csv"
    roster.write_text(text, encoding="utf-8")
    request = ExportRequest(
        course,
        course.assignment("attention"),
        course.root / "results",
        platform,
        course.root / "ours.csv",
        roster,
    )
    list(export_command(request, on_stderr))
    return list(
        csv.reader(io.StringIO((course.root / "ours.csv").read_text(encoding="utf-8")))
    )


def test_of_two_namesakes_on_moodle_only_the_one_who_handed_in_gets_the_mark(
    course: Course, plain: Result
) -> None:
    hand_in(
        course,
        plain,
        {
            "Jane Doe_501": moodle("501", "Jane Doe"),
            "John Doe_503": moodle("503", "John Doe"),
        },
    )
    table = exported(course, "moodle", WORKSHEET.format(maximum="20.00"))
    assert [(row[0], row[4]) for row in table[1:]] == [
        ("Participant 501", "11"),
        ("Participant 502", ""),
        ("Participant 503", "12"),
    ]


def test_of_two_namesakes_on_canvas_only_the_one_who_handed_in_gets_the_mark(
    course: Course, plain: Result
) -> None:
    hand_in(
        course,
        plain,
        {
            "doejane_101": canvas("101", "doejane"),
            "doejohn_103": canvas("103", "doejohn"),
        },
    )
    table = exported(course, "canvas", GRADEBOOK)
    assert [(row[1], row[5]) for row in table[2:]] == [("101", "11"), ("103", "12")]


def test_a_name_that_two_rows_have_ends_the_command_before_it_writes(
    course: Course, plain: Result
) -> None:
    (course.root / "students.csv").write_text(
        "id,name\nu1,Jane Doe\nu2,John Doe\n", encoding="utf-8"
    )
    hand_in(course, plain, {"u1": None, "u2": None})
    with pytest.raises(
        KitError,
        match=r"John Doe \(moodle 502\) and John Doe \(moodle 503\) have one name",
    ):
        exported(course, "moodle", WORKSHEET.format(maximum="20.00"))
    assert not (course.root / "ours.csv").exists()


def test_another_maximum_ends_the_command_before_it_writes(
    course: Course, plain: Result
) -> None:
    hand_in(course, plain, {"Jane Doe_501": moodle("501", "Jane Doe")})
    with pytest.raises(
        KitError,
        match=r"the maximum grade in Moodle is 10\.00, and the marks here are out of 20",
    ):
        exported(course, "moodle", WORKSHEET.format(maximum="10.00"))
    assert not (course.root / "ours.csv").exists()


LATE = (
    '[course]\ntimezone = "Europe/Berlin"\n[late]\npolicy = "zero"\n[due]\nattention = '
    '"2026-10-01 21:00"\n'
)


def test_the_worksheets_hand_in_times_count(
    course: Course, plain: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    people = {
        f"{name}_{number}": moodle(number, name)
        for number, name in (
            ("501", "Jane Doe"),
            ("502", "John Doe"),
            ("503", "John Doe"),
        )
    }
    hand_in(course, plain, people)
    (course.root / "course.toml").write_text(LATE, encoding="utf-8")
    table = exported(
        load_course(course.root), "moodle", WORKSHEET.format(maximum="20.00")
    )
    # an hour late, a minute early, and nobody knows
    assert [row[4] for row in table[1:]] == ["0", "12", "13"]
    said = capsys.readouterr().err
    assert "hand-in times of 2 are this worksheet's" in said
    assert (
        "no hand-in time is known, so nothing is taken off for lateness: 1: John Doe_503;"
        in said
    )


def test_a_late_policy_names_everybody_whose_time_nobody_knows(
    course: Course, plain: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    people = [f"student-{number:03}" for number in range(30)]
    hand_in(course, plain, dict.fromkeys(people))
    (course.root / "course.toml").write_text(LATE, encoding="utf-8")
    late = load_course(course.root)
    request = ExportRequest(
        late, late.assignment("attention"), course.root / "results", "csv"
    )
    (text,) = export_command(request, on_stderr)
    assert f"lateness: 30: {', '.join(people)};" in capsys.readouterr().err
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["note"] for row in rows} == {
        "no hand-in time is known: nothing is taken off"
    }
    assert [row["total_after_late"] for row in rows[:2]] == ["11", "12"]


def test_a_worksheets_time_without_a_zone_is_neither_late_nor_in_time(
    course: Course, plain: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(
        course,
        plain,
        {
            "Jane Doe_501": moodle("501", "Jane Doe"),
            "John Doe_503": moodle("503", "John Doe"),
        },
    )
    settings = LATE.replace('timezone = "Europe/Berlin"', "").replace(
        "21:00", "21:00 UTC"
    )
    (course.root / "course.toml").write_text(settings, encoding="utf-8")
    table = exported(
        load_course(course.root), "moodle", WORKSHEET.format(maximum="20.00")
    )
    assert [row[4] for row in table[1:]] == ["", "", "12"]
    said = capsys.readouterr().err
    assert "without a mark, time cannot be read: 1: Jane Doe_501" in said
    assert "has no time zone: set `timezone` under [course]" in said
