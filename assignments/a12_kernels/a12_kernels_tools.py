"""What visible checks are made of: you need not read it.

Made by `autograder build`; the notebook a12_kernels.ipynb imports it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(eq=False, repr=False)  # every worker runs this text: few methods to make
class CheckDifference:
    """How an answer differs from the expected one.

    Attributes:
        sentence: the difference in one sentence.
        actual: the array or value that differs, a part of the answer; None where a sentence says
            all.
        expected: what it should be.
        places: indices of the elements that differ, the first one first.
    """

    sentence: str
    actual: Any = None
    expected: Any = None
    places: tuple[tuple[int, ...], ...] = ()


def compare_answers(actual: Any, expected: Any, atol: float) -> CheckDifference | None:
    """The difference between an answer and the expected one; None where there is none.

    A tuple is as good as a list, a number of numpy's as one of Python's. Of tensors and arrays
    shape and dtype count too.
    """
    if isinstance(expected, (list, tuple)) and any(map(_array_kind, expected)):
        if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
            count = len(expected)
            return CheckDifference(
                f"It should be {count} values, and is {_short(actual)}."
            )
        pairs = enumerate(zip(actual, expected, strict=True), start=1)
        return _first_difference(((f"value {n}", a, e) for n, (a, e) in pairs), atol)
    if isinstance(expected, dict) and any(map(_array_kind, expected.values())):
        if not isinstance(actual, dict) or actual.keys() != expected.keys():
            found = (
                f"has the keys {list(actual)}"
                if isinstance(actual, dict)
                else _is(actual)
            )
            return CheckDifference(
                f"It should have the keys {list(expected)}, and {found}."
            )
        parts = ((f"the entry {key!r}", actual[key], expected[key]) for key in expected)
        return _first_difference(parts, atol)
    if kind := _array_kind(expected):
        if not _array_kind(actual):
            shape = list(expected.shape)
            return CheckDifference(
                f"It should be {kind} of shape {shape}, and {_is(actual)}."
            )
        return _compare_arrays(actual, expected, atol)
    return _compare_values(actual, expected, atol)


def _first_difference(
    parts: Iterator[tuple[str, Any, Any]], atol: float
) -> CheckDifference | None:
    """The first difference among the parts of an answer, which have names."""
    for name, actual, expected in parts:
        if difference := compare_answers(actual, expected, atol):
            sentence = (
                f"In {name}: {difference.sentence[0].lower()}{difference.sentence[1:]}"
            )
            return CheckDifference(
                sentence, difference.actual, difference.expected, difference.places
            )
    return None


def _compare_arrays(actual: Any, expected: Any, atol: float) -> CheckDifference | None:
    shape, expected_shape = list(actual.shape), list(expected.shape)
    if shape != expected_shape:
        sentence = f"The shape should be {expected_shape}, and is {shape}."
        return CheckDifference(sentence, actual, expected)
    values, expected_values = actual.tolist(), expected.tolist()
    places = tuple(_differing_places(values, expected_values, atol))
    if places:
        first = places[0]
        mine, right = _element(values, first), _element(expected_values, first)
        count = math.prod(shape)
        how_many = (
            f"{len(places)} of {count} elements differ" if count > 1 else "It differs"
        )
        where = f", first at {list(first)}" if count > 1 else ""
        sentence = f"{how_many}{where}: yours is {show(mine)}, expected {show(right)}."
        return CheckDifference(sentence, actual, expected, places)
    dtype, expected_dtype = str(actual.dtype), str(expected.dtype)
    if dtype.removeprefix("torch.") != expected_dtype.removeprefix("torch."):
        return CheckDifference(
            f"The numbers are right; their dtype should be {expected_dtype}, not {dtype}."
        )
    return None


def _compare_values(actual: Any, expected: Any, atol: float) -> CheckDifference | None:
    mine, right = _plain(actual), _plain(expected)
    if isinstance(right, float):
        is_right = isinstance(mine, (int, float)) and _are_near(mine, right, atol)
    else:
        is_right = not _array_kind(actual) and mine == right
    if is_right:
        return None
    return CheckDifference(f"It should be {_short(expected)}, and {_is(actual)}.")


def _array_kind(value: Any) -> str:
    """The words for a tensor or an array; "" for anything else."""
    classes = {base.__name__ for base in type(value).__mro__}
    if "Tensor" in classes:
        return "a tensor"
    return "an array" if "ndarray" in classes else ""


def _plain(value: Any) -> Any:
    """The value with tuples for lists, and Python's numbers for numpy's."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    is_numpy_number = "generic" in {base.__name__ for base in type(value).__mro__}
    return value.item() if is_numpy_number else value


def _differing_places(
    actual: Any, expected: Any, atol: float, index: tuple[int, ...] = ()
) -> Iterator[tuple[int, ...]]:
    """Indices of the elements of nested lists that differ by more than `atol`."""
    if isinstance(expected, list):
        for number, (mine, right) in enumerate(zip(actual, expected, strict=True)):
            yield from _differing_places(mine, right, atol, (*index, number))
    elif not _are_near(actual, expected, atol):
        yield index


def _are_near(actual: Any, expected: Any, atol: float) -> bool:
    if actual == expected:
        return True
    if str in (type(actual), type(expected)):
        return False
    if actual != actual and expected != expected:  # NaN is not equal to itself
        return True
    return bool(abs(actual - expected) <= atol)


def _element(values: Any, index: Sequence[int]) -> Any:
    for number in index:
        values = values[number]
    return values


def show(value: Any) -> str:
    """A value in a few characters: numbers with four digits after the point at most."""
    if not isinstance(value, float):
        return repr(value)
    if not math.isfinite(value) or value == 0:
        return f"{value:g}".replace("inf", "∞").replace("nan", "NaN")
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.4f}".rstrip("0").rstrip(".")
    return f"{value:.3g}"


def _is(value: Any) -> str:
    """The words for what an answer is."""
    if kind := _array_kind(value):
        shape = list(value.shape)
        return f"is {kind} of shape {shape}" if shape else f"is {kind}, {_short(value)}"
    return f"is {_short(value)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."


import html
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any


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


import html
import importlib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


_COLOURS = {"passed": "#1a7f37", "failed": "#d1242f", "open": "#9a6700"}
_MARKS = {"passed": "✓", "failed": "✗", "open": "…"}
_CODE = "font-family:var(--jp-code-font-family,monospace);font-size:.95em"

_PASTE = "Paste this into a cell to look at the call:"


@dataclass(eq=False, repr=False)  # every worker runs this text: few methods to make
class CheckBox:
    """What a box says.

    Attributes:
        state: whether the check passed, failed, or could not be made.
        title: the first line.
        lines: further sentences.
        call: the call that was checked, with its shapes.
        inputs: the arguments of the call, a line each.
        difference: what the answer differs in.
        hints: open one by one.
        example: lines of Python that make the call, to be pasted into a cell.
    """

    state: Literal["passed", "failed", "open"]
    title: str
    lines: Sequence[str] = ()
    call: str = ""
    inputs: Sequence[str] = ()
    difference: CheckDifference | None = None
    hints: Sequence[str] = ()
    example: Sequence[str] = ()

    def html(self) -> str:
        """The box as HTML."""
        colour, mark = _COLOURS[self.state], _MARKS[self.state]
        parts = [
            f'<div style="font-weight:600"><span aria-hidden="true" style="color:{colour}">{mark}'
            f"</span> {with_code(self.title)}</div>"
        ]
        if self.call:
            code = f'<code style="{_CODE};white-space:pre-wrap">{html.escape(self.call)}</code>'
            parts.append(f'<div style="margin:4px 0">{code}</div>')
        parts += [
            f'<div style="margin:4px 0">{with_code(line)}</div>' for line in self.lines
        ]
        if self.difference:
            parts.append(draw_difference(self.difference))
        if self.example:
            pasted = html.escape("\n".join(self.example))
            parts.append(
                f'<div style="margin:4px 0">{_PASTE}</div><pre style="{_CODE};white-space:pre-wrap;'
                f'overflow-wrap:anywhere;margin:4px 0"><code>{pasted}</code></pre>'
            )
        parts.append(nest_hints(self.hints, 1))
        if self.inputs:
            inputs = html.escape("\n".join(self.inputs))
            text = (
                f'<pre style="{_CODE};white-space:pre-wrap;margin:4px 0">{inputs}</pre>'
            )
            parts.append(
                f"<details><summary>The inputs of this call</summary>{text}</details>"
            )
        label = html.escape(f"{self.title}. {' '.join(self.lines)}", quote=True)
        return (
            f'<div role="group" aria-label="{label}" style="border-left:4px solid {colour};'
            'padding:4px 12px;margin:4px 0;color:inherit;max-width:100%;line-height:1.5">'
            + "".join(parts)
            + "</div>"
        )

    def text(self) -> str:
        """The box as text; hints stay closed."""
        lines = [f"{_MARKS[self.state]} {self.title}".replace("`", "")]
        if self.call:
            lines.append(f"  {self.call}")
        lines += [f"  {line}".replace("`", "") for line in self.lines]
        if self.difference:
            lines += [f"  {line}" for line in write_difference(self.difference)]
        if self.example:
            lines += [f"  {_PASTE}", *(f"    {line}" for line in self.example)]
        if self.hints:
            count = len(self.hints)
            what = "There is a hint" if count == 1 else f"There are {count} hints"
            lines.append(f"  {what}: next_hint() shows the next one.")
        return "\n".join(lines)


def nest_hints(hints: Sequence[str], number: int) -> str:
    """Hints as HTML, each inside the one before: the second can be opened once the first is."""
    if not hints:
        return ""
    count = number + len(hints) - 1
    title = f"Hint {number} of {count}" if count > 1 else "Hint"
    return (
        f'<details style="margin:4px 0"><summary style="cursor:pointer">{title}</summary>'
        f'<div style="margin:4px 0 4px 1.2em">{with_code(hints[0])}'
        f"{nest_hints(hints[1:], number + 1)}</div></details>"
    )


def with_code(text: str) -> str:
    """Plain text as HTML, with what stands between backticks as code."""
    return re.sub(
        r"`([^`]+)`",
        rf'<code style="{_CODE}">\1</code>',
        html.escape(text, quote=False),
    )


def running_notebook() -> Any:
    """IPython's shell, in a notebook or a terminal; None in plain Python."""
    ipython: Any = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def show_html(as_html: str, as_text: str) -> None:
    """Show HTML where this is a notebook, and print the text elsewhere."""
    if running_notebook() is None:
        print(as_text)
        return
    display = importlib.import_module("IPython.display").display
    display({"text/html": as_html, "text/plain": as_text}, raw=True)


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


import base64
import json
from typing import Any

FACTS: dict[str, Any] = {}
STUB = ": write your answer here"
"""Part of the message of an answer that is not written yet."""


def take_facts(encoded: str) -> None:
    """Take the facts. They are encoded so that no hint, and no answer to a prediction, is read by
    chance.
    """
    FACTS.update(json.loads(base64.b64decode(encoded)))


import contextlib
import importlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any


class NotAllowed(AssertionError):
    """An answer called a function that its question rules out."""


@contextlib.contextmanager
def refusing(names: Sequence[str]) -> Iterator[None]:
    """Inside, torch's functions and modules of these names may not be called, by whatever path."""
    torch: Any = sys.modules.get("torch")
    if not names or torch is None:
        yield
        return

    def refuse(name: str) -> None:
        if name in names:
            raise NotAllowed(
                f"Not allowed here: {name}. Write out what it does: that is the question."
            )

    mode = importlib.import_module("torch.overrides").TorchFunctionMode
    mock = importlib.import_module(
        "unittest.mock"
    )  # takes longer to import than all of this file

    class Refusal(mode):
        """Looks at the name of each function of torch that is called."""

        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            name = getattr(function, "__name__", "").strip("_")
            refuse(name.removeprefix("native_").removeprefix("special_"))
            return function(*args, **(kwargs or {}))

    hook = torch.nn.modules.module.register_module_forward_pre_hook(
        lambda module, inputs: refuse(type(module).__name__)
    )
    with contextlib.ExitStack() as stack:
        stack.callback(hook.remove)
        stack.enter_context(Refusal())
        for path in names:
            if "." in path:  # not every function of torch asks a mode
                refusal = mock.Mock(
                    side_effect=lambda *args, name=path, **kwargs: refuse(name)
                )
                stack.enter_context(mock.patch(f"torch.{path}", refusal))
        yield


import ast
import contextlib
import functools
import inspect
import linecache
import sys
import textwrap
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


_open_checks: list[checking] = []
_waiting_hints: list[str] = []


class NotYet(AssertionError):
    """A visible check that does not pass: its text is one sentence.

    Attributes:
        difference: what the answer differs in.
        subject: the text of what was compared.
        hints: texts for the student.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.difference: CheckDifference | None = None
        self.subject = ""
        self.hints: Sequence[str] = ()


def expect(actual: Any, expected: Any, atol: float = 1e-6, hint: Any = "") -> None:
    """Compare your answer with the expected one; where they differ, the check does not pass.

    Args:
        actual: what your function returned.
        expected: a tensor or an array (shape and dtype count too), a number, or anything that ==
            compares.
        atol: how far apart two numbers may be.
        hint: the number of the hint to show, or its text.
    """
    difference = compare_answers(actual, expected, atol)
    check = _open_checks[-1] if _open_checks else None
    if difference is None:
        if check is None:
            print("as expected")
        else:
            check.passed += 1
        return
    problem = NotYet(f"Not yet: {difference.sentence}")
    problem.difference = difference
    problem.subject = _first_argument(sys._getframe(1))
    problem.hints = _find_hints(check.question if check else "", hint)
    raise problem


def next_hint() -> None:
    """Print the next hint of the check that failed last."""
    if _waiting_hints:
        print(_waiting_hints.pop(0))
        if _waiting_hints:
            print(f"({len(_waiting_hints)} more: next_hint() again)")
    else:
        print("There is no further hint.")


class checking:  # noqa: N801  # students read it as a word: with checking("attend")
    """The frame of a visible check of one question.

    Args:
        question: the function or class that is checked.
        part: which of the question's checks this is, from 1.

    Attributes:
        passed: how many comparisons were as expected.
        call: the last call of the function, with shapes.
    """

    def __init__(self, question: str, part: int = 1) -> None:
        self.question = question
        self.passed = 0
        self.call = ""
        self._inputs: list[str] = []
        self._part = part
        self._depth = 0
        self._names: dict[str, Any] = {}
        self._answer: Any = None

    def __enter__(self) -> checking:
        self._names = sys._getframe(1).f_globals
        self._answer = self._names.get(self.question)
        if isinstance(self._answer, types.FunctionType):
            self._names[self.question] = self._watch(self._answer)
        _open_checks.append(self)
        return self

    def __exit__(
        self,
        kind: object,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        _open_checks.remove(self)
        if isinstance(self._answer, types.FunctionType):
            self._names[self.question] = self._answer
        _waiting_hints.clear()
        if error is None:
            self._show_passed()
        elif isinstance(error, Exception):
            box = self._describe(error, trace)
            _waiting_hints.extend(box.hints)
            show_html(box.html(), box.text())
        self._note(error is None)

    def _watch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which notes its calls and may not call what the question rules out."""
        refused = FACTS.get("refused", {}).get(self.question, ())

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._depth == 0:
                self.call, self._inputs = _describe_call(function, args, kwargs)
            self._depth += 1
            try:
                with refusing(refused):
                    return function(*args, **kwargs)
            finally:
                self._depth -= 1

        return watched

    def _show_passed(self) -> None:
        if not self.passed:  # a check that was skipped says so itself
            return
        times = f" ({self.passed} comparisons)" if self.passed > 1 else ""
        lines = []
        if self.question in FACTS.get("harder", ()):
            lines.append(
                f"Harder inputs, as often as you like: `harder({self.question})`."
            )
        box = CheckBox("passed", f"`{self.question}`: as expected{times}", lines)
        show_html(box.html(), box.text())

    def _describe(
        self, error: Exception, trace: types.TracebackType | None
    ) -> CheckBox:
        """The box about an exception; shortens what the notebook prints of it."""
        name = f"`{self.question}`"
        if isinstance(error, NotYet):
            _shorten(error, [f"{self.question}: not yet, see the box above"])
            assert error.difference is not None
            subject = f"`{error.subject}`: " if error.subject else ""
            return CheckBox(
                "failed",
                f"{name}: not yet",
                [subject + error.difference.sentence],
                self.call,
                self._inputs,
                error.difference,
                error.hints,
            )
        if STUB in str(error):
            _shorten(error, [f"{error} (see the box above)"])
            missing = str(error).partition(STUB)[0]
            sentence = (
                "Write your answer in its cell, run the cell, and run this one again."
            )
            if missing != self.question:
                sentence = f"It needs `{missing}`, which is not written yet."
            return CheckBox("open", f"{name} is not written yet", [sentence])
        if isinstance(error, NotAllowed):
            _shorten(error, [f"{self.question}: {error}"])
            return CheckBox(
                "failed", f"{name}: not yet", [str(error)], self.call, self._inputs
            )
        if isinstance(error, NameError) and self._answer is None:
            _shorten(error, [f"NameError: {error}"])
            sentence = "Run its cell first, and the cells above it."
            return CheckBox("open", f"{name} is not defined", [sentence])
        frames = _student_frames(trace, self._names)
        _shorten(error, [*frames, f"{type(error).__name__}: {error}"])
        lines = [f"Your code raised {type(error).__name__}: {error}"]
        if frames:
            lines.append(frames[-1].strip())
        return CheckBox("failed", f"{name}: not yet", lines, self.call, self._inputs)

    def _note(self, is_right: bool) -> None:
        if running_notebook() is not None and "assignment" in FACTS:
            folder, assignment = Path.cwd(), FACTS["assignment"]
            note_totals(folder, assignment, FACTS["of"])
            key = self.question if self._part == 1 else f"{self.question} {self._part}"
            note_progress(folder, assignment, "checks", key, is_right)


def _find_hints(question: str, hint: Any) -> list[str]:
    """The hints of a number, or of a number with values for the text's places."""
    values: Sequence[Any] = ()
    if isinstance(hint, tuple):
        hint, *values = hint
    if not isinstance(hint, int):
        return [hint] if hint else []
    texts = FACTS.get("hints", {}).get(question, [])
    hints = texts[hint - 1] if 0 < hint <= len(texts) else []
    return [text.format(*values) if values else text for text in hints]


def _describe_call(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[str, list[str]]:
    """A call with the shapes of its arguments, and its arguments with their values."""
    try:
        arguments = dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        arguments = {str(number): value for number, value in enumerate(args)} | kwargs
    shown = [_show_argument(name, value) for name, value in arguments.items()]
    inputs = []
    for name, value in arguments.items():
        text = textwrap.shorten(repr(value), 2000, placeholder=" …")
        if len(text) < 600:
            inputs.append(f"{name} = {text}")
    return f"{function.__name__}({', '.join(shown)})", inputs


def _show_argument(name: str, value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        dtype = str(value.dtype).removeprefix("torch.")
        is_usual = dtype in ("float32", "float64")
        return f"{name}{list(value.shape)}{'' if is_usual else ' ' + dtype}"
    if isinstance(value, (int, float, str, bool, type(None))):
        return f"{name}={textwrap.shorten(show(value), 60, placeholder='…')}"
    if isinstance(value, (list, tuple)) and len(repr(value)) <= 60:
        return f"{name}={value!r}"
    return (
        f"{name}={type(value).__name__}"
        if not callable(value)
        else f"{name}=a function"
    )


def _first_argument(frame: types.FrameType) -> str:
    """The text of what a line of a check compares, as far as the notebook kept it."""
    with contextlib.suppress(Exception):
        source = "".join(linecache.getlines(frame.f_code.co_filename))
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and node.lineno == frame.f_lineno:
                is_expect = isinstance(node.func, ast.Name) and node.func.id == "expect"
                if is_expect and node.args:
                    text = ast.get_source_segment(source, node.args[0]) or ""
                    return text if len(text) <= 60 and "\n" not in text else ""
    return ""


def _shorten(error: Exception, lines: list[str]) -> None:
    """Let IPython print these lines in place of the exception's traceback."""
    with contextlib.suppress(AttributeError, TypeError):
        error._render_traceback_ = lambda: lines


def _student_frames(
    trace: types.TracebackType | None, names: dict[str, Any]
) -> list[str]:
    """The lines of a traceback that lie in the notebook, without the check's own."""
    frames = []
    inner = trace.tb_next if trace else None  # the check's cell comes first
    while inner is not None:
        code = inner.tb_frame.f_code
        if inner.tb_frame.f_globals is names:
            line = linecache.getline(code.co_filename, inner.tb_lineno).strip()
            frames.append(f"  line {inner.tb_lineno}, in {code.co_name}: {line}")
        inner = inner.tb_next
    return frames


import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any


_ROUNDING = 1e-6


def predict(name: str, prediction: Any, *_: Any, **__: Any) -> None:
    """Say whether a prediction was so, and why.

    Args:
        name: the prediction's name.
        prediction: what you think: one of the choices, or a number.
    """
    facts = FACTS["predictions"][name]
    choices = facts.get("choices", [])
    prediction = _find_choice(prediction, choices)
    problem = _what_to_write(prediction, choices)
    if problem:
        show_box(CheckBox("open", problem))
        return
    is_right = _is_right(prediction, facts)
    said, answer = _quote(prediction), _quote(facts["answer"])
    title = (
        f"{said}: so it is."
        if is_right
        else f"You said {said}. The answer is {answer}."
    )
    show_box(CheckBox("passed" if is_right else "open", title, [facts["because"]]))
    if running_notebook() is not None:
        folder, assignment = Path.cwd(), FACTS["assignment"]
        note_totals(folder, assignment, FACTS["of"])
        note_progress(folder, assignment, "predictions", name, True)


def _quote(answer: Any) -> str:
    return f'"{answer}"' if isinstance(answer, str) else show(float(answer))


def show_box(box: CheckBox) -> None:
    """Show a box, in HTML where this is a notebook."""
    show_html(box.html(), box.text())


def _what_to_write(prediction: Any, choices: list[str]) -> str:
    """What is to be written, where the prediction is no answer; "" where it is one."""
    listed = " or ".join(f'"{choice}"' for choice in choices) or "a number"
    if prediction is ...:
        return f"Write {listed} in place of the three dots, and run this cell again."
    if choices:
        is_answer = prediction in choices
    else:
        is_answer = isinstance(prediction, (int, float)) and math.isfinite(prediction)
    return "" if is_answer else f"Write {listed}."


def _find_choice(prediction: Any, choices: list[str]) -> Any:
    """The one choice that has these words in it, else the prediction as it is."""
    if prediction is ... or prediction in choices:
        return prediction
    words = _in_words(prediction)
    fitting = [choice for choice in choices if words and words in _in_words(choice)]
    return fitting[0] if len(fitting) == 1 else prediction


def _in_words(choice: Any) -> str:
    return " ".join(str(choice).casefold().split())


def _is_right(prediction: Any, facts: Mapping[str, Any]) -> bool:
    answer = facts["answer"]
    if "choices" in facts:
        return bool(prediction == answer)
    return bool(abs(prediction - answer) <= facts.get("atol", 0) + _ROUNDING)


import importlib
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


_SECONDS = 2.0
_SEEDS = 100_000


def harder(
    function: Callable[..., Any],
    seed: int = -1,
    seconds: float = _SECONDS,
) -> None:
    """Try your function on harder inputs: sizes of all kinds, views, dtypes, large and tiny
    numbers, gradients. What should hold of every answer is looked at, no answer is given away.

    It costs and gives no points, and does nothing when the notebook is graded.

    Args:
        function: your function or class.
        seed: for the same inputs once more; each call takes others.
        seconds: how long it may take.
    """
    if running_notebook() is None:
        print("harder(…) tries inputs in a notebook; here it does nothing.")
        return
    question = _question_of(function)
    if not question:
        listed = ", ".join(FACTS.get("harder", ()))
        raise ValueError(
            f"there are harder inputs for {listed}; write one of them, harder(…)"
        )
    seed = seed if seed >= 0 else random.SystemRandom().randrange(_SEEDS)
    names = {
        **sys._getframe(1).f_globals,
        getattr(
            function,
            "__name__",
            question,
        ): function,
    }
    box = try_harder(
        question,
        names,
        seed,
        seconds,
    )
    show_html(box.html(), box.text())
    folder, assignment = Path.cwd(), FACTS["assignment"]
    note_totals(
        folder,
        assignment,
        FACTS["of"],
    )
    note_progress(
        folder,
        assignment,
        "harder",
        question,
        box.state == "passed",
    )


def _question_of(function: Callable[..., Any]) -> str:
    """The question that a function answers; "" where it answers none with harder inputs."""
    name = getattr(
        function,
        "__name__",
        "",
    )
    return name if name in FACTS.get("harder", ()) else ""


def _why_no_kernels(entry: Any, names: dict[str, Any]) -> str:
    """Why a question's kernels do not run here; "" where they do, or where it has none."""
    if not entry.is_kernel:
        return ""
    # `NoTriton` stands in for a module that is not here, and only a stand-in has advice
    advice = getattr(
        names.get("triton"),
        "advice",
        "",
    )
    return str(advice)


def try_harder(
    question: str,
    names: dict[str, Any],
    seed: int,
    seconds: float,
) -> CheckBox:
    """The box about the harder inputs of a question."""
    try:
        part = importlib.import_module(FACTS["harder_module"])
    except ModuleNotFoundError as error:
        sentence = (
            f"{FACTS['harder_module']}.py is not here: put it beside the notebook."
        )
        return CheckBox(
            "open",
            f"`{question}`: harder inputs",
            [sentence, str(error)],
        )
    if advice := _why_no_kernels(part.QUESTIONS[question], names):
        return CheckBox(
            "open",
            f"`{question}`: harder inputs",
            [advice],
        )
    result = part.HarderSearch(
        question,
        names,
        seed,
        seconds,
    ).run()
    again = f"The same inputs again: `harder({question}, seed={seed})`."
    failure = result.failure
    if failure is None:
        count = f"{result.calls} calls" if result.calls != 1 else "1 call"
        held = " ".join(result.sentences)
        return CheckBox(
            "passed",
            f"`{question}`: {count} with harder inputs, all is well",
            [held, again],
        )
    if failure.error is not None and STUB in str(failure.error):
        sentence = (
            "Write your answer in its cell, run the cell, and run this one again."
        )
        return CheckBox(
            "open",
            f"`{question}` is not written yet",
            [sentence],
        )
    return CheckBox(
        "failed",
        f"`{question}`: a harder call fails",
        [f"What should hold: {failure.sentence}", failure.problem, again],
        failure.title,
        example=failure.lines,
        difference=failure.difference,
    )


import html
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def progress() -> None:
    """Show how far you are. It is kept in the file progress.json beside the notebook, and nowhere
    else.
    """
    names = sys._getframe(1).f_globals
    folder, assignment = Path.cwd(), FACTS["assignment"]
    if running_notebook() is not None:
        note_totals(folder, assignment, FACTS["of"])
        for question in FACTS["questions"]:
            note_progress(
                folder, assignment, "questions", question, is_written(names, question)
            )
    rows = progress_rows(course_notes(folder))
    text = f"{progress_text(rows)}\n\nKept in {PROGRESS_FILE} beside the notebook, nowhere else."
    show_html(_table(rows), text)


def is_written(names: Mapping[str, Any], question: str) -> bool:
    """Whether the notebook defines a function or class, with an answer in place of the stub."""
    answer = names.get(question)
    if answer is None:
        return False
    answer = getattr(answer, "__wrapped__", answer)
    functions = list(vars(answer).values()) if isinstance(answer, type) else [answer]
    for function in functions:
        code = getattr(function, "__code__", None)
        if code is not None and any(
            STUB in str(constant) for constant in _constants(code)
        ):
            return False
    return True


def _constants(code: types.CodeType) -> Iterator[object]:
    """The constants of a function and of the functions in it, without its docstring."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _constants(constant)
        else:
            yield constant


def _table(rows: list[list[str]]) -> str:
    style = "padding:3px 10px;border:1px solid rgba(128,128,128,.35);text-align:left"
    head = "".join(
        f'<th scope="col" style="{style}">{html.escape(t)}</th>' for t in rows[0]
    )
    body = ""
    for first, *others in rows[1:]:
        cells = "".join(
            f'<td style="{style}">{html.escape(text)}</td>' for text in others
        )
        body += (
            f'<tr><th scope="row" style="{style}">{html.escape(first)}</th>{cells}</tr>'
        )
    return (
        '<div style="overflow-x:auto;color:inherit"><table style="border-collapse:collapse;'
        'margin:0;color:inherit"><caption style="text-align:left;caption-side:top;color:inherit;'
        f'padding:0 0 4px">How far you are</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table><small>Kept in {PROGRESS_FILE} beside the notebook, nowhere "
        "else.</small></div>"
    )


import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


_TABLE_SUFFIX = ".cells.json"


def check(notebook: str = "") -> None:
    """Say whether this notebook is ready to be handed in, as `python check.py NOTEBOOK` does.

    Save first. On Colab the notebook is asked for as it is. Where its file cannot be found, what
    you have run so far is looked at, and answers in words are not seen.

    Args:
        notebook: the notebook's file, where it is not found by itself.
    """
    program = Path.cwd() / "check.py"
    if not program.is_file():
        print("check.py is not here: put it beside the notebook, as it was given out")
        return
    with _notebook_file(notebook, Path.cwd()) as path:
        done = subprocess.run(
            [sys.executable, str(program), str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
    print(done.stdout + done.stderr)


@contextlib.contextmanager
def _notebook_file(named: str, folder: Path) -> Iterator[Path]:
    """The file of this notebook; where it has none, a temporary one."""
    file = Path(named) if named else _find_file(folder)
    if file is not None:
        yield file
        return
    content = _ask_colab() or _from_history(folder)
    with tempfile.TemporaryDirectory(prefix="check-") as scratch:
        path = Path(scratch) / f"{FACTS['assignment']}.ipynb"
        path.write_text(json.dumps(content), encoding="utf-8")
        yield path


def _find_file(folder: Path) -> Path | None:
    """The notebook's file, by what Jupyter or VS Code says, else by its name."""
    if "google.colab" in sys.modules:
        return None
    shell = running_notebook()
    names = shell.user_ns if shell else {}
    told = (os.environ.get("JPY_SESSION_NAME"), names.get("__vsc_ipynb_file__"))
    for path in (*told, folder / f"{FACTS['assignment']}.ipynb"):
        if path and Path(path).is_file():
            return Path(path)
    return None


def _ask_colab() -> Any:
    """The notebook as Colab has it, saved or not; None elsewhere."""
    if "google.colab" not in sys.modules:
        return None
    message = importlib.import_module("google.colab._message")
    answer = message.blocking_request("get_ipynb", request="", timeout_sec=60)
    return answer["ipynb"]


def _from_history(folder: Path) -> dict[str, Any]:
    """A notebook of the released cells, with what ran in this session in place of the answers."""
    table = json.loads(
        (folder / f"{FACTS['assignment']}{_TABLE_SUFFIX}").read_text("utf-8")
    )
    release: dict[str, Any] = table["release"]
    shell = running_notebook()
    history = list(shell.user_ns.get("In", [])) if shell else []
    print("The notebook's file is not here: this looks at what has run so far.\n")
    return {**release, "cells": list(_answered(release["cells"], history))}


def _answered(
    cells: Sequence[Mapping[str, Any]], history: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The released cells; a question's has the text that last defined its function."""
    for cell in cells:
        kit = cell["metadata"].get("attention_kit", {})
        source = "".join(cell["source"])
        if kit.get("role") == "question":
            name = kit["name"]
            marks = (f"def {name}(", f"class {name}", f"{name} = ")
            ran = [
                text
                for text in history
                if text.startswith(marks) or f"\n{marks[0]}" in text
            ]
            source = ran[-1] if ran else source
        yield {**cell, "source": source}


from typing import Any


class NoTriton:
    """Stands in for the modules of Triton: kernels can be defined, and not launched.

    Args:
        advice: the message of the error that a launch raises.
    """

    def __init__(self, advice: str) -> None:
        self.advice = advice

    def __getattr__(self, name: str) -> "NoTriton":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments: Any, **keywords: Any) -> "NoTriton":
        return self

    def __getitem__(self, grid: Any) -> Any:
        raise RuntimeError(self.advice)


def kernels_run(triton: Any) -> bool:
    """Whether kernels run here; where they do not, this function prints what to do."""
    if isinstance(triton, NoTriton):
        print(f"Skipped: {triton.advice}")
        return False
    return True


take_facts(
    "eyJhc3NpZ25tZW50IjogImExMl9rZXJuZWxzIiwgImhhcmRlciI6IFsibWF0bXVsIiwgInRpbGVzX2Fz"
    "a2VkX2ZvciIsICJjYXVzYWxfYXR0ZW50aW9uIiwgImNhdXNhbF9hdHRlbnRpb25fYmFja3dhcmQiLCAi"
    "c3BsaXRfZGVjb2RlIiwgImxpbWl0cyIsICJidXN5X3NoYXJlIl0sICJoYXJkZXJfbW9kdWxlIjogImEx"
    "Ml9rZXJuZWxzX2hhcmRlciIsICJoaW50cyI6IHsiYnVzeV9zaGFyZSI6IFtbIk9uZSBxdWVyeSBpcyBv"
    "bmUgdGlsZTogOCBwcm9ncmFtcywgb25lIHdhdmUuIl0sIFsiOCBoZWFkcyBvZiAzMiB0aWxlczogdHdv"
    "IHdhdmVzIG9mIDEzMi4iXV0sICJjYXVzYWxfYXR0ZW50aW9uIjogW1siVmFsdWVzIDAgdG8gaTsga2V5"
    "IDAgY291bnRzIHR3aWNlLiAzMS4wMiBldmVyeXdoZXJlPyBObyBtYXNrLiJdLCBbIjggcXVlcmllcywg"
    "NDAga2V5czogdGhlIGZpcnN0IHNlZXMgMzMsIGFuZCBrZXkgMCBjb3VudHMgdHdpY2UuIl0sIFsiMTAg"
    "dGlsZXMgb2YgMzIga2V5cywgMTYgbnVtYmVycyBlYWNoLiAxNiB0aWxlcz8gVGhlIGxvb3AgaGFzIG9u"
    "ZSBlbmQgZm9yIGFsbC4iXV0sICJjYXVzYWxfYXR0ZW50aW9uX2JhY2t3YXJkIjogW1siezB9OiB7MX0i"
    "XSwgWyJvbmUgdGlsZSwgdHdvIGhlYWRzLiIsICJJcyBoZWFkIGluIHRoZSBwbGFjZSBvZiBldmVyeSB0"
    "ZW5zb3I/Il0sIFsic2V2ZXJhbCB0aWxlcywgbm90aGluZyByYWdnZWQuIl0sIFsicmFnZ2VkIHRpbGVz"
    "OiB3aGF0IHdlaWdodCBoYXMgYSBxdWVyeSB0aGF0IGlzIG5vdCB0aGVyZT8iXV0sICJsaW1pdHMiOiBb"
    "WyI2MDAgb3BlcmF0aW9ucyBvbiAxMDAgYnl0ZXMuIl0sIFsiNiBzIG9mIHByb2R1Y3RzLCA1IHMgb2Yg"
    "dHJhZmZpYywgYXQgdGhlIHNhbWUgdGltZS4iXSwgWyJUcmFmZmljIGlzIGRvbmUgYWZ0ZXIgNSBzLiJd"
    "XSwgIm1hdG11bCI6IFtbIkEgdGltZXMgdGhlIHVuaXQgbWF0cml4IGlzIEEuIG5hbj8gQSBsYW5lIHRo"
    "YXQgd2FzIGxvYWRlZCB3aXRob3V0IG90aGVyPS4iXSwgWyJPbmUgdGlsZS4iXSwgWyI0MCBvbmVzIGEg"
    "c3VtLiA2ND8gTGFuZXMgb2YgSyBiZXlvbmQgdGhlIGVuZCBjb3VudC4iLCAiVXNlIHRoZSBzdHJpZGVz"
    "IG9mIGIuIl0sIFsiVHdvIHJvd3MgdG9nZXRoZXIsIGRvd24gZWFjaCBjb2x1bW4uIiwgIlRoZSBsYXN0"
    "IGdyb3VwIGhhcyBvbmUgcm93LiJdXSwgInNwbGl0X2RlY29kZSI6IFtbIldlaWdodHMgb2YgMS8xOCwg"
    "YW5kIDkvMTggZm9yIHRoZSBsYXN0IGtleSwgaW4gezB9IHBhcnRzLiBuYW4/IEEgcGFydCB3aXRob3V0"
    "IGtleXMuIl0sIFsiTmluZSBrZXlzIG9mIDEgYW5kIG9uZSBvZiA5OiBsbiAxOC4iLCAiVGhlIG1lcmdl"
    "ZCBsIGNvdW50cyB0aGVtIGFsbCwgcmVsYXRpdmUgdG8gb25lIG1heGltdW0uIl0sIFsiU2l4IHBhcnRz"
    "IG9mIHRlbiBrZXlzOiAyLCAyLCAyLCAyLCAyIGFuZCBub25lOyB0aGUgbGFzdCBrZXkgY291bnRzIGFz"
    "IDkuIl1dLCAidGlsZXNfYXNrZWRfZm9yIjogW1siT25lIHJvdyBvZiBBLCBuaW5lIGNvbHVtbnMgb2Yg"
    "QiwgbmluZSB0aWxlcyBlYWNoLiJdLCBbIlByb2dyYW0gOSBiZWdpbnMgdGhlIHNlY29uZCByb3csIGFu"
    "ZCBpdHMgY29sdW1uIGlzIHRoZXJlIGFscmVhZHkuIl1dfSwgIm9mIjogeyJjaGVja3MiOiA3LCAiaGFy"
    "ZGVyIjogNywgInByZWRpY3Rpb25zIjogNywgInF1ZXN0aW9ucyI6IDd9LCAicHJlZGljdGlvbnMiOiB7"
    "ImJ1c3lfc2hhcmUiOiB7ImFuc3dlciI6IDYsICJhdG9sIjogMC41LCAiYmVjYXVzZSI6ICI4IHByb2dy"
    "YW1zIG9uIDEzMiBwcm9jZXNzb3JzOiA2ICUuIEZvciB0aGUgcHJvbXB0IDI1NiBwcm9ncmFtcyBhcmUg"
    "dHdvIHdhdmVzIG9mIDEzMjogOTcgJS4ifSwgImNhdXNhbF9hdHRlbnRpb24iOiB7ImFuc3dlciI6IDEw"
    "LCAiYmVjYXVzZSI6ICIxICsgMiArIDMgKyA0OiB0aGUgZGlhZ29uYWwgb25lcyBjb3VudCB3aG9sZS4i"
    "fSwgImNhdXNhbF9hdHRlbnRpb25fYmFja3dhcmQiOiB7ImFuc3dlciI6IDMyLCAiYmVjYXVzZSI6ICJP"
    "bmNlIGZvciBlYWNoIG9mIHRoZSAzMiBxdWVyeSB0aWxlcy4gVHdvIGtlcm5lbHMgd3JpdGUgaXQgb25j"
    "ZS4ifSwgImxpbWl0cyI6IHsiYW5zd2VyIjogMTYsICJhdG9sIjogMSwgImJlY2F1c2UiOiAiQSBzdGVw"
    "IGxvYWRzIHR3byB0aWxlcyBvZiAzMiDCtyAzMiDCtyAyIGJ5dGVzLCBhbmQgZG9lcyAyIMK3IDMywrMg"
    "b3BlcmF0aW9ucy4ifSwgIm1hdG11bCI6IHsiYW5zd2VyIjogOTAsICJiZWNhdXNlIjogIk9uZSByb3cg"
    "b2YgQSBpcyA5IHRpbGVzLCBhbmQgbmluZSBjb2x1bW5zIG9mIEIgYXJlIDgxLiBJbiBncm91cHMgb2Yg"
    "dGhyZWUgaXQgaXMgMjcgYW5kIDI3LiJ9LCAic3BsaXRfZGVjb2RlIjogeyJhbnN3ZXIiOiA4NDQ4LCAi"
    "YmVjYXVzZSI6ICI4IMK3IDE2IHBhcnRzIG9mIDY0ICsgMiBudW1iZXJzIChtLCBsIGFuZCBvKS4gVGhl"
    "IGtleXMgYWxvbmUgYXJlIDIgMDk3IDE1Mi4ifSwgInRpbGVzX2Fza2VkX2ZvciI6IHsiYW5zd2VyIjog"
    "IjQiLCAiYmVjYXVzZSI6ICI0IHJvd3MgYW5kIDQgY29sdW1uczogOCBzdHJpcHMgb2YgdGlsZXMuIEdy"
    "b3VwcyBvZiAxIGFuZCBvZiAxNiBoYXZlIDE3LiIsICJjaG9pY2VzIjogWyIxIiwgIjQiLCAiMTYiXX19"
    "LCAicXVlc3Rpb25zIjogWyJtYXRtdWwiLCAidGlsZXNfYXNrZWRfZm9yIiwgImNhdXNhbF9hdHRlbnRp"
    "b24iLCAiY2F1c2FsX2F0dGVudGlvbl9iYWNrd2FyZCIsICJzcGxpdF9kZWNvZGUiLCAibGltaXRzIiwg"
    "ImJ1c3lfc2hhcmUiXSwgInJlZnVzZWQiOiB7ImNhdXNhbF9hdHRlbnRpb24iOiBbInNjYWxlZF9kb3Rf"
    "cHJvZHVjdF9hdHRlbnRpb24iXSwgIm1hdG11bCI6IFsibWF0bXVsIiwgIm1tIiwgImVpbnN1bSJdLCAi"
    "c3BsaXRfZGVjb2RlIjogWyJzY2FsZWRfZG90X3Byb2R1Y3RfYXR0ZW50aW9uIl19fQ=="
)
