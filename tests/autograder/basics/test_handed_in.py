"""Whatever lies where a file was to be handed in: it is read whole, or refused in one line, and
never waited for.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.basics.errors import UnreadableSubmission
from autograder.basics.handed_in import printable_name, read_handed_in

LIMIT = 1000


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(
            os.fspath(path.relative_to(Path.cwd()))
        )  # a socket's path may have 107 bytes


def unreadable(path: Path) -> None:
    path.write_bytes(b"{}")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")


KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda path: None, "there is no such file"),
    "folder": (lambda path: path.mkdir(), "is a folder"),
    "pipe": (os.mkfifo, "is a pipe"),
    "socket": (listening, "is a socket"),
    "link to a device": (lambda path: path.symlink_to("/dev/zero"), "is a link"),
    "link to a file": (lambda path: path.symlink_to(__file__), "is a link"),
    "link to itself": (lambda path: path.symlink_to(path), "is a link"),
    "link to nothing": (lambda path: path.symlink_to("nowhere"), "is a link"),
    "a terabyte of nothing": (sparse, "is larger than 1000 bytes"),
    "one byte too many": (
        lambda path: path.write_bytes(b"x" * (LIMIT + 1)),
        "is larger than 1000 bytes",
    ),
    "unreadable": (unreadable, "cannot be read"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_refused_and_waited_for_by_nobody(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "work.ipynb"
    make, said = KINDS[kind]
    make(path)
    with pytest.raises(UnreadableSubmission) as refused:
        read_handed_in(path, LIMIT)
    assert str(refused.value).startswith("work.ipynb: ")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_device_is_refused() -> None:
    with pytest.raises(UnreadableSubmission, match="zero: is a device"):
        read_handed_in(Path("/dev/zero"), LIMIT)


def test_a_file_that_holds_more_than_it_says_is_read_up_to_the_limit_only() -> None:
    """The system says of files in /proc that they have 0 bytes; a file that grows while it is read
    looks the same.
    """
    growing = Path("/proc/self/smaps")
    assert growing.stat().st_size == 0
    with pytest.raises(UnreadableSubmission, match="smaps: is larger than 1000 bytes"):
        read_handed_in(growing, LIMIT)


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 300])
def test_a_name_that_no_file_can_have_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableSubmission):
        read_handed_in(tmp_path / name, LIMIT)


@pytest.mark.parametrize("content", [b"", b"x" * LIMIT])
def test_a_file_within_the_limit_is_read_whole(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "work.ipynb"
    path.write_bytes(content)
    assert read_handed_in(path, LIMIT) == content


def test_a_name_is_shown_on_one_line() -> None:
    assert printable_name("a\nb\x1b[31m\u202ec") == "a?b?[31m?c"
    assert printable_name("x" * 200) == "x" * 60 + "…" + "x" * 30
