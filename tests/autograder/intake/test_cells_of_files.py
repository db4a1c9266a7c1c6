"""Cells as editors write them, and bounds on what a file may hold, each at its bound."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autograder.basics.errors import UnreadableSubmission
from autograder.intake import reading
from autograder.intake.reading import NotebookCell, parse_notebook


def read(*cells: Any) -> tuple[NotebookCell, ...]:
    data = json.dumps({"cells": list(cells)}).encode()
    return parse_notebook(data, "m1.ipynb").cells


def code(source: Any, **fields: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "metadata": {}, **fields}


def refused(data: bytes, words: str) -> None:
    with pytest.raises(UnreadableSubmission, match=f"^m1.ipynb: {words}"):
        parse_notebook(data, "m1.ipynb")


def test_cells_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_CELLS", 2)
    assert len(read(code("a"), code("b"))) == 2
    data = json.dumps({"cells": [code("a")] * 3}).encode()
    refused(data, "has more than 2 cells; delete those that you added")


def test_text_is_counted_over_all_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_SOURCE", 5)
    assert len(read(code("abc"), code("de"))) == 2
    data = json.dumps({"cells": [code("abc"), code("def")]}).encode()
    refused(data, "its cells hold more than 0 MB of text")


@pytest.mark.parametrize("text", ['{"cells": [[], {}]}', '{"cells": [{}, {}]}'])
def test_lists_and_objects_are_counted_together(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(reading, "MAX_CONTAINERS", 4)
    parse_notebook(text.encode(), "m1.ipynb")
    monkeypatch.setattr(reading, "MAX_CONTAINERS", 3)
    refused(text.encode(), "holds too many lists and objects; clear the outputs")


def test_what_cannot_be_read_has_a_reason() -> None:
    refused(b" \n", "the file is empty; save the notebook and hand it in again")
    refused(b"{", r"is not a notebook \(no valid JSON\)")
    refused(b"[]", r"is not a notebook \(it has no cells\)")
    refused(b'{"cells": 1}', r"is not a notebook \(it has no cells\)")
    refused(b"[" * 100_000, "is nested too deeply for a notebook")
    conflict = b'{"cells": [\n<<<<<<< ours\n"a"\n=======\n"b"\n>>>>>>> theirs\n]}'
    refused(conflict, "holds an unresolved merge conflict from line 2 on")
    half = b'{"cells": [\n<<<<<<< ours\n"a"\n]}'
    refused(half, r"is not a notebook \(no valid JSON\)")


def test_a_notebook_of_format_3_has_worksheets() -> None:
    sheets = [{"cells": [{"cell_type": "code", "input": "a"}]}, 1, {"cells": 2}]
    data = json.dumps({"worksheets": sheets}).encode()
    (cell,) = parse_notebook(data, "m1.ipynb").cells
    assert (cell.kind, cell.source) == ("code", "a")


@pytest.mark.parametrize(
    ("kind", "read_as"),
    [
        ("code", "code"),
        ("markdown", "markdown"),
        ("heading", "markdown"),
        ("html", "markdown"),
        ("raw", "raw"),
        ("other", "raw"),
        (7, "raw"),
    ],
)
def test_kinds_of_cells(kind: Any, read_as: str) -> None:
    (cell,) = read({"cell_type": kind, "source": "a", "metadata": {}})
    assert cell == NotebookCell(read_as, "a")


def test_text_of_databricks_is_text_and_a_raw_cell_stays() -> None:
    text, sandbox, raw, plain = read(
        code("%md \n# Title"),
        code(" %md-sandbox words"),
        {"cell_type": "raw", "source": "%md words", "metadata": {}},
        code("%mdx words"),
    )
    assert (text.kind, text.source) == ("markdown", "# Title")
    assert (sandbox.kind, sandbox.source) == ("markdown", "words")
    assert (raw.kind, raw.source) == ("raw", "%md words")
    assert (plain.kind, plain.source) == ("code", "%mdx words")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (["a\n", "b"], "a\nb"),
        (["a", "b"], "a\nb"),
        (["a"], "a"),
        (["a", 7, "b"], "a\nb"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\ud800", "a\ufffd"),
        (7, ""),
        (None, ""),
    ],
)
def test_lines_of_a_cell(source: Any, text: str) -> None:
    (cell,) = read(code(source))
    assert cell.source == text


def test_metadata_of_a_cell_are_words_and_numbers() -> None:
    meta = {
        "nbgrader": {"grade_id": "x" * 200, "solution": True, "points": 2},
        "attention_kit": {"role": "question", "name": "x" * 201},
    }
    (cell,) = read(code("a", metadata=meta))
    assert (cell.grade_id, cell.role, cell.name) == ("x" * 200, "question", "")
    assert (cell.solution, cell.points) == (True, 2.0)
    odd = {
        "nbgrader": {"grade_id": 7, "solution": 1, "points": "2"},
        "attention_kit": 3,
    }
    (cell,) = read(code("a", metadata=odd))
    assert cell == NotebookCell("code", "a")
    infinite = b'{"cells": [{"metadata": {"nbgrader": {"points": Infinity}}}]}'
    (cell,) = parse_notebook(infinite, "m1.ipynb").cells
    assert cell.points == 0.0


def test_cells_of_tools_are_none_of_the_students() -> None:
    badge = '<a href="x"><img src="y"></a>'
    colab = {"id": "view-in-github"}
    cells = read(
        code(badge, metadata=colab),
        code(badge + "words", metadata=colab),
        code(badge),
        code("a", metadata={"created_in_deepnote_cell": True}),
        code("a", metadata={"created_in_deepnote_cell": 1}),
    )
    assert [cell.of_the_tool for cell in cells] == [True, False, False, True, False]


def test_pictures_are_attachments_of_text() -> None:
    attachments = {
        "p.png": {"image/png": "AA==", "text/html": "x"},
        "q.png": {"image/png": ""},
        "t.txt": {"text/plain": "x"},
        "x" * 201: {"image/png": "AA=="},
    }
    text, program = read(
        {"cell_type": "markdown", "source": "", "attachments": attachments},
        code("a", attachments=attachments),
    )
    assert text.attachments == {"p.png": {"image/png": "AA=="}}
    assert text.pictures == frozenset(["AA=="])
    assert text.other_files == ("q.png", "t.txt", "x" * 200)
    assert program.attachments == {}
    assert program.other_files[:3] == ("p.png", "q.png", "t.txt")


def test_what_a_cell_printed_is_kept_without_errors() -> None:
    outputs = [
        {"name": "stdout", "text": ["a\n", "b"]},
        {"name": "stderr", "text": "warning"},
        {"data": {"text/plain": "c", "image/png": "x", "text/html": "<b>"}},
        7,
    ]
    (cell,) = read(code("a", outputs=outputs))
    assert cell.printed == "a\nb\nc\n<b>"
    (cell,) = read(code("a", outputs=[{"text": "x" * 30_000}]))
    assert cell.printed == "x" * 20_000
    (cell,) = read({"cell_type": "markdown", "source": "a", "outputs": outputs})
    assert cell.printed == ""
    (cell,) = read(code("a", outputs=7))
    assert cell.printed == ""


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-32-be"]
)
def test_encodings_are_told_by_their_marks(encoding: str) -> None:
    data = json.dumps({"cells": [code("é")]}, ensure_ascii=False).encode(encoding)
    notebook = parse_notebook(data, "m1.ipynb")
    assert (notebook.cells[0].source, notebook.remarks) == ("é", ())
    windows = json.dumps({"cells": [code("é")]}, ensure_ascii=False).encode("cp1252")
    notebook = parse_notebook(windows, "m1.ipynb")
    assert notebook.cells[0].source == "é"
    (remark,) = notebook.remarks
    assert remark.startswith("The file is not in UTF-8; it was read as Windows-1252")
