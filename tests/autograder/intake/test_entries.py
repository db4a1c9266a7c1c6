"""Entries of folders and archives, files beside notebooks, and owners' times."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import tarfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from autograder.basics.errors import BadSource, KitError
from autograder.intake.archive_entries import (
    Bounds,
    Entry,
    NoArchive,
    TooMuch,
    archive_entries,
    folder_entries,
)
from autograder.intake.archives import UploadedFile, archive_stem, notebook_stem
from autograder.intake.collected import Arrival, Collected, read_collected, record_path
from autograder.intake.companion_files import (
    companion_metadata,
    load_companions,
    without_carried_files,
)
from autograder.intake.owners import (
    Owner,
    add_times,
    file_stem,
    inner_stem,
    read_note,
    time_or_reason,
    timestamp,
)
from autograder.ledger.identity_matching import Identity

BOUNDS = Bounds(header=100_000, content=1_000_000)
NO_FILE = "a link or a device, not a file"


def shown(entries: Any) -> list[tuple[str, int, str, bool]]:
    return [(each.name, each.size, each.problem, each.is_folder) for each in entries]


# zip


def write_zip(
    path: Path, *infos: zipfile.ZipInfo, kind: int = zipfile.ZIP_DEFLATED
) -> Path:
    with zipfile.ZipFile(path, "w", kind) as archive:
        for info in infos:
            info.compress_type = kind
            archive.writestr(info, b"four")
    return path


def zip_info(name: str, mode: int = 0, system: int = 3) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (2026, 10, 1, 12, 30, 2))
    info.external_attr = mode << 16
    info.create_system = system
    return info


def test_entries_of_a_zip_are_files_folders_and_what_is_neither(tmp_path: Path) -> None:
    path = write_zip(
        tmp_path / "a.zip",
        zip_info("plain"),
        zip_info("regular", stat.S_IFREG | 0o644),
        zip_info("link", stat.S_IFLNK | 0o777),
        zip_info("pipe", stat.S_IFIFO),
        # another system's attributes say nothing of links
        zip_info("windows", stat.S_IFLNK, system=0),
    )
    assert shown(archive_entries(path, BOUNDS)) == [
        ("plain", 4, "", False),
        ("regular", 4, "", False),
        ("link", 4, NO_FILE, False),
        ("pipe", 4, NO_FILE, False),
        ("windows", 4, "", False),
    ]
    for entry in archive_entries(path, BOUNDS):
        if entry.name == "plain":
            assert entry.open().read() == b"four"
            assert entry.modified == datetime(2026, 10, 1, 12, 30, 2)


def test_a_folder_in_a_zip_is_one(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/", b"")
    assert shown(archive_entries(path, BOUNDS)) == [("folder/", 0, NO_FILE, True)]


@pytest.mark.parametrize(
    ("kind", "is_read"),
    [
        (zipfile.ZIP_STORED, True),
        (zipfile.ZIP_DEFLATED, True),
        (zipfile.ZIP_BZIP2, False),
        (zipfile.ZIP_LZMA, False),
    ],
)
def test_a_zip_is_read_where_it_is_packed_as_usual(
    tmp_path: Path, kind: int, is_read: bool
) -> None:
    path = write_zip(tmp_path / "a.zip", zip_info("a"), kind=kind)
    (entry,) = archive_entries(path, BOUNDS)
    words = "packed in a way that is not read here: ask for an ordinary .zip"
    assert entry.problem == ("" if is_read else words)


def test_a_time_that_is_none_is_not_known(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", zip_info("a"))
    data = bytearray(path.read_bytes())
    place = data.rindex(b"PK\x01\x02") + 14  # the date in the directory
    data[place : place + 2] = b"\0\0"
    path.write_bytes(bytes(data))
    (entry,) = archive_entries(path, BOUNDS)
    assert entry.modified is None


def test_what_begins_like_a_zip_and_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(b"PK" + b"x" * 100)
    with pytest.raises(NoArchive):
        list(archive_entries(path, BOUNDS))


# tar


def write_tar(path: Path, mode: str, *infos: tarfile.TarInfo) -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for info in infos:
            if info.isreg():
                info.size = 4
            archive.addfile(info, io.BytesIO(b"four") if info.isreg() else None)
    return path


def tar_info(
    name: str, kind: bytes = tarfile.REGTYPE, time: float = 1.0
) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.mtime = time
    return info


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_entries_of_a_tar(tmp_path: Path, mode: str) -> None:
    path = write_tar(
        tmp_path / "a.any",
        mode,
        tar_info("plain"),
        tar_info("folder", tarfile.DIRTYPE, 0.0),
        tar_info("link", tarfile.SYMTYPE, 2e11),
        tar_info("last"),
    )
    assert shown(archive_entries(path, BOUNDS)) == [
        ("plain", 4, "", False),
        ("folder", 0, NO_FILE, True),
        ("link", 0, NO_FILE, False),
        ("last", 4, "", False),
    ]
    times = [entry.modified for entry in archive_entries(path, BOUNDS)]
    first = datetime.fromtimestamp(1.0)
    assert times == [first, None, None, first]
    texts = [
        entry.open().read()
        for entry in archive_entries(path, BOUNDS)
        if not entry.problem
    ]
    assert texts == [b"four", b"four"]


def test_a_folder_of_a_tar_has_no_content(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", "w", tar_info("folder", tarfile.DIRTYPE))
    for entry in archive_entries(path, BOUNDS):
        with pytest.raises(ValueError, match=r"^no regular file$"):
            entry.open()
        assert entry == Entry("folder", 0, NO_FILE, entry.modified, entry.opener, True)


def test_a_tar_beyond_its_bound_is_too_much(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", "w", *map(tar_info, "abcd"))
    with pytest.raises(TooMuch):
        list(archive_entries(path, Bounds(header=100_000, content=1500)))
    with pytest.raises(TooMuch):
        list(archive_entries(path, Bounds(header=500, content=1_000_000)))
    assert len(list(archive_entries(path, Bounds(header=2048, content=20_000)))) == 4


def test_what_is_no_tar_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(b"no archive" * 100)
    with pytest.raises(NoArchive):
        list(archive_entries(path, BOUNDS))


# folders


def test_entries_of_a_folder_are_sorted_and_links_are_named(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "file").write_bytes(b"four")
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "file").touch()
    (tmp_path / "linked").symlink_to(tmp_path / "b")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    os.mkfifo(tmp_path / "pipe")
    entries = list(folder_entries(tmp_path))
    assert [(each.name, each.problem) for each in entries] == [
        ("linked", "a link, not followed"),
        ("a", ""),
        ("link", NO_FILE),
        ("pipe", NO_FILE),
        ("b/file", ""),
    ]
    with entries[4].open() as file:
        assert (entries[4].size, file.read()) == (4, b"four")
    os.utime(tmp_path / "a", (5.5, 5.5))
    (a,) = [each for each in folder_entries(tmp_path) if each.name == "a"]
    assert a.modified == datetime.fromtimestamp(5.0)
    with pytest.raises(OSError, match="link"):
        entries[2].open()
    with pytest.raises(ValueError, match=r"^no regular file$"):
        entries[0].open()


# names


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("m1.ipynb", "m1"),
        ("m1.IPYNB.txt", "m1"),
        ("m1.ipynb.json", "m1"),
        ("a.b.ipynb", "a.b"),
        (".ipynb", None),
        ("m1.ipynb.zip", None),
        ("m1.py", None),
    ],
)
def test_the_stem_of_a_notebook(name: str, stem: str | None) -> None:
    assert notebook_stem(name) == stem
    assert file_stem(name) == (stem or Path(name).stem)


def test_a_file_in_an_archive_has_its_own_name() -> None:
    inner = UploadedFile(("w1", "ada.tar.gz"), inside=("sub", "m1.ipynb"))
    assert (inner.name, inner.folders) == ("m1.ipynb", ("w1",))
    assert inner.display_path == "w1/ada.tar.gz/sub/m1.ipynb"
    assert inner_stem(inner, "other.ipynb") == "m1"
    top = UploadedFile(("ada.zip",), inside=("m1.ipynb",))
    assert top.folders == ("ada",)
    plain = UploadedFile(("a", "b", "c", "m1.ipynb"))
    assert (plain.name, plain.folders) == ("m1.ipynb", ("a", "b", "c"))
    assert plain.display_path == "c/m1.ipynb"
    assert inner_stem(plain, "other.ipynb") == "other"
    for name in ("a.zip", "a.TGZ", "a.tar.gz", "a.tar"):
        assert archive_stem(name) == "a"
    assert archive_stem("a.zip.txt") == "a.zip.txt"


# times

MOMENT = datetime(2026, 10, 1, 12, tzinfo=UTC)


def test_a_time_is_read_or_the_reason_why_not() -> None:
    assert time_or_reason(None, "UTC") == (None, "")
    assert time_or_reason("2026-10-01 12:00", "UTC") == (MOMENT, "")
    assert time_or_reason("2026-10-01 12:00", "", "UTC") == (MOMENT, "")
    moment, reason = time_or_reason("yesterday", "UTC")
    assert moment is None
    assert reason
    assert (timestamp(None), timestamp(MOMENT)) == (0.0, MOMENT.timestamp())


def test_a_note_is_a_small_text(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_bytes(b" 12:00\xff\n")
    assert read_note(UploadedFile(("note.txt",), path)) == ("12:00\ufffd", "")
    assert read_note(None) == (None, "")
    path.write_bytes(b"x" * 1_000_000)
    text, reason = read_note(UploadedFile(("note.txt",), path))
    assert text is None
    assert reason


def test_times_are_added_where_a_name_tells_none() -> None:
    owner = Owner("ada", Identity(), "m1")
    asked: list[str] = []

    def find_time(file: UploadedFile, owner: Owner) -> tuple[datetime | None, str]:
        asked.append(file.name)
        return MOMENT, "why"

    def found(owner: Owner | None, name: str = "m1.ipynb") -> Owner | None:
        return add_times(lambda file: owner, find_time)(UploadedFile((name,)))

    assert found(owner) == Owner(
        "ada", Identity(), "m1", handed_in=MOMENT, unread="why"
    )
    assert asked == ["m1.ipynb"]
    dated = Owner("ada", Identity(), "m1", handed_in=MOMENT)
    unread = Owner("ada", Identity(), "m1", unread="no time")
    assert [found(each) for each in (dated, unread, None)] == [dated, unread, None]
    assert found(owner, "picture.png") == owner
    assert asked == ["m1.ipynb"]


# companions


def notebook_with(path: Path, companions: dict[str, str]) -> Path:
    path.write_text(json.dumps({"metadata": companion_metadata(companions)}))
    return path


def test_companions_are_the_files_that_the_notebook_was_built_with(
    tmp_path: Path,
) -> None:
    texts = {"parts.py": "x = 1", "a.py": "y = 2"}
    metadata = companion_metadata(texts)
    assert list(metadata["attention_kit"]["companions"]) == ["a.py", "parts.py"]
    sha256 = hashlib.sha256(b"x = 1").hexdigest()
    assert metadata["attention_kit"]["companions"]["parts.py"] == sha256
    assert companion_metadata({}) == {}
    notebook = notebook_with(tmp_path / "m1.ipynb", texts)
    with pytest.raises(
        BadSource, match=r"a\.py cannot be read .*: run `autograder build m1`"
    ):
        load_companions(notebook)
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert load_companions(notebook) == {"a.py": "y = 2", "parts.py": "x = 1"}
    (tmp_path / "a.py").write_text("y = 3")
    with pytest.raises(
        BadSource, match=r"is not the file that m1\.ipynb was built with"
    ):
        load_companions(notebook)
    for content in ("{", "[]", "{}", '{"metadata": {"attention_kit": {}}}'):
        notebook.write_text(content)
        assert load_companions(notebook) == {}
    assert load_companions(tmp_path / "missing.ipynb") == {}


def test_files_that_a_notebook_carries_are_no_part_of_a_cell() -> None:
    end = "_path.write_bytes(zlib.decompress(base64.b64decode(_content)))\n\n"
    title = "# @title Files of this notebook"
    assert without_carried_files(f"{title}\nmore\n{end}import math") == "import math"
    assert (
        without_carried_files(f"import math\n{title}{end}")
        == f"import math\n{title}{end}"
    )
    assert without_carried_files(f"{title}\nno end") == f"{title}\nno end"


# the record of collect


def test_a_record_is_read_back_or_named(tmp_path: Path) -> None:
    assert read_collected(tmp_path, "m1") == Collected()
    record = Collected({"ada": Arrival("canvas", "101", "Ada", "a.ipynb", True)})
    path = record_path(tmp_path, "m1")
    assert path == tmp_path / ".collected" / "m1.json"
    path.parent.mkdir()
    path.write_text(record.to_json())
    assert read_collected(tmp_path, "m1") == record
    path.write_text("{")
    with pytest.raises(
        KitError, match="put the file back, or move it away and collect m1"
    ):
        read_collected(tmp_path, "m1")
    assert Arrival("canvas", "1", "", "").platform == "canvas"
    assert Arrival("canvas", "1", "", "", anonymous=True).platform == "canvas-anonymous"
