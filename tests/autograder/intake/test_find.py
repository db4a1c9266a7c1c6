"""Whose notebooks lie where."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multiples import ANSWERS, notebook, sheet

from autograder.course import Assignment, Course
from autograder.errors import KitError, NothingToGrade, UnreadableSubmission
from autograder.intake.find import find_submissions
from autograder.intake.names import is_safe, safe_student
from autograder.intake.notebook import read_submission
from autograder.intake.release import Release


def put(path: Path, written: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook(sheet(ANSWERS))))
    os.utime(path, (written, written))
    return path


def found(course: Course, assignment: Assignment, *paths: Path) -> list[tuple[str, str]]:
    """(student, path below the course folder)"""
    there = find_submissions(course, assignment, paths)
    return [(one.student, one.path.relative_to(course.root).as_posix()) for one in there]


def test_the_default_is_the_submitted_folder(course: Course, assignment: Assignment) -> None:
    put(course.root / "submitted/bob/m1/m1.ipynb")
    put(course.root / "submitted/alice/m1/m1.ipynb")
    put(course.root / "submitted/alice/other/other.ipynb")
    put(course.root / "submitted/alice/m1/.ipynb_checkpoints/m1-checkpoint.ipynb")
    assert found(course, assignment) == [
        ("alice", "submitted/alice/m1/m1.ipynb"),
        ("bob", "submitted/bob/m1/m1.ipynb"),
    ]


def test_a_renamed_notebook_is_found_and_of_several_the_newest(course: Course, assignment: Assignment) -> None:
    put(course.root / "submitted/alice/m1/my work.ipynb")
    put(course.root / "submitted/bob/m1/new.ipynb", written=2000)
    put(course.root / "submitted/bob/m1/old.ipynb", written=1000)
    put(course.root / "submitted/carol/m1/m1.ipynb", written=1000)
    put(course.root / "submitted/carol/m1/scratch.ipynb", written=2000)
    assert [path for _, path in found(course, assignment)] == [
        "submitted/alice/m1/my work.ipynb", "submitted/bob/m1/new.ipynb", "submitted/carol/m1/m1.ipynb",
    ]  # fmt: skip


def test_a_folder_without_a_notebook_is_found_so_that_it_is_reported(
    course: Course, assignment: Assignment, release: Release
) -> None:
    (course.root / "submitted/alice/m1").mkdir(parents=True)
    (only,) = find_submissions(course, assignment, [])
    assert only.student == "alice"
    with pytest.raises(UnreadableSubmission, match="no such file"):
        read_submission(only, release, course.limits)


def test_a_flat_folder_has_one_notebook_a_student(course: Course, assignment: Assignment) -> None:
    put(course.root / "downloads/m1/alice.ipynb")
    put(course.root / "downloads/m1/bob.ipynb")
    put(course.root / "downloads/m1/.hidden/eve.ipynb")
    assert found(course, assignment, course.root / "downloads/m1") == [
        ("alice", "downloads/m1/alice.ipynb"),
        ("bob", "downloads/m1/bob.ipynb"),
    ]


def test_single_notebooks_and_students_folders(course: Course, assignment: Assignment) -> None:
    laid_out = put(course.root / "submitted/alice/m1/m1.ipynb")
    alone = put(course.root / "bob.ipynb")
    renamed = put(course.root / "submitted/carol/m1/mine.ipynb")
    assert [one for one, _ in found(course, assignment, laid_out, alone, renamed)] == ["alice", "bob", "carol"]
    assert found(course, assignment, laid_out.parent.parent) == [("alice", "submitted/alice/m1/m1.ipynb")]
    assert found(course, assignment, laid_out.parent) == [("alice", "submitted/alice/m1/m1.ipynb")]
    assert found(course, assignment, renamed.parent) == [("carol", "submitted/carol/m1/mine.ipynb")]


def test_one_of_several_notebooks_in_a_folder_called_like_the_assignment(
    course: Course, assignment: Assignment
) -> None:
    alice = put(course.root / "downloads/m1/alice.ipynb")
    bob = put(course.root / "downloads/m1/bob.ipynb")
    assert [one for one, _ in found(course, assignment, alice, bob)] == ["alice", "bob"]


def test_the_same_notebook_named_twice_is_one(course: Course, assignment: Assignment) -> None:
    alice = put(course.root / "submitted/alice/m1/m1.ipynb")
    assert len(found(course, assignment, alice, course.root / "submitted")) == 1


def test_two_notebooks_of_one_student_are_refused(course: Course, assignment: Assignment) -> None:
    one = put(course.root / "one/alice.ipynb")
    two = put(course.root / "two/alice.ipynb")
    with pytest.raises(KitError, match=r"two notebooks belong to alice: .*one/alice\.ipynb and .*two/alice\.ipynb"):
        find_submissions(course, assignment, [one, two])


def test_a_linked_folder_is_found_and_refused_when_read(
    course: Course, assignment: Assignment, release: Release
) -> None:
    put(course.root / "submitted/alice/m1/m1.ipynb")
    (course.root / "submitted/eve").symlink_to(course.root / "submitted/alice")
    alice, eve = find_submissions(course, assignment, [])
    assert (alice.student, eve.student) == ("alice", "eve")
    with pytest.raises(UnreadableSubmission, match="is a link"):
        read_submission(eve, release, course.limits)


def test_nothing_found_says_what_was_looked_for(course: Course, assignment: Assignment) -> None:
    with pytest.raises(NothingToGrade, match=r"submitted: looked for <student>/m1/m1\.ipynb and for notebooks"):
        find_submissions(course, assignment, [])
    with pytest.raises(NothingToGrade, match="does not exist"):
        find_submissions(course, assignment, [course.root / "none"])
    with pytest.raises(NothingToGrade, match=r"course\.toml is not a notebook"):
        find_submissions(course, assignment, [course.root / "course.toml"])


@pytest.mark.parametrize("name", ["alice", "Doe, Jane", "student-001", "jané_42", "a.b@c.org", "李雷", "O'Neil (late)"])
def test_ordinary_names_stay(name: str) -> None:
    assert safe_student(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "..", ".", "../x", "a/b", "a\\b", "-rf", ".hidden", "CON", "nul.txt", "a\nb", "\x1b[31m", "a" * 300,
     "李" * 100, "\u202egpj", "a\udcff", "e\u0301", "a ", "=1+1", "a:b", "%s"],
)  # fmt: skip
def test_other_names_become_safe(name: str) -> None:
    safe = safe_student(name)
    assert is_safe(safe)
    assert safe != name
    assert safe_student(safe) == safe
    assert len(os.fsencode(safe)) <= 200


def test_names_that_look_alike_once_safe_stay_apart() -> None:
    names = ["a/b", "a\\b", "a:b", "a_b", "a\0b"]
    assert len({safe_student(name) for name in names}) == 5


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.characters()))
def test_any_name_becomes_safe(name: str) -> None:
    assert is_safe(safe_student(name))
