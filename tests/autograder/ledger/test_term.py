"""A whole term: three assignments, thirty people, four platforms, and every way in which names and
numbers mislead.

Each notebook holds the points that it is worth, so that each mark tells whose work it was given
for. The downloads are named as these sources name them: moodle `mod/assign/classes/downloader.php`
(people and groups) and `mod/assign/gradingtable.php` (the worksheet), canvas-lms
`lib/content_zipper.rb` and `lib/gradebook_importer.rb`, GitHub Classroom
`app/models/concerns/nameable.rb`; Gradescope's as its exports have them.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Mapping
from pathlib import Path

import pytest
from downloaded import exported, grade, marks, take_in, write_csv

from autograder.basics.errors import KitError
from autograder.course import Course, load_course
from autograder.reporting.marks_commands import totals_command

NAMES = {
    1: "Person O’One",
    2: "Zoë Two",
    3: "ana&bob Three",
    4: "group #3 Four",
    5: "John Doe",
    6: "John Doe",
    7: "John Smith",
    8: "Person " + "Eight" * 18,
    9: "Nine \U0001f600",
    10: "Ten Person_777",
    11: "Anon",
    12: "Twelve Person",
    29: "John Smith",
}
PEOPLE = {n: NAMES.get(n, f"Person Number{n}") for n in range(1, 31)}
UNLISTED = (29, 30)
"""A namesake of number 7, and a guest: the class list does not have them."""


def student(number: int) -> str:
    """Here, whoever is in the class list is called by its id; the others as the platform called
    them first.
    """
    return (
        f"{PEOPLE[number]}_{500 + number}"
        if number in UNLISTED
        else f"student-{number:03d}"
    )


@pytest.fixture
def course(tmp_path: Path) -> Course:
    (tmp_path / "course.toml").write_text("", encoding="utf-8")
    for name in ("t1", "t2", "t3"):
        (tmp_path / "source" / name).mkdir(parents=True)
        (tmp_path / "source" / name / f"{name}.py").write_text("", encoding="utf-8")
    # two of one name have Canvas ids; of GitHub's users one is really called ghost-1
    canvas, github = (
        {5: "105", 6: "106"},
        {12: "jane_univ", 13: "octocat", 14: "ghost", 15: "ghost-1"},
    )
    rows = [
        [student(n), name, f"p{n}@example.org", canvas.get(n, ""), github.get(n, "")]
        for n, name in PEOPLE.items()
        if n not in UNLISTED
    ]
    write_csv(
        tmp_path / "students.csv", [["id", "name", "email", "canvas", "github"], *rows]
    )
    return load_course(tmp_path)


def worksheet(
    course: Course, first: int, groups: Mapping[int, str] | None = None
) -> Path:
    """Moodle's grading worksheet; participants are numbered anew in each assignment."""
    header = [
        "Identifier",
        "Full name",
        "Email address",
        "Status",
        *(["Group"] if groups else []),
        "Grade",
        "Maximum grade",
        "Grade can be changed",
        "Last modified (submission)",
        "Last modified (grade)",
    ]
    rows = [
        [
            f"Participant {first + n}",
            name,
            f"p{n}@example.org",
            "Submitted for grading",
            *([groups.get(n, "Default group")] if groups else []),
            "",
            "1000.00",
            "Yes",
            "-",
            "-",
        ]
        for n, name in PEOPLE.items()
    ]
    return write_csv(course.root / f"worksheet-{first}.csv", [header, *rows])


def on_moodle(name: str) -> str:
    """A name as Moodle's `clean_filename` leaves it in a folder's name, in decomposed letters as
    some archivers do.
    """
    kept = "".join(c for c in name.replace("_", " ") if c not in "&<>\"`|':\\/")
    return unicodedata.normalize("NFD", kept)


def on_canvas(name: str) -> str:
    """A sortable name as Canvas writes it: letters, digits and underscores, in small letters."""
    first, _, last = (
        name.rpartition(" ")
        if not name.endswith("_777")
        else ("Ten", " ", "Person_777")
    )
    return "".join(c for c in f"{last}{first}".lower() if c.isalnum() or c == "_")


def test_a_whole_term(course: Course) -> None:
    # the first assignment: everybody on Moodle
    works = {
        f"{on_moodle(name)}_{500 + n}_assignsubmission_file/t1.ipynb": n
        for n, name in PEOPLE.items()
    }
    with pytest.raises(
        KitError,
        match=r"John Smith \(moodle 507\) and John Smith \(moodle 529\) have one name",
    ):
        take_in(course, "t1", "moodle", works)
    assert list(course.submitted.glob("*/t1")) == []
    sheet = worksheet(course, 500)
    take_in(course, "t1", "moodle", works, sheet)
    grade(course, "t1")
    assert marks(course, "t1") == {student(n): str(n) for n in PEOPLE}
    filled = exported(course, "t1", "moodle", sheet)
    assert {row["Identifier"]: row["Grade"] for row in filled} == {
        f"Participant {500 + n}": str(n) for n in PEOPLE
    }

    # the second: most on Canvas, four at GitHub, one of them with a second repository
    on_github = (12, 13, 14, 15)
    take_in(
        course,
        "t2",
        "canvas",
        {
            f"{on_canvas(name)}{'_LATE' if n == 16 else ''}_{100 + n}_{9000 + n}_t2.ipynb": 100
            + n
            for n, name in PEOPLE.items()
            if n not in on_github
        },
        gradebook(course),
    )
    take_in(
        course,
        "t2",
        "github",
        {
            "t2-submissions/t2-jane_univ/t2.ipynb": 112,
            "t2-submissions/t2-octocat/t2.ipynb": 0,
            "t2-submissions/t2-octocat-1/t2.ipynb": 113,
            "t2-submissions/t2-ghost/t2.ipynb": 114,
            "t2-submissions/t2-ghost-1/t2.ipynb": 115,
        },
    )
    grade(course, "t2")
    assert marks(course, "t2") == {student(n): str(100 + n) for n in PEOPLE}
    filled = exported(course, "t2", "canvas", gradebook(course))
    by_id = {row["ID"]: row["t2 (4711)"] for row in filled if row["ID"]}
    assert by_id == {str(100 + n): str(100 + n) for n in PEOPLE}

    # the third: pairs on Gradescope, whose student ids come with the second export; the others in
    # groups on Moodle
    for with_sid in (False, True):
        take_in(course, "t3", "gradescope", gradescope(with_sid))
    groups = {n: ("Red_Team" if n <= 20 else "Group 721") for n in range(17, 29)}
    take_in(
        course,
        "t3",
        "moodle",
        {
            # the group's number is participant 29's
            "Red Team_729_assignsubmission_file/t3.ipynb": 217,
            "Group 721_730_assignsubmission_file/t3.ipynb": 221,
            "Default group_assignsubmission_file/t3.ipynb": 229,
        },
    )
    grade(course, "t3")
    sheet = worksheet(course, 700, groups)
    filled = exported(course, "t3", "moodle", sheet)
    third = {n: 200 + n - (n % 2 == 0) for n in range(1, 17)} | {
        n: 217 if n <= 20 else 221 for n in groups
    }
    third |= {29: 229, 30: 229}
    assert {
        row["Identifier"]: row["Grade"]
        for row in filled
        if int(row["Identifier"].split()[1]) > 716
    } == {f"Participant {700 + n}": str(third[n]) for n in range(17, 31)}
    assert marks(course, "t3") == {student(n): str(third[n]) for n in PEOPLE}

    # the mark of the course: the mean of three shares of 1000
    rows = csv.DictReader(
        io.StringIO(
            "\n".join(
                totals_command(course, course.results, None, print, provisional=False)
            )
        )
    )
    assert {row["student"]: row["total"] for row in rows} == {
        student(n): f"{round((n + 100 + n + third[n]) / 30, 2):g}" for n in PEOPLE
    }


def gradebook(course: Course) -> Path:
    rows = [
        [
            f"{name.rpartition(' ')[2]}, {name.rpartition(' ')[0]}",
            str(100 + n),
            "",
            f"p{n}@example.org",
            "A",
            "",
        ]
        for n, name in PEOPLE.items()
    ]
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "t2 (4711)"]
    return write_csv(
        course.root / "gradebook.csv",
        [header, ["    Points Possible", "", "", "", "", "1000"], *rows],
    )


def gradescope(with_sid: bool) -> dict[str, float | str]:
    """Sixteen people in pairs; number 15 and 16 too."""
    listed, works = "---\n", dict[str, float | str]()
    for n in range(1, 17, 2):
        listed += f"submission_{n}:\n  :submitters:\n"
        for member in (n, n + 1):
            listed += f'  - :name: "{PEOPLE[member]}"\n    :sid: {f"sid{member}" if with_sid else ""}\n'
            listed += f"    :email: p{member}@example.org\n"
        listed += "  :created_at: 2026-10-01 21:00:00 Z\n"
        works[f"export/submission_{n}/t3.ipynb"] = 200 + n
    return {**works, "export/submission_metadata.yml": listed}
