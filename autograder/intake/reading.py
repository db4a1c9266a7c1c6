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
from autograder.intake.companion_files import without_carried_files
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

_BYTE_ORDER_MARKS = (
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
_PRINTED_KINDS = ("text", "text/plain", "text/markdown", "text/html")
_MAX_PRINTED = 20_000
_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """A cell of a notebook file, before it is matched to a release.

    Attributes:
        kind: "code", "markdown" or "raw".
        source: the cell's text, lines end in "\\n".
        grade_id: nbgrader's name for the cell, "" where the metadata is lost.
        role: the kit's own tag, "" where the metadata is lost.
        name: the name that goes with the role.
        solution: nbgrader says that students write here.
        points: points in nbgrader's metadata; those of a submission are not trusted.
        attachments: pictures inside a text cell: file name → media type → base64.
        other_files: names of attachments that are no pictures, or that stand in a cell which cannot
            show them.
        printed: what a code cell printed when it last ran, cut off where it is long.
        of_the_tool: an editor wrote the cell, and not the student.
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

    @property
    def pictures(self) -> frozenset[str]:
        """The cell's attached pictures, in base64."""
        media_types = self.attachments.values()
        return frozenset(picture for kinds in media_types for picture in kinds.values())


@dataclass(frozen=True, slots=True)
class Notebook:
    """The cells of one notebook file, its hash, and remarks about what was odd in the file."""

    cells: tuple[NotebookCell, ...]
    sha256: str
    remarks: tuple[str, ...] = ()


def read_notebook(path: Path, limit_mb: int) -> Notebook:
    """Read the notebook at `path`, which must be a regular file and no link.

    Raises:
        UnreadableSubmission: it is not a notebook, too large, or cannot be read.
    """
    return parse_notebook(
        read_handed_in(path, limit_mb << 20), printable_name(path.name)
    )


def parse_notebook(data: bytes, name: str) -> Notebook:
    """Parse the bytes of a notebook file, which messages call `name`.

    Raises:
        UnreadableSubmission: not JSON, not a notebook, or far too much of something.
    """
    if not data.strip():
        raise UnreadableSubmission(
            f"{name}: the file is empty; save the notebook and hand it in again"
        )
    text, remarks = _decode(data)
    raw_cells = _list_cells(_load_json(text, name), name)
    if len(raw_cells) > MAX_CELLS:
        raise UnreadableSubmission(
            f"{name}: has more than {MAX_CELLS} cells; delete those that you added"
        )
    cells = tuple(map(_read_cell, raw_cells))
    if sum(len(cell.source) for cell in cells) > MAX_SOURCE:
        raise UnreadableSubmission(
            f"{name}: its cells hold more than {MAX_SOURCE // 1_000_000} MB of text; take data "
            "out of the code"
        )
    if any(GRAY_PIXEL in cell.pictures for cell in cells):
        most = f"{MAX_PIXELS // 1_000_000} million pixels"
        remarks.append(f"A picture has more than {most} and is not shown.")
    return Notebook(
        cells,
        hashlib.sha256(data).hexdigest(),
        tuple(remarks),
    )


def _load_json(text: str, name: str) -> Any:
    if text.count("[") + text.count("{") > MAX_CONTAINERS:
        raise UnreadableSubmission(
            f"{name}: holds too many lists and objects; clear the outputs and hand it in again"
        )
    try:
        return json.loads(text)
    except RecursionError:
        raise UnreadableSubmission(
            f"{name}: is nested too deeply for a notebook; hand in a copy saved anew"
        ) from None
    except ValueError:
        if line := _find_merge_conflict(text):
            raise UnreadableSubmission(
                f"{name}: holds an unresolved merge conflict from line {line} on (it begins with "
                "<<<<<<<); resolve it, open the notebook in Jupyter, save it and hand it in again"
            ) from None
        raise UnreadableSubmission(
            f"{name}: is not a notebook (no valid JSON); open it in Jupyter, save it as .ipynb "
            "and hand it in again"
        ) from None


def _find_merge_conflict(text: str) -> int:
    """The line on which git's first of two versions begins; 0 where the file has no conflict."""
    begin = re.search(r"^<<<<<<< ", text, re.MULTILINE)
    if begin is None or "\n>>>>>>> " not in text[begin.end() :]:
        return 0
    return text.count("\n", 0, begin.start()) + 1


def _decode(data: bytes) -> tuple[str, list[str]]:
    """The file's text, and a remark where its encoding had to be guessed."""
    marked = [encoding for mark, encoding in _BYTE_ORDER_MARKS if data.startswith(mark)]
    encoding = marked[0] if marked else json.detect_encoding(data)
    try:
        return data.decode(encoding), []
    except UnicodeDecodeError:
        remark = (
            "The file is not in UTF-8; it was read as Windows-1252, so some letters may "
            "differ."
        )
        return data.decode("cp1252", errors="replace"), [remark]


def _list_cells(raw: Any, name: str) -> list[dict[str, Any]]:
    """The notebook's cells: at the top of the file from format 4 on, in worksheets before."""
    notebook = _as_dict(raw)
    lists = [notebook.get("cells")]
    if not isinstance(lists[0], list):
        worksheets = notebook.get("worksheets")
        if not isinstance(worksheets, list):
            raise UnreadableSubmission(
                f"{name}: is not a notebook (it has no cells); open it in Jupyter, save it as "
                ".ipynb and hand it in again"
            )
        lists = [_as_dict(sheet).get("cells") for sheet in worksheets]
    cells = [cell for cells in lists if isinstance(cells, list) for cell in cells]
    return [cell for cell in cells if isinstance(cell, dict)]


def _read_cell(raw: dict[str, Any]) -> NotebookCell:
    kind = _cell_kind(raw.get("cell_type"))
    source = _as_text(raw.get("source", raw.get("input", "")))  # format 3 has `input`
    if kind != "raw" and (magic := _TEXT_MAGIC.match(source)):
        kind = "markdown"
        source = source[magic.end() :]
    if kind == "code":
        source = without_carried_files(source)
    metadata = _as_dict(raw.get("metadata"))
    nbgrader = _as_dict(metadata.get("nbgrader"))
    kit = _as_dict(metadata.get("attention_kit"))
    attachments = _as_dict(raw.get("attachments"))
    pictures = _read_pictures(attachments) if kind == "markdown" else {}
    other_files = [name for name in attachments if name not in pictures]
    is_badge = (
        metadata.get("id") == "view-in-github" and _BADGE.fullmatch(source) is not None
    )
    return NotebookCell(
        kind=kind,
        source=source,
        grade_id=_as_word(nbgrader.get("grade_id")),
        role=_as_word(kit.get("role")),
        name=_as_word(kit.get("name")),
        solution=nbgrader.get("solution") is True,
        points=_as_number(nbgrader.get("points")),
        attachments=pictures,
        other_files=tuple(
            _replace_surrogates(name)[:_MAX_NAME] for name in other_files
        ),
        printed=_read_printed(raw.get("outputs")) if kind == "code" else "",
        # Colab's "Open in Colab" stands in a cell of its own.
        of_the_tool=metadata.get("created_in_deepnote_cell") is True or is_badge,
    )


def _cell_kind(cell_type: Any) -> str:
    """The kind of a cell; older formats had headings and HTML too, which are text."""
    if cell_type in ("heading", "html"):
        return "markdown"
    return cell_type if cell_type in ("code", "markdown") else "raw"


def _read_pictures(attachments: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The attachments of a cell that are pictures; all others are dropped."""
    pictures: dict[str, dict[str, str]] = {}
    for name, media_types in attachments.items():
        if _as_word(name) != name or _LONE_SURROGATE.search(name):
            continue
        for media_type, content in _as_dict(media_types).items():
            data = _as_text(content)
            if _PICTURE.fullmatch(media_type) and data:
                pictures.setdefault(name, {})[media_type] = limit_picture(data)
    return pictures


def _read_printed(outputs: Any) -> str:
    """Text that a cell printed or displayed, without warnings and errors."""
    texts: list[str] = []
    for raw in outputs if isinstance(outputs, list) else []:
        output = _as_dict(raw)
        if output.get("name") != "stderr":
            data = _as_dict(output.get("data", output))  # format 3 has no `data`
            texts += [_as_text(data.get(kind)) for kind in _PRINTED_KINDS]
    return "\n".join(filter(None, texts))[:_MAX_PRINTED]


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_word(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= _MAX_NAME else ""


def _as_number(value: Any) -> float:
    return (
        float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0
    )


def _as_text(source: Any) -> str:
    if isinstance(source, list):
        lines = [line for line in source if isinstance(line, str)]
        # Some editors write a list of lines without their ends.
        is_bare = len(lines) > 1 and not any("\n" in line for line in lines)
        source = ("\n" if is_bare else "").join(lines)
    if not isinstance(source, str):
        return ""
    return _replace_surrogates(source.replace("\r\n", "\n").replace("\r", "\n"))


def _replace_surrogates(text: str) -> str:
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
