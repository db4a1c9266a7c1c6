"""Writes a student's answer into `mistakes.py` or `samples.py`: as text that nothing imports or
runs outside of a worker.
"""

from __future__ import annotations

import ast
import re

_IMPORT = "from autograder.suite import {}"
_WORD = re.compile(r"[a-z0-9]+")
_MOST_WORDS = 7
_SMALL_WORDS = frozenset({"a", "an", "the", "is", "are", "of"})


def name_from_sentence(sentence: str) -> str:
    """A name for a known mistake: the first words of a sentence, as an identifier.

    "softmax runs over the queries" gives "softmax_runs_over_queries"; "" where the sentence has no
    letters of ASCII.
    """
    words = [
        word for word in _WORD.findall(sentence.lower()) if word not in _SMALL_WORDS
    ]
    name = "_".join(words[:_MOST_WORDS])
    return f"mistake_{name}" if name[:1].isdigit() else name


def mistake_text(question: str, name: str, hint: str, keeps: float, code: str) -> str:
    """The definition of a mistake whose answer is a student's."""
    lines = ["@mistake(", f"    {_literal(question)},", f"    hint={_literal(hint)},"]
    if keeps:
        lines.append(f"    keeps={keeps:g},")
    return (
        "\n".join(
            [*lines, f"    answer={code_literal(code)},", ")", f"def {name}(): ..."]
        )
        + "\n"
    )


def sample_text(question: str, name: str, mistake: str, code: str) -> str:
    """The definition of a sample that deserves the name of one mistake."""
    lines = [
        "@sample(",
        f"    {_literal(question)},",
        f"    deserves={_literal(mistake)},",
    ]
    return (
        "\n".join(
            [*lines, f"    answer={code_literal(code)},", ")", f"def {name}(): ..."]
        )
        + "\n"
    )


def add_definition(file_text: str, definition: str, decorator: str) -> str:
    """A file of known answers with one more definition at its end, and the import of its decorator
    where that is missing.
    """
    imported = re.search(
        rf"^from autograder\.suite import .*\b{decorator}\b", file_text, re.M
    )
    text = file_text if imported else _with_import(file_text, _IMPORT.format(decorator))
    return f"{text.rstrip()}\n\n\n{definition}"


def _with_import(text: str, line: str) -> str:
    """The text with an import below its docstring."""
    body = ast.parse(text).body
    has_docstring = bool(body) and isinstance(body[0], ast.Expr)
    after = body[0].end_lineno or 0 if has_docstring else 0
    lines = text.split("\n")
    rest = "\n".join(lines[after:]).lstrip("\n")
    gap = "\n" if rest.startswith(("from ", "import ")) else "\n\n\n"
    return "\n".join([*lines[:after], *[""] * has_docstring, line]) + gap + rest


def code_literal(code: str) -> str:
    """Code as a literal of Python's in triple quotes, line by line as it is."""
    text = code.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""\\\n{text}"""'


def _literal(text: str) -> str:
    """A short text as a literal, in double quotes where it has none."""
    return repr(text) if '"' in text or "\\" in text or "\n" in text else f'"{text}"'
