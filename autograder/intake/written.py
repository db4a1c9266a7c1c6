"""Find the answers written in words, which people read and grade, wherever in the notebook a
student wrote them.

In the cell of the prompt, by its metadata or else by its content and place; in cells of their own
below it. Where the prompt was left as released, everything that the student wrote anywhere in the
notebook goes to a person with it: an answer is blank only where there is no such text at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from autograder.basics.definitions import defined_names
from autograder.intake.cell_text import CellText, squeeze
from autograder.intake.own_text import (
    LONG,
    OwnText,
    find_own_files,
    find_own_text,
    has_words_in_a_row,
    load_staff_text,
)
from autograder.intake.reading import NotebookCell
from autograder.intake.released_notebook import Release, ReleaseCell
from autograder.records.submission import Answer, CellOutcome

ALIKE = 0.5
"""The released cell holds the prompt and a line to replace: half of its lines may be gone."""

ELSEWHERE = (
    "*The place for this answer was left as released. What the student wrote elsewhere in "
    "the notebook:*"
)
"""Stands between a blank prompt and the text that may be its answer."""
_HIDDEN = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
"""What a notebook does not show of a text cell."""


@dataclass(frozen=True, slots=True)
class WrittenMatch:
    """The written answers, where in the notebook they stand (place → grade_id), and what to tell
    about missing ones.
    """

    answers: tuple[Answer, ...]
    places: Mapping[int, str]
    notices: tuple[CellOutcome, ...]


def claims_written(cell: NotebookCell, release: Release) -> bool:
    """Whether the metadata says that it is a written answer, whatever kind of cell it is now."""
    return any(_names(cell, released) for released in release.cells if released.role == "written")


def match_written(
    cells: Sequence[NotebookCell], release: Release, code: Mapping[int, str]
) -> WrittenMatch:
    """Find every written answer.

    Args:
        code: the released code cells that were found: their places in the notebook, and which they
            are.
    """
    return _Search(cells, release, code).run()


class _Search:
    def __init__(
        self, cells: Sequence[NotebookCell], release: Release, code: Mapping[int, str]
    ) -> None:
        self.cells = cells
        self.release = release
        self.order = {cell.id: number for number, cell in enumerate(release.cells)}
        self.lines = [CellText(cell.source).squeezed_lines for cell in cells]
        self.anchors = dict(code)
        self.places: dict[int, str] = {}

    def run(self) -> WrittenMatch:
        written = [released for released in self.release.cells if released.role == "written"]
        # first by name, so that no cell of one answer is taken for another's
        for released in written:
            if (place := self._named(released)) is not None:
                self.anchors[place] = self.places[place] = released.id
        self._anchor_texts()
        answers, notices = [], []
        for released in written:
            answer = self._answer(released)
            if answer is not None:
                answers.append(answer)
            if released.id not in self.places.values():
                notices.append(
                    CellOutcome(
                        released.id, "missing", "the cell of this written answer was deleted"
                    )
                )
        return WrittenMatch(tuple(answers), self.places, tuple(notices))

    def _anchor_texts(self) -> None:
        """Text cells of the release, edited or not: what stands between them belongs to one place
        in the release.
        """
        free = [
            place
            for place, cell in enumerate(self.cells)
            if cell.kind != "code" and place not in self.anchors
        ]
        texts = [released for released in self.release.cells if released.role == "text"]
        for least in (1.0, ALIKE):
            for released in texts:
                wanted = released.text.squeezed_lines
                if released.id in self.anchors.values() or not wanted:
                    continue
                found = next((p for p in free if self._keeps(p, wanted, least)), None)
                if found is not None:
                    self.anchors[found] = released.id
                    free.remove(found)

    def _keeps(self, place: int, wanted: frozenset[str], least: float) -> bool:
        """Whether so much of these lines stands in the cell; all of them, and no other, for 1."""
        lines = self.lines[place]
        return lines == wanted if least == 1.0 else len(wanted & lines) >= least * len(wanted)

    def _answer(self, released: ReleaseCell) -> Answer | None:
        place = next((place for place, id_ in self.places.items() if id_ == released.id), None)
        if place is None:
            place = self._by_content(released)
        if place is not None:
            self.anchors[place] = self.places[place] = released.id
            mine = [place, *self._below(place)]
        else:
            mine = self._between(released)
        self.places.update(dict.fromkeys(mine, released.id))
        parts = [_shown(self.cells[one], released) for one in mine]
        elsewhere: list[OwnText] = []
        if not any(self._adds(one, released) for one in mine):
            if not self._own_texts:
                return Answer(released.id, "\n\n".join(parts), blank=True) if mine else None
            elsewhere = self._nearest_first(place)
            parts += [ELSEWHERE, *(self._quoted(text, place) for text in elsewhere)]
        text = "\n\n".join(part for part in parts if part.strip())
        return Answer(released.id, text, elsewhere=tuple(text.place for text in elsewhere))

    def _named(self, released: ReleaseCell) -> int | None:
        """The last cell of that name that was written in, else the last of that name."""
        named = [place for place, cell in enumerate(self.cells) if _names(cell, released)]
        touched = [place for place in named if self._adds(place, released)]
        return next(reversed(touched or named), None)

    def _by_content(self, released: ReleaseCell) -> int | None:
        """The text cell that keeps the prompt."""
        wanted = released.text.squeezed_lines
        free = [
            place
            for place, cell in enumerate(self.cells)
            if self._is_open(place) and cell.kind != "code"
        ]
        shares = (
            [(len(wanted & self.lines[place]) / len(wanted), -place) for place in free]
            if wanted
            else []
        )
        best, nearest = max(shares, default=(0.0, 0))
        return -nearest if best >= ALIKE else None

    def _is_open(self, place: int) -> bool:
        """No cell that has been found already, or that says what else it is."""
        cell = self.cells[place]
        if place in self.anchors or place in self.places or cell.of_the_tool:
            return False
        return cell.grade_id not in self.order and cell.role in ("", "text")

    def _is_own(self, place: int) -> bool:
        """A cell with words of the student's own, and not a piece of the release that an editor has
        split off.
        """
        cell = self.cells[place]
        if not self._is_open(place) or (cell.kind == "code" and not _is_prose(cell.source)):
            return False
        text = squeeze(cell.source)
        piece = len(text) >= LONG and text in self.release.squeezed
        return self._has_files(cell) or not (
            piece or self.lines[place] <= self.release.squeezed_lines
        )

    def _adds(self, place: int, released: ReleaseCell) -> bool:
        """Whether something stands in the cell that the released one does not say. An editor may
        break its lines anew.
        """
        cell = self.cells[place]
        text, whole = squeeze(cell.source), released.text.squeezed
        broken_anew = 2 * len(text) >= len(whole) and text in whole
        return self._has_files(cell) or not (
            broken_anew or self.lines[place] <= released.text.squeezed_lines
        )

    def _has_files(self, cell: NotebookCell) -> bool:
        """Whether the student attached something to the cell."""
        return bool(cell.attachments or cell.other_files) and bool(
            find_own_files(cell, load_staff_text(self.release))
        )

    def _below(self, place: int) -> list[int]:
        """The student's own cells under the answer, as far as the next cell that everybody has."""
        end = next(
            (other for other in range(place + 1, len(self.cells)) if other in self.anchors),
            len(self.cells),
        )
        return [other for other in range(place + 1, end) if self._is_own(other)]

    def _between(self, released: ReleaseCell) -> list[int]:
        """Where neither name nor prompt is left: the student's own cells between the neighbours in
        the release.
        """
        number = self.order[released.id]
        before = [place for place, id_ in self.anchors.items() if self.order[id_] < number]
        after = [place for place, id_ in self.anchors.items() if self.order[id_] > number]
        start = max(before, default=-1) + 1
        end = min((place for place in after if place >= start), default=len(self.cells))
        return [place for place in range(start, end) if self._is_own(place)]

    @cached_property
    def _own_texts(self) -> list[OwnText]:
        """Everything that the student wrote in the notebook, cell by cell."""
        staff = load_staff_text(self.release)
        texts = [
            find_own_text(place, cell, staff, is_released=place in self.anchors)
            for place, cell in enumerate(self.cells)
        ]
        return [text for text in texts if text.lines or text.files]

    def _nearest_first(self, place: int | None) -> list[OwnText]:
        """The student's texts, those beside the prompt first; in the notebook's order where the
        prompt is gone.
        """
        if place is None:
            return self._own_texts
        return sorted(self._own_texts, key=lambda text: abs(text.place - place))

    def _quoted(self, text: OwnText, prompt: int | None) -> str:
        """A text for a person to read, letter by letter, with the place where it stands."""
        where = f"Cell {text.place + 1}"
        if prompt is not None and abs(text.place - prompt) == 1:
            where += (
                ", right above the prompt" if text.place < prompt else ", right below the prompt"
            )
        lines = [
            *text.lines,
            *(f"[attached file: {' '.join(name.split())}]" for name in text.files),
        ]
        return f"{where}:\n\n{_fenced(lines)}"


def _names(cell: NotebookCell, released: ReleaseCell) -> bool:
    return cell.grade_id == released.id or (cell.role, cell.name) == ("written", released.name)


def _shown(cell: NotebookCell, released: ReleaseCell) -> str:
    """A cell of an answer for a person to read, with the comments that a notebook would not
    show.
    """
    if cell.kind == "code":
        return f"```\n{cell.source}\n```"
    hidden = [line for text in _HIDDEN.findall(cell.source) for line in text.split("\n")]
    hidden = [
        line for line in hidden if squeeze(line) and squeeze(line) not in released.text.squeezed
    ]
    return f"{cell.source}\n\nHidden in this text:\n\n{_fenced(hidden)}" if hidden else cell.source


def _fenced(lines: Sequence[str]) -> str:
    """The lines letter by letter: a fence longer than any that stands in them."""
    runs = [len(run) for line in lines for run in re.findall(r"`+", line)]
    fence = "`" * max([2, *runs]) + "`"
    return "\n".join([f"{fence}text", *lines, fence])


def _is_prose(source: str) -> bool:
    """Sentences in a code cell: most of its lines have words in a row, as code has not."""
    lines = [line for line in source.split("\n") if line.strip()]
    return not defined_names(source) and 2 * sum(map(has_words_in_a_row, lines)) > len(lines)
