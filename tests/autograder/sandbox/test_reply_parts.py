"""What a worker sends beside a value is checked before it is used: costs, errors, kernels."""

from __future__ import annotations

from typing import Any

import pytest

from autograder.basics.errors import StudentCrashed, StudentError
from autograder.sandbox.reply_parts import (
    read_cost,
    read_error,
    read_launch,
    read_lines,
    read_texts,
)
from autograder.suite.calls import Cost, Launch
from autograder.wire.frames import WireError

LAUNCH: dict[str, Any] = {
    "kernels": 1,
    "programs": 4,
    "dots": 0,
    "largest": 64,
    "loads": {"q": 128},
    "stores": {"out": 0},
    "unfilled": ["k"],
    "computed": [],
}
LARGEST_COUNT = 2**62 - 1
NO_COUNTS = [-1, 2**62, 1.0, True, None, "1"]


def test_texts_are_a_list_of_at_most_64_short_texts() -> None:
    assert read_texts([str(number) for number in range(65)], 10) == tuple(
        map(str, range(64))
    )
    assert read_texts(["abcdef", 3, None], 4) == ("abc…", "3", "None")
    for no_list in ("abc", {"a": 1}, None, 3):
        assert read_texts(no_list, 10) == ()


def test_an_error_has_its_last_four_lines_and_first_twelve_kinds() -> None:
    error = {
        "type": "KeyError",
        "message": "no such key",
        "frames": ["a", "b", "c", "d", "e"],
        "kinds": [str(number) for number in range(13)],
    }
    fault = read_error({"error": error}, "f(1)")
    assert isinstance(fault, StudentError)
    assert (fault.type_name, fault.message) == ("KeyError", "no such key")
    assert fault.frames == ("b", "c", "d", "e")
    assert fault.kinds == tuple(map(str, range(12)))


def test_an_errors_texts_are_cut() -> None:
    error = {
        "type": "t" * 101,
        "message": "m" * 601,
        "frames": ["f" * 300, "f" * 301],
        "kinds": ["k" * 100, "k" * 101],
    }
    fault = read_error({"error": error}, "f(1)")
    assert isinstance(fault, StudentError)
    assert (fault.type_name, fault.message) == ("t" * 99 + "…", "m" * 599 + "…")
    assert fault.frames == ("f" * 300, "f" * 299 + "…")
    assert fault.kinds == ("k" * 100, "k" * 99 + "…")


@pytest.mark.parametrize("header", [{}, {"error": None}, {"error": ["KeyError"]}])
def test_an_error_that_says_nothing_is_an_exception(header: dict[str, Any]) -> None:
    fault = read_error(header, "f(1)")
    assert isinstance(fault, StudentError)
    assert (fault.type_name, fault.message, fault.frames, fault.kinds) == (
        "Exception",
        "",
        (),
        ("Exception",),
    )


def test_a_value_that_cannot_cross_is_a_crash_with_the_call() -> None:
    fault = read_error({"uncrossable": True, "error": {"message": "a socket"}}, "f(1)")
    assert isinstance(fault, StudentCrashed)
    assert str(fault) == "f(1) returned a value that cannot be checked: a socket."
    assert isinstance(read_error({"uncrossable": 1}, "f(1)"), StudentError)


def test_a_cost_is_five_counts() -> None:
    assert read_cost([1, 2, 3, 0, LARGEST_COUNT]) == Cost(1, 2, 3, 0, LARGEST_COUNT)
    for raw in (None, (1, 2, 3, 4, 5), [1, 2, 3, 4], [1, 2, 3, 4, 5, 6]):
        with pytest.raises(WireError, match="its cost cannot be read"):
            read_cost(raw)


@pytest.mark.parametrize("number", NO_COUNTS)
def test_what_is_no_count_is_refused_wherever_it_stands(number: object) -> None:
    with pytest.raises(WireError):
        read_cost([1, 2, 3, 4, number])
    with pytest.raises(WireError, match="the count of its lines cannot be read"):
        read_lines(number)
    for field in ("kernels", "programs", "dots", "largest"):
        with pytest.raises(
            StudentCrashed, match="f came back with an unreadable record"
        ):
            read_launch({**LAUNCH, field: number}, "f")
    for field in ("loads", "stores"):
        with pytest.raises(StudentCrashed):
            read_launch({**LAUNCH, field: {"q": number}}, "f")


def test_lines_are_a_count() -> None:
    assert [read_lines(number) for number in (0, 7, LARGEST_COUNT)] == [
        0,
        7,
        LARGEST_COUNT,
    ]


def test_a_record_of_kernels_is_read() -> None:
    assert read_launch(LAUNCH, "f") == Launch(
        1, 4, 0, 64, {"q": 128}, {"out": 0}, ("k",), ()
    )


@pytest.mark.parametrize("raw", [None, [], {}, {**LAUNCH, "largest": None}])
def test_a_record_without_its_counts_is_a_crash(raw: object) -> None:
    with pytest.raises(StudentCrashed):
        read_launch(raw, "f")


def test_tensors_of_a_record_are_at_most_64_with_short_names() -> None:
    many = {f"t{number}": number for number in range(65)}
    launch = read_launch({**LAUNCH, "loads": many, "stores": {"x" * 41: 1}}, "f")
    assert list(launch.loads) == [f"t{number}" for number in range(64)]
    assert launch.stores == {"x" * 39 + "…": 1}
    assert read_launch({**LAUNCH, "loads": 3, "stores": [1]}, "f").loads == {}
    names = ["x" * 80, "x" * 81]
    launch = read_launch({**LAUNCH, "unfilled": names, "computed": names}, "f")
    assert launch.unfilled == launch.computed == ("x" * 80, "x" * 79 + "…")
