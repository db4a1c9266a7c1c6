"""Which question is told not to be written yet, and what an unfinished earlier one costs: its own
points.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from small_course import ANSWERS

from autograder.records.model import QuestionResult, Result

Grade = Callable[..., Result]

pytestmark = pytest.mark.usefixtures("standing_host")

STUB = (
    'def softmax(z, dim=-1):\n    """z: [...]"""\n    raise NotImplementedError("softmax: write '
    'your answer here")\n'
)
CALL = ANSWERS["attention"]


def question(result: Result, name: str) -> QuestionResult:
    return next(question for question in result.questions if question.name == name)


def test_an_earlier_stub_is_named_and_costs_its_own_points_alone(grade: Grade) -> None:
    result = grade(softmax=STUB)
    attention = question(result, "attention")
    assert (attention.score, attention.carried) == (6.0, 5.0)
    assert result.score == 11.0 - 4.0
    assert attention.tests[0].message == (
        "`attention(q[2, 3], k[5, 3], v[5, 4])` needs `softmax`, which is not written yet."
    )
    own = question(result, "softmax").tests[0]
    assert (own.outcome, own.message) == (
        "error",
        "`softmax(z[3, 5])` is not written yet.",
    )


def test_a_stub_that_was_left_below_an_answer_is_told(grade: Grade) -> None:
    unfinished = STUB.replace("    raise", "    e = torch.exp(z)\n    raise")
    assert question(grade(softmax=unfinished), "softmax").tests[0].message == (
        "`softmax(z[3, 5])` is not finished: `raise NotImplementedError` still stands in line 4 "
        "of cell softmax, "
        "below your code. Delete that line."
    )


def test_not_implemented_of_torch_is_an_error_with_its_words(grade: Grade) -> None:
    """Nothing of softmax is unwritten: torch has no `and` of floats."""
    result = grade(softmax="def softmax(z, dim=-1):\n    return z & z\n")
    test = question(result, "softmax").tests[0]
    assert test.outcome == "error"
    assert "raised NotImplementedError" in test.message
    assert "not implemented for 'Double'" in test.message
    assert "cell softmax, line 2" in test.message


@pytest.mark.parametrize(
    "earlier",
    [
        STUB,
        "def softmax(z, dim=-1):\n    pass\n",
        "def softmax(z, dim=-1):\n    return z\n",
        "def softmax(z, dim=-1):\n    return 'soon'\n",
        "def softmax(z, dim=-1)\n    return z\n",  # a colon is missing
        None,
    ],
)
def test_an_earlier_question_in_any_state_costs_its_own_points_alone(
    grade: Grade, earlier: str | None
) -> None:
    result = grade(softmax=earlier)
    assert [question(result, name).score for name in ("attention", "counter")] == [
        6.0,
        1.0,
    ]


def test_an_undeclared_prerequisite_that_the_students_own_cell_calls_is_stood_in_for(
    grade: Grade,
) -> None:
    """The answer key's counter calls nothing; this one calls softmax, which is not written."""
    counter = (
        "class Counter:\n    def __init__(self, start):\n        self.value = start\n\n"
    )
    counter += "    def add(self, n):\n        self.value += n * float(softmax(torch.zeros(1, dtype=torch.float64)))\n"
    assert question(grade(softmax=STUB, counter=counter), "counter").score == 1.0
