"""nbgrader's settings for this course. docs/nbgrader.md says what is replaced and why.

nbgrader reads this file for every command, from the course folder; the formgrader reads it when Jupyter starts.
"""

import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
if shutil.which("alembic") is None:  # nbgrader runs it by name when it makes a database
    os.environ["PATH"] = os.environ.get("PATH", "") + os.pathsep + str(Path(sys.executable).parent)

from autograder.course import load_course  # noqa: E402
from autograder.nbgrader.mirror import FOLDER, mirror  # noqa: E402
from autograder.nbgrader.names import course_id  # noqa: E402

c = get_config()  # noqa: F821  (nbgrader defines it)
mirror(ROOT)

# Folders. nbgrader's sources are a mirror of source/, which nbgrader cannot read itself.
c.CourseDirectory.root = str(ROOT)
c.CourseDirectory.course_id = course_id(load_course(ROOT).about.name)
c.CourseDirectory.source_directory = str(FOLDER)
c.CourseDirectory.release_directory = "assignments"
c.CourseDirectory.solution_directory = "solutions"
c.CourseDirectory.submitted_directory = "submitted"
c.CourseDirectory.autograded_directory = "autograded"
c.CourseDirectory.feedback_directory = "feedback"
c.CourseDirectory.db_url = f"sqlite:///{ROOT / 'gradebook.db'}"

# The exchange: a folder of the course, which works for one account. For a class on one machine, name a folder that
# everybody can write to, for example "/srv/nbgrader/exchange", here and in each student's nbgrader_config.py.
c.Exchange.root = str(ROOT / "exchange")

# What students get: built by `autograder build`, or by nbgrader's own steps where there is no hidden suite.
c.GenerateAssignment.preprocessors = ["autograder.nbgrader.source.MakeRelease"]
c.GenerateAssignment.exporter_class = "autograder.nbgrader.source.BuiltExporter"
c.GenerateAssignment.force = True  # the release is committed, and so always there
c.GenerateSolution.preprocessors = ["autograder.nbgrader.source.MakeSolution"]
c.GenerateSolution.exporter_class = "autograder.nbgrader.source.BuiltExporter"
c.GenerateSolution.force = True

# Grading: the submission is made whole, graded through the sandbox, and its scores are saved at once.
c.Autograde.pre_convert_hook = "autograder.nbgrader.hooks.before_autograde"
c.Autograde.exporter_class = "autograder.nbgrader.repair.SubmissionExporter"
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "autograder.nbgrader.grading.GradeInSandbox",
    "autograder.nbgrader.grading.ExecuteWithoutSuite",
    "nbgrader.preprocessors.IgnorePattern",
    "nbgrader.preprocessors.LimitOutput",
    "autograder.nbgrader.grading.SaveScores",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.AssignLatePenalties.plugin_class = "autograder.nbgrader.late.CourseLatePolicy"  # [late] in course.toml

# Feedback and export.
c.GenerateFeedback.preprocessors = [
    "autograder.nbgrader.feedback.HideFromStudents",
    "autograder.nbgrader.feedback.UpToDatePenalty",
    "autograder.nbgrader.feedback.GradesAtOnce",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
c.GenerateFeedback.exporter_class = "autograder.nbgrader.feedback.FeedbackExporter"
c.HTMLExporter.filters = {"markdown2html": "autograder.nbgrader.feedback.markdown_to_html"}
c.ExportApp.plugin_class = "autograder.nbgrader.export.SafeCsvExport"
