"""The ledger of a course: its file, its history, groups."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autograder.basics.errors import KitError
from autograder.course import Course, load_course
from autograder.ledger import (
    Identity,
    Ledger,
    assert_certain,
    learn_rows,
    link_download,
    match_rows,
    read_ledger,
)
from autograder.platforms import canvas_gradebook, moodle_worksheet


@pytest.fixture
def course(tmp_path: Path) -> Course:
    (tmp_path / "course.toml").write_text("", encoding="utf-8")
    return load_course(tmp_path)


def class_list(course: Course, text: str) -> Ledger:
    (course.root / "students.csv").write_text(text, encoding="utf-8")
    return read_ledger(course)


def put(course: Course, folder: str, assignment: str = "m1") -> None:
    path = course.submitted / folder / assignment / f"{assignment}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text("{}", encoding="utf-8")


def moodle(number: str, name: str, email: str = "", group: str = "") -> Identity:
    return Identity((("moodle", number),), (email,) if email else (), name, group)


def test_what_was_learned_is_there_again_with_its_history(course: Course) -> None:
    ledger = class_list(course, "id,name\ns1,Person One\n")
    students = link_download(
        ledger,
        "canvas",
        "m1",
        [
            Identity((("canvas", "11"),), (), "personone"),
            Identity((("canvas", "12"),), (), "guest"),
        ],
        ["personone_11", "guest_12"],
        "first.zip",
    )
    assert students == ["s1", "guest_12"]
    ledger.save()
    again = read_ledger(course)
    assert (
        again.ids("s1", "m1").get("canvas", ""),
        again.ids("guest_12", "m2").get("canvas", ""),
    ) == ("11", "12")
    history = json.loads((course.root / "ledger.json").read_text(encoding="utf-8"))[
        "history"
    ]
    assert [
        (
            e["source"],
            e["assignment"],
            e["student"],
            e["evidence"],
            e["platform"],
            e["id"],
        )
        for e in history
    ] == [
        ("first.zip", "m1", "s1", "name", "canvas", "11"),
        ("first.zip", "m1", "guest_12", "new", "canvas", "12"),
    ]
    before = (course.root / "ledger.json").stat().st_mtime_ns
    again.save()
    assert (course.root / "ledger.json").stat().st_mtime_ns == before


def test_a_broken_ledger_is_named_and_never_overwritten(course: Course) -> None:
    (course.root / "ledger.json").write_text("{", encoding="utf-8")
    with pytest.raises(
        KitError, match=r"ledger\.json: cannot be read .*put a copy of it back"
    ):
        read_ledger(course)


def test_collecting_again_makes_no_link_by_name_surer(course: Course) -> None:
    john, other = (
        Identity((("canvas", id_),), (), "doejohn") for id_ in ("102", "103")
    )
    ledger = class_list(course, "id,name\ns1,John Doe\n")
    for _ in range(2):
        assert link_download(
            ledger, "canvas", "m1", [john], ["doejohn_102"], "a.zip"
        ) == ["s1"]
        ledger.save()
        ledger = read_ledger(course)
    with pytest.raises(
        KitError, match=r"doejohn \(canvas 103\) and canvas 102 have one name"
    ):
        link_download(ledger, "canvas", "m2", [other], ["doejohn_103"], "b.zip")


def test_the_class_list_corrects_what_a_name_had_linked(course: Course) -> None:
    john = Identity((("canvas", "102"),), (), "doejohn")
    ledger = class_list(course, "id,name\ns1,John Doe\n")
    assert link_download(ledger, "canvas", "m1", [john], ["doejohn_102"], "a.zip") == [
        "s1"
    ]
    ledger.save()
    ledger = class_list(course, "id,name,canvas\ns1,John Doe,103\n")
    other = Identity((("canvas", "103"),), (), "doejohn")
    assert link_download(
        ledger, "canvas", "m1", [john, other], ["doejohn_102", "doejohn_103"], "b.zip"
    ) == [
        "doejohn_102",
        "s1",
    ]
    assert ledger.ids("s1", "m1") == {"canvas": "103"}


def test_moodles_numbers_in_the_class_list_are_one_for_each_assignment(
    course: Course,
) -> None:
    ledger = class_list(
        course, "id,name,moodle\ns1,John Doe,501 733\ns2,Jane Roe,502\n"
    )
    identities = [moodle("733", "J. D."), moodle("734", "Jane Roe")]
    assert link_download(ledger, "moodle", "m2", identities, ["a", "b"], "z") == [
        "s1",
        "s2",
    ]


# Folders


@pytest.mark.parametrize(
    "folder",
    [
        "O\u2019Neil, Ann",
        "Zoe\u0308",
        "ana&bob",
        "group #3",
        "a:b",
        "x" * 90,
        "Lee \U0001f600",
        "a%b",
        " lead",
    ],
)
def test_a_folder_is_the_student_whatever_it_is_called(
    course: Course, folder: str
) -> None:
    put(course, folder)
    ledger = read_ledger(course)
    assert ledger.students_with_notebooks("m1") == {folder}
    assert ledger.submission(folder, "m1") == course.submitted / folder / "m1"


@pytest.mark.parametrize("folder", ["a:b", "Zoe\u0308", "x" * 90])
def test_what_a_worksheet_says_of_a_student_leaves_the_folder(
    course: Course, folder: str
) -> None:
    put(course, folder)
    ledger = read_ledger(course)
    learn_rows(
        ledger,
        "moodle",
        "m1",
        [moodle("501", folder)],
        ledger.students_with_notebooks("m1"),
        "ws.csv",
    )
    ledger.save()
    ledger = read_ledger(course)
    assert ledger.ids(folder, "m1") == {"moodle": "501"}
    assert ledger.submission(folder, "m1") == course.submitted / folder / "m1"


@pytest.mark.parametrize("folder", ["a\nb", "a\udc80b"])
def test_a_folder_whose_name_is_no_text_has_a_student_all_the_same(
    course: Course, folder: str
) -> None:
    put(course, folder)
    ledger = read_ledger(course)
    (student,) = ledger.students_with_notebooks("m1")
    assert student.isprintable()
    assert ledger.submission(student, "m1") == course.submitted / folder / "m1"


def test_who_can_have_no_folder_of_the_name_keeps_the_name(course: Course) -> None:
    ledger = read_ledger(course)
    (student,) = link_download(
        ledger, "github", "m1", [Identity((("github", "a/b"),))], ["a/b"], "z"
    )
    assert student == "a/b"
    folder = ledger.folder(student)
    assert "/" not in folder
    put(course, folder)
    ledger.save()
    assert read_ledger(course).students_with_notebooks("m1") == {"a/b"}


# Groups


def test_a_worksheet_tells_groups_from_people_by_its_own_column(course: Course) -> None:
    for folder in ("Group A_501", "Group B_17"):
        put(course, folder)
    ledger = read_ledger(course)
    names = [moodle("501", "Group A"), moodle("17", "Group B")]
    link_download(ledger, "moodle", "m1", names, ["Group A_501", "Group B_17"], "a.zip")
    rows = [
        moodle("501", "Person One", "one@example.org", "Group A"),
        moodle("17", "Person Two", "", "Group A"),
        moodle("18", "Person Three", "", "Group B"),
        moodle("19", "Person Four", "", "Group C"),
    ]
    assert (
        learn_rows(
            ledger, "moodle", "m1", rows, ledger.students_with_notebooks("m1"), "ws.csv"
        )
        == []
    )
    assert ledger.members("Group A_501", "m1") == ("Person One_501", "Person Two_17")
    assert ledger.members("Group B_17", "m1") == ("Person Three_18",)
    assert ledger.holder("Person Two_17", "m1") == "Group A_501"
    assert ledger.ids("Group B_17", "m1").get("moodle", "") == ""
    students = ["Person One_501", "Person Two_17", "Person Three_18"]
    matches, conflicts = match_rows(ledger, "moodle", "m1", rows, students)
    assert ([found.key for found in matches], conflicts) == ([*students, None], [])


def test_a_group_of_the_class_list_hands_in_once(course: Course) -> None:
    ledger = class_list(
        course,
        "id,name,group\ns1,Person One,Team Red\ns2,Person Two,Team Red\ns3,Person Three,\n",
    )
    put(course, "teamred_101")
    ledger = read_ledger(course)
    assert ledger.listed_group("team-red") == ("s1", "s2")
    link_download(
        ledger,
        "canvas",
        "m1",
        [Identity((("canvas", "101"),), (), "teamred")],
        ["teamred_101"],
        "a.zip",
    )
    assert ledger.members("teamred_101", "m1") == ("s1", "s2")
    assert ledger.submission("s2", "m1") == course.submitted / "teamred_101" / "m1"


def test_whose_own_work_is_here_is_in_no_group(course: Course) -> None:
    for folder in ("Default group", "Person One_501"):
        put(course, folder)
    ledger = read_ledger(course)
    link_download(
        ledger,
        "moodle",
        "m1",
        [Identity((), (), "Default group"), moodle("501", "Person One")],
        ["Default group", "Person One_501"],
        "a.zip",
    )
    rows = [
        moodle("501", "Person One", "", "Default group"),
        moodle("502", "Person Two", "", "Default group"),
    ]
    learn_rows(
        ledger, "moodle", "m1", rows, ledger.students_with_notebooks("m1"), "ws.csv"
    )
    assert ledger.members("Default group", "m1") == ("Person Two_502",)
    assert ledger.members("Person One_501", "m1") == ("Person One_501",)


def test_a_row_of_somebody_else_with_a_listed_email_is_a_conflict(
    course: Course,
) -> None:
    """A name linked 503 to the one John Doe of the list, and the worksheet has that one's email at
    502.
    """
    ledger = class_list(course, "id,name,email\ns2,John Doe,john@example.org\n")
    assert link_download(
        ledger, "moodle", "m1", [moodle("503", "John Doe")], ["John Doe_503"], "a.zip"
    ) == ["s2"]
    rows = [
        moodle("502", "John Doe", "john@example.org"),
        moodle("503", "John Doe", "other@example.org"),
    ]
    matches, (conflict,) = match_rows(ledger, "moodle", "m1", rows, ["s2"])
    assert [match.key for match in matches] == [None, "s2"]
    assert (
        conflict.message
        == "John Doe (moodle 503) and John Doe (moodle 502) are both s2"
    )
    namesakes = [moodle("502", "John Doe"), moodle("503", "John Doe")]
    matches, conflicts = match_rows(ledger, "moodle", "m1", namesakes, ["s2"])
    assert ([match.key for match in matches], conflicts) == ([None, "s2"], [])


def test_a_row_is_the_namesakes_where_the_class_list_has_the_other_ones_id(
    course: Course,
) -> None:
    ledger = class_list(course, "id,name,canvas\ns1,John Doe,101\ns2,John Doe,\n")
    rows = [Identity((("canvas", "102"),), (), "John Doe")]
    matches, conflicts = match_rows(ledger, "canvas", "m1", rows, ["s1", "s2"])
    assert ([match.key for match in matches], conflicts) == (["s2"], [])


def test_rows_that_have_no_ids_are_found_by_name_and_two_namesakes_by_email_alone(
    course: Course,
) -> None:
    """Some platforms' own files have accounts, and not the number that stands in a download."""
    ledger = class_list(course, "id,email\n")
    downloaded = [
        Identity((("ilias", "11"),), (), "Ada Lovelace"),
        Identity((("ilias", "12"),), (), "Max Roe"),
    ]
    ada, max_ = link_download(
        ledger, "ilias", "m1", downloaded, ["Ada Lovelace_11", "Max Roe_12"], "a.zip"
    )
    rows = [
        Identity((), ("u7",), "Ada Lovelace"),
        Identity((), ("u8",), "Max Roe"),
        Identity((), ("u9",), "Max Roe"),
    ]
    matches, conflicts = match_rows(ledger, "ilias", "m1", rows, [ada, max_])
    assert [match.key for match in matches] == ["Ada Lovelace_11", None, None]
    with pytest.raises(
        KitError,
        match=r"either may be Max Roe_12\. Write who is who into students\.csv, column `email`",
    ):
        assert_certain(conflicts, [max_], "ilias")
    assert_certain(conflicts, [ada], "ilias")


# Rows of platforms' own files


def test_moodles_worksheet_in_another_language_and_without_names() -> None:
    german = [
        ["ID", "Vollständiger Name", "E-Mail-Adresse", "Status", "Gruppe", "Bewertung"],
        ["Teilnehmer/in 501", "Person One", "one@example.org", "Abgegeben", "Rot", ""],
    ]
    assert moodle_worksheet.read_people(german) == {
        1: moodle("501", "Person One", "one@example.org", "Rot")
    }
    blind = [
        ["Identifier", "Status", "Grade"],
        ["Participant 7", "Submitted", ""],
        ["", "", ""],
    ]
    assert moodle_worksheet.read_people(blind) == {1: moodle("7", "")}


def test_canvas_gradebook_without_its_row_of_points() -> None:
    table = [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "m1 (4)"],
        ["    Points Possible", "", "", "", "", "10"],
        ["Doe, Jane", "101", "77", "jdoe", "A", ""],
    ]
    assert canvas_gradebook.read_people(table) == {
        2: Identity((("canvas", "101"),), ("jdoe", "77"), "Doe, Jane")
    }
