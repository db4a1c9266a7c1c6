"""Find the answers written in words, which people read and grade, wherever in the notebook a
student wrote them.

An answer stands in the cell of the prompt, found by metadata or else by content and place, and in
the student's own cells below the prompt. Where the prompt was left as released, a person gets all
that the student wrote anywhere in the notebook: an answer is blank only where there is no such text
at all.
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
    StaffText,
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
"""Comments in a text cell, which a notebook does not show."""


@dataclass(frozen=True, slots=True)
class WrittenMatch:
    """The written answers of a notebook.

    Attributes:
        answers: the answers, in the order of the release.
        places: the grade_id of the answer in each cell that holds one, by the cell's place.
        notices: messages about missing answers.
    """

    answers: tuple[Answer, ...]
    places: Mapping[int, str]
    notices: tuple[CellOutcome, ...]


def claims_written(cell: NotebookCell, release: Release) -> bool:
    """Whether the metadata names a written answer, whatever kind of cell it is now."""
    return any(
        _is_named(cell, released)
        for released in release.cells
        if released.role == "written"
    )


def match_written(
    cells: Sequence[NotebookCell],
    release: Release,
    code: Mapping[int, str],
) -> WrittenMatch:
    """Find every written answer.

    Args:
        code: the ids of the released code cells that were found, by their place in the notebook.
    """
    return _AnswerSearch(cells, release, code).run()


class _AnswerSearch:
    """The search for written answers in one notebook.

    Attributes:
        anchors: cells that are tied to a released cell: place → the released cell's id.
        places: cells that hold a written answer: place → the answer's id.
    """

    def __init__(
        self,
        cells: Sequence[NotebookCell],
        release: Release,
        code: Mapping[int, str],
    ) -> None:
        self.cells = cells
        self.release = release
        self.order = {cell.id: number for number, cell in enumerate(release.cells)}
        self.lines = [CellText(cell.source).squeezed_lines for cell in cells]
        self.anchors = dict(code)
        self.places: dict[int, str] = {}

    def run(self) -> WrittenMatch:
        written = [
            released for released in self.release.cells if released.role == "written"
        ]
        # first by name, so that no cell of one answer is taken for another's
        for released in written:
            place = self._find_named(released)
            if place is not None:
                self._tie(place, released)
        self._anchor_texts()
        answers = []
        notices = []
        for released in written:
            answer = self._find_answer(released)
            if answer is not None:
                answers.append(answer)
            if released.id not in self.places.values():
                message = "the cell of this written answer was deleted"
                notices.append(CellOutcome(released.id, "missing", message))
        return WrittenMatch(
            tuple(answers),
            self.places,
            tuple(notices),
        )

    def _tie(self, place: int, released: ReleaseCell) -> None:
        self.anchors[place] = released.id
        self.places[place] = released.id

    def _anchor_texts(self) -> None:
        """Anchor the text cells of the release, edited or not: cells between two anchors belong to
        one place in the release.
        """
        texts = [cell for cell in self.release.cells if cell.role == "text"]
        for least in (1.0, ALIKE):
            for released in texts:
                lines = released.text.squeezed_lines
                if released.id in self.anchors.values() or not lines:
                    continue
                for place, cell in enumerate(self.cells):
                    is_free = cell.kind != "code" and place not in self.anchors
                    if is_free and self._keeps_lines(place, lines, least):
                        self.anchors[place] = released.id
                        break

    def _keeps_lines(
        self,
        place: int,
        lines: frozenset[str],
        least: float,
    ) -> bool:
        """Whether a share of the lines stands in a cell; for 1.0, all lines and no other."""
        if least == 1.0:
            return self.lines[place] == lines
        return len(lines & self.lines[place]) >= least * len(lines)

    def _find_answer(self, released: ReleaseCell) -> Answer | None:
        named = [place for place, id_ in self.places.items() if id_ == released.id]
        prompt = named[0] if named else self._find_by_content(released)
        if prompt is not None:
            self._tie(prompt, released)
            places = [prompt, *self._own_cells_below(prompt)]
        else:
            places = self._own_cells_between(released)
        self.places.update(dict.fromkeys(places, released.id))
        parts = [_quote_answer(self.cells[place], released) for place in places]
        own_texts: list[OwnText] = []
        if not any(self._adds_text(place, released) for place in places):
            if not self._own_texts:
                return (
                    Answer(
                        released.id,
                        "\n\n".join(parts),
                        blank=True,
                    )
                    if places
                    else None
                )
            own_texts = self._own_texts_nearest_first(prompt)
            parts.append(ELSEWHERE)
            parts += [_quote_own_text(text, prompt) for text in own_texts]
        return Answer(
            released.id,
            "\n\n".join(part for part in parts if part.strip()),
            elsewhere=tuple(text.place for text in own_texts),
        )

    def _find_named(self, released: ReleaseCell) -> int | None:
        """The last cell of that name with text of the student's, else the last of that name."""
        named = [
            place for place, cell in enumerate(self.cells) if _is_named(cell, released)
        ]
        edited = [place for place in named if self._adds_text(place, released)]
        return max(edited or named, default=None)

    def _find_by_content(self, released: ReleaseCell) -> int | None:
        """The text cell that keeps most of the prompt."""
        prompt = released.text.squeezed_lines
        open_texts = [
            place
            for place, cell in enumerate(self.cells)
            if cell.kind != "code" and self._is_open(place)
        ]
        if not prompt or not open_texts:
            return None
        place = max(open_texts, key=lambda place: len(prompt & self.lines[place]))
        return place if self._keeps_lines(place, prompt, ALIKE) else None

    def _is_open(self, place: int) -> bool:
        """Whether a cell is still to be recognised, and its metadata name no other purpose."""
        cell = self.cells[place]
        if place in self.anchors or place in self.places or cell.of_the_tool:
            return False
        return cell.grade_id not in self.order and cell.role in ("", "text")

    def _is_own(self, place: int) -> bool:
        """Whether a cell has words of the student's own, and is no piece of the release that an
        editor has split off.
        """
        cell = self.cells[place]
        if not self._is_open(place) or (
            cell.kind == "code" and not _is_prose(cell.source)
        ):
            return False
        text = squeeze(cell.source)
        is_piece = len(text) >= LONG and text in self.release.squeezed
        is_released = is_piece or self.lines[place] <= self.release.squeezed_lines
        return self._has_files(cell) or not is_released

    def _adds_text(self, place: int, released: ReleaseCell) -> bool:
        """Whether a cell says more than the released cell, wherever an editor breaks the lines."""
        cell = self.cells[place]
        text = squeeze(cell.source)
        released_text = released.text.squeezed
        is_rewrapped = 2 * len(text) >= len(released_text) and text in released_text
        is_released = is_rewrapped or self.lines[place] <= released.text.squeezed_lines
        return self._has_files(cell) or not is_released

    def _has_files(self, cell: NotebookCell) -> bool:
        """Whether the student attached something to the cell."""
        if not (cell.attachments or cell.other_files):
            return False
        return bool(find_own_files(cell, self._staff_text))

    @cached_property
    def _staff_text(self) -> StaffText:
        return load_staff_text(self.release)

    def _own_cells_below(self, place: int) -> list[int]:
        """The student's own cells under the answer, as far as the next cell that everybody has."""
        anchors = [anchor for anchor in self.anchors if anchor > place]
        end = min(anchors, default=len(self.cells))
        return [below for below in range(place + 1, end) if self._is_own(below)]

    def _own_cells_between(self, released: ReleaseCell) -> list[int]:
        """The student's own cells between the release's neighbours of an answer of which neither
        name nor prompt is left.
        """
        number = self.order[released.id]
        earlier = [
            place for place, id_ in self.anchors.items() if self.order[id_] < number
        ]
        later = [
            place for place, id_ in self.anchors.items() if self.order[id_] > number
        ]
        start = max(earlier, default=-1) + 1
        end = min((place for place in later if place >= start), default=len(self.cells))
        return [place for place in range(start, end) if self._is_own(place)]

    @cached_property
    def _own_texts(self) -> list[OwnText]:
        """Everything that the student wrote in the notebook, cell by cell."""
        texts = []
        for place, cell in enumerate(self.cells):
            is_released = place in self.anchors
            texts.append(
                find_own_text(
                    place,
                    cell,
                    self._staff_text,
                    is_released=is_released,
                )
            )
        return [text for text in texts if text.lines or text.files]

    def _own_texts_nearest_first(self, prompt: int | None) -> list[OwnText]:
        """The student's texts, nearest to the prompt first; in the notebook's order where the
        prompt is gone.
        """
        if prompt is None:
            return self._own_texts
        return sorted(self._own_texts, key=lambda text: abs(text.place - prompt))


def _is_named(cell: NotebookCell, released: ReleaseCell) -> bool:
    return cell.grade_id == released.id or (cell.role, cell.name) == (
        "written",
        released.name,
    )


def _quote_answer(cell: NotebookCell, released: ReleaseCell) -> str:
    """A cell of an answer for a person to read, with the comments that a notebook would not
    show.
    """
    if cell.kind == "code":
        return f"```\n{cell.source}\n```"
    hidden = []
    for line in "\n".join(_HIDDEN.findall(cell.source)).split("\n"):
        squeezed = squeeze(line)
        if squeezed and squeezed not in released.text.squeezed:
            hidden.append(line)
    if not hidden:
        return cell.source
    return f"{cell.source}\n\nHidden in this text:\n\n{_fence(hidden)}"


def _quote_own_text(text: OwnText, prompt: int | None) -> str:
    """A text for a person to read, letter by letter, with the place where it stands."""
    heading = f"Cell {text.place + 1}"
    if prompt == text.place + 1:
        heading += ", right above the prompt"
    elif prompt == text.place - 1:
        heading += ", right below the prompt"
    files = [f"[attached file: {' '.join(name.split())}]" for name in text.files]
    return f"{heading}:\n\n{_fence([*text.lines, *files])}"


def _fence(lines: Sequence[str]) -> str:
    """The lines in a fence longer than any in them, so that they are shown letter by letter."""
    runs = re.findall(r"`+", "\n".join(lines))
    fence = "`" * max([2, *map(len, runs)]) + "`"
    return "\n".join([f"{fence}text", *lines, fence])


def _is_prose(source: str) -> bool:
    """Whether a code cell holds sentences: most of its lines have words in a row, unlike code."""
    if defined_names(source):
        return False
    lines = [line for line in source.split("\n") if line.strip()]
    return 2 * sum(map(has_words_in_a_row, lines)) > len(lines)
