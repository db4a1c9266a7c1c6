"""Figures of a class and words about points, by values worked out by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from stored_results import outcome, question

from autograder.course.roster import Person
from autograder.marks.late_policy import Lateness
from autograder.marks.marks import Mark, mark_from_result
from autograder.outputs import statistics as statistics_module
from autograder.outputs.export import (
    person_cells,
    points_cell,
    render_student_csv,
    render_test_csv,
    safe_cell,
)
from autograder.outputs.junit import junit_xml
from autograder.outputs.outcome_words import (
    cap_note,
    carried_note,
    kept_note,
    question_text,
    slip_hints,
)
from autograder.outputs.statistics import (
    AttemptSummary,
    class_shares,
    correlation,
    histogram,
    read_attempts,
    share,
    summarize_attempts,
    summarize_questions,
    summarize_timing,
)
from autograder.outputs.terminal import question_sign
from autograder.records.model import (
    Diagnosis,
    Graded,
    Outcome,
    QuestionResult,
    Result,
)
from autograder.records.results import write_result


def result(
    student: str, *questions: QuestionResult, full: float | None = None
) -> Result:
    score = sum(each.score for each in questions)
    points = sum(each.max_score for each in questions) if full is None else full
    return Result(
        "m1", student, f"sha-{student}", "suite", "strict", score, points, questions, ()
    )


def answered(points: float, of: float = 2.0, how: Outcome = "failed") -> QuestionResult:
    return question("double", outcome("test_doubles", points, of, how))


# shares


@pytest.mark.parametrize(
    ("score", "full", "expected"),
    [
        (1.0, 4.0, 0.25),
        (5.0, 4.0, 1.0),
        (-1.0, 4.0, 0.0),
        (0.0, 0.0, 1.0),
        (0.0, -1.0, 1.0),
        (0.25, 0.5, 0.5),
    ],
)
def test_a_share_lies_between_0_and_1(
    score: float, full: float, expected: float
) -> None:
    assert share(score, full) == expected


def test_a_bar_is_a_tenth_and_the_last_has_full_marks() -> None:
    assert histogram([]) == [0] * 10
    shares = [0.0, 0.0999, 0.1, 0.3, 0.7, 0.9, 1.0, 0.1 + 0.2]
    assert histogram(shares) == [2, 1, 0, 2, 0, 0, 0, 1, 0, 2]


def test_shares_are_of_the_tests_while_somebody_waits() -> None:
    half = mark_from_result(result("ada", answered(1.0)))
    whole = dataclasses.replace(half, score=3.0, max_score=4.0)
    nobody = Mark("bob", "handed in nothing")
    assert class_shares([whole, nobody]) == [0.75]
    waiting = dataclasses.replace(half, status="waits for a person")
    assert class_shares([waiting, whole]) == [0.5, 0.5]


# questions


def test_a_question_over_the_class() -> None:
    """2, 1, 0 and 1.5 of 2 points, of which one is carried and a half kept."""
    slip = Diagnosis("sign", "the sign")
    half = Diagnosis("half", "You halve.")
    answers = [
        answered(2.0),
        dataclasses.replace(answered(1.0), diagnosis=half, slips=(slip,)),
        dataclasses.replace(answered(0.0, how="error"), diagnosis=half),
        dataclasses.replace(answered(0.0), score=1.5, carried=1.0, kept=0.5),
    ]
    results = [result(str(number), answer) for number, answer in enumerate(answers)]
    (figures,) = summarize_questions(results)
    assert (figures.name, figures.max_score) == ("double", 2.0)
    assert figures.mean == 1.125
    assert figures.mean_share == 0.5625
    assert figures.right_share == 0.25
    assert (figures.carried, figures.kept) == (1, 1)
    assert figures.mistakes == ((("half", "You halve."), 2), (("sign", "the sign"), 1))
    assert figures.failing == (("doubles", 3),)
    assert (figures.discrimination, figures.against) == (None, ())


def test_five_mistakes_and_tests_are_the_commonest() -> None:
    tests = [outcome(f"test_{name}", 0.0, 1.0) for name in "abcdef"]
    slips = tuple(Diagnosis(name, name) for name in "abcdef")
    answer = dataclasses.replace(question("double", *tests), slips=slips)
    (figures,) = summarize_questions([result("ada", answer)])
    assert [name for (name, _), _ in figures.mistakes] == list("abcde")
    assert [name for name, _ in figures.failing] == list("abcde")


def test_a_correlation_needs_ten_pairs_that_vary() -> None:
    rising = [float(n) for n in range(10)]
    assert correlation(rising, rising) == 1.0
    assert correlation(rising, rising[::-1]) == -1.0
    assert correlation(rising[:9], rising[:9]) is None
    assert correlation(rising, [1.0] * 10) is None
    assert correlation([1.0] * 10, rising) is None
    assert correlation(rising, [*rising, 1.0]) is None
    # 0..9 against one 1 at the end: 4.5 / sqrt(82.5 * 0.9)
    assert correlation(rising, [0.0] * 9 + [1.0]) == 0.522233


def test_a_test_that_the_good_fail_is_named() -> None:
    """Ten students: the more points in half, the fewer in double."""
    results = []
    for number in range(10):
        double = question("double", outcome("test_doubles", float(number < 5), 1.0))
        half = question("half", outcome("test_halves", float(number), 9.0))
        results.append(result(str(number), double, half))
    of_double, of_half = summarize_questions(results)
    assert of_double.discrimination == -0.870388
    assert of_double.against == (("doubles", -0.870388),)
    assert of_half.discrimination == -0.870388
    assert of_half.against == (("halves", -0.333333),)


# attempts


def test_attempts_are_counted_by_their_order() -> None:
    history = {
        "ada": [result("ada", answered(1.0)), result("ada", answered(2.0))],
        "bob": [result("bob", answered(0.0))],
    }
    assert summarize_attempts(history) == [
        AttemptSummary(2, 0.25, 0),
        AttemptSummary(1, 1.0, 1),
    ]
    assert summarize_attempts({}) == []


def test_a_notebook_that_is_graded_again_is_no_further_attempt(tmp_path: Path) -> None:
    def attempt(notebook: str, points: float) -> Result:
        whole = result("ada", answered(points))
        return dataclasses.replace(whole, submission_sha256=notebook)

    for folder, each in (
        ("2026-11-29", attempt("one", 0.0)),
        ("2026-11-29.2", attempt("two", 0.5)),
        ("2026-11-29.10", attempt("one", 1.0)),
        ("2026-11-30", result("gone", answered(1.0))),
    ):
        write_result(tmp_path / "results" / "history" / "m1" / folder, each)
    history = tmp_path / "results" / "history" / "m1"
    for path in list(history.glob("*/m1/*.json")):
        path.rename(path.parents[1] / path.name)
    (history / "2026-11-28").mkdir()
    (history / "2026-11-28" / "ada.json").write_text("{")
    current = [attempt("three", 1.5), result("bob", answered(2.0))]
    attempts = read_attempts(tmp_path / "results", "m1", current)
    assert [each.score for each in attempts["ada"]] == [0.5, 1.0, 1.5]
    assert [each.score for each in attempts["bob"]] == [2.0]
    assert list(attempts) == ["ada", "bob"]
    other = dataclasses.replace(current[0], assignment="m2")
    assert read_attempts(tmp_path / "results", "m2", [other]) == {"ada": [other]}


def test_times_are_summed_by_stage() -> None:
    timing = [
        Graded("ada", seconds={"run": 1.0, "tests": 2.0}),
        Graded("bob", seconds={"run": 4.0}),
        Graded("cyd", problem="no notebook"),
    ]
    summary = summarize_timing(timing)
    assert summary is not None
    assert summary.stages == (("run", 5.0), ("tests", 2.0))
    assert (summary.median, summary.slowest, summary.slowest_seconds) == (
        3.5,
        "bob",
        4.0,
    )
    assert summarize_timing(timing[2:]) is None


# words


def scored(score: float, **fields: Any) -> QuestionResult:
    return dataclasses.replace(answered(0.0, 4.0), score=score, **fields)


def test_carried_points_name_the_prerequisites_that_lost() -> None:
    carried = scored(3.0, carried=3.0)
    lost = dataclasses.replace(answered(1.0), name="softmax")
    right = dataclasses.replace(answered(2.0), name="scores")
    whole = result("ada", lost, right, carried)
    assert carried_note(scored(3.0), whole, ["softmax"]) == ""
    assert carried_note(carried, whole, ["softmax", "scores"]) == (
        "3 of these points count in spite of the mistake in `softmax`: with a right "
        "answer in its place, yours passes more tests."
    )
    assert carried_note(carried, whole) == (
        "3 of these points count in spite of a mistake in a question that it builds on: "
        "with a right answer in its place, yours passes more tests."
    )
    both = result("ada", lost, dataclasses.replace(lost, name="scores"))
    full = scored(4.0, carried=4.0)
    assert carried_note(full, both, ["softmax", "scores"]) == (
        "You lost nothing here for the mistake in `softmax` and `scores`: with right "
        "answers in their place, yours passes every test."
    )


def test_kept_points_are_a_slips_or_a_repairs() -> None:
    slip = Diagnosis("sign", "the sign", ("test_doubles",))
    other = Diagnosis("half", "You halve.", ("test_other",))
    assert kept_note(scored(2.0)) == ""
    assert kept_note(scored(2.0, kept=2.0, diagnosis=slip)) == (
        "You keep 2 of 4 points for this slip."
    )
    assert kept_note(scored(2.0, kept=2.0)) == (
        "You keep 2 of 4 points: an answer that one change makes right costs what a slip "
        "costs."
    )
    words = (
        "You keep 2 of 4 points: a known slip costs what it costs by itself, and whatever "
        "else failed costs its own tests."
    )
    assert kept_note(scored(2.0, kept=2.0, diagnosis=other)) == words
    assert kept_note(scored(2.0, kept=2.0, slips=(slip,))) == words
    assert kept_note(scored(2.0, kept=2.0, diagnosis=slip, slips=(other,))) == words


def test_a_fault_of_memory_is_explained() -> None:
    assert cap_note(scored(2.0)) == ""
    note = cap_note(scored(2.0, capped=1.0))
    assert "gets at most half of its question's points: 2 of 4 points here." in note


def test_a_question_as_text() -> None:
    slip = Diagnosis("sign", "the sign", ("test_doubles",))
    failed = outcome("test_doubles", 0.0, 2.0, message="it is 3\nand not 4")
    answer = dataclasses.replace(
        question("double", failed, outcome("test_halves", 1.0, 1.0, message="m")),
        diagnosis=Diagnosis("half", "You\nhalve."),
        slips=(slip,),
    )
    whole = result("ada", answer)
    assert question_text(answer, whole) == (
        "Look here first: You halve.\n\n"
        "✗ doubles (0 of 2): not right yet\n"
        "    it is 3\n"
        "    and not 4\n"
        "    the sign\n"
        "✓ halves (1 of 1): passed"
    )
    assert slip_hints(answer, answer.tests[1]) == ()
    evidence = dataclasses.replace(answer, diagnosis=None, slips=(), evidence="a sign")
    assert question_text(evidence, whole).startswith("a sign\n\n✗ doubles")
    # notes on points stand between the hint and the tests, each a paragraph
    kept = dataclasses.replace(evidence, kept=1.0, capped=1.0, carried=1.0, score=2.0)
    hint, *notes, tests = question_text(kept, whole).split("\n\n")
    assert (hint, tests.partition("\n")[0]) == (
        "a sign",
        "✗ doubles (0 of 2): not right yet",
    )
    assert notes == [kept_note(kept), cap_note(kept), carried_note(kept, whole)]
    assert all(notes)


@pytest.mark.parametrize("more", [0, 1])
def test_a_message_is_cut_where_a_reader_gives_up(more: int) -> None:
    """At 2000 characters on a page, and at 4000 in a file for programs."""
    note = " … (1 characters more)" if more else ""
    failed = outcome("test_doubles", 0.0, 2.0, message="m" * (2000 + more))
    answer = question("double", failed)
    text = question_text(answer, result("ada", answer))
    assert text.endswith(f"\n    {'m' * 2000}{note}")
    problem = Graded("eve", problem="m" * (4000 + more))
    document = ElementTree.fromstring("".join(junit_xml([], [problem])))
    assert [reason.text for reason in document.iter("error")] == [f"{'m' * 4000}{note}"]


def test_a_part_of_a_point_is_told_like_a_whole_one() -> None:
    """Half a point that was carried, kept or lost to the bound on faults of memory."""
    whole = result("ada", answered(1.0))
    assert carried_note(scored(3.0, carried=0.5), whole).startswith("0.5 of these poi")
    assert kept_note(scored(0.5, kept=0.5)).startswith("You keep 0.5 of 4 points")
    assert cap_note(scored(0.5, capped=0.5)).endswith("nobody would see where.")
    assert question_sign(scored(0.5, carried=0.5)) == "+"
    assert question_sign(scored(0.5)) == "~"
    assert question_sign(scored(-0.5)) == "✗"


# tables


def test_cells_that_a_spreadsheet_would_calculate_get_an_apostrophe() -> None:
    for text in ("=1", "+1", "-1", "@a", " =1", "＝1"):
        assert safe_cell(text) == f"'{text}"
    assert safe_cell("a=1") == "a=1"
    assert safe_cell("\ta")[0] == "'"
    assert safe_cell("\na")[0] == "'"
    assert (points_cell(None), points_cell(0.0), points_cell(1 / 3)) == (
        "",
        "0",
        "0.333333",
    )
    person = Person("s1", "=Ada", "a@b", "A", {})
    assert person_cells(person) == ["'=Ada", "a@b", "A"]
    assert person_cells(None) == ["", "", ""]


def rows(text: str) -> list[list[str]]:
    return [line.split(",") for line in text.splitlines()]


def test_a_table_of_students_has_the_columns_that_somebody_needs() -> None:
    ada = mark_from_result(result("ada", answered(1.0)))
    bob = Mark("bob", "no notebook", "a picture")
    assert rows(render_student_csv([ada, bob])) == [
        ["student", "double", "total", "max", "status", "note"],
        ["ada", "1", "1", "2", "graded", ""],
        ["bob", "", "", "2", "no notebook", "a picture"],
    ]
    person = Person("s1", "Ada", "a@b", "A", {})
    written = dataclasses.replace(
        ada,
        status="waits for a person",
        person=person,
        written=3.0,
        score=4.0,
        max_score=5.0,
        late=Lateness(90.5),
        total=3.5,
    )
    late = rows(render_student_csv([written, bob], late=True, bonus={"ada": 0.5}))
    assert late == [
        [
            *[
                "student",
                "name",
                "email",
                "section",
                "double",
                "written",
                "total",
                "max",
            ],
            *["minutes_late", "total_after_late", "speed_bonus", "status", "note"],
        ],
        [
            "ada",
            "Ada",
            "a@b",
            "A",
            "1",
            "3",
            "",
            "5",
            "90.5",
            "",
            "0.5",
            "waits for a person",
            "",
        ],
        ["bob", "", "", "", "", "", "", "5", "", "", "", "no notebook", "a picture"],
    ]
    provisional = rows(render_student_csv([written], provisional=True, late=True))
    assert provisional[1][6:10] == ["4", "5", "90.5", "3.5"]
    (_, unbonused) = rows(render_student_csv([ada], bonus={}))
    assert unbonused[4] == "0"


def test_a_table_of_tests_has_a_row_for_each() -> None:
    answer = dataclasses.replace(
        answered(0.0, how="error"), diagnosis=Diagnosis("half", "You halve.")
    )
    ada = mark_from_result(result("ada", answer))
    bob = Mark("bob", "no notebook", "a picture")
    assert rows("".join(render_test_csv([ada, bob]))) == [
        [
            "student",
            "question",
            "test",
            "outcome",
            "points",
            "max_points",
            "message",
            "diagnosis",
        ],
        ["ada", "double", "test_doubles", "error", "0", "2", "", "half"],
        ["bob", "", "", "no notebook", "", "", "a picture", ""],
    ]


# JUnit


def junit(results: Sequence[Result], *problems: Graded) -> ElementTree.Element:
    return ElementTree.fromstring("".join(junit_xml(results, problems)))


def test_a_class_as_junit_counts_failures_and_errors() -> None:
    outcomes: list[Outcome] = ["failed", "forbidden", "error", "timeout", "crashed"]
    tests = [outcome(f"test_{how}", 0.0, 1.0, how, "m" * 300) for how in outcomes]
    ada = result("ada", question("double", *tests, outcome("test_right", 1.0, 1.0)))
    root = junit([ada], Graded("bob", problem="no notebook"))
    assert root.attrib == {"tests": "7", "failures": "2", "errors": "4"}
    ada_suite, bob_suite = root
    assert ada_suite.attrib == {
        "name": "m1.ada",
        "tests": "6",
        "failures": "2",
        "errors": "3",
    }
    kinds = [[reason.tag for reason in case] for case in ada_suite]
    assert kinds == [["failure"], ["failure"], ["error"], ["error"], ["error"], []]
    case = ada_suite[0]
    assert (case.attrib["classname"], case.attrib["name"]) == (
        "m1.ada.double",
        "test_failed",
    )
    assert case[0].attrib["type"] == "failed"
    words = "m" * 200 + " … (100 characters more)"
    assert case[0].attrib["message"] == words
    assert case[0].text == "m" * 300
    assert bob_suite.attrib == {
        "name": "bob",
        "tests": "1",
        "failures": "0",
        "errors": "1",
    }
    (reason,) = bob_suite[0]
    assert (reason.tag, reason.text) == ("error", "no notebook")


def test_junit_says_how_its_text_is_written() -> None:
    first = next(iter(junit_xml([])))
    assert first == '<?xml version="1.0" encoding="UTF-8"?>\n'


def test_an_empty_class_as_junit() -> None:
    root = junit([])
    assert (root.tag, len(root)) == ("testsuites", 0)
    assert root.attrib == {"tests": "0", "failures": "0", "errors": "0"}
    assert len(junit([], Graded("bob", problem="x"))) == 1
    assert len(junit([result("ada")])) == 1


@pytest.mark.parametrize(("last", "against"), [(0.0, ()), (1.0, ("doubles",))])
def test_a_test_that_goes_neither_way_is_not_against_the_others(
    last: float, against: tuple[str, ...]
) -> None:
    """Twelve students: half of those who pass have a point elsewhere, and half of the others; with
    one point more among those who fail the test goes against the rest.
    """
    passed = [True, True, False, False] * 3
    points = [1.0, 0.0, 1.0, 0.0] * 2 + [1.0, 0.0, 1.0, last]
    answers = []
    for is_passed in passed:
        test = outcome("test_doubles", 1.0 if is_passed else 0.0, 1.0)
        answers.append(question("double", test))
    contrary = statistics_module._find_contrary_tests(answers, points)
    assert tuple(name for name, _ in contrary) == against
