"""Match the cells of a notebook to the release.

By nbgrader's grade_id and the kit's own metadata where they are there; by content and position
where an editor dropped them. Given cells run as released, question cells and the student's own
cells as handed in, in the student's order. Checks and demos do not run. Whatever was repaired is
said in words for the student.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from autograder.basics.definitions import defined_names
from autograder.basics.errors import UnreadableSubmission
from autograder.intake.cell_text import CellText, extract_additions
from autograder.intake.reading import NotebookCell
from autograder.intake.released_notebook import Release, ReleaseCell
from autograder.intake.written import WrittenMatch, claims_written, match_written
from autograder.records.submission import (
    Answer,
    Cell,
    CellOutcome,
    CellState,
    HandedInCell,
    Role,
    Submission,
)

LOST = "recognised by its content, since its nbgrader metadata is gone"
DROPPED = "dropped"
ALIKE = 0.6
"""Share of a released cell's lines that must stand in a cell without metadata for it to be a
copy.
"""


@dataclass(frozen=True, slots=True)
class MatchedCells:
    """What matching made of a notebook: the cells that run, written answers, every cell of the file
    with what it was recognised as, and what to tell the student.
    """

    cells: tuple[Cell, ...]
    written: tuple[Answer, ...]
    handed_in: tuple[HandedInCell, ...]
    notices: tuple[CellOutcome, ...]


@dataclass
class _Piece:
    """A code cell on its way: where it stands, and what it has been recognised as."""

    place: float
    source: str
    claim: str = ""  # the released cell that its metadata names
    id: str = ""  # what it was recognised as; "" for a cell of the student's own
    role: Role = "extra"
    note: str = ""

    @cached_property
    def text(self) -> CellText:
        return CellText(self.source)


def match_cells(cells: Sequence[NotebookCell], release: Release) -> MatchedCells:
    """Match a notebook's cells to the release.

    Raises:
        UnreadableSubmission: it is a notebook of something else; the text says what it seems to be.
    """
    return _Matching(cells, release).run()


def find_answer_cell(submission: Submission, question: str) -> Cell | None:
    """The cell that answers a question: its own, or else the last cell that defines its
    function.
    """
    own = next((cell for cell in submission.cells if cell.id == question), None)
    if own is not None and question in defined_names(own.source):
        return own
    return next(
        (cell for cell in reversed(submission.cells) if question in defined_names(cell.source)), own
    )


class _Matching:
    def __init__(self, cells: Sequence[NotebookCell], release: Release) -> None:
        self.raw = cells
        self.release = release
        self.notices: list[CellOutcome] = []
        self.pieces = [
            _Piece(float(place), cell.source, self._claim(cell))
            for place, cell in enumerate(cells)
            if cell.kind == "code" and cell.source.strip() and not claims_written(cell, release)
        ]
        self.claims: dict[str, list[_Piece]] = {}
        for piece in self.pieces:
            self.claims.setdefault(piece.claim, []).append(piece)
        self.running: list[_Piece] = []
        self.locked: dict[str, _Piece] = {}
        self.asked = frozenset[str]().union(*release.functions.values())

    def run(self) -> MatchedCells:
        for released in self.release.cells:
            if released.kind == "code" and released.role != "question":
                self._match_locked(released)
        for question in self.release.questions:
            self._match_question(question)
        self._refuse_foreign()
        self.running += [piece for piece in self.pieces if not piece.id]
        self._place_given()
        for question in self.release.questions:
            self._say_where(question)
        places = {int(piece.place): piece.id for piece in self.pieces if self._stands_for(piece)}
        written = match_written(self.raw, self.release, places)
        cells = self._finished()
        order = {cell.id: n for n, cell in enumerate(self.release.cells)}
        notices = sorted(
            [*self.notices, *written.notices], key=lambda notice: order.get(notice.id, -1)
        )
        return MatchedCells(
            cells, written.answers, self._handed_in(places, written), tuple(notices)
        )

    def _stands_for(self, piece: _Piece) -> bool:
        """It is where a released cell is: its only copy, or the one that counts."""
        return piece.id not in ("", DROPPED) and (self.locked.get(piece.id, piece) is piece)

    def _handed_in(
        self, places: Mapping[int, str], written: WrittenMatch
    ) -> tuple[HandedInCell, ...]:
        known = {**places, **written.places}
        return tuple(
            HandedInCell(cell.kind, cell.source, known.get(place, ""), cell.attachments)
            for place, cell in enumerate(self.raw)
        )

    def _claim(self, cell: NotebookCell) -> str:
        """The released cell that the metadata names, if it names one of the same kind."""
        names = [cell.grade_id]
        names += [
            r.id
            for r in self.release.cells
            if cell.role and (r.role, r.name) == (cell.role, cell.name)
        ]
        for name in names:
            released = self.release.by_id.get(name)
            if released is not None and released.kind == cell.kind:
                return name
        return ""

    # Given, check and demo cells

    def _match_locked(self, released: ReleaseCell) -> None:
        claimed = self.claims.get(released.id, [])
        note = ""
        if not claimed:
            claimed = self._copies(released)
            note = LOST if claimed else ""
        for piece in claimed:
            piece.id, piece.role = released.id, released.role
            self._keep_additions(piece, released)
        if claimed:
            first = next((p for p in claimed if p.text.plain == released.text.plain), claimed[0])
            self.locked[released.id] = first
            first.note = note
            if first.text.plain != released.text.plain:
                first.note = "you changed this locked cell; it ran as released"
        if len(claimed) > 1:
            self._tell(
                released.id, "skipped", f"this cell is there {len(claimed)} times; it counts once"
            )
        if released.role == "check":
            self._tell_about_check(released, claimed)

    def _copies(self, released: ReleaseCell) -> list[_Piece]:
        """Cells without metadata that hold the released text, or most of it."""
        free = [piece for piece in self.pieces if not piece.claim and not piece.id]
        exact = [piece for piece in free if piece.text.plain == released.text.plain]
        if exact:
            return exact
        # A cell that answers a question is the student's, even where a given cell or a check was
        # merged into it.
        free = [piece for piece in free if not self.asked & piece.text.functions]
        shares = [(released.text.share_kept_in(piece.text), piece) for piece in free]
        best = max(shares, key=lambda pair: pair[0], default=(0.0, None))
        return [best[1]] if best[1] is not None and best[0] >= ALIKE else []

    def _keep_additions(self, piece: _Piece, released: ReleaseCell) -> None:
        """Imports and functions that a student wrote into a locked cell are the student's own, and
        run.
        """
        if piece.text.plain == released.text.plain:
            return
        added = extract_additions(
            piece.source, released.source, assignments=released.role == "given"
        )
        if added:
            note = f"the imports and functions that you added to the locked cell {released.id}"
            self.pieces.append(_Piece(piece.place + 0.5, added, note=note))

    def _tell_about_check(self, released: ReleaseCell, claimed: list[_Piece]) -> None:
        if not claimed:
            self._tell(released.id, "missing", "this check was deleted; grading does not need it")
        elif self.locked[released.id].text.plain != released.text.plain:
            self._tell(
                released.id,
                "skipped",
                "you changed this check; grading does not use it, nothing is lost",
            )

    # Questions

    def _match_question(self, question: ReleaseCell) -> None:
        names = self.release.functions[question.id]
        claimed = self.claims.get(question.id, [])
        others = [p for p in self.pieces if p.claim != question.id and names & p.text.functions]
        elsewhere = [p for p in others if not p.claim and not p.id]
        hosts = [p for p in others if p.claim in self.release.functions]
        answered = [p for p in elsewhere if not p.text.is_unfinished(question.text)]
        if not claimed:
            claimed = elsewhere or self._alike(question)
            _remark([piece for piece in claimed if not piece.note], LOST)
        elif (answered or hosts) and all(self._untouched(piece, question) for piece in claimed):
            # The answer stands in another cell: the stub must not run after it and take its place.
            _drop(claimed)
            claimed = answered
            _remark(claimed, "your answer was found in a cell that you added")
        else:
            _drop([piece for piece in elsewhere if self._untouched(piece, question)])
        if not claimed:
            return
        winner = max(claimed, key=lambda piece: self._rank(piece, question, names))
        winner.id, winner.role = question.id, "question"
        self.running.append(winner)
        for piece in claimed:
            if piece is not winner:
                self._set_aside(piece, winner, question)

    def _untouched(self, piece: _Piece, question: ReleaseCell) -> bool:
        return piece.text.plain == question.text.plain

    def _rank(
        self, piece: _Piece, question: ReleaseCell, names: frozenset[str]
    ) -> tuple[int, bool, float]:
        """Which of several cells is the answer: one that defines the functions, is no stub, and
        comes last.
        """
        return (
            1 if names & piece.text.names else 0,
            not piece.text.is_unfinished(question.text),
            piece.place,
        )

    def _set_aside(self, piece: _Piece, winner: _Piece, question: ReleaseCell) -> None:
        """A second cell of one question: a copy is left out, a part (a helper in a cell of its own)
        runs.
        """
        new = piece.text.names - winner.text.names
        if new and not piece.text.is_unfinished(question.text):
            piece.id, piece.note = (
                "",
                _and(piece.note, f"a second cell of {question.id}; it ran too"),
            )
            return
        piece.id = DROPPED
        kept = (
            "the last one that defines the function"
            if piece.place < winner.place
            else "the one with your answer"
        )
        self._tell(
            question.id,
            "skipped",
            f"there are several cells for {question.name}; {kept} was graded",
        )

    def _alike(self, question: ReleaseCell) -> list[_Piece]:
        """The cell whose text is closest to the stub's: its function may have been renamed."""
        free = [
            p for p in self.pieces if not p.claim and not p.id and not self._of_another(p, question)
        ]
        shares = [(question.text.share_kept_in(piece.text), piece) for piece in free]
        best = max(shares, key=lambda pair: pair[0], default=(0.0, None))
        return [best[1]] if best[1] is not None and best[0] >= ALIKE else []

    def _of_another(self, piece: _Piece, question: ReleaseCell) -> bool:
        found = piece.text.functions
        return any(
            found & names for id_, names in self.release.functions.items() if id_ != question.id
        )

    def _say_where(self, question: ReleaseCell) -> None:
        """A question without a cell of its own is answered in another's, or missing."""
        if any(piece.id == question.id for piece in self.running):
            return
        names = self.release.functions[question.id]
        host = next((p for p in reversed(self.running) if names & p.text.names), None)
        if host is not None:
            where = f"in the cell of {host.id}" if host.id else "in a cell of your own"
            self._tell(question.id, "ok", f"{question.name} was found {where}")
        elif any(cell.grade_id == question.id and cell.kind != "code" for cell in self.raw):
            self._tell(
                question.id,
                "missing",
                "this cell is a text cell now and does not run; make it a code cell",
            )
        else:
            message = (
                f"no cell defines {question.name}; copy its cell from the released notebook and "
                "answer there"
            )
            self._tell(question.id, "missing", message)

    # The whole

    def _refuse_foreign(self) -> None:
        known = set(self.release.by_id)
        foreign = [
            cell.grade_id
            for cell in self.raw
            if cell.solution and cell.grade_id and cell.grade_id not in known
        ]
        if foreign and not any(piece.claim in self.release.functions for piece in self.pieces):
            # Another assignment may give as code what this one asks for: its functions are no
            # answers.
            others = ", ".join(name for name in foreign[:3] if name.isidentifier())
            raise UnreadableSubmission(
                f"has the cells of another assignment ({others or 'other names'})"
            )
        named = {cell.grade_id for cell in self.raw} & known
        if not (
            named or self.locked or any(self.asked & piece.text.functions for piece in self.pieces)
        ):
            raise UnreadableSubmission("has none of the assignment's cells")

    def _place_given(self) -> None:
        """Every given cell runs as released: where the student left it, and before the questions
        that follow it.
        """
        order = [cell.id for cell in self.release.cells]
        for number, released in enumerate(self.release.cells):
            if released.role != "given" or released.kind != "code":
                continue
            followers = [
                p.place
                for p in self.running
                if p.id in order[number + 1 :] and p.role == "question"
            ]
            before = [p.place for p in self.running if p.id in order[:number]]
            piece = self.locked.get(released.id)
            note = (
                piece.note
                if piece
                else "this given cell was deleted; it was restored from the release"
            )
            place = piece.place if piece else max(before, default=-1.0) + 0.25
            if followers and place > min(followers):
                place = min(followers) - 0.25
                note = _and(note, "it ran at its place in the release" if piece else "")
            self.running.append(
                _Piece(place, released.source, id=released.id, role="given", note=note)
            )

    def _finished(self) -> tuple[Cell, ...]:
        made, extras = [], 0
        order = {cell.id: n for n, cell in enumerate(self.release.cells)}
        for piece in sorted(self.running, key=lambda piece: (piece.place, order.get(piece.id, -1))):
            extras += not piece.id
            made.append(
                Cell(
                    piece.id or f"extra-{extras}", piece.role, piece.source, piece.note, piece.place
                )
            )
        return tuple(made)

    def _tell(self, id_: str, outcome: CellState, message: str) -> None:
        notice = CellOutcome(id_, outcome, message)
        if notice not in self.notices:
            self.notices.append(notice)


def _and(first: str, second: str) -> str:
    return "; ".join(part for part in (first, second) if part)


def _remark(pieces: Sequence[_Piece], note: str) -> None:
    for piece in pieces:
        piece.note = _and(piece.note, note)


def _drop(pieces: Sequence[_Piece]) -> None:
    for piece in pieces:
        piece.id = DROPPED
