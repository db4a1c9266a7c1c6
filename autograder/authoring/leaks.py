"""Find answers and hidden tests in a release.

Every telling line of a solution region is searched in the whole release: sources, outputs,
metadata, names of figures and data, and their content if it is text. So are the names of hidden
tests and their lines. A line is telling if it is too long for chance, and no everyday line (an
import, unpacking a shape, the ValueError that the docstring promises). Given code may share up to
half of an answer's telling lines: it shows the earlier functions that the answer extends.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.authoring import regions
from autograder.authoring.source_notebook import SourceCell, SourceNotebook
from autograder.authoring.visible_checks import decode_facts
from autograder.intake.cell_text import squeeze

# characters without spaces: `return x @ w_q + b_q` and shorter lines may be chance
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
_SHOWN_KEYS = ("source", "cell_type", "id")


@dataclass(frozen=True, slots=True)
class _Text:
    """A source, a file, or metadata of the release.

    Attributes:
        code: the text without spaces: data may have many lines, and every line of an answer is
            searched in all of them.
        prose: the text without spaces and line ends.
    """

    place: str
    text: str
    is_given: bool = False
    code: str = field(init=False)
    prose: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", re.sub(r"[^\S\n]+", "", self.text))
        object.__setattr__(self, "prose", squeeze(self.text))


def find_leaks(
    notebook: SourceNotebook,
    release: bytes,
    files: Sequence[tuple[str, bytes]],
    suite: Path,
    companions: Collection[str] = (),
) -> list[str]:
    """List the leaks of a release, one sentence each.

    Args:
        companions: the names of those files that are given code.
    """
    texts = list(_read_texts(release, files, companions))
    leaks: list[str] = []
    for cell in (*notebook.of_kind("question"), *notebook.of_kind("written")):
        leaks += _answer_leaks(cell, texts)
    names = {Path(name).name for name, _ in files}
    for path in sorted(suite.glob("*.py")):
        if path.name in names:
            leaks.append(f"{path.name} of the hidden suite goes out with the release")
        if path.name.startswith("test_"):
            leaks += _test_leaks(path, texts)
    return list(dict.fromkeys(leaks))


def _read_texts(
    release: bytes, files: Iterable[tuple[str, bytes]], companions: Collection[str]
) -> Iterator[_Text]:
    notebook: dict[str, Any] = json.loads(release)
    for number, cell in enumerate(notebook["cells"], start=1):
        kit = cell["metadata"].get("attention_kit", {})
        name = kit.get("name", "")
        place = f"cell {number} ({name})" if name else f"cell {number}"
        is_given = kit.get("role") == "given"
        yield _Text(place, "".join(cell["source"]), is_given)
        hidden = {key: value for key, value in cell.items() if key not in _SHOWN_KEYS}
        yield _Text(f"the metadata or outputs of {place}", "\n".join(_strings(hidden)))
    yield _Text("the notebook's metadata", "\n".join(_strings(notebook["metadata"])))
    for name, content in files:
        is_text = b"\0" not in content
        yield _Text(f"the name of {name}", name)
        text = content.decode("utf-8", errors="ignore") if is_text else ""
        yield _Text(name, text, is_given=name in companions)
        if facts := decode_facts(text):
            yield _Text(f"what {name} tells after a check", facts)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _strings(inner)
    elif isinstance(value, list):
        if all(isinstance(part, str) for part in value):  # a text in lines
            yield "".join(value)
        for inner in value:
            yield from _strings(inner)


def _answer_leaks(cell: SourceCell, texts: Iterable[_Text]) -> Iterator[str]:
    lines = _telling_lines(cell)
    for text in texts:
        searched = text.code if cell.is_code else text.prose
        leaked = [line for line in lines if squeeze(line) in searched]
        if text.is_given and 2 * len(leaked) <= len(lines):
            continue  # the answer extends an earlier function, and shares lines with it
        for line in leaked:
            yield f"{text.place} gives away a line of the answer to {cell.name}: {line}"


def _telling_lines(cell: SourceCell) -> list[str]:
    """The lines of an answer, and of its marking guide, that nobody writes by chance."""
    answer = regions.answers(cell.source)
    if cell.is_code:
        code = [re.sub(r"(^|\s)#.*$", "", line).strip() for line in answer]
        return [line for line in code if _is_telling_code(line, _SHORTEST_CODE)]
    prose = [line.strip() for line in (*answer, *cell.scheme.split("\n"))]
    return [line for line in prose if len(squeeze(line)) >= _SHORTEST_PROSE]


def _is_telling_code(line: str, shortest: int) -> bool:
    return len(squeeze(line)) >= shortest and not _EVERYDAY.search(line)


def _test_leaks(path: Path, texts: Iterable[_Text]) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    names = re.findall(r"(?m)^\s*def (test_\w+)", source)
    lines = list(_telling_test_lines(source))
    for text in texts:
        for name in names:
            # the search for a substring is much faster, and data may have megabytes
            if name in text.text and re.search(rf"\b{name}\b", text.text):
                yield f"{text.place} names the hidden test {name}"
        for line in lines:
            if squeeze(line) in text.code:
                yield f"{text.place} holds a line of the hidden {path.name}: {line}"


def _telling_test_lines(source: str) -> Iterator[str]:
    """Code lines of a suite that nobody writes by chance; students see docstrings anyway."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                docstrings.update(
                    range(node.lineno, (node.end_lineno or node.lineno) + 1)
                )
    for number, line in enumerate(source.split("\n"), start=1):
        code = re.sub(r"\s#.*$", "", line).strip()
        if number not in docstrings and _is_telling_code(code, _SHORTEST_TEST_LINE):
            yield code
