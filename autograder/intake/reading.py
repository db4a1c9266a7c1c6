"""Read a notebook file within limits: any format from 3 to 4.5, as plain records, outputs dropped.

The file may be anything: a device, a gigabyte, a list nested a million deep. What cannot be read
raises `UnreadableSubmission` with one line that names the file and says what to do.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.basics.errors import UnreadableSubmission
from autograder.basics.handed_in import printable_name, read_handed_in
from autograder.intake.pictures import GRAY_PIXEL, MAX_PIXELS, limit_picture

MAX_CELLS = 2_000
MAX_SOURCE = 2_000_000
"""Characters of all cells together: far above any course notebook, and small enough to search line
by line.
"""
MAX_CONTAINERS = 500_000
"""Brackets and braces in the file. Python needs some 200 bytes for each: 20 MB of them would take
gigabytes.
"""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_TEXT_MAGIC = re.compile(r"\s*%md(?:-sandbox)?(?:[ \t]*\n|[ \t]+)")
"""How Databricks marks text, in a cell of either kind."""
_PICTURE = re.compile(r"image/[\w.+-]+")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_BADGE = re.compile(r"\s*<a [^<>]*><img [^<>]*></a>\s*")
_MAX_PRINTED = 20_000
_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """One cell as it stands in the file.

    Attributes:
        kind: "code", "markdown" or "raw".
        source: its text, lines end in "\\n".
        grade_id: nbgrader's name for it, "" where the metadata is lost.
        role: the kit's own tag, "" where the metadata is lost.
        name: the name that goes with the role.
        solution: nbgrader says that students write here.
        points: what nbgrader's metadata says that it is worth; in a submission that is nothing to
            go by.
        attachments: pictures inside a text cell: file name → media type → base64.
        other_files: names of attachments that are no pictures, or that stand in a cell which cannot
            show them.
        printed: what a code cell printed when it last ran, cut off where it is long.
        of_the_tool: an editor wrote it, and not the student.
    """

    kind: str
    source: str
    grade_id: str = ""
    role: str = ""
    name: str = ""
    solution: bool = False
    points: float = 0.0
    attachments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    other_files: tuple[str, ...] = ()
    printed: str = ""
    of_the_tool: bool = False


@dataclass(frozen=True, slots=True)
class Notebook:
    """The cells of one notebook file, its hash, and what was odd about the file."""

    cells: tuple[NotebookCell, ...]
    sha256: str
    remarks: tuple[str, ...] = ()


def read_notebook(path: Path, limit_mb: int) -> Notebook:
    """Read the notebook at `path`, which must be a regular file and no link.

    Raises:
        UnreadableSubmission: it is not a notebook, too large, or cannot be read.
    """
    return notebook_from_bytes(read_handed_in(path, limit_mb << 20), printable_name(path.name))


def notebook_from_bytes(data: bytes, name: str) -> Notebook:
    """The notebook in a file's bytes. Raises: as `parse_notebook`."""
    cells, remarks = parse_notebook(data, name)
    return Notebook(cells, hashlib.sha256(data).hexdigest(), remarks)


def parse_notebook(data: bytes, name: str) -> tuple[tuple[NotebookCell, ...], tuple[str, ...]]:
    """The cells of a notebook's bytes, and remarks about the file.

    Raises:
        UnreadableSubmission: not JSON, not a notebook, or far too much of something.
    """
    if not data.strip():
        raise UnreadableSubmission(
            f"{name}: the file is empty; save the notebook and hand it in again"
        )
    text, remarks = _decode(data)
    if text.count("[") + text.count("{") > MAX_CONTAINERS:
        raise UnreadableSubmission(
            f"{name}: holds too many lists and objects; clear the outputs and hand it in again"
        )
    try:
        raw = json.loads(text)
    except RecursionError:
        raise UnreadableSubmission(
            f"{name}: is nested too deeply for a notebook; hand in a copy saved anew"
        ) from None
    except ValueError:
        if line := _line_of_conflict(text):
            raise UnreadableSubmission(
                f"{name}: holds an unresolved merge conflict from line {line} on (it begins with "
                "<<<<<<<); resolve it, "
                "open the notebook in Jupyter, save it and hand it in again"
            ) from None
        raise UnreadableSubmission(
            f"{name}: is not a notebook (no valid JSON); open it in Jupyter, save it as .ipynb "
            "and hand it in again"
        ) from None
    cells = [cell for cell in _cells(raw, name) if isinstance(cell, dict)]
    if len(cells) > MAX_CELLS:
        raise UnreadableSubmission(
            f"{name}: has more than {MAX_CELLS} cells; delete those that you added"
        )
    made = tuple(_cell(cell) for cell in cells)
    if sum(len(cell.source) for cell in made) > MAX_SOURCE:
        raise UnreadableSubmission(
            f"{name}: its cells hold more than {MAX_SOURCE // 1_000_000} MB of text; take data "
            "out of the code"
        )
    if any(
        data == GRAY_PIXEL
        for cell in made
        for kinds in cell.attachments.values()
        for data in kinds.values()
    ):
        remarks = (
            *remarks,
            f"A picture has more than {MAX_PIXELS // 1_000_000} million pixels and is not shown.",
        )
    return made, remarks


def _line_of_conflict(text: str) -> int:
    """The line on which git has put the first of two versions; 0 where there are not two."""
    begins = 0 if text.startswith("<<<<<<< ") else text.find("\n<<<<<<< ") + 1
    if not (begins or text.startswith("<<<<<<< ")) or text.find("\n>>>>>>> ", begins) < 0:
        return 0
    return text.count("\n", 0, begins) + 1


def _decode(data: bytes) -> tuple[str, tuple[str, ...]]:
    encoding = next(
        (name for bom, name in _BOMS if data.startswith(bom)), None
    ) or json.detect_encoding(data)
    try:
        return data.decode(encoding), ()
    except UnicodeDecodeError:
        remark = (
            "The file is not in UTF-8; it was read as Windows-1252, so some letters may differ."
        )
        return data.decode("cp1252", errors="replace"), (remark,)


def _cells(raw: Any, name: str) -> list[Any]:
    """The list of cells: at the top from format 4 on, in worksheets before."""
    if isinstance(raw, dict):
        if isinstance(raw.get("cells"), list):
            return list(raw["cells"])
        sheets = raw.get("worksheets")
        if isinstance(sheets, list):
            lists = [
                sheet["cells"]
                for sheet in sheets
                if isinstance(sheet, dict) and isinstance(sheet.get("cells"), list)
            ]
            return [cell for cells in lists for cell in cells]
    raise UnreadableSubmission(
        f"{name}: is not a notebook (it has no cells); open it in Jupyter, save it as .ipynb and "
        "hand it in again"
    )


def _cell(raw: dict[str, Any]) -> NotebookCell:
    kind = raw.get("cell_type")
    kind = (
        {"heading": "markdown", "html": "markdown"}.get(kind, kind)
        if isinstance(kind, str)
        else "raw"
    )
    if kind not in ("code", "markdown"):
        kind = "raw"
    source = _text(raw.get("source", raw.get("input", "")))
    metadata = _dict(raw.get("metadata"))
    if kind != "raw" and (magic := _TEXT_MAGIC.match(source)):
        kind, source = "markdown", source[magic.end() :]
    grading, ours = _dict(metadata.get("nbgrader")), _dict(metadata.get("attention_kit"))
    pictures = _pictures(raw.get("attachments")) if kind == "markdown" else {}
    return NotebookCell(
        kind=kind,
        source=source,
        grade_id=_word(grading.get("grade_id")),
        role=_word(ours.get("role")),
        name=_word(ours.get("name")),
        solution=grading.get("solution") is True,
        points=_number(grading.get("points")),
        attachments=pictures,
        other_files=tuple(
            _shown_name(name) for name in _dict(raw.get("attachments")) if name not in pictures
        ),
        printed=_printed(raw.get("outputs")) if kind == "code" else "",
        of_the_tool=metadata.get("created_in_deepnote_cell") is True or _is_badge(source, metadata),
    )


def _pictures(raw: Any) -> dict[str, dict[str, str]]:
    """The attachments of a cell that are pictures: whatever else stands there is dropped."""
    found = {
        name: {
            kind: limit_picture(data)
            for kind, one in _dict(kinds).items()
            if _PICTURE.fullmatch(kind) and (data := _text(one))
        }
        for name, kinds in _dict(raw).items()
        if _word(name) == name and not _LONE_SURROGATE.search(name)
    }
    return {name: kinds for name, kinds in found.items() if kinds}


def _printed(outputs: Any) -> str:
    """Text that a cell printed or displayed, its warnings and errors left out."""
    texts: list[str] = []
    for output in outputs if isinstance(outputs, list) else []:
        output = _dict(output)
        if output.get("name") != "stderr":
            data = _dict(output.get("data", output))  # format 3 has no `data`
            texts += [
                _text(data.get(kind))
                for kind in ("text", "text/plain", "text/markdown", "text/html")
            ]
    return "\n".join(text for text in texts if text)[:_MAX_PRINTED]


def _is_badge(source: str, metadata: dict[str, Any]) -> bool:
    """Colab's "Open in Colab", in a cell of its own."""
    return metadata.get("id") == "view-in-github" and _BADGE.fullmatch(source) is not None


def _shown_name(name: str) -> str:
    return _LONE_SURROGATE.sub("\ufffd", name)[:_MAX_NAME]


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _word(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= 200 else ""


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


def _text(source: Any) -> str:
    if isinstance(source, list):
        lines = [line for line in source if isinstance(line, str)]
        # Some editors write a list of lines without their ends.
        bare = len(lines) > 1 and not any("\n" in line for line in lines)
        source = ("\n" if bare else "").join(lines)
    if not isinstance(source, str):
        return ""
    return _LONE_SURROGATE.sub("\ufffd", source.replace("\r\n", "\n").replace("\r", "\n"))
