"""Write a demo class: 32 submissions of one assignment, equal in every run.

They are made from the answer key, the known answers, and accidents that every real class has.
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
    """A made-up student: the submission's path, and a description of its content."""

    student: str
    path: Path
    about: str


def write_demo_class(
    course: Course, assignment: Assignment, folder: Path
) -> list[DemoStudent]:
    """Write the class to `folder` as `<student>/<assignment>/<assignment>.ipynb`.

    Raises:
        KitError: the assignment is not built.
    """
    key, release = (
        _load(assignment.solution, assignment),
        _load(assignment.release, assignment),
    )
    cells = {question: key.source(question) for question in key.questions()}
    known_mistakes = load_known_answers(assignment.suite / "mistakes.py", cells)
    # a demo class holds no real student's answer
    mistakes = [mistake for mistake in known_mistakes if not mistake.is_students]
    alternates = load_known_answers(assignment.suite / "alternates.py", cells)
    submissions = [
        *_awkward_submissions(key, release),
        *_right_submissions(key, alternates),
    ]
    submissions += _wrong_submissions(key, mistakes, CLASS_SIZE - len(submissions))
    students = []
    with FileTransaction(course.kept, f"`autograder demo {assignment.name}`") as files:
        for number, (about, notebook) in enumerate(submissions, start=1):
            student = f"student-{number:03d}"
            name = (
                "my homework (final)"
                if about == "renamed the file"
                else assignment.name
            )
            path = folder / student / assignment.name / f"{name}.ipynb"
            text = json.dumps(notebook.raw, indent=1, ensure_ascii=False) + "\n"
            files.write(path, text, to_disk=False)
            students.append(DemoStudent(student, path, about))
    return students


class _Sheet:
    """A notebook that can be edited."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    def copy(self) -> _Sheet:
        return _Sheet(copy.deepcopy(self.raw))

    @property
    def cells(self) -> list[dict[str, Any]]:
        return self.raw["cells"]  # type: ignore[no-any-return]

    def questions(self) -> list[str]:
        kits = map(_kit_metadata, self.cells)
        return [kit["name"] for kit in kits if kit.get("role") == "question"]

    def index(self, role: str, name: str = "") -> int:
        """The index of the first cell with this role and name."""
        for index, cell in enumerate(self.cells):
            kit = _kit_metadata(cell)
            if kit.get("role") == role and name in ("", kit.get("name")):
                return index
        raise KitError(f"the demo class needs a {role} cell in the notebook")

    def answer(self, question: str, source: str) -> _Sheet:
        self.cells[self.index("question", question)]["source"] = source
        return self

    def source(self, question: str) -> str:
        return str(self.cells[self.index("question", question)]["source"])

    def insert_after(self, index: int, source: str) -> _Sheet:
        cell: dict[str, Any] = {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "id": f"own-{index}",
            "source": source,
        }
        self.cells.insert(index + 1, cell)
        return self


_Scene = Callable[[_Sheet, list[str]], _Sheet]


def _load(path: Path, assignment: Assignment) -> _Sheet:
    try:
        sheet = _Sheet(read_built_json(path))
        for cell in sheet.cells:
            lines = cell["source"].split("\n")
            cell["source"] = "\n".join(
                line for line in lines if line.strip() not in _MARKERS
            )
    except (OSError, ValueError) as error:
        raise KitError(
            f"{path} cannot be read ({error}): run `autograder build {assignment.name}`"
        ) from error
    return sheet


def _kit_metadata(cell: dict[str, Any]) -> dict[str, str]:
    metadata: dict[str, dict[str, str]] = cell["metadata"]
    return metadata.get("attention_kit", {})


# Students who know the answers


def _right_submissions(
    key: _Sheet, alternates: list[KnownAnswer]
) -> Iterator[tuple[str, _Sheet]]:
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


def _wrong_submissions(
    key: _Sheet, mistakes: list[KnownAnswer], students: int
) -> Iterator[tuple[str, _Sheet]]:
    """Submissions with one mistake, chosen evenly from the list; every fourth has a second mistake
    in another question.
    """
    if not mistakes:
        return
    step = max(1, len(mistakes) // max(1, students))
    for student in range(students):
        first = mistakes[(student * step) % len(mistakes)]
        sheet = key.copy().answer(first.question, first.cell)
        about = f"mistake {first.name}"
        if student % 4 == 3:
            second = mistakes[(student * step + len(mistakes) // 2) % len(mistakes)]
            if second.question != first.question:
                sheet.answer(second.question, second.cell)
                about = f"{about} and {second.name}"
        yield about, sheet


# Accidents


def _awkward_submissions(key: _Sheet, release: _Sheet) -> Iterator[tuple[str, _Sheet]]:
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
    return lambda sheet, questions: sheet.insert_after(
        sheet.index("question", questions[0]), source
    )


def _syntax_error(sheet: _Sheet, questions: list[str]) -> _Sheet:
    source = sheet.source(questions[-1]).rstrip()
    return sheet.answer(questions[-1], f"{source}\n    print((\n")


def _endless_function(sheet: _Sheet, questions: list[str]) -> _Sheet:
    name = questions[len(questions) // 2]
    source = f"def {name}(*arguments, **keywords):\n    while True:\n        pass\n"
    return sheet.answer(name, source)


def _deleted_cells(sheet: _Sheet, questions: list[str]) -> _Sheet:
    del sheet.cells[sheet.index("question", questions[-1])]
    del sheet.cells[sheet.index("given")]
    return sheet


def _older_copy(sheet: _Sheet, questions: list[str]) -> _Sheet:
    index = sheet.index("question", questions[0])
    older = copy.deepcopy(sheet.cells[index])
    older["source"] = f"def {questions[0]}(*arguments):\n    return None  # first try\n"
    sheet.cells.insert(index, older)
    return sheet


def _merged_cells(sheet: _Sheet, questions: list[str]) -> _Sheet:
    if len(questions) > 1:
        first, second = sheet.source(questions[0]).rstrip(), sheet.source(questions[1])
        del sheet.cells[sheet.index("question", questions[1])]
        sheet.answer(questions[0], f"{first}\n\n\n{second}")
    return sheet


def _lost_metadata(sheet: _Sheet, questions: list[str]) -> _Sheet:
    for cell in sheet.cells:
        cell["metadata"] = {}
        cell.pop("id", None)
    sheet.raw["nbformat_minor"] = 4
    return sheet


def _timing_magics(sheet: _Sheet, questions: list[str]) -> _Sheet:
    sheet.answer(questions[0], "%%time\n" + sheet.source(questions[0]))
    source = "took = %timeit -o -n 1 sum(range(10))\n%timeit -n 1 sum(range(10))"
    return sheet.insert_after(sheet.index("question"), source)


def _edited_check(sheet: _Sheet, questions: list[str]) -> _Sheet:
    sheet.cells[sheet.index("check")]["source"] = "print('as expected')"
    return sheet


_SCENES: dict[str, _Scene] = {
    "a syntax error in the last question": _syntax_error,
    "a cell that never ends": _cell_after_first("while True:\n    pass"),
    "a function that never ends": _endless_function,
    "calls sys.exit": _cell_after_first("import sys\n\nsys.exit(0)"),
    "calls os._exit": _cell_after_first("import os\n\nos._exit(0)"),
    # untouched memory costs no time, so that the outcome does not depend on speed
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
    "installs packages": _cell_after_first(
        "!pip install einops\n%matplotlib inline\nfiles = !ls"
    ),
    "times everything": _timing_magics,
    "deleted the last question and a given cell": _deleted_cells,
    "left an older copy of a cell": _older_copy,
    "merged two cells": _merged_cells,
    "lost the metadata": _lost_metadata,
    "renamed the file": lambda sheet, questions: sheet,
    "rewrote a check": _edited_check,
}
