"""The table that lies beside `check.py`: an assignment's notebook as it was given out, and what it
takes to check a student's notebook against it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.basics.definitions import defined_names
from autograder.basics.errors import UnreadableSubmission
from autograder.intake.cell_matching import find_answer_cell
from autograder.intake.cell_text import describe_cell
from autograder.intake.notebook import match_notebook
from autograder.intake.reading import Notebook, parse_notebook
from autograder.intake.released_notebook import Release, ReleaseCell, make_release
from autograder.records.submission import Cell, Submission

TABLE_SUFFIX = ".cells.json"
"""The end of a table's file name."""


@dataclass(frozen=True)
class ReleaseTable:
    """An assignment as `check.py` knows it.

    Attributes:
        release: the notebook as it was given out.
        only_in_checks: names that only a check or a demo defines, each with that cell, in words.
        limits: the course's limits on one submission, by their names in course.toml.
    """

    release: Release
    only_in_checks: Mapping[str, str]
    limits: Mapping[str, Any]


@dataclass(frozen=True)
class MatchedNotebook:
    """A student's notebook, read and matched to the release of its assignment as grading does."""

    table: ReleaseTable
    submission: Submission

    def describe_place(self, number: float) -> str:
        """A cell of the student's file in words; `number` is its place, from 0."""
        cell = self.submission.handed_in[int(number)]
        return describe_cell(int(number), cell.source)

    def answer_cell(self, question: str) -> Cell | None:
        """The last cell that defines a question's function, whose definition counts; without one,
        the question's cell.
        """
        cells = self.submission.cells
        defining = [cell for cell in cells if question in defined_names(cell.source)]
        return defining[-1] if defining else find_answer_cell(self.submission, question)

    def answer_names(self, question: ReleaseCell) -> frozenset[str]:
        """The names under which tests call a question's answer."""
        functions = self.table.release.functions[question.id]
        return frozenset({question.name}) & functions or functions


def load_tables(folders: Iterable[Path]) -> list[ReleaseTable]:
    """Every table that lies in these folders."""
    files: dict[str, Path] = {}
    for folder in folders:
        files |= {file.name: file for file in folder.glob(f"*{TABLE_SUFFIX}")}
    tables = []
    for file in files.values():
        # other programs may have files of such a name
        with contextlib.suppress(ValueError, KeyError, TypeError, UnreadableSubmission):
            raw = json.loads(file.read_text(encoding="utf-8"))
            release_bytes = json.dumps(raw["release"]).encode()
            notebook = parse_notebook(release_bytes, file.name)
            companions = raw.get("companions")
            release = make_release(
                notebook.cells, str(raw["assignment"]), companions=companions
            )
            tables.append(ReleaseTable(release, raw["only_in_checks"], raw["limits"]))
    return tables


def match_to_tables(
    tables: Sequence[ReleaseTable], notebook: Notebook, path: Path
) -> MatchedNotebook:
    """Match a notebook to its assignment: that of the file's name, else the one with which most
    cells match.

    Raises:
        UnreadableSubmission: the notebook is of no assignment that has a table here.
    """
    matches = []
    for table in sorted(
        tables, key=lambda table: table.release.assignment != path.stem
    ):
        try:
            submission = match_notebook(notebook, table.release, "", path)
        except UnreadableSubmission as problem:
            refusal = problem
            continue
        matches.append(MatchedNotebook(table, submission))
        if table.release.assignment == path.stem:
            break
    if not matches:
        raise refusal
    return max(matches, key=_count_matching_cells)


def _count_matching_cells(matched: MatchedNotebook) -> int:
    return sum(bool(cell.id) for cell in matched.submission.handed_in)
