"""Makes the notebook that a person grades: the completed submission, with reports and guides.

nbgrader's formgrader and feedback read the notebook from `autograded/<student>/<assignment>/`. Its
cells come from the kit's own reading of the submission, so the graded cells are those on the page.
Marking guides are for graders alone: feedback leaves them out by their role.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from autograder.marks.rubric import GUIDE, number_items
from autograder.nbgrader.released_cells import grade_id, read_built, tested_question
from autograder.nbgrader.student_texts import as_literal, cell_report, question_report
from autograder.outputs.outcome_words import COULD_NOT_BE_GRADED
from autograder.records.model import Result
from autograder.records.submission import HandedInCell, Submission

_Json = dict[str, Any]


class NotebooksForGraders:
    """Makes notebooks for graders, as text, for one assignment.

    Raises:
        StaleBuild: the assignment is not built.
    """

    def __init__(self, release: Path, solution: Path) -> None:
        self._release = read_built(release)
        self._guides = _marking_guides(self._release, solution)

    def graded(self, submission: Submission, result: Result) -> str:
        """The completed submission, with the reports of cells and questions as outputs."""
        notebook = complete_notebook(self._release, submission)
        question_reports = {}
        for question in result.questions:
            question_reports[question.name] = question_report(question, result)
        cell_reports = {}
        for outcome in result.cells:
            cell_reports[outcome.id] = cell_report(outcome)
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            cell["outputs"] = []
            text = cell_reports.get(grade_id(cell), "")
            text += question_reports.get(tested_question(cell), "")
            if text:
                output = {"name": "stdout", "output_type": "stream", "text": text}
                cell["outputs"].append(output)
        return self._add_guides(notebook)

    def problem(self, problem: str) -> str:
        """The release in place of a submission that could not be graded, with the reason."""
        return self._add_guides(release_with_problem(self._release, problem))

    def _add_guides(self, notebook: _Json) -> str:
        """The notebook as text, with a marking guide below each written answer."""
        cells = []
        for cell in notebook["cells"]:
            cells.append(cell)
            id_ = grade_id(cell)
            guide = self._guides.get(id_)
            if guide:
                guide_cell = _text_cell(f"guide-{len(cells)}", guide)
                guide_cell["metadata"]["attention_kit"] = {"role": GUIDE, "name": id_}
                cells.append(guide_cell)
        guided = {**notebook, "cells": cells}
        text = json.dumps(guided, indent=1, ensure_ascii=False)
        # nbgrader writes no lone surrogate
        text = text.encode("utf-8", "backslashreplace").decode()
        return f"{text}\n"


def release_with_problem(release: _Json, problem: str) -> _Json:
    """The release in place of a submission, with the reason in its first cell."""
    text = f"**{COULD_NOT_BE_GRADED}.** This is the release, with nothing of the student's in it."
    first = _text_cell("could-not-be-graded", f"{text}\n\n{as_literal(problem)}")
    return {**release, "cells": [first, *release["cells"]]}


def complete_notebook(release: _Json, submission: Submission) -> _Json:
    """The submission with each nbgrader cell of the release once, in the student's order.

    Locked cells have their released text, answers the student's. The student's own cells stay
    where they are.
    """
    released = {}
    for cell in release["cells"]:
        id_ = grade_id(cell)
        if id_:
            released[id_] = cell
    answers = {answer.id: answer.text for answer in submission.written}
    pictures: dict[str, dict[str, Any]] = {}
    for handed_in in submission.handed_in:
        pictures_of_cell = pictures.setdefault(handed_in.id, {})
        pictures_of_cell.update(_attachments(handed_in))
    cells: list[_Json] = []
    missing = dict(released)
    for number, handed_in in enumerate(submission.handed_in):
        id_ = handed_in.id
        if id_ not in released:
            cells.append(_own_cell(number, handed_in))
        elif id_ in missing:
            cell = copy.deepcopy(missing.pop(id_))
            if cell["metadata"]["nbgrader"].get("solution"):
                cell["source"] = answers.get(id_, handed_in.source)
            if pictures[id_] and cell["cell_type"] == "markdown":
                cell["attachments"] = pictures[id_]
            cells.append(cell)
    _restore_missing(cells, list(released), missing, answers)
    completed = copy.deepcopy({**release, "cells": []})
    completed["cells"] = cells
    return completed


def is_guide(cell: Mapping[str, Any]) -> bool:
    """Whether the cell is a marking guide, which only graders may see."""
    return _kit(cell).get("role") == GUIDE


def _kit(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    kit = cell["metadata"].get("attention_kit")
    return kit if isinstance(kit, dict) else {}


def _marking_guides(release: _Json, solution: Path) -> dict[str, str]:
    """grade_id of a written answer → its points, marking scheme and model answer, for graders."""
    if not solution.is_file():
        return {}
    cells = read_built(solution)["cells"]
    schemes = {}
    for cell in cells:
        if is_guide(cell):
            schemes[_kit(cell)["name"]] = cell["source"]
    prompts = {grade_id(cell): cell["source"] for cell in release["cells"]}
    guides = {}
    for cell in cells:
        id_ = grade_id(cell)
        kit = _kit(cell)
        if id_ not in prompts or kit.get("role") != "written":
            continue
        points = cell["metadata"]["nbgrader"].get("points", 0)
        scheme = schemes.get(kit["name"], "")
        parts = [
            f"**For graders: {points:g} points**",
            number_items(scheme),
            "**Model answer**",
            _model_answer(prompts[id_], cell["source"]),
        ]
        guides[id_] = "\n\n".join(filter(None, parts))
    return guides


def _model_answer(prompt: str, solution: str) -> str:
    """The lines of a solution that differ from the released prompt, without equal ends."""
    prompt_lines = prompt.split("\n")
    lines = solution.split("\n")
    start = _count_equal(prompt_lines, lines)
    del prompt_lines[:start]
    del lines[:start]
    end = _count_equal(prompt_lines[::-1], lines[::-1])
    answer = "\n".join(lines[: len(lines) - end])
    return answer.strip("\n")


def _count_equal(first: Sequence[str], second: Sequence[str]) -> int:
    """How many lines at the beginning of two texts are equal."""
    pairs = zip(first, second, strict=False)
    equal = takewhile(lambda pair: pair[0] == pair[1], pairs)
    return len(list(equal))


def _attachments(cell: HandedInCell) -> dict[str, dict[str, str]]:
    return {name: dict(kinds) for name, kinds in cell.attachments.items()}


def _own_cell(number: int, handed_in: HandedInCell) -> _Json:
    """A cell that the student added, without its metadata, which may claim anything."""
    cell: _Json = {
        "cell_type": handed_in.kind,
        "id": f"own-{number}",
        "metadata": {},
        "source": handed_in.source,
    }
    if handed_in.kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    elif handed_in.attachments:
        cell["attachments"] = _attachments(handed_in)
    return cell


def _text_cell(id_: str, text: str) -> _Json:
    return {"cell_type": "markdown", "id": id_, "metadata": {}, "source": text}


def _restore_missing(
    cells: list[_Json],
    order: Sequence[str],
    missing: Mapping[str, _Json],
    answers: Mapping[str, str],
) -> None:
    """Insert each missing cell after the cell that it follows in the release."""
    place = 0
    for id_ in order:
        if id_ in missing:
            cell = copy.deepcopy(missing[id_])
            cell["source"] = answers.get(id_, cell["source"])
            cells.insert(place, cell)
        ids = [grade_id(cell) for cell in cells]
        place = ids.index(id_) + 1
