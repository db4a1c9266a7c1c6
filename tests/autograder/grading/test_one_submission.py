"""The record of one submission: its times, its problem, and who is asked for its mistakes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import OutOfReach, SuiteFault, UnreadableSubmission
from autograder.grading import grader as grader_module
from autograder.grading import regrade as regrade_module
from autograder.grading.graded_bytes import unpack_graded
from autograder.grading.grader import AssignmentGrader
from autograder.records.model import Graded, Result, Speed
from autograder.records.submission import FoundSubmission


@dataclass
class Request:
    assignment: SimpleNamespace
    results: Path


ADA = FoundSubmission("ada", Path("ada/m1.ipynb"))
RESULT = Result("m1", "ada", "sha", "suite", "strict", 1.0, 2.0, (), ())


@pytest.fixture
def grader(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A grader whose submission is read at once; a second passes with each look at the clock."""
    seconds = iter(float(number) for number in range(100))
    clock = SimpleNamespace(monotonic=lambda: next(seconds))
    monkeypatch.setattr(grader_module, "time", clock)
    monkeypatch.setattr(
        grader_module,
        "read_submission",
        lambda found, *_: SimpleNamespace(student=found.student),
    )
    made: Any = object.__new__(AssignmentGrader)
    made.release = made.suite = None
    made.course = SimpleNamespace(limits=None)
    made._speed_meter = None
    made.grade_submission = lambda client, submission: (RESULT, {"tests": 7.0})
    return made


def test_a_record_has_the_times_of_all_stages(grader: Any) -> None:
    times = {"read": 1.0, "tests": 7.0}
    assert grader.grade("client", ADA) == Graded("ada", RESULT, seconds=times)
    speeds: tuple[Speed, ...] = ()
    grader._speed_meter = SimpleNamespace(measure_submission=lambda *_: speeds)
    assert grader.grade("client", ADA).seconds == times
    speeds = (Speed("small", 1.0, 2.0),)
    graded = grader.grade("client", ADA)
    assert graded.speeds == speeds
    assert graded.seconds == {**times, "speed": 1.0}


@pytest.mark.parametrize(
    ("problem", "untried"),
    [(UnreadableSubmission("no notebook"), False), (OutOfReach("no disk"), True)],
)
def test_what_is_out_of_reach_was_not_tried(
    grader: Any, monkeypatch: pytest.MonkeyPatch, problem: Exception, untried: bool
) -> None:
    def read(*_: object) -> None:
        raise problem

    monkeypatch.setattr(grader_module, "read_submission", read)
    graded = grader.grade("client", ADA)
    assert graded == Graded("ada", problem=str(problem), untried=untried)


def test_a_fault_of_the_suite_is_a_record_for_another_process(grader: Any) -> None:
    def grade(*_: object) -> None:
        raise SuiteFault("test_rows: it is broken")

    grader.grade = grade
    graded, _ = unpack_graded(grader.grade_to_bytes("client", ADA))
    assert graded.untried
    assert graded.problem.startswith("m1.ipynb: ")
    assert "it is broken" in graded.problem


@pytest.mark.parametrize("is_right", [True, False])
def test_all_calls_of_a_right_answer_are_looked_at(grader: Any, is_right: bool) -> None:
    clients: list[str] = []

    @contextlib.contextmanager
    def use_client(client: str) -> Iterator[None]:
        clients.append(client)
        yield

    grader._known = SimpleNamespace(use_client=use_client)
    grader.diagnostician = SimpleNamespace(
        show_in_right_answer=lambda *_: ["right"], show_mistakes=lambda *_: ["wrong"]
    )
    shown = grader.show_mistakes("client", None, {}, None, is_right=is_right)
    assert (shown, clients) == (["right" if is_right else "wrong"], ["client"])


def test_who_was_not_tried_has_no_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    problems = [
        Graded("bob", problem="no disk", untried=True),
        Graded("cyd", problem="no notebook"),
    ]
    request: Any = Request(SimpleNamespace(name="m1"), tmp_path)
    asked: list[Request] = []

    def grade(request: Request, watcher: object) -> object:
        asked.append(request)
        return SimpleNamespace(results=[RESULT], problems=problems)

    monkeypatch.setattr(regrade_module, "grade_command", grade)
    monkeypatch.setattr(regrade_module, "compare_results", lambda *given: given)
    compared: Any = regrade_module.regrade(request)
    students, counting, regraded, told, untried = compared
    assert asked[0].results == regrade_module.side_folder(tmp_path)
    assert students == {"ada", "bob", "cyd"}
    assert (counting, regraded, told) == ({}, {}, {"bob": "no disk"})
    assert untried == ("bob",)
