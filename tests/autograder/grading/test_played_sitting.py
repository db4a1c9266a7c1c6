"""Questions of one submission, graded and prepared for diagnosis, with a sitting that the test
plays.
"""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.diagnosis.diagnostician import NamedMistakes
from autograder.grading import examples as examples_module
from autograder.grading import grader as grader_module
from autograder.grading.carried_points import SettledQuestion
from autograder.grading.examples import Examples
from autograder.grading.grader import AssignmentGrader, Failure
from autograder.records.model import QuestionResult
from autograder.records.submission import CellOutcome, Submission
from autograder.sandbox.stopwatch import Stopwatch
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Verdict
from autograder.suite.calls import Call

CALLS = (Call("f", (), {}),)


def run_of(outcome: Any, *, answered: bool = True) -> TestRun:
    return TestRun("test", Verdict(outcome), CALLS, unanswered=not answered)


FAILED, PASSED = run_of("failed"), run_of("passed")
RUNS = {
    "right": {"test_a": PASSED},
    "wrong": {"test_a": PASSED, "test_b": FAILED, "test_c": FAILED},
    "carried": {"test_a": FAILED},
    "unwritten": {"test_a": run_of("failed", answered=False)},
    "unasked": {"test_a": FAILED},
}
STAND_IN_FAILED = run_of("error")
STAND_IN_RUNS = {
    "wrong": {"test_b": STAND_IN_FAILED},
    "carried": {"test_a": PASSED},
}


@pytest.fixture
def grader(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A grader whose submission has these runs. `closed` is True once its sitting is."""
    grader: Any = object.__new__(AssignmentGrader)
    grader.closed = False

    def close() -> None:
        grader.closed = True

    def record(question: str, mistake: None) -> Any:
        return SimpleNamespace(
            runs=lambda failed: {test: f"key's {question} {test}" for test in failed}
        )

    sitting = SimpleNamespace(
        run_all=lambda questions: RUNS,
        close=close,
        watch=Stopwatch(),
        two_answers={"wrong": ("two workers",)},
    )
    grader.sitting = sitting
    grader.suite = SimpleNamespace(questions=())
    grader.questions = {name: name for name in RUNS}
    grader.reference = {}
    grader._known = SimpleNamespace(
        use_client=lambda client: contextlib.nullcontext(), record=record
    )
    nothing: Any = frozenset()
    grader.settled = settled = {
        name: SettledQuestion(RUNS[name], STAND_IN_RUNS.get(name, {}), nothing)
        for name in RUNS
    }
    monkeypatch.setattr(grader, "_start_sitting", lambda *_: sitting)
    explained: list[Any] = []
    grader.explained = explained
    monkeypatch.setattr(
        grader, "_explain_unfit_answers", lambda client, runs: explained.append(runs)
    )
    monkeypatch.setattr(grader_module, "settle_questions", lambda *_: settled)
    return grader


def test_failures_are_those_of_answers_with_right_prerequisites(grader: Any) -> None:
    names = ["right", "wrong", "carried", "unwritten"]
    assert grader.run_failures("client", "submission", names) == {
        "wrong": Failure(
            {"test_b": STAND_IN_FAILED, "test_c": FAILED},
            {"test_b": "key's wrong test_b", "test_c": "key's wrong test_c"},  # type: ignore[dict-item]
        )
    }
    assert grader.closed
    assert grader.explained == [RUNS]


def test_a_question_is_scored_by_its_runs_its_mistakes_and_its_flags(
    grader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`wrong` was answered differently in two workers, and differently once more with stand-ins
    that give its own values; only questions that failed are diagnosed.
    """
    diagnosed: list[Any] = []
    replayed: list[Any] = []
    mistakes = NamedMistakes(evidence="half of it")

    def diagnose(client: str, sitting: Any, failed: Any) -> Any:
        diagnosed.append(failed)
        return {"wrong": mistakes}

    def replay(
        client: str, sitting: Any, question: str, runs: Any, stand_in_runs: Any, *_: Any
    ) -> tuple[str, ...]:
        replayed.append((question, runs, stand_in_runs))
        with grader.sitting.watch.stage("run"):  # workers of the replay
            return ("with its own values",) if question == "wrong" else ()

    monkeypatch.setattr(grader, "diagnose", diagnose)
    monkeypatch.setattr(grader, "_question_result", lambda *parts: parts)
    questions: Any = [SimpleNamespace(name=name) for name in RUNS]
    monkeypatch.setattr(
        grader_module, "replay", lambda c, s, q, *rest: replay(c, s, q.name, *rest)
    )
    results = grader._grade_questions("client", grader.sitting, questions)
    flags = {"wrong": ("two workers", "with its own values")}
    assert results == [
        (
            question,
            grader.settled[question.name],
            mistakes if question.name == "wrong" else NamedMistakes(),
            flags.get(question.name, ()),
        )
        for question in questions
    ]
    (failed,) = diagnosed
    assert failed == {
        "wrong": {**RUNS["wrong"], "test_b": STAND_IN_FAILED},
        "carried": {"test_a": PASSED},
        "unwritten": RUNS["unwritten"],
        "unasked": RUNS["unasked"],
    }
    assert replayed == [
        (name, RUNS[name], STAND_IN_RUNS.get(name, {})) for name in RUNS
    ]
    assert grader.explained == [RUNS]
    assert grader.sitting.watch.seconds.keys() == {"carry", "diagnosis"}


# whole submissions


@pytest.mark.parametrize(
    ("only", "names"),
    [((), ["right", "wrong", "unasked"]), (("wrong", "none"), ["wrong"])],
)
def test_a_result_has_the_questions_that_are_asked_for(
    grader: Any, monkeypatch: pytest.MonkeyPatch, only: tuple[str, ...], names: Any
) -> None:
    def grade(client: Any, sitting: Any, questions: Any) -> list[QuestionResult]:
        return [
            QuestionResult(question.name, 0.5, 2.0, 0.0, None, ())
            for question in questions
        ]

    grader.suite = SimpleNamespace(
        questions=[SimpleNamespace(name=name) for name in ("right", "wrong", "unasked")]
    )
    grader.assignment = SimpleNamespace(name="m1")
    grader.sha256 = "suite"
    grader._names_of_checks = {}
    grader.sitting.workplace = SimpleNamespace(cells=[CellOutcome("a", "ok", "")])
    grader.sitting.watch.seconds["run"] = 1.5
    monkeypatch.setattr(grader, "_grade_questions", grade)
    monkeypatch.setattr(grader, "isolation", lambda client: "uid+cuda")
    monkeypatch.setattr(grader_module, "result_software", lambda: {"python": "3"})
    client: Any = SimpleNamespace(tier="uid")
    submission = Submission(
        "ada", "m1", Path("m1.ipynb"), "sha", (), notices=(CellOutcome("b", "ok", ""),)
    )
    result, seconds = grader.grade_submission(client, submission, only)
    assert [question.name for question in result.questions] == names
    assert (result.score, result.max_score) == (0.5 * len(names), 2.0 * len(names))
    assert (result.student, result.submission_sha256) == ("ada", "sha")
    assert (result.assignment, result.suite_sha256) == ("m1", "suite")
    assert result.isolation == "uid+cuda"
    assert result.made_by == {"python": "3", "tier": "uid"}
    assert [cell.id for cell in result.cells] == ["a", "b"]
    assert seconds == {"run": 1.5}
    assert grader.closed


def test_a_device_has_a_sitting_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    played: Any = object.__new__(AssignmentGrader)
    played.course = SimpleNamespace(limits="limits")
    played.suite = "suite"
    for name in ("Sitting", "GpuSitting"):
        monkeypatch.setattr(
            grader_module, name, lambda *arguments, name=name: (name, *arguments)
        )
    asked = ("client", "limits", "suite", "submission")
    played._device = None
    assert played._start_sitting("client", "submission") == ("Sitting", *asked)
    played._device = "device"
    started = played._start_sitting("client", "submission")
    assert started == ("GpuSitting", *asked, "device")


# diagnosis


def test_each_failed_question_is_diagnosed_with_functions_of_its_own(
    grader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many stand-ins as the test that needed most; the worker ends after each question."""
    opened: list[Any] = []
    closed: list[str] = []
    monkeypatch.setattr(grader.sitting, "close", lambda: closed.append("closed"))

    def open_functions(*asked: Any) -> str:
        opened.append(asked)
        return "functions"

    grader.sitting.open_functions = open_functions

    def make_asker(question: str, open_worker: Any) -> str:
        assert open_worker() == "functions"
        return f"asker of {question}"

    monkeypatch.setattr(grader, "make_asker", make_asker)
    grader.diagnostician = SimpleNamespace(
        name_mistakes=lambda *asked: NamedMistakes(evidence=" ".join(asked[::2]))
    )
    grader._examples = SimpleNamespace(find=lambda *asked: " ".join(asked[::2]))
    runs = {
        "wrong": {
            "test_a": dataclasses.replace(FAILED, stand_ins=("f",)),
            "test_b": dataclasses.replace(FAILED, stand_ins=("f", "g")),
            "test_c": FAILED,
        },
        "carried": RUNS["carried"],
    }
    found = grader.diagnose("client", grader.sitting, runs)
    assert found == {
        name: NamedMistakes(
            evidence=f"{name} asker of {name}",
            example=f"{name} asker of {name}",  # type: ignore[arg-type]
        )
        for name in ("wrong", "carried")
    }
    assert opened == [("wrong", ("f", "g")), ("carried", ())]
    assert closed == ["closed", "closed"]


def test_an_asker_knows_whether_other_answers_are_right_too(
    grader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    grader.course = SimpleNamespace(limits="limits")
    grader._examples = SimpleNamespace(is_free=lambda name: name == "free")
    monkeypatch.setattr(
        grader_module, "Asker", lambda *asked, is_free: (*asked, is_free)
    )
    asked = ("functions", grader.reference, "limits")
    for name in ("free", "f"):
        asker = grader.make_asker(SimpleNamespace(name=name), "functions")
        assert asker == (*asked, name == "free")


def test_without_torch_no_question_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    examples: Any = object.__new__(Examples)
    examples._finder = SimpleNamespace(is_free={"free": True, "f": False}.get)
    monkeypatch.setattr(examples_module, "loaded_torch", lambda: "torch")
    assert [examples.is_free(name) for name in ("free", "f")] == [True, False]
    monkeypatch.setattr(examples_module, "loaded_torch", lambda: None)
    assert not examples.is_free("free")
