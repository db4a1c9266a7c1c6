"""The record of kernels that comes from a worker: nothing in it is believed without a check."""

from __future__ import annotations

import pytest

from autograder.basics.errors import StudentCrashed
from autograder.sandbox.reply_parts import read_launch

GOOD = {
    "kernels": 1,
    "programs": 4,
    "dots": 8,
    "largest": 1024,
    "loads": {"q": 40, "k": 80},
    "stores": {"o": 40},
    "unfilled": ["v"],
    "computed": [],
}


def test_a_good_record_is_taken() -> None:
    launch = read_launch(GOOD, "f")
    assert (launch.programs, launch.loads["k"], launch.stores, launch.unfilled) == (
        4,
        80,
        {"o": 40},
        ("v",),
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"programs": -1},
        {"dots": 2.5},
        {"largest": True},
        {"kernels": None},
        {"loads": {"q": "many"}},
        {"stores": {"o": 2**70}},
    ],
)
def test_numbers_that_are_none_are_refused(changed: dict[str, object]) -> None:
    with pytest.raises(StudentCrashed, match="record of its kernels"):
        read_launch(GOOD | changed, "f")


@pytest.mark.parametrize("raw", [None, [], "launch", {}])
def test_what_is_no_record_is_refused(raw: object) -> None:
    with pytest.raises(StudentCrashed, match="record of its kernels"):
        read_launch(raw, "f")


def test_names_lose_their_control_characters_and_their_length() -> None:
    launch = read_launch(GOOD | {"loads": {"\x1b[31m" + "q" * 500: 1}}, "f")
    (name,) = launch.loads
    assert "\x1b" not in name
    assert len(name) <= 40
