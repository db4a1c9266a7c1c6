"""From the downloads of course systems to submitted/, whatever is in them."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from autograder.basics.errors import KitError, NothingToGrade, ResultsInUse
from autograder.basics.locks import hold_lock
from autograder.course import Assignment, Course
from autograder.intake import archives
from autograder.intake.collected import read_collected
from autograder.ledger import read_ledger
from autograder.platforms.collect import collect


@pytest.fixture
def zipped(tmp_path: Path) -> Path:
    return tmp_path / "download.zip"


def write_zip(path: Path, files: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def collected(course: Course) -> dict[str, str]:
    """Every file of the students' below submitted/ and its content."""
    folder = course.root / "submitted"
    files = (p for p in sorted(folder.glob("[!.]*/**/*")) if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_text() for p in files}


@pytest.mark.parametrize(
    ("origin", "files", "expected"),
    [
        (
            "canvas",
            {
                "doejane_12345_67890_m1.ipynb": "a",
                "roerichard_LATE_23456_67891_my_work-2.ipynb": "b",
            },
            {"doejane_12345/m1/m1.ipynb": "a", "roerichard_23456/m1/m1.ipynb": "b"},
        ),
        (
            "moodle",
            {
                "Student Eleven_12345_assignsubmission_file_/m1.ipynb": "a",
                "Two_Word Name_2_assignsubmission_file_w.ipynb": "b",
                "Li_3_assignsubmission_file/m1.ipynb": "c",
            },
            {
                "Student Eleven_12345/m1/m1.ipynb": "a",
                "Two_Word Name_2/m1/m1.ipynb": "b",
                "Li_3/m1/m1.ipynb": "c",
            },
        ),
        (
            "github",
            {
                "m1-submissions/m1-student-011/m1.ipynb": "a",
                "m1-submissions/m1-student-002/work/mine.ipynb": "b",
            },
            {"student-011/m1/m1.ipynb": "a", "student-002/m1/m1.ipynb": "b"},
        ),
        (
            "github",
            {
                "clones/homework-one-kit011/m1.ipynb": "a",
                "clones/homework-one-kit002/m1.ipynb": "b",
            },
            {"kit011/m1/m1.ipynb": "a", "kit002/m1/m1.ipynb": "b"},
        ),
        (
            "folder",
            {
                "student-001/m1/m1.ipynb": "a",
                "student-002/my work.ipynb": "b",
                "student-003.ipynb": "c",
                "student-004/m1/timestamp.txt": "",
                "student-001/m1/previous/1/m1.ipynb": "old",
                "student-001/m1/.ipynb_checkpoints/m1-checkpoint.ipynb": "x",
            },
            {
                "student-001/m1/m1.ipynb": "a",
                "student-002/m1/m1.ipynb": "b",
                "student-003/m1/m1.ipynb": "c",
            },
        ),
    ],
)
def test_each_systems_names_are_known(
    course: Course,
    assignment: Assignment,
    zipped: Path,
    origin: str,
    files: dict[str, str],
    expected: dict[str, str],
) -> None:
    report = collect(course, assignment, write_zip(zipped, files), origin)
    assert collected(course) == expected
    assert (
        report[0]
        == f"{len(expected)} submissions of m1: {len(expected)} new, 0 replaced, 0 unchanged"
    )


GRADESCOPE = """---
submission_101:
  :submitters:
  - :name: Student Eleven
    :sid: '1001'
    :email: student-011@example.org
  - :name: "Max \\"M\\""
    :sid:
    :email: max@example.org
  :created_at: 2026-03-01 23:30:00.250000000 -08:00
  :score: 10.0
  :results:
    output: |
      submission_999:
        :submitters:
        - :sid: '6666'
  :history:
  - :id: 55
    :created_at: 2026-02-01 10:00:00.000000000 Z
submission_102:
  :submitters:
  - :name: Student Two
    :sid: '1002'
  :created_at: !ruby/object:ActiveSupport::TimeWithZone
    utc: 2026-03-02 08:00:00.000000000 Z
    time: 2026-03-02 09:00:00.000000000 Z
"""


def test_gradescope_gives_people_and_times(
    course: Course, assignment: Assignment, zipped: Path
) -> None:
    files = {
        "assignment_7_export/submission_metadata.yml": GRADESCOPE,
        "assignment_7_export/submission_101/m1.ipynb": "a",
        "assignment_7_export/submission_101/submission_metadata.yml": "submission_101:\n  "
        ":submitters:\n  - :sid: 9\n",
        "assignment_7_export/submission_102/work.ipynb": "b",
    }
    collect(course, assignment, write_zip(zipped, files), "gradescope")
    assert collected(course) == {
        "1001/m1/m1.ipynb": "a",
        "1001/m1/timestamp.txt": "2026-03-02 07:30:00.250000 UTC",
        "1002/m1/m1.ipynb": "b",
        "1002/m1/timestamp.txt": "2026-03-02 08:00:00.000000 UTC",
    }
    assert read_ledger(course).members("1001", "m1") == ("1001", "max@example.org")


# Attempts


def test_the_latest_canvas_upload_wins_and_it_is_said(
    course: Course, assignment: Assignment, zipped: Path
) -> None:
    files = {"doe_1_30_m1-1.ipynb": "new", "doe_1_9_m1.ipynb": "old"}
    report = collect(course, assignment, write_zip(zipped, files), "canvas")
    assert collected(course) == {"doe_1/m1/m1.ipynb": "new"}
    assert (
        report[1]
        == "doe_1: 2 notebooks; took doe_1_30_m1-1.ipynb, left doe_1_9_m1.ipynb"
    )


def test_in_one_attempt_the_notebook_named_like_the_assignment_is_taken(
    course: Course, assignment: Assignment, zipped: Path
) -> None:
    files = {"doe_1_10_m1.ipynb": "work", "doe_1_11_scratch.ipynb": "scratch"}
    collect(course, assignment, write_zip(zipped, files), "canvas")
    assert collected(course) == {"doe_1/m1/m1.ipynb": "work"}


def test_the_latest_gradescope_attempt_wins_whatever_its_file_is_called(
    course: Course, assignment: Assignment, zipped: Path
) -> None:
    listed = "".join(
        f"submission_{n}:\n  :submitters:\n  - :sid: '7'\n  :created_at: 2026-03-0{day} "
        "10:00:00 Z\n"
        for n, day in ((2, 1), (1, 4))
    )
    files = {
        "submission_metadata.yml": listed,
        "submission_2/m1.ipynb": "old",
        "submission_1/final.ipynb": "new",
    }
    collect(course, assignment, write_zip(zipped, files), "gradescope")
    assert collected(course) == {
        "7/m1/m1.ipynb": "new",
        "7/m1/timestamp.txt": "2026-03-04 10:00:00.000000 UTC",
    }


def test_an_earlier_submission_is_kept(
    course: Course, assignment: Assignment, tmp_path: Path
) -> None:
    for number, content in enumerate(("one", "two", "two", "three")):
        files = {"doe_1_10_m1.ipynb": content}
        report = collect(
            course, assignment, write_zip(tmp_path / f"{number}.zip", files), "canvas"
        )
    assert collected(course) == {
        "doe_1/m1/m1.ipynb": "three",
        "doe_1/m1/previous/1/m1.ipynb": "one",
        "doe_1/m1/previous/2/m1.ipynb": "two",
    }
    assert report == [
        "1 submissions of m1: 0 new, 1 replaced, 0 unchanged",
        "doe_1: the earlier submission is kept in previous/2",
    ]


def test_the_record_has_what_came_and_what_was_said(
    course: Course, assignment: Assignment, zipped: Path
) -> None:
    files = {"doe_1_10_m1.ipynb": "a", "roe_2_11_m1.ipynb": "b"}
    report = collect(course, assignment, write_zip(zipped, files), "canvas")
    record = read_collected(course.root / "submitted", "m1")
    assert sorted(record.students) == ["doe_1", "roe_2"]
    assert list(record.said) == report
    assert report[0] == "2 submissions of m1: 2 new, 0 replaced, 0 unchanged"


def test_an_earlier_submission_is_kept_under_its_time(
    course: Course, assignment: Assignment, tmp_path: Path
) -> None:
    def export(day: int, content: str) -> Path:
        listed = (
            f"submission_1:\n  :submitters:\n  - :sid: '7'\n  :created_at: 2026-03-0{day} "
            "10:00:00 Z\n"
        )
        files = {"submission_metadata.yml": listed, "submission_1/m1.ipynb": content}
        return write_zip(tmp_path / f"{day}.zip", files)

    collect(course, assignment, export(2, "second"), "gradescope")
    collect(course, assignment, export(3, "third"), "gradescope")
    report = collect(course, assignment, export(1, "first"), "gradescope")
    assert collected(course)["7/m1/m1.ipynb"] == "third"
    assert collected(course)["7/m1/previous/2026-03-02T100000Z/m1.ipynb"] == "second"
    assert report[1] == "7: what is collected already is newer; kept it"


# What does not fit


def test_what_does_not_match_is_listed_with_the_reason(
    course: Course, assignment: Assignment, zipped: Path
) -> None:
    files = {
        "doe_1_10_m1.ipynb": "a",
        "notes.ipynb": "b",
        "roe_2_11_m1.pdf": "c",
        "poe_3_12_all.zip": "d",
        "big_4_13_m1.ipynb": "x" * (2**20 + 1),
        "__MACOSX/._doe_1_10_m1.ipynb": "e",
        ".DS_Store": "f",
    }
    report = collect(course, assignment, write_zip(zipped, files), "canvas")
    assert list(collected(course)) == ["doe_1/m1/m1.ipynb"]
    assert report[1:] == [
        "notes.ipynb: not named like a canvas download (lastfirst_12345_67890_name.ipynb)",
        "roe_2: has no notebook here: roe_2_11_m1.pdf: not a notebook",
        "poe_3: has no notebook here: poe_3_12_all.zip: an archive that cannot be unpacked: "
        "ask for the notebook itself",
        "big_4: has no notebook here: big_4_13_m1.ipynb: larger than 1 MB",
    ]


def test_files_that_come_with_a_notebook_are_counted_only(
    course: Course, assignment: Assignment, zipped: Path
) -> None:
    files = {
        "m1-ann/m1.ipynb": "a",
        "m1-ann/README.md": "",
        "m1-ann/figures/x.svg": "",
        "m1-ann/.github/w.yml": "",
        "m1-student-002/work.pdf": "",
    }
    report = collect(course, assignment, write_zip(zipped, files), "github")
    assert report[1:] == [
        "2 other files beside the notebooks were left",
        "student-002: has no notebook here: m1-student-002/work.pdf: not a notebook",
    ]


def test_nothing_that_matches_says_what_was_expected(
    course: Course, assignment: Assignment, zipped: Path
) -> None:
    write_zip(zipped, {"student-001/m1.ipynb": "a"})
    with pytest.raises(
        NothingToGrade,
        match=r"lastfirst_12345_67890_name\.ipynb; there is, for example, student-001/m1",
    ):
        collect(course, assignment, zipped, "canvas")
    assert collected(course) == {}


def test_a_source_that_is_missing_or_no_archive_is_named(
    course: Course, assignment: Assignment, zipped: Path
) -> None:
    with pytest.raises(KitError, match=r"download\.zip does not exist"):
        collect(course, assignment, zipped, "canvas")
    zipped.write_text("<html>please log in</html>")
    with pytest.raises(KitError, match=r"download\.zip is no archive"):
        collect(course, assignment, zipped, "canvas")


# Hostile archives


@pytest.mark.parametrize(
    "name",
    [
        "../../evil_1_2_m1.ipynb",
        "/etc/evil_1_2_m1.ipynb",
        "C:\\evil_1_2_m1.ipynb",
        "a\\..\\..\\e_1_2_m1.ipynb",
    ],
)
def test_no_path_leads_out(
    course: Course, assignment: Assignment, zipped: Path, name: str
) -> None:
    report = collect(
        course,
        assignment,
        write_zip(zipped, {name: "x", "doe_1_10_m1.ipynb": "a"}),
        "canvas",
    )
    assert list(collected(course)) == ["doe_1/m1/m1.ipynb"]
    assert report[-1].endswith("its path leads out of the upload")


def test_links_and_devices_are_left_out(
    course: Course, assignment: Assignment, tmp_path: Path
) -> None:
    zipped, taped = tmp_path / "links.zip", tmp_path / "links.tar.gz"
    with zipfile.ZipFile(zipped, "w") as archive:
        link = zipfile.ZipInfo("eve_2_3_m1.ipynb")
        link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("doe_1_10_m1.ipynb", "a")
    with tarfile.open(taped, "w:gz") as tape:
        for name, kind in (
            ("a_2_3_m1.ipynb", tarfile.SYMTYPE),
            ("b_2_4_m1.ipynb", tarfile.LNKTYPE),
            ("c_2_5_m1.ipynb", tarfile.CHRTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            tape.addfile(info)
        info = tarfile.TarInfo("doe_1_10_m1.ipynb")
        info.size = 1
        tape.addfile(info, io.BytesIO(b"a"))
    for source, refused in ((zipped, 1), (taped, 3)):
        report = collect(course, assignment, source, "canvas")
        assert list(collected(course)) == ["doe_1/m1/m1.ipynb"]
        assert "\n".join(report).count("a link or a device") == refused


def test_programs_of_the_release_that_come_along_are_left_out(
    course: Course, assignment: Assignment, tmp_path: Path
) -> None:
    upload = tmp_path / "upload"
    for name in (
        "m1.ipynb",
        "check.py",
        "make_my_course.py",
        "m1.cells.json",
        "my_course/a1_word_vectors.py",
    ):
        (upload / "student-001" / name).parent.mkdir(parents=True, exist_ok=True)
        (upload / "student-001" / name).write_text(name)
    report = collect(course, assignment, upload, "folder")
    assert collected(course) == {"student-001/m1/m1.ipynb": "m1.ipynb"}
    assert report == [
        "1 submissions of m1: 1 new, 0 replaced, 0 unchanged",
        "4 other files beside the notebooks were left",
    ]


def test_links_in_a_folder_are_not_followed(
    course: Course, assignment: Assignment, tmp_path: Path
) -> None:
    secret = tmp_path / "secret" / "secret.ipynb"
    secret.parent.mkdir()
    secret.write_text("secret")
    upload = tmp_path / "upload"
    upload.mkdir()
    (upload / "student-001.ipynb").write_text("a")
    (upload / "student-005.ipynb").symlink_to(secret)
    (upload / "all").symlink_to(secret.parent)
    report = collect(course, assignment, upload, "folder")
    assert collected(course) == {"student-001/m1/m1.ipynb": "a"}
    assert len([line for line in report if "link" in line]) == 2


def test_a_member_that_is_larger_than_it_says_is_left_out(
    course: Course, assignment: Assignment, zipped: Path
) -> None:
    write_zip(zipped, {"eve_2_3_m1.ipynb": "x" * 5000, "doe_1_10_m1.ipynb": "a"})
    data = zipped.read_bytes()
    said = (5000).to_bytes(4, "little")
    assert data.count(said) >= 2
    zipped.write_bytes(data.replace(said, (10).to_bytes(4, "little")))
    report = collect(course, assignment, zipped, "canvas")
    assert list(collected(course)) == ["doe_1/m1/m1.ipynb"]
    assert report[-1] == (
        "eve_2: has no notebook here: eve_2_3_m1.ipynb: encrypted, damaged, or larger than it says"
    )


def test_too_many_entries_and_too_much_in_all_are_refused(
    course: Course,
    assignment: Assignment,
    zipped: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_zip(zipped, {f"s{n}_1_{n}_m1.ipynb": "x" * 100 for n in range(10)})
    monkeypatch.setattr(archives, "MAX_ENTRIES", 9)
    with pytest.raises(KitError, match="more than 9 files"):
        collect(course, assignment, zipped, "canvas")
    monkeypatch.setattr(archives, "MAX_ENTRIES", 10)
    monkeypatch.setattr(archives, "MAX_TOTAL", 999)
    with pytest.raises(KitError, match="of notebooks"):
        collect(course, assignment, zipped, "canvas")
    assert collected(course) == {}


def test_odd_names_become_safe_folders(
    course: Course, assignment: Assignment, zipped: Path
) -> None:
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("..._1_2_m1.ipynb", "a")
        archive.writestr("=cmd|x_3_4_m1.ipynb", "b")
        archive.writestr("josé_5_6_m1.ipynb", "c")
    collect(course, assignment, zipped, "canvas")
    students = [path.name for path in sorted((course.root / "submitted").glob("[!.]*"))]
    assert len(students) == 3
    assert "josé_5" in students
    assert not any(name.startswith((".", "=")) or "|" in name for name in students)


def test_a_students_folder_that_is_a_link_is_not_written_to(
    course: Course, assignment: Assignment, zipped: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "submitted").mkdir()
    (tmp_path / "submitted" / "doe_1").symlink_to(tmp_path / "elsewhere")
    report = collect(
        course, assignment, write_zip(zipped, {"doe_1_10_m1.ipynb": "a"}), "canvas"
    )
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert "is a link; nothing was written there" in report[1]


def test_two_collects_at_once_say_so(
    course: Course, assignment: Assignment, zipped: Path
) -> None:
    write_zip(zipped, {"ada/m1.ipynb": "a"})
    with (
        hold_lock(course.kept / "locks" / "collect", "a test"),
        pytest.raises(ResultsInUse, match="wait until it has ended"),
    ):
        collect(course, assignment, zipped, "folder")
    assert collected(course) == {}


def test_what_a_killed_collect_had_unpacked_is_removed(
    course: Course, assignment: Assignment, zipped: Path
) -> None:
    (course.submitted / ".collecting-1").mkdir(parents=True)
    (course.submitted / ".collecting-1" / "1").write_text("somebody's notebook")
    collect(course, assignment, write_zip(zipped, {"ada/m1.ipynb": "a"}), "folder")
    assert collected(course) == {"ada/m1/m1.ipynb": "a"}
    assert not (course.submitted / ".collecting-1").exists()
