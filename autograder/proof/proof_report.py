"""Proofs to read: a table for the terminal, tables for docs/suites.md, a page, and JSON for
programs.
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
from autograder.basics.natural_order import natural_order
from autograder.basics.whole_files import name_file_in_errors, write_whole
from autograder.outputs.pages import render
from autograder.proof.code_mutants import Variant
from autograder.proof.figures import QuestionFigures
from autograder.proof.mutants import killed_share
from autograder.proof.verify import Proof
from autograder.proof.whole_submissions import verdict_shares

NOT_TRIED = "–"
_QUESTION_HEADINGS = (
    "question",
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
)
TableRow = dict[str, str]
"""The cells of a table's row, by heading. The first cell is the assignment's name."""


def figures_row(proof: Proof) -> TableRow:
    """The figures of one assignment."""
    figures, mutants = proof.figures, proof.mutants
    mistakes = [mistake for question in figures for mistake in question.mistakes]
    kinds = [mistake.exception.kind for mistake in mistakes if mistake.exception]
    lost = [mistake.lost for mistake in mistakes]
    trivial = [share for question in figures for share in question.trivial.values()]
    equivalent = sum(mutant.fate == "equivalent" for mutant in mutants)
    return {
        "assignment": proof.assignment,
        "questions": str(len(figures)),
        "tests": str(sum(question.tests for question in figures)),
        "mistakes": str(len(mistakes)),
        "lost: median": _percent(statistics.median(lost) if lost else None),
        "most": _percent(max(lost, default=None)),
        "dear": str(kinds.count("dear")),
        "cheap": str(kinds.count("cheap")),
        "caught once": str(sum(len(question.caught_once) for question in figures)),
        "idle tests": str(sum(len(question.idle) for question in figures)),
        "alternates": str(sum(question.alternates for question in figures)),
        "mutants": str(len(mutants)) if mutants else NOT_TRIED,
        "killed": f"{killed_share(mutants):.1%}" if mutants else NOT_TRIED,
        "equivalent": str(equivalent) if mutants else NOT_TRIED,
        "best for nothing": _percent(max(trivial, default=None)),
    }


def diagnosis_row(proof: Proof) -> TableRow:
    """The worth of one assignment's diagnosis."""
    right = [sample for sample in proof.samples if sample.deserves is None]
    rightly, wrongly = verdict_shares(proof.samples)
    of_samples = {
        "samples": str(len(proof.samples) - len(right)),
        "named rightly": f"{rightly:.0%}",
        "wrongly": f"{wrongly:.0%}",
        "right answers": str(len(right)),
        "with a hint": str(sum(bool(sample.named) for sample in right)),
    }
    lone = proof.lone_mistakes
    of_mistakes = {
        "mistakes alone": str(len(lone)),
        "name themselves": str(sum(mistake.name in mistake.named for mistake in lone)),
        "cost elsewhere": str(sum(bool(mistake.elsewhere) for mistake in lone)),
        "hint elsewhere": str(sum(bool(mistake.hinted) for mistake in lone)),
    }
    return {
        "assignment": proof.assignment,
        **(of_samples if proof.samples else dict.fromkeys(of_samples, NOT_TRIED)),
        **(of_mistakes if lone else dict.fromkeys(of_mistakes, NOT_TRIED)),
    }


@dataclass(frozen=True, slots=True)
class FiguresTable:
    """A table of docs/suites.md, between two marks that name it."""

    name: str
    row: Callable[[Proof], TableRow]

    @property
    def begin(self) -> str:
        """The line above the table."""
        return f"<!-- begin of {self.name} -->"

    @property
    def end(self) -> str:
        """The line below the table."""
        return f"<!-- end of {self.name} -->"


FIGURES = FiguresTable("the figures", figures_row)
TABLES = (FIGURES, FiguresTable("diagnosis", diagnosis_row))


def markdown_table(rows: Sequence[TableRow]) -> str:
    """Rows under their headings as a table of Markdown, numbers to the right."""
    headings = list(rows[0]) if rows else []
    rules = ["---:" for _ in headings]
    rules[:1] = ["---"]
    lines = [headings, rules, *(row.values() for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def read_rows(
    text: str,
    table: FiguresTable = FIGURES,
) -> dict[str, TableRow]:
    """The rows of the table between its two marks in a page, by assignment.

    Raises:
        ValueError: there are no such marks.
    """
    text = text[text.index(table.begin) : text.index(table.end)]
    lines = [line for line in text.split("\n") if line.startswith("|")]
    cells = [line.strip("| ").split(" | ") for line in lines]
    rows = {}
    for name, *figures in cells[2:]:
        rows[name] = dict(zip(cells[0], [name, *figures], strict=True))
    return rows


def write_report(path: Path, proofs: Sequence[Proof]) -> None:
    """Write a page; where the name ends in .md, put the figures into the tables of that page."""
    if path.suffix == ".md":
        _write_figures(path, proofs)
    else:
        _write_page(path, proofs)


def _write_figures(path: Path, proofs: Sequence[Proof]) -> None:
    """Put the assignments' rows into the tables of the page at `path`; other rows and the text
    around the tables stay.

    Figures of an earlier proof stay where this one tried nothing. A missing page is made.

    Raises:
        KitError: the page has no place for a table; only a part of an assignment was proven.
    """
    for proof in proofs:
        if len(proof.figures) < len(proof.cells):
            raise KitError(
                f"{path}: a row is about a whole assignment, and of {proof.assignment} only a part "
                "was proven"
            )
    marks = [f"{table.begin}\n{table.end}" for table in TABLES]
    text = "\n\n".join(["# What the suites are worth", *marks]) + "\n"
    with name_file_in_errors(path):
        if path.exists():
            text = path.read_text(encoding="utf-8")
    for table in TABLES:
        if table.begin not in text or table.end not in text:
            raise KitError(
                f"{path}: put the lines {table.begin} and {table.end} where the table should stand"
            )
        rows = read_rows(text, table)
        for proof in proofs:
            old = rows.get(proof.assignment, {})
            rows[proof.assignment] = _update(old, table.row(proof))
        new_table = markdown_table(
            [rows[name] for name in sorted(rows, key=natural_order)]
        )
        head, _, _ = text.partition(table.begin)
        _, _, tail = text.partition(table.end)
        text = f"{head}{table.begin}\n{new_table}\n{table.end}{tail}"
    write_whole(path, text)


def _update(old: TableRow, new: TableRow) -> TableRow:
    """The new row, with the old figures where nothing was tried anew."""
    return {
        heading: old.get(heading, cell) if cell == NOT_TRIED else cell
        for heading, cell in new.items()
    }


def _write_page(path: Path, proofs: Sequence[Proof]) -> None:
    """Write the page with the cost of each mistake, surviving mutants, and tests that catch
    nothing.
    """

    def difference(proof: Proof, mutant: Variant) -> str:
        return describe_difference(proof.cells[mutant.question], mutant)

    page = render(
        "proof.html",
        proofs=proofs,
        rows=[figures_row(proof) for proof in proofs],
        difference=difference,
        percent=_percent,
        times=_times,
    )
    write_whole(path, page)


def describe_difference(cell: str, mutant: Variant) -> str:
    """The lines that a code mutant changes of the answer key's cell; "" for a wrapper's mutant."""
    if mutant.cell.startswith(cell.rstrip("\n")):
        return ""
    old, new = cell.splitlines(), mutant.cell.splitlines()
    lines = difflib.unified_diff(old, new, lineterm="", n=1)
    changed = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    return "\n".join(changed)


def as_json(proofs: Sequence[Proof]) -> str:
    """All figures as one JSON array; of mutants the name and the fate."""
    plain = [_as_plain_data(proof) for proof in proofs]
    return json.dumps(plain, indent=1, ensure_ascii=False)


def _as_plain_data(proof: Proof) -> dict[str, Any]:
    questions = []
    for question in proof.figures:
        mutants = [
            {
                "name": judged.mutant.name,
                "fate": judged.fate,
                "reason": judged.reason,
            }
            for judged in question.mutants
        ]
        questions.append(dataclasses.asdict(question) | {"mutants": mutants})
    return {
        "assignment": proof.assignment,
        "isolation": proof.isolation,
        "max_score": proof.max_score,
        "questions": questions,
        "problems": list(proof.problems),
        "samples": [
            dataclasses.asdict(sample) | {"verdict": sample.verdict}
            for sample in proof.samples
        ],
        "alone": [dataclasses.asdict(mistake) for mistake in proof.lone_mistakes],
    }


def question_table(figures: Iterable[QuestionFigures]) -> Any:
    """One assignment's questions as a rich table, for the terminal."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False)
    for heading in _QUESTION_HEADINGS:
        table.add_column(heading, justify="left" if heading == "question" else "right")
    for question in figures:
        lost = [mistake.lost for mistake in question.mistakes]
        table.add_row(
            question.name,
            f"{question.points:g}",
            str(question.tests),
            str(len(lost)),
            _percent(statistics.median(lost) if lost else None),
            _percent(max(lost, default=None)),
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
