"""Where a prompt was left as released, text of the student's anywhere in the notebook goes to a
person.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from multiples import (
    ANSWERS,
    AT,
    CHECKS,
    IMPORTS,
    STUBS,
    WRITTEN,
    Cell,
    code,
    notebook,
    question,
    sheet,
    text,
)

from autograder.course import Course, load_course
from autograder.intake.cell_matching import match_cells
from autograder.intake.notebook import read_submission
from autograder.intake.reading import NotebookCell, parse_notebook
from autograder.intake.released_notebook import load_release
from autograder.intake.written import match_written
from autograder.records.submission import Answer, FoundSubmission, Submission

Read = Callable[..., Submission]
Handed = list[Cell] | dict[str, Any]

COURSE = load_course(Path(__file__).parents[3])
SAID = "Since doubling maps sums to sums."
BADGE = {"id": "view-in-github"}
PICTURE = {"page.png": {"image/png": "iVBORw0KGgo="}}


def inserted(place: int, *own: Cell) -> list[Cell]:
    """The answered notebook with cells of the student's own before the cell at `place`."""
    cells = sheet(ANSWERS)
    cells[place:place] = own
    return cells


def changed(place: int, source: str, **fields: Any) -> list[Cell]:
    """The answered notebook with another source in the cell at `place`."""
    cells = sheet(ANSWERS)
    cells[place] = {**cells[place], "source": source, **fields}
    return cells


def raw(source: str) -> Cell:
    return {"cell_type": "raw", "metadata": {}, "source": source}


def printing(
    printed: str, source: str = "print(answer)", stream: str = "stdout"
) -> Cell:
    return {
        **code(source),
        "outputs": [{"output_type": "stream", "name": stream, "text": printed}],
    }


def in_format_3(*own: dict[str, Any]) -> dict[str, Any]:
    """The answered notebook as Jupyter saved it ten years ago."""
    cells = [
        {**cell, "input": cell["source"], "language": "python"}
        if cell["cell_type"] == "code"
        else cell
        for cell in sheet(ANSWERS)
    ]
    return {
        "worksheets": [{"cells": [*own, *cells]}],
        "metadata": {},
        "nbformat": 3,
        "nbformat_minor": 0,
    }


def without_the_prompt() -> list[Cell]:
    """No prompt, and an answer far above."""
    cells = inserted(AT["double"], text(SAID, ""))
    return [cell for cell in cells if cell["source"] != WRITTEN]


AT_THE_PROMPT = AT["written"]
WRITTEN_SOMEWHERE: dict[str, Handed] = {
    "a text cell right above the prompt": inserted(AT_THE_PROMPT, text(SAID, "")),
    "a text cell right below the prompt": inserted(AT_THE_PROMPT + 1, text(SAID, "")),
    "a text cell at the top": inserted(0, text(SAID, "")),
    "a text cell between two questions": inserted(AT["triple"], text(SAID, "")),
    "a text cell of one word": inserted(AT["triple"], text("Sums.", "")),
    "a heading": inserted(AT["library"], text(f"### {SAID}", "")),
    "a heading cell of format 3": in_format_3(
        {"cell_type": "heading", "level": 2, "metadata": {}, "source": SAID}
    ),
    "a raw cell above": inserted(AT_THE_PROMPT, raw(SAID)),
    "a raw cell at the top": inserted(0, raw(SAID)),
    "in the prompt's cell, in place of the stub": changed(
        AT_THE_PROMPT, f"Why is it linear?\n\n{SAID}"
    ),
    "in the prompt's cell, above the prompt": changed(
        AT_THE_PROMPT, f"{SAID}\n\n{WRITTEN}"
    ),
    "in the prompt's cell, as a comment that is not shown": changed(
        AT_THE_PROMPT, f"{WRITTEN}\n<!-- {SAID} -->"
    ),
    "below the heading of a question": changed(2, f"## 1. Twice\n\n{SAID}"),
    "the prompt's cell is gone": without_the_prompt(),
    "a comment in a cell of one's own": inserted(AT_THE_PROMPT, code(f"# {SAID}")),
    "a string in a cell of one's own": inserted(
        AT_THE_PROMPT, code(f"answer = '{SAID}'")
    ),
    "one word as a string, which the release has too": inserted(
        AT["double"], code("answer = 'linear'")
    ),
    "a string of many lines": inserted(AT_THE_PROMPT, code(f'"""\nWhy?\n{SAID}\n"""')),
    "printed": inserted(AT_THE_PROMPT, code(f'print("{SAID}")')),
    "a formatted string": inserted(
        AT_THE_PROMPT, code(f'x = 2\nprint(f"{SAID} {{x}}")')
    ),
    "displayed": inserted(
        AT_THE_PROMPT, code(f"from IPython.display import Markdown\nMarkdown('{SAID}')")
    ),
    "a sentence in a code cell": inserted(AT["double"], code(f"x = 1\n{SAID}")),
    "a sentence that is nearly Python": inserted(
        AT["double"], code("Doubling is linear.")
    ),
    "a sentence without spaces": inserted(AT["double"], code("因为两倍的和是和的两倍")),
    "a comment in a question's cell": changed(
        AT["double"], f"{ANSWERS['double']}  # {SAID}"
    ),
    "the docstring of a question": changed(
        AT["double"], ANSWERS["double"].replace("Twice x.", f"Twice x. {SAID}")
    ),
    "a string below a question's function": changed(
        AT["triple"], f"{ANSWERS['triple']}\n\n'''{SAID}'''"
    ),
    "a comment in a check": changed(
        AT["check_double"], f"{CHECKS['double']}\n# {SAID}"
    ),
    "a comment in a given cell": changed(AT["imports"], f"{IMPORTS}  # {SAID}"),
    "a comment in a demo": changed(10, f"plot(double)  # {SAID}"),
    "a second cell of a question, which does not count": inserted(
        AT["double"], question("double", f"# {SAID}\n{STUBS['double']}")
    ),
    "a cell magic": inserted(AT["double"], code(f"%%markdown\n{SAID}")),
    "a cell magic that writes a file": inserted(
        AT["double"], code(f"%%writefile answer.txt\n{SAID}")
    ),
    "a command of the shell": inserted(AT["double"], code(f"!echo {SAID}")),
    "typed into a prompt": inserted(
        AT["double"], printing(f"Answer: {SAID}", "answer = input()")
    ),
    "typed into a prompt that was not run": inserted(
        AT["double"], code("answer = input()")
    ),
    "printed by code without a string": inserted(AT["double"], printing(SAID)),
    "a picture in a cell of one's own": inserted(
        AT["double"], {**text("![](x)", ""), "attachments": PICTURE}
    ),
    "a picture beside a question": changed(2, "## 1. Twice", attachments=PICTURE),
    "a picture in the prompt's cell": changed(
        AT_THE_PROMPT, WRITTEN, attachments=PICTURE
    ),
    "a picture inside the text": inserted(
        0, text("![](data:image/png;base64,iVBORw0KGgo=)", "")
    ),
    "an attached file that is no picture": inserted(
        0,
        {
            **text("", ""),
            "attachments": {"answer.pdf": {"application/pdf": "JVBERi0="}},
        },
    ),
    "a file attached to a raw cell": inserted(0, {**raw(""), "attachments": PICTURE}),
}
SHOWN = {
    "a text cell of one word": "Sums.",
    "one word as a string, which the release has too": "linear",
    "a sentence that is nearly Python": "Doubling is linear.",
    "a sentence without spaces": "因为两倍的和是和的两倍",
    "typed into a prompt that was not run": "answer = input()",
    "a picture in a cell of one's own": "![](x)\n[attached file: page.png]",
    "a picture beside a question": "[attached file: page.png]",
    "a picture in the prompt's cell": "Why is it linear?",
    "a picture inside the text": "![](data:image/png;base64,iVBORw0KGgo=)",
    "an attached file that is no picture": "[attached file: answer.pdf]",
    "a file attached to a raw cell": "[attached file: page.png]",
}
"""What a person is shown, where it is not the sentence."""
NOTHING_WRITTEN: dict[str, Handed] = {
    "as released": sheet({}),
    "all questions answered": sheet(ANSWERS),
    "without any metadata": [{**cell, "metadata": {}} for cell in sheet(ANSWERS)],
    "the stub of the prompt removed": changed(AT_THE_PROMPT, "Why is it linear?\n"),
    "the prompt broken into other lines": changed(
        AT_THE_PROMPT, "Why is\nit linear?\n\n*Your answer\nhere.*"
    ),
    "the prompt twice": inserted(AT_THE_PROMPT, text(WRITTEN, "")),
    "empty cells": inserted(
        AT_THE_PROMPT, text("", ""), code(""), raw(" \n"), code("#\n# ---")
    ),
    "cells that try things": inserted(
        AT["triple"], code("y = double(3)\ny == 6\n[x for x in y if x not in y]")
    ),
    "cells of commands": inserted(
        0,
        code("%matplotlib inline\n!pip install torch numpy"),
        code("%%time\ndouble(3)"),
    ),
    "code that prints numbers": inserted(
        AT["triple"], printing("6\n[1, 2]\n", "print(double(3), [1, 2])")
    ),
    "strings of fields": inserted(
        AT["triple"], code('print(f"{double(3)}: {triple(3)}", end="; ")')
    ),
    "text of the release in a cell of one's own": inserted(
        0, text("# Multiples", ""), code('"""Twice x."""')
    ),
    "a comment of the answer key": changed(
        AT["double"], f"{ANSWERS['double']}  # once more, not squared"
    ),
    "a name of the release": changed(
        AT["double"], 'def double(x):\n    return {"Counter": x + x}["Counter"]'
    ),
    "a warning of a library": inserted(
        AT["triple"], printing("this will be removed soon", "double(3)", "stderr")
    ),
    "Colab's badge": inserted(
        0, {**text('<a href="x"><img alt="Open In Colab"/></a>'), "metadata": BADGE}
    ),
    "a locked cell deleted": [
        cell for cell in sheet(ANSWERS) if cell["source"] != CHECKS["triple"]
    ],
}


def test_there_are_many_ways() -> None:
    assert len(WRITTEN_SOMEWHERE) >= 26


@pytest.mark.parametrize("way", WRITTEN_SOMEWHERE)
def test_what_a_student_wrote_anywhere_goes_to_a_person(read: Read, way: str) -> None:
    (answer,) = read(WRITTEN_SOMEWHERE[way]).written
    assert (answer.id, answer.blank) == ("written_why", False)
    assert SHOWN.get(way, SAID) in answer.text


@pytest.mark.parametrize("way", NOTHING_WRITTEN)
def test_nobody_looks_where_nothing_is_written(
    course: Course, tmp_path: Path, way: str
) -> None:
    cells = sheet(ANSWERS)
    cells[AT["double"]]["source"] += "  # once more, not squared"
    course.assignment("m1").solution.write_text(json.dumps(notebook(cells)))
    handed_in = NOTHING_WRITTEN[way]
    path = tmp_path / "student-001.ipynb"
    path.write_text(
        json.dumps(notebook(handed_in) if isinstance(handed_in, list) else handed_in)
    )
    submission = read_submission(
        FoundSubmission("student-001", path),
        load_release(course.assignment("m1")),
        course.limits,
    )
    assert [answer.blank for answer in submission.written] == [True]


def test_the_text_beside_the_prompt_is_shown_first_with_its_place(read: Read) -> None:
    cells = inserted(AT_THE_PROMPT, text(SAID, ""))
    cells.insert(0, code("# by `me`, with ```"))
    (answer,) = read(cells).written
    assert answer.text == (
        f"{WRITTEN}\n\n"
        "*The place for this answer was left as released. What the student wrote elsewhere in "
        "the notebook:*\n\n"
        f"Cell 13, right above the prompt:\n\n```text\n{SAID}\n```\n\n"
        "Cell 1:\n\n````text\nby `me`, with ```\n````"
    )


def test_an_answer_at_its_place_stays_as_it_was(read: Read) -> None:
    """What else stands in the notebook is no part of it."""
    cells = changed(AT_THE_PROMPT, f"Why is it linear?\n\n{SAID}")
    cells[AT["double"]]["source"] += "  # easy"
    assert read(cells).written == (
        Answer("written_why", f"Why is it linear?\n\n{SAID}"),
    )


@pytest.mark.parametrize(
    "name", [assignment.name for assignment in COURSE.assignments()]
)
def test_in_every_assignment_an_answer_above_its_prompt_is_found(name: str) -> None:
    """The answer key with the prompt as released: nothing is written there. Then with a text cell
    above the prompt.
    """
    assignment = COURSE.assignment(name)
    release = load_release(assignment)
    cells = [cell for cell in read_cells(assignment.solution) if cell.role != "guide"]
    prompts = {cell.id: cell.source for cell in release.cells if cell.role == "written"}
    blank = [
        dataclasses.replace(cell, source=prompts.get(cell.grade_id, cell.source))
        for cell in cells
    ]
    assert {
        answer.id: answer.blank for answer in match_cells(blank, release).written
    } == dict.fromkeys(prompts, True)
    place = next(place for place, cell in enumerate(blank) if cell.grade_id in prompts)
    for kind, source in (("markdown", SAID), ("raw", SAID), ("code", f"# {SAID}")):
        handed_in = [*blank[:place], NotebookCell(kind, source), *blank[place:]]
        answers = match_cells(handed_in, release).written
        assert [
            (answer.id, answer.blank, SAID in answer.text) for answer in answers
        ] == [(id_, False, True) for id_ in prompts]


def read_cells(path: Path) -> tuple[NotebookCell, ...]:
    return parse_notebook(path.read_bytes(), path.name).cells


def test_the_text_below_the_prompt_is_said_to_be_there(read: Read) -> None:
    """A code cell, since a text cell below the prompt would be the answer itself."""
    cells = inserted(AT_THE_PROMPT + 1, code(f"x = 1  # {SAID}"))
    cells.append(code("# and this"))
    (answer,) = read(cells).written
    assert f"Cell 13, right below the prompt:\n\n```text\n{SAID}\n```" in answer.text
    assert "Cell 14:\n\n```text\nand this\n```" in answer.text


@pytest.mark.parametrize(
    ("source", "is_answer"),
    [
        ("Doubling and adding go together here", True),
        ("def f(x):\n    return 'doubling and adding go together'", False),
        ("x = 1\ny = 2\nDoubling and adding go together here", False),
        ("Doubling and adding go together\nso it is linear as well", True),
    ],
)
def test_a_code_cell_of_sentences_below_the_prompt_is_the_answer(
    read: Read, source: str, is_answer: bool
) -> None:
    (answer,) = read(inserted(AT_THE_PROMPT + 1, code(source))).written
    assert (answer.text == f"{WRITTEN}\n\n```\n{source}\n```") is is_answer


def test_of_a_notebook_with_nothing_of_the_release_the_first_cell_may_be_the_answer(
    course: Course,
) -> None:
    release = load_release(course.assignment("m1"))
    cells = [NotebookCell("markdown", SAID), NotebookCell("code", "x = 1")]
    (answer,) = match_written(cells, release, {}).answers
    assert (answer.id, answer.blank, answer.text) == ("written_why", False, SAID)
