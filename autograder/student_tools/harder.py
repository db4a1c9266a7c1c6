"""`harder(attend)`: tries a question's answer on harder inputs, as often as a student wants."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograder.student_tools.check_box import CheckBox, running_notebook, show_html
from autograder.student_tools.course_progress import note_progress, note_totals
from autograder.student_tools.notebook_facts import FACTS, STUB

_SECONDS = 2.0
_SEEDS = 100_000


def harder(
    function: Callable[..., Any],
    seed: int = -1,
    seconds: float = _SECONDS,
) -> None:
    """Try your function on harder inputs: sizes of all kinds, views, dtypes, large and tiny
    numbers, gradients. What should hold of every answer is looked at, no answer is given away.

    It costs and gives no points, and does nothing when the notebook is graded.

    Args:
        function: your function or class.
        seed: for the same inputs once more; each call takes others.
        seconds: how long it may take.
    """
    if running_notebook() is None:
        print("harder(…) tries inputs in a notebook; here it does nothing.")
        return
    question = _question_of(function)
    if not question:
        listed = ", ".join(FACTS.get("harder", ()))
        raise ValueError(
            f"there are harder inputs for {listed}; write one of them, harder(…)"
        )
    seed = seed if seed >= 0 else random.SystemRandom().randrange(_SEEDS)
    names = {
        **sys._getframe(1).f_globals,
        getattr(
            function,
            "__name__",
            question,
        ): function,
    }
    box = try_harder(
        question,
        names,
        seed,
        seconds,
    )
    show_html(box.html(), box.text())
    folder, assignment = Path.cwd(), FACTS["assignment"]
    note_totals(
        folder,
        assignment,
        FACTS["of"],
    )
    note_progress(
        folder,
        assignment,
        "harder",
        question,
        box.state == "passed",
    )


def _question_of(function: Callable[..., Any]) -> str:
    """The question that a function answers; "" where it answers none with harder inputs."""
    name = getattr(
        function,
        "__name__",
        "",
    )
    return name if name in FACTS.get("harder", ()) else ""


def _why_no_kernels(entry: Any, names: dict[str, Any]) -> str:
    """Why a question's kernels do not run here; "" where they do, or where it has none."""
    if not entry.is_kernel:
        return ""
    # `NoTriton` stands in for a module that is not here, and only a stand-in has advice
    advice = getattr(
        names.get("triton"),
        "advice",
        "",
    )
    return str(advice)


def try_harder(
    question: str,
    names: dict[str, Any],
    seed: int,
    seconds: float,
) -> CheckBox:
    """The box about the harder inputs of a question."""
    try:
        part = importlib.import_module(FACTS["harder_module"])
    except ModuleNotFoundError as error:
        sentence = (
            f"{FACTS['harder_module']}.py is not here: put it beside the notebook."
        )
        return CheckBox(
            "open",
            f"`{question}`: harder inputs",
            [sentence, str(error)],
        )
    if advice := _why_no_kernels(part.QUESTIONS[question], names):
        return CheckBox(
            "open",
            f"`{question}`: harder inputs",
            [advice],
        )
    result = part.HarderSearch(
        question,
        names,
        seed,
        seconds,
    ).run()
    again = f"The same inputs again: `harder({question}, seed={seed})`."
    failure = result.failure
    if failure is None:
        count = f"{result.calls} calls" if result.calls != 1 else "1 call"
        held = " ".join(result.sentences)
        return CheckBox(
            "passed",
            f"`{question}`: {count} with harder inputs, all is well",
            [held, again],
        )
    if failure.error is not None and STUB in str(failure.error):
        sentence = (
            "Write your answer in its cell, run the cell, and run this one again."
        )
        return CheckBox(
            "open",
            f"`{question}` is not written yet",
            [sentence],
        )
    return CheckBox(
        "failed",
        f"`{question}`: a harder call fails",
        [f"What should hold: {failure.sentence}", failure.problem, again],
        failure.title,
        example=failure.lines,
        difference=failure.difference,
    )
