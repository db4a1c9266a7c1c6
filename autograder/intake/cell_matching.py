"""Match the cells of a notebook to the release.

By nbgrader's grade_id and the kit's own metadata where they are there; by content and position
where an editor dropped them. Given cells run as released; question cells and the student's own
cells run as handed in, in the student's order. Checks and demos do not run. A notice in words tells
the student of each repair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from autograder.basics.definitions import defined_names
from autograder.basics.errors import UnreadableSubmission
from autograder.intake.cell_text import CellText, extract_additions
from autograder.intake.reading import NotebookCell
from autograder.intake.released_notebook import Release, ReleaseCell
from autograder.intake.written import claims_written, match_written
from autograder.records.submission import (
    Answer,
    Cell,
    CellOutcome,
    CellState,
    HandedInCell,
    Role,
    Submission,
)

LOST = "recognised by its content, since an editor dropped the label of the cell"
ALIKE = 0.6
"""Share of a released cell's lines that must stand in a cell without metadata for it to be a
copy.
"""
_DROPPED = "dropped"
"""The id of a code cell that does not run, since another cell counts in its place."""


@dataclass(frozen=True, slots=True)
class MatchedCells:
    """A notebook matched to the release.

    Attributes:
        cells: the code cells that run, in their order.
        written: the written answers.
        handed_in: every cell of the file, with the released cell that it was recognised as.
        notices: messages to the student about cells that are not in `cells`.
    """

    cells: tuple[Cell, ...]
    written: tuple[Answer, ...]
    handed_in: tuple[HandedInCell, ...]
    notices: tuple[CellOutcome, ...]


@dataclass
class _CodeCell:
    """A code cell while it is matched.

    Attributes:
        claim: the id of the released cell that the metadata names.
        id: the released cell that the cell was recognised as; "" for a cell of the student's own.
    """

    place: float
    source: str
    claim: str = ""
    id: str = ""
    role: Role = "extra"
    note: str = ""

    @cached_property
    def text(self) -> CellText:
        return CellText(self.source)

    @property
    def is_free(self) -> bool:
        """Whether neither metadata nor matching has tied the cell to a released cell."""
        return not self.claim and not self.id

    def is_copy_of(self, released: ReleaseCell) -> bool:
        return self.text.plain == released.text.plain

    def add_note(self, note: str) -> None:
        self.note = f"{self.note}; {note}" if self.note else note


def match_cells(cells: Sequence[NotebookCell], release: Release) -> MatchedCells:
    """Match a notebook's cells to the release.

    Raises:
        UnreadableSubmission: it is a notebook of something else, named in the text.
    """
    return _Matcher(cells, release).run()


def find_answer_cell(submission: Submission, question: str) -> Cell | None:
    """The cell that answers a question: the question's cell, or else the last cell that defines the
    function.
    """
    question_cell = next(
        (cell for cell in submission.cells if cell.id == question), None
    )
    if question_cell is not None and question in defined_names(question_cell.source):
        return question_cell
    defining = [
        cell for cell in submission.cells if question in defined_names(cell.source)
    ]
    return defining[-1] if defining else question_cell


class _Matcher:
    def __init__(self, cells: Sequence[NotebookCell], release: Release) -> None:
        self.cells = cells
        self.release = release
        self.order = {cell.id: number for number, cell in enumerate(release.cells)}
        self.functions = frozenset[str]().union(*release.functions.values())
        self.notices: list[CellOutcome] = []
        self.code_cells = [
            _CodeCell(
                float(place),
                cell.source,
                self._find_claim(cell),
            )
            for place, cell in enumerate(cells)
            if cell.kind == "code"
            and cell.source.strip()
            and not claims_written(cell, release)
        ]
        self.claims: dict[str, list[_CodeCell]] = {}
        for code_cell in self.code_cells:
            self.claims.setdefault(code_cell.claim, []).append(code_cell)
        self.running: list[_CodeCell] = []
        self.locked: dict[str, _CodeCell] = {}

    def run(self) -> MatchedCells:
        for released in self.release.cells:
            if released.kind == "code" and released.role != "question":
                self._match_locked(released)
        for question in self.release.questions:
            self._match_question(question)
        self._refuse_foreign_notebook()
        self.running += [cell for cell in self.code_cells if not cell.id]
        self._place_given_cells()
        for question in self.release.questions:
            self._report_question(question)
        places = {
            int(cell.place): cell.id for cell in self.code_cells if self._counts(cell)
        }
        written = match_written(self.cells, self.release, places)
        places |= written.places
        handed_in = [
            HandedInCell(
                cell.kind,
                cell.source,
                places.get(place, ""),
                cell.attachments,
            )
            for place, cell in enumerate(self.cells)
        ]
        notices = sorted(
            [*self.notices, *written.notices],
            key=lambda notice: self.order.get(notice.id, -1),
        )
        return MatchedCells(
            self._list_running(),
            written.answers,
            tuple(handed_in),
            tuple(notices),
        )

    def _find_claim(self, cell: NotebookCell) -> str:
        """The released cell that the metadata names, if the two are of the same kind."""
        tag = (cell.role, cell.name)
        named = [self.release.by_id.get(cell.grade_id)]
        if cell.role:
            named += [
                cell for cell in self.release.cells if (cell.role, cell.name) == tag
            ]
        for released in named:
            if released is not None and released.kind == cell.kind:
                return released.id
        return ""

    def _counts(self, cell: _CodeCell) -> bool:
        """Whether a cell stands for a released cell, as its only copy or as the one that counts."""
        return cell.id not in ("", _DROPPED) and self.locked.get(cell.id, cell) is cell

    # Given, check and demo cells

    def _match_locked(self, released: ReleaseCell) -> None:
        claimed = self.claims.get(released.id, [])
        copies = claimed or self._find_copies(released)
        is_check = released.role == "check"
        if not copies:
            if is_check:
                message = "this check was deleted; grading does not need it"
                self._notify(released.id, "missing", message)
            return
        for copy in copies:
            copy.id = released.id
            copy.role = released.role
            self._keep_additions(copy, released)
        unchanged = [copy for copy in copies if copy.is_copy_of(released)]
        counted = unchanged[0] if unchanged else copies[0]
        self.locked[released.id] = counted
        counted.note = "" if claimed else LOST
        if not unchanged:
            counted.note = "you changed this locked cell; it ran as released"
        if len(copies) > 1:
            message = f"this cell is there {len(copies)} times; it counts once"
            self._notify(released.id, "skipped", message)
        if is_check and not unchanged:
            message = "you changed this check; grading does not use it, nothing is lost"
            self._notify(released.id, "skipped", message)

    def _find_copies(self, released: ReleaseCell) -> list[_CodeCell]:
        """Cells without metadata that hold the released text, or most of it."""
        free = [cell for cell in self.code_cells if cell.is_free]
        exact = [cell for cell in free if cell.is_copy_of(released)]
        if exact:
            return exact
        # A cell that answers a question is the student's, even where a given cell or a check was
        # merged into it.
        candidates = [cell for cell in free if not self.functions & cell.text.functions]
        return _find_most_alike(released, candidates)

    def _keep_additions(self, cell: _CodeCell, released: ReleaseCell) -> None:
        """Run the imports and functions that a student wrote into a locked cell as a cell of the
        student's own.
        """
        if cell.is_copy_of(released):
            return
        with_variables = released.role == "given"
        added = extract_additions(
            cell.source,
            released.source,
            assignments=with_variables,
        )
        if added:
            note = f"the imports and functions that you added to the locked cell {released.id}"
            self.code_cells.append(_CodeCell(cell.place + 0.5, added, note=note))

    # Questions

    def _match_question(self, question: ReleaseCell) -> None:
        names = self.release.functions[question.id]
        claimed = self.claims.get(question.id, [])
        defining = [cell for cell in self.code_cells if names & cell.text.functions]
        defining = [cell for cell in defining if cell.claim != question.id]
        free = [cell for cell in defining if cell.is_free]
        answered = [cell for cell in free if not cell.text.is_unfinished(question.text)]
        is_in_other_question = any(
            cell.claim in self.release.functions for cell in defining
        )
        is_untouched = all(cell.is_copy_of(question) for cell in claimed)
        if not claimed:
            claimed = free or self._find_renamed(question)
            _add_notes((cell for cell in claimed if not cell.note), LOST)
        elif is_untouched and (answered or is_in_other_question):
            # The answer stands in another cell: the stub must not run after it and take its place.
            _drop(claimed)
            claimed = answered
            _add_notes(claimed, "your answer was found in a cell that you added")
        else:
            _drop(cell for cell in free if cell.is_copy_of(question))
        if claimed:
            self._choose_answer(claimed, question, names)

    def _choose_answer(
        self,
        claimed: Sequence[_CodeCell],
        question: ReleaseCell,
        names: frozenset[str],
    ) -> None:
        """Of several cells run the one that defines the functions, is no stub, and comes last."""

        def rank(cell: _CodeCell) -> tuple[bool, bool, float]:
            defines = not names.isdisjoint(cell.text.names)
            return defines, not cell.text.is_unfinished(question.text), cell.place

        answer = max(claimed, key=rank)
        answer.id = question.id
        answer.role = "question"
        self.running.append(answer)
        for cell in claimed:
            if cell is not answer:
                self._set_aside(cell, answer, question)

    def _set_aside(
        self,
        cell: _CodeCell,
        answer: _CodeCell,
        question: ReleaseCell,
    ) -> None:
        """A second cell of one question: a copy is left out, a part (a helper in a cell of its own)
        runs.
        """
        adds_names = bool(cell.text.names - answer.text.names)
        if adds_names and not cell.text.is_unfinished(question.text):
            cell.id = ""
            cell.add_note(f"a second cell of {question.id}; it ran too")
            return
        cell.id = _DROPPED
        graded = "the one with your answer"
        if cell.place < answer.place:
            graded = "the last one that defines the function"
        message = f"there are several cells for {question.name}; {graded} was graded"
        self._notify(question.id, "skipped", message)

    def _find_renamed(self, question: ReleaseCell) -> list[_CodeCell]:
        """The cell whose text is closest to the stub's: its function may have been renamed."""
        functions = self.release.functions
        other_names = [names for id_, names in functions.items() if id_ != question.id]
        taken = frozenset[str]().union(*other_names)
        free = [cell for cell in self.code_cells if cell.is_free]
        return _find_most_alike(
            question, [cell for cell in free if not taken & cell.text.functions]
        )

    def _report_question(self, question: ReleaseCell) -> None:
        """Notify of a question without a cell, whether or not another cell answers it."""
        if any(cell.id == question.id for cell in self.running):
            return
        names = self.release.functions[question.id]
        hosts = [cell for cell in self.running if names & cell.text.names]
        if hosts:
            host = hosts[-1].id
            where = f"in the cell of {host}" if host else "in a cell of your own"
            self._notify(
                question.id,
                "ok",
                f"{question.name} was found {where}",
            )
            return
        message = (
            f"no cell defines {question.name}; copy its cell from the released notebook and "
            "answer there"
        )
        if any(
            cell.grade_id == question.id and cell.kind != "code" for cell in self.cells
        ):
            message = (
                "this cell is a text cell now and does not run; make it a code cell"
            )
        self._notify(question.id, "missing", message)

    # The whole notebook

    def _refuse_foreign_notebook(self) -> None:
        grade_ids = {cell.grade_id for cell in self.cells}
        foreign = [
            cell.grade_id
            for cell in self.cells
            if cell.solution and cell.grade_id and cell.grade_id not in self.order
        ]
        if foreign and not any(
            cell.claim in self.release.functions for cell in self.code_cells
        ):
            # Functions that this assignment asks for may be given code in another assignment, so
            # a foreign notebook's functions are no answers.
            names = ", ".join(name for name in foreign[:3] if name.isidentifier())
            raise UnreadableSubmission(
                f"has the cells of another assignment ({names or 'other names'})"
            )
        answers_any = any(
            self.functions & cell.text.functions for cell in self.code_cells
        )
        if not (self.locked or answers_any or grade_ids & self.order.keys()):
            raise UnreadableSubmission("has none of the assignment's cells")

    def _place_given_cells(self) -> None:
        """Run every given cell as released, where the student left it, but before the questions
        that follow it in the release.
        """
        for number, released in enumerate(self.release.cells):
            if released.role != "given" or released.kind != "code":
                continue
            numbered = [(self.order.get(cell.id, -1), cell) for cell in self.running]
            followers = [
                cell.place
                for order, cell in numbered
                if order > number and cell.role == "question"
            ]
            copy = self.locked.get(released.id)
            if copy is not None:
                place = copy.place
                note = copy.note
            else:
                earlier = [
                    cell.place for order, cell in numbered if 0 <= order < number
                ]
                place = max(earlier, default=-1.0) + 0.25
                note = "this given cell was deleted; it was restored from the release"
            cell = _CodeCell(
                place,
                released.source,
                id=released.id,
                role="given",
                note=note,
            )
            if followers and place > min(followers):
                cell.place = min(followers) - 0.25
                if copy is not None:
                    cell.add_note("it ran at its place in the release")
            self.running.append(cell)

    def _list_running(self) -> tuple[Cell, ...]:
        """The code cells in the order in which they run; the student's own get numbers."""
        self.running.sort(key=lambda cell: (cell.place, self.order.get(cell.id, -1)))
        extras = [cell for cell in self.running if not cell.id]
        for number, extra in enumerate(extras, start=1):
            extra.id = f"extra-{number}"
        return tuple(
            Cell(
                cell.id,
                cell.role,
                cell.source,
                cell.note,
                cell.place,
            )
            for cell in self.running
        )

    def _notify(
        self,
        id_: str,
        outcome: CellState,
        message: str,
    ) -> None:
        notice = CellOutcome(id_, outcome, message)
        if notice not in self.notices:
            self.notices.append(notice)


def _find_most_alike(
    released: ReleaseCell, cells: Sequence[_CodeCell]
) -> list[_CodeCell]:
    """The cell that keeps most lines of a released cell, if these are enough for a copy."""
    shares = [released.text.share_kept_in(cell.text) for cell in cells]
    most = max(shares, default=0.0)
    return [cells[shares.index(most)]] if most >= ALIKE else []


def _add_notes(cells: Iterable[_CodeCell], note: str) -> None:
    for cell in cells:
        cell.add_note(note)


def _drop(cells: Iterable[_CodeCell]) -> None:
    for cell in cells:
        cell.id = _DROPPED
