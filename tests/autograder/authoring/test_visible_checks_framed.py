"""Framed checks: their hints leave students' sight, and predictions get a place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_course import HEADER, TINY, suite_question

from autograder.authoring.build import BuiltNotebooks, build_assignment
from autograder.authoring.leaks import find_leaks
from autograder.authoring.source_notebook import read_source
from autograder.authoring.visible_checks import decode_facts
from autograder.basics.errors import BadSource
from autograder.course import Assignment, Course, load_course

QUESTION = '# %% question="f"\ndef f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION\n\n'
TOOLS = '# %% given="tools"\nfrom autograder.student_tools.expect import expect\n\n'
COURSE = load_course(Path(__file__).resolve().parents[3])


def build(course: Course, tiny: Assignment, text: str) -> BuiltNotebooks:
    tiny.source.write_text(HEADER + text, encoding="utf-8")
    for suite in tiny.suite.glob("test_*.py"):
        suite.unlink()
    return build_assignment(course, tiny, {"f": suite_question(100)})


def texts(notebook: bytes) -> dict[str, str]:
    return {
        cell["id"]: "".join(cell["source"]) for cell in json.loads(notebook)["cells"]
    }


def facts(built: BuiltNotebooks) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(
        decode_facts(built.companions["tiny_tools.py"])
    )
    return decoded


def test_hints_become_numbers_and_calls_become_short(
    course: Course, tiny: Assignment
) -> None:
    check = '''\
# %% check="f"
for n in (1, 2):
    expect(
        f(n),
        n,
        hint=f"At {n:.1f} it is {n!r}. Look `there`. And "
        "then?",
    )

text = """one
two"""
hint = "Two lines."
expect(f(text), text, hint=hint)

# %% check="f"
expect(f("é"), "é", hint="A letter.")  # an accent before it
'''
    built = build(course, tiny, TOOLS + QUESTION + check)
    cells = texts(built.release_bytes)
    assert cells["check-f_1"] == (
        'with checking("f"):\n'
        "    for n in (1, 2):\n"
        "        expect(f(n), n, hint=(1, n, n))\n"
        "\n"
        '    text = """one\n'
        'two"""\n'
        "    hint = 2\n"
        "    expect(f(text), text, hint=hint)"
    )
    assert cells["check-f"] == (
        'with checking("f", 2):\n    expect(f("é"), "é", hint=3)  # an accent before it'
    )
    assert facts(built)["hints"] == {
        "f": [
            ["At {0:.1f} it is {1!r}.", "Look `there`.", "And then?"],
            ["Two lines."],
            ["A letter."],
        ]
    }
    assert "Look" not in built.release_bytes.decode()
    assert "`there`" not in built.companions["tiny_tools.py"]
    assert cells["demo-how_far"].endswith("\nprogress()")


def test_a_prediction_has_three_dots_and_the_key_has_the_answer(
    course: Course, tiny: Assignment
) -> None:
    prediction = (
        '# %% predict="zero"\n'
        'predict("Is f(0) zero?", "yes", "no", answer="yes", because="It gives back its input.")\n\n'
        '# %% predict="two"\n'
        'predict("What is f(2)?", answer=2, atol=0.5, because="The same.")\n'
    )
    built = build(course, tiny, TOOLS + prediction + QUESTION)
    ask = '# Predict: Is f(0) zero? Write "yes" or "no" in place of the dots.\n'
    assert texts(built.release_bytes)["predict-zero"] == ask + 'predict("zero", ...)'
    assert texts(built.solution_bytes)["predict-zero"] == ask + 'predict("zero", "yes")'
    assert texts(built.solution_bytes)["predict-two"].endswith('\npredict("two", 2)')
    assert facts(built)["predictions"]["two"] == {
        "answer": 2,
        "atol": 0.5,
        "because": "The same.",
    }
    assert facts(built)["of"] == {"questions": 1, "checks": 0, "predictions": 2}
    assert "gives back" not in built.release_bytes.decode()


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("x = 1", "write predict"),
        ('predict("Why?", answer=1)', "write predict"),
        ('predict("Why?", "a", answer="b", because="c")', "none of the choices"),
        (
            'predict("Why?", answer="b", because="c")',
            "without choices the answer is a number",
        ),
        ('predict(f"{x}?", answer=1, because="c")', "write predict"),
    ],
)
def test_a_prediction_of_another_form_is_refused(
    course: Course, tiny: Assignment, call: str, problem: str
) -> None:
    with pytest.raises(BadSource, match=rf"^source/tiny/tiny\.py:\d+: .*{problem}"):
        build(course, tiny, f'{TOOLS}# %% predict="p"\n{call}\n\n{QUESTION}')


def test_a_prediction_needs_its_import(course: Course, tiny: Assignment) -> None:
    cell = (
        '# %% predict="p"\npredict("What is f(2)?", answer=2, because="The same.")\n\n'
    )
    with pytest.raises(
        BadSource, match="a prediction needs a given cell with `from autograder"
    ):
        build(course, tiny, f'# %% given="g"\nimport math\n\n{cell}{QUESTION}')
    given = (
        '# %% given="g"\nfrom autograder.student_tools.predictions import predict\n\n'
    )
    built = build(course, tiny, given + cell + QUESTION)
    assert texts(built.release_bytes)["given-g"] == (
        "from tiny_tools import check, checking, expect, next_hint, predict, progress"
    )


def test_an_answer_in_a_hint_is_a_leak(course: Course, tiny: Assignment) -> None:
    """Hints are encoded, and `leaks` reads them all the same."""
    line = "return weights.unsqueeze(1) @ states"
    question = QUESTION.replace("return x", line)
    check = f'# %% check="f"\nexpect(1, 1, hint="Write {line}")\n'
    built = build(course, tiny, TOOLS + question + check)
    leaks = find_leaks(
        read_source(tiny),
        built.release_bytes,
        built.files,
        tiny.suite,
        built.companions,
    )
    assert leaks == [
        f"what tiny_tools.py tells after a check gives away a line of the answer to f: {line}"
    ]


def test_without_tools_checks_stay_as_they_are(
    course: Course, tiny: Assignment, questions: dict[str, Any]
) -> None:
    tiny.source.write_text(TINY, encoding="utf-8")
    built = build_assignment(course, tiny, questions)
    assert texts(built.release_bytes)["check-double_1"] == "assert double(3) == 6"
    assert built.companions == {}


@pytest.mark.parametrize("assignment", COURSE.assignments(), ids=lambda one: one.name)
def test_no_line_of_code_is_cut_off_in_a_notebook(assignment: Assignment) -> None:
    """JupyterLab shows 88 columns beside an open sidebar; a longer line is cut off."""
    cells = json.loads(assignment.release.read_bytes())["cells"]
    code = {
        cell["id"]: "".join(cell["source"])
        for cell in cells
        if cell["cell_type"] == "code"
    }
    for library in assignment.release.parent.glob("*_library.py"):
        code[library.name] = library.read_text(encoding="utf-8")
    long_lines = [
        (name, line)
        for name, text in code.items()
        for line in text.split("\n")
        if len(line) > 88
    ]
    assert long_lines == []


@pytest.mark.parametrize("assignment", COURSE.assignments(), ids=lambda one: one.name)
def test_every_prediction_that_the_text_asks_for_has_a_place(
    assignment: Assignment,
) -> None:
    cells = json.loads(assignment.release.read_bytes())["cells"]
    waiting = ""
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and "**Predict" in text:
            waiting = text[:60]
        elif cell["cell_type"] == "code":
            assert not waiting or text.startswith("# Predict: "), waiting
            waiting = ""
