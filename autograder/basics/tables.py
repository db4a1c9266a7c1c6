"""CSV files as spreadsheets and learning platforms write them: any usual encoding, commas,
semicolons or tabs.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
from pathlib import Path

MAX_TABLE = 16_000_000
"""Bytes of a table: a gradebook of 2000 students with 200 columns has 4 MB."""


def table_bytes(path: Path) -> bytes:
    """The content of a file that should be a table.

    Raises:
        ValueError: it is far too large for one.
    """
    with path.open("rb") as file:
        data = file.read(MAX_TABLE + 1)
    if len(data) > MAX_TABLE:
        raise ValueError(
            f"it is no table of a class: it is larger than {MAX_TABLE // 1_000_000} MB"
        )
    return data


def read_table(data: bytes) -> tuple[list[list[str]], str]:
    """The rows of a CSV file, and what separates its cells.

    The separator is the one that splits the first lines into most cells, and each of them into as
    many: Canvas tells semicolons from commas in this way too (lib/gradebook_importer.rb).

    Raises:
        ValueError: it is no table.
    """
    text = _decoded(data)
    first = _rows(text, ",")
    separator, most = ",", len(first[0]) if first else 0
    for other in ";\t":
        rows = _rows(text, other)[:3]
        widths = {len(row) for row in rows}
        if len(widths) == 1 and (width := widths.pop()) > most:
            separator, most = other, width
    return _rows(text, separator), separator


def _rows(text: str, separator: str) -> list[list[str]]:
    try:
        return [
            row
            for row in csv.reader(io.StringIO(text), delimiter=separator)
            if any(cell.strip() for cell in row)
        ]
    except csv.Error as error:
        raise ValueError(f"it is no table ({error})") from error


def _decoded(data: bytes) -> str:
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if b"\x00" in data and not is_utf16:
        raise ValueError("it is no table: save the spreadsheet as CSV")
    try:
        return data.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")  # what a spreadsheet on Windows calls CSV


def number_in(cell: str) -> float | None:
    """A number as platforms write it in any language, with a point or a comma; None where the cell
    holds none.
    """
    try:
        number = float(cell.strip().replace(",", "."))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def write_table(rows: list[list[str]], separator: str = ",") -> str:
    """The rows as CSV text."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", delimiter=separator).writerows(rows)
    return out.getvalue()
