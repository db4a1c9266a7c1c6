"""One mark: whose it is, which points count, and what is said of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from stored_results import outcome, question

from autograder.course import Assignment, Course
from autograder.course.course import Late
from autograder.course.roster import Person
from autograder.intake.collected import Arrival, Collected, NotTaken, record_path
from autograder.marks.late_policy import Lateness
from autograder.marks.marks import (
    Mark,
    _graded_mark,
    class_marks,
    mark_from_result,
)
from autograder.records.model import Graded, ManualGrades, ManualScore, Result

ADA = Person("s1", "Ada Lovelace", "ada@example.org", "", {})
COLLECTED = Arrival("canvas", "101", "Lovelace, A.", "lovelacea_101_9_m1.ipynb")


def mark(**fields: Any) -> Mark:
    return Mark("ada_7", "graded", **fields)


def test_a_mark_of_nobody_knows_nothing() -> None:
    assert Mark("ada", "withdrawn") == Mark(
        student="ada",
        status="withdrawn",
        note="",
        person=None,
        arrival=None,
        result=None,
        questions={},
        by_hand=None,
        written=0.0,
        score=None,
        max_score=0.0,
        late=None,
        total=None,
        folder="",
        group="",
        called="",
        ids={},
        joined="",
        in_own_file=False,
    )
    assert Lateness(1.0) == Lateness(1.0, note="", unreadable=False, days_used=0)


def test_a_name_is_the_class_lists_or_the_platforms() -> None:
    assert mark(person=ADA, arrival=COLLECTED, called="Ada").name == "Ada Lovelace"
    nameless = dataclasses.replace(ADA, name="")
    assert mark(person=nameless, arrival=COLLECTED).name == "Lovelace, A."
    # the file of a group has the name of whoever handed it in
    assert mark(arrival=COLLECTED, group="red", called="Ada").name == "Ada"
    assert mark(arrival=dataclasses.replace(COLLECTED, name="")).name == "ada_7"
    assert mark(called="Ada").name == "Ada"
    assert mark().name == "ada_7"


def test_an_id_is_the_ledgers_the_uploads_or_the_class_lists() -> None:
    assert mark(ids={"canvas": "9"}, arrival=COLLECTED).platform_id("canvas") == "9"
    # a number that may be a group's
    assert mark(ids={"canvas": ""}, arrival=COLLECTED).platform_id("canvas") == ""
    assert mark(arrival=COLLECTED).platform_id("canvas") == "101"
    assert mark(arrival=COLLECTED).platform_id("moodle") == ""
    assert mark(arrival=COLLECTED, group="red").platform_id("canvas") == ""
    anonymous = dataclasses.replace(COLLECTED, anonymous=True)
    assert mark(arrival=anonymous).platform_id("canvas") == ""
    listed = dataclasses.replace(ADA, ids={"github": "ada-l"})
    assert mark(person=listed).platform_id("github") == "ada-l"
    assert mark(person=listed, arrival=COLLECTED).platform_id("github") == "ada-l"
    assert mark().platform_id("github") == ""


def test_a_number_in_a_folders_name_is_for_files_put_there_by_hand() -> None:
    assert mark().number == "7"
    assert mark(arrival=COLLECTED).number == ""
    assert mark(ids={"canvas": "9"}).number == ""
    assert Mark("ada", "graded").number == ""


def test_a_platforms_number_may_be_a_groups() -> None:
    moodle = dataclasses.replace(COLLECTED, origin="moodle")
    assert mark(arrival=moodle).may_be_a_group
    assert not mark(arrival=moodle, person=ADA).may_be_a_group
    assert not mark(arrival=moodle, group="red").may_be_a_group
    assert not mark(arrival=moodle, in_own_file=True).may_be_a_group
    github = dataclasses.replace(COLLECTED, origin="github")
    assert not mark(arrival=github).may_be_a_group
    assert not mark().may_be_a_group


def test_a_folder_and_a_holder_are_the_students_own_without_others() -> None:
    assert (mark().own_folder, mark().holder) == ("ada_7", "ada_7")
    grouped = mark(folder="ada-folder", group="red")
    assert (grouped.own_folder, grouped.holder) == ("ada-folder", "red")
    assert grouped.own_result is None


def test_a_mark_that_waits_is_exported_where_it_is_asked_for() -> None:
    waiting = Mark("ada", "waits for a person", total=3.0)
    assert (waiting.final(), waiting.final(provisional=True)) == (None, 3.0)
    graded = Mark("ada", "graded", total=3.0)
    assert (graded.final(), graded.final(provisional=True)) == (3.0, 3.0)
    unread = Mark("ada", "time cannot be read", total=3.0)
    assert (unread.final(), unread.final(provisional=True)) == (None, None)


# points


def result() -> Result:
    """3 of 4 points: 1 of 2 for each of two questions, and 1 carried."""
    questions = (
        question("double", outcome("test_a", 1.0, 1.0), outcome("test_b", 0.0, 1.0)),
        question(
            "half",
            outcome("test_c", 1.0, 1.0),
            outcome("test_d", 0.0, 1.0),
            carried=1.0,
        ),
    )
    return Result("m1", "ada", "sha", "suite", "strict", 3.0, 4.0, questions, ())


def graded(
    written: float = 0.0,
    by_hand: ManualGrades | None = None,
    late: Lateness | None = None,
    policy: Late = Late(),
) -> Mark:
    course = Course(Path("/course"), late=policy)
    return _graded_mark(result(), written, by_hand, late, course)


def by_hand(
    *written: ManualScore, questions: tuple[ManualScore, ...] = ()
) -> ManualGrades:
    return ManualGrades("ada", written, questions)


def test_a_mark_adds_up_its_questions() -> None:
    plain = graded()
    assert (plain.status, plain.note) == ("graded", "")
    assert (plain.score, plain.max_score, plain.total) == (3.0, 4.0, 3.0)
    assert (plain.questions, plain.written) == ({"double": 1.0, "half": 2.0}, 0.0)
    alone = mark_from_result(result())
    assert (alone.score, alone.max_score, alone.total) == (3.0, 4.0, 3.0)
    assert alone.questions == plain.questions
    own = dataclasses.replace(alone, student="bob", group="ada").own_result
    assert own is not None
    assert (own.student, own.score) == ("bob", 3.0)


def test_written_answers_wait_for_a_gradebook() -> None:
    waiting = graded(written=5.0)
    assert (waiting.status, waiting.note) == (
        "waits for a person",
        "waits: written answers",
    )
    assert (waiting.score, waiting.max_score, waiting.total) == (3.0, 9.0, 3.0)


def test_points_by_hand_count_in_place_of_the_tests() -> None:
    """2 for double in place of 1, 0.5 on top of half, and 3.5 + 1 of a written answer."""
    why = ManualScore("why", 5.0, 3.5, extra_credit=1.0)
    double = ManualScore("double", 2.0, 2.0)
    half = ManualScore("half", 2.0, None, extra_credit=0.5)
    gone = ManualScore("gone", 2.0, 2.0)
    marked = graded(5.0, by_hand(why, questions=(double, half, gone)))
    assert marked.questions == {"double": 2.0, "half": 2.0}
    assert (marked.score, marked.total, marked.written) == (9.0, 9.0, 5.0)
    assert marked.status == "graded"
    assert marked.note == (
        "double: 2 by a person; gone: 2 by a person; 1.5 of extra credit"
    )


def test_points_for_an_earlier_answer_wait() -> None:
    why = ManualScore("why", 5.0, 3.5, waits=True, earlier=True)
    how = ManualScore("how", 5.0, None, waits=True, earlier=True)
    double = ManualScore("double", 2.0, 2.0, waits=True, earlier=True)
    waiting = graded(10.0, by_hand(why, how, questions=(double,)))
    assert waiting.status == "waits for a person"
    assert waiting.note == (
        "waits: why, how, double; why: 3.5 of 5 given for an earlier answer; "
        "double: 2 of 2 given for an earlier answer"
    )


@pytest.mark.parametrize(
    ("late", "total", "status", "note"),
    [
        (Lateness(0.0), 3.0, "graded", ""),
        # a day begun costs a tenth of 4 points
        (Lateness(1.0), 2.6, "graded", ""),
        (Lateness(None, "nobody knows"), 3.0, "graded", "nobody knows"),
        (
            Lateness(0.0, days_used=2),
            3.0,
            "graded",
            "late days used: 2",
        ),
        (
            Lateness(None, "no time", unreadable=True),
            None,
            "time cannot be read",
            "no time",
        ),
    ],
)
def test_lateness_costs_points_and_is_told(
    late: Lateness, total: float | None, status: str, note: str
) -> None:
    policy = Late(policy="per_day", penalty_per_day=0.1)
    marked = graded(late=late, policy=policy)
    assert (marked.total, marked.status, marked.note) == (total, status, note)
    assert (marked.score, marked.late) == (3.0, late)


def test_everybody_who_was_collected_has_one_mark(tmp_path: Path) -> None:
    course = Course(tmp_path)
    path = record_path(course.submitted, "m1")
    path.parent.mkdir(parents=True)
    refused = {
        name: NotTaken(name, COLLECTED, "it is no notebook") for name in ("ada", "bob")
    }
    record = Collected({"ada": COLLECTED, "cyd": COLLECTED}, refused)
    path.write_text(record.to_json(), encoding="utf-8")
    # bob's problem is of an earlier file of his
    timing = [Graded("bob", None, "it is broken"), Graded("dan", None, "it is broken")]
    marks = class_marks(course, Assignment("m1", tmp_path), [], timing)
    assert sorted((mark.student, mark.status, mark.note) for mark in marks) == [
        (
            "ada",
            "no notebook",
            "it is no notebook",
        ),
        (
            "bob",
            "could not be graded",
            "it is broken; came later, and was not taken: it is no notebook",
        ),
        ("cyd", "withdrawn", "what was collected is not in submitted/ any more"),
        ("dan", "could not be graded", "it is broken"),
    ]
