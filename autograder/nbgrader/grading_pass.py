"""Grades notebooks without a hidden suite: nbgrader executes the notebook, without a sandbox.

The scores are saved here, in one transaction, since nbgrader gives full marks for an output that
nbgrader cannot read.
"""

from __future__ import annotations

import math
from typing import Any

from nbgrader import preprocessors
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import determine_grade, is_grade, is_solution

from autograder.basics.errors import UnreadableSubmission
from autograder.nbgrader.answers import read_answers
from autograder.nbgrader.gradebook import NO_RESPONSE, GradebookEntry
from autograder.nbgrader.released_cells import grade_id
from autograder.nbgrader.repair import HandedIn
from autograder.records.submission import Submission


class ExecuteWithoutSuite(preprocessors.Execute):  # type: ignore[misc]
    """Executes a notebook with nbgrader, after a warning that there is no sandbox."""

    def preprocess(
        self, notebook: Any, resources: Any, *arguments: Any, **keywords: Any
    ) -> tuple[Any, Any]:
        name = resources["nbgrader"]["notebook"]
        self.log.warning(
            "%s has no hidden suite: nbgrader runs it, without a sandbox", name
        )
        return super().preprocess(notebook, resources, *arguments, **keywords)  # type: ignore[no-any-return]


class SaveScores(NbGraderPreprocessor):  # type: ignore[misc]
    """Writes scores, comments and the late penalty of a submission in one transaction."""

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        submission = HandedIn(self.parent.parent.coursedir, **resources["nbgrader"])
        try:
            submission.save(self._from_outputs(submission.read(), notebook))
        except UnreadableSubmission as error:
            submission.save_problem(str(error))
        return notebook, resources

    def _from_outputs(self, submission: Submission, notebook: Any) -> GradebookEntry:
        """Scores as nbgrader reads them from outputs; other outputs wait for a person."""
        blank = [answer.id for answer in submission.written if answer.blank]
        scores: dict[str, float] = dict.fromkeys(blank, 0.0)
        for cell in notebook.cells:
            if is_grade(cell) and (score := self._score(cell)) is not None:
                scores[grade_id(cell)] = score
        return GradebookEntry(
            submission.student,
            scores,
            dict.fromkeys(blank, NO_RESPONSE),
            answers=read_answers(submission),
            submission_sha256=submission.sha256,
        )

    def _score(self, cell: Any) -> float | None:
        try:
            score, max_score = determine_grade(cell, self.log)
        except (ValueError, KeyError, TypeError) as error:
            self.log.error("cell %s gives no score: %s", grade_id(cell), error)
            return None
        if score is None or not 0 <= score <= max_score or _has_unreadable_result(cell):
            return None
        return float(score)


def _has_unreadable_result(cell: Any) -> bool:
    """Whether the cell's result is no score; nbgrader would take it for full marks."""
    outputs = cell.get("outputs", [])
    results = [output for output in outputs if output.output_type == "execute_result"]
    raised = any(output.output_type == "error" for output in outputs)
    if not results or is_solution(cell) or raised:
        return False
    try:
        number = float(results[0]["data"]["text/plain"])
    except (KeyError, TypeError, ValueError):
        return True
    return not 0 <= number < math.inf
