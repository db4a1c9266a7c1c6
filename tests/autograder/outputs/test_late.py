from datetime import UTC, datetime, timedelta, timezone

import pytest

from autograder.course import Late
from autograder.outputs.late import apply_late, minutes_late, submitted_at

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
def test_what_lateness_costs(late, minutes, expected):
    assert apply_late(80.0, 100.0, minutes, late) == expected


def test_a_penalty_leaves_no_dust():
    assert apply_late(1.0, 3.0, 1, Late("per_day", penalty_per_day=0.1)) == 0.7


def test_lateness_is_the_submissions_own_time():
    due = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    berlin = timezone(timedelta(hours=1))
    assert minutes_late(datetime(2026, 3, 1, 13, 30, tzinfo=berlin), due) == 30.0
    assert minutes_late(datetime(2026, 3, 1, 12, 30, tzinfo=berlin), due) == 0.0


def test_a_time_without_a_zone_decides_nothing():
    with pytest.raises(ValueError, match="time zone"):
        minutes_late(datetime(2026, 3, 1), datetime(2026, 3, 1, tzinfo=UTC))


@pytest.mark.parametrize("text", ["2026-03-01 12:30:00.500000 UTC\n", "2026-03-01 12:30:00.500000",
                                  "2026-03-01T13:30:00.500000+01:00"])  # fmt: skip
def test_the_timestamp_beside_a_submission(tmp_path, text):
    (tmp_path / "timestamp.txt").write_text(text, encoding="utf-8")
    assert submitted_at(tmp_path) == datetime(2026, 3, 1, 12, 30, 0, 500_000, tzinfo=UTC)


def test_no_timestamp_is_not_a_time(tmp_path):
    assert submitted_at(tmp_path) is None
    (tmp_path / "timestamp.txt").write_text("soon", encoding="utf-8")
    with pytest.raises(ValueError):
        submitted_at(tmp_path)
