"""Known answers as cells, and the demo class made from them. Nothing of their file is run here but
by exec.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from multiples import ANSWERS

from autograder.authoring.demo_class import write_demo_class
from autograder.basics.errors import BadSuite, KitError
from autograder.course import Assignment, Course
from autograder.intake.find import find_submissions
from autograder.intake.notebook import read_submission
from autograder.intake.released_notebook import Release
from autograder.suite.known_answers import load_known_answers

MISTAKES = '''"""Mistakes of m1."""

import functools
import math

from autograder.suite import mistake

_FACTOR = 3
_OTHER = 99
raise_me = None


def _times(x, factor=_FACTOR):
    return x * factor  # shared


@mistake("double", hint="Twice is two "
    "times.")
def multiplies_by_three(x):
    """Uses a helper."""
    return _times(x)


@mistake("triple", hint="Ask for less.", function="triple")
@functools.cache
def never_stops(x):
    return x if x == 0 else 3 + never_stops(x - 1)


@mistake("Counter", hint="It counts down.")
class CountsDown:
    n = 0

    def add(self):
        self.n -= math.floor(1.5)
        return self.n

    def copy(self):
        return CountsDown()
'''
ALTERNATES = """from autograder.suite import alternate


@alternate("double")
def adds_to_itself(x):
    return x + x
"""


@pytest.fixture
def suite(assignment: Assignment) -> Path:
    assignment.suite.mkdir(parents=True)
    (assignment.suite / "mistakes.py").write_text(MISTAKES)
    (assignment.suite / "alternates.py").write_text(ALTERNATES)
    return assignment.suite


def run(source: str) -> dict[str, Any]:
    scope: dict[str, Any] = {}
    exec(source, scope)
    return scope


def test_answers_are_read_without_running_the_file(suite: Path) -> None:
    path = suite / "mistakes.py"
    path.write_text(MISTAKES.replace("raise_me = None", "raise RuntimeError"))
    answers = load_known_answers(path, {})
    assert [(a.question, a.name) for a in answers] == [
        ("double", "multiplies_by_three"),
        ("triple", "never_stops"),
        ("Counter", "CountsDown"),
    ]
    assert answers[0].hint == "Twice is two times."
    assert answers[0].is_mistake
    assert not load_known_answers(suite / "alternates.py", {})[0].is_mistake
    assert load_known_answers(suite / "none.py", {}) == []


def test_a_cell_holds_the_answer_and_what_it_needs(suite: Path) -> None:
    path = suite / "mistakes.py"
    cell = load_known_answers(path, {})[0].cell
    assert cell == (
        "_FACTOR = 3\n\n\ndef _times(x, factor=_FACTOR):\n    return x * factor  # shared\n\n\n"
        'def double(x):\n    """Uses a helper."""\n    return _times(x)\n'
    )
    assert run(cell)["double"](5) == 15


def test_an_answer_that_names_itself_keeps_its_name_and_is_bound(suite: Path) -> None:
    path = suite / "mistakes.py"
    recursive, counts_down = (
        answer.cell for answer in load_known_answers(path, {})[1:]
    )
    assert "@functools.cache\ndef never_stops" in recursive
    assert "mistake" not in recursive
    assert run(recursive)["triple"](4) == 12
    counter = run(counts_down)["Counter"]().copy()
    assert counter.add() == -1
    assert "import math" in counts_down
    assert "_times" not in counts_down


@pytest.mark.parametrize(
    "content",
    [
        "def broken(:",
        "@mistake('double', hint=HINT)\ndef f(x): pass",
        "@mistake('double', hint=' ')\ndef f(x): pass",
        "@mistake(hint='a')\ndef f(x): pass",
        "@mistake('double', hint='a', replace=('x',))\ndef f(): ...",
        "@mistake('double', hint='a', replace=('x * 2', 'x'))\ndef f(): return 1",
        "@mistake('half', hint='a', replace=('x * 2', 'x'))\ndef f(): ...",
        "@mistake('double', hint='a', replace=('x + x', 'x'))\ndef f(): ...",
        2 * "@mistake('double', hint='a', replace=('x * 2', 'x'))\ndef f(): ...\n",
    ],
)
def test_a_file_that_cannot_be_read_as_text_is_named(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / "mistakes.py"
    path.write_text(content)
    with pytest.raises(BadSuite, match=r"mistakes\.py"):
        load_known_answers(path, {"double": "def double(x):\n    return x * 2\n"})


# The demo class


def test_the_demo_class_is_the_same_every_time(
    course: Course, assignment: Assignment, suite: Path
) -> None:
    one = write_demo_class(course, assignment, course.root / "one")
    two = write_demo_class(course, assignment, course.root / "two")
    assert [s.about for s in one] == [s.about for s in two]
    assert [s.path.read_bytes() for s in one] == [s.path.read_bytes() for s in two]
    assert [s.student for s in one] == [
        f"student-{n:03d}" for n in range(1, len(one) + 1)
    ]
    assert 28 <= len(one) <= 36


def test_every_demo_submission_can_be_read(
    course: Course, assignment: Assignment, suite: Path, release: Release
) -> None:
    folder = course.root / "submitted"
    about = {
        one.student: one.about for one in write_demo_class(course, assignment, folder)
    }
    found = find_submissions(course, assignment, [])
    assert [one.student for one in found] == sorted(about)
    sources = {
        about[one.student]: {
            cell.id: cell.source
            for cell in read_submission(one, release, course.limits).cells
        }
        for one in found
    }
    perfect = sources["everything right"]
    assert perfect["double"] == ANSWERS["double"]
    for repaired in (
        "renamed the file",
        "lost the metadata",
        "left an older copy of a cell",
        "rewrote a check",
    ):
        assert sources[repaired] == perfect, repaired
    assert "NotImplementedError" in sources["nothing done"]["double"]
    assert "NotImplementedError" not in sources["only the first half done"]["double"]
    assert "NotImplementedError" in sources["only the first half done"]["Counter"]
    assert "_times" in sources["mistake multiplies_by_three"]["double"]
    assert "x + x" in sources["everything right, written differently"]["double"]
    assert "Counter" not in sources["deleted the last question and a given cell"]
    assert "def triple" in sources["merged two cells"]["double"]
    for timed in ("times everything", "installs packages"):
        for source in sources[timed].values():
            ast.parse(source)


def test_the_markers_of_the_answer_key_are_not_handed_in(
    course: Course, assignment: Assignment, suite: Path
) -> None:
    key = json.loads(assignment.solution.read_text())
    for cell in key["cells"]:
        if cell["metadata"]["attention_kit"]["role"] == "question":
            cell["source"] = cell["source"].replace(
                "    return", "    ### BEGIN SOLUTION\n    return"
            )
    assignment.solution.write_text(json.dumps(key))
    for student in write_demo_class(course, assignment, course.root / "demo"):
        assert "BEGIN SOLUTION" not in student.path.read_text()


def test_without_a_build_the_demo_says_what_to_run(
    course: Course, assignment: Assignment
) -> None:
    assignment.solution.unlink()
    with pytest.raises(KitError, match="autograder build m1"):
        write_demo_class(course, assignment, course.root / "demo")


def test_a_sample_says_what_it_deserves_and_nothing_else_does(tmp_path: Path) -> None:
    path = tmp_path / "samples.py"
    body = "def {}(x):\n    return x\n\n\n"
    registers = [
        '@sample("double", deserves="a")',
        '@sample("double", deserves=("a", "b"))',
        '@sample("double", deserves=())',
        '@alternate("double")',
    ]
    path.write_text(
        "".join(
            f"{register}\n{body.format(f'f{n}')}"
            for n, register in enumerate(registers)
        )
    )
    answers = load_known_answers(path, {})
    assert [answer.deserves for answer in answers] == [("a",), ("a", "b"), (), None]
    assert not any(answer.is_mistake for answer in answers)
    for register in (
        '@sample("double")',
        '@sample("double", deserves=3)',
        '@alternate("double", deserves="a")',
    ):
        path.write_text(f"{register}\n{body.format('f')}")
        with pytest.raises(BadSuite, match="line 1: f needs deserves="):
            load_known_answers(path, {})
