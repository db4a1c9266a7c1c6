"""Weights of students are read as data: nested names, plain settings, nothing that is too much."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from autograder.basics.errors import UnreadableSubmission
from autograder.course import Course
from autograder.course.course import LeaderboardSettings
from autograder.intake import handed_in_weights
from autograder.intake.handed_in_weights import (
    explain_other_name,
    hash_weights,
    read_weights,
    weights_limit,
    weights_name,
    weights_path,
    why_not_weights,
)
from autograder.intake.nicknames import MOST_NICKNAME_BYTES
from autograder.intake.wanted_files import WantedFiles


def write(path: Path, names: list[str], settings: str = "{}") -> Path:
    tensors = {name: torch.tensor([number]) for number, name in enumerate(names)}
    path.write_bytes(save(tensors, metadata={"settings": settings}))
    return path


def test_names_with_points_are_dicts_and_lists(tmp_path: Path) -> None:
    names = [
        "params.blocks.0.w",
        "params.blocks.1.w",
        "params.embed",
        "merges",
        "x.1.a",
        "x.2.a",
    ]
    weights = read_weights(
        write(tmp_path / "w.safetensors", names, '{"d": 3, "n": "x"}'), 1
    )
    assert [block["w"].item() for block in weights.tensors["params"]["blocks"]] == [
        0,
        1,
    ]
    assert weights.tensors["params"]["embed"].item() == 2
    assert weights.tensors["merges"].item() == 3
    assert sorted(weights.tensors["x"]) == ["1", "2"]  # no list: 0 is missing
    assert (weights.settings.d, weights.settings.n) == (3, "x")


def header(description: object, body: bytes = b"") -> bytes:
    text = json.dumps(description).encode()
    return len(text).to_bytes(8, "little") + text + body


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is no safetensors file"),
        (b"\xff" * 100, "is no safetensors file"),
        (header([1]), "its header cannot be read"),
        (header({"__metadata__": {"settings": "{"}}), "its header cannot be read"),
        (
            header({"__metadata__": {"settings": "[1]"}}),
            "its settings are no numbers and words",
        ),
        (
            header({"__metadata__": {"settings": '{"a": [1]}'}}),
            "its settings are no numbers",
        ),
        (
            header({"w": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}}),
            "is cut off",
        ),
        (
            header(
                {"w": {"dtype": "U8", "shape": [9], "data_offsets": [0, 9]}},
                b"8 bytes ",
            ),
            "is cut off",
        ),
        (b"x" * 2_000_000, "weights are a regular file of at most 1 MB"),
    ],
)
def test_what_is_no_such_file_is_refused(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    with pytest.raises(UnreadableSubmission, match=reason):
        read_weights(path, 1)


@pytest.mark.parametrize("names", [["a", "a.b"], ["a.b", "a"], ["a.b.c", "a.b"]])
def test_a_name_has_one_meaning(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(UnreadableSubmission, match="has two meanings"):
        read_weights(write(tmp_path / "w.safetensors", names), 1)


def test_names_are_not_nested_without_end(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSubmission, match="is nested too deeply"):
        read_weights(write(tmp_path / "w.safetensors", [".".join("abcdefghijk")]), 1)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = write(tmp_path / "key.safetensors", ["w"])
    (tmp_path / "w.safetensors").symlink_to(target)
    with pytest.raises(UnreadableSubmission, match="no link"):
        read_weights(tmp_path / "w.safetensors", 1)


def test_a_header_is_bounded_before_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = header({"__metadata__": {"settings": "{}"}})
    size = len(content) - 8
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    monkeypatch.setattr(handed_in_weights, "_MAX_HEADER", size)
    assert read_weights(path, 1).tensors == {}
    monkeypatch.setattr(handed_in_weights, "_MAX_HEADER", size - 1)
    with pytest.raises(UnreadableSubmission, match="is no safetensors file"):
        read_weights(path, 1)
    monkeypatch.undo()
    # the file ends before the header does
    path.write_bytes(content[:-1])
    with pytest.raises(UnreadableSubmission, match="its header cannot be read"):
        read_weights(path, 1)


def test_tensors_settings_and_levels_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the tensors, the header has an entry for the settings."""
    path = tmp_path / "w.safetensors"
    monkeypatch.setattr(handed_in_weights, "_MAX_TENSORS", 3)
    monkeypatch.setattr(handed_in_weights, "_MAX_SETTINGS", 2)
    monkeypatch.setattr(handed_in_weights, "_MAX_LEVELS", 3)
    settings = '{"d": 1, "n": 2.5}'
    weights = read_weights(write(path, ["a.b.c", "d"], settings), 1)
    assert vars(weights.settings) == {"d": 1, "n": 2.5}
    assert weights.tensors["a"]["b"]["c"].item() == 0
    with pytest.raises(UnreadableSubmission, match="has more than 3 tensors"):
        read_weights(write(path, ["a", "b", "c"], settings), 1)
    with pytest.raises(UnreadableSubmission, match="no numbers and words"):
        read_weights(write(path, ["a"], '{"d": 1, "n": 2, "x": 3}'), 1)
    with pytest.raises(UnreadableSubmission, match="is nested too deeply"):
        read_weights(write(path, ["a.b.c.d"], settings), 1)


@pytest.mark.parametrize("value", ["true", "null", "[1]", "{}"])
def test_settings_are_numbers_and_words(tmp_path: Path, value: str) -> None:
    path = write(tmp_path / "w.safetensors", ["a"], f'{{"d": 1, "n": {value}}}')
    with pytest.raises(UnreadableSubmission, match="no numbers and words"):
        read_weights(path, 1)


def test_weights_are_known_by_the_hash_of_their_file(tmp_path: Path) -> None:
    path = write(tmp_path / "w.safetensors", ["a"])
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert read_weights(path, 1).sha256 == sha256
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + bytes((1 << 20) - size))
    with pytest.raises(UnreadableSubmission, match="is no safetensors file"):
        read_weights(path, 1)  # a megabyte is read
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(UnreadableSubmission, match="of at most 1 MB"):
        read_weights(path, 1)


def test_weights_are_called_like_the_assignment_and_lie_beside_the_notebook() -> None:
    assert weights_name("a9") == "a9.safetensors"
    assert explain_other_name("a9") == "the weights must be called a9.safetensors"
    notebook = Path("submitted/ada/a9/mine.ipynb")
    assert weights_path(notebook, "a9") == Path("submitted/ada/a9/a9.safetensors")


def test_only_assignments_of_the_leaderboard_take_weights(tmp_path: Path) -> None:
    course = Course(
        tmp_path, leaderboard=LeaderboardSettings(weights="a9 a10", weights_mb=3)
    )
    limits = [weights_limit(course, name) for name in ("a9", "a10", "a1")]
    assert limits == [3_145_728, 3_145_728, 0]


def test_a_student_is_told_why_weights_are_not_kept() -> None:
    right = header({"w": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}, b"ab")
    assert why_not_weights("a9.safetensors", right, "a9") == ""
    assert why_not_weights("A9.safetensors", right, "a9") == (
        "A9.safetensors: the weights must be called a9.safetensors"
    )
    assert why_not_weights("a9.safetensors", right[:-1], "a9") == (
        "a9.safetensors: is cut off; save it again"
    )
    listed = header({"__metadata__": {"settings": "[]"}})
    assert why_not_weights("a9.safetensors", listed, "a9") == (
        "a9.safetensors: its settings are no numbers and words; save it again"
    )


def test_a_file_has_a_hash_where_it_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a9.safetensors"
    assert hash_weights(path, 1) == ""
    path.write_bytes(bytes(1 << 20))
    assert hash_weights(path, 1) == hashlib.sha256(bytes(1 << 20)).hexdigest()
    path.write_bytes(bytes((1 << 20) + 1))
    assert hash_weights(path, 1) == "unreadable"
    path.unlink()
    path.symlink_to(tmp_path / "gone")
    assert hash_weights(path, 1) == "unreadable"


def test_each_kind_of_file_has_its_own_limit() -> None:
    wanted = WantedFiles(
        1000, lambda name: False, "a9", weights_bytes=7000, nicknames=True
    )
    names = ["ada_nickname.txt", "ada_a9.SafeTensors", "b.safetensors", "a9.ipynb"]
    assert [wanted.limit(name) for name in names] == [
        MOST_NICKNAME_BYTES,
        7000,
        1000,
        1000,
    ]
    assert [wanted.lies_beside(name) for name in names] == [True, True, False, False]
    none = WantedFiles(1000, lambda name: False, "a9")
    assert [none.limit(name) for name in names] == [1000] * 4
    assert not any(none.lies_beside(name) for name in names)
