"""The line in a message for a name that only a check or a demo defines."""

from __future__ import annotations

from autograder.authoring.check_names import names_of_checks
from autograder.intake.released_notebook import Release, ReleaseCell
from autograder.sitting.verdict import explain_name

RELEASE = Release(
    "a1",
    (
        ReleaseCell("given_imports", "given", "imports", "import math", "code"),
        ReleaseCell(
            "half",
            "question",
            "half",
            "def half(x):\n    raise NotImplementedError",
            "code",
        ),
        ReleaseCell(
            "check_half",
            "check",
            "half",
            "half = trace(half)\ndef slip(x):\n    y = x\nseven = 7",
            "code",
        ),
        ReleaseCell(
            "demo_plot",
            "demo",
            "plot",
            "%matplotlib inline\nimport math, pylab as plt\nseven = 8",
            "code",
        ),
        ReleaseCell("text_5", "text", "text_5", "def told(): ...", "markdown"),
    ),
)
NAMES = names_of_checks(RELEASE)
LINE = (
    "\nOnly the check of half defines slip. Checks and demos do not run in grading: define slip "
    "in your answer's cell, "
    "or in a cell of your own."
)


def test_names_of_checks_and_demos_that_nothing_else_defines() -> None:
    assert NAMES == {
        "slip": "the check of half",
        "seven": "the check of half",
        "plt": "the demo plot",
    }


def test_a_message_says_it_plainly() -> None:
    raised = (
        "`half(2)` raised NameError: name 'slip' is not defined\n  cell half, line 3"
    )
    assert explain_name(raised, NAMES) == raised + LINE
    of_demo = explain_name("NameError: name 'plt' is not defined", NAMES)
    assert "Only the demo plot defines plt. Checks and demos" in of_demo


def test_other_names_and_messages_stay_as_they_are() -> None:
    for message in (
        "",
        "NameError: name 'math' is not defined",
        "ValueError: slip is not defined",
    ):
        assert explain_name(message, NAMES) == message
