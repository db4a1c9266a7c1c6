"""A class to try the kit on: some thirty submissions of one assignment, the same ones every time.

Made from the answer key, the known answers, and the accidents that every real class has.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.course import Assignment, Course
from autograder.intake.built_json import read_built_json
from autograder.suite.known_answers import KnownAnswer, load_known_answers

CLASS_SIZE = 32
_MARKERS = ("### BEGIN SOLUTION", "### END SOLUTION")


@dataclass(frozen=True, slots=True)
class DemoStudent:
    """One made-up submission: whose it is, where it lies, and what is special about it."""

    student: str
    path: Path
    about: str


def write_demo_class(course: Course, assignment: Assignment, folder: Path) -> list[DemoStudent]:
    """Write the class to `folder` as `<student>/<assignment>/<assignment>.ipynb`.

    Raises:
        KitError: the assignment is not built.
    """
    key, release = _load(assignment.solution, assignment), _load(assignment.release, assignment)
    cells = {question: key.source(question) for question in key.questions()}
    mistakes = load_known_answers(assignment.suite / "mistakes.py", cells)
    alternates = load_known_answers(assignment.suite / "alternates.py", cells)
    made = list(_awkward(key, release)) + list(_right(key, alternates))
    made += _wrong(key, mistakes, CLASS_SIZE - len(made))
    students = []
    with FileTransaction(course.kept, f"`autograder demo {assignment.name}`") as files:
        for number, (about, notebook) in enumerate(made, start=1):
            student = f"student-{number:03d}"
            name = "my homework (final)" if about == "renamed the file" else assignment.name
            path = folder / student / assignment.name / f"{name}.ipynb"
            files.write(
                path, json.dumps(notebook.raw, indent=1, ensure_ascii=False) + "\n", to_disk=False
            )
            students.append(DemoStudent(student, path, about))
    return students


class _Sheet:
    """A notebook to scribble on."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    def copy(self) -> _Sheet:
        return _Sheet(copy.deepcopy(self.raw))

    @property
    def cells(self) -> list[dict[str, Any]]:
        return self.raw["cells"]  # type: ignore[no-any-return]

    def questions(self) -> list[str]:
        return [
            cell["metadata"]["attention_kit"]["name"]
            for cell in self.cells
            if _role(cell) == "question"
        ]

    def at(self, role: str, name: str = "") -> int:
        """Where the first cell of that role (and name) stands."""
        for place, cell in enumerate(self.cells):
            if _role(cell) == role and name in ("", cell["metadata"]["attention_kit"].get("name")):
                return place
        raise KitError(f"the demo class needs a {role} cell in the notebook")

    def answer(self, question: str, source: str) -> _Sheet:
        self.cells[self.at("question", question)]["source"] = source
        return self

    def source(self, question: str) -> str:
        return str(self.cells[self.at("question", question)]["source"])

    def add(self, source: str, after: int) -> _Sheet:
        cell: dict[str, Any] = {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
        }
        cell |= {"id": f"own-{after}", "source": source}
        self.cells.insert(after + 1, cell)
        return self


_Scene = Callable[[_Sheet, list[str]], _Sheet]


def _load(path: Path, assignment: Assignment) -> _Sheet:
    try:
        sheet = _Sheet(read_built_json(path))
        for cell in sheet.cells:
            lines = cell["source"].split("\n")
            cell["source"] = "\n".join(line for line in lines if line.strip() not in _MARKERS)
    except (OSError, ValueError) as error:
        raise KitError(
            f"{path} cannot be read ({error}): run `autograder build {assignment.name}`"
        ) from error
    return sheet


def _role(cell: dict[str, Any]) -> str:
    return str(cell["metadata"].get("attention_kit", {}).get("role", ""))


# Students who know the answers


def _right(key: _Sheet, alternates: list[KnownAnswer]) -> Iterator[tuple[str, _Sheet]]:
    yield "everything right", key.copy()
    if not alternates:
        return
    first, last = key.copy(), key.copy()
    for answer in reversed(alternates):
        first.answer(answer.question, answer.cell)
    for answer in alternates:
        last.answer(answer.question, answer.cell)
    yield "everything right, written differently", first
    yield "everything right, written differently again", last


def _wrong(key: _Sheet, mistakes: list[KnownAnswer], seats: int) -> Iterator[tuple[str, _Sheet]]:
    """One mistake each, spread evenly over the list; every fourth student makes a second one
    elsewhere.
    """
    if not mistakes:
        return
    step = max(1, len(mistakes) // max(1, seats))
    for seat in range(seats):
        first = mistakes[(seat * step) % len(mistakes)]
        sheet, about = key.copy().answer(first.question, first.cell), f"mistake {first.name}"
        if seat % 4 == 3:
            later = mistakes[(seat * step + len(mistakes) // 2) % len(mistakes)]
            if later.question != first.question:
                sheet, about = sheet.answer(later.question, later.cell), f"{about} and {later.name}"
        yield about, sheet


# Accidents


def _awkward(key: _Sheet, release: _Sheet) -> Iterator[tuple[str, _Sheet]]:
    questions = key.questions()
    if not questions:
        raise KitError("the demo class needs a notebook with a question")
    half = release.copy()
    for question in questions[: (len(questions) + 1) // 2]:
        half.answer(question, key.source(question))
    yield "nothing done", release.copy()
    yield "only the first half done", half
    for about, scene in _SCENES.items():
        yield about, scene(key.copy(), questions)


def _cell_after_first(source: str) -> _Scene:
    return lambda sheet, questions: sheet.add(source, sheet.at("question", questions[0]))


def _syntax_error(sheet: _Sheet, questions: list[str]) -> _Sheet:
    return sheet.answer(questions[-1], sheet.source(questions[-1]).rstrip() + "\n    print((\n")


def _endless_function(sheet: _Sheet, questions: list[str]) -> _Sheet:
    name = questions[len(questions) // 2]
    return sheet.answer(
        name, f"def {name}(*arguments, **keywords):\n    while True:\n        pass\n"
    )


def _deleted(sheet: _Sheet, questions: list[str]) -> _Sheet:
    del sheet.cells[sheet.at("question", questions[-1])]
    del sheet.cells[sheet.at("given")]
    return sheet


def _duplicated(sheet: _Sheet, questions: list[str]) -> _Sheet:
    place = sheet.at("question", questions[0])
    older = copy.deepcopy(sheet.cells[place])
    older["source"] = f"def {questions[0]}(*arguments):\n    return None  # first try\n"
    sheet.cells.insert(place, older)
    return sheet


def _merged(sheet: _Sheet, questions: list[str]) -> _Sheet:
    if len(questions) > 1:
        second = sheet.source(questions[1])
        del sheet.cells[sheet.at("question", questions[1])]
        sheet.answer(questions[0], sheet.source(questions[0]).rstrip() + "\n\n\n" + second)
    return sheet


def _lost_metadata(sheet: _Sheet, questions: list[str]) -> _Sheet:
    for cell in sheet.cells:
        cell["metadata"] = {}
        cell.pop("id", None)
    sheet.raw["nbformat_minor"] = 4
    return sheet


def _timed(sheet: _Sheet, questions: list[str]) -> _Sheet:
    sheet.answer(questions[0], "%%time\n" + sheet.source(questions[0]))
    return sheet.add(
        "took = %timeit -o -n 1 sum(range(10))\n%timeit -n 1 sum(range(10))", sheet.at("question")
    )


def _edited_check(sheet: _Sheet, questions: list[str]) -> _Sheet:
    sheet.cells[sheet.at("check")]["source"] = "print('as expected')"
    return sheet


_SCENES: dict[str, _Scene] = {
    "a syntax error in the last question": _syntax_error,
    "a cell that never ends": _cell_after_first("while True:\n    pass"),
    "a function that never ends": _endless_function,
    "calls sys.exit": _cell_after_first("import sys\n\nsys.exit(0)"),
    "calls os._exit": _cell_after_first("import os\n\nos._exit(0)"),
    # memory that is never touched: how it ends is no question of time
    "eats memory": _cell_after_first(
        "eaten = []\nwhile True:\n    eaten.append(bytes(50_000_000))"
    ),
    "prints a hundred thousand lines": _cell_after_first(
        "for _ in range(100_000):\n    print('still training', _)"
    ),
    "waits for input": _cell_after_first("name = input('your name: ')"),
    "imports from Colab": _cell_after_first(
        "from google.colab import drive\n\ndrive.mount('/content/drive')"
    ),
    "installs packages": _cell_after_first("!pip install einops\n%matplotlib inline\nfiles = !ls"),
    "times everything": _timed,
    "deleted the last question and a given cell": _deleted,
    "left an older copy of a cell": _duplicated,
    "merged two cells": _merged,
    "lost the metadata": _lost_metadata,
    "renamed the file": lambda sheet, questions: sheet,
    "rewrote a check": _edited_check,
}
