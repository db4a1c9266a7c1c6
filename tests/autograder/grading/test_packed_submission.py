"""A submission as bytes: what of its path and its folder travels with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.basics.errors import UnreadableSubmission
from autograder.grading.packed_submission import PackedSubmission, pack_submission
from autograder.records.submission import FoundSubmission

LIMIT = 11


def write_notebooks(folder: Path, *names: str) -> None:
    """Each file has its name as content; "mine.ipynb" has 10 bytes."""
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(name, encoding="utf-8")


def packed(path: Path) -> PackedSubmission:
    return pack_submission(FoundSubmission("s1", path), "small", LIMIT)


def test_a_submission_reads_there_as_it_reads_here(tmp_path: Path) -> None:
    """What a result says of the file's name, its folder and others in it depends on these alone."""
    here = tmp_path / "s1/small"
    write_notebooks(here, "mine.ipynb", "third.ipynb", "other.ipynb", "a.txt")
    submission = packed(here / "mine.ipynb")
    assert submission == PackedSubmission(
        "s1", ("s1", "small", "mine.ipynb"), b"mine.ipynb", "other.ipynb"
    )
    there = submission.unpack_below(tmp_path / "machine/0")
    path = tmp_path / "machine/0/s1/small/mine.ipynb"
    assert there == FoundSubmission("s1", path)
    assert path.read_bytes() == b"mine.ipynb"
    names = sorted(entry.name for entry in path.parent.iterdir())
    assert names == ["mine.ipynb", "other.ipynb"]


def test_a_notebook_alone_in_its_folder_has_no_neighbour(tmp_path: Path) -> None:
    here = tmp_path / "s1/small"
    write_notebooks(here, "mine.ipynb", "a.txt")
    submission = packed(here / "mine.ipynb")
    assert submission.neighbour == ""
    there = submission.unpack_below(tmp_path / "machine")
    assert [entry.name for entry in there.path.parent.iterdir()] == ["mine.ipynb"]


@pytest.mark.parametrize("folder", ["s1", "s2/small", "small/s1"])
def test_of_a_file_in_another_layout_the_name_alone_travels(
    tmp_path: Path, folder: str
) -> None:
    write_notebooks(tmp_path / folder, "mine.ipynb", "other.ipynb")
    submission = packed(tmp_path / folder / "mine.ipynb")
    assert submission == PackedSubmission("s1", ("mine.ipynb",), b"mine.ipynb")


def test_a_link_does_not_travel_nor_a_large_file(tmp_path: Path) -> None:
    (tmp_path / "key.ipynb").write_text("the answer key")
    (tmp_path / "s1.ipynb").symlink_to(tmp_path / "key.ipynb")
    with pytest.raises(UnreadableSubmission, match=r"s1\.ipynb: is a link"):
        packed(tmp_path / "s1.ipynb")
    with pytest.raises(UnreadableSubmission, match=r"key\.ipynb: "):
        packed(tmp_path / "key.ipynb")


def test_a_file_behind_a_link_or_without_a_file_does_not_travel(tmp_path: Path) -> None:
    write_notebooks(tmp_path / "key", "small.ipynb")
    (tmp_path / "s1").mkdir()
    (tmp_path / "s1/small").symlink_to(tmp_path / "key")
    with pytest.raises(UnreadableSubmission, match=r"^small: is a link"):
        packed(tmp_path / "s1/small/small.ipynb")
    with pytest.raises(UnreadableSubmission, match=r"^gone\.ipynb: there is no such"):
        packed(tmp_path / "gone.ipynb")
