"""What pages are filled with: the values that go into a template, worked out by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from stored_results import outcome, question

from autograder.intake.collected import Collected
from autograder.marks.marks import Mark
from autograder.outputs import class_report, feedback_page
from autograder.outputs.class_report import render_report
from autograder.outputs.feedback_page import _view, render_feedback
from autograder.outputs.statistics import AttemptSummary
from autograder.records.model import (
    Graded,
    QuestionResult,
    Result,
    TwoAnswers,
)
from autograder.records.submission import CellOutcome

FLAG = TwoAnswers("test_a", "double(1)", ("one", "other"), ("2", "3"))


def result_of(student: str, score: float, *questions: QuestionResult) -> Result:
    return Result("m1", student, "sha", "suite", "strict", score, 4.0, questions, ())


def mark_of(
    student: str, status: Any, score: float | None = None, **fields: Any
) -> Mark:
    if score is not None:
        fields.setdefault("result", result_of(student, score))
    return Mark(student, status, score=score, max_score=4.0, total=score, **fields)


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The values that a template was filled with last."""
    values: dict[str, Any] = {}

    def render_pieces(template: str, **given: Any) -> Iterator[str]:
        values.clear()
        values.update(given, template=template)
        return iter(())

    monkeypatch.setattr(class_report, "render_pieces", render_pieces)
    monkeypatch.setattr(
        feedback_page,
        "render",
        lambda template, **given: render_pieces(template, **given),
    )
    return values


MARKS = [
    mark_of("ada", "graded", 4.0),
    mark_of("ben", "waits for a person", 1.0),
    mark_of("cyd", "time cannot be read", 3.0),
    mark_of("dan", "handed in nothing"),
    mark_of("eve", "no notebook"),
    mark_of("fay", "no notebook"),
]


def test_a_report_counts_a_class(values: dict[str, Any]) -> None:
    render_report("m1", MARKS)
    assert values["template"] == "report.html"
    assert values["counts"] == {"graded": 3, "handed in nothing": 1, "no notebook": 2}
    assert [mark.student for mark in values["unfinished"]] == [
        "cyd",
        "dan",
        "eve",
        "fay",
    ]
    assert [mark.student for mark in values["waiting"]] == ["ben"]
    assert [result.student for result in values["results"]] == ["ada", "ben", "cyd"]
    assert (values["suites"], values["unwalled"]) == (1, 0)
    assert (values["pages"], values["stale"], values["groups"]) == ({}, {}, ())
    assert (values["tries"], values["older"]) == ((), [])
    assert values["collected"] == Collected()


def test_the_class_stands_there_in_three_orders(values: dict[str, Any]) -> None:
    """By mark those without one are last, by status those who are graded."""
    render_report("m1", [*MARKS[::-1], mark_of("abe", "graded", 4.0)])
    orders = {
        name: " ".join(mark.student for mark in marks)
        for name, marks in values["orders"]
    }
    assert orders == {
        "student": "fay eve dan cyd ben ada abe",
        "mark": "abe ada cyd ben dan eve fay",
        "status": "dan eve fay cyd ben abe ada",
    }


def test_a_report_of_nobody_has_no_graded(values: dict[str, Any]) -> None:
    render_report("m1", [])
    assert values["counts"] == {"graded": 0}
    assert (values["mean"], values["median"], values["suites"]) == (0.0, 0.0, 0)


def test_a_report_names_what_a_person_should_look_at(values: dict[str, Any]) -> None:
    flagged = dataclasses.replace(question("double", outcome("test_a", 1.0, 1.0)))
    flagged = dataclasses.replace(flagged, two_answers=(FLAG,))
    unwalled = dataclasses.replace(
        result_of("ben", 2.0), isolation="none", suite_sha256="other"
    )
    marks = [
        mark_of("ada", "graded", 2.0, result=result_of("ada", 2.0, flagged)),
        mark_of("ben", "graded", 2.0, result=unwalled),
    ]
    timing = [Graded("ada", older="no host"), Graded("ben")]
    first, second = AttemptSummary(2, 0.5, 1), AttemptSummary(1, 0.5, 0)
    render_report("m1", marks, timing, tries=[first, second])
    assert values["flagged"] == [("ada", "double", FLAG)]
    assert values["older"] == [timing[0]]
    assert (values["suites"], values["unwalled"]) == (2, 1)
    assert values["tries"] == [first, second]
    # a single try is every student's first one
    render_report("m1", marks, timing, tries=[first])
    assert values["tries"] == ()


# a student's page


@pytest.mark.parametrize(
    ("status", "points", "open_points"),
    [
        # 6 points of the assignment, 4 of its tests
        ("waits for a person", 6.0, 2.0),
        ("waits for a person", 3.0, 0.0),
        ("graded", 6.0, 0.0),
    ],
)
def test_points_that_a_person_will_give_are_open(
    values: dict[str, Any], status: Any, points: float, open_points: float
) -> None:
    result = result_of("ada", 4.0)
    mark = Mark("ada", status, result=result, score=4.0, max_score=points)
    render_feedback(result, mark=mark)
    assert values["open_points"] == open_points


def test_cells_that_ran_as_handed_in_are_no_news(values: dict[str, Any]) -> None:
    cells = (
        CellOutcome("a", "ok"),
        CellOutcome("b", "ok", "its magics are comments"),
        CellOutcome("c", "error"),
    )
    render_feedback(dataclasses.replace(result_of("ada", 4.0), cells=cells))
    assert values["cells"] == list(cells[1:])


@pytest.mark.parametrize(
    ("score", "carried", "is_inherited"),
    [(2.0, 1.0, True), (2.0, 0.0, False), (1.5, 1.0, False), (0.0, 0.0, False)],
)
def test_a_question_that_lost_by_others_alone_is_called_so(
    score: float, carried: float, is_inherited: bool
) -> None:
    tests = (
        outcome("test_a", 1.0, 1.0),
        outcome("test_b", 0.0, 1.0),
        outcome("test_c", 0.0, 1.0),
    )
    double = QuestionResult("double", score, 2.0, carried, None, tests)
    view = _view(double, result_of("ada", score, double), ())
    assert view.only_inherited is is_inherited
    assert view.share == score / 2.0
    assert [test.name for test in view.passed] == ["test_a"]
    # the two fail alike, and share a group
    assert [[test.name for test in tests] for tests in view.failed.values()] == [
        ["test_b", "test_c"]
    ]
