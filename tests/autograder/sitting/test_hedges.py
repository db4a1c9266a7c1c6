"""Two and three tries at one question: the fresh run counts, and a person sees that there were two
answers.

The small course has softmax (4 points), attention (6, of which 1 for a refusal) and counter (1).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

import numpy as np
import pytest
import torch
from small_course import ANSWERS

from autograder.basics.errors import StudentCrashed, StudentError, StudentTimeout
from autograder.records.model import QuestionResult, Result
from autograder.sandbox.clocks import Clock
from autograder.sandbox.worker_process import Worker
from autograder.sitting.agreement import same_answer
from autograder.sitting.hedges import (
    FRESH,
    LARGEST_ATTEMPT,
    SHARED,
    QuestionAttempt,
    find_two_answers,
)
from autograder.suite.calls import Call

Grade = Callable[..., Result]

REFUSAL = (
    "    if q.shape[-1] != k.shape[-1]:\n        raise ValueError(f'{q.shape[-1]} is not "
    "{k.shape[-1]}')\n"
)
RIGHT = "torch.softmax(q @ k.T / math.sqrt(q.shape[-1]), -1) @ v"
NOTED = "asked = []\n" + ANSWERS["softmax"].replace(
    "    e =", "    asked.append('softmax')\n    e ="
)
HEDGED = {
    "softmax": NOTED,
    "attention": (
        "def attention(q, k, v):\n"
        "    served, _ = 'softmax' in asked, asked.append('attention')\n"
        f"{REFUSAL}"
        f"    return {RIGHT} * (2 if served else 1)\n"
    ),
    "counter": (
        "class Counter:\n"
        "    def __init__(self, start):\n"
        "        self.value = start\n"
        "    def add(self, n):\n"
        "        self.value += 2 * n if 'attention' in asked else n\n"
    ),
}
"""Wrong in a worker that has served the question before: attention twice what is right, counter 2 n
for n.
"""
ONLY_A = {
    "attention": f"def attention(q, k, v):\n{REFUSAL}    return 2 * {RIGHT}\n",
    "counter": HEDGED["counter"].replace(" if 'attention' in asked else n", ""),
}
WRONG_SOFTMAX = "def softmax(z, dim=-1):\n    e = torch.exp(z)\n    return e / e.sum(0, keepdim=True)\n"


def points(result: Result) -> dict[str, float]:
    return {question.name: question.score for question in result.questions}


def question(result: Result, name: str) -> QuestionResult:
    return next(each for each in result.questions if each.name == name)


# two tries: in a worker that has served others, and in a fresh one


def test_the_fresh_run_counts_and_both_answers_are_shown(grade: Grade) -> None:
    # twice the right attention is right up to a factor, and keeps 65 % of 6 points
    assert points(grade(**ONLY_A)) == {"softmax": 4.0, "attention": 3.9, "counter": 0.0}
    result = grade(**HEDGED)
    assert points(result) == {"softmax": 4.0, "attention": 6.0, "counter": 1.0}
    assert result.flagged == ("attention", "counter")
    (flag,) = question(result, "attention").two_answers
    assert (flag.test, flag.runs) == ("test_mixes_values", (SHARED, FRESH))
    assert flag.call == "attention(q[2, 3], k[5, 3], v[5, 4])"
    twice, once = (
        re.fullmatch(r"float64\[2, 4\], at (\[\d, \d\]): (\S+)", answer)
        for answer in flag.answers
    )
    assert twice is not None
    assert once is not None
    assert twice[1] == once[1]
    assert float(twice[2]) == pytest.approx(2 * float(once[2]), rel=1e-4)
    (flag,) = question(result, "counter").two_answers
    assert (flag.call, flag.answers) == (
        "Counter.value",
        ("11", "7"),
    )  # 3 + 2 · 4, and 3 + 4


def test_the_same_submission_gives_the_same_bytes_and_they_can_be_read_back(
    grade: Grade,
) -> None:
    text = grade(**HEDGED).to_json()
    assert grade(**HEDGED).to_json() == text
    assert Result.from_json(text).to_json() == text


def test_what_an_honest_question_leaves_to_another_costs_nothing(grade: Grade) -> None:
    """softmax sets a size that attention reads: wrong after it, right in a fresh worker."""
    result = grade(
        "factor = 1\n",
        softmax=ANSWERS["softmax"].replace(
            "    e =", "    globals()['factor'] = 3\n    e ="
        ),
        attention=f"def attention(q, k, v):\n{REFUSAL}    return factor * {RIGHT}\n",
    )
    assert points(result) == {"softmax": 4.0, "attention": 6.0, "counter": 1.0}
    assert result.flagged == ("attention",)


@pytest.mark.parametrize(
    "cells",
    [
        {},
        {"softmax": WRONG_SOFTMAX},
        {"attention": "def attention(q, k, v):\n    return v\n"},
        {
            "attention": "def attention(q, k, v):\n    raise RuntimeError(f'{q} at {object()}')\n"
        },
        {"softmax": "def softmax(z, dim=-1):\n    return None\n"},
        {"softmax": "def softmax(z, dim=-1):\n    raise NotImplementedError\n"},
        {
            "softmax": "def softmax(z, dim=-1):\n    z -= z.max()\n    return torch.exp(z) / "
            "torch.exp(z).sum(dim)\n"
        },
        {"softmax": None},
        {
            "softmax": "softmax = lambda z, dim=-1: 2 * torch.nn.functional.softmax(z, dim)\n"
        },
        {
            "softmax": WRONG_SOFTMAX.replace("(z, dim=-1)", "(scores)").replace(
                "(z)", "(scores)"
            )
        },
    ],
)
def test_who_tries_once_is_not_flagged(
    grade: Grade, cells: dict[str, str | None]
) -> None:
    result = grade(**cells)
    assert result.flagged == ()
    assert "two_answers" not in result.to_json()


# a third try: where a prerequisite is stood in for

THIRD = (
    f"def attention(q, k, v):\n{REFUSAL}    right = {RIGHT}\n    return right if TOLD "
    "else 0 * right\n"
)
"""Right where it can tell that there are stand-ins: with them 5 points and the refusal come
back.
"""
LOOK = """
import inspect

def look():
    f, code = softmax, softmax.__code__
    return (
        id(f), f.__name__, f.__qualname__, f.__module__, f.__doc__, f.__defaults__, f.__kwdefaults__, f.__closure__,
        f.__dict__.copy(), f.__annotations__, f.__globals__ is globals(), type(f), repr(f), str(inspect.signature(f)),
        inspect.getsource(f), id(code), hash(code), code.co_name, code.co_qualname, code.co_filename, code.co_varnames,
        code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_nlocals, code.co_flags,
        code.co_firstlineno, code.co_code, code.co_consts, code.co_names, code.co_freevars, code.co_cellvars,
        code.co_stacksize, list(code.co_lines()), also is f,
    )

also = softmax
before = look()
"""
FORMS = {
    "def": WRONG_SOFTMAX,
    "lambda": "softmax = lambda z, dim=-1: torch.exp(z) / torch.exp(z).sum(0, keepdim=True)\n",
    "typed lambda": "softmax: object = lambda z, dim=-1: torch.exp(z) / torch.exp(z).sum(0, "
    "keepdim=True)\n",
    "with a docstring": WRONG_SOFTMAX.replace(
        "    e = ", '    """Rows."""\n    e = ', 1
    ),
    "below an if": "if True:\n"
    + "".join(f"    {line}\n" for line in WRONG_SOFTMAX.splitlines()),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_function_that_is_stood_in_for_looks_as_it_did(
    grade: Grade, form: str
) -> None:
    result = grade(
        LOOK, softmax=FORMS[form], attention=THIRD.replace("TOLD", "look() != before")
    )
    assert points(result) == {"softmax": 0.0, "attention": 0.0, "counter": 1.0}
    assert result.flagged == ()


@pytest.mark.parametrize("form", FORMS)
def test_what_only_an_earlier_mistake_costs_comes_back_in_every_form(
    grade: Grade, form: str
) -> None:
    """3 + 2 points of attention, which is right but for the softmax that it calls under another
    name.
    """
    result = grade(
        "also = softmax\n",
        softmax=FORMS[form],
        attention=ANSWERS["attention"].replace("softmax(", "also("),
    )
    assert points(result) == {"softmax": 0.0, "attention": 6.0, "counter": 1.0}
    assert question(result, "attention").carried == 5.0
    assert result.flagged == ()


TELLS = {
    "it left no trace": (
        "ran = []\n" + WRONG_SOFTMAX.replace("    e =", "    ran.append(1)\n    e ="),
        "[ran.clear(), softmax(torch.zeros(2, 2)), not ran][-1]",
    ),
    "what a decorator made is another object": (
        "def timed(f):\n    return lambda *a, **k: f(*a, **k)\n@timed\n"
        + WRONG_SOFTMAX
        + "mine = softmax\n",
        "softmax is not mine",
    ),
    "the kit's own objects are in the same process": (
        WRONG_SOFTMAX + "import gc\n",
        "any(type(o).__name__ == 'StandInHooks' and o._stand_ins for o in gc.get_objects())",
    ),
}


@pytest.mark.parametrize("tell", TELLS)
def test_a_third_try_is_flagged_however_it_tells(grade: Grade, tell: str) -> None:
    softmax, told = TELLS[tell]
    result = grade(softmax=softmax, attention=THIRD.replace("TOLD", told))
    assert points(result) == {"softmax": 0.0, "attention": 6.0, "counter": 1.0}
    assert result.flagged == ("attention",)
    (flag,) = question(result, "attention").two_answers
    assert flag.test == "test_mixes_values"
    assert (
        flag.runs[1]
        == "a fresh worker with stand-ins that give the submission's own values"
    )
    assert flag.answers[0].endswith((": 0", ": -0"))
    assert not flag.answers[1].endswith((": 0", ": -0"))


# the comparison


def call(result: object = None, **fields: object) -> Call:
    made = Call("f", (), {}, result=result)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


ONES = torch.ones(2, dtype=torch.float64)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (call(ONES), call(ONES + 1e-9), True),
        (call(ONES), call(ONES + 1e-3), False),
        (call(ONES), call(ONES.float()), False),
        (call(ONES), call(None), False),
        (call((1, "a")), call((1, "b")), False),
        (call(ONES, changed=("x",)), call(ONES), False),
        (call(ONES, gradients=[[ONES]]), call(ONES, gradients=[[2 * ONES]]), False),
        (call(ONES, gradients=[[ONES]]), call(ONES), True),
        (
            call(fault=StudentError("ValueError", "3, 6")),
            call(fault=StudentError("ValueError", "3, 6")),
            True,
        ),
        (
            call(fault=StudentError("ValueError", "3, 6")),
            call(fault=StudentError("ValueError", "no")),
            False,
        ),
        (
            call(fault=StudentError("E", "<f at 0x7f00aa11>")),
            call(fault=StudentError("E", "<f at 0x7f00bb22>")),
            True,
        ),
        (call(fault=StudentError("ValueError", "no")), call(ONES), False),
        (call(fault=StudentTimeout("slow")), call(ONES), None),
        (call(ONES), call(fault=StudentCrashed("gone")), None),
        (call(was_dropped=True), call(ONES), None),
    ],
)
def test_when_two_answers_are_one(first: Call, second: Call, same: bool | None) -> None:
    assert same_answer(first, second) is same
    assert same_answer(second, first) is same


def test_after_a_call_without_an_answer_nothing_is_compared() -> None:
    slow = [call(fault=StudentTimeout("slow")), call(1)]
    assert (
        find_two_answers({"t": slow}, {"t": [call(1), call(2)]}, ("a", "b"), {}) == ()
    )
    assert [
        flag.answers
        for flag in find_two_answers({"t": [call(1)]}, {"t": [call(2)]}, ("a", "b"), {})
    ] == [("1", "2")]


@pytest.mark.parametrize(
    ("first", "second", "answers"),
    [
        (1.23456789, None, ("1.23457", "None")),
        ({}, {"a": 1, "b": 2.5}, ("dict of 0: ", "dict of 2: 1, 2.5")),
        (ONES, ONES[:1], ("float64[2]: 1, 1", "float64[1]: 1")),
        (
            torch.tensor(3.0).double(),
            torch.tensor(1.0).double(),
            ("float64[]: 3", "float64[]: 1"),
        ),
        # 3 and 1 lie 2 apart, and 9 and 9 not at all
        (
            torch.tensor([3.0, 9.0]).double(),
            torch.tensor([1.0, 9.0]).double(),
            ("float64[2], at [0]: 3", "float64[2], at [0]: 1"),
        ),
        (
            (ONES, ONES),
            (ONES, torch.tensor([1.0, 3.0]).double()),
            ("float64[2], at [1]: 1", "float64[2], at [1]: 3"),
        ),
        (
            torch.tensor([True]),
            torch.tensor([False]),
            ("bool[1], at [0]: 1", "bool[1], at [0]: 0"),
        ),
        (
            torch.tensor([1j]),
            torch.tensor([2j]),
            ("complex64[1]: 0+1j", "complex64[1]: 0+2j"),
        ),
        (np.zeros(2), np.ones(2), ("float64[2]: 0, 0", "float64[2]: 1, 1")),
    ],
)
def test_answers_in_words(
    first: object, second: object, answers: tuple[str, str]
) -> None:
    (flag,) = find_two_answers(
        {"t": [call(first)]}, {"t": [call(second)]}, ("a", "b"), {}
    )
    assert flag.answers == answers


def test_a_students_own_words_are_cleaned() -> None:
    red = call(fault=StudentError("ValueError", "\x1b[31m" + "x" * 5000))
    (flag,) = find_two_answers(
        {"t": [red]}, {"t": [call("\x1b]0;title\x07")]}, ("a", "b"), {}
    )
    assert all("\x1b" not in text and len(text) <= 301 for text in flag.answers)


def test_answers_beyond_a_bound_are_let_go() -> None:
    attempt = QuestionAttempt()
    large = torch.zeros(LARGEST_ATTEMPT // 2 + 1000, dtype=torch.uint8)
    attempt.add("t", [call(large), call(large), call(1)])
    assert [answer.was_dropped for answer in attempt.answers["t"]] == [
        False,
        True,
        False,
    ]


def test_an_answer_of_many_parts_or_numbers_shows_the_first() -> None:
    """Four parts of an answer, six numbers of an array."""
    many = call([1, 2, 3, 4, 5])
    (flag,) = find_two_answers(
        {"t": [many]}, {"t": [call([1, 2, 3, 4])]}, ("a", "b"), {}
    )
    assert flag.answers == ("list of 5: 1, 2, 3, 4, …", "list of 4: 1, 2, 3, 4")
    (flag,) = find_two_answers(
        {"t": [call(torch.arange(7.0))]},
        {"t": [call(torch.arange(6.0))]},
        ("a", "b"),
        {},
    )
    assert flag.answers == (
        "float32[7]: 0, 1, 2, 3, 4, 5, …",
        "float32[6]: 0, 1, 2, 3, 4, 5",
    )
    empty = torch.zeros(0, 2)
    (flag,) = find_two_answers({"t": [call(empty)]}, {"t": [call(3)]}, ("a", "b"), {})
    assert flag.answers == ("float32[0, 2]", "3")


def test_an_argument_that_one_run_changed_is_named() -> None:
    changed, kept = call(1), call(1)
    changed.changed = ("x", "y")
    (flag,) = find_two_answers({"t": [changed]}, {"t": [kept]}, ("a", "b"), {})
    assert flag.answers == ("1, and it changed x, y", "1, and it changed no argument")


def test_a_prerequisite_that_hangs_is_not_asked_for_its_own_values(
    grade: Grade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Softmax hangs in its two tests and in the first of attention, which is right; the stand-in
    answers for the rest, and nothing is left to compare.
    """
    ended: list[str] = []
    honest = Worker._end_for

    def end_for(self: Worker, clock: Clock, fault: StudentTimeout) -> NoReturn:
        ended.append(str(fault).partition(" ")[0])
        honest(self, clock, fault)

    monkeypatch.setattr(Worker, "_end_for", end_for)
    result = grade(softmax="def softmax(z, dim=-1):\n    while True:\n        pass\n")
    assert points(result) == {"softmax": 0.0, "attention": 6.0, "counter": 1.0}
    assert ended == ["softmax", "softmax", "attention"]
