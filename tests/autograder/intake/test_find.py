"""Whose notebooks lie where."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multiples import ANSWERS, notebook, sheet

from autograder.basics.errors import KitError, NothingToGrade, UnreadableSubmission
from autograder.course import Assignment, Course
from autograder.intake import overlooked
from autograder.intake.find import find_submissions
from autograder.intake.notebook import read_submission
from autograder.intake.overlooked import find_overlooked
from autograder.intake.released_notebook import Release
from autograder.ledger.folder_names import safe_folder


def put(path: Path, written: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook(sheet(ANSWERS))))
    os.utime(path, (written, written))
    return path


def found(
    course: Course, assignment: Assignment, *paths: Path
) -> list[tuple[str, str]]:
    """(student, path below the course folder)"""
    there = find_submissions(course, assignment, paths)
    return [
        (one.student, one.path.relative_to(course.root).as_posix()) for one in there
    ]


def test_the_default_is_the_submitted_folder(
    course: Course, assignment: Assignment
) -> None:
    put(course.root / "submitted/student-002/m1/m1.ipynb")
    put(course.root / "submitted/student-001/m1/m1.ipynb")
    put(course.root / "submitted/student-001/other/other.ipynb")
    put(course.root / "submitted/student-001/m1/.ipynb_checkpoints/m1-checkpoint.ipynb")
    assert found(course, assignment) == [
        ("student-001", "submitted/student-001/m1/m1.ipynb"),
        ("student-002", "submitted/student-002/m1/m1.ipynb"),
    ]


def test_a_students_folder_of_another_assignment_is_a_folder_of_notebooks(
    course: Course, assignment: Assignment
) -> None:
    put(course.root / "submitted/student-001/m2/m2.ipynb")
    named = course.root / "submitted/student-001/m2"
    assert found(course, assignment, named) == [
        ("m2", "submitted/student-001/m2/m2.ipynb")
    ]


def test_programs_of_the_release_beside_a_notebook_are_no_submissions(
    course: Course, assignment: Assignment
) -> None:
    path = put(course.root / "submitted/student-001/m1/m1.ipynb")
    for name in (
        "check.py",
        "make_my_course.py",
        "m1.cells.json",
        "my_course/a1_word_vectors.py",
    ):
        (path.parent / name).parent.mkdir(exist_ok=True)
        (path.parent / name).write_text("raise SystemExit(7)\n")
    there = find_submissions(course, assignment, [])
    assert [one.path for one in there] == [path]
    assert find_overlooked(course, assignment, [], there) == []


def test_a_renamed_notebook_is_found_and_of_several_the_newest(
    course: Course, assignment: Assignment
) -> None:
    put(course.root / "submitted/student-001/m1/my work.ipynb")
    put(course.root / "submitted/student-002/m1/new.ipynb", written=2000)
    put(course.root / "submitted/student-002/m1/old.ipynb", written=1000)
    put(course.root / "submitted/student-003/m1/m1.ipynb", written=1000)
    put(course.root / "submitted/student-003/m1/scratch.ipynb", written=2000)
    assert [path for _, path in found(course, assignment)] == [
        "submitted/student-001/m1/my work.ipynb",
        "submitted/student-002/m1/new.ipynb",
        "submitted/student-003/m1/m1.ipynb",
    ]


def test_a_folder_without_a_notebook_is_found_so_that_it_is_reported(
    course: Course, assignment: Assignment, release: Release
) -> None:
    (course.root / "submitted/student-001/m1").mkdir(parents=True)
    (only,) = find_submissions(course, assignment, [])
    assert only.student == "student-001"
    with pytest.raises(UnreadableSubmission, match="no such file"):
        read_submission(only, release, course.limits)


def test_a_flat_folder_has_one_notebook_a_student(
    course: Course, assignment: Assignment
) -> None:
    put(course.root / "downloads/m1/student-001.ipynb")
    put(course.root / "downloads/m1/student-002.ipynb")
    put(course.root / "downloads/m1/.hidden/student-005.ipynb")
    assert found(course, assignment, course.root / "downloads/m1") == [
        ("student-001", "downloads/m1/student-001.ipynb"),
        ("student-002", "downloads/m1/student-002.ipynb"),
    ]


def test_single_notebooks_and_students_folders(
    course: Course, assignment: Assignment
) -> None:
    laid_out = put(course.root / "submitted/student-001/m1/m1.ipynb")
    alone = put(course.root / "student-002.ipynb")
    renamed = put(course.root / "submitted/student-003/m1/mine.ipynb")
    assert [one for one, _ in found(course, assignment, laid_out, alone, renamed)] == [
        "student-001",
        "student-002",
        "student-003",
    ]
    assert found(course, assignment, laid_out.parent.parent) == [
        ("student-001", "submitted/student-001/m1/m1.ipynb")
    ]
    assert found(course, assignment, laid_out.parent) == [
        ("student-001", "submitted/student-001/m1/m1.ipynb")
    ]
    assert found(course, assignment, renamed.parent) == [
        ("student-003", "submitted/student-003/m1/mine.ipynb")
    ]


def test_one_of_several_notebooks_in_a_folder_called_like_the_assignment(
    course: Course, assignment: Assignment
) -> None:
    student_001 = put(course.root / "downloads/m1/student-001.ipynb")
    student_002 = put(course.root / "downloads/m1/student-002.ipynb")
    assert [one for one, _ in found(course, assignment, student_001, student_002)] == [
        "student-001",
        "student-002",
    ]


def test_the_same_notebook_named_twice_is_one(
    course: Course, assignment: Assignment
) -> None:
    student_001 = put(course.root / "submitted/student-001/m1/m1.ipynb")
    assert len(found(course, assignment, student_001, course.root / "submitted")) == 1


def test_two_notebooks_of_one_student_are_refused(
    course: Course, assignment: Assignment
) -> None:
    one = put(course.root / "one/student-001.ipynb")
    two = put(course.root / "two/student-001.ipynb")
    with pytest.raises(
        KitError,
        match=r"two notebooks belong to student-001: .*one/student-001\.ipynb and "
        r".*two/student-001\.ipynb",
    ):
        find_submissions(course, assignment, [one, two])


def test_a_linked_folder_is_found_and_refused_when_read(
    course: Course, assignment: Assignment, release: Release
) -> None:
    put(course.root / "submitted/student-001/m1/m1.ipynb")
    (course.root / "submitted/student-005").symlink_to(
        course.root / "submitted/student-001"
    )
    student_001, student_005 = find_submissions(course, assignment, [])
    assert (student_001.student, student_005.student) == ("student-001", "student-005")
    with pytest.raises(UnreadableSubmission, match="is a link"):
        read_submission(student_005, release, course.limits)


def test_a_link_that_is_named_on_the_command_line_is_refused_and_the_others_are_graded(
    course: Course, assignment: Assignment, release: Release, tmp_path: Path
) -> None:
    """As `grade m1 ../submission/m1.ipynb` of a workflow names it, or a shell where it finds
    `*`.
    """
    honest = put(course.root / "submitted/student-001/m1/m1.ipynb")
    key = put(tmp_path / "solutions/m1/m1.ipynb")
    handed_in = tmp_path / "handed-in"
    handed_in.mkdir()
    (handed_in / "notebook.ipynb").symlink_to(key)
    (handed_in / "folder").symlink_to(key.parent)
    (handed_in / "up").symlink_to(tmp_path)
    (handed_in / "nowhere.ipynb").symlink_to("nothing")
    (course.root / "submitted/student-002").symlink_to(key.parent.parent)
    named = [
        handed_in / "notebook.ipynb",
        handed_in / "folder/m1.ipynb",
        handed_in / "nowhere.ipynb",
        handed_in / "up/solutions/m1",
        course.root / "submitted/student-002",
    ]
    for path in named:
        alone, other = sorted(
            find_submissions(course, assignment, [path, honest]),
            key=lambda submission: submission.path == honest,
        )
        assert read_submission(other, release, course.limits).student == "student-001"
        with pytest.raises(UnreadableSubmission, match="is a link"):
            read_submission(alone, release, course.limits)


def test_links_that_lead_to_the_course_are_the_instructors_own(
    course: Course, assignment: Assignment, release: Release, tmp_path: Path
) -> None:
    put(course.root / "submitted/student-001/m1/m1.ipynb")
    (tmp_path / "teaching").symlink_to(course.root.parent)
    path = tmp_path / "teaching" / course.root.name / "submitted"
    for named in (path, path / "student-001", path / "student-001/m1/m1.ipynb"):
        (submission,) = find_submissions(course, assignment, [named])
        assert (
            read_submission(submission, release, course.limits).student == "student-001"
        )
    (course.root / "submitted/student-002").symlink_to("student-001")
    for student in find_submissions(course, assignment, [path])[1:]:
        with pytest.raises(UnreadableSubmission, match="student-002: is a link"):
            read_submission(student, release, course.limits)


def test_nothing_found_says_what_was_looked_for(
    course: Course, assignment: Assignment
) -> None:
    with pytest.raises(
        NothingToGrade,
        match=r"submitted: looked for <student>/m1/m1\.ipynb and for notebooks",
    ):
        find_submissions(course, assignment, [])
    with pytest.raises(NothingToGrade, match="does not exist"):
        find_submissions(course, assignment, [course.root / "none"])
    with pytest.raises(NothingToGrade, match=r"course\.toml is not a notebook"):
        find_submissions(course, assignment, [course.root / "course.toml"])


@pytest.mark.parametrize(
    "name",
    [
        "student-001",
        "Last, First",
        "größe_42",
        "a.b@c.org",
        "李雷",
        "O'Neil (late)",
        "O’Neil",
        "ana&bob",
        "group #3",
    ],
)
def test_ordinary_names_stay(name: str) -> None:
    assert safe_folder(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "..",
        ".",
        "../x",
        "a/b",
        "a\\b",
        "-rf",
        ".hidden",
        "CON",
        "nul.txt",
        "a\nb",
        "\x1b[31m",
        "a" * 300,
        "李" * 100,
        "\u202egpj",
        "a\udcff",
        "e\u0301",
        "a ",
        "=1+1",
        "a:b",
        "%s",
    ],
)
def test_other_names_become_safe(name: str) -> None:
    safe = safe_folder(name)
    assert safe != name
    assert safe_folder(safe) == safe
    assert not set(safe) & set('/\\:*?"<>|%[]{}\n\0')
    assert len(os.fsencode(safe)) <= 200


def test_names_that_look_alike_once_safe_stay_apart() -> None:
    names = ["a/b", "a\\b", "a:b", "a_b", "a\0b"]
    assert len({safe_folder(name) for name in names}) == 5


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.characters()))
def test_any_name_becomes_safe(name: str) -> None:
    safe = safe_folder(name)
    assert safe_folder(safe) == safe
    assert safe.isprintable()


# What is not taken for a submission is named


def missed(course: Course, assignment: Assignment, *paths: Path) -> list[str]:
    return find_overlooked(
        course, assignment, paths, find_submissions(course, assignment, paths)
    )


def test_a_folder_called_like_a_notebook_is_found_and_refused_when_read(
    course: Course, assignment: Assignment, release: Release
) -> None:
    put(course.root / "submitted/student-001/m1/m1.ipynb")
    (course.root / "submitted/student-002.ipynb").mkdir()
    (course.root / "submitted/student-003/m1/m1.ipynb").mkdir(parents=True)
    one, two, three = find_submissions(course, assignment, [])
    assert [each.student for each in (one, two, three)] == [
        "student-001",
        "student-002",
        "student-003",
    ]
    for folder in (two, three):
        with pytest.raises(UnreadableSubmission, match="is a folder"):
            read_submission(folder, release, course.limits)


def test_a_file_is_looked_for_eight_folders_deep(
    course: Course, assignment: Assignment
) -> None:
    """Eight folders below submitted/ are opened, and no ninth."""
    submitted = course.root / "submitted"
    eighth = "/".join("abcdefgh")
    put(submitted / "student-001/m1/m1.ipynb")
    put(submitted / eighth / "seen.ipynb")
    put(submitted / eighth / "i" / "unseen.ipynb")
    (message,) = missed(course, assignment)
    assert message.startswith(f"submitted/{eighth}/seen.ipynb: it lies neither in")


def test_so_many_files_are_looked_at_and_no_more(
    course: Course, assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One folder and two files in submitted/: three entries, and a fourth below."""
    submitted = course.root / "submitted"
    for name in ("a.IPYNB", "b.IPYNB", "c/d.IPYNB"):
        put(submitted / name)
    monkeypatch.setattr(overlooked, "MOST_ENTRIES", 4)
    assert len(find_overlooked(course, assignment, [], [])) == 3
    monkeypatch.setattr(overlooked, "MOST_ENTRIES", 3)
    *messages, last = find_overlooked(course, assignment, [], [])
    assert len(messages) == 2
    assert last.endswith(
        "submitted: holds more than 3 files; what lies beyond was not looked at"
    )


def test_a_students_folder_may_begin_with_a_dot(
    course: Course, assignment: Assignment
) -> None:
    put(course.root / "submitted/.ada/m1/m1.ipynb")
    # as nbgrader calls them
    assert found(course, assignment) == [(".ada", "submitted/.ada/m1/m1.ipynb")]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (
            "group-1/student-002/m1/m1.ipynb",
            "lies neither in <student>/m1/ nor directly in the folder",
        ),
        ("student-002/m1/copy/m1.ipynb", "lies neither in"),
        ("student-002/m1.ipynb", "lies neither in"),
        (".hidden/work.ipynb", "lies neither in"),
        ("student-002.IPYNB", "does not end in .ipynb"),
        ("student-002.ipynb.txt", "does not end in .ipynb"),
        ("student-002/m1/m1.ipynb.json", "does not end in .ipynb"),
    ],
)
def test_what_looks_like_a_submission_and_is_none_is_named(
    course: Course, assignment: Assignment, path: str, said: str
) -> None:
    put(course.root / "submitted/student-001/m1/m1.ipynb")
    put(course.root / "submitted" / path)
    (line,) = missed(course, assignment)
    assert line.startswith(f"submitted/{path}: ")
    assert said in line


def test_a_link_that_leads_nowhere_is_named(
    course: Course, assignment: Assignment
) -> None:
    put(course.root / "submitted/student-001/m1/m1.ipynb")
    (course.root / "submitted/student-002").symlink_to("nowhere")
    assert missed(course, assignment) == [
        "submitted/student-002: a link that leads nowhere"
    ]


def test_other_work_and_what_tools_keep_is_not_named(
    course: Course, assignment: Assignment
) -> None:
    (course.root / "source/m2").mkdir()
    (course.root / "source/m2/m2.py").touch()
    for path in (
        "student-001/m1/m1.ipynb",
        "student-001/m1/previous/1/m1.ipynb",
        "student-001/m1/other.ipynb",
        "student-001/m1/.ipynb_checkpoints/m1-checkpoint.ipynb",
        "student-001/m2/m2.ipynb",
        ".ipynb_checkpoints/student-001-checkpoint.ipynb",
        ".collected/m1.ipynb",
        "._student-001.txt.ipynb_",
    ):
        put(course.root / "submitted" / path)
    (course.root / "submitted/README.md").touch()
    assert missed(course, assignment) == []


def test_where_nothing_is_found_an_example_is_named(
    course: Course, assignment: Assignment
) -> None:
    put(course.root / "submitted/group-1/student-002/m1/m1.ipynb")
    with pytest.raises(
        NothingToGrade,
        match=r"there is submitted/group-1/student-002/m1/m1\.ipynb: it lies neither",
    ):
        find_submissions(course, assignment, [])


def test_a_missing_notebook_says_what_is_there_instead(
    course: Course, assignment: Assignment, release: Release
) -> None:
    put(course.root / "submitted/student-001/m1/essay.pdf")
    (only,) = find_submissions(course, assignment, [])
    with pytest.raises(
        UnreadableSubmission,
        match=r"no such file; there is essay\.pdf: a notebook must be",
    ):
        read_submission(only, release, course.limits)
