"""`predict("second_state", ...)`: the place for a student's prediction, which costs no points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autograder.student_tools.answer_differences import show
from autograder.student_tools.check_box import CheckBox, running_notebook, show_html
from autograder.student_tools.course_progress import note_progress, note_totals
from autograder.student_tools.notebook_facts import FACTS

_ROUNDING = 1e-6


def predict(name: str, prediction: Any, *_: Any, **__: Any) -> None:
    """Say whether a prediction was so, and why.

    Args:
        name: the prediction's name.
        prediction: what you think: one of the choices, or a number.
    """
    facts = FACTS["predictions"][name]
    choices = facts.get("choices", [])
    prediction = _find_choice(prediction, choices)
    problem = _what_to_write(prediction, choices)
    if problem:
        show_box(CheckBox("open", problem))
        return
    is_right = _is_right(prediction, facts)
    said, answer = _quote(prediction), _quote(facts["answer"])
    title = (
        f"{said}: so it is."
        if is_right
        else f"You said {said}. The answer is {answer}."
    )
    show_box(CheckBox("passed" if is_right else "open", title, [facts["because"]]))
    if running_notebook() is not None:
        folder, assignment = Path.cwd(), FACTS["assignment"]
        note_totals(folder, assignment, FACTS["of"])
        note_progress(folder, assignment, "predictions", name, True)


def _quote(answer: Any) -> str:
    return f'"{answer}"' if isinstance(answer, str) else show(float(answer))


def show_box(box: CheckBox) -> None:
    """Show a box, in HTML where this is a notebook."""
    show_html(box.html(), box.text())


def _what_to_write(prediction: Any, choices: list[str]) -> str:
    """What is to be written, where the prediction is no answer; "" where it is one."""
    listed = " or ".join(f'"{choice}"' for choice in choices) or "a number"
    if prediction is ...:
        return f"Write {listed} in place of the three dots, and run this cell again."
    if choices:
        is_answer = prediction in choices
    else:
        is_answer = isinstance(prediction, (int, float)) and math.isfinite(prediction)
    return "" if is_answer else f"Write {listed}."


def _find_choice(prediction: Any, choices: list[str]) -> Any:
    """The one choice that has these words in it, else the prediction as it is."""
    if prediction is ... or prediction in choices:
        return prediction
    words = _in_words(prediction)
    fitting = [choice for choice in choices if words and words in _in_words(choice)]
    return fitting[0] if len(fitting) == 1 else prediction


def _in_words(choice: Any) -> str:
    return " ".join(str(choice).casefold().split())


def _is_right(prediction: Any, facts: Mapping[str, Any]) -> bool:
    answer = facts["answer"]
    if "choices" in facts:
        return bool(prediction == answer)
    return bool(abs(prediction - answer) <= facts.get("atol", 0) + _ROUNDING)
