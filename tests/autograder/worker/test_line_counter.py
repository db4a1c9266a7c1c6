"""Lines of a notebook's Python are counted each time that they run; code of libraries is not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from autograder.worker.cells import run_cell
from autograder.worker.line_counter import LineCounter

CELL = """
from statistics import mean

def total(numbers):
    sum = 0
    for number in numbers:
        sum += number
    return sum

def squares(numbers):
    return [number * number for number in numbers]

def average(numbers):
    return mean(numbers)

def refuses(numbers):
    raise ValueError(len(numbers))
"""


def count(name: str, *arguments: Any) -> int:
    names: dict[str, Any] = {}
    assert run_cell("a", CELL, names) is None
    function: Callable[..., Any] = names[name]
    with LineCounter() as lines:
        function(*arguments)
    return lines.count


def test_a_line_counts_each_time_that_it_runs() -> None:
    # sum = 0; `for` four times, the last to find the end; `sum +=` three times; return
    assert count("total", [5, 6, 7]) == 1 + 4 + 3 + 1
    assert count("total", []) == 3


def test_each_turn_of_a_comprehension_counts() -> None:
    few, many = count("squares", [1] * 10), count("squares", [1] * 110)
    assert 90 <= many - few <= 110


def test_what_a_library_does_is_not_counted() -> None:
    assert count("average", [1, 2, 3]) == count("average", range(1, 400)) == 1


def test_the_watch_ends_with_the_call_and_with_an_error() -> None:
    with pytest.raises(ValueError, match="1"):
        count("refuses", [1])
    assert sys.gettrace() is None
