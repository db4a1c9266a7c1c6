"""Read and write CSV files of spreadsheets and learning platforms: any usual encoding, commas,
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
        ValueError: the file is far too large for a table.
    """
    with path.open("rb") as file:
        data = file.read(MAX_TABLE + 1)
    if len(data) > MAX_TABLE:
        raise ValueError(
            f"it is no table of a class: it is larger than {MAX_TABLE // 1_000_000} MB"
        )
    return data


def read_table(data: bytes) -> tuple[list[list[str]], str]:
    """The rows of a CSV file, and the separator of its cells.

    The separator splits each of the first lines into equally many cells, and into most: Canvas
    tells semicolons from commas in this way too (lib/gradebook_importer.rb).

    Raises:
        ValueError: it is no table.
    """
    text = _decode(data)
    best = _split_rows(text, ",")
    separator = ","
    columns = len(best[0]) if best else 0
    for candidate in ";\t":
        rows = _split_rows(text, candidate)
        widths = {len(row) for row in rows[:3]}
        if len(widths) == 1 and max(widths) > columns:
            best = rows
            separator = candidate
            columns = max(widths)
    return best, separator


def _split_rows(text: str, separator: str) -> list[list[str]]:
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=separator))
    except csv.Error as error:
        raise ValueError(f"it is no table ({error})") from error
    return [row for row in rows if any(cell.strip() for cell in row)]


def _decode(data: bytes) -> str:
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if b"\x00" in data and not is_utf16:
        raise ValueError("it is no table: save the spreadsheet as CSV")
    try:
        return data.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")  # as spreadsheets on Windows write CSV


def number_in(cell: str) -> float | None:
    """The number in a cell, written with a point or a comma; None for any other text."""
    try:
        number = float(cell.strip().replace(",", "."))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def write_table(rows: list[list[str]], separator: str = ",") -> str:
    """The rows as CSV text."""
    out = io.StringIO()
    csv.writer(
        out,
        lineterminator="\n",
        delimiter=separator,
    ).writerows(rows)
    return out.getvalue()
