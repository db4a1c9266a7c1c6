"""The boxes of visible checks: pictures, hints, tracebacks, predictions and progress."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autograder.student_tools.answer_differences import CheckDifference, compare_answers
from autograder.student_tools.check_box import CheckBox
from autograder.student_tools.course_progress import (
    course_notes,
    load_progress,
    note_progress,
    note_totals,
    progress_rows,
)
from autograder.student_tools.expect import NotYet, checking, expect, next_hint
from autograder.student_tools.notebook_facts import FACTS
from autograder.student_tools.pictures_of_answers import (
    draw_difference,
    write_difference,
)
from autograder.student_tools.predictions import predict

HINTS = ["Look at {0}.", "Count `again`."]


@pytest.fixture(autouse=True)
def facts() -> Iterator[None]:
    """The facts of a notebook of one question, `half`."""
    FACTS.update(
        assignment="hw",
        hints={"half": [["Look.", "Count `again`."], ["At {0:.1f}."]]},
        of={"questions": 1, "checks": 1, "predictions": 2},
        predictions={
            "sign": {
                "choices": ["above zero", "below"],
                "answer": "below",
                "because": "It fell.",
            },
            "size": {"answer": 0.5, "atol": 0.01, "because": "A half."},
        },
        questions=["half"],
        refused={},
    )
    yield
    FACTS.clear()


def run(check: str, answer: str = "def half(x):\n    return x / 2") -> dict[str, Any]:
    """Run a student's cell and a check."""
    names: dict[str, Any] = {"checking": checking, "expect": expect, "np": np}
    exec(compile(answer, "<answer>", "exec"), names)
    lines = check.replace("\n", "\n    ")
    exec(compile(f'with checking("half"):\n    {lines}', "<check>", "exec"), names)
    return names


def test_a_check_that_passes_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    names = run("expect(half(3), 1.5)\nexpect(half(np.ones(2)), np.full(2, 0.5))")
    assert capsys.readouterr().out == "✓ half: as expected (2 comparisons)\n"
    assert names["half"].__name__ == "half"
    assert not hasattr(names["half"], "__wrapped__")  # the student's own function again


def test_a_check_that_fails_shows_call_difference_and_how_to_get_hints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(
        NotYet, match=r"^Not yet: 1 of 2 elements differ, first at \[1\]: yours"
    ):
        run("expect(half(np.array([1.0, 2.0])), np.array([0.5, 3.0]), hint=1)")
    assert capsys.readouterr().out == (
        "✗ half: not yet\n"
        "  half(x[2])\n"
        "  1 of 2 elements differ, first at [1]: yours is 1, expected 3.\n"
        "  yours:\n"
        "    0.5    1\n"
        "  expected:\n"
        "    0.5    3\n"
        "  There are 2 hints: next_hint() shows the next one.\n"
    )
    for _ in range(3):
        next_hint()
    assert capsys.readouterr().out == (
        "Look.\n(1 more: next_hint() again)\nCount `again`.\nThere is no further hint.\n"
    )


def test_a_hint_may_have_values_of_the_check(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(NotYet):
        run("expect(half(3), 2.0, hint=(2, 0.25))")
    next_hint()
    assert capsys.readouterr().out.endswith("At 0.2.\n")


def test_an_exception_of_the_student_s_keeps_the_lines_in_the_notebook(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = "import json\ndef helper(x):\n    return json.loads(x)\ndef half(x):\n    return helper(x)"
    with pytest.raises(json.JSONDecodeError) as raised:
        run("expect(half('{'), 1)", answer)
    lines = raised.value._render_traceback_()  # type: ignore[attr-defined]  # IPython's hook
    assert [line.partition(":")[0] for line in lines] == [
        "  line 5, in half",
        "  line 3, in helper",
        "JSONDecodeError",
    ]
    printed = capsys.readouterr().out
    assert "Your code raised JSONDecodeError: Expecting property name" in printed
    assert "half(x='{')" in printed


def test_a_stub_is_no_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    stub = 'def half(x):\n    raise NotImplementedError("half: write your answer here")'
    with pytest.raises(NotImplementedError, match="half: write your answer here"):
        run("expect(half(1), 1)", stub)
    assert capsys.readouterr().out.startswith("… half is not written yet\n")
    with pytest.raises(NotImplementedError):
        run("expect(half(1), 1)", stub.replace("half:", "double:"))
    assert "It needs double, which is not written yet." in capsys.readouterr().out


def test_what_is_not_defined_is_to_be_run_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(NameError):
        run("expect(half(1), 1)", "pass")
    assert "… half is not defined\n  Run its cell first" in capsys.readouterr().out


def test_hints_are_nested_so_that_they_open_one_by_one() -> None:
    box = CheckBox(
        "failed", "`f`: not yet", ["x < 1"], hints=("First.", "Then `this`.")
    )
    page = box.html()
    first, second = page.index("Hint 1 of 2"), page.index("Hint 2 of 2")
    assert first < page.index("First.") < second
    assert page.index("</details>") > second  # the second lies inside the first
    assert "x &lt; 1" in page
    assert "<details open" not in page
    assert "First." not in box.text()
    assert 'aria-label="`f`: not yet. x &lt; 1"' in page


def difference_of(actual: Any, expected: Any) -> CheckDifference:
    difference = compare_answers(actual, expected, 1e-6)
    assert difference is not None
    return difference


def test_tables_mark_what_differs_and_have_the_numbers() -> None:
    page = draw_difference(
        difference_of(np.array([[1.0, 2.0]]), np.array([[1.0, -3.0]]))
    )
    yours, expected = page.split("expected")
    assert "✗" in yours
    assert "differs, at [0, 1]" in yours
    assert "✗" not in expected
    assert ">-3<" in expected
    assert "rgba(209,120,40,0.48)" in expected  # the largest number below zero


def test_a_large_array_shows_the_part_around_the_first_difference() -> None:
    mine, right = np.zeros((2, 40, 50)), np.zeros((2, 40, 50))
    mine[1, 30, 49] = 5.0
    difference = difference_of(mine, right)
    lines = write_difference(difference)
    assert lines[0] == "yours ([1, 24:36, 38:50]):"
    assert len(lines) == 2 * (1 + 12)
    assert lines[7].split()[-1] == "5"
    assert draw_difference(difference).count("<tr>") == 24


def test_a_long_row_is_drawn_as_a_curve() -> None:
    page = draw_difference(difference_of(np.arange(20.0), np.zeros(20)))
    assert page.count("<polyline") == 2
    assert 'role="img" aria-label="Two curves from 0 to 19' in page


def test_other_shapes_and_nothing_to_draw() -> None:
    page = draw_difference(difference_of(np.zeros(2), np.zeros((2, 2))))
    assert page.count("<td") == 6
    assert draw_difference(difference_of(3, 4)) == ""
    assert draw_difference(difference_of(np.zeros((0, 2)), np.zeros((1, 2)))) == ""


@pytest.mark.parametrize(
    ("name", "prediction", "said"),
    [
        ("sign", ..., '… Write "above zero" or "below" in place of the three dots'),
        ("sign", "Below", '✓ "below": so it is.\n  It fell.'),
        (
            "sign",
            "above",
            '… You said "above zero". The answer is "below".\n  It fell.',
        ),
        ("sign", 3, '… Write "above zero" or "below".'),
        ("size", 0.505, "✓ 0.505: so it is.\n  A half."),
        ("size", 1, "… You said 1. The answer is 0.5.\n  A half."),
        ("size", "a half", "… Write a number."),
    ],
)
def test_a_prediction_is_answered(
    name: str, prediction: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    predict(name, prediction)
    assert capsys.readouterr().out.startswith(said)


def test_progress_is_a_table_of_all_folders_of_the_course(tmp_path: Path) -> None:
    here, other = tmp_path / "a2", tmp_path / "a1"
    for folder, assignment in ((here, "a2"), (other, "a1")):
        folder.mkdir()
        note_totals(folder, assignment, {"questions": 2, "checks": 3, "predictions": 1})
    note_progress(here, "a2", "checks", "f", True)
    note_progress(here, "a2", "checks", "g", False)
    note_progress(here, "a2", "questions", "f", True)
    (other / "a1.html").write_text("<title>a1</title><p>7.5 of 95 points")
    assert progress_rows(course_notes(here)) == [
        [
            "assignment",
            "questions written",
            "checks passed",
            "harder inputs passed",
            "predictions made",
            "points",
        ],
        ["a1", "0 of 2", "0 of 3", "–", "0 of 1", "7.5 of 95"],
        ["a2", "1 of 2", "1 of 3", "–", "0 of 1", "–"],
    ]
    (here / "progress.json").write_text("[1")
    assert load_progress(here) == {}


def test_outside_of_a_notebook_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run("expect(half(2), 1.0)")
    predict("size", 0.5)
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out.count("\n") == 3


def test_these_modules_are_plain_python() -> None:
    """They run on any student's machine: the standard library alone, and IPython where it is."""
    folder = Path(sys.modules[CheckBox.__module__].__file__ or "").parent
    for name in ("expect", "check_box", "predictions", "progress_table", "refusing"):
        for node in ast.walk(ast.parse((folder / f"{name}.py").read_text())):
            if isinstance(node, ast.ImportFrom):
                root = (node.module or "").partition(".")[0]
                assert root in {"autograder", *sys.stdlib_module_names}
