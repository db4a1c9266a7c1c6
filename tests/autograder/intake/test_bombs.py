"""Archives, tables and notebooks that are small on the disk and huge once they are read.

Each comes as the work of "eve", beside that of "ada": it is named and left out, and ada's notebook
is collected.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
from multiples import notebook, sheet

from autograder.basics.errors import KitError, UnreadableSubmission
from autograder.basics.tables import MAX_TABLE
from autograder.course import Assignment, Course
from autograder.course.roster import read_roster
from autograder.intake import archives
from autograder.intake.pictures import GRAY_PIXEL, count_pixels, limit_picture
from autograder.intake.reading import parse_notebook
from autograder.platforms.collect import collect

TOO_MUCH = "an archive that holds too much: ask for the notebook itself"
CANNOT = "an archive that cannot be unpacked: ask for the notebook itself"
NOTHING = "an archive without a notebook that can be taken"
MOST_MEMORY = 20_000_000
"""Bytes that a bomb may cost; each of them would take a hundred times as much."""


def tar_header(name: str, size: int, kind: bytes) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def long_header(kind: bytes) -> bytes:
    """A PAX header or a GNU long name of 64 MB, in 64 kB."""
    return gzip.compress(tar_header("./@LongLink", 64 << 20, kind) + bytes(64 << 20))


def chain_of_long_names() -> bytes:
    return gzip.compress(
        (tar_header("././@LongLink", 512, tarfile.GNUTYPE_LONGNAME) + b"x" * 512)
        * 20_000
    )


def sparse_map_without_end() -> bytes:
    """The old GNU form: a map of 21 pieces a block, each of which says that another block
    follows.
    """
    first = bytearray(tar_header("m1.ipynb", 0, tarfile.GNUTYPE_SPARSE))
    first[482] = 1
    block = (b"00000000001\0" + b"00000000001\0") * 21 + b"\1" + bytes(7)
    first[148:156] = b"%06o\0 " % sum(
        bytes(first[:148]) + b" " * 8 + bytes(first[156:])
    )
    return gzip.compress(bytes(first) + block * 20_000)


def sparse_file_of_a_terabyte() -> bytes:
    out = io.BytesIO()
    info = tarfile.TarInfo("m1.ipynb")
    info.pax_headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.map": "0,0",
        "GNU.sparse.size": str(1 << 40),
        "GNU.sparse.name": "m1.ipynb",
    }
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tape:
        tape.addfile(info)
    return gzip.compress(out.getvalue())


def many_folders() -> bytes:
    return gzip.compress(tar_header("folder/", 0, tarfile.DIRTYPE) * 50_000)


def size_below_zero() -> bytes:
    """tarfile of some versions goes back to where it was, and reads the same header forever."""
    header = bytearray(tar_header("m1.txt", 0, tarfile.REGTYPE))
    header[124:136] = b"\xff" * 10 + b"\xfe\x00"
    header[148:156] = b"%06o\0 " % sum(
        bytes(header[:148]) + b" " * 8 + bytes(header[156:])
    )
    return gzip.compress(bytes(header) + bytes(1024))


def directory(
    count: int, *, stated: int | None = None, offset: int = 0, size: int = 0
) -> bytes:
    """A zip whose directory names one local file again and again."""
    local = (
        b"PK\3\4" + struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 33, 0, 0, 0, 1, 0) + b"a"
    )
    entry = b"PK\1\2" + struct.pack(
        "<HHHHHHIIIHHHHHII", 20, 20, 0, 0, 0, 33, 0, 0, size, 13, 0, 0, 0, 0, 0, offset
    )
    entries = b"".join(entry + b"%07d.ipynb" % number for number in range(count))
    length = len(entries) if stated is None else stated
    record = struct.pack(
        "<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, length, len(local)
    )
    locator = struct.pack("<IIQI", 0x07064B50, 0, len(local) + len(entries), 1)
    end = struct.pack(
        "<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0
    )
    return local + entries + record + locator + end


def packed(content: bytes, method: int, name: str = "m1.ipynb") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr(name, content)
    return out.getvalue()


BOMBS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "a PAX header of 64 MB": (
        "hw.tar.gz",
        lambda: long_header(tarfile.XHDTYPE),
        TOO_MUCH,
    ),
    "a global PAX header of 64 MB": (
        "hw.tar.gz",
        lambda: long_header(tarfile.XGLTYPE),
        TOO_MUCH,
    ),
    "a GNU long name of 64 MB": (
        "hw.tgz",
        lambda: long_header(tarfile.GNUTYPE_LONGNAME),
        TOO_MUCH,
    ),
    "a GNU long link of 64 MB": (
        "hw.tgz",
        lambda: long_header(tarfile.GNUTYPE_LONGLINK),
        TOO_MUCH,
    ),
    "long names without end": ("hw.tgz", chain_of_long_names, CANNOT),
    "a sparse map without end": ("hw.tgz", sparse_map_without_end, TOO_MUCH),
    "a sparse file of a terabyte": ("hw.tgz", sparse_file_of_a_terabyte, TOO_MUCH),
    "50 000 folders in a tar": ("hw.tgz", many_folders, TOO_MUCH),
    "a size below zero": ("hw.tgz", size_below_zero, NOTHING),
    "a zip of 50 000 entries": ("hw.zip", lambda: directory(50_000), TOO_MUCH),
    "a zip of 3 000 entries": ("hw.zip", lambda: directory(3_000), TOO_MUCH),
    "a zip whose entries overlap": (
        "hw.zip",
        lambda: directory(200, size=400_000),
        NOTHING,
    ),
    "a zip64 whose entries claim 4 GB": (
        "hw.zip",
        lambda: directory(2, size=0xFFFFFFFE),
        TOO_MUCH,
    ),
    "a zip64 whose directory claims an exabyte": (
        "hw.zip",
        lambda: directory(2, stated=1 << 60),
        CANNOT,
    ),
    "bzip2 in a zip": (
        "hw.zip",
        lambda: packed(bytes(16 << 20), zipfile.ZIP_BZIP2),
        NOTHING,
    ),
    "LZMA in a zip": (
        "hw.zip",
        lambda: packed(bytes(8 << 20), zipfile.ZIP_LZMA),
        NOTHING,
    ),
    "64 MB of nothing in a zip": (
        "hw.zip",
        lambda: packed(bytes(64 << 20), zipfile.ZIP_DEFLATED),
        NOTHING,
    ),
    "a zip in a zip": (
        "hw.zip",
        lambda: packed(directory(1), zipfile.ZIP_STORED, "hw.zip"),
        NOTHING,
    ),
    "bzip2 that is called gzip": (
        "hw.tar.gz",
        lambda: bz2.compress(bytes(16 << 20)),
        CANNOT,
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_named_and_left_out_and_the_others_are_collected(
    course: Course, assignment: Assignment, tmp_path: Path, bomb: str
) -> None:
    name, make, reason = BOMBS[bomb]
    download = tmp_path / "download"
    for student in ("ada", "eve"):
        (download / student).mkdir(parents=True)
    (download / "ada" / "m1.ipynb").write_text("{}")
    (download / "eve" / name).write_bytes(make())
    tracemalloc.start()
    try:
        lines = collect(course, assignment, download, "folder")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert lines[0] == "1 submissions of m1: 1 new, 0 replaced, 0 unchanged"
    assert lines[1:] == [f"eve: has no notebook here: eve/{name}: {reason}"]
    assert (course.submitted / "ada" / "m1" / "m1.ipynb").read_text() == "{}"
    assert peak < MOST_MEMORY


def test_a_tar_that_ends_with_a_students_zip_is_a_tar(
    course: Course, assignment: Assignment, tmp_path: Path
) -> None:
    zipped = packed(b"{}", zipfile.ZIP_STORED, "ada/m1.ipynb")
    with tarfile.open(tmp_path / "download.tar", "w") as tape:
        for name, content in (("ada/m1.ipynb", b"[]"), ("eve/hw.zip", zipped)):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tape.addfile(info, io.BytesIO(content))
    collect(course, assignment, tmp_path / "download.tar", "folder")
    assert (course.submitted / "ada" / "m1" / "m1.ipynb").read_text() == "[]"


def test_a_hand_in_of_too_many_notebooks_is_left_out_alone(
    course: Course,
    assignment: Assignment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archives, "MAX_TAKEN", 10)
    monkeypatch.setattr(archives, "MAX_ENTRIES_WITHIN", 5)
    download = tmp_path / "clones"
    for student, count in (("ada", 1), ("bob", 2), ("eve", 9)):
        (download / f"m1-{student}").mkdir(parents=True)
        for number in range(count):
            (download / f"m1-{student}" / f"{number}.ipynb").write_text(str(number))
    lines = collect(course, assignment, download, "github")
    assert lines[0] == "2 submissions of m1: 2 new, 0 replaced, 0 unchanged"
    assert "m1-eve: holds 9 notebooks: ask for the one that counts" in "\n".join(lines)


def test_what_git_and_editors_keep_does_not_count(
    course: Course,
    assignment: Assignment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archives, "MAX_ENTRIES", 3)
    (tmp_path / "clones" / "m1-ada" / ".git" / "objects").mkdir(parents=True)
    for number in range(10):
        (tmp_path / "clones" / "m1-ada" / ".git" / "objects" / str(number)).write_text(
            ""
        )
    (tmp_path / "clones" / "m1-ada" / "m1.ipynb").write_text("{}")
    assert collect(course, assignment, tmp_path / "clones", "github")[0].startswith(
        "1 submissions"
    )


def test_a_download_with_a_header_beyond_all_bounds_is_named(
    course: Course, assignment: Assignment, tmp_path: Path
) -> None:
    (tmp_path / "all.tar.gz").write_bytes(long_header(tarfile.XHDTYPE))
    with pytest.raises(
        KitError,
        match=r"all\.tar\.gz holds far more than an export of one assignment: unpack it",
    ):
        collect(course, assignment, tmp_path / "all.tar.gz", "folder")


def test_a_full_disk_is_not_the_students_doing(
    course: Course,
    assignment: Assignment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "download" / "ada").mkdir(parents=True)
    (tmp_path / "download" / "ada" / "m1.ipynb").write_text("{}")
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no disk that is always full")
    opened = Path.open

    def open_on_a_full_disk(path: Path, mode: str = "r", **how: Any) -> IO[Any]:
        return opened(full, "wb") if mode == "xb" else opened(path, mode, **how)

    monkeypatch.setattr(Path, "open", open_on_a_full_disk)
    with pytest.raises(KitError, match="there is no space left there"):
        collect(course, assignment, tmp_path / "download", "folder")
    assert not (course.submitted / "ada").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"cells": [' + b"{}," * 600_000 + b"{}]}", "too many lists and objects"),
        (b'{"cells": [], "nbformat": ' + b"9" * 1_000_000 + b"}", "no valid JSON"),
        (gzip.compress(b'{"cells": []}'), "no valid JSON"),
        (
            b'{"cells": [' + b'{"source": "x"},' * 2_000 + b"{}]}",
            "more than 2000 cells",
        ),
    ],
)
def test_a_notebook_that_is_a_bomb_is_refused_in_one_line(
    content: bytes, reason: str
) -> None:
    with pytest.raises(UnreadableSubmission, match=f"^m1.ipynb: .*{reason}"):
        parse_notebook(content, "m1.ipynb")


def test_a_table_of_gigabytes_is_no_class_list(tmp_path: Path) -> None:
    with (tmp_path / "students.csv").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(
        KitError,
        match=r"students\.csv: it is no table of a class: it is larger than 16 MB",
    ):
        read_roster(tmp_path)


def test_a_quoted_field_without_end_is_no_class_list(tmp_path: Path) -> None:
    (tmp_path / "students.csv").write_bytes(b'id,name\n1,"' + b"x" * (MAX_TABLE - 100))
    with pytest.raises(
        KitError, match=r"students\.csv: it is no table \(field larger than field limit"
    ):
        read_roster(tmp_path)


def png(width: int, height: int) -> bytes:
    return (
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", 13)
        + b"IHDR"
        + struct.pack(">II", width, height)
        + bytes(5)
    )


PICTURES = {
    "png": png(3000, 2000),
    "gif": b"GIF89a" + struct.pack("<HH", 3000, 2000),
    "bmp": b"BM" + bytes(16) + struct.pack("<ii", 3000, -2000),
    "jpeg": b"\xff\xd8\xff\xe0"
    + struct.pack(">H", 4)
    + b"JF\xff\xff\xc2"
    + struct.pack(">HBHH", 11, 8, 2000, 3000),
    "webp, lossy": b"RIFF....WEBPVP8 " + bytes(10) + struct.pack("<HH", 3000, 2000),
    "webp, lossless": b"RIFF....WEBPVP8L"
    + bytes(5)
    + struct.pack("<I", 2999 | 1999 << 14),
    "webp, more": b"RIFF....WEBPVP8X"
    + bytes(8)
    + (2999).to_bytes(3, "little")
    + (1999).to_bytes(3, "little"),
    "avif": bytes(4)
    + b"ftypavif"
    + bytes(20)
    + b"ispe"
    + bytes(4)
    + struct.pack(">II", 3000, 2000),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_every_kind_of_picture_states_its_size(kind: str) -> None:
    assert count_pixels(PICTURES[kind]) == 6_000_000
    assert all(
        count_pixels(PICTURES[kind][:length]) in (0, 6_000_000)
        for length in range(len(PICTURES[kind]))
    )


@pytest.mark.parametrize("length", [0, 1, 2])
def test_an_empty_segment_of_a_jpeg_is_passed_over(length: int) -> None:
    """Its length counts its own two bytes; a shorter one is a lie, and not followed backwards."""
    empty = b"\xff\xe1" + struct.pack(">H", length)
    size = b"\xff\xc0" + struct.pack(">HBHH", 11, 8, 2000, 3000)
    assert count_pixels(b"\xff\xd8" + empty + empty + size) == 6_000_000


def test_a_picture_of_gigapixels_stands_in_no_page_and_is_still_an_answer() -> None:
    def attached(data: bytes) -> bytes:
        pictures = {"me.png": {"image/png": base64.b64encode(data).decode()}}
        cell = {
            "cell_type": "markdown",
            "metadata": {},
            "source": "![](attachment:me.png)",
            "attachments": pictures,
        }
        return json.dumps(notebook([*sheet({}), cell])).encode()

    bomb = parse_notebook(attached(png(100_000, 100_000)), "m1.ipynb")
    assert bomb.cells[-1].attachments == {"me.png": {"image/png": GRAY_PIXEL}}
    assert bomb.remarks == (
        "A picture has more than 50 million pixels and is not shown.",
    )
    photo = parse_notebook(attached(png(3000, 2000)), "m1.ipynb")
    assert base64.b64decode(photo.cells[-1].attachments["me.png"]["image/png"]) == png(
        3000, 2000
    )
    assert photo.remarks == ()
    assert limit_picture("no base64 at all: é") == "no base64 at all: é"
