"""The table of what harder inputs are worth, in docs/suites.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.natural_order import natural_order
from autograder.basics.whole_files import name_file_in_errors, write_whole
from autograder.proof.harder_proof import HarderFigures
from autograder.proof.proof_report import markdown_table

_BEGIN, _END = "<!-- begin of harder inputs -->", "<!-- end of harder inputs -->"


def harder_row(figures: HarderFigures) -> dict[str, str]:
    """The row of one assignment."""
    share = figures.hidden_caught / figures.hidden if figures.hidden else 1.0
    return {
        "assignment": figures.assignment,
        "questions": f"{figures.questions} of {figures.all_questions}",
        "right answers tried": str(figures.right),
        "mistakes": str(figures.mistakes),
        "caught": str(figures.caught),
        "pass the visible check": str(figures.hidden),
        "of these caught": f"{figures.hidden_caught} ({share:.0%})",
    }


def write_harder_rows(path: Path, proven: Sequence[HarderFigures]) -> None:
    """Put the rows of assignments into the page's table; other rows stay."""
    with name_file_in_errors(path):
        text = path.read_text(encoding="utf-8")
    if _BEGIN not in text or _END not in text:
        raise KitError(
            f"{path}: put the lines {_BEGIN} and {_END} where the table should stand"
        )
    before, _, rest = text.partition(_BEGIN)
    table, _, after = rest.partition(_END)
    lines = [line for line in table.split("\n") if line.startswith("|")]
    cells = [line.strip("| ").split(" | ") for line in lines]
    rows = {
        row[0]: dict(
            zip(
                cells[0],
                row,
                strict=True,
            )
        )
        for row in cells[2:]
    }
    rows |= {figures.assignment: harder_row(figures) for figures in proven}
    written = markdown_table([rows[name] for name in sorted(rows, key=natural_order)])
    write_whole(path, f"{before}{_BEGIN}\n{written}\n{_END}{after}")
