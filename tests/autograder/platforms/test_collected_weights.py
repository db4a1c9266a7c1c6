"""The file of weights that a student hands in beside a notebook, on every platform's road."""

from __future__ import annotations

import dataclasses
import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from autograder.course import Assignment, Course
from autograder.course.course import LeaderboardSettings
from autograder.platforms.collect import collect

NOTEBOOK = b"a"


def weights_file(number: float = 1.5, settings: str = "{}", **header: object) -> bytes:
    """A safetensors file with one number, written by hand; `header` replaces parts of its header."""
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    text = json.dumps({"__metadata__": {"settings": settings}, "w": entry, **header})
    return struct.pack("<Q", len(text)) + text.encode() + struct.pack("<f", number)


@pytest.fixture
def ranked(course: Course) -> Course:
    """A course in which m1 takes weights of at most 1 MB."""
    settings = LeaderboardSettings(weights="m0 m1", weights_mb=1)
    return dataclasses.replace(course, leaderboard=settings)


def write_zip(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def collected(course: Course) -> dict[str, bytes]:
    """Every file of the students' below submitted/ and its content."""
    files = (path for path in course.submitted.glob("[!.]*/**/*") if path.is_file())
    return {
        path.relative_to(course.submitted).as_posix(): path.read_bytes()
        for path in sorted(files)
    }


LIST = """---
submission_101:
  :submitters:
  - :name: Student Eleven
    :sid: '1001'
  :created_at: 2026-10-01 10:00:00 Z
"""
ROADS = {
    "canvas": ("doejane_12345_{}_", "doejane_12345"),
    "moodle": ("Student Eleven_12345_assignsubmission_file_/", "Student Eleven_12345"),
    "gradescope": ("submission_101/", "1001"),
    "github": ("clones/m1-kit011/", "kit011"),
    "blackboard": ("M1_kit011_attempt_2026-03-01-23-59-59_", "kit011"),
    "brightspace": (
        "12345-67890 - First Last - Oct 1, 2026 1015 PM/",
        "First Last_12345",
    ),
    "sakai": ("M1/Last, First(kit011)/Submission attachment(s)/", "kit011"),
    "edx": ("[1]A, [1]B, [1]C/[1] - kit011 - ", "kit011"),
    "ilias": ("M1/Last_First_kit011_12345/", "Last_First_kit011_12345"),
    "folder": ("student-001/", "student-001"),
}
"""By platform what stands before a file's name in its download ({} is a number of the file), and
the student.
"""


@pytest.mark.parametrize("origin", ROADS)
def test_weights_come_with_the_notebook_on_every_road(
    ranked: Course, assignment: Assignment, tmp_path: Path, origin: str
) -> None:
    before, student = ROADS[origin]
    weights = weights_file()
    files = {
        f"{before.format(67890)}m1.ipynb": NOTEBOOK,
        f"{before.format(67891)}m1.safetensors": weights,
    }
    if origin == "github":  # the name of the repositories is told by two
        files["clones/m1-kit012/m1.ipynb"] = NOTEBOOK
    if origin == "gradescope":
        files["submission_metadata.yml"] = LIST.encode()
    lines = collect(ranked, assignment, write_zip(tmp_path / "d.zip", files), origin)
    found = collected(ranked)
    assert found[f"{student}/m1/m1.ipynb"] == NOTEBOOK
    assert found[f"{student}/m1/m1.safetensors"] == weights
    assert not any("m1.safetensors" in line for line in lines if "kit012" not in line)


def test_a_course_that_takes_no_weights_leaves_them(
    course: Course, assignment: Assignment, tmp_path: Path
) -> None:
    files = {"ada/m1.ipynb": NOTEBOOK, "ada/m1.safetensors": weights_file()}
    download = write_zip(tmp_path / "d.zip", files)
    lines = collect(course, assignment, download, "folder")
    assert list(collected(course)) == ["ada/m1/m1.ipynb"]
    assert lines[1:] == ["1 other files beside the notebooks were left"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "model.safetensors",
            weights_file(),
            "the weights must be called m1.safetensors",
        ),
        ("m1.safetensors", b"x" * ((1 << 20) + 1), "larger than 1 MB"),
        (
            "m1.safetensors",
            struct.pack("<Q", 1 << 62) + b"{}",
            "is no safetensors file; save it again",
        ),
        ("m1.safetensors", b"\x80\x04K\x01.", "is no safetensors file; save it again"),
        ("m1.safetensors", b"", "is no safetensors file; save it again"),
        ("m1.safetensors", weights_file()[:-1], "is cut off; save it again"),
        (
            "m1.safetensors",
            struct.pack("<Q", 100_000) + b"[" * 100_000,
            "its header cannot be read; save it again",
        ),
        (
            "m1.safetensors",
            weights_file(w={"data_offsets": "ab"}),
            "its header cannot be read; save it again",
        ),
        (
            "m1.safetensors",
            weights_file(settings='{"x": [1]}'),
            "its settings are no numbers and words; save it again",
        ),
        (
            "m1-old.safetensors",
            weights_file(),
            "the weights must be called m1.safetensors",
        ),
    ],
)
def test_wrong_weights_are_named_and_the_notebook_is_taken_all_the_same(
    ranked: Course,
    assignment: Assignment,
    tmp_path: Path,
    name: str,
    content: bytes,
    message: str,
) -> None:
    files = {"ada/m1.ipynb": NOTEBOOK, f"ada/{name}": content}
    download = write_zip(tmp_path / "d.zip", files)
    lines = collect(ranked, assignment, download, "folder")
    assert collected(ranked) == {"ada/m1/m1.ipynb": NOTEBOOK}
    assert lines[0] == "1 submissions of m1: 1 new, 0 replaced, 0 unchanged"
    assert len([line for line in lines if message in line]) == 1


def test_who_has_no_weights_is_named_once(
    ranked: Course, assignment: Assignment, tmp_path: Path
) -> None:
    files = {
        "ada/m1.ipynb": NOTEBOOK,
        "bea/m1.ipynb": NOTEBOOK,
        "cem/m1.ipynb": NOTEBOOK,
        "bea/m1.safetensors": weights_file(),
    }
    download = write_zip(tmp_path / "d.zip", files)
    lines = collect(ranked, assignment, download, "folder")
    assert lines[1:] == ["without m1.safetensors: ada, cem"]


def test_weights_alone_are_no_submission(
    ranked: Course, assignment: Assignment, tmp_path: Path
) -> None:
    files = {"ada/m1.ipynb": NOTEBOOK, "bea/m1.safetensors": weights_file()}
    download = write_zip(tmp_path / "d.zip", files)
    lines = collect(ranked, assignment, download, "folder")
    assert list(collected(ranked)) == ["ada/m1/m1.ipynb"]
    assert lines[1:] == [
        "bea: has no notebook here: bea/m1.safetensors: no notebook came with these weights",
        "without m1.safetensors: ada",
    ]


def test_new_weights_for_the_same_notebook_replace_the_old_ones(
    ranked: Course, assignment: Assignment, tmp_path: Path
) -> None:
    first, second = weights_file(1.0), weights_file(2.0)
    for weights in (first, first, second):
        files = {"ada/m1.ipynb": NOTEBOOK, "ada/m1.safetensors": weights}
        download = write_zip(tmp_path / "d.zip", files)
        lines = collect(ranked, assignment, download, "folder")
    assert collected(ranked) == {
        "ada/m1/m1.ipynb": NOTEBOOK,
        "ada/m1/m1.safetensors": second,
        "ada/m1/previous/1/m1.safetensors": first,
    }
    assert lines[0] == "1 submissions of m1: 0 new, 1 replaced, 0 unchanged"
    assert lines[1] == "ada: the earlier submission is kept in previous/1"


def test_a_later_notebook_alone_leaves_no_weights_of_another_one(
    ranked: Course, assignment: Assignment, tmp_path: Path
) -> None:
    weights = weights_file()
    for files in (
        {"ada/m1.ipynb": NOTEBOOK, "ada/m1.safetensors": weights},
        {"ada/m1.ipynb": b"other"},
    ):
        collect(ranked, assignment, write_zip(tmp_path / "d.zip", files), "folder")
    assert collected(ranked) == {
        "ada/m1/m1.ipynb": b"other",
        "ada/m1/previous/1/m1.ipynb": NOTEBOOK,
        "ada/m1/previous/1/m1.safetensors": weights,
    }


def test_weights_of_an_earlier_attempt_do_not_come_with_the_latest(
    ranked: Course, assignment: Assignment, tmp_path: Path
) -> None:
    first = "M1_ada_attempt_2026-03-01-10-00-00_"
    second = "M1_ada_attempt_2026-03-02-10-00-00_"
    files = {
        f"{first}m1.ipynb": b"first",
        f"{first}m1.safetensors": weights_file(),
        f"{second}m1.ipynb": b"second",
    }
    download = write_zip(tmp_path / "d.zip", files)
    lines = collect(ranked, assignment, download, "blackboard")
    assert collected(ranked) == {"ada/m1/m1.ipynb": b"second"}
    assert lines[-1] == "without m1.safetensors: ada"


def test_of_weights_handed_in_twice_the_last_are_taken(
    ranked: Course, assignment: Assignment, tmp_path: Path
) -> None:
    """Canvas numbers a second file of one name."""
    files = {
        "doejane_12345_67890_m1.ipynb": NOTEBOOK,
        "doejane_12345_67891_m1.safetensors": weights_file(1.0),
        "doejane_12345_67892_m1-1.safetensors": weights_file(2.0),
    }
    download = write_zip(tmp_path / "d.zip", files)
    collect(ranked, assignment, download, "canvas")
    assert collected(ranked)["doejane_12345/m1/m1.safetensors"] == weights_file(2.0)


def test_weights_are_found_in_an_archive_that_a_student_handed_in(
    ranked: Course, assignment: Assignment, tmp_path: Path
) -> None:
    inner = tmp_path / "inner.zip"
    write_zip(inner, {"work/m1.ipynb": NOTEBOOK, "work/m1.safetensors": weights_file()})
    download = write_zip(tmp_path / "d.zip", {"ada/work.zip": inner.read_bytes()})
    collect(ranked, assignment, download, "folder")
    assert collected(ranked)["ada/m1/m1.safetensors"] == weights_file()


def test_no_path_or_link_of_weights_leads_out(
    ranked: Course, assignment: Assignment, tmp_path: Path
) -> None:
    download = tmp_path / "d.tar"
    with tarfile.open(download, "w") as archive:
        for name, content in (
            ("ada/m1.ipynb", NOTEBOOK),
            ("../../m1.safetensors", weights_file()),
            ("/tmp/m1.safetensors", weights_file()),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("ada/m1.safetensors")
        link.type = tarfile.SYMTYPE
        link.linkname = "/etc/passwd"
        archive.addfile(link)
    lines = collect(ranked, assignment, download, "folder")
    assert collected(ranked) == {"ada/m1/m1.ipynb": NOTEBOOK}
    outside = [line for line in lines if "its path leads out of the upload" in line]
    assert len(outside) == 2
    assert "ada/m1.safetensors: a link or a device, not a file" in lines
