"""The stub that ended a call: its line, and the code beside it, by values worked out by hand."""

from __future__ import annotations

from pathlib import Path

from autograder.basics.errors import StudentError, StudentMissing
from autograder.records.submission import Cell, Submission
from autograder.sitting.unwritten import Stub, _has_code, _split_block, find_stub

STUB = (
    'def softmax(z, dim=-1):\n    """z: [...]"""\n    raise NotImplementedError("softmax: write '
    'your answer here")\n'
)


def raised(cell: str, line: int, kind: str = "NotImplementedError") -> StudentError:
    return StudentError(
        kind,
        "write your answer here",
        (f"cell {cell}, line {line}, in softmax: raise {kind}",),
    )


def stub(
    source: str, line: int, cell: str = "softmax", kind: str = "NotImplementedError"
) -> Stub | None:
    submission = Submission(
        "s", "a", Path("s.ipynb"), "", (Cell(cell, "question", source),)
    )
    return find_stub(raised(cell, line, kind), submission, {"softmax": STUB})


def test_the_stub_of_a_question_is_known_by_its_cell_and_line() -> None:
    assert stub(STUB, 3) == Stub("softmax", 3)
    assert stub(STUB, 2) is None  # the docstring raises nothing
    assert stub(STUB, 9) is None
    assert stub(STUB, 3, kind="ValueError") is None
    # a cell of the student's own that answers the question
    assert stub(STUB, 3, cell="extra-1") == Stub("softmax", 3)
    assert stub("x = 1\n", 1, cell="extra-1") is None
    assert (
        find_stub(
            StudentMissing("softmax"),
            Submission("s", "a", Path("s.ipynb"), "", ()),
            {"softmax": STUB},
        )
        is None
    )


def test_code_beside_a_stub_is_seen_and_what_the_release_brings_is_none() -> None:
    above = STUB.replace("    raise", "    e = torch.exp(z)\n    raise")
    below = STUB + "    return z.softmax(dim)\n"
    commented = STUB.replace("    raise", "    # e = torch.exp(z)\n    raise")
    assert stub(above, 4) == Stub("softmax", 4, code_above=True)
    assert stub(below, 3) == Stub("softmax", 3, code_below=True)
    assert stub(commented, 4) == Stub("softmax", 4)
    other_method = (
        "class A:\n    def f(self):\n        raise NotImplementedError\n    def g(self):\n      "
        "  return 1\n"
    )
    assert stub(other_method, 3) == Stub("softmax", 3)


def test_a_block_ends_where_a_line_is_indented_less() -> None:
    lines = ["a", "  b", "", "    c", "  raise", "\tc", " ", "  d", "e", "  f"]
    assert _split_block(lines, 4) == (["  b", "", "    c"], ["\tc", " ", "  d"])
    assert _split_block(lines, 0) == ([], lines[1:])
    assert _split_block(lines, 9) == ([], [])
    # a tab is eight columns
    assert _split_block(["       a", "\traise", "        b"], 1) == ([], ["        b"])


def test_docstrings_comments_and_the_releases_lines_are_no_code() -> None:
    assert not _has_code(
        ["", "pass", "# a", " given()", " raise NotImplementedError"], {"given()"}
    )
    assert _has_code(["own()"], {"given()"})
    assert not _has_code(['"""One line."""', "", "'''Another.'''"], set())
    assert _has_code(['"""One line."""', "own()"], set())
    assert not _has_code(['"""Two', "lines", '"""'], set())
    assert _has_code(['"""Two', "lines", '"""', "own()"], set())


def test_a_frame_that_names_no_cell_of_the_notebook_has_no_stub() -> None:
    cells = (Cell("softmax", "question", STUB),)
    submission = Submission("s", "a", Path("s.ipynb"), "", cells)
    for frames in ((), ("library.py, line 3, in f",), ("cell gone, line 3, in f: x",)):
        fault = StudentError("NotImplementedError", "write it", frames)
        assert find_stub(fault, submission, {"softmax": STUB}) is None


def test_the_stub_is_where_the_last_frame_is() -> None:
    cells = (
        Cell("attention", "question", "def attention(q):\n    return softmax(q)\n"),
        Cell("softmax", "question", STUB),
    )
    submission = Submission("s", "a", Path("s.ipynb"), "", cells)
    frames = (
        "cell attention, line 2, in attention: return softmax(q)",
        "cell softmax, line 3, in softmax: raise NotImplementedError",
    )
    fault = StudentError("NotImplementedError", "write it", frames)
    released = {"attention": "", "softmax": STUB}
    assert find_stub(fault, submission, released) == Stub("softmax", 3)


def test_a_stub_in_words() -> None:
    plain = Stub("softmax", 3)
    assert plain.describe("`f(1)`", "softmax") == "`f(1)` is not written yet."
    assert plain.describe("`f(1)`", "f") == (
        "`f(1)` needs `softmax`, which is not written yet."
    )
    end = "still stands in line 3 of cell softmax, "
    above = Stub("softmax", 3, code_above=True, code_below=True)
    assert above.describe("`f(1)`", "softmax") == (
        f"`f(1)` is not finished: `raise NotImplementedError` {end}below your code. "
        "Delete that line."
    )
    only_above = Stub("softmax", 3, code_above=True)
    assert only_above.describe("`f(1)`", "softmax") == above.describe(
        "`f(1)`", "softmax"
    )
    below = Stub("softmax", 3, code_below=True)
    assert below.describe("`f(1)`", "f") == (
        "`f(1)` needs `softmax`, which is not finished: `raise NotImplementedError` "
        f"{end}above your code, which is never reached. Delete that line."
    )
