"""Which stub ended a call, and whether code of the student's stands beside it, line by line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autograder.basics.errors import StudentError, StudentTimeout
from autograder.records.submission import Cell, Submission
from autograder.sitting.unwritten import Stub, _split_block, find_stub

RELEASED = {
    "f": 'def f(x):\n    """x."""\n    raise NotImplementedError("f")',
    "g": "def g(x):\n    raise NotImplementedError",
}


def submission(**sources: str) -> Submission:
    cells = [Cell(name, "question", source) for name, source in sources.items()]
    return Submission("ada", "m1", Path("m1.ipynb"), "", tuple(cells))


def raised(cell: str, line: int, kind: str = "NotImplementedError") -> StudentError:
    return StudentError(kind, "f", (f"cell {cell}, line {line}, in f",))


def stub_of(source: str, line: int, cell: str = "f") -> Stub | None:
    return find_stub(raised(cell, line), submission(**{cell: source}), RELEASED)


def test_the_releases_stub_is_not_written_yet() -> None:
    assert stub_of(RELEASED["f"], 3) == Stub("f", 3)


@pytest.mark.parametrize(
    ("source", "line", "above", "below"),
    [
        ("def f(x):\n    y = x\n    raise NotImplementedError", 3, True, False),
        ("def f(x):\n    raise NotImplementedError\n    return x", 2, False, True),
        # a comment, a docstring and the release's own lines are no code of the student's
        (
            "def f(x):\n    '''Of\n    x.'''\n    # so\n    raise NotImplementedError\n\n",
            5,
            False,
            False,
        ),
        # a block ends where a line is indented less
        (
            "def f(x):\n    if x:\n        raise NotImplementedError\n    return x",
            3,
            False,
            False,
        ),
    ],
)
def test_a_stub_beside_code_is_not_finished(
    source: str, line: int, above: bool, below: bool
) -> None:
    assert stub_of(source, line) == Stub("f", line, above, below)


def test_a_stub_in_a_cell_of_the_students_own_is_that_of_its_question() -> None:
    own = {"extra-1": RELEASED["g"]}
    assert find_stub(raised("extra-1", 2), submission(**own), RELEASED) == Stub("g", 2)
    helper = {"extra-1": "def helper(x):\n    raise NotImplementedError"}
    assert find_stub(raised("extra-1", 2), submission(**helper), RELEASED) is None


@pytest.mark.parametrize(
    ("fault", "source"),
    [
        (None, RELEASED["f"]),
        (StudentTimeout("slow"), RELEASED["f"]),
        (raised("f", 3, "ValueError"), RELEASED["f"]),
        (StudentError("NotImplementedError", "f", ()), RELEASED["f"]),
        (StudentError("NotImplementedError", "f", ("torch/x.py",)), RELEASED["f"]),
        (raised("gone", 3), RELEASED["f"]),
        # torch raises it too: the line is no stub
        (raised("f", 2), "def f(x):\n    return x & x"),
        (raised("f", 0), RELEASED["f"]),
        (raised("f", 4), RELEASED["f"]),
    ],
)
def test_any_other_fault_is_no_stubs(fault: Any, source: str) -> None:
    assert find_stub(fault, submission(f=source), RELEASED) is None


def test_the_last_frame_says_where_an_error_was_raised() -> None:
    frames = ("cell f, line 1, in f", "cell g, line 2, in g")
    fault = StudentError("NotImplementedError", "g", frames)
    assert find_stub(fault, submission(**RELEASED), RELEASED) == Stub("g", 2)


def test_a_block_has_the_lines_of_its_depth_and_empty_ones() -> None:
    lines = ["def f(x):", "    a", "", "    raise", "\tb", "   c"]
    assert _split_block(lines, 3) == (["    a", ""], ["\tb"])
    assert _split_block(["raise"], 0) == ([], [])


@pytest.mark.parametrize(
    ("stub", "question", "words"),
    [
        (Stub("f", 3), "f", "`f(1)` is not written yet."),
        (Stub("f", 3), "g", "`f(1)` needs `f`, which is not written yet."),
        (
            Stub("f", 3, code_above=True, code_below=True),
            "f",
            "`f(1)` is not finished: `raise NotImplementedError` still stands in line 3 of "
            "cell f, below your code. Delete that line.",
        ),
        (
            Stub("f", 3, code_below=True),
            "g",
            "`f(1)` needs `f`, which is not finished: `raise NotImplementedError` still "
            "stands in line 3 of cell f, above your code, which is never reached. Delete "
            "that line.",
        ),
    ],
)
def test_a_stub_in_words(stub: Stub, question: str, words: str) -> None:
    assert stub.describe("`f(1)`", question) == words
