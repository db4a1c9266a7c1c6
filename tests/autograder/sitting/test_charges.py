"""What a question's tests cost together, and whose fault it is that a test could not work with an
answer.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from courses import built_course, handed_in
from small_course import ANSWERS, SUITE, write_course

from autograder.basics.errors import SuiteFault
from autograder.course import Course
from autograder.grading.batch import grade_batch
from autograder.grading.bench import Bench
from autograder.proof.verify import ProofRequest, verify
from autograder.records.model import QuestionResult, Result
from autograder.records.submission import FoundSubmission
from autograder.sitting.charges import adjust_verdicts
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Verdict

Grade = Callable[..., Result]

pytestmark = pytest.mark.usefixtures("standing_host")


def run(
    name: str,
    outcome: Any = "passed",
    cause: Any = "",
    refuses: str = "",
    answers: str = "",
) -> TestRun:
    verdict = Verdict(outcome, "said", "hint", cause)
    return TestRun(
        name,
        verdict,
        (),
        refusing=frozenset(refuses.split()),
        answering=frozenset(answers.split()),
    )


def passed(*runs: TestRun, again: tuple[TestRun, ...] = ()) -> list[str]:
    counting = adjust_verdicts(
        {one.name: one for one in runs}, {one.name: one for one in again}
    )
    return [name for name, one in counting.items() if one.verdict.outcome == "passed"]


CHANGED, ASKED = (
    ("failed", "changed argument"),
    ("failed", "changed argument, asked for"),
)


@pytest.mark.parametrize(
    ("runs", "counted"),
    [
        ([run("a", *CHANGED), run("b", *CHANGED), run("c")], ["b", "c"]),
        ([run("a", *CHANGED), run("b", *ASKED), run("c", *ASKED)], ["a", "c"]),
        ([run("a", "failed"), run("b", *CHANGED)], []),
        # a refusal counts where another test has got an answer of the same function
        ([run("a", refuses="f")], []),
        ([run("a", refuses="f"), run("b", answers="f")], ["a", "b"]),
        ([run("a", refuses="f"), run("b", "failed", answers="f")], []),
        ([run("a", refuses="f"), run("b", answers="g")], ["b"]),
        (
            [
                run("a", refuses="append", answers="KVCache append"),
                run("b", answers="KVCache"),
            ],
            ["b"],
        ),
    ],
)
def test_what_counts(runs: list[TestRun], counted: list[str]) -> None:
    assert passed(*runs) == counted


def test_a_refusal_waits_for_the_first_failed_test_that_wants_an_answer() -> None:
    runs = [
        run("test_other", answers="g"),
        run("test_also_refuses", "failed", refuses="f"),
        run("test_adds", "failed"),
        run("test_refuses", refuses="f"),
    ]
    counting = adjust_verdicts({each.name: each for each in runs})
    assert (
        'counts once the test "adds" gets' in counting["test_refuses"].verdict.message
    )
    alone = adjust_verdicts({"test_refuses": runs[3]})["test_refuses"].verdict
    assert "counts once another test of this question gets" in alone.message


def test_an_answer_with_stand_ins_is_an_answer() -> None:
    assert passed(
        run("a", refuses="f"), run("b", "failed"), again=(run("b", answers="f"),)
    ) == ["a"]


def test_a_wrong_value_in_the_first_test_leaves_the_hints_of_others_out() -> None:
    runs = [
        run("a", "failed", "wrong value"),
        run("b", "failed", "wrong value"),
        run("c", "failed"),
    ]
    counting = adjust_verdicts({one.name: one for one in runs})
    assert [one.verdict.text for one in counting.values()] == [
        "said\nhint",
        "said",
        "said\nhint",
    ]


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (run("a"), ["said", "said\nhint"]),
        (run("a", "error", "raised"), ["said", "said"]),
        (run("a", "failed", "wrong value"), ["said\nhint", "said"]),
        (run("a", "timeout"), ["said\nhint", "said"]),
    ],
)
def test_an_error_has_a_hint_only_where_ordinary_arguments_work(
    first: TestRun, said: list[str]
) -> None:
    runs = {"a": first, "b": run("b", "error", "raised")}
    counting = adjust_verdicts(runs)
    shown = "said" if first.verdict.outcome == "passed" else counting["a"].verdict.text
    assert [shown, counting["b"].verdict.text] == said


def question(result: Result, name: str) -> QuestionResult:
    return next(question for question in result.questions if question.name == name)


def test_a_function_that_changes_its_argument_loses_the_test_that_asks_for_it(
    grade: Grade,
) -> None:
    scribbles = (
        "def softmax(z, dim=-1):\n    z.copy_(torch.exp(z))\n    return z / z.sum(dim, "
        "keepdim=True)\n"
    )
    result = grade(softmax=scribbles)
    first, second = question(result, "softmax").tests
    assert (first.outcome, second.outcome) == ("passed", "failed")
    assert "`softmax(z[3, 5])` changed its argument z in place" in second.message


def test_a_change_in_a_question_that_does_not_ask_costs_one_test(grade: Grade) -> None:
    lines = ANSWERS["attention"].splitlines()
    scribbles = "\n".join(
        [
            *lines[:-1],
            lines[-1].replace("return", "o ="),
            "    q.data.mul_(2)",
            "    return o\n",
        ]
    )
    tests = question(grade(attention=scribbles), "attention").tests
    assert [test.outcome for test in tests] == ["failed", "passed", "passed"]
    assert "changed its argument q in place" in tests[0].message


def test_raising_errors_with_every_number_earns_nothing(grade: Grade) -> None:
    always = "def {}(*args, **kwargs):\n    raise ValueError(' '.join(map(str, range(160))))\n"
    result = grade(
        **{name: always.format(name) for name in ("softmax", "attention")}, counter=None
    )
    assert result.score == 0.0
    refusal = question(result, "attention").tests[2]
    assert refusal.message == (
        "`attention` raises ValueError here, as it should. A function that always raises it would "
        'too, so this counts once the test "mixes values" gets a right answer from `attention`.'
    )


DUCK = """
class Duck:
    def __getattr__(self, name):
        return Duck()
    def __call__(self, *a, **k):
        return Duck()
    def __eq__(self, other):
        return True
    def __iter__(self):
        return iter([self, self])
    shape = (3, 5)
"""


def test_an_object_that_agrees_with_everything_earns_nothing(grade: Grade) -> None:
    ducks = {
        name: f"{DUCK}\ndef {name}(*a, **k):\n    return Duck()\n"
        for name in ("softmax", "attention")
    }
    result = grade(
        **ducks,
        counter=f"{DUCK}\nclass Counter(Duck):\n    def __init__(self, start):\n        pass\n",
    )
    assert result.score == 0.0
    assert (
        "gives an object of class Duck, where data is expected"
        in question(result, "softmax").tests[0].message
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "[[1.0]]",
            "`softmax(z[3, 5])` should be a tensor of shape [3, 5], and is a list.",
        ),
        (
            "None",
            "`softmax(z[3, 5])` should be a tensor of shape [3, 5], and is None (is a "
            "`return` missing?).",
        ),
    ],
)
def test_an_answer_that_a_test_cannot_work_with_is_described(
    grade: Grade, source: str, said: str
) -> None:
    result = grade(softmax=f"def softmax(z, dim=-1):\n    return {source}\n")
    assert question(result, "softmax").tests[0].message.startswith(said)


def test_a_detached_answer_is_called_so(grade: Grade) -> None:
    result = grade(
        attention=ANSWERS["attention"]
        .replace("return ", "return torch.Tensor.detach(")
        .rstrip()
        + ")\n"
    )
    message = question(result, "attention").tests[1].message
    assert message.startswith(
        "`attention(q[2, 3], k[5, 3], v[5, 4])` is cut off from its arguments"
    )


FAULTS = {
    "a name": (
        "    student.softmax(randn(2, 3))\n    assert nothing\n",
        "NameError: name 'nothing' is not defined",
    ),
    "a fixture": ("    pass\n", "FixtureLookupError"),
    "before any call": (
        "    assert 1 == 2, 'inputs too easy'\n",
        "AssertionError: inputs too easy",
    ),
    "with the answer key too": (
        "    student.softmax(randn(2, 3)).nothing()\n",
        "AttributeError: 'Tensor' object has no",
    ),
}


def faulty(root: Path, name: str) -> Course:
    """The small course with one more test, which fails by itself in its last line."""
    body, _ = FAULTS[name]
    course = built_course(root, write_course)
    arguments = "student, nowhere" if name == "a fixture" else "student"
    test = f"\n\n@points(0)\ndef test_of_its_own({arguments}):\n{body}"
    (root / "tests" / "hidden" / "small" / "test_softmax.py").write_text(
        SUITE["test_softmax.py"] + test
    )
    return course


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_suites_own_is_nobodys_result(tmp_path: Path, name: str) -> None:
    course = faulty(tmp_path / "course", name)
    path = tmp_path / "student-001.ipynb"
    path.write_text(handed_in(ANSWERS), encoding="utf-8")
    found = [FoundSubmission("student-001", path)]
    ((graded, content),) = grade_batch(
        course, course.assignment("small"), found, workers=1
    )
    assert (graded.result, graded.untried, content) == (None, True, b"")
    assert "test_of_its_own" in graded.problem
    assert FAULTS[name][1] in graded.problem
    if name == "a name":
        line = len(SUITE["test_softmax.py"].splitlines()) + 6
        assert (
            f"test_softmax.py, line {line}: test_of_its_own raised NameError"
            in graded.problem
        )


def test_verify_shows_the_traceback(tmp_path: Path) -> None:
    course = faulty(tmp_path, "a name")
    problems = verify(
        course, course.assignment("small"), ProofRequest(workers=1)
    ).problems
    assert any(
        "Traceback" in problem and "    assert nothing" in problem
        for problem in problems
    )


def test_what_only_a_wrong_answer_makes_a_test_raise_is_the_answers(
    bench: Bench, grade: Grade
) -> None:
    result = grade(
        counter=ANSWERS["counter"]
        .replace("= start", "= str(start)")
        .replace("+= n", "+= str(n)")
    )
    assert question(result, "counter").tests[0].outcome == "failed"
    with pytest.raises(SuiteFault):
        raise bench.grader.suite.make_fault("test_x", ValueError("said"))
