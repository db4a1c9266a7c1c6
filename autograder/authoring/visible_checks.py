"""Frames visible checks: `with checking("attend"):`, and takes their hints out of students' sight.

A hint goes into the companion, and a number stays in its place. What the suite forbids goes there
too: the frame refuses it while the check calls the answer.
"""

from __future__ import annotations

import ast
import base64
import dataclasses
import io
import json
import re
import textwrap
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from autograder.authoring.bans import names_to_refuse
from autograder.authoring.predictions_source import read_predictions
from autograder.authoring.source_notebook import SourceCell, SourceNotebook
from autograder.basics.errors import BadSource
from autograder.intake.magics import strip_magics

if TYPE_CHECKING:
    from autograder.suite.collection import SuiteQuestion

IMPORT = "from autograder.student_tools.expect import"
PREDICT_IMPORT = "from autograder.student_tools.predictions import predict"
_HOW_FAR = (
    "# How far am I? What this shows is kept beside the notebook, and nowhere else.\n"
    "progress()"
)
WIDTH = 88
_INDENT = "    "
_SENTENCE = re.compile(r"(?<=[.!]) (?=[A-Z`\"(])")


@dataclasses.dataclass(frozen=True, slots=True)
class HintPlace:
    """A string of a check's text that is a hint, and what stands in its place.

    Attributes:
        start, end: (line from 0, column in bytes).
        texts: the hint's sentences, which open one by one.
        values: texts of the expressions in the hint's places {0}, {1}, …
    """

    start: tuple[int, int]
    end: tuple[int, int]
    texts: tuple[str, ...]
    values: tuple[str, ...] = ()

    def reference(self, number: int) -> str:
        """What stands in the check: the hint's number, with the values of its places."""
        return f"({number}, {', '.join(self.values)})" if self.values else str(number)


def frame_checks(
    notebook: SourceNotebook, questions: Mapping[str, SuiteQuestion]
) -> tuple[SourceNotebook, dict[str, Any]]:
    """The notebook with framed checks, and the facts for the companion; unchanged where no given
    cell imports `expect` and nothing is forbidden.
    """
    predictions = read_predictions(notebook)
    refused: dict[str, list[str]] = {}
    for cell in notebook.of_kind("question"):
        if names := names_to_refuse(cell, questions[cell.name].forbidden):
            refused[cell.name] = names
    given = notebook.of_kind("given")
    has_tools = any(
        IMPORT in cell.source or PREDICT_IMPORT in cell.source for cell in given
    )
    if predictions and not has_tools:
        place = notebook.of_kind("predict")[0].place
        raise BadSource(
            f"{place}: a prediction needs a given cell with `{PREDICT_IMPORT}`"
        )
    if not (has_tools or refused):
        return notebook, {}
    if not given:
        raise BadSource(
            f"{notebook.cells[0].place}: the suite forbids functions, and there is no given cell "
            "for the check"
        )
    hints: dict[str, list[list[str]]] = {}
    parts: Counter[str] = Counter()
    cells = []
    for cell in notebook.cells:
        if cell.kind == "check" and ast.parse(strip_magics(cell.source)[0]).body:
            parts[cell.name] += 1
            source = _number_hints(cell, hints.setdefault(cell.name, []))
            source = _frame(source, cell.name, parts[cell.name])
            cell = dataclasses.replace(cell, source=source)
        elif cell is given[0] and not has_tools:
            cell = dataclasses.replace(
                cell, source=f"{cell.source.rstrip()}\n{IMPORT} expect"
            )
        cells.append(cell)
    facts = {
        "assignment": notebook.assignment,
        "hints": hints,
        "of": {
            "questions": len(notebook.questions),
            "checks": parts.total(),
            "predictions": len(predictions),
        },
        "predictions": {
            name: prediction.facts() for name, prediction in predictions.items()
        },
        "questions": list(notebook.questions),
        "refused": refused,
    }
    if has_tools:
        cells.append(SourceCell("demo", "how_far", _HOW_FAR, notebook.cells[-1].place))
    return dataclasses.replace(notebook, cells=tuple(cells)), facts


def encode_facts(facts: Mapping[str, Any]) -> str:
    """The lines at the end of the companion that hand over the facts."""
    text = json.dumps(facts, sort_keys=True, ensure_ascii=False)
    encoded = textwrap.wrap(base64.b64encode(text.encode()).decode(), 80)
    lines = "\n".join(f'    "{line}"' for line in encoded)
    return f"take_facts(\n{lines}\n)"


def decode_facts(companion: str) -> str:
    """The facts in a companion's text, as JSON; "" where it has none. `leaks` reads them."""
    _, found, encoded = companion.rpartition("\ntake_facts(\n")
    if not found:
        return ""
    return base64.b64decode("".join(re.findall(r'"(.*)"', encoded))).decode()


# hints


def _number_hints(cell: SourceCell, hints: list[list[str]]) -> str:
    """The check's text with numbers in place of its hints, whose sentences are added to `hints`."""
    source = cell.source
    places = sorted(
        _hint_places(ast.parse(strip_magics(source)[0])), key=lambda place: place.start
    )
    lines = [line.encode() for line in source.split("\n")]
    references = []
    for place in places:
        hints.append(list(place.texts))
        references.append(place.reference(len(hints)))
    for place, reference in reversed(list(zip(places, references, strict=True))):
        (first, start), (last, end) = place.start, place.end
        line = lines[first][:start] + reference.encode() + lines[last][end:]
        lines[first : last + 1] = [line]
    return _join_short_calls("\n".join(line.decode() for line in lines))


def _hint_places(tree: ast.Module) -> Iterator[HintPlace]:
    """The strings given as `hint=` to `expect`, or to a check's own function, there or in a
    variable.
    """
    variables: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            for keyword in node.keywords:
                if keyword.arg == "hint":
                    yield from _place_of(keyword.value)
                    if isinstance(keyword.value, ast.Name):
                        variables.add(keyword.value.id)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in variables:
            yield from _place_of(node.value)


def _place_of(node: ast.expr) -> Iterator[HintPlace]:
    start = (node.lineno - 1, node.col_offset)
    end = ((node.end_lineno or node.lineno) - 1, node.end_col_offset or 0)
    match node:
        case ast.Constant(value=str(text)):
            yield HintPlace(start, end, tuple(_SENTENCE.split(text)))
        case ast.JoinedStr(values=values):
            text = ""
            expressions: list[str] = []
            for value in values:
                if isinstance(value, ast.Constant):
                    text += str(value.value).replace("{", "{{").replace("}", "}}")
                elif isinstance(value, ast.FormattedValue):
                    text += f"{{{len(expressions)}{_format_of(value)}}}"
                    expressions.append(ast.unparse(value.value))
            yield HintPlace(
                start, end, tuple(_SENTENCE.split(text)), tuple(expressions)
            )


def _format_of(value: ast.FormattedValue) -> str:
    """The conversion and the format of a place of an f-string: `!r`, `:.4f`."""
    conversion = f"!{chr(value.conversion)}" if value.conversion >= 0 else ""
    if isinstance(value.format_spec, ast.JoinedStr):
        parts = value.format_spec.values
        conversion += ":" + "".join(
            str(p.value) for p in parts if isinstance(p, ast.Constant)
        )
    return conversion


def _join_short_calls(source: str) -> str:
    """Statements that now fit into one line, in one line."""
    lines = source.split("\n")
    body = ast.parse(strip_magics(source)[0])
    statements = [
        node for node in ast.walk(body) if isinstance(node, (ast.Expr, ast.Assign))
    ]
    for node in sorted(statements, key=lambda node: -node.lineno):
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        text = lines[first:last]
        if len(text) == 1 or any("#" in line or '"""' in line for line in text):
            continue
        joined = " ".join(line.strip() for line in text)
        joined = re.sub(r"([(\[]) ", r"\1", joined)
        joined = re.sub(r",? ([)\]])", r"\1", joined)
        begin = text[0]
        indent = begin[: len(begin) - len(begin.lstrip())]
        joined = indent + joined
        if len(joined) <= WIDTH - len(_INDENT) and _is_equal(joined, text):
            lines[first:last] = [joined]
    return "\n".join(lines)


def _is_equal(joined: str, lines: Sequence[str]) -> bool:
    """Whether a joined line is the same code."""
    try:
        one = ast.dump(ast.parse(joined.strip()))
        return one == ast.dump(ast.parse(textwrap.dedent("\n".join(lines))))
    except SyntaxError:
        return False


# the frame


def _frame(source: str, question: str, part: int) -> str:
    inside_strings = set(_lines_inside_strings(strip_magics(source)[0]))
    lines: list[str] = []
    for number, line in enumerate(source.split("\n")):
        if number in inside_strings:
            lines.append(line)
        elif line:
            lines.append(f"{_INDENT}{line}")
        elif lines and lines[-1]:  # one empty line is enough in a block
            lines.append("")
    arguments = f'"{question}"' if part == 1 else f'"{question}", {part}'
    return "\n".join([f"with checking({arguments}):", *lines])


def _lines_inside_strings(source: str) -> Iterator[int]:
    """The lines, from 0, that begin inside a string."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.STRING:
            yield from range(token.start[0], token.end[0])
