"""`check.py` runs a notebook as grading runs it: of thirty bent notebooks both say the same.

Each bend is a cell of the student's own in front of the questions, or another answer to `half`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tiny_course import TINY

from autograder.authoring.build import build_assignment, write_build
from autograder.authoring.student_package import write_release
from autograder.course import Assignment, Course, load_course
from autograder.grading.bench import Bench
from autograder.intake.reading import parse_notebook
from autograder.records.submission import FoundSubmission
from autograder.student_tools.notebook_run import describe_problem, run_steps
from autograder.student_tools.release_table import load_tables, match_to_tables
from autograder.suite.collection import SuiteQuestion

LIBRARY = '''\
# %% given="library" module="library"
def quarter(x):
    """x in four."""
    return x / 4

'''
STUB = 'def half(x):\n    raise NotImplementedError("half: write your answer here")'


@dataclass(frozen=True)
class Bend:
    """A change of the answered notebook.

    Attributes:
        own: a cell of the student's in front of the questions.
        half: the answer to `half`; "" for the answer key's.
        fails: the cells that do not run.
        lost: the questions whose function is not there.
    """

    own: str = ""
    half: str = ""
    fails: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


OWN = ("extra-1",)
BENT = {
    "nothing": Bend(),
    "a module beside the notebook": Bend("from helpers import scale", fails=OWN),
    "a module beside it by its path": Bend(
        "import sys\nsys.path.insert(0, '{folder}')\nimport helpers", fails=OWN
    ),
    "a data file": Bend("open('numbers.csv').read()", fails=OWN),
    "a data file by its path": Bend("open('{folder}/numbers.csv').read()", fails=OWN),
    "a listing of the folder": Bend(
        "import pathlib\n[*pathlib.Path('.').glob('*.csv')][0]", fails=OWN
    ),
    "a name of a check": Bend("shown_by_check", fails=OWN),
    "a name of a demo": Bend("shown", fails=OWN),
    "a name that was deleted": Bend("deleted_long_ago", fails=OWN),
    "an error": Bend("1 / 0", fails=OWN),
    "no Python": Bend("def (:", fails=OWN),
    "exit": Bend("exit()", fails=OWN),
    "sys.exit": Bend("import sys\nsys.exit(0)", fails=OWN),
    "the process ends": Bend("import os\nos._exit(0)", fails=OWN),
    "a cell without an end": Bend("while True:\n    pass", fails=OWN),
    "a cell that sleeps": Bend("import time\ntime.sleep(60)", fails=OWN),
    "another program": Bend("import subprocess\nsubprocess.run(['true'])", fails=OWN),
    "the network": Bend(
        "import socket\nsocket.create_connection(('192.0.2.1', 9))", fails=OWN
    ),
    "input": Bend("name = input('your name: ')", fails=OWN),
    "a shell command": Bend("!pip install something\nimport math"),
    "a magic": Bend("%matplotlib inline\n%time 1 + 1"),
    "Colab": Bend("from google.colab import drive\ndrive.mount('/content/drive')"),
    "the display": Bend("display(3)\nget_ipython().run_line_magic('time', '1')"),
    "await": Bend("import asyncio\nawait asyncio.sleep(0)"),
    "a false module of the course": Bend(
        "import sys, types\nsys.modules['tiny_library'] = types.SimpleNamespace(quarter=print)"
    ),
    "my_course": Bend("from my_course import quarter"),
    "another name": Bend(half="def mine(x):\n    return x / 2\nhalf = mine"),
    "a lambda": Bend(half="half = lambda x: x / 2"),
    "deleted again": Bend(
        half="def half(x):\n    return x / 2\ndel half", lost=("half",)
    ),
    "another function": Bend(half="def halve(x):\n    return x / 2", lost=("half",)),
    "an answer that fails": Bend(
        half="1 / 0\ndef half(x):\n    return x / 2", fails=("half",), lost=("half",)
    ),
    "a stub": Bend(half=STUB),
    "two imports": Bend(
        half="from tiny_library import quarter\ndef half(x):\n    return quarter(2 * x)"
    ),
}


@pytest.fixture
def course(course: Course, tiny: Assignment) -> Course:
    """The course, with a library in a module and short limits."""
    tiny.source.write_text(
        TINY.replace(
            '# %% question="double"', LIBRARY + '# %% question="double"'
        ).replace(
            "assert double(3) == 6",
            "shown_by_check = 6\nassert double(3) == shown_by_check",
        )
    )
    settings = tiny.root / "course.toml"
    settings.write_text(f"{settings.read_text()}\n[limits]\ncell_seconds = 0.5\n")
    return load_course(tiny.root)


def bend(notebook: dict[str, Any], change: Bend, folder: Path) -> None:
    cells = notebook["cells"]
    half = next(cell for cell in cells if cell["id"] == "question-half")
    if change.half:
        half["source"] = change.half
    if change.own:
        place = next(
            n for n, cell in enumerate(cells) if cell["id"] == "question-double"
        )
        source = change.own.replace("{folder}", str(folder))
        cell = {
            "cell_type": "code",
            "id": "own",
            "metadata": {},
            "outputs": [],
            "source": source,
        }
        cells.insert(place, cell | {"execution_count": None})


def said_by_check(folder: Path, path: Path) -> Bend:
    """The cells that fail and the functions that are lost, as `check.py` finds them."""
    tables = load_tables([folder])
    matched = match_to_tables(
        tables, parse_notebook(path.read_bytes(), path.name), path
    )
    fails, defined = [], set[str]()
    for step, reply in run_steps(folder / "check.py", folder, matched):
        if step is None:
            defined = set(reply["defined"])
        elif not step.check_of and describe_problem(reply):
            fails.append(step.id)
    return Bend(fails=tuple(fails), lost=tuple(sorted({"double", "half"} - defined)))


def said_by_grader(bench: Bench, folder: Path, path: Path) -> Bend:
    """The same, as grading finds them."""
    graded = bench.grader.grade(bench.clients[0], FoundSubmission("ada", path, folder))
    assert graded.result is not None, graded.problem
    fails = [
        cell.id
        for cell in graded.result.cells
        if cell.outcome in ("error", "timeout", "crashed")
    ]
    lost = [
        question.name
        for question in graded.result.questions
        if all(
            test.outcome == "missing" and "not defined" in test.message
            for test in question.tests
        )
    ]
    return Bend(fails=tuple(fails), lost=tuple(sorted(lost)))


def test_both_run_every_bent_notebook_alike(
    course: Course,
    tiny: Assignment,
    questions: Mapping[str, SuiteQuestion],
    tmp_path: Path,
) -> None:
    assert len(BENT) >= 30
    built = build_assignment(course, tiny, questions)
    write_build(tiny, built)
    folder = tmp_path / "release"
    write_release(course, tiny, questions, folder)
    (folder / "helpers.py").write_text("scale = 2")
    (folder / "numbers.csv").write_text("1,2")
    key = json.loads(built.solution_bytes)
    key["cells"] = [cell for cell in key["cells"] if not cell["id"].startswith("guide")]
    path = folder / "tiny.ipynb"
    expected, by_check, by_grader = {}, {}, {}
    with Bench(course, tiny) as bench:
        for name, change in BENT.items():
            notebook = json.loads(json.dumps(key))
            bend(notebook, change, folder)
            path.write_text(json.dumps(notebook))
            expected[name] = Bend(fails=change.fails, lost=change.lost)
            by_check[name] = said_by_check(folder, path)
            by_grader[name] = said_by_grader(bench, folder, path)
    assert by_check == expected
    assert by_grader == expected
