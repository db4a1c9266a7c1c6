"""What is known of a person before a download or a file is matched, and names of folders."""

from __future__ import annotations

import hashlib

import pytest

from autograder.course.roster import Person
from autograder.ledger.candidates import (
    candidate_for_download,
    candidate_for_rows,
    candidate_from_list,
    has_other_id,
    identity_of,
    present_ids,
    shared_names,
    without_contradicted_links,
)
from autograder.ledger.folder_names import (
    can_be_shown,
    is_one_component,
    safe_folder,
)
from autograder.ledger.identity_matching import Candidate, Conflict, Identity
from autograder.ledger.ledger_file import Link, StudentRecord
from autograder.ledger.linking import _describe_conflicts

ADA = Person("s1", "Ada Lovelace", "ada@example.org", "A", {"canvas": "101"})


def test_a_student_is_an_identity_by_links_accounts_and_name() -> None:
    record = StudentRecord(
        "ada_7",
        "ada_7",
        "Ada",
        ("ada@example.org",),
        (Link("canvas", "101"), Link("moodle", "7", "m1"), Link("moodle", "8", "m2")),
    )
    assert identity_of(record, "m1") == Identity(
        (("canvas", "101"), ("moodle", "7")), ("ada_7", "ada@example.org"), "Ada"
    )
    assert identity_of(StudentRecord("ada", "ada"), "m1").name == "ada"
    namesake = StudentRecord("ada", "ada", "Ada", namesake=True)
    assert identity_of(namesake, "m1").name == ""


def test_a_number_of_one_assignment_counts_where_the_download_has_it() -> None:
    person = Person("s1", "Ada", "", "", {"canvas": "101", "moodle": "7, 8"})
    listed = candidate_from_list(person, {("moodle", "8")})
    assert listed == Candidate(
        "s1", {("canvas", "101"): True, ("moodle", "8"): True}, ("s1",), ("Ada",)
    )
    assert candidate_from_list(ADA, ()).accounts == ("s1", "ada@example.org")


def test_the_class_list_outranks_links_to_the_same_platform() -> None:
    record = StudentRecord(
        "s1",
        "s1",
        accounts=("al",),
        links=(
            Link("canvas", "999", sure=False),
            Link("github", "ada-l", sure=False),
            Link("moodle", "7", "m1"),
            Link("moodle", "8", "m2"),
        ),
    )
    candidate = candidate_for_download(ADA, record, "m1", ())
    assert candidate.ids == {
        ("canvas", "101"): True,
        ("github", "ada-l"): False,
        ("moodle", "7"): True,
    }
    assert candidate.accounts == ("s1", "ada@example.org", "al")
    assert candidate.names == ("Ada Lovelace",)


def test_rows_find_a_student_by_name_where_the_platforms_id_is_not_known() -> None:
    record = StudentRecord("Ada Lovelace_7", "f", "", ("al",))
    names = {("moodle", "7"): "Lovelace, Ada"}
    found = candidate_for_rows(record, None, "moodle", "m1", names)
    # the number in the folder's name, since the row of that number has the name
    assert found == Candidate(
        "Ada Lovelace_7", {("moodle", "7"): True}, ("Ada Lovelace_7", "al"), ()
    )
    others = {("moodle", "7"): "Bob"}
    other = candidate_for_rows(record, None, "moodle", "m1", others)
    assert (other.ids, other.names) == ({}, ("Ada Lovelace_7",))
    linked = StudentRecord("Ada_7", "f", "Ada", links=(Link("github", "ada-l"),))
    named = candidate_for_rows(linked, ADA, "moodle", "m1", names)
    assert named.ids == {("github", "ada-l"): True, ("canvas", "101"): True}
    assert named.names == ("Ada", "Ada Lovelace")
    # without rows that have ids a name is all there is
    by_name = candidate_for_rows(linked, ADA, "canvas", "m1", {})
    assert by_name.names == ("Ada", "Ada Lovelace")
    # no other row is theirs, whatever name it has
    known = candidate_for_rows(linked, ADA, "github", "m1", {("github", "x"): "Ada"})
    assert known.names == ()
    # an id in the class list is as good as a link
    rows = {("canvas", "x"): "Ada"}
    listed = candidate_for_rows(linked, ADA, "canvas", "m1", rows)
    assert listed.ids == {("github", "ada-l"): True, ("canvas", "101"): True}
    assert listed.names == ()


def test_an_account_with_another_id_contradicts_what_a_name_linked() -> None:
    ids = {("canvas", "101"): False, ("canvas", "102"): True, ("github", "x"): False}
    candidate = Candidate("s1", ids, ("ADA@example.org",))
    rows = [Identity((("canvas", "105"),), ("ada@example.org",), "Ada")]
    (checked,) = without_contradicted_links([candidate], rows)
    assert checked.ids == {("canvas", "102"): True, ("github", "x"): False}
    same = [Identity((("canvas", "101"),), ("ada@example.org",), "Ada")]
    (checked,) = without_contradicted_links([candidate], same)
    assert checked.ids == ids


def test_a_name_of_two_is_shared_in_every_order() -> None:
    ada = Identity((("canvas", "1"),), (), "Ada Lovelace")
    other = Identity((("canvas", "2"),), (), "Lovelace, Ada")
    bob = Identity((("canvas", "3"),), (), "Bob")
    again = Identity((("canvas", "3"),), (), "Bob")
    assert shared_names([ada, other, bob, again]) == {"adalovelace", "lovelaceada"}
    assert present_ids([ada, bob]) == {("canvas", "1"), ("canvas", "3")}


def test_a_student_may_have_another_id_on_a_platform() -> None:
    record = StudentRecord(
        "ada", links=(Link("canvas", "1"), Link("moodle", "7", "m2"))
    )
    assert has_other_id(record, Identity((("canvas", "2"),)), "m1")
    assert not has_other_id(record, Identity((("canvas", "1"),)), "m1")
    assert not has_other_id(record, Identity((("moodle", "8"),)), "m1")
    assert has_other_id(record, Identity((("moodle", "8"),)), "m2")
    assert not has_other_id(record, Identity(), "m1")


@pytest.mark.parametrize(
    ("identity", "words"),
    [
        (
            Identity((("canvas", "1"), ("github", "x")), ("a@b",), "Ada"),
            "Ada (canvas 1)",
        ),
        (Identity((), ("a@b", "c"), "Ada"), "Ada (a@b)"),
        (Identity((), (), "Ada"), "Ada"),
        (Identity((("canvas", "1"),)), "canvas 1"),
        (Identity((), ("a@b", "c")), "a@b"),
        (Identity(), ""),
    ],
)
def test_an_identity_in_words(identity: Identity, words: str) -> None:
    assert str(identity) == words


# folders


def digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]


@pytest.mark.parametrize(
    "name",
    ["a", "x" * 80, "é" * 80, "数" * 53, "Ada Lovelace", "a-b.c", "O'Neil, A. (2)"],
)
def test_a_name_that_every_system_takes_is_the_folders(name: str) -> None:
    assert safe_folder(name) == name


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        # 80 characters and 160 bytes at most; 68 and 136 beside the hash
        ("x" * 81, "x" * 68),
        ("é" * 81, "é" * 68),
        ("数" * 54, "数" * 45),
        ("a/b:c", "a_b_c"),
        (".-ada", "ada"),
        ("ada. ", "ada"),
        ("e\u0301", "é"),
        ("CON", "student-CON"),
        ("nul.txt", "student-nul.txt"),
        ("COM9", "student-COM9"),
        ("///", "student"),
        ("", "student"),
    ],
)
def test_any_other_name_is_cleaned_and_ends_in_a_hash(name: str, kept: str) -> None:
    assert safe_folder(name) == f"{kept}-{digest(name)}"


def test_com10_is_no_device() -> None:
    assert safe_folder("COM10") == "COM10"
    assert safe_folder("console") == "console"


def test_a_folder_is_one_component() -> None:
    for name in ("a", "x" * 255, "..a", "a\nb"):
        assert is_one_component(name)
    for name in ("", ".", "..", "a/b", "a\0b", "x" * 256, "é" * 128, "\ud800"):
        assert not is_one_component(name)


def test_a_folder_that_can_be_shown_is_text_without_controls() -> None:
    assert can_be_shown("Ada\u200b")
    assert not can_be_shown("a\nb")
    assert not can_be_shown("\udcff")


def test_a_conflict_names_the_column_that_decides_it() -> None:
    with_id = Conflict((Identity((("canvas", "7"),), (), "Ada"),), (), "two are Ada")
    without = Conflict((Identity((), ("a@x.edu",), "Ada"),), (), "who is Ada?")
    start = "nothing was changed: "
    end = ", or give Canvas's gradebook as `--roster`"
    assert _describe_conflicts([without, with_id, without], "canvas") == (
        f"{start}who is Ada?; two are Ada. Write who is who into students.csv, column "
        f"`canvas`{end}"
    )
    assert _describe_conflicts([without], "github") == (
        f"{start}who is Ada?. Write who is who into students.csv, column `email`"
    )
