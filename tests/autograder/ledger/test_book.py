"""The ledger in memory: names, ids, accounts, folders and groups of students."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.course import Course
from autograder.course.roster import Person
from autograder.ledger.book import Ledger
from autograder.ledger.identity_matching import Identity
from autograder.ledger.ledger_file import LedgerContent, Link, StudentRecord

ADA = Person("s1", "Ada Lovelace", "ada@x.edu", "", {"canvas": "11", "moodle": "501 7"})
BEN = Person("s2", "", "", "", {}, "Team 1")
CYD = Person("s3", "Cyd Ray", "", "", {}, "team-1")


class Class:
    """A ledger of these students, and the content of its file."""

    def __init__(
        self,
        *records: StudentRecord,
        listed: tuple[Person, ...] | None = (ADA, BEN, CYD),
        root: Path = Path("/course"),
    ) -> None:
        students = {record.student: record for record in records}
        self.content = LedgerContent(1, students)
        self.ledger = Ledger(Course(root), self.content, listed)

    def history(self) -> list[tuple[object, ...]]:
        """The lines of the history without their times."""
        return [
            (
                event.source,
                event.assignment,
                event.student,
                event.evidence,
                (event.platform, event.id),
                event.members,
            )
            for event in self.content.history
        ]


# names


def test_a_name_is_a_platforms_before_the_class_lists_and_the_students() -> None:
    ledger = Class(
        StudentRecord("s3", "s3", "Cydney Ray"), StudentRecord("eve_9", "eve_9")
    ).ledger
    names = [ledger.name(student) for student in ("s1", "s2", "s3", "eve_9", "zoe")]
    assert names == ["Ada Lovelace", "s2", "Cydney Ray", "eve_9", "zoe"]


def test_a_download_may_name_a_person_otherwise_than_a_row() -> None:
    """In another order it is the same name."""
    canvas = Link("canvas", "11")
    ledger = Class(StudentRecord("s1", "s1", "Ada Lovelace", (), (canvas,))).ledger

    def other_name(id_: str, name: str) -> str:
        return ledger.name_in_download(Identity((("canvas", id_),), (), name))

    assert other_name("11", "A. King") == "Ada Lovelace"
    assert other_name("11", "Lovelace, Ada") == ""
    assert other_name("12", "A. King") == ""


# ids and accounts


def test_a_class_list_and_downloads_have_ids() -> None:
    """Moodle numbers a person anew in each assignment; capitals are not told apart."""
    github = Link("github", "Ben")
    ledger = Class(StudentRecord("s2", "s2", links=(github,))).ledger
    ids = [("canvas", "11"), ("moodle", "7"), ("moodle", "501"), ("moodle", "501 7")]
    assert [ledger.is_listed_id(*id_) for id_ in ids] == [True, True, True, False]
    known = [("canvas", "11"), ("github", "BEN"), ("github", "ada"), ("gitlab", "Ben")]
    assert [ledger.is_known_id(*id_) for id_ in known] == [True, True, False, False]


def test_an_id_of_one_assignment_leads_to_a_student_there_alone() -> None:
    ledger = Class(
        StudentRecord("s1", "s1", links=(Link("moodle", "5", "m1"),)),
        StudentRecord("s2", "s2", links=(Link("moodle", "5", "m2"),)),
        StudentRecord("s3", "s3", links=(Link("canvas", "9"),)),
    ).ledger
    moodle = ("moodle", "5")
    found = [ledger.find_linked([moodle], name) for name in ("m1", "m2", "m3", "")]
    assert found == ["s1", "s2", None, None]
    # the first id that is known decides, whatever the assignment
    ids = [("canvas", "8"), ("canvas", "9"), moodle]
    assert ledger.find_linked(ids, "m1") == "s3"
    assert ledger.ids("s1", "m1") == {"moodle": "5"}
    assert ledger.ids("s1", "m2") == {}
    assert ledger.ids("s3", "m2") == {"canvas": "9"}


def test_accounts_say_who_is_a_person_and_not_listed() -> None:
    eve = StudentRecord("eve_9", "eve_9", "", ("Eve@x.edu", "em1"))
    ledger = Class(eve, StudentRecord("s1", "s1", "", ("ada@x.edu",))).ledger
    assert ledger.unlisted_by_account() == {"eve@x.edu": eve, "em1": eve}
    people = [ledger.has_accounts(student) for student in ("eve_9", "s1", "s2")]
    assert people == [True, True, False]


def test_students_who_share_an_account_are_one_person() -> None:
    """b and c by one account, d with c by another; a and e are alone."""
    ledger = Class(
        StudentRecord("d", "d", "", ("two@x.edu",)),
        StudentRecord("c", "c", "", ("ONE@x.edu", "two@x.edu")),
        StudentRecord("b", "b", "", ("one@x.edu",)),
        StudentRecord("a", "a"),
        StudentRecord("e", "e", "", ("three@x.edu",)),
    ).ledger
    first = {"a": "a", "b": "b", "c": "b", "d": "b", "e": "e"}
    assert ledger.same_people() == first


def test_a_student_with_accounts_of_two_joins_them() -> None:
    """Students come in the order of names: when e comes, c is b's and d is another person."""
    ledger = Class(
        StudentRecord("a", "a", "", ("zero@x.edu",)),
        StudentRecord("b", "b", "", ("one@x.edu",)),
        StudentRecord("c", "c", "", ("one@x.edu",)),
        StudentRecord("d", "d", "", ("two@x.edu",)),
        StudentRecord("e", "e", "", ("one@x.edu", "two@x.edu")),
        StudentRecord("f", "f", "", ("two@x.edu",)),
    ).ledger
    assert ledger.same_people() == {"a": "a", **dict.fromkeys("bcdef", "b")}


def test_a_download_adds_to_what_is_known_of_a_student() -> None:
    record = StudentRecord("s1", "s1", "Ada", ("Ada@x.edu",), (Link("canvas", "11"),))
    known = Class(record)
    identity = Identity((("canvas", "11"), ("moodle", "501")), ("ada@X.edu", "al1"), "")
    known.ledger.learn("s1", identity, "m1", "account", "first.zip")
    assert known.ledger.record("s1") == StudentRecord(
        "s1",
        "s1",
        "Ada",
        ("ada@X.edu", "al1"),
        (Link("canvas", "11"), Link("moodle", "501", "m1")),
    )
    # only what is new is a line of the history
    assert known.history() == [
        ("first.zip", "m1", "s1", "account", ("moodle", "501"), ())
    ]
    assert known.content.history[0].when.endswith("Z")


@pytest.mark.parametrize(
    ("earlier", "evidence", "sure"),
    [
        (None, "name", False),
        (None, "id", True),
        (False, "id", False),
        (False, "name", False),
        (False, "account", True),
        (True, "name", True),
        (True, "account", True),
    ],
)
def test_an_id_is_sure_by_what_linked_it(
    earlier: bool | None, evidence: object, sure: bool
) -> None:
    """The same id again is no new evidence; an account is."""
    links = () if earlier is None else (Link("canvas", "11", sure=earlier),)
    known = Class(StudentRecord("s1", "s1", links=links))
    identity = Identity((("canvas", "11"),), (), "Ada")
    known.ledger.learn("s1", identity, "m1", evidence, "a.zip")  # type: ignore[arg-type]
    (link,) = known.ledger.record("s1").links
    assert link.sure is sure


def test_an_id_is_one_students() -> None:
    links = (Link("canvas", "11"), Link("github", "ada"))
    known = Class(StudentRecord("old", "old", links=links))
    known.ledger.learn("s1", Identity((("canvas", "11"),), (), ""), "m1", "id", "b.zip")
    assert known.ledger.record("old").links == (Link("github", "ada"),)
    assert known.ledger.find_linked([("canvas", "11")], "m1") == "s1"


def test_ids_of_one_assignment_can_be_forgotten() -> None:
    links = (
        Link("moodle", "5", "m1"),
        Link("moodle", "6", "m2"),
        Link("gradescope", "7", "m1"),
    )
    known = Class(StudentRecord("s1", "s1", links=links))
    known.ledger.forget_links("s1", "moodle", "m1")
    assert known.ledger.record("s1").links == links[1:]
    assert known.ledger.find_linked([("moodle", "5")], "m1") is None
    assert known.ledger.find_linked([("moodle", "6")], "m2") == "s1"


def test_a_namesake_is_noted_of_a_student_without_a_record_too() -> None:
    known = Class(StudentRecord("s1", "s1", "Ada"))
    for student in ("s1", "s2"):
        known.ledger.mark_namesake(student)
    assert known.ledger.record("s1") == StudentRecord("s1", "s1", "Ada", namesake=True)
    assert known.ledger.record("s2") == StudentRecord("s2", "s2", namesake=True)


# folders


def test_a_folder_is_the_records_or_the_one_that_a_person_made(tmp_path: Path) -> None:
    """A name that no folder can have is cleaned for a new one; a folder of it is taken."""
    submitted = tmp_path / "submitted"
    for folder in ("A:B", "s1", ".collected", ".collecting-1"):
        (submitted / folder / "m1").mkdir(parents=True)
        (submitted / folder / "m1/m1.ipynb").touch()
    (submitted / "zoe.ipynb").touch()
    known = Class(StudentRecord("Eve: Moss", "eve"), root=tmp_path)
    ledger = known.ledger
    assert ledger.students_with_notebooks("m1") == {"A:B", "s1", "zoe"}
    assert ledger.students_with_notebooks("m2") == {"zoe"}
    assert ledger.submission("Eve: Moss", "m1") == submitted / "eve/m1"
    assert ledger.student_in("eve") == "Eve: Moss"
    for name in ("A:B", "C:D"):
        ledger.learn(name, Identity((), (), ""), "m1", "new", "a.zip")
    assert ledger.folder("A:B") == "A:B"
    assert ledger.folder("C:D").startswith("C_D-")
    assert ledger.student_in(ledger.folder("C:D")) == "C:D"


def test_without_submissions_there_is_nobodys_folder(tmp_path: Path) -> None:
    ledger = Class(root=tmp_path).ledger
    assert ledger.folder("s1") == "s1"
    assert ledger.students_with_notebooks("m1") == set()


# groups


def test_who_joins_a_group_leaves_the_other_one() -> None:
    known = Class()
    ledger = known.ledger
    ledger.set_group("m1", "red", ["s1", "s2"], "a.zip")
    ledger.set_group("m1", "blue", ["s2", "s3"], "b.zip")
    ledger.set_group("m1", "blue", ["s2", "s3"], "c.zip")  # nothing new
    ledger.set_group("m2", "red", ["s2"], "d.zip")
    groups = {"m1": {"red": ("s1",), "blue": ("s2", "s3")}, "m2": {"red": ("s2",)}}
    assert known.content.groups == groups
    assert [ledger.holder(student, "m1") for student in ("s1", "s2", "s9")] == [
        "red",
        "blue",
        "s9",
    ]
    assert ledger.members("blue", "m1") == ("s2", "s3")
    assert ledger.members("s9", "m1") == ("s9",)
    assert (ledger.is_group("red", "m1"), ledger.is_group("s1", "m1")) == (True, False)
    assert known.history() == [
        ("a.zip", "m1", "red", "group", ("", ""), ("s1", "s2")),
        ("b.zip", "m1", "blue", "group", ("", ""), ("s2", "s3")),
        ("d.zip", "m2", "red", "group", ("", ""), ("s2",)),
    ]


def test_a_group_of_a_download_is_nobody_by_its_number() -> None:
    """Moodle writes there the group's number, or that of whoever handed in."""
    links = (Link("moodle", "5", "m1"), Link("github", "red"))
    known = Class(StudentRecord("red", "folder", "Red", links=links))
    identity = Identity((("moodle", "5"),), (), "Reds")
    known.ledger.add_group("m1", "red", identity, ["s1", "s2"], "a.zip")
    record = known.ledger.record("red")
    assert record == StudentRecord("red", "folder", "Red", links=(links[1],))
    assert known.ledger.find_linked([("moodle", "5")], "m1") is None
    assert known.ledger.members("red", "m1") == ("s1", "s2")

    known.ledger.add_group("m1", "blue", identity, ["s3"], "b.zip")
    assert known.ledger.record("blue") == StudentRecord("blue", "blue", "Reds")
    assert known.ledger.members("blue", "m1") == ("s3",)


def test_a_group_ends_where_its_holder_hands_in_alone() -> None:
    known = Class()
    known.ledger.set_group("m1", "s1", ["s1", "s2"], "a.zip")
    for student in ("s2", "s1", "s1"):  # s2 holds no group
        known.ledger.end_group("m1", student, "b.zip")
    assert known.content.groups == {"m1": {}}
    assert known.history() == [
        ("a.zip", "m1", "s1", "group", ("", ""), ("s1", "s2")),
        ("b.zip", "m1", "s1", "group", ("", ""), ("s1",)),
    ]


def test_a_group_of_the_class_list_is_those_without_work_of_their_own(
    tmp_path: Path,
) -> None:
    """Both ways of writing are one group; a group that a download names counts before."""
    known = Class(root=tmp_path)
    folder = tmp_path / "submitted"
    for student in ("TEAM 1", "s3"):
        (folder / student / "m1").mkdir(parents=True)
        (folder / student / "m1/m1.ipynb").touch()
    ledger = known.ledger
    assert ledger.listed_group("Team_1") == ("s2", "s3")
    assert ledger.listed_group("Team 2") == ()
    assert ledger.members("TEAM 1", "m1") == ("s2",)
    assert ledger.members("TEAM 1", "m2") == ("TEAM 1",)
    assert ledger.without_own_work("m1", "TEAM 1", ["s1", "s2", "s3"]) == ("s1", "s2")
    ledger.set_group("m1", "red", ["s1"], "a.zip")
    assert ledger.without_own_work("m1", "TEAM 1", ["s1", "s2"]) == ("s2",)
    ledger.set_group("m1", "TEAM 1", ["s2", "s1"], "b.zip")
    assert ledger.members("TEAM 1", "m1") == ("s2", "s1")
