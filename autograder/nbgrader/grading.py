"""The autograde pass: grade through the sandbox, show the result in the notebook, save every score at once.

A notebook without a hidden suite goes through nbgrader's own execution, which runs it without walls; its scores are
saved here as well, since nbgrader gives full marks for an output that it cannot read.
"""

from __future__ import annotations

import math
from typing import Any

import nbformat
from nbgrader import preprocessors
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import determine_grade, is_grade, is_solution

from autograder.errors import UnreadableSubmission
from autograder.model import Submission
from autograder.nbgrader import graders
from autograder.nbgrader.autograded import marking_guides, show_guides, show_result
from autograder.nbgrader.earlier_answers import answers_of
from autograder.nbgrader.gradebook import NO_RESPONSE, Entry, entry_of
from autograder.nbgrader.release import grade_id, read_built, read_release
from autograder.nbgrader.repair import handed_in

GRADED = "attention_kit_graded"


class GradeInSandbox(NbGraderPreprocessor):  # type: ignore[misc]
    """Grades the file as it was handed in, exactly as `autograder grade` does."""

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        submission = handed_in(self.parent.parent.coursedir, resources)
        if submission.suite is None:
            self.log.warning("%s has no hidden suite: nbgrader runs it, without a sandbox", submission.path.stem)
            return notebook, resources
        graded = graders.grade(submission.course, submission.suite, submission.found)
        resources[GRADED] = graded
        if graded.result is None:
            self.log.error("%s could not be graded: %s", submission.student, graded.problem)
        else:
            show_result(notebook, graded.result)
        show_guides(notebook, marking_guides(read_built(submission.release), submission.suite.solution))
        return nbformat.from_dict(notebook), resources


class ExecuteWithoutSuite(preprocessors.Execute):  # type: ignore[misc]
    """nbgrader's execution, for notebooks that were not graded in the sandbox."""

    def preprocess(self, notebook: Any, resources: Any, *arguments: Any, **keywords: Any) -> tuple[Any, Any]:
        if GRADED in resources:
            return notebook, resources
        return super().preprocess(notebook, resources, *arguments, **keywords)  # type: ignore[no-any-return]


class SaveScores(NbGraderPreprocessor):  # type: ignore[misc]
    """Writes all scores and comments of a submission, and what lateness costs, in one transaction."""

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        submission = handed_in(self.parent.parent.coursedir, resources)
        graded = resources.get(GRADED)
        try:
            read = submission.read()
        except UnreadableSubmission as error:
            entry = Entry(submission.student, problem=graded.problem if graded else str(error))
        else:
            if graded is None:
                entry = self._from_outputs(read, notebook)
            elif graded.result is None:
                entry = Entry(submission.student, problem=graded.problem)
            else:
                entry = entry_of(read_release(submission.release), graded.result, read)
        submission.save(entry)
        return notebook, resources

    def _from_outputs(self, submission: Submission, notebook: Any) -> Entry:
        """Scores as nbgrader reads them from outputs, except that what is no score waits for a person."""
        blank = [answer.id for answer in submission.written if answer.blank]
        scores: dict[str, float] = dict.fromkeys(blank, 0.0)
        for cell in notebook.cells:
            if is_grade(cell) and (score := self._score(cell)) is not None:
                scores[grade_id(cell)] = score
        comments = dict.fromkeys(blank, NO_RESPONSE)
        return Entry(submission.student, scores, comments, "", None, answers_of(submission), submission.sha256)

    def _score(self, cell: Any) -> float | None:
        try:
            score, most = determine_grade(cell, self.log)
        except (ValueError, KeyError, TypeError) as error:
            self.log.error("cell %s gives no score: %s", grade_id(cell), error)
            return None
        if score is None or not math.isfinite(score) or not 0 <= score <= most or _says_no_score(cell):
            return None
        return float(score)


def _says_no_score(cell: Any) -> bool:
    """A result that is no number: nbgrader takes it for full marks."""
    results = [output for output in cell.get("outputs", []) if output.output_type == "execute_result"]
    if not results or is_solution(cell) or any(output.output_type == "error" for output in cell.outputs):
        return False
    try:
        return not math.isfinite(float(results[0]["data"]["text/plain"])) or float(results[0]["data"]["text/plain"]) < 0
    except (KeyError, TypeError, ValueError):
        return True
