"""What `verify` found, to be read: a table for the terminal and for docs/suites.md, a page, JSON."""

from __future__ import annotations

import dataclasses
import difflib
import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from autograder.errors import KitError
from autograder.outputs.pages import render
from autograder.proof.code_mutants import Mutant
from autograder.proof.figures import QuestionFigures
from autograder.proof.mutants import killed_share
from autograder.proof.verify import Proof
from autograder.whole_files import naming, write_whole

BEGIN, END = "<!-- begin of the figures -->", "<!-- end of the figures -->"
NOT_TRIED = "–"
HEADINGS = (
    "assignment", "questions", "tests", "mistakes", "lost: median", "most", "dear", "cheap", "caught once",
    "idle tests", "alternates", "mutants", "killed", "equivalent", "best for nothing",
)  # fmt: skip


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


def markdown_table(rows: Iterable[Sequence[str]]) -> str:
    """Rows under `HEADINGS` as a table of Markdown, numbers to the right."""
    lines = [HEADINGS, ["---", *["---:"] * (len(HEADINGS) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rows_of(text: str) -> dict[str, tuple[str, ...]]:
    """The rows of the table between the two marks of a page, by assignment.

    Raises:
        ValueError: there are no such marks.
    """
    table = text[text.index(BEGIN) : text.index(END)]
    lines = [line.strip("| ").split(" | ") for line in table.split("\n") if line.startswith("|")]
    return {line[0]: tuple(line) for line in lines[2:]}


def write_report(path: Path, proofs: Sequence[Proof]) -> None:
    """A page, or where the name ends in .md, the figures in the table of that page."""
    write = write_figures if path.suffix == ".md" else write_page
    write(path, proofs)


def write_figures(path: Path, proofs: Sequence[Proof]) -> None:
    """Put the assignments' rows into the table of the page at `path`; other rows and the words around it stay.

    Where no mutants were tried, the figures of mutants stay too.

    Raises:
        KitError: the page is not there, or has no place for the table; only a part of an assignment was proven.
    """
    if partly := [proof.assignment for proof in proofs if len(proof.figures) < len(proof.cells)]:
        raise KitError(f"{path}: a row is about a whole assignment, and of {partly[0]} only a part was proven")
    with naming(path):
        text = path.read_text(encoding="utf-8") if path.exists() else ""
    if BEGIN not in text or END not in text:
        raise KitError(f"{path}: put the lines {BEGIN} and {END} where the table should stand")
    rows = rows_of(text)
    for proof in proofs:
        old = rows.get(proof.assignment, row(proof))
        new = zip(row(proof), old, strict=True)
        rows[proof.assignment] = tuple(before if now == NOT_TRIED else now for now, before in new)
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    table = markdown_table(rows[name] for name in sorted(rows))
    write_whole(path, f"{before}{BEGIN}\n{table}\n{after}")


def write_page(path: Path, proofs: Sequence[Proof]) -> None:
    """Write the page that names everything: what mistakes cost, which mutants survive, what catches nothing."""
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
        fields["mutants"] = [{"name": m.mutant.name, "fate": m.fate, "reason": m.reason} for m in question.mutants]
        questions.append(fields)
    return {
        "assignment": proof.assignment, "isolation": proof.isolation, "max_score": proof.max_score,
        "questions": questions, "problems": list(proof.problems),
    }  # fmt: skip


def question_table(figures: Sequence[QuestionFigures]) -> Any:
    """One assignment's questions as a rich table, for the terminal."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("question")
    for heading in ("points", "tests", "mistakes", "lost", "most", "once", "idle", "killed", "for nothing", "margin"):
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
