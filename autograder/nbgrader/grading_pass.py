"""The autograde pass of a notebook without a hidden suite: nbgrader's own execution, which runs it
without walls.

Its scores are saved here, all at once, since nbgrader gives full marks for an output that it cannot
read.
"""

from __future__ import annotations

import math
from typing import Any

from nbgrader import preprocessors
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import determine_grade, is_grade, is_solution

from autograder.basics.errors import UnreadableSubmission
from autograder.nbgrader.answers import read_answers
from autograder.nbgrader.gradebook import NO_RESPONSE, Entry
from autograder.nbgrader.released_cells import grade_id
from autograder.nbgrader.repair import HandedIn
from autograder.records.model import Submission


class ExecuteWithoutSuite(preprocessors.Execute):  # type: ignore[misc]
    """nbgrader's execution, which says that there is no sandbox."""

    def preprocess(
        self, notebook: Any, resources: Any, *arguments: Any, **keywords: Any
    ) -> tuple[Any, Any]:
        name = resources["nbgrader"]["notebook"]
        self.log.warning("%s has no hidden suite: nbgrader runs it, without a sandbox", name)
        return super().preprocess(notebook, resources, *arguments, **keywords)  # type: ignore[no-any-return]


class SaveScores(NbGraderPreprocessor):  # type: ignore[misc]
    """Writes all scores and comments of a submission, and what lateness costs, in one
    transaction.
    """

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        submission = HandedIn(self.parent.parent.coursedir, **resources["nbgrader"])
        try:
            submission.save(self._from_outputs(submission.read(), notebook))
        except UnreadableSubmission as error:
            submission.save_problem(str(error))
        return notebook, resources

    def _from_outputs(self, submission: Submission, notebook: Any) -> Entry:
        """Scores as nbgrader reads them from outputs, except that what is no score waits for a
        person.
        """
        blank = [answer.id for answer in submission.written if answer.blank]
        scores: dict[str, float] = dict.fromkeys(blank, 0.0)
        for cell in notebook.cells:
            if is_grade(cell) and (score := self._score(cell)) is not None:
                scores[grade_id(cell)] = score
        comments = dict.fromkeys(blank, NO_RESPONSE)
        return Entry(
            submission.student,
            scores,
            comments,
            "",
            None,
            read_answers(submission),
            submission.sha256,
        )

    def _score(self, cell: Any) -> float | None:
        try:
            score, most = determine_grade(cell, self.log)
        except (ValueError, KeyError, TypeError) as error:
            self.log.error("cell %s gives no score: %s", grade_id(cell), error)
            return None
        if (
            score is None
            or not math.isfinite(score)
            or not 0 <= score <= most
            or _says_no_score(cell)
        ):
            return None
        return float(score)


def _says_no_score(cell: Any) -> bool:
    """A result that is no number: nbgrader takes it for full marks."""
    results = [
        output for output in cell.get("outputs", []) if output.output_type == "execute_result"
    ]
    if (
        not results
        or is_solution(cell)
        or any(output.output_type == "error" for output in cell.outputs)
    ):
        return False
    try:
        return (
            not math.isfinite(float(results[0]["data"]["text/plain"]))
            or float(results[0]["data"]["text/plain"]) < 0
        )
    except (KeyError, TypeError, ValueError):
        return True
