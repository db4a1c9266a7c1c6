"""Item statistics: correlations and summarize_attempts, each worked out by hand."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from autograder.marks.marks import mark_from_result
from autograder.outputs.class_report import render_report
from autograder.outputs.statistics import (
    AttemptSummary,
    correlation,
    read_attempts,
    summarize_attempts,
    summarize_questions,
)
from autograder.records.model import QuestionResult, Result, TestOutcome
from autograder.records.results import write_result


def question(name: str, score: float, passed: bool = True) -> QuestionResult:
    test = TestOutcome(f"test_{name}", "passed" if passed else "failed", score, 4.0)
    return QuestionResult(name, score, 4.0, 0.0, None, (test,))


def class_of(rows: list[tuple[float, float, bool]]) -> list[Result]:
    """Results of two questions: their scores, and whether the second one's test passed."""
    return [
        Result(
            "a",
            f"s{n}",
            f"sha-{n}",
            "suite",
            "strict",
            first + second,
            8.0,
            (question("first", first), question("second", second, passed)),
            (),
        )
        for n, (first, second, passed) in enumerate(rows)
    ]


def discriminations(
    results: list[Result],
) -> dict[str, tuple[float | None, tuple[tuple[str, float], ...]]]:
    """Question → how far it goes along with the rest, and the tests that go against it."""
    return {
        question.name: (question.discrimination, question.against)
        for question in summarize_questions(results)
    }


def test_a_question_that_goes_along_with_the_rest() -> None:
    """Five have 0 and 0, five 4 and 4: the one tells all of the other, which is its rest."""
    results = class_of([(0.0, 0.0, False)] * 5 + [(4.0, 4.0, True)] * 5)
    assert discriminations(results) == {"first": (1.0, ()), "second": (1.0, ())}


def test_a_test_that_the_better_ones_fail_is_named() -> None:
    """first: 0 0 0 0 0 4 4 4 4 4; the test of second passes in the first six: of passed (6) and
    failed (4) the means of the rest are 4/6 and 4, the standard deviation of the rest is 2, so (4/6
    - 4) / 2 * sqrt(0.6 * 0.4) = -0.816497.
    """
    rows = [(0.0, 2.0, True)] * 5 + [(4.0, 2.0, True)] + [(4.0, 2.0, False)] * 4
    found = discriminations(class_of(rows))
    assert found["second"] == (None, (("second", -0.816497),))
    assert math.isclose((4 / 6 - 4) / 2 * math.sqrt(0.6 * 0.4), -0.816497, abs_tol=1e-6)


def test_nothing_is_said_of_few_or_of_equal_answers() -> None:
    assert correlation([1.0, 2.0] * 4, [1.0, 2.0] * 4) is None
    assert correlation([1.0] * 10, [1.0, 2.0] * 5) is None
    assert correlation([1.0, 2.0] * 5, [2.0, 1.0] * 5) == -1.0
    (result,) = class_of([(1.0, 1.0, True)])
    alone = dataclasses.replace(result, questions=result.questions[:1])
    assert discriminations([alone] * 12)["first"] == (None, ())


def test_attempts_are_submissions_and_not_gradings(
    tmp_path: Path, plain: Result
) -> None:
    """Ada hands in three times (5, then 11 of 20; the last again by another suite: 20), zoe once
    (10).
    """
    scores = [
        ("one", "suite-1", 5.0),
        ("two", "suite-1", 11.0),
        ("three", "suite-1", 12.0),
        ("three", "suite-2", 20.0),
    ]
    for sha, suite, score in scores:
        result = dataclasses.replace(
            plain, submission_sha256=sha, suite_sha256=suite, score=score
        )
        write_result(tmp_path, result)
    zoe = dataclasses.replace(plain, student="zoe", score=10.0)
    write_result(tmp_path, zoe)
    history = read_attempts(tmp_path, "attention", [result, zoe])
    assert {
        student: [result.score for result in results]
        for student, results in history.items()
    } == {
        "ada": [5.0, 11.0, 20.0],
        "zoe": [10.0],
    }
    tries = summarize_attempts(history)
    assert tries == [
        AttemptSummary(2, 0.375, 0),
        AttemptSummary(1, 0.55, 0),
        AttemptSummary(1, 1.0, 1),
    ]
    page = "".join(
        render_report(
            "attention", [mark_from_result(result), mark_from_result(zoe)], tries=tries
        )
    )
    assert "<td>3</td>" in page
    assert "Attempts" not in "".join(
        render_report("attention", [mark_from_result(zoe)], tries=tries[:1])
    )


def test_the_folders_of_a_day_are_read_in_their_order(
    tmp_path: Path, plain: Result
) -> None:
    for number, score in (("", 1.0), (".2", 2.0), (".10", 3.0)):
        folder = tmp_path / "history/attention" / f"2026-11-29{number}"
        folder.mkdir(parents=True)
        result = dataclasses.replace(
            plain, submission_sha256=number or "one", score=score
        )
        (folder / "ada.json").write_text(result.to_json(), encoding="utf-8")
    (folder / "zoe.json").write_text("{", encoding="utf-8")
    history = read_attempts(tmp_path, "attention", [plain])
    assert [result.score for result in history["ada"]] == [1.0, 2.0, 3.0, 11.0]
    assert summarize_attempts({}) == []


@pytest.mark.parametrize(("passed", "shown"), [(True, False), (False, True)])
def test_the_report_asks_about_such_a_test(passed: bool, shown: bool) -> None:
    rows = [(0.0, 2.0, True)] * 5 + [(4.0, 2.0, True)] + [(4.0, 2.0, passed)] * 4
    page = "".join(
        render_report("a", [mark_from_result(result) for result in class_of(rows)])
    )
    assert ("Failed by those who are right elsewhere" in page) is shown
    assert ("−0.82" in page or "-0.82" in page) is shown
