"""Whom a row or an identity means, and what of the ledger is written to its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.course import Course
from autograder.course.folders import LEDGER_FILE
from autograder.course.roster import Person
from autograder.ledger.book import Ledger
from autograder.ledger.folder_names import safe_folder
from autograder.ledger.identity_matching import Identity, Match
from autograder.ledger.ledger_file import (
    Event,
    LedgerContent,
    Link,
    StudentRecord,
    read_content,
    write_content,
)
from autograder.ledger.linking import (
    _choose_student,
    _people_of_students,
    _suggest_name,
    link_download,
    match_rows,
)
from autograder.ledger.unknown_names import unknown_names

ADA = Person("s1", "Ada Lovelace", "ada@example.org", "", {})


def ledger_of(*records: StudentRecord, listed: tuple[Person, ...] = (ADA,)) -> Ledger:
    students = {record.student: record for record in records}
    return Ledger(Course(Path("/course")), LedgerContent(1, students), listed)


def row(number: str, name: str, group: str = "") -> Identity:
    return Identity((("moodle", number),), (), name, group)


def test_rows_of_a_group_lead_to_its_holder_and_others_to_their_student() -> None:
    """Group A's work lies in `Group A_501`. A listed student's name is no group's."""
    ledger = ledger_of(
        StudentRecord("Group A_501", "Group A_501", "Group A"),
        StudentRecord("Eve Moss_9", "Eve Moss_9", "Eve Moss"),
        StudentRecord("s1", "s1", "Red Team"),
    )
    rows = [
        row("1", "Ben Low", "group a"),
        row("2", "Eve Moss"),
        row("3", "Cyd Ray", "Group A"),
        row("4", "Ada Lovelace", "Red Team"),
        row("5", "Dan Poe", "Group B"),
    ]
    students = ["Group A_501", "Eve Moss_9", "s1"]
    matches, conflicts = match_rows(ledger, "moodle", "m1", rows, students)
    assert [(match.identity, match.key, match.evidence) for match in matches] == [
        (rows[0], "Group A_501", "group"),
        (rows[1], "Eve Moss_9", "name"),
        (rows[2], "Group A_501", "group"),
        (rows[3], "s1", "name"),
        (rows[4], None, ""),
    ]
    assert conflicts == []


def chosen(ledger: Ledger, identity: Identity, key: str | None = None) -> object:
    """The student where a download suggests "Ada_7"."""
    match = Match(identity, key, "name" if key else "new")
    return _choose_student(ledger, match, "m1", "Ada_7", ledger.unlisted_by_account())


def test_a_name_that_another_person_has_is_told_apart_by_the_id() -> None:
    moodle_8 = row("8", "Ada")
    other_id = StudentRecord("Ada_7", "Ada_7", links=(Link("moodle", "7", "m1"),))
    assert chosen(ledger_of(other_id), moodle_8) == ("Ada_7 (8)", "new")
    listed = Person("Ada_7", "Ada", "", "", {})
    assert chosen(ledger_of(listed=(listed,)), moodle_8) == ("Ada_7 (8)", "new")
    # who has no other id may be the same person
    assert chosen(ledger_of(StudentRecord("Ada_7", "Ada_7")), moodle_8) == (
        "Ada_7",
        "new",
    )
    assert chosen(ledger_of(), moodle_8) == ("Ada_7", "new")
    assert chosen(ledger_of(other_id), Identity((), (), "Ada")) == ("Ada_7", "new")


def test_students_of_one_name_are_namesakes_unless_they_are_listed() -> None:
    ledger = ledger_of()
    listed = Identity((("moodle", "1"),), ("ada@example.org",), "Ada Lovelace")
    others = [row("2", "Ada Lovelace"), row("3", "Ben Low"), row("4", "Low Ben")]
    identities = [listed, *others, row("5", "Cyd Ray")]
    suggested = ["ada", "Ada_2", "Ben_3", "Ben_4", "Cyd_5"]
    students = link_download(ledger, "moodle", "m1", identities, suggested, "a.zip")
    assert students == ["s1", "Ada_2", "Ben_3", "Ben_4", "Cyd_5"]
    namesakes = [student for student in students if ledger.record(student).namesake]
    assert namesakes == ["Ada_2", "Ben_3", "Ben_4"]


def test_a_name_of_two_rows_does_not_say_who_a_student_is() -> None:
    by_name = StudentRecord("Ada_7", "Ada_7", "Ada Lovelace")
    by_account = StudentRecord("al", "al", "Ada L", ("ada@example.org",))
    one_row = [row("7", "Ada Lovelace")]
    two_rows = [*one_row, row("8", "Lovelace Ada")]
    for record, rows, is_found in (
        (by_name, one_row, True),
        (by_name, two_rows, False),
        (by_account, two_rows, True),
    ):
        student = record.student
        people = _people_of_students(ledger_of(record), "m1", rows, [student])
        assert people == ({student: ADA} if is_found else {})


@pytest.mark.parametrize(
    ("person", "name"),
    [
        (row("501", "Ada Lovelace"), "Ada Lovelace_501"),
        (row("501", ""), "moodle 501"),
        (Identity((), (), "Ada Lovelace"), "Ada Lovelace"),
    ],
)
def test_somebody_new_is_called_as_a_download_of_moodle_would(
    person: Identity, name: str
) -> None:
    assert _suggest_name(person) == name


def test_an_id_leads_to_its_student_before_an_account_and_a_name() -> None:
    linked = StudentRecord("Ada_5", "Ada_5", links=(Link("moodle", "8", "m1"),))
    account = StudentRecord("al", "al", accounts=("AL@example.org",))
    ledger = ledger_of(linked, account)
    both = Identity((("moodle", "8"),), ("al@example.org",), "Ada")
    assert chosen(ledger, both) == ("Ada_5", "id")
    assert chosen(ledger, both, "s1") == ("Ada_5", "id")
    new_id = Identity((("moodle", "9"),), ("al@example.org",), "Ada")
    assert chosen(ledger, new_id) == ("al", "account")
    assert chosen(ledger, new_id, "s1") == ("s1", "name")
    of_list = StudentRecord("s1", "s1", links=(Link("moodle", "8", "m1"),))
    assert chosen(ledger_of(of_list), both, "s1") == ("s1", "id")


def test_an_account_of_somebody_with_another_id_is_not_theirs() -> None:
    account = StudentRecord(
        "al", "al", accounts=("al@example.org",), links=(Link("moodle", "7", "m1"),)
    )
    other = Identity((("moodle", "9"),), ("al@example.org",), "Ada")
    assert chosen(ledger_of(account), other) == ("Ada_7", "new")


def test_of_a_long_name_the_first_320_characters_are_looked_at() -> None:
    """Hyphens at the beginning are taken off, since they mark an option."""
    assert safe_folder("-" * 319 + "ada").startswith("a-")
    assert safe_folder("-" * 320 + "ada").startswith("student-")


def test_what_a_download_does_not_say_of_a_person_stays() -> None:
    ledger = ledger_of()
    for identity in (
        Identity((("canvas", "7"),), ("al1",), "Ada"),
        Identity((("moodle", "8"),), ("AL1", "ada@x.edu")),
    ):
        ledger.learn("ada", identity, "m1", "id", "a.zip")
    record = ledger.record("ada")
    assert (record.name, record.accounts) == ("Ada", ("AL1", "ada@x.edu"))
    assert [link.platform_id for link in record.links] == [
        ("canvas", "7"),
        ("moodle", "8"),
    ]


def test_the_folder_of_a_student_without_a_record_is_the_name_where_it_can_be() -> None:
    ledger = ledger_of(StudentRecord("ben", "ben-folder"))
    assert [ledger.folder(name) for name in ("ada", "ben")] == ["ada", "ben-folder"]
    # as results are called
    assert ledger.folder("a/b") == "a%2Fb"
    assert ledger.folder("..") == "%2E."
    assert ledger.folder("a\x07") == "a%07"


# the file


def test_the_file_has_what_somebody_said_and_no_more(tmp_path: Path) -> None:
    content = LedgerContent(
        1,
        {
            "ben": StudentRecord("ben", "ben-folder", "Ben", links=(Link("a", "1"),)),
            "ada": StudentRecord("ada", "ada"),
        },
        {"m2": {"red": ("ada", "ben")}, "m1": {"z": ("ben",), "b": ("ada",)}},
        [Event("now", "a.zip", "m1", "ada", "new")],
    )
    write_content(tmp_path, content)
    text = (tmp_path / LEDGER_FILE).read_text(encoding="utf-8")
    stored = json.loads(text)
    assert stored == {
        "schema": 1,
        "students": {
            "ada": {},
            "ben": {
                "folder": "ben-folder",
                "name": "Ben",
                "links": [{"platform": "a", "id": "1"}],
            },
        },
        "groups": {"m1": {"b": ["ada"], "z": ["ben"]}, "m2": {"red": ["ada", "ben"]}},
        "history": [
            {
                "when": "now",
                "source": "a.zip",
                "assignment": "m1",
                "student": "ada",
                "evidence": "new",
            }
        ],
    }
    assert [list(stored["students"]), list(stored["groups"])] == [
        ["ada", "ben"],
        ["m1", "m2"],
    ]
    assert read_content(tmp_path) == content


def test_records_are_values() -> None:
    for make in (
        lambda: StudentRecord("ada"),
        lambda: Link("moodle", "7"),
        lambda: Event("now", "a.zip", "m1", "ada", "new"),
    ):
        assert len({make(), make()}) == 1


def test_a_file_of_another_schema_is_not_read(tmp_path: Path) -> None:
    (tmp_path / LEDGER_FILE).write_text('{"schema": 2}')
    with pytest.raises(KitError, match=r"cannot be read \(schema 2, expected 1\)"):
        read_content(tmp_path)


def test_a_file_that_says_the_same_is_left_alone(tmp_path: Path) -> None:
    content = LedgerContent(1, {"ada": StudentRecord("ada", "ada")})
    write_content(tmp_path, content)
    path = tmp_path / LEDGER_FILE
    before = path.stat()
    write_content(tmp_path, content)
    assert path.stat().st_ino == before.st_ino
    content.students["ben"] = StudentRecord("ben", "ben")
    write_content(tmp_path, content)
    assert path.stat().st_ino != before.st_ino


def test_a_file_that_is_part_of_a_transaction_comes_with_its_others(
    tmp_path: Path,
) -> None:
    """Where the others cannot be written, the ledger is as it was."""
    content = LedgerContent(1, {"ada": StudentRecord("ada", "ada")})

    def write_and_fail() -> None:
        with FileTransaction(tmp_path / ".autograder", "collect") as files:
            write_content(tmp_path, content, files)
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write_and_fail()
    assert read_content(tmp_path).students == {}
    with FileTransaction(tmp_path / ".autograder", "collect") as files:
        write_content(tmp_path, content, files)
        assert not (tmp_path / LEDGER_FILE).exists()
    assert read_content(tmp_path) == content


# names in course.toml


def test_an_extension_may_name_a_student_by_a_folder_of_another_name(
    tmp_path: Path,
) -> None:
    """The student Ada/1 has the folder Ada_1; both may stand in course.toml."""
    source = tmp_path / "source/m1/m1.py"
    source.parent.mkdir(parents=True)
    source.touch()
    write_content(
        tmp_path, LedgerContent(1, {"Ada/1": StudentRecord("Ada/1", "Ada_1")})
    )
    (tmp_path / "submitted/Ada_1").mkdir(parents=True)
    course = Course(tmp_path, extensions={"m1": {"ada/1": 1, "ADA_1": 1, "Ade/1": 1}})  # type: ignore[dict-item]
    assert unknown_names(course) == [
        "course.toml: extensions.m1: nobody has handed in anything yet as 'Ade/1'; is it "
        "'Ada/1'?"
    ]
