"""Times are read with their zones, as nbgrader reads them where it reads them right; nothing is
guessed.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from nbgrader.utils import parse_utc

from autograder.basics.times import read_time

NOON = datetime(2026, 10, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-10-02 12:00:00 UTC",
        "2026-10-02 12:00:00.000000 UTC",
        "2026-10-02T12:00:00Z",
        "2026-10-02 07:00:00 EST",
        "2026-10-02 14:00:00 Europe/Berlin",
        "2026-10-02 08:00:00 America/New_York",
        "2026-10-02T14:00:00+02:00",
        "2026-10-02T14:00:00+0200",
        "2026-10-02 14:00:00 GMT+2",
    ],
)
def test_what_nbgrader_reads_is_read_the_same(text: str) -> None:
    assert read_time(text) == NOON
    assert parse_utc(text) == NOON.replace(tzinfo=None)


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("2026-10-02 14:00:00 +0200", ""),  # for nbgrader 200 seconds
        ("2026-10-02 14:00 +02:00", ""),
        ("2026-10-02 17:30:00 +0530", ""),
        ("2026-10-02 12:00:00", "UTC"),
        ("2026-10-02 14:00", "Europe/Berlin"),
        (
            "2026-10-02 14:00:00 CEST",
            "Europe/Berlin",
        ),  # known by the course's zone alone
        ("Friday, October 2, 2026 8:00:00 AM EDT", "America/New_York"),
        ("Friday, 2 October 2026 13:00:00 o'clock BST", "Europe/London"),
        ("Friday, October 2, 2026 7:00:00 AM EST", ""),
        ("2 Oct 2026 12:00 UTC", ""),
    ],
)
def test_zones_and_months_in_words(text: str, zone: str) -> None:
    assert read_time(text, zone) == NOON


def test_a_note_of_nbgraders_without_a_zone_is_in_utc() -> None:
    assert (
        read_time("2026-10-02 12:00:00.000000", "Europe/Berlin", unnamed="UTC") == NOON
    )
    assert read_time("2026-10-02 14:00:00 CEST", "Europe/Berlin", unnamed="UTC") == NOON


def test_midnight_and_noon_on_a_clock_of_twelve_hours() -> None:
    assert read_time("October 2, 2026 12:00:00 PM UTC") == NOON
    assert read_time("October 2, 2026 12:00:00 AM UTC") == datetime(
        2026, 10, 2, tzinfo=UTC
    )


@pytest.mark.parametrize(
    ("text", "zone", "why"),
    [
        ("2026-10-02 12:00:00", "", "has no time zone"),
        ("2026-10-02 12:00:00 BST", "", "'BST' is not known"),
        ("2026-10-02 12:00:00 BST", "Europe/Berlin", "'BST' is not known"),
        ("2026-10-02 12:00:00 Nowhere/City", "", "'Nowhere/City' is not known"),
        ("2026-10-02 12:00:00 ../../etc/passwd", "", "not known"),
        ("2026-10-02 12:00:00 /etc/localtime", "", "not known"),
        ("2026-10-02 12:00:00 Europe", "", "'Europe' is not known"),
        ("2026-10-02 14:00:00 +9900", "", "offset"),
        ("2026-02-30 12:00:00 UTC", "", "day"),
        ("October 2, 2026 13:00 PM UTC", "", "no 13 o'clock"),
        ("02.10.2026 12:00", "UTC", "is no time"),
        ("0001-01-01 00:00 +1400", "", "no time"),
        ("soon", "", "is no time"),
        ("", "", "is no time"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, zone: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_time(text, zone)
