"""What a submission is worth: right, wrong, broken and hostile, each costs what it must and no
more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from courses import built_course, handed_in, write_assignment
from small_course import ANSWERS

from autograder.grading.bench import Bench, start_bench
from autograder.records.model import QuestionResult, Result
from autograder.records.submission import FoundSubmission

Grade = Callable[..., Result]

HALVES = '''\
# %% given="imports"
import torch

# %% question="half"
def half(x):
    """x: [] with an even number; ValueError for an odd one."""
    ### BEGIN SOLUTION
    if x % 2:
        raise ValueError(f"{x} is odd")
    return x / 2
    ### END SOLUTION

# %% check="half"
two = torch.tensor(2.0)
assert half(two) == 1

# %% question="quarter"
def quarter(x):
    """x: [] with a multiple of 4; ValueError for another number."""
    ### BEGIN SOLUTION
    return half(half(x))
    ### END SOLUTION

# %% check="quarter"
assert quarter(torch.tensor(4.0)) == 1
'''
HALVES_SUITE = {
    f"test_{name}.py": f"""\
from autograder.suite import assert_close, assert_refused, points, tensor, uses

pytestmark = uses({"'half'" if name == "quarter" else ""})


@points(1)
def test_eight(student):
    assert_close(student.{name}(tensor(8.0)), tensor({8.0 / parts}))


@points(2)
def test_four(student):
    assert_close(student.{name}(tensor(4.0)), tensor({4.0 / parts}))


@points(1)
def test_refuses(student):
    assert_refused(student.{name}, tensor({odd}))
"""
    for name, parts, odd in (("half", 2, 5.0), ("quarter", 4, 6.0))
} | {
    "mistakes.py": """\
from autograder.suite import mistake


@mistake("quarter", hint="Whose x is it that you halve?")
def halves_the_callers(x):
    half(half(x))
    x /= 4
    return x
"""
}


def question(result: Result, name: str) -> QuestionResult:
    return next(q for q in result.questions if q.name == name)


def outcomes(result: Result, name: str) -> list[str]:
    return [test.outcome for test in question(result, name).tests]


def cell(result: Result, name: str) -> tuple[str, str]:
    return next((c.outcome, c.message) for c in result.cells if c.id == name)


def test_right_answers_get_full_marks(grade: Grade) -> None:
    result = grade()
    assert (result.score, result.max_score) == (11.0, 11.0)
    assert [(q.name, q.score, q.max_score) for q in result.questions] == [
        ("softmax", 4.0, 4.0),
        ("attention", 6.0, 6.0),
        ("counter", 1.0, 1.0),
    ]


def test_the_same_submission_gives_the_same_bytes(grade: Grade) -> None:
    wrong = "def softmax(z, dim=-1):\n    return torch.exp(z) * torch.rand(1)\n"
    assert grade(softmax=wrong).to_json() == grade(softmax=wrong).to_json()


def test_a_known_mistake_is_named_and_charged_once(grade: Grade) -> None:
    result = grade(
        softmax="def softmax(z, dim=-1):\n    return z.exp() / z.exp().sum(dim=0)\n"
    )
    softmax, attention = question(result, "softmax"), question(result, "attention")
    assert softmax.diagnosis is not None
    assert (softmax.diagnosis.mistake, softmax.diagnosis.hint) == (
        "over_the_rows",
        "Each row should sum to 1.",
    )
    assert softmax.score == 0.0
    # attention is right but for the softmax that it calls: with a stand-in it gets its 3 + 2 points
    # back
    assert (attention.score, attention.carried) == (6.0, 5.0)
    assert result.score == 7.0


def test_a_mistake_that_nobody_knows_has_no_diagnosis(grade: Grade) -> None:
    result = grade(softmax="def softmax(z, dim=-1):\n    return torch.zeros_like(z)\n")
    assert question(result, "softmax").diagnosis is None
    assert question(result, "softmax").score == 0.0


@pytest.fixture(scope="module")
def halves(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], Result]]:
    """Grades a right `quarter` behind this `half`."""

    def write(root: Path) -> None:
        write_assignment(root, "halves", HALVES, HALVES_SUITE, "")

    folder = tmp_path_factory.mktemp("halves")
    course = built_course(folder, write)
    with start_bench(course, course.assignment("halves")) as bench:

        def result(half: str) -> Result:
            notebook = folder / "student-001.ipynb"
            cells = {
                "half": half,
                "quarter": "def quarter(x):\n    return half(half(x))\n",
            }
            notebook.write_text(handed_in(cells), encoding="utf-8")
            graded = bench.grade(FoundSubmission("student-001", notebook)).result
            assert graded is not None
            return graded

        yield result


def test_a_refusal_that_a_prerequisite_owes_is_carried(
    halves: Callable[[str], Result],
) -> None:
    """quarter leaves it to half to refuse odd numbers: where half does not, its own point is lost,
    and no other.
    """
    result = halves("def half(x):\n    return x / 2\n")
    lost = {q.name: (q.max_score - q.score, q.carried) for q in result.questions}
    assert lost == {"half": (1.0, 0.0), "quarter": (0.0, 1.0)}


def test_an_argument_that_a_prerequisite_changed_is_no_mistake_of_ones_own(
    halves: Callable[[str], Result],
) -> None:
    """It is changed in each test of quarter, of which one is charged. With a stand-in none is:
    nothing is named.
    """
    result = halves(
        "def half(x):\n    if x % 2:\n        raise ValueError(x)\n    x /= 2\n    return x\n"
    )
    lost = {q.name: (q.max_score - q.score, q.carried) for q in result.questions}
    assert lost == {"half": (1.0, 0.0), "quarter": (0.0, 1.0)}
    assert question(result, "quarter").diagnosis is None


def test_a_name_that_only_a_check_defines_is_said_to_be_one(
    halves: Callable[[str], Result],
) -> None:
    """In the notebook, where the check runs, this half is right."""
    (eight, *_) = question(halves("def half(x):\n    return x / two\n"), "half").tests
    assert "NameError: name 'two' is not defined" in eight.message
    assert eight.message.endswith(
        "Only the check of half defines two. Checks and demos do not run in grading: define two "
        "in your answer's cell, "
        "or in a cell of your own."
    )


def test_a_mistake_of_ones_own_is_not_carried(grade: Grade) -> None:
    wrong = "def attention(q, k, v):\n    return softmax(q @ k.T) @ v\n"
    result = grade(
        softmax="def softmax(z, dim=-1):\n    return z.exp() / z.exp().sum(dim=0)\n",
        attention=wrong,
    )
    attention = question(result, "attention")
    # no_scale with a right softmax: half of its points
    assert (attention.carried, attention.score) == (0.0, 3.0)
    assert result.score == 4.0


def test_a_mistake_beside_a_missing_check_is_still_named(grade: Grade) -> None:
    result = grade(
        attention="def attention(q, k, v):\n    return softmax(q @ k.T) @ v\n"
    )
    attention = question(result, "attention")
    assert outcomes(result, "attention") == ["failed", "failed", "failed"]
    assert attention.diagnosis is not None
    assert attention.diagnosis.mistake == "no_scale"


def test_a_slip_keeps_a_share_of_its_question(grade: Grade) -> None:
    """no_scale answers nothing right, so that its refusal counts for nothing too; the course lets
    it keep half.
    """
    result = grade(
        attention=ANSWERS["attention"].replace(" / math.sqrt(q.shape[-1])", "")
    )
    attention = question(result, "attention")
    assert attention.diagnosis is not None
    assert attention.diagnosis.keeps == 0.5
    assert (attention.score, attention.kept) == (3.0, 3.0)
    assert result.score == 8.0
    assert Result.from_json(result.to_json()) == result


def test_a_slip_beside_a_missing_check_costs_both_and_no_more(grade: Grade) -> None:
    """no_scale costs 3 of 6; its refusal counts for nothing already, so that leaving the check out
    costs no more.
    """
    attention = question(
        grade(attention="def attention(q, k, v):\n    return softmax(q @ k.T) @ v\n"),
        "attention",
    )
    assert (attention.score, attention.kept) == (3.0, 3.0)


COMPILED = """\
@torch.compile
def shifted(z, dim):
    return torch.exp(z - z.amax(dim, keepdim=True))

class Softmax(torch.nn.Module):
    def forward(self, z, dim):
        return shifted(z, dim) / shifted(z, dim).sum(dim, keepdim=True)

@torch.compile(fullgraph=True, mode="reduce-overhead")
def softmax(z, dim=-1):
    module = Softmax()
    module.compile()
    return torch.compiler.compile(torch.compile(module, dynamic=True))(z, dim)
"""


def test_torch_compile_runs_eagerly(grade: Grade) -> None:
    assert grade(softmax=COMPILED).score == 11.0


def test_what_is_not_written_yet_says_so(grade: Grade) -> None:
    result = grade(
        counter="class Counter:\n    def __init__(self, start):\n        raise "
        "NotImplementedError('x')\n"
    )
    test = question(result, "counter").tests[0]
    assert (test.outcome, test.message) == (
        "error",
        "`Counter(start=3)` is not written yet.",
    )


def test_an_exception_names_the_students_own_line(grade: Grade) -> None:
    result = grade(softmax="def softmax(z, dim=-1):\n    return z / undefined_name\n")
    message = question(result, "softmax").tests[0].message
    assert message == (
        "`softmax(z[3, 5])` raised NameError: name 'undefined_name' is not defined\n"
        "  cell softmax, line 2, in softmax:     return z / undefined_name"
    ).replace("    return", "return")


def test_a_syntax_error_costs_its_cell(grade: Grade) -> None:
    result = grade(counter="class Counter(:\n    pass\n")
    assert result.score == 10.0
    assert cell(result, "counter") == ("error", "SyntaxError: invalid syntax (line 1)")
    assert outcomes(result, "counter") == ["missing"]


def test_an_await_outside_of_functions_runs_as_in_jupyter(grade: Grade) -> None:
    slow = "import asyncio\n\nasync def axis():\n    await asyncio.sleep(0.001)\n    return -1\n\n"
    result = grade(
        softmax=f"{slow}last = await axis()\n{ANSWERS['softmax'].replace('dim=-1', 'dim=last')}"
    )
    assert cell(result, "softmax") == ("ok", "")
    assert result.score == 11.0


def test_an_error_behind_an_await_names_the_line(grade: Grade) -> None:
    broken = "async def axis():\n    raise KeyError('x')\n\nawait axis()"
    outcome, message = cell(grade(softmax=f"{broken}\n{ANSWERS['softmax']}"), "softmax")
    assert outcome == "error"
    assert message.startswith("KeyError: 'x'"), message


def test_a_missing_cell_costs_its_question(grade: Grade) -> None:
    result = grade(counter=None)
    assert result.score == 10.0
    assert result.max_score == 11.0
    assert outcomes(result, "counter") == ["missing"]


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        ("while True:\n    pass\n", "timeout"),
        (
            "import time\nwhile True:\n    try:\n        time.sleep(9)\n    except "
            "BaseException:\n        pass\n",
            "timeout",
        ),
        ("import os\nos._exit(0)\n", "crashed"),
        ("import sys\nsys.exit(0)\n", "error"),
        ("raise KeyboardInterrupt\n", "error"),
        ("x = [0] * 10**12\n", "error"),
        ("x = torch.zeros(10**11)\n", "error"),
        ("import ctypes\nctypes.string_at(0)\n", "crashed"),
        ("y = input('name? ')\n", "error"),
        ("import os\nos.fork()\n", "error"),
        ("for i in range(100000):\n    print('x' * 100)\n", "ok"),
        ("!pip install nothing\n%matplotlib inline\n%timeit 1 + 1\n", "ok"),
        ("from google.colab import drive\ndrive.mount('/content/drive')\n", "ok"),
    ],
)
def test_a_bad_cell_costs_itself(grade: Grade, source: str, outcome: str) -> None:
    result = grade(source)
    assert result.score == 11.0
    assert [c.outcome for c in result.cells if c.id.startswith("extra")] == [outcome]


@pytest.mark.parametrize(
    "mine",
    [
        "from my_course import softmax as mine",
        "from my_course import (\n    helper, softmax as mine)",
        "import my_course\nmine = my_course.softmax",
        "import my_course.a1_word_vectors as first\nmine = first.softmax",
        "def mine(z):\n    from my_course.a1_word_vectors import softmax\n    return softmax(z)",
    ],
)
def test_what_comes_from_my_course_is_what_the_notebook_has_under_that_name(
    grade: Grade, mine: str
) -> None:
    result = grade(
        attention=f"{mine}\n" + ANSWERS["attention"].replace("softmax(", "mine(")
    )
    assert result.score == 11.0
    (cell,) = (cell for cell in result.cells if cell.id == "attention")
    assert (cell.outcome, cell.message) == (
        "ok",
        "graded with the staff's code in place of my_course",
    )


def test_an_import_from_my_course_above_what_it_names_costs_nothing(
    grade: Grade,
) -> None:
    result = grade(
        "from my_course import *",
        softmax="from my_course import attention\n" + ANSWERS["softmax"],
    )
    assert result.score == 11.0


def test_what_only_my_course_has_is_named(grade: Grade) -> None:
    result = grade(
        softmax="from my_course import helper\ndef softmax(z, dim=-1):\n    return helper(z)\n"
    )
    assert outcomes(result, "softmax") == ["error", "error"]
    assert (
        "helper of my_course is not there when grading"
        in question(result, "softmax").tests[0].message
    )
    assert question(result, "counter").score == 1.0


def test_a_call_that_hangs_costs_its_test_and_a_question_hangs_twice_at_most(
    grade: Grade,
) -> None:
    result = grade(attention="def attention(q, k, v):\n    while True:\n        pass\n")
    assert outcomes(result, "attention") == ["timeout", "timeout", "timeout"]
    assert (
        question(result, "attention").tests[2].message
        == "Not run: two tests of this question hung."
    )
    assert result.score == 5.0


def test_a_call_that_ends_the_process_costs_its_test(grade: Grade) -> None:
    result = grade(softmax="import os\ndef softmax(z, dim=-1):\n    os._exit(0)\n")
    assert outcomes(result, "softmax") == ["crashed", "crashed"]
    assert question(result, "counter").score == 1.0


def test_a_forbidden_function_is_caught_under_any_name(grade: Grade) -> None:
    calls = (
        "torch.softmax",
        "torch.Tensor.softmax",
        "getattr(torch, 'soft' + 'max')",
        "torch.ops.aten.softmax",
        "torch.special.softmax",
        "torch.nn.functional.softmax",
    )
    for call in (*(f"{name}(z, dim)" for name in calls), "torch.nn.Softmax(dim)(z)"):
        result = grade(softmax=f"def softmax(z, dim=-1):\n    return {call}\n")
        assert outcomes(result, "softmax") == ["forbidden", "forbidden"], call


def test_a_swallowed_refusal_is_still_forbidden(grade: Grade) -> None:
    swallow = (
        "def softmax(z, dim=-1):\n    try:\n        return torch.softmax(z, dim)\n"
        "    except Exception:\n        return z\n"
    )
    assert outcomes(grade(softmax=swallow), "softmax") == ["forbidden", "forbidden"]


def test_an_argument_changed_in_place_is_noticed(grade: Grade) -> None:
    result = grade(
        softmax="def softmax(z, dim=-1):\n    z -= z.max()\n    return z.exp() / "
        "z.exp().sum(dim, keepdim=True)\n"
    )
    tests = question(result, "softmax").tests
    assert [test.outcome for test in tests] == ["passed", "failed"]
    assert tests[1].message.startswith(
        "`softmax(z[3, 5])` changed its argument z in place"
    )


def test_state_does_not_leak_from_question_to_question(grade: Grade) -> None:
    breaks = (
        "def softmax(z, dim=-1):\n    torch.exp = None\n    e = z.exp()\n    return e / "
        "e.sum(dim, keepdim=True)\n"
    )
    counter = (
        "class Counter:\n    def __init__(self, s):\n        torch.exp(torch.ones(1))\n        "
        "self.value = s\n"
        "    def add(self, n):\n        self.value += n\n"
    )
    assert grade(softmax=breaks, counter=counter).score == 11.0


def test_what_comes_back_must_be_data(grade: Grade) -> None:
    for value in (
        "lambda: 0",
        "object()",
        "torch.sparse_coo_tensor([[0]], [1.0], (3,))",
        "[[]] * 10**6",
        "None",
        "'text'",
    ):
        result = grade(softmax=f"def softmax(z, dim=-1):\n    return {value}\n")
        assert question(result, "softmax").score == 0.0, value
        assert question(result, "counter").score == 1.0, value


def test_a_handle_is_no_tensor(grade: Grade) -> None:
    always = (
        "class Yes:\n    def __eq__(self, other):\n        return True\n    def sum(self, *a):\n "
        "       return self\n"
    )
    result = grade(softmax=always + "def softmax(z, dim=-1):\n    return Yes()\n")
    assert question(result, "softmax").score == 0.0


def test_what_is_no_notebook_is_named_and_graded_not(
    bench: Bench, tmp_path: Path
) -> None:
    path = tmp_path / "student-009.ipynb"
    path.write_text("this is not JSON", encoding="utf-8")
    graded = bench.grader.grade(bench.clients[0], FoundSubmission("student-009", path))
    assert graded.result is None
    assert "student-009.ipynb" in graded.problem


WAYS_TO_GIVE = [
    "T = [1]",
    "T = [0]\nT.append(1)",
    "T = {}\nT['a'] = 1",
    "a = T = [1]",
    "(T := [1])",
    "T = [0, 1]\ndel T[0]",
    "T = 0\nT += 1",
    "with contextlib.nullcontext(1) as T:\n    pass",
    "for T in [1]:\n    pass",
    "def give():\n    global T\n    T = 1\ngive()",
    "import types\nT = types.SimpleNamespace()\nsetattr(T, 'a', 1)",
    "math.T = 1",
    "globals()['T'] = 1",
    "exec('T = 1')",
    "T = torch.zeros(1)\nT.add_(1)",
    "T = torch.zeros(1)\nT[0] = 1",
    "torch.manual_seed(7)\nT = 1",
    "@lambda f: f()\ndef T():\n    return 1",
    "class T:\n    a = 1",
    "*T, _ = [1, 2]",
    "try:\n    1 / 0\nexcept Exception as e:\n    T = str(e)",
    "import math as T",
    "from math import pi as T",
    "T: int = 1",
    "match 1:\n    case T:\n        pass",
]
"""Cells that give something to the cells after them, in forms that no pattern for assignments
knows.
"""


@pytest.mark.parametrize("seconds", [0.0, 1.2])
def test_a_cell_runs_in_every_worker_however_slow_it_is_and_whatever_it_gives(
    grade: Grade, seconds: float
) -> None:
    """`counter` is wrong, so that `softmax` and `attention` run in further workers than the
    first.
    """
    ways = [way.replace("T", f"T{number}") for number, way in enumerate(WAYS_TO_GIVE)]
    gives = "\n".join(
        ["import contextlib, math, time, torch", f"time.sleep({seconds})", *ways]
    )
    names = ", ".join(
        "math.T11" if way.startswith("math.") else f"T{number}"
        for number, way in enumerate(WAYS_TO_GIVE)
    )
    uses = f"    assert len([{names}]) == {len(WAYS_TO_GIVE)}\n    return"
    answers = {
        name: ANSWERS[name].replace("    return", uses)
        for name in ("softmax", "attention")
    }
    result = grade(gives, **answers, counter="class Counter:\n    pass\n")
    assert {q.name: q.score for q in result.questions} == {
        "softmax": 4.0,
        "attention": 6.0,
        "counter": 0.0,
    }


def test_a_cell_that_spoils_what_others_need_does_so_in_every_worker(
    grade: Grade,
) -> None:
    spoils = "import time\ntime.sleep(1.2)\nsetattr(torch, 'exp', None)\n"
    lost = {q.name: (q.max_score - q.score, q.carried) for q in grade(spoils).questions}
    assert lost == {
        "softmax": (4.0, 0.0),
        "attention": (0.0, 5.0),
        "counter": (0.0, 0.0),
    }


def test_a_mistake_in_a_class_is_named_by_what_its_methods_answer(grade: Grade) -> None:
    forgets = (
        "class Counter:\n    def __init__(self, start):\n        self.value = start\n"
        "    def add(self, n):\n        return self.value + n\n"
    )
    diagnosis = question(grade(counter=forgets), "counter").diagnosis
    assert diagnosis is not None
    assert diagnosis.mistake == "Forgets"
