from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from autograder.course import Course, Late, load_course
from autograder.marks.late_policy import (
    UNKNOWN,
    GradebookTimes,
    Lateness,
    apply_late,
    class_lateness,
    measure_lateness,
    read_timestamp,
    spend_late_days,
)

PER_DAY = Late("per_day", penalty_per_day=0.1, grace_minutes=15)
DAY = 24 * 60


@pytest.mark.parametrize(
    ("late", "minutes", "expected"),
    [
        (Late("none"), 10_000, 80.0),
        (Late("zero", grace_minutes=15), 15, 80.0),
        (Late("zero", grace_minutes=15), 16, 0.0),
        (PER_DAY, 0, 80.0),
        (PER_DAY, -30, 80.0),
        (PER_DAY, 15, 80.0),
        (PER_DAY, 15.5, 70.0),  # one day begun: 10% of 100
        (PER_DAY, DAY + 15, 70.0),
        (PER_DAY, DAY + 16, 60.0),
        (PER_DAY, 8 * DAY, 0.0),
        (PER_DAY, 20 * DAY, 0.0),  # never below 0
    ],
)
def test_what_lateness_costs(late: Late, minutes: float, expected: float) -> None:
    assert apply_late(80.0, 100.0, minutes, late) == expected


def test_a_penalty_leaves_no_dust() -> None:
    assert apply_late(1.0, 3.0, 1, Late("per_day", penalty_per_day=0.1)) == 0.7


DUE = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def handed_in(folder: Path, text: str) -> Path:
    (folder / "timestamp.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("text", "extension", "minutes"),
    [
        ("2026-03-01 13:30:00 +0100", None, 30.0),
        ("2026-03-01 12:30:00 +0100", None, 0.0),
        ("2026-03-01 14:30:00 Europe/Berlin", None, 90.0),
        ("2026-03-03 12:30:00 UTC", timedelta(days=2), 30.0),
        ("2026-03-09 13:00:00 UTC", datetime(2026, 3, 9, 12, tzinfo=UTC), 60.0),
    ],
)
def test_lateness_is_the_submissions_own_time(
    tmp_path: Path, text: str, extension: timedelta | datetime | None, minutes: float
) -> None:
    moment = read_timestamp(handed_in(tmp_path, text))
    assert measure_lateness(DUE, moment, extension) == Lateness(minutes)


def test_what_a_platform_marks_as_late_counts_where_it_gives_no_time() -> None:
    late = Late("per_day", penalty_per_day=0.1, grace_minutes=15)
    marked = measure_lateness(DUE, None, marked=True, grace_minutes=15)
    assert marked.minutes is not None
    # one day begun, the least that it can be
    assert apply_late(80.0, 100.0, marked.minutes, late) == 70.0
    assert "counted as one day begun" in marked.note
    assert measure_lateness(DUE, None, marked=False) == Lateness(0.0)
    assert measure_lateness(DUE, None) == Lateness(None, UNKNOWN)
    assert measure_lateness(DUE, None, timedelta(days=2), marked=True).unreadable


def late_course(root: Path, late_days: int = 0) -> Course:
    """Two assignments, due on 1 and 8 March at noon."""
    (root / "course.toml").write_text(
        f"""
[late]
policy = "per_day"
penalty_per_day = 0.1
late_days = {late_days}
[due]
warmup = "2026-03-01 12:00 UTC"
main = "2026-03-08 12:00 UTC"
""",
        encoding="utf-8",
    )
    return load_course(root)


def put(course: Course, student: str, assignment: str, text: str) -> None:
    folder = course.submitted / student / assignment
    folder.mkdir(parents=True)
    handed_in(folder, text)


@pytest.mark.parametrize(
    "text", ["soon", "2026-03-01 14:30:00 Nowhere/City", "2026-03-01 14:30:00 BST"]
)
def test_a_time_that_cannot_be_read_is_neither_late_nor_in_time(
    tmp_path: Path, text: str
) -> None:
    course = late_course(tmp_path)
    put(course, "ada", "main", text)
    late = class_lateness(course, ["main"], ["ada"], {})["main"]["ada"]
    assert (late.minutes, late.unreadable) == (None, True)
    assert late.note.startswith("when it was handed in is not known: ")


def test_a_time_that_did_not_come_along_readable_is_not_guessed(tmp_path: Path) -> None:
    times = {"main": {"ada": "'soon' is no time"}}
    late = class_lateness(late_course(tmp_path), ["main"], ["ada"], {}, times)
    assert late["main"]["ada"] == Lateness(
        None, "when it was handed in is not known: 'soon' is no time", unreadable=True
    )


def test_hand_in_times_of_the_file_the_platform_and_the_gradebook_in_this_order(
    tmp_path: Path,
) -> None:
    course = late_course(tmp_path)
    put(course, "ada", "main", "2026-03-08 12:30:00 UTC")
    hour = datetime(2026, 3, 8, 13, tzinfo=UTC)
    students = ("ada", "ben", "cay", "dan")
    gradebook = {
        "main": GradebookTimes(
            granted={"cay": timedelta(minutes=90)},
            handed_in=dict.fromkeys(("ada", "ben", "cay"), hour + timedelta(hours=1)),
        )
    }
    times = {"main": {"ada": hour, "ben": hour}}
    late = class_lateness(course, ["main"], students, gradebook, times)["main"]
    assert late == {
        "ada": Lateness(30.0),
        "ben": Lateness(60.0),
        "cay": Lateness(30.0),
        "dan": Lateness(None, UNKNOWN),
    }


def test_an_earlier_assignment_uses_late_days_up(tmp_path: Path) -> None:
    course = late_course(tmp_path, late_days=3)
    put(course, "ada", "warmup", "2026-03-02 13:00:00 UTC")  # 25 hours: two days begun
    put(course, "ada", "main", "2026-03-10 11:00:00 UTC")  # 47 hours: two days begun
    put(course, "ben", "main", "2026-03-10 11:00:00 UTC")
    for wanted in (["main"], ["warmup", "main"]):
        late = class_lateness(course, wanted, ["ada", "ben"], {})
        assert list(late) == wanted
        assert late["main"] == {
            "ada": Lateness(23 * 60.0, days_used=1),
            "ben": Lateness(0.0, days_used=2),
        }
    assert late["warmup"]["ada"] == Lateness(0.0, days_used=2)


def test_late_days_are_spent_in_the_order_of_the_due_times() -> None:
    per_day = Late("per_day", penalty_per_day=0.1, late_days=3)
    days = spend_late_days(
        [Lateness(DAY + 1.0), Lateness(0.0), Lateness(2.0 * DAY), Lateness(None)],
        per_day,
    )
    assert [(one.minutes, one.days_used) for one in days] == [
        (0.0, 2),
        (0.0, 0),
        (DAY, 1),
        (None, 0),
    ]


def test_where_late_is_nothing_a_late_day_is_not_spent_in_vain() -> None:
    zero = Late("zero", late_days=2)
    days = spend_late_days([Lateness(2.5 * DAY), Lateness(1.5 * DAY)], zero)
    assert [(one.minutes, one.days_used) for one in days] == [(2.5 * DAY, 0), (0.0, 2)]


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01 12:30:00.500000 UTC\n",
        "2026-03-01 12:30:00.500000",
        "2026-03-01T13:30:00.500000+01:00",
    ],
)
def test_the_timestamp_beside_a_submission(tmp_path: Path, text: str) -> None:
    (tmp_path / "timestamp.txt").write_text(text, encoding="utf-8")
    assert read_timestamp(tmp_path) == datetime(
        2026, 3, 1, 12, 30, 0, 500_000, tzinfo=UTC
    )


def test_no_timestamp_is_not_a_time(tmp_path: Path) -> None:
    assert read_timestamp(tmp_path) is None
    (tmp_path / "timestamp.txt").write_text("soon", encoding="utf-8")
    with pytest.raises(ValueError):
        read_timestamp(tmp_path)
