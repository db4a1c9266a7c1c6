"""Which tests would move which marks, by results alone."""

from __future__ import annotations

import dataclasses

import pytest
from graded_results import outcome, result

from autograder.grading.graded_bytes import pack_graded, unpack_graded
from autograder.grading.regrade import Comparison, Move, compare_results, explain_move
from autograder.records import model
from autograder.records.model import QuestionResult, TestOutcome
from autograder.records.model import Result as Graded
from autograder.records.results import result_bytes


def test_each_test_that_moves_a_mark_is_named() -> None:
    before = result(outcome("a", 2.0), outcome("b", 0.0), outcome("c", 2.0))
    # the sum is the same
    assert (
        explain_move(
            before, result(outcome("a", 2.0), outcome("b", 2.0), outcome("d", 0.0))
        )
        == []
    )
    after = result(
        outcome("a", 0.0),
        outcome("b", 0.0),
        outcome("d", 3.0, 3.0),
        carried=1.0,
        submission="b",
    )
    assert explain_move(
        result(outcome("a", 2.0), outcome("b", 0.0), outcome("c", 1.0)), after
    ) == [
        "another notebook has been handed in",
        "softmax: a passed → failed (-2)",
        "softmax: c is gone (-1 of 2)",
        "softmax: d is new, passed (+3 of 3)",
        "softmax: carried points (+1)",
    ]
    assert explain_move(before, None, "it is empty") == [
        "can no longer be graded: it is empty"
    ]
    assert explain_move(None, before) == ["has no result that counts yet"]


@pytest.mark.parametrize(
    ("old", "new", "reasons"),
    [
        # a test that is worth more moves the mark's share, though it has the same points
        ((2.0, 2.0), (2.0, 3.0), ["a still passed (+0, worth 3 now)"]),
        ((2.0, 2.0), (3.0, 3.0), ["a still passed (+1, worth 3 now)"]),
        ((1.0, 2.0), (1.5, 2.0), ["a still passed (+0.5)"]),
        ((0.0, 2.0), (2.0, 2.0), ["a failed → passed (+2)"]),
        # what rounding leaves is nothing
        ((2.0, 2.0), (2.0 + 1e-10, 2.0), []),
    ],
)
def test_a_test_moves_points_or_is_worth_others(
    old: tuple[float, float], new: tuple[float, float], reasons: list[str]
) -> None:
    moved = explain_move(result(outcome("a", *old)), result(outcome("a", *new)))
    assert moved == [f"softmax: {reason}" for reason in reasons]


def test_points_that_are_kept_no_more_move_a_mark() -> None:
    before = result(outcome("a", 1.0))
    (question,) = before.questions
    after = dataclasses.replace(
        before,
        score=0.5,
        questions=(dataclasses.replace(question, score=0.5, kept=-0.5),),
    )
    assert explain_move(before, after) == ["softmax: kept points (-0.5)"]


def test_a_comparison_counts_moves_suites_and_who_was_not_tried() -> None:
    """Ada moves by two points, Bob stays, Cyd is not tried, Dan is new, Eve is not asked for."""

    def scored(student: str, points: float, suite: str = "old") -> Graded:
        tests = (TestOutcome("a", "passed", points, 4.0),)
        questions = (QuestionResult("f", points, 4.0, 0.0, None, tests),)
        return Graded(
            "small", student, "n", suite, "strict", points, 4.0, questions, ()
        )

    counting = {name: scored(name, 1.0) for name in ("ada", "bob", "cyd")}
    counting["eve"] = scored("eve", 1.0, "older")
    regraded = {
        "ada": scored("ada", 3.0),
        "bob": scored("bob", 1.0),
        "dan": scored("dan", 2.0),
    }
    students = ["dan", "cyd", "bob", "ada"]
    comparison = compare_results(
        students, counting, regraded, {"cyd": "no disk"}, ("cyd",)
    )
    assert [(move.student, move.change) for move in comparison.moves] == [
        ("ada", "1 → 3 of 4 (+2)"),
        ("dan", "none → 2 of 4"),
    ]
    assert (comparison.same, comparison.untried) == (1, ("cyd",))
    assert "cyd: not graded by this run: no disk" in list(comparison.lines())
    assert comparison.suites == {"old": 3}
    gone = compare_results(["ada"], counting, {}, {"ada": "it is empty"})
    assert [(move.change, move.reasons) for move in gone.moves] == [
        ("1 → none of none", ("can no longer be graded: it is empty",))
    ]


def test_who_was_not_tried_has_the_reason_that_is_known() -> None:
    comparison = compare_results(
        ["ada", "bob", "cyd"],
        {},
        {},
        {"ada": "no disk", "bob": ""},
        ("ada", "bob", "cyd"),
    )
    assert comparison.obstacles == {"ada": "no disk"}
    assert list(comparison.lines()) == [
        "results that count: none",
        "ada: not graded by this run: no disk",
        "bob: not graded by this run",
        "cyd: not graded by this run",
        "marks that move: 0, that stay: 0",
    ]


def test_a_comparison_is_told_line_by_line() -> None:
    moves = (Move("ada", "1 → 3 of 4 (+2)", ("f: a failed → passed (+2)", "f: b new")),)
    comparison = Comparison(moves, 2, (), {"b" * 64: 1, "a" * 64: 3})
    assert list(comparison.lines()) == [
        "results that count: 3 of suite aaaaaaaaaaaa, 1 of suite bbbbbbbbbbbb",
        "ada 1 → 3 of 4 (+2): f: a failed → passed (+2); f: b new",
        "marks that move: 1, that stay: 2",
    ]


# as bytes


def test_a_graded_submission_is_a_line_and_its_results_file() -> None:
    whole = result(outcome("a", 1.0))
    data = pack_graded(model.Graded("ada", whole))
    _, newline, content = data.partition(b"\n")
    assert (newline, content) == (b"\n", result_bytes(whole))
    record, stored = unpack_graded(data)
    assert record == model.Graded("ada", whole.headline())
    assert stored == content
    problem = model.Graded("ada", problem="it is\nempty")
    data = pack_graded(problem)
    assert data.index(b"\n") == len(data) - 1
    assert unpack_graded(data) == (problem, b"")
