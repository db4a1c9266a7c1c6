"""Proposes a test for each find: at the end of the question's file, with points that another test
gives up.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder.basics.points import format_points
from autograder.basics.whole_files import name_file_in_errors, write_whole
from autograder.proof.hunt_search import Find

_POINTS = 0.5
"""What a proposed test is worth, or less where the dearest test has less than twice as much."""
_NAME = "test_hunted_"


def propose_tests(suite: Path, finds: Sequence[Find]) -> Iterator[str]:
    """Write a test for each different find; yields what was written, and what could not be."""
    written: set[tuple[str, tuple[str, ...]]] = set()
    for find in finds:
        path = suite / f"test_{find.question}.py"
        name = (find.question, find.lines)
        if name in written:
            continue
        written.add(name)
        with name_file_in_errors(path):
            text = path.read_text(encoding="utf-8")
            proposal = add_test(text, find)
            if proposal is None:
                yield f"{path}: no test with points that can be moved; write the test by hand"
                continue
            write_whole(path, proposal)
        yield f"{path}: a test is added at the end; read it, and give it a name and a sentence"


def add_test(text: str, find: Find) -> str | None:
    """The file's text with one more test, and as many points as before; None where no test has
    points to give.
    """
    worths = _worths(text)
    if not worths:
        return None
    line, dearest = max(worths.items(), key=lambda entry: entry[1])
    moved = min(_POINTS, dearest / 2)
    if moved <= 0:
        return None
    lines = text.split("\n")
    lines[line - 1] = re.sub(
        r"points\(.*?\)",
        f"points({format_points(dearest - moved)})",
        lines[line - 1],
        count=1,
    )
    number = 1 + len(re.findall(rf"^def {_NAME}\d", text, re.MULTILINE))
    test = _test_text(find, moved, f"{_NAME}{number}")
    head = _with_imports("\n".join(lines).rstrip("\n"))
    return f"{head}\n\n\n{test}\n"


def _worths(text: str) -> dict[int, float]:
    """The line of each `@points(…)`, with the points."""
    worths = {}
    for node in ast.parse(text).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            if (
                isinstance(decorator, ast.Call)
                and getattr(decorator.func, "id", "") == "points"
            ):
                worths[decorator.lineno] = float(ast.literal_eval(decorator.args[0]))
    return worths


def _with_imports(text: str) -> str:
    """The text with the names that a proposed test needs."""
    imports = ""
    if not re.search(r"^import torch$", text, re.MULTILINE):
        imports += "import torch\n"
    if "types.SimpleNamespace" in text and not re.search(
        r"^import types$", text, re.MULTILINE
    ):
        imports += "import types\n"
    if not re.search(r"\bassert_close\b", text):
        imports += "from autograder.suite import assert_close\n"
    if not imports:
        return text
    docstring_ends = 0
    first = ast.parse(text).body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        docstring_ends = first.end_lineno or 0
    lines = text.split("\n")
    head, tail = lines[:docstring_ends], lines[docstring_ends:]
    return "\n".join([*head, "", *imports.rstrip("\n").split("\n"), *tail])


def _test_text(
    find: Find,
    worth: float,
    name: str,
) -> str:
    """The test as text: each call of the find on both, the answers compared."""
    lines = [
        f"@points({format_points(worth)})",
        f"def {name}(student, reference):",
        f'    """Found by `autograder hunt`: {find.kind} {find.answer}, {find.way}."""',
    ]
    for line in find.lines:
        if line:
            lines += [f"    {part}" for part in _test_lines(line)]
    return "\n".join(lines)


def _test_lines(line: str) -> list[str]:
    """A line of a find in a test: a call is made on both sides, and the answers are compared."""
    is_call = re.match(r"(made_\d+ = )?(made_\d+\.)?\w+", line) is not None
    if not is_call or line.startswith(("def ", "class ", " ", "return ", "import ")):
        return [line]
    target, _, call = (
        line.rpartition(" = ") if line.startswith("made_") else ("", "", line)
    )
    sides = []
    for owner, prefix in (("student", "mine_"), ("reference", "right_")):
        text = re.sub(r"\bmade_(?=\d)", prefix, call)
        sides.append(text if text.startswith(prefix) else f"{owner}.{text}")
    if re.fullmatch(r"made_\d+", target):
        number = target.removeprefix("made_")
        return [f"mine_{number} = {sides[0]}", f"right_{number} = {sides[1]}"]
    return [f"assert_close({sides[0]}, {sides[1]})"]
