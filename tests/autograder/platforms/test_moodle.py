"""Marks into Moodle's offline grading worksheet. The format is that of moodle,
`mod/assign/gradingtable.php` (what it writes), `mod/assign/feedback/offline/importgradeslib.php`
and `locallib.php` (what it takes, and which rows it skips),
`mod/assign/feedback/file/importziplib.php` (what a feedback file changes) and Moodle's language
packs, as read on 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from platform_marks import NOTHING, arrived, called, rows

from autograder.basics.tables import read_table
from autograder.marks.marks import Mark, mark_from_result
from autograder.outputs.difference import Difference
from autograder.platforms.moodle import new_worksheet
from autograder.platforms.moodle_worksheet import Worksheet, read_worksheet
from autograder.records.model import Result

WORKSHEET = (
    "\ufeffIdentifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\n"
    "Participant 7,Ada Lovelace,ada@example.org,Submitted for grading - ,,20.00,Yes,"
    '"Monday, 2 March 2026, 1:00 PM","Monday, 2 March 2026, 3:00 PM",="kept"\n'
    "Participant 8,Max Roe,max@example.org,No submission,3.00,20.00,Yes,-,-,\n"
    'Participant 9,Zoe Lee,zoe@example.org,Submitted for grading - ,,20.00,No,"Sunday, 1 March '
    '2026, 9:59 AM",-,\n'
    "Participant 10,Ira Poe,ira@example.org,Submitted for grading - ,11.00,20.00,Yes,-,-,\n"
    "Participant 11,Eve Day,eve@example.org,Submitted for grading - ,,20.00,Yes,-,-,\n"
)
TICK = (
    "*Allow updating records that have been modified more recently in Moodle than in the "
    "spreadsheet*"
)
ORDER = (
    "upload this worksheet before the feedback files: Moodle skips whoever's grade changed after "
    "the worksheet was "
    f"downloaded, and a feedback file counts as a change (or tick {TICK})"
)


@pytest.fixture
def ada(plain: Result) -> Mark:
    """11 of 20, nobody waits."""
    return mark_from_result(plain)


def worksheet(text: str = WORKSHEET, column: str = "") -> Worksheet:
    return read_worksheet(*read_table(text.encode()), "attention", column)


def filled(
    marks: list[Mark],
    students: Mapping[int, str],
    text: str = WORKSHEET,
    column: str = "",
) -> tuple[list[list[str]], Difference]:
    made, difference = worksheet(text, column).fill(marks, students)
    return rows(made), difference


def test_grades_are_filled_in_and_everything_else_is_kept(ada: Mark) -> None:
    table, _ = filled([ada], {1: "ada"})
    before = rows(WORKSHEET.removeprefix("\ufeff"))
    assert table[1] == [*before[1][:4], "11", *before[1][5:]]
    assert table[0] == before[0]
    assert table[2:] == before[2:]


def test_the_difference_says_what_becomes_of_everybody(ada: Mark) -> None:
    marks = [
        ada,
        called(ada, "zoe"),
        called(ada, "ira"),
        called(ada, "eve", 21.5),
        called(ada, "lost"),
        NOTHING,
    ]
    table, difference = filled(
        marks, {1: "ada", 2: "bob", 3: "zoe", 4: "ira", 5: "eve"}
    )
    assert [row[4] for row in table[1:]] == ["11", "3.00", "", "11.00", ""]
    assert difference.lines("Moodle") == [
        "Moodle: 1 to get a mark, 2 to keep what is there, 2 to be skipped there",
        "  Zoe Lee (Participant 9) will be skipped and keeps none (here 11): "
        "its grade cannot be changed, since it is locked or overridden in Moodle's gradebook",
        "  Eve Day (Participant 11) will be skipped and keeps none (here 21.5): it is above the "
        "maximum of 20.00",
        "  Ada Lovelace (Participant 7) gets 11 (had none)",
        "  Max Roe (Participant 8) keeps 3.00: handed in nothing",
        "  Ira Poe (Participant 10) keeps 11.00: the same as here",
        "  lost has a mark and is not known there",
        ORDER,
    ]


@pytest.mark.parametrize("heading", ["Maximum grade", "Maximum Grade"])
def test_another_maximum_in_moodle_is_refused(ada: Mark, heading: str) -> None:
    text = WORKSHEET.replace("Maximum Grade", heading).replace("20.00", "50.00")
    with pytest.raises(
        ValueError,
        match=r"the maximum grade in Moodle is 50\.00, and the marks here are out of 20",
    ):
        filled([ada], {1: "ada"}, text)


def test_a_scale_takes_no_points(ada: Mark) -> None:
    text = WORKSHEET.replace("Maximum Grade", "Scale").replace("20.00", '"no\nyes"')
    with pytest.raises(ValueError, match="words of a scale"):
        filled([ada], {1: "ada"}, text)


GERMAN = (
    'ID,"Vollständiger Name",E-Mail-Adresse,Status,Gruppe,Bewertung,Bestwertung,"Bewertung kann '
    'geändert werden",'
    '"Zuletzt geändert (Abgabe)","Zuletzt geändert (Bewertung)","Feedback als Kommentar"\n'
    'Teilnehmer/in7,"Ada Lovelace",ada@example.org,"Zur Bewertung abgegeben - ",A,,"20,00",Ja,'
    '"Donnerstag, 1. Oktober 2026, 21:59",-,\n'
    'Teilnehmer/in8,"Max Roe",max@example.org,"Zur Bewertung abgegeben - ",A,"3,50","20,00",Ja,'
    '"Dienstag, 3. März 2026, 08:05","Freitag, 2. Oktober 2026, 10:00",\n'
    'Teilnehmer/in9,"Zoe Lee",zoe@example.org,"Zur Bewertung abgegeben - '
    '",B,"11,00","20,00",Nein,-,-,\n'
)


def test_a_worksheet_in_german(ada: Mark) -> None:
    marks = [ada, called(ada, "max", 11.5), called(ada, "zoe", 12.0)]
    table, difference = filled(marks, {1: "ada", 2: "max", 3: "zoe"}, GERMAN)
    assert [row[5] for row in table[1:]] == ["11", "11,5", "11,00"]
    assert [(c.person, c.outcome, c.reason) for c in difference.changes] == [
        ("Ada Lovelace (Participant 7)", "gets", ""),
        ("Max Roe (Participant 8)", "gets", f"only where you tick {TICK}"),
        (
            "Zoe Lee (Participant 9)",
            "skipped",
            "its grade cannot be changed, since it is locked or overridden in Moodle's gradebook",
        ),
    ]
    assert difference.notes[1].startswith(
        "Moodle reads when a grade was changed in English only"
    )


def test_a_maximum_in_german_is_a_maximum(ada: Mark) -> None:
    with pytest.raises(ValueError, match="the maximum grade in Moodle is 50,00"):
        filled([ada], {1: "ada"}, GERMAN.replace("20,00", "50,00"))


def test_hand_in_times_in_english_and_in_german() -> None:
    assert worksheet().hand_in_times("Europe/Berlin") == {
        1: datetime(2026, 3, 2, 12, 0, tzinfo=UTC),
        3: datetime(2026, 3, 1, 8, 59, tzinfo=UTC),
    }
    assert worksheet(GERMAN).hand_in_times("Europe/Berlin") == {
        1: datetime(2026, 10, 1, 19, 59, tzinfo=UTC),
        2: datetime(2026, 3, 3, 7, 5, tzinfo=UTC),
    }


def test_a_time_without_a_zone_cannot_be_read() -> None:
    times = worksheet().hand_in_times("")
    assert sorted(times) == [1, 3]
    assert "has no time zone" in str(times[1])


FINNISH = (
    "Tunniste,Koko nimi,Tila,Arvosana,Paras arvosana,Muutettavissa,Muokattu\n"
    "Osallistuja 7,Ada Lovelace,Palautettu,,20.00,Kyllä,-\n"
)


def test_a_language_that_is_not_known_needs_the_name_of_its_column(ada: Mark) -> None:
    with pytest.raises(
        ValueError, match="`--column` names the grades, of: Tunniste, Koko nimi"
    ):
        worksheet(FINNISH)
    table, difference = filled([ada], {1: "ada"}, FINNISH, "Arvosana")
    assert table[1][3] == "11"
    assert difference.notes[1] == (
        "whether grades are locked cannot be told: the worksheet's language is not known here"
    )
    with pytest.raises(ValueError, match="the maximum grade in Moodle is 50"):
        filled([ada], {1: "ada"}, FINNISH.replace("20.00", "50.00"), "Arvosana")


def test_a_file_without_a_column_that_moodle_asks_for_is_refused() -> None:
    with pytest.raises(ValueError, match="not a grading worksheet"):
        worksheet("Identifier,Full name,Grade\nParticipant 7,Ada,\n")


# Without a worksheet of Moodle's


def test_a_file_of_our_own_has_every_column_without_which_moodle_refuses_it(
    ada: Mark,
) -> None:
    text, difference = new_worksheet(
        [arrived(ada, "moodle", "12345", "Ada Lovelace")], "attention"
    )
    assert rows(text) == [
        ["Identifier", "Full name", "Grade", "Last modified (grade)"],
        ["Participant 12345", "Ada Lovelace", "11", "-"],
    ]
    assert difference.notes == (
        "what Moodle has is not known without `--roster`; it replaces grades only where "
        f"you tick {TICK}",
    )


def test_one_odd_name_changes_nobodys_identifier(ada: Mark) -> None:
    odd = called(
        arrived(ada, "moodle", "7", "Pat O’Brien – Roe"),
        "Pat O_Brien _ Roe_7-3f2a9c81d2",
    )
    text, difference = new_worksheet([called(ada, "Max Roe_8"), odd, ada], "attention")
    assert [row[:2] for row in rows(text)[1:]] == [
        ["Participant 8", "Max Roe"],
        ["Participant 7", "Pat O’Brien – Roe"],
    ]
    assert difference.missing == ("ada",)
