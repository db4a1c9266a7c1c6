"""When a student is late, what students may see before and after the due time, and where two
sources of times differ.
"""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from stored_results import outcome, question

from autograder.course import Course
from autograder.course.course import FeedbackSettings, Late
from autograder.course.roster import Person
from autograder.marks.late_policy import (
    GradebookTimes,
    Lateness,
    apply_late,
    class_lateness,
    days_begun,
    describe_conflicts,
    due_time,
    measure_lateness,
    shown_now,
    spend_late_days,
)
from autograder.marks.rubric import RubricItem, written_statistics
from autograder.records.model import ManualGrades, ManualScore, Result, SmallExample

DUE = datetime(2026, 10, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
FUTURE = datetime.now(UTC) + 30 * DAY


def course(**settings: Any) -> Course:
    return Course(Path("/nowhere"), **settings)


# days and penalties


@pytest.mark.parametrize(
    ("minutes", "days"),
    [(-5.0, 0), (0.0, 0), (30.0, 0), (30.5, 1), (1470.0, 1), (1470.5, 2)],
)
def test_days_are_begun_after_the_grace(minutes: float, days: int) -> None:
    late = Late(policy="per_day", grace_minutes=30)
    assert days_begun(minutes, late) == days


def test_a_penalty_is_a_share_of_the_full_points_and_never_more_than_all() -> None:
    late = Late(policy="per_day", penalty_per_day=0.3)
    assert apply_late(9.0, 10.0, 1441.0, late) == 3.0
    assert apply_late(5.0, 10.0, 1441.0, late) == 0.0
    assert apply_late(5.0, 10.0, 0.0, late) == 5.0
    assert apply_late(9.0, 10.0, 1.0, Late(policy="zero")) == 0.0
    assert apply_late(9.0, 10.0, 1.0, Late(policy="none")) == 9.0
    # 1/3 of 10 points have six digits
    third = Late(policy="per_day", penalty_per_day=1 / 3)
    assert apply_late(9.0, 10.0, 1.0, third) == 5.666667


def test_lateness_counts_from_the_students_own_due_time() -> None:
    assert measure_lateness(DUE, DUE).minutes == 0.0
    assert measure_lateness(DUE, DUE + HOUR).minutes == 60.0
    assert measure_lateness(DUE, DUE - HOUR).minutes == 0.0
    assert measure_lateness(DUE, DUE + HOUR, 0.5 * HOUR).minutes == 30.0
    assert measure_lateness(DUE, DUE + HOUR, DUE + 2 * HOUR).minutes == 0.0
    # an extension until before the due time takes nothing away
    assert measure_lateness(DUE, DUE + HOUR, DUE - HOUR).minutes == 60.0
    # a known time counts before a platform's mark
    assert measure_lateness(DUE, DUE, marked=True) == Lateness(0.0)


def test_a_platforms_mark_counts_where_no_time_is_known() -> None:
    unknown = measure_lateness(DUE, None)
    assert unknown == Lateness(None, "no hand-in time is known: nothing is taken off")
    assert measure_lateness(DUE, None, marked=False) == Lateness(0.0)
    late = measure_lateness(DUE, None, marked=True, grace_minutes=30)
    assert late.minutes == 31.0
    assert measure_lateness(DUE, None, marked=True).minutes == 1.0
    assert late.note.endswith("counted as one day begun")
    assert not late.unreadable
    extended = measure_lateness(DUE, None, DAY, marked=True)
    assert (extended.minutes, extended.unreadable) == (None, True)


def test_late_days_are_spent_as_far_as_they_go() -> None:
    late = Late(policy="per_day", late_days=3)
    in_order = [Lateness(1500.0), Lateness(None), Lateness(0.0), Lateness(3000.0)]
    covered = spend_late_days(in_order, late)
    assert covered[0] == Lateness(0.0, days_used=2)
    assert covered[1] == Lateness(None)
    assert covered[2] == Lateness(0.0)
    # one day is left, of three that were begun
    assert covered[3] == Lateness(1560.0, days_used=1)
    all_or_nothing = dataclasses.replace(late, policy="zero")
    assert spend_late_days(in_order, all_or_nothing)[3] == Lateness(3000.0)


# what students see


def result() -> Result:
    lost = question("double", outcome("test_a", 0.0, 1.0))
    lost = dataclasses.replace(lost, example=SmallExample("double(1)", "1", "2"))
    return Result("m1", "ada", "sha", "suite", "strict", 0.0, 1.0, (lost,), ())


@pytest.mark.parametrize(
    ("examples", "due", "is_shown"),
    [
        ("always", None, True),
        ("always", FUTURE, True),
        ("never", DUE, False),
        ("after due", DUE, True),
        ("after due", FUTURE, False),
        ("after due", None, False),
    ],
)
def test_examples_are_shown_when_the_course_says(
    examples: str, due: datetime | None, is_shown: bool
) -> None:
    settings = course(
        feedback_settings=FeedbackSettings(examples), due={"m1": due} if due else {}
    )
    shown = shown_now(settings, "m1", "ada", None, result())
    assert (shown.questions[0].example is not None) == is_shown
    assert shown.score == 0.0


def test_a_due_time_is_the_students_by_name_or_by_the_class_list() -> None:
    settings = course(
        due={"m1": DUE}, extensions={"m1": {"ADA": DAY, "s2": DUE + HOUR}}
    )
    assert due_time(settings, "m1", "ada", None) == DUE + DAY
    bob = Person("s2", "Bob", "", "", {})
    assert due_time(settings, "m1", "bob_7", bob) == DUE + HOUR
    assert due_time(settings, "m1", "bob_7", None) == DUE
    assert due_time(settings, "m2", "ada", None) is None


# two sources


def test_times_that_differ_in_the_gradebook_are_told(tmp_path: Path) -> None:
    settings = Course(
        tmp_path, due={"m1": DUE}, extensions={"m1": {"ada": DAY, "cyd": 2.5 * DAY}}
    )
    times = GradebookTimes(
        DUE + HOUR, {"ada": DAY, "bob": DAY, "cyd": DAY, "dan": HOUR}
    )
    assert describe_conflicts(settings, "m1", {"m1": times}) == [
        "m1 is due 2026-10-01 12:00 UTC in course.toml and 2026-10-01 13:00 UTC in "
        "nbgrader's gradebook: course.toml's time counts",
        "cyd has 2.5 days more for m1 in course.toml and 1 day in nbgrader's gradebook: "
        "course.toml's extension counts; take one of them out",
    ]
    same = GradebookTimes(DUE, {"ada": DAY})
    assert describe_conflicts(settings, "m1", {"m1": same}) == []
    assert describe_conflicts(settings, "m1", {"m2": times}) == []
    # what is never due has no extension that could differ
    undated = GradebookTimes(None, {"cyd": DAY})
    longer = Course(tmp_path, extensions={"m1": {"cyd": 2 * DAY}})
    assert describe_conflicts(longer, "m1", {"m1": undated}) == []


def test_a_class_is_late_by_its_gradebook_too(tmp_path: Path) -> None:
    late = Late(policy="per_day")
    times = GradebookTimes(
        DUE, {"bob": HOUR}, {"ada": DUE + HOUR, "bob": DUE + HOUR, "cyd": DUE}
    )
    settings = Course(tmp_path, late=late)
    lateness = class_lateness(settings, ["m1"], ["ada", "bob", "cyd"], {"m1": times})
    minutes = {student: entry.minutes for student, entry in lateness["m1"].items()}
    assert minutes == {"ada": 60.0, "bob": 0.0, "cyd": 0.0}
    # course.toml's due time counts before the gradebook's
    earlier = dataclasses.replace(settings, due={"m1": DUE - HOUR})
    lateness = class_lateness(earlier, ["m1"], ["cyd"], {"m1": times})
    assert lateness["m1"]["cyd"].minutes == 60.0
    assert class_lateness(settings, ["m2"], ["ada"], {"m1": times}) == {}
    without = Course(tmp_path)
    assert class_lateness(without, ["m1"], ["ada"], {"m1": times}) == {}


def test_a_platforms_time_counts_and_one_that_cannot_be_read_is_told(
    tmp_path: Path,
) -> None:
    settings = Course(tmp_path, late=Late(policy="per_day"), due={"m1": DUE})
    times: dict[str, datetime | str] = {"ada": DUE + HOUR}
    times["bob"] = "yesterday is no time"
    gradebook = {"m1": GradebookTimes(None, {}, {"ada": DUE, "bob": DUE})}
    lateness = class_lateness(
        settings, ["m1"], ["ada", "bob"], gradebook, {"m1": times}
    )
    assert lateness["m1"]["ada"] == Lateness(60.0)
    assert lateness["m1"]["bob"] == Lateness(
        None,
        "when it was handed in is not known: yesterday is no time",
        unreadable=True,
    )


# marking schemes

ITEMS = (RubricItem(1, 2.0, "variances add up"), RubricItem(2, 1.0, "the root"))


def given(
    student: str, points: float | None, comment: str, **more: Any
) -> ManualGrades:
    score = ManualScore("why", 3.0, points, comment=comment, **more)
    return ManualGrades(student, (score,))


def test_a_written_answer_counts_those_whom_a_person_has_marked() -> None:
    """3, 2.5 and 0 points: the mean is 1.83 repeating."""
    (statistics,) = written_statistics(
        [
            given("ada", 3.0, "#1 #2"),
            given("bob", 2.5, "#1"),
            given("cyd", 0.0, ""),
            given("dan", None, "#1"),
            given("eve", 1.0, "#1", waits=True),
        ],
        {"why": ITEMS},
    )
    assert (statistics.name, statistics.max_points) == ("why", 3.0)
    assert statistics.marked == 3
    assert statistics.mean == pytest.approx(5.5 / 3)
    assert statistics.items == ((ITEMS[0], 2), (ITEMS[1], 1))
    assert statistics.other_points == ("bob",)
    assert written_statistics([given("dan", None, "")], {}) == ()
    worthless = RubricItem(3, 0.0, "repeats the question")
    (statistics,) = written_statistics(
        [given("cyd", 0.0, "#3")], {"why": (*ITEMS, worthless)}
    )
    assert statistics.other_points == ()


def test_an_item_names_its_points() -> None:
    assert str(ITEMS[0]) == "variances add up (2 points)"
    assert str(ITEMS[1]) == "the root (1 point)"
    assert str(RubricItem(3, 0.5, "half")) == "half (0.5 points)"
