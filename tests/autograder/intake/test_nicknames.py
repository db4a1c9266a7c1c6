"""A student's nickname: what a file says, and when two look the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.intake.nicknames import (
    comparable_nickname,
    decode_nickname,
    read_nickname,
    shown_nickname,
    why_not_nickname,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ada", "Ada"),
        ("\n  Ada   L \r\nsecond line", "Ada L"),
        ("x" * 24, "x" * 24),
        ("x" * 25, "x" * 23 + "…"),
        ("\x1b[31mAda\x1b[0m\u202e", "Ada"),
        ("<b>Ada</b>", "<b>Ada</b>"),
        ("🦉", "🦉"),
        ("राम", "राम"),
        (" \u200b\u200d\n", ""),
        ("", ""),
    ],
)
def test_the_first_line_is_shown_as_far_as_it_can_be_seen(
    text: str, shown: str
) -> None:
    assert shown_nickname(text) == shown


@pytest.mark.parametrize(
    "other", ["ADA", " a d a ", "Ａｄａ", "A\u200dda", "Ada\u00a0"]
)
def test_nicknames_that_look_the_same_are_the_same(other: str) -> None:
    assert comparable_nickname(other) == comparable_nickname("Ada")


def test_other_nicknames_are_not() -> None:
    assert comparable_nickname("राम") != comparable_nickname("रम")
    assert comparable_nickname("Ada 2") != comparable_nickname("Ada")


def test_a_file_of_another_kind_has_no_nickname_and_says_so() -> None:
    assert decode_nickname(b"\xef\xbb\xbfAda\r\n") == "Ada"
    assert why_not_nickname(b"Ada") == ""
    for data in (b"", b"\n", "Ada".encode("utf-16"), b"\xff", b"a" * 1001):
        assert decode_nickname(data) == ""
        assert "its first line is the nickname, in UTF-8" in why_not_nickname(data)


def test_a_link_beside_a_notebook_is_not_followed(tmp_path: Path) -> None:
    notebook = tmp_path / "m1.ipynb"
    assert read_nickname(notebook) == ""
    secret = tmp_path / "secret"
    secret.write_text("Ada")
    (tmp_path / "nickname.txt").symlink_to(secret)
    assert read_nickname(notebook) == ""
    (tmp_path / "nickname.txt").unlink()
    secret.rename(tmp_path / "nickname.txt")
    assert read_nickname(notebook) == "Ada"
