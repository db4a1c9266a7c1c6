"""The parts of unpacking: bounds of reads, names of members, folders that hold too much."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest

from autograder.basics.errors import KitError
from autograder.intake import archives
from autograder.intake.archive_entries import (
    CHUNK,
    Bounds,
    Entry,
    TooMuch,
    _BoundedFile,
    _zip_name,
)
from autograder.intake.archives import (
    _copy,
    _explain_skipped,
    _find_crowded,
    _split_path,
)
from autograder.intake.wanted_files import WantedFiles

HEADER = 100


def bounded(content: bytes, limit: int = 1000) -> _BoundedFile:
    return _BoundedFile(io.BytesIO(content), Bounds(header=HEADER, content=limit))


def test_reads_of_a_header_share_one_bound() -> None:
    file = bounded(b"x" * 300)
    file.begin_header()
    assert len(file.read(60)) == 60
    assert len(file.read(40)) == 40
    with pytest.raises(TooMuch):
        file.read(1)
    file.begin_header()
    assert len(file.read(HEADER)) == HEADER
    file.begin_content()
    assert len(file.read(90)) == 90


def test_a_read_to_the_end_is_bounded_too() -> None:
    for length, fits in ((HEADER, True), (HEADER + 1, False)):
        file = bounded(b"x" * length)
        file.begin_header()
        if fits:
            assert len(file.read()) == HEADER
        else:
            with pytest.raises(TooMuch):
                file.read()


def test_a_read_of_content_takes_a_chunk_at_most() -> None:
    file = bounded(b"x" * 10)
    assert file.read(CHUNK) == b"x" * 10
    with pytest.raises(TooMuch):
        file.read(CHUNK + 1)


def test_no_position_lies_beyond_the_content() -> None:
    file = bounded(b"x" * 10, limit=50)
    assert file.seek(50) == 50
    with pytest.raises(TooMuch):
        file.seek(51)
    assert file.seek(0, os.SEEK_END) == 10
    assert file.seek(60, os.SEEK_CUR) == 70


def test_a_name_of_a_zip_is_utf8_whatever_its_flag_says() -> None:
    info = zipfile.ZipInfo("Jörg.ipynb".encode().decode("cp437"))
    assert _zip_name(info) == "Jörg.ipynb"
    old = zipfile.ZipInfo("J\u00f6rg.ipynb")  # one byte in CP437, and no UTF-8
    assert _zip_name(old) == "Jörg.ipynb"
    flagged = zipfile.ZipInfo("数.ipynb")
    flagged.flag_bits = 0x800
    assert _zip_name(flagged) == "数.ipynb"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a/b.ipynb", ("a", "b.ipynb")),
        (r"a\b.ipynb", ("a", "b.ipynb")),
        ("./a//b.ipynb", ("a", "b.ipynb")),
        ("/etc/passwd", None),
        (r"\etc\passwd", None),
        ("C:/a", None),
        ("a/../b", None),
        ("..", None),
        ("", None),
        (".", None),
        ("a\0b", None),
        ("x" * 4097, None),
    ],
)
def test_paths_of_members(name: str, parts: tuple[str, ...] | None) -> None:
    assert _split_path(name) == parts


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("A.HTML", "a web page, not a notebook: ask for the .ipynb file"),
        ("a.htm", "a web page, not a notebook: ask for the .ipynb file"),
        (
            "a.7z",
            "an archive that is not opened here: ask for the notebook itself, or a .zip",
        ),
        (
            "a.rar",
            "an archive that is not opened here: ask for the notebook itself, or a .zip",
        ),
        (
            "a.TGZ",
            "an archive in an archive is not opened: ask for the notebook itself",
        ),
        (
            "a.tar.gz",
            "an archive in an archive is not opened: ask for the notebook itself",
        ),
        ("a.zip.png", ""),
        ("a.pdf", ""),
    ],
)
def test_what_may_be_somebodys_work_has_a_reason(name: str, reason: str) -> None:
    wanted = WantedFiles(1000, lambda name: False)
    assert _explain_skipped(name, wanted) == reason


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A download of 10 files and 1000 bytes; a hand-in of 3 files and 300 bytes."""
    for name, limit in (
        ("MAX_TAKEN", 10),
        ("MAX_TOTAL", 1000),
        ("MAX_ENTRIES_WITHIN", 3),
        ("MAX_STATED_WITHIN", 300),
    ):
        monkeypatch.setattr(archives, name, limit)


def files_of(**counts: int) -> list[tuple[tuple[str, ...], int]]:
    """So many files of ten bytes in each student's folder of an export."""
    return [
        (("export", student, f"{number}.ipynb"), 10)
        for student, count in counts.items()
        for number in range(count)
    ]


def test_only_a_download_that_holds_too_much_has_crowded_folders(
    small_limits: None,
) -> None:
    assert _find_crowded(files_of(ada=8, bob=2)) == {}
    assert _find_crowded(files_of(ada=8, bob=3)) == {
        ("export", "ada"): "holds 8 notebooks: ask for the one that counts"
    }
    large = [(("export", "cyd", "a.ipynb"), 700), (("export", "ada", "a.ipynb"), 301)]
    assert sorted(_find_crowded(large)) == [("export", "ada"), ("export", "cyd")]
    just = [(("export", "cyd", "a.ipynb"), 701), (("export", "ada", "a.ipynb"), 300)]
    assert list(_find_crowded(just)) == [("export", "cyd")]


def test_files_beside_the_folders_crowd_nobody_out(small_limits: None) -> None:
    beside = [(("export", f"{number}.ipynb"), 10) for number in range(7)]
    assert list(_find_crowded([*beside, *files_of(ada=4)])) == [("export", "ada")]


def test_too_many_notebooks_of_everybodys_are_no_export(small_limits: None) -> None:
    class_of = files_of(**{f"s{number}": 3 for number in range(4)})
    with pytest.raises(KitError, match="more than 10 notebooks"):
        _find_crowded(class_of)
    assert list(_find_crowded([*class_of[:10], *files_of(ada=4)])) == [
        ("export", "ada")
    ]


def entry(content: bytes | None) -> Entry:
    return Entry(
        "a.ipynb", 3, "", None, lambda: None if content is None else io.BytesIO(content)
    )


def test_a_member_is_copied_within_its_limit(tmp_path: Path) -> None:
    assert _copy(entry(b"abc"), tmp_path / "a", 3) == 3
    assert (tmp_path / "a").read_bytes() == b"abc"
    assert _copy(entry(b"abcd"), tmp_path / "b", 3) is None
    assert _copy(entry(None), tmp_path / "c", 3) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


def test_a_disk_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    with pytest.raises(KitError, match="missing/a"):
        _copy(entry(b"abc"), tmp_path / "missing" / "a", 3)
