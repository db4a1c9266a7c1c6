"""Examples on the pages that students read, and when they are shown."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from stored_results import SCRIPT

from autograder.course.course import Course, FeedbackSettings
from autograder.marks.late_policy import shown_now
from autograder.outputs.feedback_page import render_feedback
from autograder.platforms.gradescope import results_json
from autograder.records.model import DifferenceTable, Result, SmallExample
from autograder.records.submission import CellOutcome

EXAMPLE = SmallExample(
    "f(torch.tensor([[0.], [0.]]))",
    "torch.tensor([[0.5], [1.]])",
    "torch.tensor([[1.], [1.]])",
    table=DifferenceTable((("0.5",), ("1",)), (("1",), ("1",)), ((True,), (False,))),
)
COSTLY = SmallExample(
    "f(x[3, 5])", note="has the right value; it multiplies more than it needs."
)


def with_example(result: Result, example: SmallExample) -> Result:
    """The result with an example for its first question."""
    first, *others = result.questions
    questions = (dataclasses.replace(first, example=example), *others)
    return dataclasses.replace(result, questions=questions)


def test_the_page_shows_the_call_and_both_answers(plain: Result) -> None:
    page = render_feedback(with_example(plain, EXAMPLE))
    assert "<strong>Try this:</strong>" in page
    assert "<pre>f(torch.tensor([[0.], [0.]]))</pre>" in page
    assert "<dt>yours</dt><dd><code>torch.tensor([[0.5], [1.]])</code></dd>" in page
    assert "<dt>right</dt><dd><code>torch.tensor([[1.], [1.]])</code></dd>" in page
    assert page.count("<tr><td><mark>0.5</mark></td></tr>") == 1
    assert page.count("<tr><td><mark>1</mark></td></tr>") == 1
    assert page.count("<tr><td>1</td></tr>") == 2
    assert "Try this" not in render_feedback(plain)


def test_a_difference_that_is_no_value_is_one_line(plain: Result) -> None:
    page = render_feedback(with_example(plain, COSTLY))
    assert (
        "<code>f(x[3, 5])</code> has the right value; it multiplies more than it needs.</p>"
        in page
    )
    assert "Try this" not in page


def test_an_example_is_text(plain: Result) -> None:
    cells = ((SCRIPT, "1"),)
    table = DifferenceTable(cells, cells, ((True, False),))
    hostile = SmallExample(SCRIPT, SCRIPT, SCRIPT, SCRIPT, table)
    page = render_feedback(with_example(plain, hostile))
    assert SCRIPT not in page
    assert page.count("&lt;script&gt;") >= 6


def test_a_stored_result_keeps_its_example(plain: Result) -> None:
    result = with_example(plain, EXAMPLE)
    assert Result.from_json(result.to_json()) == result
    fields = json.loads(result.to_json())
    assert fields["questions"][0]["example"]["table"]["differs"] == [[True], [False]]
    assert "example" not in fields["questions"][1]
    assert result.without_examples() == plain


def test_gradescope_shows_it_as_text(plain: Result) -> None:
    entry = json.loads(results_json(with_example(plain, EXAMPLE)))["tests"][0]
    assert entry["output"].endswith(
        "Try this:\n    f(torch.tensor([[0.], [0.]]))\n"
        "yours: torch.tensor([[0.5], [1.]])\nright: torch.tensor([[1.], [1.]])"
    )


@pytest.mark.parametrize(
    ("setting", "days_until_due", "is_shown"),
    [
        ("always", 1, True),
        ("after due", 1, False),
        ("after due", -1, False),  # the student has two days more
        ("after due", -3, True),
        ("after due", None, False),
        ("never", -3, False),
    ],
)
def test_the_setting_says_when(
    plain: Result, setting: str, days_until_due: int | None, is_shown: bool
) -> None:
    due = {}
    if days_until_due is not None:
        due[plain.assignment] = datetime.now(UTC) + timedelta(days=days_until_due)
    course = Course(
        Path("/nowhere"),
        feedback_settings=FeedbackSettings(setting),
        due=due,
        extensions={plain.assignment: {"s01": timedelta(days=2)}},
    )
    result = with_example(plain, EXAMPLE)
    shown = shown_now(course, plain.assignment, "s01", None, result)
    assert shown == (result if is_shown else plain)


def test_a_page_lists_the_cells_of_which_there_is_something_to_say(
    plain: Result,
) -> None:
    page = render_feedback(plain)
    assert "<li><code>softmax</code>" not in page
    assert "<li><code>library</code>" in page
    assert "<li><code>heat_map</code>" in page
    said = (CellOutcome("a1", "ok"), CellOutcome("a2", "ok", "a note"))
    page = render_feedback(dataclasses.replace(plain, cells=said))
    assert "<li><code>a1</code>" not in page
    assert "<li><code>a2</code>" in page
    silent = render_feedback(dataclasses.replace(plain, cells=said[:1]))
    assert "Your cells" not in silent
