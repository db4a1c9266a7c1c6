"""Draws an answer beside the expected one, in HTML that any notebook shows: tables coloured like
heat maps, and curves.

Colours are transparent over the notebook's own background, and text has the notebook's own colour:
so a picture can be read in a light and in a dark theme.
"""

from __future__ import annotations

import html
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.student_tools.answer_differences import CheckDifference, show

_MOST = 12
"""Rows and columns that a table shows; of a larger array it shows a part."""
_CURVE = 13
"""A row of so many numbers or more is drawn as a curve."""
_WRONG = "#d1242f"
_BLUE, _ORANGE = "47,111,187", "209,120,40"
_CELL = (
    "border:1px solid rgba(128,128,128,.35);padding:2px 7px;text-align:right;"
    "font-variant-numeric:tabular-nums;min-width:2.2em;"
)


@dataclass(eq=False, repr=False)  # every worker runs this text: few methods to make
class Part:
    """Rows and columns of an array that a picture shows.

    Attributes:
        index: the place of this matrix in an array of more than two axes.
        top, left: the first row and column that is shown.
        rows: the numbers.
        axes: how many axes the array has.
    """

    index: tuple[int, ...]
    top: int
    left: int
    rows: Sequence[Sequence[Any]]
    axes: int

    def place(self, row: int, column: int) -> tuple[int, ...]:
        """The index in the array of a cell that is shown."""
        inner = (self.top + row, self.left + column)
        return (*self.index, *inner[max(0, 2 - self.axes) :])


def draw_difference(difference: CheckDifference) -> str:
    """Both arrays as HTML, side by side, with the differing elements marked; "" for no arrays."""
    arrays = (difference.actual, difference.expected)
    if not all(hasattr(array, "tolist") and math.prod(array.shape) for array in arrays):
        return ""
    first = difference.places[0] if difference.places else ()
    actual, expected = (_part(array, first) for array in arrays)
    if _is_curve(actual) and _is_curve(expected):
        return _draw_curves(actual.rows[0], expected.rows[0])
    numbers = [
        value for part in (actual, expected) for row in part.rows for value in row
    ]
    finite = [abs(float(v)) for v in numbers if _is_number(v) and math.isfinite(v)]
    largest = max(finite, default=0.0) or 1.0
    tables = (
        _draw_table("yours", actual, largest, difference.places),
        _draw_table("expected", expected, largest, ()),
    )
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:8px 28px;overflow-x:auto;margin:8px 0">'
        + "".join(tables)
        + "</div>"
    )


def write_difference(difference: CheckDifference) -> list[str]:
    """Both arrays as lines of text, under each other."""
    lines = []
    first = difference.places[0] if difference.places else ()
    for name, array in (
        ("yours", difference.actual),
        ("expected", difference.expected),
    ):
        if hasattr(array, "tolist") and math.prod(array.shape):
            part = _part(array, first)
            rows = [[show(value) for value in row] for row in part.rows]
            width = max(len(text) for row in rows for text in row)
            place = _part_name(part)
            lines.append(f"{name}{f' ({place})' if place else ''}:")
            lines += [
                "  " + "  ".join(text.rjust(width) for text in row) for row in rows
            ]
    return lines


def _part(array: Any, first: Sequence[int]) -> Part:
    """The matrix with the first differing element, or the part of it around that element."""
    values = array.tolist()
    axes = len(array.shape)
    index: tuple[int, ...] = ()
    if axes == 0:
        return Part((), 0, 0, [[values]], 0)
    if axes == 1:
        matrix = [values]
        place: tuple[int, ...] = (0, *first)
    else:
        index = (0,) * (axes - 2)
        if len(first) == axes:
            index = tuple(first[: axes - 2])
        matrix = values
        for level in index:
            matrix = matrix[level]
        place = tuple(first[axes - 2 :]) if len(first) == axes else (0, 0)
    row, column = (*place, 0, 0)[:2]
    if len(matrix) == 1 and len(matrix[0]) >= _CURVE:
        return Part(index, 0, 0, matrix, axes)
    top = _start(row, len(matrix))
    left = _start(column, len(matrix[0]) if matrix else 0)
    rows = [line[left : left + _MOST] for line in matrix[top : top + _MOST]]
    return Part(index, top, left, rows, axes)


def _start(place: int, length: int) -> int:
    """The first of at most `_MOST` places that are shown, so that `place` is among them."""
    return max(0, min(place - _MOST // 2, length - _MOST))


def _part_name(part: Part) -> str:
    """Which part of the array is shown, as an index; "" for all of it."""
    if not (part.index or part.top or part.left):
        return ""
    numbers = [str(number) for number in part.index]
    if part.top or part.left:
        height, width = len(part.rows), len(part.rows[0])
        ranges = (f"{part.top}:{part.top + height}", f"{part.left}:{part.left + width}")
        numbers += ranges[max(0, 2 - part.axes) :]
    return f"[{', '.join(numbers)}]"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_curve(part: Part) -> bool:
    is_row = len(part.rows) == 1 and len(part.rows[0]) >= _CURVE
    return is_row and all(
        _is_number(value) and math.isfinite(value) for value in part.rows[0]
    )


def _draw_table(
    name: str, part: Part, largest: float, places: Collection[tuple[int, ...]]
) -> str:
    lines = []
    for row, values in enumerate(part.rows):
        cells = []
        for column, value in enumerate(values):
            style, label = _CELL + _shade(value, largest), html.escape(show(value))
            if part.place(row, column) in places:
                style += (
                    f"outline:2px solid {_WRONG};outline-offset:-2px;font-weight:bold;"
                )
                place = list(part.place(row, column))
                label += f'<span role="img" aria-label=" differs, at {place}"> ✗</span>'
            cells.append(f'<td style="{style}">{label}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    place_name = _part_name(part)
    caption = f"{name} {place_name}" if place_name else name
    return (
        '<table style="border-collapse:collapse;margin:0;font-size:13px;color:inherit">'
        '<caption style="caption-side:top;text-align:left;padding:0 0 3px;color:inherit">'
        f"{caption}</caption><tbody>{''.join(lines)}</tbody></table>"
    )


def _shade(value: Any, largest: float) -> str:
    """The background of a number: blue above 0, orange below, none for what is no number."""
    if isinstance(value, bool):
        return f"background:rgba({_BLUE},{0.45 if value else 0.04});"
    if not _is_number(value) or not math.isfinite(value):
        return "background:transparent;"
    colour = _BLUE if value >= 0 else _ORANGE
    return f"background:rgba({colour},{0.04 + 0.44 * abs(value) / largest:.2f});"


def _draw_curves(actual: Sequence[float], expected: Sequence[float]) -> str:
    """Two curves in one picture, the expected one broad and pale."""
    width, height, edge = 420.0, 140.0, 8.0
    low, high = min(*actual, *expected), max(*actual, *expected)
    span = (high - low) or 1.0
    longest = max(len(actual), len(expected)) - 1

    def points(values: Sequence[float]) -> str:
        return " ".join(
            f"{edge + (width - 2 * edge) * number / longest:.1f},"
            f"{height - edge - (height - 2 * edge) * (value - low) / span:.1f}"
            for number, value in enumerate(values)
        )

    words = f"Two curves from {show(float(low))} to {show(float(high))}: yours and the expected one"
    return (
        f'<svg role="img" aria-label="{words}" viewBox="0 0 {width:g} {height:g}" '
        'style="width:100%;max-width:420px;display:block;margin:8px 0">'
        f'<polyline points="{points(expected)}" fill="none" stroke="rgb({_BLUE})" '
        'stroke-width="6" stroke-opacity=".4"/>'
        f'<polyline points="{points(actual)}" fill="none" stroke="{_WRONG}" stroke-width="1.8"/>'
        "</svg>"
        f'<div><span style="color:{_WRONG}">━</span> yours &nbsp; '
        f'<span style="color:rgb({_BLUE})">━</span> expected, from {show(float(low))} to '
        f"{show(float(high))}</div>"
    )
