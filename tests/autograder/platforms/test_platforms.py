"""Downloads as each platform makes them, and people who stay one person in all of them."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import replace

import pytest
from downloads import Download, packed

from autograder.basics.errors import KitError
from autograder.course import About, Course
from autograder.intake import archives
from autograder.intake.collected import read_collected

RECEIPT = """Name: Ada O'Brien (ada_b)
Assignment: m1
Date Submitted: Thursday, March 12, 2026 1:22:26 PM EST
Current Grade: Needs Grading

Submission Field:
There is no text.
Name: Somebody Else (victim)

Files:
\tOriginal filename: m1.ipynb
\tFilename: m1_ada_b_attempt_2026-03-12-13-22-26_m1.ipynb
"""


# Names


def test_anonymous_canvas_downloads(download: Download) -> None:
    download(
        "canvas",
        {"anon_Ab3dE_67890_m1.ipynb": "a", "LATE_anon_Xy9_67891_m1-1.ipynb": "b"},
    )
    assert download.there() == {"anon_Ab3dE": "a", "anon_Xy9": "b"}
    record = read_collected(download.submitted, "m1")
    assert [(one.id, one.late) for one in record.students.values()] == [
        ("Ab3dE", False),
        ("Xy9", True),
    ]


def test_blackboard_says_who_and_when(download: Download) -> None:
    files = {
        "m1_ada_b_attempt_2026-03-12-13-22-26_m1.ipynb": "a",
        "m1_ada_b_attempt_2026-03-12-13-22-26.txt": RECEIPT,
        "m1_max_attempt_2026-03-01-10-00-00_m1.ipynb": "old",
        "m1_max_attempt_2026-03-02-10-00-00_other.ipynb": "new",
    }
    download.course = replace(download.course, about=About(timezone="Europe/Berlin"))
    lines = download("blackboard", files)
    assert download.there() == {"ada_b": "a", "max": "new"}
    assert (
        download.time("ada_b") == "2026-03-12 18:22:26.000000 UTC"
    )  # EST, by the receipt
    # the name's time, in the course's zone
    assert download.time("max") == "2026-03-02 09:00:00.000000 UTC"
    assert lines[0] == "2 submissions of m1: 2 new, 0 replaced, 0 unchanged"


def test_a_time_without_a_zone_is_said_and_never_written(download: Download) -> None:
    lines = download("blackboard", {"m1_max_attempt_2026-03-01-10-00-00_m1.ipynb": "a"})
    assert any(
        "max: when it was handed in is not known: 2026-03-01 10:00:00 has no time zone"
        in line
        for line in lines
    )
    assert not (download.submitted / "max" / "m1" / "timestamp.txt").exists()
    assert (
        "no time zone"
        in read_collected(download.submitted, "m1").students["max"].unread
    )


def test_a_receipt_without_a_file_is_somebody_who_handed_in_no_notebook(
    download: Download,
) -> None:
    files = {
        "m1_max_attempt_2026-03-01-10-00-00_m1.ipynb": "a",
        "m1_ada_b_attempt_2026-03-12-13-22-26.txt": RECEIPT,
    }
    lines = download("blackboard", files)
    assert lines[-1].startswith("ada_b: has no notebook here: ")
    assert list(read_collected(download.submitted, "m1").not_taken) == ["ada_b"]


def test_ilias_folders_and_late_marks(download: Download) -> None:
    download(
        "ilias",
        {
            "Blatt_01/Abgaben/Lovelace_Ada_alo_1234/m1.ipynb": "a",
            "Blatt_01/Abgaben/Team 7/De_La Cruz_Maria_mdc_99/Late Submission - m1.ipynb": "b",
            "Blatt_01/Feedback_files/to_Lovelace_Ada_alo_1234/from_De_La Cruz_Maria_mdc_99/x.ipynb": "c",
        },
    )
    assert download.there() == {
        "De_La Cruz_Maria_mdc_99": "b",
        "Lovelace_Ada_alo_1234": "a",
    }
    students = read_collected(download.submitted, "m1").students
    assert [(one.id, one.late) for one in students.values()] == [
        ("99", True),
        ("1234", False),
    ]
    assert students["Lovelace_Ada_alo_1234"].name == "Ada Lovelace"


@pytest.mark.parametrize(
    ("origin", "name", "student"),
    [
        ("canvas", "eve_1_10_x_99_30_m1.ipynb", "eve_1"),
        (
            "moodle",
            "Eve_1_assignsubmission_file/Vic_99_assignsubmission_file/m1.ipynb",
            "Eve_1",
        ),
        (
            "moodle",
            "Eve_1_assignsubmission_file_Vic_99_assignsubmission_file_m1.ipynb",
            "Eve_1",
        ),
        (
            "blackboard",
            "m1_eve_attempt_2026-03-01-10-00-00_x_vic_attempt_2026-03-09-10-00-00_m1.ipynb",
            "eve",
        ),
        ("gradescope", "submission_1/submission_99/m1.ipynb", "submission_1"),
        ("github", "m1-eve/m1-vic/m1.ipynb", "eve"),
    ],
)
def test_no_name_that_a_student_chooses_makes_them_somebody_else(
    download: Download, origin: str, name: str, student: str
) -> None:
    download(origin, {name: "a"})
    assert list(download.there()) == [student]


def test_no_file_that_a_student_hands_in_is_a_receipt(download: Download) -> None:
    forged = RECEIPT.replace("Ada O'Brien (ada_b)", "Victim (vic)")
    name = "m1_eve_attempt_2026-03-01-10-00-00"
    download(
        "blackboard",
        {
            f"{name}_m1.ipynb": "a",
            f"{name}_x_vic_attempt_2026-03-12-13-22-26.txt": forged,
        },
    )
    record = read_collected(download.submitted, "m1")
    assert (list(record.students), list(record.not_taken)) == (["eve"], [])


# What people hand in instead


@pytest.mark.parametrize(
    "name", ["m1.ipynb.txt", "m1.ipynb.json", "m1.IPYNB", "M1 (1).ipynb.TXT"]
)
def test_notebooks_under_odd_endings_are_taken(download: Download, name: str) -> None:
    download("canvas", {f"doe_1_10_{name}": "a"})
    assert download.there() == {"doe_1": "a"}


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ("canvas", "doe_1_10_work.zip"),
        ("moodle", "doe_1_assignsubmission_file_/work.zip"),
        ("folder", "doe_1.zip"),
        ("folder", "doe_1/work.zip"),
        ("folder", "doe_1/m1/work.zip"),
    ],
)
def test_the_notebook_in_an_archive_is_taken(
    download: Download, origin: str, name: str
) -> None:
    work = packed(
        {
            "work/m1.ipynb": "a",
            "work/draft.ipynb": "b",
            "work/cat.png": "",
            "__MACOSX/work/._m1.ipynb": "",
        }
    )
    lines = download(origin, {name: work})
    assert download.there() == {"doe_1": "a"}
    assert any("2 notebooks; took" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("m1.html", b"<html>", "a web page, not a notebook: ask for the .ipynb file"),
        ("work.zip", b"PK\x03\x04 damaged", "an archive that cannot be unpacked"),
        (
            "work.zip",
            packed({"report.pdf": ""}),
            "an archive without a notebook that can be taken",
        ),
        (
            "work.zip",
            packed({"inner.zip": packed({"m1.ipynb": "a"})}),
            "an archive without a notebook",
        ),
        (
            "work.zip",
            packed({f"{n}.ipynb": "a" for n in range(12)}),
            "an archive that holds too much",
        ),
        ("work.rar", b"Rar!", "an archive that is not opened here"),
        ("m1.py", b"print()", "not a notebook"),
    ],
)
def test_who_handed_in_something_else_is_named_with_the_reason(
    download: Download,
    name: str,
    content: bytes,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archives, "MAX_ENTRIES_WITHIN", 10)
    lines = download("canvas", {"ann_2_11_m1.ipynb": "b", f"doe_1_10_{name}": content})
    assert download.there() == {"ann_2": "b"}
    assert lines[-1].startswith(f"doe_1: has no notebook here: doe_1_10_{name}: {why}")
    assert why in read_collected(download.submitted, "m1").not_taken["doe_1"].reason


def test_a_text_typed_into_canvas_is_no_notebook(download: Download) -> None:
    lines = download(
        "canvas", {"ann_2_11_m1.ipynb": "b", "doe_LATE_1_text.html": "<p>my answer</p>"}
    )
    assert lines[-1].startswith("doe_1: has no notebook here")


def test_an_archive_that_holds_too_much_costs_nobody_else(
    download: Download, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_STATED_WITHIN", 1000)
    bomb = packed({"m1.ipynb": "x" * 900, "again.ipynb": "x" * 900})
    download("canvas", {"ann_2_11_m1.ipynb": "b", "eve_3_12_m1.zip": bomb})
    assert download.there() == {"ann_2": "b"}


def test_whoever_hands_in_a_notebook_later_is_not_missed_any_more(
    download: Download,
) -> None:
    download("canvas", {"ann_2_11_m1.ipynb": "b", "doe_1_10_m1.pdf": ""})
    assert list(read_collected(download.submitted, "m1").not_taken) == ["doe_1"]
    download("canvas", {"doe_1_12_m1.ipynb": "a"})
    record = read_collected(download.submitted, "m1")
    assert (list(record.students), list(record.not_taken)) == (["ann_2", "doe_1"], [])


# One person


def test_a_new_name_on_the_platform_is_no_new_student(download: Download) -> None:
    download("canvas", {"doejane_12_30_m1.ipynb": "old"})
    download("canvas", {"smithjane_12_40_m1.ipynb": "new"})
    assert download.there() == {"doejane_12": "new"}


def test_composed_and_decomposed_letters_are_one_name(download: Download) -> None:
    name = "José Núñez"
    download("folder", {f"{unicodedata.normalize('NFD', name)}/m1.ipynb": "old"})
    download("folder", {f"{unicodedata.normalize('NFC', name)}/m1.ipynb": "new"})
    assert download.there() == {name: "new"}


def test_moodles_numbers_hold_within_an_assignment_only(
    course: Course, download: Download
) -> None:
    download("moodle", {"Ann Lee_7_assignsubmission_file/m1.ipynb": "a"})
    other = course.root / "source" / "m2"
    other.mkdir()
    (other / "m2.py").write_text("# text")
    download.assignment = course.assignment("m2")
    download("moodle", {"Max Roe_7_assignsubmission_file/m2.ipynb": "b"})
    assert sorted(path.name for path in download.submitted.glob("[!.]*")) == [
        "Ann Lee_7",
        "Max Roe_7",
    ]


def test_the_roster_says_what_people_are_called(
    course: Course, download: Download
) -> None:
    (course.root / "students.csv").write_text(
        "id;name;email;canvas;github\ns01;Ada O’Brien;ada@example.org;12;Ada-OB\ns02;Max Roe;;;\n",
        encoding="utf-8",
    )
    download("canvas", {"obrienada_12_30_m1.ipynb": "a"})
    download("moodle", {"Max Roe_7_assignsubmission_file/m1.ipynb": "b"})
    assert download.there() == {"s01": "a", "s02": "b"}
    download("github", {"m1-ada-ob/m1.ipynb": "c"})
    assert download.there() == {"s01": "c", "s02": "b"}


def test_a_roster_with_a_mistake_is_refused(course: Course, download: Download) -> None:
    for text, why in (
        ("name\nAda\n", "there is no column `id`"),
        ("id,canvas\na,1\nb,1\n", "rows 2 and 3 have the same canvas, '1'"),
        ("id,shoe\na,1\n", "unknown column 'shoe'"),
        ("id,name\n,Ada\n", "row 2 has no id"),
    ):
        (course.root / "students.csv").write_text(text)
        with pytest.raises(KitError, match=why):
            download("canvas", {"doe_1_10_m1.ipynb": "a"})


# The record


def test_the_record_says_what_was_done_and_who_is_not_there_any_more(
    download: Download,
) -> None:
    download("canvas", {"ann_2_11_m1.ipynb": "b", "doe_LATE_1_10_m1.ipynb": "a"})
    lines = download("canvas", {"ann_2_11_m1.ipynb": "b"})
    raw = json.loads((download.submitted / ".collected" / "m1.json").read_text())
    assert (
        raw["said"]
        == lines
        == [
            "1 submissions of m1: 0 new, 0 replaced, 1 unchanged",
            "collected before and not in this download, kept: doe_1",
        ]
    )
    assert raw["absent"] == ["doe_1"]
    assert raw["students"]["doe_1"] == {
        "origin": "canvas",
        "id": "1",
        "name": "doe_1",
        "file": "doe_LATE_1_10_m1.ipynb",
        "late": True,
        "unread": "",
        "anonymous": False,
    }


def test_a_broken_record_is_named_and_nobody_becomes_somebody_else(
    download: Download,
) -> None:
    download("canvas", {"ann_2_11_m1.ipynb": "b"})
    (download.submitted / ".collected" / "m1.json").write_text("{")
    with pytest.raises(
        KitError,
        match=r"\.collected/m1\.json: .*; put the file back, or move it away and collect m1 again",
    ):
        download("canvas", {"ann_2_11_m1.ipynb": "c"})
    assert (download.submitted / "ann_2" / "m1" / "m1.ipynb").read_text() == "b"
