"""The tiny assignment, answered, as the tools of the world save it: what each does to metadata,
cells and bytes.

`half` is answered, and the written answer says "the mean of both". BLANK are the same tools with no
written answer.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from typing import Any

from nbgrader_course import HALF_ANSWERED, notebook, release_cells

Cells = list[dict[str, Any]]

ANSWER = "It is the mean of both, since é is a letter."
PYTHON = {
    "name": "python",
    "version": "3.11.9",
    "mimetype": "text/x-python",
    "file_extension": ".py",
}


def _answered(answer: str | None) -> Cells:
    cells: Cells = json.loads(json.dumps(release_cells()))
    cells[4]["source"] = HALF_ANSWERED
    if answer is not None:
        cells[-1]["source"] = f"Why? {answer}"
    return cells


def _without_metadata(
    cells: Cells, own: Callable[[int, dict[str, Any]], dict[str, Any]]
) -> Cells:
    """Every cell with the tool's own metadata in place of ours."""
    return [
        {**cell, "metadata": own(number, cell)} for number, cell in enumerate(cells)
    ]


def _file(cells: Cells, metadata: dict[str, Any], minor: int = 5) -> bytes:
    if minor < 5:
        cells = [
            {key: value for key, value in cell.items() if key != "id"} for cell in cells
        ]
    return json.dumps(
        {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}
    ).encode()


def _colab(cells: Cells) -> bytes:
    own = _without_metadata(cells, lambda n, _: {"id": f"aB{n}xYz01"})
    badge = {
        "cell_type": "markdown",
        "metadata": {"id": "view-in-github", "colab_type": "text"},
        "source": ['<a href="x" target="_parent"><img alt="Open In Colab"/></a>'],
    }
    lines = [
        {**cell, "source": cell["source"].splitlines(keepends=True)} for cell in own
    ]
    colab = {
        "colab": {"provenance": [], "include_colab_link": True},
        "language_info": {"name": "python"},
    }
    return _file([badge, *lines], colab, minor=0)


def _kaggle(cells: Cells) -> bytes:
    own = _without_metadata(
        cells,
        lambda n, _: {"_uuid": f"{n:040x}", "_cell_guid": f"{n:032x}", "trusted": True},
    )
    kaggle = {
        "accelerator": "none",
        "isInternetEnabled": True,
        "language": "python",
        "sourceType": "notebook",
    }
    return _file(own, {"kaggle": kaggle, "language_info": PYTHON}, minor=4)


def _deepnote(cells: Cells) -> bytes:
    def own(number: int, cell: dict[str, Any]) -> dict[str, Any]:
        return {
            "cell_id": f"{number:032x}",
            "deepnote_cell_type": cell["cell_type"],
            "tags": [],
        }

    made_by = {
        "cell_type": "markdown",
        "source": "<a href='x'>Created in <b>Deepnote</b></a>",
        "metadata": {
            "created_in_deepnote_cell": True,
            "deepnote_cell_type": "markdown",
        },
    }
    return _file(
        [*_without_metadata(cells, own), made_by],
        {"deepnote": {}, "deepnote_notebook_id": "0"},
        minor=0,
    )


def _deepnote_paragraphs(cells: Cells) -> bytes:
    """Text that was edited as rich text is one cell a paragraph."""
    split = [
        {**cells[-1], "source": text} for text in cells[-1]["source"].split("? ", 1)
    ]
    split[0]["source"] += "?"
    return _deepnote([*cells[:-1], *split])


def _databricks(cells: Cells) -> bytes:
    def own(number: int, _: dict[str, Any]) -> dict[str, Any]:
        kept = {
            "cellMetadata": {},
            "inputWidgets": {},
            "nuid": f"{number:032x}",
            "showTitle": False,
            "title": "",
        }
        return {"application/vnd.databricks.v1+cell": kept}

    made = _without_metadata(cells, own)
    for cell in made:
        lines = (
            ["%md\n", cell["source"]]
            if cell["cell_type"] == "markdown"
            else [cell["source"] + "\n"]
        )
        cell |= {"source": lines} | (
            {"execution_count": 0} if cell["cell_type"] == "code" else {}
        )
    return _file(
        made,
        {"application/vnd.databricks.v1+notebook": {"language": "python"}},
        minor=0,
    )


def _datalore(cells: Cells) -> bytes:
    def own(number: int, cell: dict[str, Any]) -> dict[str, Any]:
        kind = "CODE" if cell["cell_type"] == "code" else "MD"
        return {
            "datalore": {
                "node_id": f"{number:022x}",
                "type": kind,
                "hide_input_from_viewers": False,
            }
        }

    return _file(
        _without_metadata(cells, own),
        {"datalore": {"version": 3, "computation_mode": "JUPYTER"}},
        minor=4,
    )


def _jupyterlab(cells: Cells) -> bytes:
    cells[0]["metadata"]["jp-MarkdownHeadingCollapsed"] = True
    cells[4]["metadata"] |= {
        "editable": True,
        "slideshow": {"slide_type": ""},
        "tags": [],
    }
    return json.dumps({**notebook([]), "cells": cells}).encode()


def _vscode(cells: Cells) -> bytes:
    cells[4]["metadata"]["vscode"] = {"languageId": "python"}
    return _file(
        cells,
        {
            "language_info": PYTHON
            | {"codemirror_mode": {"name": "ipython", "version": 3}}
        },
        minor=2,
    )


def _hex(cells: Cells) -> bytes:
    """Hex keeps code and text of an imported notebook; a cell with nothing in it is gone."""
    kept = [
        cell
        for cell in _without_metadata(cells, lambda *_: {})
        if cell["source"].strip()
    ]
    return _file(
        kept,
        {"hex_info": {"project_id": "0", "version": "draft"}, "orig_nbformat": 4},
        minor=4,
    )


def _plain(cells: Cells) -> bytes:
    """All metadata is gone, and what the file says of its language too."""
    return _file(_without_metadata(cells, lambda *_: {}), {"language_info": {}})


_IN_PIECES = "deepnote, a cell a paragraph"
"""Left blank, half a line of the prompt by itself says nothing: a person looks."""

TOOLS: dict[str, Callable[[Cells], bytes]] = {
    "colab": _colab,
    "kaggle": _kaggle,
    "deepnote": _deepnote,
    _IN_PIECES: _deepnote_paragraphs,
    "databricks": _databricks,
    "datalore": _datalore,
    "jupyterlab": _jupyterlab,
    "vscode": _vscode,
    "hex": _hex,
    "no metadata": _plain,
    "byte order mark": lambda cells: codecs.BOM_UTF8 + _plain(cells),
    "utf-16": lambda cells: _plain(cells).decode().encode("utf-16"),
}


def _windows(cells: Cells) -> bytes:
    return json.dumps(json.loads(_plain(cells)), ensure_ascii=False).encode("cp1252")


def _own_cells(*own: dict[str, Any]) -> bytes:
    return _file([*_answered(None), *own], {})


def _text(source: str, kind: str = "markdown") -> dict[str, Any]:
    cell = {"cell_type": kind, "metadata": {}, "source": source, "id": "own"}
    return cell | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def _as(kind: str) -> bytes:
    cells = _answered(ANSWER)
    cells[-1]["cell_type"] = kind
    return _file(cells, {})


def _prompt_gone() -> bytes:
    cells = _answered(None)
    cells[-1] = _text(ANSWER)
    return _plain(cells)


AWKWARD: dict[str, bytes] = {
    name: save(_answered(ANSWER)) for name, save in TOOLS.items()
} | {
    "windows-1252": _windows(_answered(ANSWER)),
    "in a cell below": _own_cells(_text(ANSWER)),
    "in two cells below": _own_cells(_text("First,"), _text(ANSWER)),
    "in a code cell below": _own_cells(_text(f"# {ANSWER}", "code")),
    "in a raw cell": _as("raw"),
    "in a code cell": _as("code"),
    "in place of the prompt": _prompt_gone(),
}
BLANK: dict[str, bytes] = {
    name: save(_answered(None)) for name, save in TOOLS.items() if name != _IN_PIECES
} | {
    "with a cell to try things": _own_cells(
        _text("print(half(3))\nhalf(5) == 2.5", "code")
    ),
    "with an empty cell": _own_cells(_text("")),
}
