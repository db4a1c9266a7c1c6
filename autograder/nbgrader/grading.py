"""The autograde pass: grade through the sandbox, show the result in the notebook, save every score at once.

A notebook without a hidden suite goes through nbgrader's own execution, which runs it without walls; its scores are
saved here as well, since nbgrader gives full marks for an output that it cannot read.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import nbformat
from nbgrader import preprocessors
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import determine_grade, is_grade, is_solution

from autograder.course import find_course
from autograder.errors import UnreadableSubmission
from autograder.model import FoundSubmission, Graded, Submission
from autograder.nbgrader import graders
from autograder.nbgrader.autograded import grade_id, marking_guides, read_built, show_guides, show_result
from autograder.nbgrader.earlier_answers import answers_of
from autograder.nbgrader.gradebook import NO_RESPONSE, Entry, entry_of, open_gradebook, write_entries
from autograder.nbgrader.registry import register_release
from autograder.nbgrader.release import read_release
from autograder.nbgrader.repair import handed_in, release_path, submitted_folder
from autograder.nbgrader.source import suite_assignment

GRADED = "attention_kit_graded"


class GradeInSandbox(NbGraderPreprocessor):  # type: ignore[misc]
    """Grades the file as it was handed in, exactly as `autograder grade` does."""

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        where = resources["nbgrader"]
        course = find_course(Path.cwd())
        assignment = suite_assignment(course, where["assignment"], where["notebook"])
        if assignment is None:
            self.log.warning("%s has no hidden suite: nbgrader runs it, without a sandbox", where["notebook"])
            return notebook, resources
        coursedir = self.parent.parent.coursedir
        found = FoundSubmission(where["student"], submitted_folder(coursedir, resources) / f"{where['notebook']}.ipynb")
        graded = graders.grade(course, assignment, found)
        resources[GRADED] = graded
        if graded.result is None:
            self.log.error("%s could not be graded: %s", where["student"], graded.problem)
        else:
            show_result(notebook, graded.result)
        show_guides(notebook, marking_guides(read_built(assignment.release), assignment.solution))
        return nbformat.from_dict(notebook), resources


class ExecuteWithoutSuite(preprocessors.Execute):  # type: ignore[misc]
    """nbgrader's execution, for notebooks that were not graded in the sandbox."""

    def preprocess(self, notebook: Any, resources: Any, *arguments: Any, **keywords: Any) -> tuple[Any, Any]:
        if GRADED in resources:
            return notebook, resources
        return super().preprocess(notebook, resources, *arguments, **keywords)  # type: ignore[no-any-return]


class SaveScores(NbGraderPreprocessor):  # type: ignore[misc]
    """Writes all scores and comments of a submission in one transaction."""

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        where = resources["nbgrader"]
        course = find_course(Path.cwd())
        coursedir = self.parent.parent.coursedir
        release = read_release(release_path(coursedir, resources))
        graded: Graded | None = resources.get(GRADED)
        try:
            submission = handed_in(course, coursedir, resources)
        except UnreadableSubmission as problem:
            entry = Entry(where["student"], problem=graded.problem if graded else str(problem))
        else:
            if graded is None:
                entry = self._from_outputs(submission, notebook)
            elif graded.result is None:
                entry = Entry(where["student"], problem=graded.problem)
            else:
                entry = entry_of(release, graded.result, submission)
        with open_gradebook(course, where["db_url"]) as gradebook:
            if graded is None:
                row = gradebook.find_notebook(where["notebook"], where["assignment"])
            else:
                row = register_release(gradebook.db, gradebook.course_id, where["assignment"], release)
            write_entries(gradebook.db, course, row, release, [entry])
            gradebook.db.commit()
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
