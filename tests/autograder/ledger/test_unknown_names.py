"""Names in [due] and [extensions] that nobody has are said by every command."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from autograder.cli.commands import main
from autograder.course import load_course
from autograder.ledger.ledger_file import LedgerContent, StudentRecord, write_content
from autograder.ledger.unknown_names import unknown_names

SETTINGS = """
[course]
timezone = "UTC"
[due]
a1_vectors = "2026-03-02 09:00"
a3_masks = "2026-03-09 09:00"
[extensions.a1_vectors]
s01 = 2
ana = 1
"Ada Roe" = 1
[extensions.a1_vector]
s01 = 2
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A course of one assignment, a1_vectors."""
    source = tmp_path / "source" / "a1_vectors" / "a1_vectors.py"
    source.parent.mkdir(parents=True)
    source.write_text("", encoding="utf-8")
    (tmp_path / "course.toml").write_text(SETTINGS, encoding="utf-8")
    return tmp_path


ASSIGNMENTS = [
    "course.toml: [due] names 'a3_masks', and there is no such assignment",
    "course.toml: [extensions.a1_vector]: there is no assignment 'a1_vector'; is it 'a1_vectors'?",
]


def test_before_anybody_hands_in_and_without_a_class_list_any_student_may_be_right(
    root: Path,
) -> None:
    assert unknown_names(load_course(root)) == ASSIGNMENTS


def test_students_are_known_by_the_class_list(root: Path) -> None:
    (root / "students.csv").write_text(
        "id,name\ns01,Ada Roe\nanna,Anna Lee\n", encoding="utf-8"
    )
    assert unknown_names(load_course(root)) == [
        *ASSIGNMENTS,
        "course.toml: extensions.a1_vectors: there is no student 'ana'; is it 'anna'?",
        "course.toml: extensions.a1_vectors: there is no student 'Ada Roe': "
        "the class list calls them 's01', write that",
    ]


def test_a_class_list_that_cannot_be_read_leaves_assignments(root: Path) -> None:
    """Commands that need the class list say what is wrong with it."""
    (root / "students.csv").write_text("name\nAda Roe\n", encoding="utf-8")
    assert unknown_names(load_course(root)) == ASSIGNMENTS


def test_an_email_means_a_person_and_a_name_of_two_means_nobody(root: Path) -> None:
    settings = root / "course.toml"
    text = settings.read_text(encoding="utf-8")
    text = text.replace("ana = 1", '"ANNA@x.edu" = 1')
    settings.write_text(text, encoding="utf-8")
    (root / "students.csv").write_text(
        "id,name,email\ns01,Ada Roe,\ns02,Ada Roe,\nu77,Anna Lee,anna@x.edu\n",
        encoding="utf-8",
    )
    beginning = "course.toml: extensions.a1_vectors: there is no student"
    assert unknown_names(load_course(root))[2:] == [
        f"{beginning} 'ANNA@x.edu': the class list calls them 'u77', write that",
        f"{beginning} 'Ada Roe'",
    ]


def test_whom_a_download_brought_is_known(root: Path) -> None:
    students = ("ana", "Ada Roe", "s01")
    records = {name: StudentRecord(name, f"folder-{name}") for name in students}
    write_content(root, LedgerContent(1, records))
    (root / "submitted" / "zoe").mkdir(parents=True)
    assert unknown_names(load_course(root)) == ASSIGNMENTS


def test_times_alone_and_no_times_name_no_student(root: Path) -> None:
    (root / "course.toml").write_text(
        "[due]\na1_vector = 2026-03-02T09:00:00Z\n[extensions.a1_vectors]\n"
    )
    assert unknown_names(load_course(root)) == [
        "course.toml: [due] names 'a1_vector', and there is no such assignment; "
        "is it 'a1_vectors'?"
    ]
    (root / "course.toml").write_text("")
    assert unknown_names(load_course(root)) == []


def test_students_are_known_by_what_was_handed_in(root: Path) -> None:
    for student in ("S01", "anna", "Ada Roe", ".collected"):
        (root / "submitted" / student / "a1_vectors").mkdir(parents=True)
    assert unknown_names(load_course(root)) == [
        *ASSIGNMENTS,
        "course.toml: extensions.a1_vectors: nobody has handed in anything yet as 'ana'; "
        "is it 'anna'?",
    ]


@pytest.mark.parametrize(
    "command",
    [
        ["totals"],
        ["report", "a1_vectors"],
        ["grade", "a1_vectors"],
        ["build", "a1_vectors", "--check"],
    ],
)
def test_every_command_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(root)
    said = CliRunner().invoke(main, command).stderr
    assert said.startswith("\n".join(ASSIGNMENTS) + "\n")
