"""The notebook that a person grades: what was handed in, made whole, with reports and marking
guides beside it.

nbgrader's formgrader, and its feedback, read it from `autograded/<student>/<assignment>/`. It is
made from the kit's own reading of the file, so that what was graded is what is shown. Marking
guides are for the grader alone: feedback leaves them out by their role.
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
from autograder.records.model import HandedInCell, Result, Submission

_Json = dict[str, Any]


class NotebooksForGraders:
    """Makes the notebooks that a person grades, as text, for one assignment.

    Raises:
        StaleBuild: the assignment is not built.
    """

    def __init__(self, release: Path, solution: Path) -> None:
        self._release = read_built(release)
        self._guides = _marking_guides(self._release, solution)

    def graded(self, submission: Submission, result: Result) -> str:
        """What was handed in, with each question's report under its grade cell, and what went wrong
        under its cell.
        """
        notebook = made_whole(self._release, submission)
        questions = {
            question.name: question_report(question, result) for question in result.questions
        }
        cells = {outcome.id: cell_report(outcome) for outcome in result.cells}
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                text = cells.get(grade_id(cell), "") + questions.get(tested_question(cell), "")
                cell["outputs"] = (
                    [{"name": "stdout", "output_type": "stream", "text": text}] if text else []
                )
        return self._with_guides(notebook)

    def problem(self, problem: str) -> str:
        """The release in place of a submission that could not be graded, and why."""
        return self._with_guides(release_with_problem(self._release, problem))

    def _with_guides(self, notebook: _Json) -> str:
        """The notebook's text with the marking guide below each written answer."""
        cells = []
        for cell in notebook["cells"]:
            cells.append(cell)
            if guide := self._guides.get(grade_id(cell)):
                guide_cell = _text_cell(f"guide-{len(cells)}", guide)
                guide_cell["metadata"]["attention_kit"] = {"role": GUIDE, "name": grade_id(cell)}
                cells.append(guide_cell)
        text = json.dumps({**notebook, "cells": cells}, indent=1, ensure_ascii=False) + "\n"
        # nbgrader writes no lone surrogate
        return text.encode("utf-8", "backslashreplace").decode()


def release_with_problem(release: _Json, problem: str) -> _Json:
    """The release, which says at its top why it stands in place of a submission."""
    text = f"**{COULD_NOT_BE_GRADED}.** This is the release, with nothing of the student's in it."
    first = _text_cell("could-not-be-graded", f"{text}\n\n{as_literal(problem)}")
    return {**release, "cells": [first, *release["cells"]]}


def made_whole(release: _Json, submission: Submission) -> _Json:
    """The submission with every cell of the release that nbgrader knows, once and in the student's
    order.

    Locked cells have their released text, answers the student's. Cells of the student's own stay
    where they are.
    """
    wanted = {id_: cell for cell in release["cells"] if (id_ := grade_id(cell))}
    answers = {answer.id: answer.text for answer in submission.written}
    pictures: dict[str, dict[str, Any]] = {}
    for handed_in in submission.handed_in:
        attached = {name: dict(kinds) for name, kinds in handed_in.attachments.items()}
        pictures.setdefault(handed_in.id, {}).update(attached)
    cells: list[_Json] = []
    done: set[str] = set()
    for number, handed_in in enumerate(submission.handed_in):
        released = wanted.get(handed_in.id)
        if released is None:
            cells.append(_own(number, handed_in))
        elif handed_in.id not in done:
            done.add(handed_in.id)
            cells.append(_answered(released, handed_in, answers, pictures[handed_in.id]))
    _put_back(cells, wanted, done, answers)
    return {
        **{key: copy.deepcopy(value) for key, value in release.items() if key != "cells"},
        "cells": cells,
    }


def is_guide(cell: Mapping[str, Any]) -> bool:
    """Whether only graders may see the cell."""
    return _kit(cell).get("role") == GUIDE


def _kit(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    kit = cell["metadata"].get("attention_kit")
    return kit if isinstance(kit, dict) else {}


def _marking_guides(release: _Json, solution: Path) -> dict[str, str]:
    """grade_id of a written answer → what its grader reads: the points, and the model answer."""
    if not solution.is_file():
        return {}
    cells = read_built(solution)["cells"]
    schemes = {
        kit["name"]: cell["source"] for cell in cells if (kit := _kit(cell)).get("role") == GUIDE
    }
    prompts = {grade_id(cell): cell["source"] for cell in release["cells"]}
    guides = {}
    for cell in cells:
        if (id_ := grade_id(cell)) in prompts and _kit(cell).get("role") == "written":
            points = cell["metadata"]["nbgrader"].get("points", 0)
            parts = [
                f"**For graders: {points:g} points**",
                number_items(schemes.get(_kit(cell)["name"], "")),
            ]
            parts += ["**Model answer**", _model_answer(prompts[id_], cell["source"])]
            guides[id_] = "\n\n".join(part for part in parts if part)
    return guides


def _model_answer(prompt: str, answered: str) -> str:
    """What the answer key has where the release has a line to replace."""
    before, after = prompt.split("\n"), answered.split("\n")
    same = _equal_at_start(before, after)
    ending = _equal_at_start(before[same:][::-1], after[same:][::-1])
    return "\n".join(after[same : len(after) - ending]).strip("\n")


def _equal_at_start(first: Sequence[str], second: Sequence[str]) -> int:
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    )


def _answered(
    released: _Json,
    handed_in: HandedInCell,
    answers: Mapping[str, str],
    pictures: Mapping[str, Any],
) -> _Json:
    cell: _Json = copy.deepcopy(released)
    if released["metadata"]["nbgrader"].get("solution"):
        cell["source"] = answers.get(handed_in.id, handed_in.source)
    if pictures and cell["cell_type"] == "markdown":
        cell["attachments"] = dict(pictures)
    return cell


def _own(number: int, handed_in: HandedInCell) -> _Json:
    """A cell of the student's own, without whatever its metadata claims to be."""
    cell: _Json = {
        "cell_type": handed_in.kind,
        "id": f"own-{number}",
        "metadata": {},
        "source": handed_in.source,
    }
    if handed_in.kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    elif handed_in.attachments:
        cell["attachments"] = {name: dict(kinds) for name, kinds in handed_in.attachments.items()}
    return cell


def _text_cell(id_: str, text: str) -> _Json:
    return {"cell_type": "markdown", "id": id_, "metadata": {}, "source": text}


def _put_back(
    cells: list[_Json], wanted: Mapping[str, _Json], done: set[str], answers: Mapping[str, str]
) -> None:
    """Cells that are gone come back after the one that they followed."""
    previous = ""
    for id_, released in wanted.items():
        if id_ not in done:
            places = (
                place + 1
                for place, cell in enumerate(cells)
                if previous and grade_id(cell) == previous
            )
            back = copy.deepcopy(released)
            back["source"] = answers.get(id_, back["source"])
            cells.insert(next(places, 0), back)
        previous = id_
