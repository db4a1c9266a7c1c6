"""Results for Gradescope, and the command that its autograder runs.

`python -I -m autograder.outputs.gradescope ASSIGNMENT COURSE` grades /autograder/submission and writes
/autograder/results/results.json. A submission that cannot be graded gets a page that says why. Where the container
is to blame it writes nothing and fails: Gradescope then tells the staff, and nobody gets a 0 for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autograder.course import COURSE_FILE, Assignment, Course, load_course
from autograder.errors import IsolationUnavailable
from autograder.intake.release import written_points
from autograder.model import QuestionResult, Result
from autograder.outputs.outcome_words import (
    CELL_WORDS,
    COULD_NOT_BE_GRADED,
    LONGEST_MESSAGE,
    WITHOUT_WALLS,
    question_text,
)
from autograder.points import is_full, shown
from autograder.results import Tell, read_results, read_timing
from autograder.text import clean, one_line, shorten
from autograder.whole_files import write_whole

BASE = Path("/autograder")
_LEFTOVERS = {".ipynb_checkpoints", "__MACOSX"}  # folders that editors and archivers leave


def results_json(result: Result, note: str = "", *, written: float = 0.0, visibility: str = "visible") -> str:
    """The result as Gradescope reads it: one entry a question, all text plain.

    Args:
        note: heads the page.
        written: points of written answers, which a person gives and which are not in this score.
        visibility: of each question, as Gradescope names it.
    """
    lines = [note] if note else []
    if written:
        lines.append(f"Not in this score: {shown(written)} points of written answers, which a person gives.")
    if result.walls == "none":
        lines.append(" ".join(WITHOUT_WALLS))
    for cell in result.cells:
        if cell.outcome != "ok" or cell.message:
            message = f": {shorten(one_line(cell.message), LONGEST_MESSAGE)}" if cell.message else ""
            lines.append(f"Cell {one_line(cell.id)} {CELL_WORDS[cell.outcome]}{message}")
    entries = [_entry(question, result) | {"visibility": visibility} for question in result.questions]
    return _json(result.score, "\n".join(lines), entries)


def problem_json(problem: str) -> str:
    """What a student reads whose submission could not be graded."""
    return _json(0.0, f"{COULD_NOT_BE_GRADED}: {shorten(clean(problem), LONGEST_MESSAGE)}", [])


def _json(score: float, output: str, tests: list[dict[str, Any]]) -> str:
    page = {
        "score": score,
        "output": output,
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
    }
    return json.dumps(page, indent=1) + "\n"


def _entry(question: QuestionResult, result: Result) -> dict[str, Any]:
    return {
        "name": one_line(question.name),
        "name_format": "text",
        "score": question.score,
        "max_score": question.max_score,
        **_status(question),
        "output": question_text(question, result),
        "output_format": "text",
    }


def _status(question: QuestionResult) -> dict[str, str]:
    """Gradescope shows a question as passed or failed; one with a part of its points is left without, and its points
    speak."""
    if is_full(question.score, question.max_score):
        return {"status": "passed"}
    return {} if question.score > 0 else {"status": "failed"}


def find_notebook(submission: Path, assignment: str) -> Path:
    """The notebook that was handed in.

    Raises:
        ValueError: none, or several and none of them is called like the assignment.
    """
    notebooks = (p for p in sorted(submission.glob("**/*.ipynb")) if p.is_file() and not p.is_symlink())
    found = [path for path in notebooks if not _LEFTOVERS.intersection(path.parts)]
    named = [path for path in found if path.name == f"{assignment}.ipynb"]
    if len(found) == 1 or len(named) == 1:
        return (named or found)[0]
    there = ", ".join(one_line(path.name) for path in found[:10]) or "no notebook"
    raise ValueError(f"Hand in {assignment}.ipynb; there is {there}.")


def grade_submission(assignment: str, course: Path, base: Path, command: Sequence[str], tell: Tell) -> str:
    """Grade what lies in `base/submission` and return the text of results.json.

    Strict walls first. Where the container does not allow them, the best that stand, and the page says so.

    Raises:
        IsolationUnavailable: no walls stand, and the instructor has not accepted that.
    """
    try:
        notebook = find_notebook(base / "submission", assignment)
    except ValueError as error:
        return problem_json(str(error))
    settings = load_course(course) if (course / COURSE_FILE).is_file() else Course(course)
    written, visibility = written_points(Assignment(assignment, course)), settings.gradescope.visibility
    last = ""
    modes = ["strict", "auto"] + (["none"] if os.environ.get("AUTOGRADER_ALLOW_NO_ISOLATION") == "1" else [])
    for isolation in modes:
        with tempfile.TemporaryDirectory() as out:
            asked = [*command, "grade", assignment, str(notebook), "--isolation", isolation, "--force", "--out", out]
            done = subprocess.run(asked, cwd=course, capture_output=True, text=True, errors="replace", check=False)
            results = read_results(Path(out), assignment, tell)
            problems = [entry.problem for entry in read_timing(Path(out), assignment, tell) if entry.problem]
        if results:
            return results_json(results[0], _note(results[0]), written=written, visibility=visibility)
        if problems:
            return problem_json(problems[0])
        last = clean(done.stderr).strip()[-LONGEST_MESSAGE:]
        tell(f"isolation {isolation}: {last}")
    raise IsolationUnavailable(f"this container cannot grade: {last}")


def _note(result: Result) -> str:
    if result.walls in ("strict", "none"):  # results_json has words for "none"
        return ""
    return f"The strict walls do not stand in this container; graded behind weaker ones ({one_line(result.isolation)})."


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def main(arguments: Sequence[str]) -> int:
    """Called by the bundle's run_autograder."""
    assignment, course = arguments
    command = [str(Path(sys.executable).parent / "autograder")]
    try:
        text = grade_submission(assignment, Path(course), BASE, command, _tell)
    except IsolationUnavailable as error:
        print(error)
        return error.exit_status
    write_whole(BASE / "results" / "results.json", text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
