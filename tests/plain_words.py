"""Whether a stranger can read names and sentences: `make lint` calls this.

    python tests/plain_words.py [--show N] [--count] PATH...

Three figures, measured on codebases that the field holds up (nbclient, pluggy, httpx, attrs, rich):

- names: the share of variables and parameters called by a pronoun or a participle (`one`, `found`,
  `its`). There 0 to 1.3 %.
- sentences: the share of sentences in docstrings, comments and Markdown pages of which a quarter of
  the words are pronouns. There 0 to 1.8 %.
- tokens: how many tokens of code stand on a line. There 5 to 8.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MOST_NAMES = 0.02
MOST_SENTENCES = 0.05
MOST_TOKENS = 7.5
"""Where a change is refused, a name for a step of its longest expressions is the remedy."""

VAGUE_NAMES = frozenset(
    [
        "one",
        "its",
        "own",
        "other",
        "others",
        "theirs",
        "mine",
        "there",
        "here",
        "so",
        "said",
        "told",
        "given",
        "found",
        "wanted",
        "asked",
        "made",
        "kept",
        "known",
        "left",
        "before",
        "after",
        "this",
        "that",
        "each",
        "some",
        "rest",
        "what",
        "who",
        "why",
        "how",
        "whose",
        "ours",
        "both",
        "again",
        "aside",
        "beside",
        "far",
        "off",
        "at",
        "of",
    ]
)
PRONOUNS = frozenset(
    [
        "it",
        "its",
        "that",
        "this",
        "these",
        "those",
        "what",
        "which",
        "who",
        "whose",
        "one",
        "ones",
        "other",
        "others",
        "another",
        "them",
        "they",
        "there",
        "here",
        "whatever",
        "rest",
        "both",
        "same",
        "own",
    ]
)
SHORTEST_SENTENCE = 8
"""Words. In a shorter sentence one pronoun is a quarter."""
PRONOUN_SHARE = 0.25
NO_CODE = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    }
)


@dataclass
class Figures:
    """What was counted, and where the words stand that count against a file."""

    names: int = 0
    vague_names: Counter[str] = field(default_factory=Counter)
    sentences: int = 0
    vague_sentences: list[str] = field(default_factory=list)
    tokens: int = 0
    lines: int = 0

    def read_text(self, text: str, place: str) -> None:
        """Count the sentences of a text."""
        text = re.sub(r"`[^`]*`", "X", text)
        for sentence in re.split(r"(?<=[.!?;:])\s+", re.sub(r"\s+", " ", text)):
            words = re.findall(r"[A-Za-z']+", sentence)
            if len(words) < SHORTEST_SENTENCE:
                continue
            self.sentences += 1
            pronouns = sum(word.lower() in PRONOUNS for word in words)
            if pronouns / len(words) >= PRONOUN_SHARE:
                self.vague_sentences.append(f"{place}: {sentence}")

    def read_python(self, path: Path) -> None:
        """Count names, sentences and tokens of a Python file."""
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        for name in bound_names(tree):
            self.names += 1
            if name.strip("_") in VAGUE_NAMES:
                self.vague_names[name] += 1
        docstrings = set()
        for node in ast.walk(tree):
            if isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ):
                text = ast.get_docstring(node)
                if text:
                    self.read_text(text, f"{path}:{getattr(node, 'lineno', 1)}")
                    docstrings.add(node.body[0].lineno)
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                self.read_text(token.string[1:], f"{path}:{token.start[0]}")
            if token.type in NO_CODE or token.start[0] in docstrings:
                continue
            self.tokens += 1
            lines.update(range(token.start[0], token.end[0] + 1))
        self.lines += len(lines)

    def read_markdown(self, path: Path) -> None:
        """Count the sentences of a Markdown page: paragraphs and items, without tables and code."""
        source = re.sub(
            r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M
        )
        source = "\n".join(
            line for line in source.splitlines() if not line.startswith(("|", "#"))
        )
        for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", source):
            self.read_text(paragraph, str(path))

    def shortcomings(self) -> Iterator[str]:
        """A line for each figure that is above its limit."""
        names = sum(self.vague_names.values()) / max(self.names, 1)
        sentences = len(self.vague_sentences) / max(self.sentences, 1)
        tokens = self.tokens / max(self.lines, 1)
        if names > MOST_NAMES:
            yield f"{names:.1%} of {self.names} names are vague: at most {MOST_NAMES:.0%}"
        if sentences > MOST_SENTENCES:
            yield (
                f"{sentences:.1%} of {self.sentences} sentences lean on pronouns: "
                f"at most {MOST_SENTENCES:.0%}"
            )
        if tokens > MOST_TOKENS:
            yield f"{tokens:.2f} tokens stand on a line of code: at most {MOST_TOKENS}"


def bound_names(tree: ast.Module) -> Iterator[str]:
    """Every variable that is assigned, and every parameter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg) and node.arg not in ("self", "cls"):
            yield node.arg


def files_below(paths: list[Path]) -> Iterator[Path]:
    """The Python files and Markdown pages below some folders; a path of a file stands for itself."""
    for path in paths:
        if path.is_file():
            yield path
        else:
            yield from sorted([*path.rglob("*.py"), *path.rglob("*.md")])


def main() -> int:
    """Print the figures of some folders and files; 1 where one of them is above its limit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--show", type=int, default=0, help="how many places to show")
    parser.add_argument(
        "--count", action="store_true", help="print how much code there is"
    )
    options = parser.parse_args()
    figures = Figures()
    for path in files_below(options.paths):
        if path.suffix == ".py":
            figures.read_python(path)
        else:
            figures.read_markdown(path)
    for place in figures.vague_sentences[: options.show]:
        print(place)
    if options.show:
        print(figures.vague_names.most_common(options.show))
    if options.count:
        print(f"{figures.tokens} tokens on {figures.lines} lines of code")
    shortcomings = list(figures.shortcomings())
    print(
        "\n".join(shortcomings)
        or "names, sentences and lines can be read by a stranger"
    )
    return 1 if shortcomings else 0


if __name__ == "__main__":
    sys.exit(main())
