"""A student's answer is cut out of the notebook with what it needs, and without anybody's name."""

from __future__ import annotations

import json
from typing import Any

from autograder.learning.answer_text import LONGEST_ANSWER, cut_answer


def cut(
    *cells: str, people: tuple[str, ...] = (), known: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The answer to `f`, which the last cell holds."""
    request = {
        "cells": cells,
        "answer_cell": len(cells) - 1,
        "wanted": ["f"],
        "known": known,
        "people": people,
    }
    reply: dict[str, Any] = json.loads(cut_answer(json.dumps(request)))
    return reply


def test_helpers_come_along_and_nothing_else_does() -> None:
    helpers = (
        "import numpy as np\nN = 3\nunused = 4\ndef twice(x):\n    return 2 * x * N\n"
    )
    answer = "print('hello')\ndef f(x):\n    return twice(np.sum(x))\n"
    assert cut(helpers, answer)["code"] == (
        "import numpy as np\nN = 3\n\n"
        "def twice(x):\n    return 2 * x * N\n\n"
        "def f(x):\n    return twice(np.sum(x))\n"
    )


def test_what_the_answer_key_has_is_the_answer_keys() -> None:
    """A student's own wrong softmax is another question's mistake."""
    code = cut(
        "def softmax(z):\n    return z\n",
        "def f(x):\n    return softmax(x)",
        known=("softmax",),
    )
    assert code["code"] == "def f(x):\n    return softmax(x)\n"


def test_of_several_definitions_the_one_in_the_answers_cell_counts() -> None:
    assert cut(
        "def f(x):\n    return 1", "def f(x):\n    return 2\ndef f(x):\n    return 3"
    ) == {"code": "def f(x):\n    return 3\n"}


def test_comments_and_docstrings_go() -> None:
    answer = '# by Ada\ndef f(x):\n    """Ada wrote this."""\n    # hers\n    return x  # Ada\n'
    assert cut(answer)["code"] == "def f(x):\n    return x\n"
    assert cut('def f(x):\n    """Only this."""')["code"] == "def f(x):\n    pass\n"


def test_names_of_people_go_from_texts_and_from_names() -> None:
    helper = "def adas_sum(x, lovelace=1):\n    return x + lovelace\n"
    answer = (
        "def f(x):\n"
        "    if not x:\n"
        "        raise ValueError('ask Ada Lovelace (ada@example.org), s0815')\n"
        "    return adas_sum(x, lovelace=2)\n"
    )
    code = cut(helper, answer, people=("ada lovelace", "Ada", "Lovelace", "s0815"))[
        "code"
    ]
    assert code == (
        "def adas_sum(x, student_1=1):\n    return x + student_1\n\n"
        "def f(x):\n"
        "    if not x:\n"
        "        raise ValueError('ask student (student), student')\n"
        "    return adas_sum(x, student_1=2)\n"
    )  # three letters are sought as a whole word only: Max is in `maximum` too


def test_a_library_keeps_its_names_whatever_students_are_called() -> None:
    answer = "def f(x):\n    max_row = x.max(0)\n    return x - max_row\n"
    assert cut(answer, people=("Max",))["code"] == (
        "def f(x):\n    student_1 = x.max(0)\n    return x - student_1\n"
    )


def test_an_answer_that_cannot_be_cut_out_says_why() -> None:
    assert cut("def f(x:\n") == {"problem": "its cell is no Python"}
    assert cut("for f in [abs]:\n    pass") == {
        "problem": "no cell defines `f` by a plain statement"
    }
    assert cut("def f(x):\n    return " + "x + " * LONGEST_ANSWER + "x").keys() == {
        "problem"
    }


def test_a_broken_cell_of_the_students_own_is_passed_over() -> None:
    assert cut("this is no Python", "def f(x):\n    return x") == {
        "code": "def f(x):\n    return x\n"
    }
