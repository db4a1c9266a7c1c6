"""Where an answer stands whose prompt lost its name, in notebooks of a few cells."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.intake.cell_text import _split_blocks
from autograder.intake.own_text import (
    OwnText,
    find_own_text,
    has_words_in_a_row,
    lines_in_words,
)
from autograder.intake.reading import NotebookCell
from autograder.intake.released_notebook import Release, ReleaseCell
from autograder.intake.written import ELSEWHERE, WrittenMatch, match_written
from autograder.records.submission import CellOutcome

PART = ReleaseCell("text_1", "text", "1", "# The first part", "markdown")
END = ReleaseCell("text_2", "text", "2", "# The end", "markdown")
WHY = ReleaseCell(
    "written_why", "written", "why", "Why do we scale?\n*Two sentences.*", "markdown"
)
MISSING = CellOutcome(
    "written_why", "missing", "the cell of this written answer was deleted"
)


def text(source: str, **fields: Any) -> NotebookCell:
    return NotebookCell("markdown", source, **fields)


def code(source: str) -> NotebookCell:
    return NotebookCell("code", source)


def matched(
    released: Sequence[ReleaseCell], cells: Sequence[NotebookCell]
) -> WrittenMatch:
    return match_written(cells, Release("m1", tuple(released)), {})


def test_a_prompt_without_its_name_is_the_text_that_keeps_most_of_it() -> None:
    cells = [
        code(WHY.source),
        text(WHY.source, grade_id="text_1"),
        text("*Two sentences.*\nor more", role="demo"),
        text("Why do we scale?\nSums of many products grow."),
        text("It goes on below."),
    ]
    match = matched([PART, WHY], cells)
    (answer,) = match.answers
    assert answer.text == f"{cells[3].source}\n\nIt goes on below."
    assert (answer.blank, answer.elsewhere) == (False, ())
    assert match.places == {3: "written_why", 4: "written_why"}
    assert match.notices == ()


@pytest.mark.parametrize(
    ("kept", "is_found"), [("Why do we scale?", True), ("Why do we?", False)]
)
def test_half_of_the_lines_make_a_prompt(kept: str, is_found: bool) -> None:
    """It stands before the first part, where nobody would look for it."""
    cells = [text(f"{kept}\nSums grow."), text("# The first part")]
    match = matched([PART, WHY], cells)
    (answer,) = match.answers
    assert match.places == ({0: "written_why"} if is_found else {})
    assert answer.elsewhere == (() if is_found else (0,))
    assert match.notices == (() if is_found else (MISSING,))


def test_without_a_prompt_the_cells_in_its_place_are_the_answer() -> None:
    """Of two texts like the first part the text cell is it; the code cell is a student's."""
    cells = [
        code("# The first part"),
        text("Mine, and before the part."),
        text("# The first part"),
        text("Mine, and in its place."),
        text("# The end"),
        text("Mine, and after the end."),
    ]
    match = matched([PART, WHY, END], cells)
    (answer,) = match.answers
    assert answer.text == "Mine, and in its place."
    assert match.places == {3: "written_why"}
    assert match.notices == ()


def test_a_prompt_without_a_word_is_no_cells() -> None:
    blank = ReleaseCell("written_why", "written", "why", " \n", "markdown")
    cells = [
        text("Mine, and before the part."),
        text("# The first part"),
        text("Mine, and in its place."),
    ]
    (answer,) = matched([PART, blank], cells).answers
    assert answer.text == "Mine, and in its place."


def test_before_the_first_cell_of_the_release_there_is_no_cell_of_the_end() -> None:
    """The answer was to stand first: what a student wrote at the end stands elsewhere."""
    match = matched([WHY, END], [text("# The end"), text("Mine, and last.")])
    (answer,) = match.answers
    assert answer.text == f"{ELSEWHERE}\n\nCell 2:\n\n```text\nMine, and last.\n```"
    assert answer.elsewhere == (1,)
    assert (match.places, match.notices) == ({}, (MISSING,))


def test_what_stands_elsewhere_comes_nearest_first() -> None:
    cells = [
        text("Mine, and far."),
        text("# The first part"),
        code("x = 1  # mine, and above"),
        text(WHY.source, grade_id="written_why"),
        text("# The end"),
        text("Mine, and below."),
    ]
    (answer,) = matched([PART, WHY, END], cells).answers
    assert answer.elsewhere == (2, 5, 0)
    assert answer.text.startswith(f"{WHY.source}\n\n{ELSEWHERE}\n\nCell 3, right above")
    assert not answer.blank


def test_a_prompt_alone_is_blank_and_nothing_at_all_is_no_answer() -> None:
    cells = [text("# The end"), text(WHY.source, grade_id="written_why")]
    (answer,) = matched([WHY, END], cells).answers
    assert (answer.text, answer.blank) == (WHY.source, True)
    match = matched([WHY, END], [text("# The end")])
    assert (match.answers, match.notices) == ((), (MISSING,))


def test_of_two_cells_of_one_name_the_last_that_says_more_counts() -> None:
    named = {"grade_id": "written_why"}
    edited = f"{WHY.source}\nSums grow."
    cells = [text(f"{edited} Or so.", **named), text(edited, **named)]
    assert matched([WHY], [*cells, text(WHY.source, **named)]).places == {
        1: "written_why"
    }
    blank = [text(WHY.source, **named)] * 2
    assert matched([WHY], blank).places == {1: "written_why"}


# words in code


@pytest.mark.parametrize(
    ("line", "is_sentence"),
    [
        ("sums of products grow", True),
        ("sums of products", False),
        ("x1 sums of products", False),
        ("x1 sums of products grow", True),
        ("sums of products = grow", False),
        ("(sums, of 'products' grow!)", True),
        ("", False),
    ],
)
def test_four_words_in_a_row_are_a_sentence(line: str, is_sentence: bool) -> None:
    assert has_words_in_a_row(line) is is_sentence


def test_a_string_that_is_not_closed_ends_with_its_line() -> None:
    assert lines_in_words("x = 'not closed\nsums grow\ny = 'closed'\n") == [
        "not closed",
        "closed",
        "sums grow",
    ]
    three = 'x = """one\ntwo"""\nsums grow'
    assert lines_in_words(three) == ["one", "two", "sums grow"]


def test_what_a_cell_prints_is_a_students_where_the_cell_is() -> None:
    nothing: Any = SimpleNamespace(
        has_cell=lambda source: False, has_line=lambda line, as_part: line == "given"
    )
    cell: Any = SimpleNamespace(
        kind="markdown",
        source="my words\n given \n\nmy words",
        printed="the loss is going down\n0.5 0.25",
        of_the_tool=False,
        attachments={},
        other_files=(),
    )
    own = ("my words", "the loss is going down")
    assert find_own_text(3, cell, nothing, is_released=False) == OwnText(3, own, ())
    released = find_own_text(3, cell, nothing, is_released=True)
    assert released == OwnText(3, ("my words",), ())


def test_a_statement_is_a_block_with_its_decorators_and_its_body() -> None:
    lines = [
        "@cache",
        "def f():",
        "    pass",
        "",
        "x = (1",
        ")",
        "@a",
        "@b",
        "class C:",
    ]
    lines += ["# more", "    y = 2"]
    assert _split_blocks(lines) == [[0, 1, 2, 3], [4, 5], [6, 7, 8, 9, 10]]
    assert _split_blocks(["# words", "x = 1"]) == [[1]]
