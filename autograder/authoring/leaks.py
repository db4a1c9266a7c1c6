"""Does a release give away an answer or a hidden test?

Every telling line of a solution region is looked for in the whole release: sources, outputs,
metadata, the names of figures and data, and what they say where they are text. So are the names of
the hidden tests and their lines. A line is telling if it is long enough to be nobody's chance, and
not of the sort that every cell has (imports, unpacking a shape, raising the ValueError that the
docstring promises). Given code may share up to half of an answer's telling lines: it shows the
earlier functions that the answer extends.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.authoring import regions
from autograder.authoring.source_notebook import SourceNotebook
from autograder.intake.cell_text import squeeze

# characters without spaces: `return x @ w_q + b_q` is short enough for chance, so is all below
_SHORTEST_CODE = 20
_SHORTEST_PROSE = 40
_SHORTEST_TEST_LINE = 40
_EVERYDAY = re.compile(
    r"^(import |from \S+ import |raise |@|def |class |else\b|elif "
    r"|try\b|except\b|finally\b|pass\b|with torch\.)"
    r"|^return \w+$"
    r"|^[\w, *]+ = [\w.]+\.(shape|size\(\))(\[[^\]]*\])?$"
    r"|^if .*:$|^for \w+ in range\([\w., +]*\):$"
)


@dataclass(frozen=True, slots=True)
class _Text:
    """One piece of the release: where it stands, and whether it is given code.

    Attributes:
        lines: its lines without spaces, as one string: data may have many, and every line of an
            answer is looked for.
        prose: the same without line ends.
        whole: as it is.
    """

    place: str
    lines: str
    prose: str
    whole: str
    is_given: bool = False


def find_leaks(
    notebook: SourceNotebook, release: bytes, files: Sequence[tuple[str, bytes]], suite: Path
) -> list[str]:
    """What the release gives away, one sentence each; [] where it gives away nothing."""
    texts = list(_texts(release, files))
    names = [name for name, _ in files]
    problems = []
    for cell in (*notebook.of_kind("question"), *notebook.of_kind("written")):
        lines = [*_telling_lines(cell.source, code=cell.is_code), *_telling_prose(cell.scheme)]
        for text in texts:
            said = [line for line in lines if _says(text, line, code=cell.is_code)]
            if text.is_given and 2 * len(said) <= len(lines):
                continue  # an earlier function that this answer extends shares some of its lines
            problems += [
                f"{text.place} gives away a line of the answer to {cell.name}: {line}"
                for line in said
            ]
    for path in sorted(suite.glob("*.py")):
        problems += _suite_leaks(path, texts, names)
    return list(dict.fromkeys(problems))


def _texts(release: bytes, files: Iterable[tuple[str, bytes]]) -> Iterator[_Text]:
    raw: dict[str, Any] = json.loads(release)
    for number, cell in enumerate(raw["cells"], start=1):
        kit = cell["metadata"].get("attention_kit", {})
        name = kit.get("name", "")
        place = f"cell {number}" + (f" ({name})" if name else "")
        yield _text(place, "".join(cell["source"]), is_given=kit.get("role") == "given")
        beside = {
            key: value for key, value in cell.items() if key not in ("source", "cell_type", "id")
        }
        yield _text(f"the metadata or outputs of {place}", "\n".join(_strings(beside)))
    yield _text("the notebook's metadata", "\n".join(_strings(raw["metadata"])))
    for name, content in files:
        yield _text(f"the name of {name}", name)
        yield _text(name, content.decode("utf-8", errors="ignore") if b"\0" not in content else "")


def _text(place: str, text: str, *, is_given: bool = False) -> _Text:
    return _Text(place, re.sub(r"[^\S\n]+", "", text), squeeze(text), text, is_given)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _strings(inner)
    elif isinstance(value, list):
        yield "".join(value) if value and all(isinstance(part, str) for part in value) else ""
        for inner in value:
            yield from _strings(inner)


def _telling_lines(source: str, *, code: bool) -> Iterator[str]:
    for line in regions.answers(source):
        text = re.sub(r"(^|\s)#.*$", "", line).strip() if code else line.strip()
        shortest = _SHORTEST_CODE if code else _SHORTEST_PROSE
        if len(squeeze(text)) >= shortest and not (code and _EVERYDAY.search(text)):
            yield text


def _telling_prose(scheme: str) -> Iterator[str]:
    yield from (
        line.strip() for line in scheme.split("\n") if len(squeeze(line)) >= _SHORTEST_PROSE
    )


def _says(text: _Text, line: str, *, code: bool) -> bool:
    wanted = squeeze(line)
    return wanted in (text.lines if code else text.prose)


def _suite_leaks(path: Path, texts: list[_Text], names: list[str]) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    if path.name in names or any(name.endswith(f"/{path.name}") for name in names):
        yield f"{path.name} of the hidden suite goes out with the release"
    if not path.name.startswith("test_"):
        return
    tests = re.findall(r"(?m)^\s*def (test_\w+)", source)
    for text in texts:
        yield from (
            f"{text.place} names the hidden test {name}"
            for name in tests
            if name in text.whole and re.search(rf"\b{name}\b", text.whole)
        )
        yield from (
            f"{text.place} holds a line of the hidden {path.name}: {line}"
            for line in _test_lines(source)
            if squeeze(line) in text.lines
        )


def _test_lines(source: str) -> Iterator[str]:
    """The code lines of a suite that nothing else would have by chance; docstrings are shown to
    students anyway.
    """
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            docstrings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for number, line in enumerate(source.split("\n"), start=1):
        text = re.sub(r"\s#.*$", "", line).strip()
        if (
            number not in docstrings
            and len(squeeze(text)) >= _SHORTEST_TEST_LINE
            and not _EVERYDAY.search(text)
        ):
            yield text
