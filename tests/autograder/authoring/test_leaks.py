"""Leaks: every way in which an answer or a hidden test could stand in a release."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tiny_course import TINY

from autograder.authoring.build import build_assignment
from autograder.authoring.leaks import find_leaks
from autograder.authoring.source_notebook import read_source
from autograder.course import Assignment, Course
from autograder.suite.collection import SuiteQuestion

ANSWER = "doubled_by_addition = x + x"  # 23 characters without spaces
WRITTEN = (
    "Halving undoes doubling, since one multiplies by two and the other divides by it."
)


def found(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    text: str = TINY,
) -> list[str]:
    """The leaks of the release that is built from `text`."""
    tiny.source.write_text(text, encoding="utf-8")
    built = build_assignment(course, tiny, questions)
    return find_leaks(read_source(tiny), built.release_bytes, built.files, tiny.suite)


def found_after(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    change: Callable[[dict[str, Any]], None],
) -> list[str]:
    """The leaks once `change` has been made to the release's JSON."""
    built = build_assignment(course, tiny, questions)
    notebook = json.loads(built.release_bytes)
    change(notebook)
    return find_leaks(
        read_source(tiny), json.dumps(notebook).encode(), built.files, tiny.suite
    )


def test_a_sound_release_gives_nothing_away(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    assert found(course, tiny, questions) == []


@pytest.mark.parametrize(
    ("old", "new", "cell"),
    [
        ("shown = half", f"x = 1\n{ANSWER}\nshown = half", "cell 8 (both)"),
        ("# # Doubling", f"# Just write `{ANSWER}`.", "cell 1"),
        (
            '    """Twice x."""',
            f'    """Twice x: doubled_by_addition=x+x."""\n    # {ANSWER}',
            "cell 3 (double)",
        ),
        (
            "assert double(3) == 6",
            f'assert double(3) == 6, "try {ANSWER}"',
            "cell 4 (double)",
        ),
    ],
)
def test_a_line_of_an_answer_in_any_cell(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    old: str,
    new: str,
    cell: str,
) -> None:
    assert found(course, tiny, questions, TINY.replace(old, new)) == [
        f"{cell} gives away a line of the answer to double: {ANSWER}"
    ]


def test_a_line_of_an_answer_in_an_output(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    def show(notebook: dict[str, Any]) -> None:
        notebook["cells"][7]["outputs"] = [
            {"output_type": "stream", "name": "stdout", "text": [f"{ANSWER}\n"]}
        ]

    assert found_after(course, tiny, questions, show) == [
        "the metadata or outputs of cell 8 (both) gives away a line of the answer to "
        f"double: {ANSWER}"
    ]


def test_a_line_of_an_answer_in_metadata(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    assert found_after(
        course,
        tiny,
        questions,
        lambda notebook: notebook["metadata"].update(note=f"key: {ANSWER}"),
    ) == [
        f"the notebook's metadata gives away a line of the answer to double: {ANSWER}"
    ]


def test_a_line_of_an_answer_in_a_picture(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    (tiny.source.parent / "figures" / "line.svg").write_text(
        f"<svg><text>{ANSWER}</text></svg>"
    )
    assert found(course, tiny, questions) == [
        f"figures/line.svg gives away a line of the answer to double: {ANSWER}"
    ]


def test_a_model_answer_in_words(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    assert found(
        course,
        tiny,
        questions,
        TINY.replace("# # Doubling", f"# # Doubling\n#\n# {WRITTEN}"),
    ) == [f"cell 1 gives away a line of the answer to why: {WRITTEN}"]


def test_given_code_may_share_some_lines_with_an_answer_that_extends_it(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    longer = TINY.replace(
        ANSWER, f"{ANSWER}\n    tripled_by_addition = doubled_by_addition + x"
    )
    earlier = longer.replace(
        "import math\n",
        f"import math\n\ndef earlier(x):\n    {ANSWER}\n    return None\n",
    )
    assert found(course, tiny, questions, earlier) == []


def test_given_code_may_not_be_the_answer(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    given = TINY.replace(
        "import math\n",
        f"import math\n\ndef library(x):\n    {ANSWER}\n    return None\n",
    )
    assert found(course, tiny, questions, given) == [
        f"cell 2 (imports) gives away a line of the answer to double: {ANSWER}"
    ]


def test_everyday_lines_are_not_telling(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    everyday = 'batch, length, width = x.shape\n    raise ValueError(f"sizes do not match: {x}")\n    '
    text = TINY.replace(ANSWER, everyday + ANSWER).replace(
        "shown = half", f"def shape(x):\n    {everyday}\nshown = half"
    )
    assert found(course, tiny, questions, text) == []


def test_the_name_of_a_hidden_test(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    text = TINY.replace("# # Doubling", "# # Doubling, see test_doubles_nothing")
    assert found(course, tiny, questions, text) == [
        "cell 1 names the hidden test test_doubles_nothing"
    ]


def test_a_line_of_a_hidden_test(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    line = (
        'assert abs(student.half(7) - 3.5) < 1e-9, "seven halves are three and a half"'
    )
    text = TINY.replace("shown = half", f"# {line}\nshown = half")
    assert found(course, tiny, questions, text) == [
        f"cell 8 (both) holds a line of the hidden test_half.py: {line}"
    ]


def test_a_file_of_the_hidden_suite(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    (tiny.source.parent / "data").mkdir()
    (tiny.source.parent / "data" / "test_half.py").write_text("x = 1\n")
    assert found(course, tiny, questions) == [
        "test_half.py of the hidden suite goes out with the release"
    ]
