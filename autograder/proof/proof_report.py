"""What `verify` found, to be read: a table for the terminal, tables for docs/suites.md, a page,
JSON.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.basics.errors import KitError
from autograder.basics.whole_files import name_file_in_errors, write_whole
from autograder.outputs.pages import render
from autograder.proof.code_mutants import Mutant
from autograder.proof.diagnosed import shares
from autograder.proof.figures import QuestionFigures
from autograder.proof.mutants import killed_share
from autograder.proof.verify import Proof

NOT_TRIED = "–"
HEADINGS = (
    "assignment",
    "questions",
    "tests",
    "mistakes",
    "lost: median",
    "most",
    "dear",
    "cheap",
    "caught once",
    "idle tests",
    "alternates",
    "mutants",
    "killed",
    "equivalent",
    "best for nothing",
)
DIAGNOSIS = (
    "assignment",
    "samples",
    "named rightly",
    "wrongly",
    "right answers",
    "with a hint",
    "mistakes alone",
    "name themselves",
    "cost elsewhere",
    "hint elsewhere",
)


def row(proof: Proof) -> tuple[str, ...]:
    """One assignment's figures, under `HEADINGS`."""
    figures = proof.figures
    lost = [mistake.lost for question in figures for mistake in question.mistakes]
    empty = [share for question in figures for share in question.trivial.values()]
    return (
        proof.assignment,
        str(len(figures)),
        str(sum(question.tests for question in figures)),
        str(len(lost)),
        _percent(statistics.median(lost) if lost else None),
        _percent(max(lost, default=None)),
        str(sum(question.exceptions("dear") for question in figures)),
        str(sum(question.exceptions("cheap") for question in figures)),
        str(sum(len(question.caught_once) for question in figures)),
        str(sum(len(question.idle) for question in figures)),
        str(sum(question.alternates for question in figures)),
        str(len(proof.mutants)) if proof.mutants else NOT_TRIED,
        f"{killed_share(proof.mutants):.1%}" if proof.mutants else NOT_TRIED,
        str(sum(one.fate == "equivalent" for one in proof.mutants)) if proof.mutants else NOT_TRIED,
        _percent(max(empty, default=None)),
    )


def diagnosis_row(proof: Proof) -> tuple[str, ...]:
    """What one assignment's diagnosis is worth, under `DIAGNOSIS`."""
    wrong = [one for one in proof.told if one.deserves is not None]
    right = [one for one in proof.told if one.deserves is None]
    rightly, wrongly = shares(proof.told)
    told = (
        str(len(wrong)),
        f"{rightly:.0%}",
        f"{wrongly:.0%}",
        str(len(right)),
        str(sum(bool(r.named) for r in right)),
    )
    alone = proof.alone
    charged = (
        str(len(alone)),
        str(sum(one.name in one.named for one in alone)),
        str(sum(bool(one.elsewhere) for one in alone)),
        str(sum(bool(one.hinted) for one in alone)),
    )
    return (
        proof.assignment,
        *(told if proof.told else [NOT_TRIED] * len(told)),
        *(charged if alone else [NOT_TRIED] * len(charged)),
    )


@dataclass(frozen=True, slots=True)
class FiguresTable:
    """One table of docs/suites.md: its two marks, its headings, and what makes a row of a proof."""

    begin: str
    end: str
    headings: tuple[str, ...]
    row: Callable[[Proof], tuple[str, ...]]


FIGURES = FiguresTable(
    "<!-- begin of the figures -->", "<!-- end of the figures -->", HEADINGS, row
)
TABLES = (
    FIGURES,
    FiguresTable(
        "<!-- begin of diagnosis -->", "<!-- end of diagnosis -->", DIAGNOSIS, diagnosis_row
    ),
)


def markdown_table(rows: Iterable[Sequence[str]], headings: Sequence[str] = HEADINGS) -> str:
    """Rows under their headings as a table of Markdown, numbers to the right."""
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rows_of(text: str, table: FiguresTable = FIGURES) -> dict[str, tuple[str, ...]]:
    """The rows of the table between its two marks in a page, by assignment.

    Raises:
        ValueError: there are no such marks.
    """
    text = text[text.index(table.begin) : text.index(table.end)]
    lines = [line.strip("| ").split(" | ") for line in text.split("\n") if line.startswith("|")]
    return {line[0]: tuple(line) for line in lines[2:]}


def write_report(path: Path, proofs: Sequence[Proof]) -> None:
    """A page, or where the name ends in .md, the figures in the table of that page."""
    write = write_figures if path.suffix == ".md" else write_page
    write(path, proofs)


def write_figures(path: Path, proofs: Sequence[Proof]) -> None:
    """Put the assignments' rows into the tables of the page at `path`; other rows and the words
    around them stay.

    What was not tried keeps the figures that it has there. Where there is no page, one with both
    tables is made.

    Raises:
        KitError: the page has no place for a table; only a part of an assignment was proven.
    """
    if partly := [proof.assignment for proof in proofs if len(proof.figures) < len(proof.cells)]:
        raise KitError(
            f"{path}: a row is about a whole assignment, and of {partly[0]} only a part was proven"
        )
    with name_file_in_errors(path):
        text = path.read_text(encoding="utf-8") if path.exists() else _new_page()
    for table in TABLES:
        text = _with_rows(path, text, table, proofs)
    write_whole(path, text)


def _new_page() -> str:
    """A page of figures without rows, for a course that has none yet."""
    tables = "\n\n".join(
        f"{table.begin}\n{markdown_table((), table.headings)}\n{table.end}" for table in TABLES
    )
    return f"# What the suites are worth\n\n{tables}\n"


def _with_rows(path: Path, text: str, table: FiguresTable, proofs: Sequence[Proof]) -> str:
    if table.begin not in text or table.end not in text:
        raise KitError(
            f"{path}: put the lines {table.begin} and {table.end} where the table should stand"
        )
    rows = rows_of(text, table)
    for proof in proofs:
        old = rows.get(proof.assignment, table.row(proof))
        new = zip(table.row(proof), old, strict=True)
        rows[proof.assignment] = tuple(before if now == NOT_TRIED else now for now, before in new)
    before, after = text[: text.index(table.begin)], text[text.index(table.end) :]
    made = markdown_table((rows[name] for name in sorted(rows)), table.headings)
    return f"{before}{table.begin}\n{made}\n{after}"


def write_page(path: Path, proofs: Sequence[Proof]) -> None:
    """Write the page that names everything: what mistakes cost, which mutants survive, what catches
    nothing.
    """
    page = render(
        "proof.html",
        headings=HEADINGS,
        proofs=[(proof, row(proof)) for proof in proofs],
        difference=lambda proof, mutant: difference(proof.cells[mutant.question], mutant),
        percent=_percent,
        times=_times,
    )
    write_whole(path, page)


def difference(cell: str, mutant: Mutant) -> str:
    """What a code mutant changes of the answer key's cell; "" for one that is made by a wrapper."""
    if mutant.cell.startswith(cell.rstrip("\n")):
        return ""
    lines = difflib.unified_diff(cell.splitlines(), mutant.cell.splitlines(), lineterm="", n=1)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def as_json(proofs: Sequence[Proof]) -> str:
    """All figures as one JSON array; of mutants the name and the fate."""
    return json.dumps([_plain(proof) for proof in proofs], indent=1, ensure_ascii=False)


def _plain(proof: Proof) -> dict[str, Any]:
    questions = []
    for question in proof.figures:
        fields = {f.name: getattr(question, f.name) for f in dataclasses.fields(question)}
        fields["mistakes"] = [dataclasses.asdict(mistake) for mistake in question.mistakes]
        fields["mutants"] = [
            {"name": m.mutant.name, "fate": m.fate, "reason": m.reason} for m in question.mutants
        ]
        questions.append(fields)
    return {
        "assignment": proof.assignment,
        "isolation": proof.isolation,
        "max_score": proof.max_score,
        "questions": questions,
        "problems": list(proof.problems),
        "samples": [dataclasses.asdict(one) | {"verdict": one.verdict} for one in proof.told],
        "alone": [dataclasses.asdict(one) for one in proof.alone],
    }


def question_table(figures: Sequence[QuestionFigures]) -> Any:
    """One assignment's questions as a rich table, for the terminal."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("question")
    for heading in (
        "points",
        "tests",
        "mistakes",
        "lost",
        "most",
        "once",
        "idle",
        "killed",
        "for nothing",
        "margin",
    ):
        table.add_column(heading, justify="right")
    for question in figures:
        table.add_row(
            question.name,
            f"{question.points:g}",
            str(question.tests),
            str(len(question.mistakes)),
            _percent(question.median_lost),
            _percent(question.most_lost),
            str(len(question.caught_once)),
            str(len(question.idle)),
            f"{killed_share(question.mutants):.1%}" if question.mutants else NOT_TRIED,
            _percent(max(question.trivial.values(), default=None)),
            f"{_times(question.furthest_right)}…{_times(question.nearest_wrong)}",
        )
    return table


def _percent(share: float | None) -> str:
    return NOT_TRIED if share is None else f"{share:.0%}"


def _times(distance: float | None) -> str:
    return NOT_TRIED if distance is None else f"{distance:.2g}"
