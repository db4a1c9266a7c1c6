"""The progress file beside a student's notebooks, and the table that is made of it.

`progress.json` notes which visible checks and harder inputs have passed and which predictions were
made. It lies beside the notebook, and nothing of it is sent anywhere.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PROGRESS_FILE = "progress.json"
COLUMNS = {
    "questions": "questions written",
    "checks": "checks passed",
    "harder": "harder inputs passed",
    "predictions": "predictions made",
}
"""What is counted → the words of its column."""
_POINTS = re.compile(r"<title>[^<]*</title>.*?([\d.]+) of ([\d.]+) points", re.DOTALL)


def load_progress(folder: Path) -> dict[str, Any]:
    """The notes of a folder, by assignment; {} where there are none that can be read."""
    try:
        notes = json.loads((folder / PROGRESS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return notes if isinstance(notes, dict) else {}


def note_progress(
    folder: Path, assignment: str, kind: str, name: str, value: object
) -> None:
    """Note in a folder's file that a check, harder inputs or a prediction has this value now."""
    notes = load_progress(folder)
    entry = notes.setdefault(assignment, {})
    entry.setdefault(kind, {})[name] = value
    _save(folder, notes)


def note_totals(folder: Path, assignment: str, totals: Mapping[str, int]) -> None:
    """Note how many questions, checks and predictions an assignment has."""
    notes = load_progress(folder)
    entry = notes.setdefault(assignment, {})
    if entry.get("of") != dict(totals):
        entry["of"] = dict(totals)
        _save(folder, notes)


def _save(folder: Path, notes: Mapping[str, Any]) -> None:
    # a folder that cannot be written has no progress file, and the notebook works all the same
    with contextlib.suppress(OSError):
        text = json.dumps(notes, indent=1, sort_keys=True) + "\n"
        (folder / PROGRESS_FILE).write_text(text, encoding="utf-8")


def count_progress(entry: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """What is done of an assignment, and how much there is, for each column."""
    totals = entry.get("of", {})
    counts = {}
    for kind in COLUMNS:
        values = entry.get(kind, {})
        done = (
            sum(bool(value) for value in values.values())
            if isinstance(values, dict)
            else 0
        )
        counts[kind] = (done, int(totals.get(kind, 0)))
    return counts


def course_notes(folder: Path) -> dict[str, Any]:
    """The notes of a folder and of those beside it: each assignment may lie in its own."""
    notes: dict[str, Any] = {}
    siblings = sorted(path.parent for path in folder.parent.glob(f"*/{PROGRESS_FILE}"))
    for place in (*siblings, folder):
        for assignment, entry in load_progress(place).items():
            if isinstance(entry, dict):
                notes[assignment] = {**entry, "points": _find_points(place, assignment)}
    return notes


def _find_points(folder: Path, assignment: str) -> str:
    """The points on the feedback page that lies beside a notebook, "" without a page."""
    for page in (
        folder / f"{assignment}.html",
        folder / "feedback" / f"{assignment}.html",
    ):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if points := _POINTS.search(page.read_text(encoding="utf-8")):
                return f"{points[1]} of {points[2]}"
    return ""


def progress_rows(notes: Mapping[str, Any]) -> list[list[str]]:
    """The course as a table: a row of titles, and a row for each assignment."""
    rows = [["assignment", *COLUMNS.values(), "points"]]
    for assignment in sorted(notes):
        cells = [assignment]
        for done, total in count_progress(notes[assignment]).values():
            cells.append(
                f"{done} of {total}" if total else (str(done) if done else "–")
            )
        rows.append([*cells, notes[assignment].get("points") or "–"])
    return rows


def progress_text(rows: Iterable[Iterable[str]]) -> str:
    """The table as text, in columns."""
    table = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
