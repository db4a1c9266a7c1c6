"""nbgrader's settings for a course of the kit. docs/nbgrader.md gives the reasons."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from autograder.course import Course, load_course
from autograder.course.folders import Folder
from autograder.ledger.unknown_names import unknown_names
from autograder.nbgrader.course_name import course_id, put_alembic_on_path
from autograder.nbgrader.formgrader import make_pages_safe
from autograder.nbgrader.mirror import FOLDER, mirror

_HTML_FILTERS = {
    "markdown2html": "autograder.nbgrader.student_html.markdown_to_html",
    "clean_html": "autograder.nbgrader.student_html.clean_html",
    "strip_files_prefix": "autograder.nbgrader.student_html.leave_as_it_is",
    "get_metadata": "autograder.nbgrader.student_html.metadata_of_output",
}
"""Filters of nbconvert's templates → the functions in their place, as names: commands without pages
import no nbconvert then.
"""


def configure(c: Any, root: Path) -> None:
    """Configure nbgrader for the course in `root`, and bring the mirror of its sources up to date.

    Args:
        c: the configuration that nbgrader's `get_config()` gives.
    """
    put_alembic_on_path()
    course = load_course(root)
    for line in unknown_names(course):
        print(line, file=sys.stderr)
    mirror(course)
    _folders(c, course)
    _steps(c)
    make_pages_safe()


def _folders(c: Any, course: Course) -> None:
    """Set nbgrader's folders. Its sources are the mirror of source/, which nbgrader cannot read."""
    c.CourseDirectory.root = str(course.root)
    c.CourseDirectory.course_id = course_id(course.about.name)
    c.CourseDirectory.source_directory = str(FOLDER)
    c.CourseDirectory.release_directory = Folder.RELEASES.path
    c.CourseDirectory.solution_directory = Folder.SOLUTIONS.path
    c.CourseDirectory.submitted_directory = Folder.SUBMITTED.path
    c.CourseDirectory.autograded_directory = Folder.AUTOGRADED.path
    c.CourseDirectory.feedback_directory = Folder.FEEDBACK.path
    c.CourseDirectory.db_url = course.db_url


def _steps(c: Any) -> None:
    # What students get: built by `autograder build`, or by nbgrader's own steps where there is no
    # hidden suite.
    c.GenerateAssignment.preprocessors = [
        "autograder.nbgrader.assignment_exporter.MakeRelease"
    ]
    c.GenerateAssignment.exporter_class = (
        "autograder.nbgrader.assignment_exporter.BuiltExporter"
    )
    c.GenerateAssignment.force = True  # the release is committed, and so always there
    c.GenerateSolution.preprocessors = [
        "autograder.nbgrader.assignment_exporter.MakeSolution"
    ]
    c.GenerateSolution.exporter_class = (
        "autograder.nbgrader.assignment_exporter.BuiltExporter"
    )
    c.GenerateSolution.force = True

    # Grading: the exporter makes the submission whole, grades it through the sandbox and saves its
    # scores at once, with what [late] in course.toml takes off. The steps below are for notebooks
    # without a hidden suite.
    c.Autograde.pre_convert_hook = "autograder.nbgrader.hooks.before_autograde"
    c.Autograde.exporter_class = "autograder.nbgrader.repair.SubmissionExporter"
    c.Autograde.sanitize_preprocessors = [
        "nbgrader.preprocessors.ClearOutput",
        "nbgrader.preprocessors.OverwriteKernelspec",
        "nbgrader.preprocessors.OverwriteCells",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.Autograde.autograde_preprocessors = [
        "autograder.nbgrader.grading_pass.ExecuteWithoutSuite",
        "nbgrader.preprocessors.IgnorePattern",
        "nbgrader.preprocessors.LimitOutput",
        "autograder.nbgrader.grading_pass.SaveScores",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]

    # Feedback and export.
    c.GenerateFeedback.preprocessors = [
        "autograder.nbgrader.feedback_exporter.HideFromStudents",
        "autograder.nbgrader.feedback_exporter.UpToDatePenalty",
        "autograder.nbgrader.feedback_exporter.GradesAtOnce",
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]
    c.GenerateFeedback.exporter_class = (
        "autograder.nbgrader.feedback_exporter.FeedbackExporter"
    )
    c.HTMLExporter.filters = _HTML_FILTERS
    # outputs too: no script, no widget, HTML through `clean_html`
    c.HTMLExporter.sanitize_html = True
    c.ExchangeFactory.release_feedback = (
        "autograder.nbgrader.feedback_return.ReturnFeedback"
    )
    c.ExportApp.plugin_class = "autograder.nbgrader.csv_exporter.SafeCsvExport"
