"""Find the answers written in words: text cells, which people read and grade."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.intake.reading import NotebookCell
from autograder.intake.release import Release, ReleaseCell
from autograder.intake.text import Looked, plain
from autograder.model import CellOutcome

ALIKE = 0.5
"""The released cell holds the prompt and a line to replace: half of its lines may be gone."""


def match_written(
    cells: Sequence[NotebookCell], release: Release
) -> tuple[tuple[tuple[str, str], ...], list[CellOutcome]]:
    """The written answers as (grade_id, text) in the order of the release, and notices about missing ones."""
    answers: list[tuple[str, str]] = []
    notices: list[CellOutcome] = []
    for number, released in enumerate(release.cells):
        if released.role != "written":
            continue
        found = _claimed(cells, released) or _by_content(cells, released, release, number)
        if found is None:
            notices.append(CellOutcome(released.id, "missing", "the cell of this written answer was deleted"))
        else:
            answers.append((released.id, found.source))
    return tuple(answers), notices


def _claimed(cells: Sequence[NotebookCell], released: ReleaseCell) -> NotebookCell | None:
    """The last cell of that name that was written in, else the last of that name."""
    named = [c for c in cells if c.grade_id == released.id or (c.role, c.name) == ("written", released.name)]
    touched = [cell for cell in named if cell.source.strip() and plain(cell.source) != plain(released.source)]
    return next(reversed(touched or named), None)


def _by_content(
    cells: Sequence[NotebookCell], released: ReleaseCell, release: Release, number: int
) -> NotebookCell | None:
    """Where the metadata is lost: the text cell that keeps the prompt, or that follows the same cell as there."""
    free = {place for place, cell in enumerate(cells) if cell.kind == "markdown" and not (cell.grade_id or cell.role)}
    shares = [(released.look.share_kept_in(Looked(cells[place].source)), -place) for place in free]
    best, nearest = max(shares, default=(0.0, 0))
    if best >= ALIKE:
        return cells[-nearest]
    known = {cell.look.plain for cell in release.cells}
    before = release.cells[number - 1].look.plain if number else None
    for place, cell in enumerate(cells[1:], start=1):
        if place in free and plain(cells[place - 1].source) == before and plain(cell.source) not in known:
            return cell
    return None
