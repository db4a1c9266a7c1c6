"""`check.py`, as students get it, and the grader read alike a notebook that was bent in thirty
ways.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from autograder.authoring.build import build_assignment, write_build
from autograder.authoring.student_package import write_release
from autograder.basics.definitions import defined_names
from autograder.basics.errors import UnreadableSubmission
from autograder.course import Assignment, Course
from autograder.intake.cell_text import CellText
from autograder.intake.notebook import read_submission
from autograder.intake.released_notebook import Release, load_release
from autograder.records.submission import FoundSubmission, Submission
from autograder.suite.collection import SuiteQuestion

Cells = list[dict[str, Any]]
IMPORTS, DOUBLE, CHECK_1, CHECK_2, HALF, CHECK_HALF, DEMO, WHY = 1, 2, 3, 4, 5, 6, 7, 8
PROMPT = "Why is half(double(x)) the same as x?"
BLANK = f"{PROMPT}\n\n*Your answer here.*"
STUB = (
    'def half(x):\n    if x == 0:\n        raise NotImplementedError("half: write your '
    'answer here")\n'
    '    raise NotImplementedError("half: write your answer here")'
)
NOWHERE = "nowhere"


def code(source: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": "own",
        "metadata": {},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def text(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": "own", "metadata": {}, "source": source}


def forget(*places: int) -> Callable[[Cells], None]:
    """These cells lose their metadata."""

    def change(cells: Cells) -> None:
        for place in places or range(len(cells)):
            cells[place]["metadata"] = {}

    return change


def write(place: int, source: str) -> Callable[[Cells], None]:
    return lambda cells: cells[place].update(source=source)


def both(*changes: Callable[[Cells], object]) -> Callable[[Cells], None]:
    def change(cells: Cells) -> None:
        for each in changes:
            each(cells)

    return change


def copy_of_half(place: int) -> Callable[[Cells], None]:
    return lambda cells: cells.insert(place, copy.deepcopy(cells[HALF]))


def blank_with(place: int, own: dict[str, Any]) -> Callable[[Cells], None]:
    """The prompt as released, and a cell of one's own in this place."""
    return both(write(WHY, BLANK), lambda cells: cells.insert(place, own))


def merge(cells: Cells) -> None:
    """The cell of `half` goes into that of `double`."""
    cells[DOUBLE]["source"] = (
        "".join(cells[DOUBLE]["source"]) + "\n\n" + "".join(cells[HALF]["source"])
    )
    del cells[HALF]


def split(cells: Cells) -> None:
    """A helper of `half` gets a cell of its own, with a copy of the metadata, as Jupyter splits a
    cell.
    """
    cells[HALF]["source"] = "def half(x):\n    return helper(x)"
    cells.insert(
        HALF,
        {**copy.deepcopy(cells[HALF]), "source": "def helper(x):\n    return x / 2"},
    )


BENT: dict[str, tuple[Callable[[Cells], object], dict[str, int | str]]] = {
    "as answered": (lambda cells: None, {}),
    "a question's cell deleted": (lambda cells: cells.pop(HALF), {"half": NOWHERE}),
    "all metadata gone": (forget(), {}),
    "metadata gone and a stub": (both(write(HALF, STUB), forget()), {"half": 6}),
    "a stub": (write(HALF, STUB), {"half": 6}),
    "half of the stub answered": (
        write(HALF, STUB.replace("raise Not", "return 0  # Not", 1)),
        {"half": 6},
    ),
    "a name for a function": (write(HALF, "mine = lambda x: x / 2\nhalf = mine"), {}),
    "a name for a function without metadata": (
        both(write(HALF, "mine = lambda x: x / 2\nhalf = mine"), forget(HALF)),
        {},
    ),
    "a lambda": (write(HALF, "half = lambda x: x / 2"), {}),
    "an async function": (write(HALF, "async def half(x):\n    return x / 2"), {}),
    "a copy below, the first a stub": (
        both(copy_of_half(HALF + 1), write(HALF, STUB)),
        {},
    ),
    "a copy above, the last a stub": (
        both(copy_of_half(HALF), write(HALF + 1, STUB)),
        {},
    ),
    "an answer in a cell of one's own below the stub": (
        both(
            write(HALF, STUB),
            lambda cells: cells.append(code("def half(x):\n    return x / 2")),
        ),
        {},
    ),
    "an answer in a cell of one's own, its cell deleted": (
        both(
            lambda cells: cells.pop(HALF),
            lambda cells: cells.append(code("def half(x):\n    return x / 2")),
        ),
        {},
    ),
    "a magic above the answer": (
        write(HALF, "%%time\ndef half(x):\n    return x / 2"),
        {},
    ),
    "a cell of another language": (write(HALF, "%%bash\necho half"), {}),
    "no Python": (write(HALF, "def half(x:\n    return x / 2"), {}),
    "a text cell": (
        lambda cells: cells[HALF].update(cell_type="markdown"),
        {"half": NOWHERE},
    ),
    "a raw cell": (
        lambda cells: cells[HALF].update(cell_type="raw"),
        {"half": NOWHERE},
    ),
    "two questions in one cell": (merge, {}),
    "a question in two cells": (split, {}),
    "the function renamed": (write(HALF, "def halve(x):\n    return x / 2"), {}),
    "cells in another order": (lambda cells: cells.reverse(), {}),
    "locked cells changed": (
        both(
            write(IMPORTS, "import math, cmath"),
            write(CHECK_1, "assert True"),
            lambda cells: cells.pop(CHECK_2),
        ),
        {},
    ),
    "a written answer as released": (write(WHY, BLANK), {"why": 9}),
    "a written answer's cell deleted": (lambda cells: cells.pop(WHY), {"why": NOWHERE}),
    "a written answer below its prompt": (
        blank_with(WHY + 1, text("It is the mean.")),
        {},
    ),
    "a written answer under another heading": (
        blank_with(HALF, text("It is the mean.")),
        {"why": 10},
    ),
    "a written answer in a comment": (
        blank_with(HALF, code("# It is the mean of the two.")),
        {"why": 10},
    ),
    "a written answer's cell made code": (
        lambda cells: cells[WHY].update(
            cell_type="code", source="# It is the mean of the two."
        ),
        {},
    ),
    "a written answer without its prompt": (write(WHY, "It is the mean."), {}),
    "a written answer without metadata": (
        both(write(WHY, f"{PROMPT}\n\nIt is the mean."), forget(WHY)),
        {},
    ),
    "a picture as the answer": (
        both(
            write(WHY, BLANK),
            lambda cells: cells[WHY].update(
                attachments={"page.png": {"image/png": "iVBORw0KGgo="}}
            ),
        ),
        {},
    ),
}
"""Each bend, and what is not answered after it: the question or written answer → its cell, counted
from 1.
"""

ENCODED: dict[str, Callable[[str], bytes]] = {
    "CRLF": lambda notebook: notebook.replace("\n", "\r\n").encode(),
    "CRLF in the cells": lambda notebook: notebook.replace("\\n", "\\r\\n").encode(),
    "BOM": lambda notebook: b"\xef\xbb\xbf" + notebook.encode(),
    "UTF-16": lambda notebook: notebook.encode("utf-16"),
    "Windows-1252": lambda notebook: notebook.replace("Twice x", "Twice × x").encode(
        "cp1252"
    ),
    "format 3": lambda notebook: json.dumps(
        {"worksheets": [{"cells": json.loads(notebook)["cells"]}]}
    ).encode(),
    "a merge conflict": lambda notebook: notebook.replace(
        "{", "{\n<<<<<<< a\n>>>>>>> b\n", 1
    ).encode(),
    "cut off": lambda notebook: notebook[:100].encode(),
}
"""Ways to save the answered notebook. The last two cannot be read."""

LOOK = """
import contextlib, io, json, runpy, sys
from pathlib import Path
check = Path(sys.argv[1])
sys.meta_path.insert(0, runpy.run_path(str(check))["CarriedModules"]())
from autograder.student_tools import self_check
self_check.run_steps = lambda *arguments: iter(())
said = {}
for path in sorted(check.parent.glob("*/tiny.ipynb")):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        self_check.main([str(path)], check)
    said[path.parent.name] = printed.getvalue()
assert "check.py" in self_check.main.__code__.co_filename
print(json.dumps(said))
"""
"""Looks at every notebook with what `check.py` carries, and runs none."""


@pytest.fixture
def bent(
    course: Course,
    tiny: Assignment,
    questions: Mapping[str, SuiteQuestion],
    tmp_path: Path,
) -> Path:
    """The release, with a folder for every bent notebook."""
    built = build_assignment(course, tiny, questions)
    write_build(tiny, built)
    write_release(course, tiny, questions, to := tmp_path / "release")
    notebook = json.loads(built.solution_bytes)
    notebook["cells"] = [
        cell for cell in notebook["cells"] if not cell["id"].startswith("guide")
    ]
    for name, (change, _) in BENT.items():
        changed = copy.deepcopy(notebook)
        change(changed["cells"])
        (to / name).mkdir()
        (to / name / "tiny.ipynb").write_text(json.dumps(changed))
    for name, encode in ENCODED.items():
        (to / name).mkdir()
        (to / name / "tiny.ipynb").write_bytes(
            encode(json.dumps(notebook, indent=1, ensure_ascii=False))
        )
    return to


def open_by_check(said: str) -> dict[str, int | str]:
    """The questions and written answers of which `check.py` says that they are not answered, and in
    which cell.
    """
    lines = re.findall(
        r"^  - (?:written answer )?(\w+): (.*)",
        said.partition("Notes")[0],
        re.MULTILINE,
    )
    cells = {
        name: re.search(r"in cell (\d+)", line.partition(";")[0])
        for name, line in lines
    }
    return {name: int(cell[1]) if cell else NOWHERE for name, cell in cells.items()}


def open_by_grader(submission: Submission, release: Release) -> dict[str, int | str]:
    """The same by what the grader runs, and gives to a person to read."""
    missing: dict[str, int | str] = {}
    for question in release.questions:
        cells = [
            cell
            for cell in submission.cells
            if question.name in defined_names(cell.source)
        ]
        cells = cells or [cell for cell in submission.cells if cell.id == question.id]
        if not cells:
            missing[question.name] = NOWHERE
        elif CellText(cells[-1].source).is_unfinished(question.text):
            missing[question.name] = int(cells[-1].place) + 1
    answers = {answer.id: answer for answer in submission.written}
    places = [
        place
        for place, cell in enumerate(submission.handed_in, start=1)
        if cell.id == "written_why"
    ]
    answer = answers.get("written_why")
    if answer is None or answer.blank or "left as released" in answer.text:
        missing["why"] = places[0] if places else NOWHERE
    return missing


def test_both_say_the_same_of_every_bent_notebook(
    bent: Path, tiny: Assignment, course: Course
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK, str(bent / "check.py")],
        cwd=bent,
        capture_output=True,
        text=True,
        check=True,
    )
    said: dict[str, str] = json.loads(done.stdout)
    assert len(said) == len(BENT) + len(ENCODED)
    released = load_release(tiny)
    expected = {name: missing for name, (_, missing) in BENT.items()} | {
        name: {} for name in [*ENCODED][:-2]
    }
    by_check, by_grader = {}, {}
    for name in expected:
        found = FoundSubmission("ada", bent / name / "tiny.ipynb", bent)
        by_check[name] = open_by_check(said[name])
        by_grader[name] = open_by_grader(
            read_submission(found, released, course.limits), released
        )
    assert by_check == expected
    assert by_grader == expected
    for name in [*ENCODED][-2:]:
        with pytest.raises(UnreadableSubmission) as refused:
            read_submission(
                FoundSubmission("ada", bent / name / "tiny.ipynb", bent),
                released,
                course.limits,
            )
        assert said[name].endswith(f"Not ready: {refused.value}\n")
