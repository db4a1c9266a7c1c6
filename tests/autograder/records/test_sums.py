"""A stored result adds up, or says where it does not; marks by hand beside results."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from stored_results import outcome, question

from autograder.records.model import (
    Graded,
    ManualGrades,
    ManualScore,
    QuestionResult,
    Result,
)
from autograder.records.sums import check_sums, describe_misvaluation


def answered(**fields: Any) -> QuestionResult:
    """1 of 2 points and 1 of 1."""
    tests = outcome("test_a", 1.0, 2.0), outcome("test_b", 1.0, 1.0)
    return dataclasses.replace(question("double", *tests), **fields)


def result(*questions: QuestionResult, **fields: Any) -> Result:
    score = sum(each.score for each in questions)
    full = sum(each.max_score for each in questions)
    whole = Result("m1", "ada", "sha", "suite", "strict", score, full, questions, ())
    return dataclasses.replace(whole, **fields)


def test_points_that_add_up_are_no_problem() -> None:
    check_sums(result(answered()))
    check_sums(result(answered(), answered(name="half")))
    check_sums(result(answered(score=3.0, carried=1.0)))
    check_sums(result(answered(score=2.5, kept=0.5)))
    check_sums(result(answered(score=1.5, capped=0.5)))
    check_sums(result(answered(), score=2.0 + 9e-7))
    check_sums(result())
    # rounded to six digits, a part may be a little above its maximum, or below nothing
    over = outcome("test_a", 2.0 + 5e-7, 2.0), outcome("test_b", -5e-7, 1.0)
    check_sums(result(question("double", *over)))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (result(answered(), score=2.5), "^score is 2.5, and its parts make 2$"),
        (result(answered(), score=2.00001), "^score is 2.00001, and its parts make 2$"),
        (result(answered(), score=2.0 + 1.5e-6), "^score is 2, and its parts make 2$"),
        (
            result(
                dataclasses.replace(
                    question("endless", outcome("test_a", 1.0, float("inf"))),
                    max_score=2.0,
                )
            ),
            "^endless: test_a has 1 points of inf$",
        ),
        (result(answered(), max_score=4.0), "^max_score is 4, and its parts make 3$"),
        (result(answered(score=2.5)), "^double: score is 2.5, and its parts make 2$"),
        (
            result(answered(max_score=4.0)),
            "^double: max_score is 4, and its parts make",
        ),
        (
            result(answered(carried=3.5, capped=3.5)),
            "^double: carried has 3.5 points of 3$",
        ),
        (result(answered(kept=-1.0, score=1.0)), "^double: kept has -1 points of 3$"),
        (
            result(answered(capped=4.0, carried=2.0, kept=2.0)),
            "^double: capped has 4 points of 3$",
        ),
        (
            result(answered(carried=1.0, kept=1.0, score=4.0)),
            "^double has 4 points of 3$",
        ),
        (
            result(question("double", outcome("test_a", 3.0, 2.0))),
            "^double: test_a has 3 points of 2$",
        ),
        (
            result(question("double", outcome("test_a", -1.0, 2.0))),
            "^double: test_a has -1 points of 2$",
        ),
        (
            result(question("double", outcome("test_a", 1.0, float("inf")))),
            "^max_score is inf, and its parts make inf$",
        ),
    ],
)
def test_points_that_do_not_add_up_are_named(wrong: Result, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_sums(wrong)


def test_points_of_another_suite_are_named() -> None:
    both = result(answered(), answered(name="half"))
    assert describe_misvaluation(both, {"double": 3.0, "half": 3.0}) == ""
    assert describe_misvaluation(both, {"double": 3.0, "half": 3.0 + 9e-7}) == ""
    assert describe_misvaluation(both, {"double": 3.0, "half": 2.5}) == (
        "half is worth 2.5, not 3"
    )
    words = "its questions are not those of the suite that it names"
    assert describe_misvaluation(both, {"double": 3.0}) == words
    assert describe_misvaluation(both, {"double": 3.0, "third": 3.0}) == words


# marks by hand


def grades(*questions: ManualScore, **fields: Any) -> ManualGrades:
    return ManualGrades("ada", (), questions, **fields)


def test_a_gradebook_matches_a_result_with_the_same_points() -> None:
    two = result(answered(), answered(name="half"))
    assert grades().matches(two)  # it knows of no question
    assert grades(automatic={"double": 2.0, "half": 2.0 + 9e-7}).matches(two)
    assert not grades(automatic={"double": 2.0, "half": 2.000001}).matches(two)
    assert not grades(automatic={"half": 1.0}).matches(two)
    assert not grades(automatic={"double": 3.0}).matches(two)


def test_a_mark_has_points_by_hand_in_place_of_tests() -> None:
    """2 + 2 by tests; 3 by hand for half, 0.5 on top of double; 4 + 1 of a written answer."""
    two = result(answered(), answered(name="half"))
    half = ManualScore("half", 3.0, 3.0)
    double = ManualScore("double", 3.0, None, extra_credit=0.5)
    gone = ManualScore("gone", 3.0, 3.0)
    assert grades(half, double, gone).mark(two) == 5.5
    why = ManualScore("why", 5.0, 4.0, extra_credit=1.0)
    how = ManualScore("how", 5.0, None)
    written = dataclasses.replace(grades(half), written=(why, how))
    assert written.mark(two) == 10.0
    assert (why.counts, how.counts) == (5.0, 0.0)


def test_marks_wait_where_one_of_them_waits() -> None:
    calm = ManualScore("why", 5.0, 4.0)
    waiting = ManualScore("how", 5.0, None, waits=True)
    early = ManualScore("half", 3.0, 3.0, waits=True, earlier=True)
    assert not grades(calm).waits
    assert grades(calm, waiting).waits
    assert not grades(waiting).earlier
    assert grades(waiting, early).earlier
    written = ManualGrades("ada", (early,))
    assert (written.waits, written.earlier) == (True, True)


def test_records_without_more_have_nothing() -> None:
    assert ManualScore("why", 5.0, None) == ManualScore(
        "why", 5.0, None, extra_credit=0.0, comment="", waits=False, earlier=False
    )
    assert Graded("ada") == Graded(
        "ada",
        result=None,
        problem="",
        seconds={},
        untried=False,
        speeds=(),
        older="",
        machine="",
    )
    plain = question("double")
    assert (plain.slips, plain.kept, plain.capped, plain.two_answers) == (
        (),
        0.0,
        0.0,
        (),
    )
    assert (plain.evidence, plain.example) == ("", None)
    assert (result().schema, result().made_by) == (2, {})
