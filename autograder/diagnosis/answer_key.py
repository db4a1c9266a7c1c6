"""The answer key as a submission, whole or with one answer exchanged."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

from autograder.course import Assignment, Limits
from autograder.intake.notebook import read_submission
from autograder.intake.released_notebook import Release
from autograder.records.submission import Cell, FoundSubmission, Submission
from autograder.suite.known_answers import KnownAnswer, load_known_answers


class AnswerKey:
    """Makes the submissions that are graded for known answers."""

    def __init__(
        self,
        assignment: Assignment,
        release: Release,
        limits: Limits,
    ) -> None:
        self._assignment = assignment
        self._release = release
        self._limits = limits

    @functools.cached_property
    def submission(self) -> Submission:
        """The answer key itself."""
        found = FoundSubmission("answer-key", self._assignment.solution)
        return read_submission(found, self._release, self._limits)

    @property
    def cells(self) -> Mapping[str, str]:
        """The answer key's cell of each question."""
        return {
            cell.id: cell.source
            for cell in self.submission.cells
            if cell.role == "question"
        }

    def known_answers(self, file: str) -> list[KnownAnswer]:
        """The known answers of `mistakes.py`, `alternates.py` or `samples.py`."""
        return load_known_answers(self._assignment.suite / file, dict(self.cells))

    def with_answer(self, answer: KnownAnswer) -> Submission:
        """The answer key with a known answer in the place of its own."""
        cell = Cell("known_answer", "extra", answer.cell)
        key = self.submission
        return dataclasses.replace(key, student=answer.name, cells=(*key.cells, cell))
