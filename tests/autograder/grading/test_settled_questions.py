"""Which questions run again with stand-ins, and what comes back of it, on a sitting that the test
plays.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autograder.basics.errors import SuiteFault
from autograder.grading.carried_points import (
    SettledQuestion,
    _choose_stand_ins,
    passed_tests,
    settle_questions,
)
from autograder.grading.grader import AssignmentGrader
from autograder.records.submission import Cell, Submission
from autograder.sandbox.stopwatch import Stopwatch
from autograder.sitting.sitting import TestRun, find_uses
from autograder.sitting.verdict import Verdict
from autograder.suite.calls import Call
from autograder.suite.collection import SuiteQuestion, SuiteTest


def question(
    name: str, *uses: str, tests: tuple[str, ...] = ("a", "b")
) -> SuiteQuestion:
    return SuiteQuestion(name, tuple(SuiteTest(t, 1.0, "") for t in tests), uses, ())


def run(name: str, *, passed: bool, calls: int = 1, **fields: Any) -> TestRun:
    verdict = Verdict("passed" if passed else "failed")
    made = tuple(Call("f", (), {}) for _ in range(calls))
    return TestRun(name, verdict, made, **fields)


def runs(**passed: bool) -> dict[str, TestRun]:
    return {name: run(name, passed=is_passed) for name, is_passed in passed.items()}


def submission(*cells: Cell) -> Submission:
    return Submission("ada", "m1", Path("m1.ipynb"), "sha", cells)


class PlayedSitting:
    """Runs a question with stand-ins as `second` says."""

    def __init__(self, second: dict[str, dict[str, TestRun]], *cells: Cell) -> None:
        self.second = second
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.watch = Stopwatch()
        self.uses = find_uses(submission(*cells), list(QUESTIONS.values()))

    def run(
        self, question: SuiteQuestion, *, stand_ins: tuple[str, ...]
    ) -> dict[str, TestRun]:
        with self.watch.stage("run"):
            self.asked.append((question.name, stand_ins))
        return self.second[question.name]


QUESTIONS = {
    "softmax": question("softmax"),
    "attention": question("attention", "softmax"),
}


def settled(
    sitting: PlayedSitting, **first: dict[str, TestRun]
) -> dict[str, SettledQuestion]:
    any_sitting: Any = sitting
    reference = {"softmax": len, "attention": len}
    return settle_questions(any_sitting, first, QUESTIONS, reference)


def test_a_pass_that_does_not_count_runs_with_stand_ins_too() -> None:
    """Test a asks for an error, and a function that always raises one gives it."""
    sitting = PlayedSitting({"attention": runs(a=True, b=True)})
    refusing = run("a", passed=True, refusing=frozenset({"attention"}))
    first = {"a": refusing, "b": run("b", passed=False)}
    result = settled(sitting, softmax=runs(a=False, b=True), attention=first)
    assert list(result["attention"].stand_in_runs) == ["a", "b"]


def test_a_test_that_passes_with_stand_ins_is_carried() -> None:
    sitting = PlayedSitting({"attention": runs(a=True, b=False)})
    result = settled(
        sitting, softmax=runs(a=False, b=True), attention=runs(a=False, b=False)
    )
    assert sitting.asked == [("attention", ("softmax",))]
    assert result["attention"].carried == {"a"}
    assert list(result["attention"].stand_in_runs) == ["a", "b"]
    assert result["softmax"].carried == frozenset()
    assert result["softmax"].stand_in_runs == {}
    assert [each.has_failed for each in result.values()] == [True, True]
    # what runs inside of it counts for this stage
    assert list(sitting.watch.seconds) == ["carry"]


def test_only_failed_tests_run_again_and_only_after_failed_prerequisites() -> None:
    sitting = PlayedSitting({"attention": runs(a=True, b=True)})
    result = settled(
        sitting, softmax=runs(a=False, b=True), attention=runs(a=True, b=False)
    )
    assert list(result["attention"].stand_in_runs) == ["b"]
    assert result["attention"].carried == {"b"}
    sitting = PlayedSitting({})
    result = settled(
        sitting, softmax=runs(a=True, b=True), attention=runs(a=True, b=False)
    )
    assert sitting.asked == []
    assert not result["softmax"].has_failed


def test_what_saw_no_answer_does_not_run_again() -> None:
    missing = {
        "a": run("a", passed=False, calls=0),
        "b": run("b", passed=False, unanswered=True),
    }
    sitting = PlayedSitting({})
    settled(sitting, softmax=runs(a=False, b=True), attention=missing)
    assert sitting.asked == []
    one = {**missing, "a": run("a", passed=False)}
    sitting = PlayedSitting({"attention": runs(a=True, b=True)})
    settled(sitting, softmax=runs(a=False, b=True), attention=one)
    assert sitting.asked == [("attention", ("softmax",))]


def test_stand_ins_are_failed_questions_and_classes_beside_them() -> None:
    reference: dict[str, Any] = {"f": len, "g": len, "C": dict, "D": dict}
    names = ["C", "f", "g", "D"]
    assert _choose_stand_ins(names, {"f", "x"}, reference) == ("f", "C", "D")
    assert _choose_stand_ins(names, {"C"}, reference) == ("C", "D")
    assert _choose_stand_ins(names, {"x"}, reference) == ()


def test_a_question_uses_what_its_suite_says_and_its_cell_names() -> None:
    questions = {
        "softmax": question("softmax"),
        "scores": question("scores"),
        "attention": question("attention", "scores"),
        "later": question("later"),
    }
    cells = [
        Cell("softmax", "question", "def softmax(z): return attention"),
        Cell(
            "attention",
            "question",
            "def attention(q): return softmax(q) + soft + later",
        ),
    ]
    assert find_uses(submission(*cells), list(questions.values())) == {
        "softmax": (),
        "scores": (),
        "attention": ("scores", "softmax"),
        "later": (),
    }


def test_passed_tests_are_those_that_count() -> None:
    assert passed_tests(runs(a=True, b=False, c=True)) == {"a", "c"}


# tests that could not work with an answer


@pytest.mark.parametrize("is_suites", [True, False])
def test_an_answer_that_a_test_cannot_use_is_explained_unless_the_suite_is_at_fault(
    is_suites: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = SuiteFault("the suite cannot be right")
    asked: list[Any] = []

    class Known:
        def use_client(self, client: object) -> Any:
            asked.append(client)
            return self

        def __enter__(self) -> None: ...

        def __exit__(self, *error: object) -> None: ...

        def run(self, question: Any, mistake: Any, tests: Any) -> Any:
            asked.append((question.name, mistake, tests))
            return {
                "a": run("a", passed=True, suite_fault=fault if is_suites else None)
            }

    made: Any = object.__new__(AssignmentGrader)
    made._known = Known()
    made._key_runs = {}
    made.questions = QUESTIONS
    made.reference = {}
    monkeypatch.setattr(
        "autograder.grading.grader.explain_unfit",
        lambda verdict, log, calls: Verdict("failed", "its answer has no shape"),
    )
    first = {
        "softmax": {
            "a": run("a", passed=False, suite_fault=fault),
            "b": run("b", passed=False),
        }
    }
    if is_suites:
        with pytest.raises(SuiteFault, match="the suite cannot be right"):
            made._explain_unfit_answers("client", first)
        return
    made._explain_unfit_answers("client", first)
    explained = first["softmax"]["a"]
    assert explained.verdict.message == "its answer has no shape"
    assert explained.suite_fault is None
    assert first["softmax"]["b"].verdict.message == ""
    assert asked == ["client", ("softmax", None, ("a",))]
    first["softmax"]["a"] = run("a", passed=False, suite_fault=fault)
    made._explain_unfit_answers("client", first)
    assert len(asked) == 3  # the answer key's run is kept


def test_classes_are_stood_in_for_along_with_what_failed() -> None:
    reference = {"double": abs, "Pair": tuple, "odd": abs}
    names = ("Pair", "odd", "double", "limit")
    assert _choose_stand_ins(names, {"double", "other"}, reference) == (
        "double",
        "Pair",
    )
    assert _choose_stand_ins(names, {"Pair"}, reference) == ("Pair",)
    assert _choose_stand_ins(names, {"other"}, reference) == ()
