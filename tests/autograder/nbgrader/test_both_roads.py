"""`nbgrader autograde`, and `autograder grade` with its export, leave the same gradebook however a
file was saved.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from awkward import AWKWARD, BLANK
from courses import HIDDEN_INI, on_stderr
from nbgrader_course import HALF_ANSWERED, TinyCourse, notebook, release_cells, write

from autograder.grading.request import GradeRequest
from autograder.grading.run import grade_command
from autograder.intake.find import find_submissions
from autograder.nbgrader import warm_graders
from autograder.nbgrader.gradebook import open_gradebook
from autograder.records.model import Graded
from autograder.records.results import read_results

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

# half(x) is x // 2 in all of them: right for even numbers
SUITE = {
    "pytest.ini": HIDDEN_INI.read_text(encoding="utf-8"),
    "tiny/test_double.py": (
        "from autograder.suite import assert_equal, points\n\n\n"
        "@points(3)\ndef test_doubles(student):\n    assert_equal(student.double(4), 8)\n"
    ),
    "tiny/test_half.py": (
        "from autograder.suite import assert_equal, points\n\n\n"
        "@points(1)\ndef test_halves_an_even_number(student):\n    "
        "assert_equal(student.half(4), 2)\n\n\n"
        "@points(2)\ndef test_halves_an_odd_number(student):\n    "
        "assert_equal(student.half(3), 1.5)\n"
    ),
}
STUDENTS = {
    f"student-{number:02}": name for number, name in enumerate((*AWKWARD, *BLANK))
}


@pytest.fixture
def handed_in(tiny: TinyCourse) -> TinyCourse:
    """A real suite and answer key, and one student for each odd notebook."""
    for name, text in SUITE.items():
        (tiny.root / "tests" / "hidden" / name).write_text(text, encoding="utf-8")
    key = release_cells()
    key[2].source, key[4].source = (
        "def double(x):\n    return 2 * x",
        HALF_ANSWERED.replace("//", "/"),
    )
    write(tiny.root / "solutions" / "tiny" / "tiny.ipynb", notebook(key))
    for student, name in STUDENTS.items():
        content = (
            AWKWARD[name] if student in list(STUDENTS)[: len(AWKWARD)] else BLANK[name]
        )
        tiny.hand_in(student).write_bytes(content)
    return tiny


def _rows(tiny: TinyCourse) -> dict[str, tuple[dict[str, object], dict[str, object]]]:
    """Student → their grades and comments, as the gradebook has them."""
    rows: dict[str, tuple[dict[str, object], dict[str, object]]] = {}
    with open_gradebook(tiny.course) as gradebook:
        for submitted in gradebook.notebook_submissions("tiny", "tiny"):
            grades: dict[str, object] = {
                g.name: (g.auto_score, g.manual_score, g.needs_manual_grade)
                for g in submitted.grades
            }
            rows[submitted.student.id] = (
                grades,
                {c.name: c.auto_comment for c in submitted.comments},
            )
    return rows


def _notebooks(tiny: TinyCourse) -> dict[str, str]:
    """Student → the notebook that a person grades, as it lies in autograded/."""
    paths = (tiny.root / "autograded").glob("*/tiny/tiny.ipynb")
    return {path.parts[-3]: path.read_text(encoding="utf-8") for path in paths}


def test_they_agree_on_every_awkward_notebook(
    handed_in: TinyCourse, empty_gradebook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One grading for both: it depends on nothing but the file, which must be the same one."""
    course, assignment, results = (
        handed_in.course,
        handed_in.course.assignment("tiny"),
        handed_in.root / "results",
    )
    graded = grade_command(GradeRequest(course, assignment, results=results))
    assert [result.score for result in graded.results] == [1.0] * len(STUDENTS)
    assert handed_in.export_gradebook()
    exported, notebooks = _rows(handed_in), _notebooks(handed_in)

    shutil.copy(empty_gradebook, handed_in.root / "gradebook.db")
    shutil.rmtree(handed_in.root / "autograded")
    stored = read_results(results, assignment.name, on_stderr)
    made = {
        one: Graded(one.student, result)
        for one, result in zip(
            find_submissions(course, assignment, ()), stored, strict=True
        )
    }
    monkeypatch.setattr(
        warm_graders, "grade", lambda course, assignment, found: made[found]
    )
    monkeypatch.setattr(warm_graders, "warm_up", lambda course, assignment: None)
    handed_in.autograde()
    one = _rows(handed_in)
    assert one == exported
    assert _notebooks(handed_in) == notebooks
    written = {student: grades["written_why"] for student, (grades, _) in one.items()}
    answered = list(STUDENTS)[: len(AWKWARD)]
    assert written == {
        s: (None, None, True) if s in answered else (0.0, None, False) for s in STUDENTS
    }
