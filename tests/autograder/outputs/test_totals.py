"""Weights and categories of assignments: every mean here is worked out by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from autograder.basics.errors import BadCourseFile, KitError
from autograder.course import Course, load_course, settings_without_people
from autograder.course.weights import Category, Weights
from autograder.marks.marks import Mark, mark_from_result
from autograder.outputs.totals import course_totals, totals, totals_csv
from autograder.records.model import Result

HOMEWORK = Category("homework", 60.0, ("a1", "a2", "a4"), drop_lowest=1)
PROJECT = Category("project", 40.0, ("a9",))


def marks(result: Result, **percents: float) -> dict[str, list[Mark]]:
    """Marks of one student, each of 100."""
    mark = mark_from_result(result)
    return {
        name: [dataclasses.replace(mark, total=percent, max_score=100.0)]
        for name, percent in percents.items()
    }


def test_categories_and_weights_make_the_total(plain: Result) -> None:
    """50 is dropped; homework is (80 + 2 * 90) / 3 = 86.667, and 0.6 * 86.667 + 0.4 * 70 = 80."""
    weights = Weights({"a4": 2.0}, (HOMEWORK, PROJECT))
    (row,) = totals(marks(plain, a1=50, a2=80, a4=90, a9=70), 0, weights)
    assert (row.dropped, row.categories, row.total) == (
        ("a1",),
        {"homework": 86.666667, "project": 70.0},
        80.0,
    )
    header, line = totals_csv([row], ["a1", "a2", "a4", "a9"]).splitlines()
    assert header.endswith(
        "a1,a2,a4,a9,category homework,category project,dropped,total,note"
    )
    assert line.endswith("50,80,90,70,86.666667,70,a1,80,")


def test_percents_and_means_have_six_digits_and_totals_two(plain: Result) -> None:
    """A third and two sevenths: 33.333333 and 28.571429; their mean is 30.952381."""
    by_assignment = marks(plain, a1=1, a2=2)
    for name, most in (("a1", 3.0), ("a2", 7.0)):
        (one,) = by_assignment[name]
        by_assignment[name] = [dataclasses.replace(one, max_score=most)]
    (row,) = totals(by_assignment, 0)
    assert row.percents == {"a1": 33.333333, "a2": 28.571429}
    assert row.total == 30.952381
    line = totals_csv([row], ["a1", "a2"]).splitlines()[1]
    assert line.endswith(",33.333333,28.571429,,30.95,")


def test_weights_count_without_categories_too(plain: Result) -> None:
    """(50 + 3 * 90) / 4 = 80; with the lowest dropped, 90."""
    weights = Weights({"a2": 3.0})
    assert [row.total for row in totals(marks(plain, a1=50, a2=90), 0, weights)] == [
        80.0
    ]
    assert [row.total for row in totals(marks(plain, a1=50, a2=90), 1, weights)] == [
        90.0
    ]


def test_an_assignment_of_no_points_has_no_percent_and_no_total(plain: Result) -> None:
    """A first draft whose questions have no points yet: 0 of 0 is neither 0 nor 100 percent."""
    by_assignment = marks(plain, a1=80, a2=0)
    by_assignment["a2"] = [dataclasses.replace(by_assignment["a2"][0], max_score=0.0)]
    (row,) = totals(by_assignment, 0)
    assert (row.percents, row.total) == ({"a1": 80.0, "a2": None}, None)


def test_a_category_without_marks_does_not_count(plain: Result) -> None:
    """In the middle of the term: homework alone, (80 + 90) / 2 with 50 dropped."""
    (row,) = totals(
        marks(plain, a1=50, a2=80, a4=90), 0, Weights({}, (HOMEWORK, PROJECT))
    )
    assert (row.total, row.categories) == (85.0, {"homework": 85.0})


def test_practice_does_not_count_and_nobody_waits_for_it(plain: Result) -> None:
    practice = Category("practice", 0.0, ("a1",))
    by_assignment = marks(plain, a1=50, a9=70)
    by_assignment["a1"] = [
        dataclasses.replace(by_assignment["a1"][0], status="waits for a person")
    ]
    (row,) = totals(by_assignment, 0, Weights({}, (practice, PROJECT)))
    assert (row.total, row.categories) == (70.0, {"practice": None, "project": 70.0})


def test_an_assignment_in_no_category_is_refused(plain: Result) -> None:
    with pytest.raises(ValueError, match="a5 is in no category"):
        totals(marks(plain, a5=50, a9=70), 0, Weights({}, (PROJECT,)))


def test_course_toml_has_them(tmp_path: Path) -> None:
    (tmp_path / "course.toml").write_text(
        "[totals]\nassignment_points = 50\n[totals.weights]\na4 = 2\n[totals.categories]\n"
        'homework = { weight = 60, assignments = ["a1", "a2", "a4"], drop_lowest = 1 }\n'
        'project = { weight = 40.0, assignments = ["a9"] }\n',
        encoding="utf-8",
    )
    course = load_course(tmp_path)
    assert course.weights == Weights({"a4": 2.0}, (HOMEWORK, PROJECT))
    assert course.totals.assignment_points == 50
    assert "homework" not in settings_without_people(course)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "[totals.weights]\na = -1",
            "totals.weights.a = -1: it must be a number from 0",
        ),
        (
            "[totals.weights]\na = inf",
            "totals.weights.a = inf: it must be a number from 0",
        ),
        ("[totals.categories]\nh = 3", r"\[totals.categories.h\] must be one table"),
        (
            "[totals.categories]\nh = { weight = 1 }",
            r"h needs assignments: a list of names, like",
        ),
        (
            "[totals.categories]\nh = { assignments = ['a'] }",
            "h needs weight: a number from 0 to 1000000",
        ),
        (
            "[totals.categories]\nh = { weight = 1, assignments = ['a'], drop = 1 }",
            "unknown setting totals.categories.h",
        ),
        (
            "[totals.categories]\nh = { weight = 1, assignments = ['a'], drop_lowest = 0.5 }",
            "h.drop_lowest = 0.5: it must be a whole number from 0 to 1000",
        ),
        (
            "[totals.categories]\nh = { weight = 0, assignments = ['a'] }",
            "every weight is 0",
        ),
        (
            "[totals.categories]\nh = { weight = 1, assignments = ['a'] }\np = { weight = 1, "
            "assignments = ['a'] }",
            "a is in h and in p",
        ),
        (
            "[totals]\ndrop_lowest = 1\n[totals.categories]\nh = { weight = 1, "
            "assignments = ['a'] }",
            "drop_lowest stands",
        ),
    ],
)
def test_a_mistake_in_them_is_named(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "course.toml").write_text(text, encoding="utf-8")
    with pytest.raises(BadCourseFile, match=problem):
        load_course(tmp_path)


def course_with(root: Path, *names: str, settings: str) -> Course:
    for name in names:
        (root / "source" / name).mkdir(parents=True)
        (root / "source" / name / f"{name}.py").write_text("", encoding="utf-8")
    (root / "course.toml").write_text(settings, encoding="utf-8")
    return load_course(root)


def test_a_category_without_results_is_said_and_a_name_that_is_none_is_refused(
    plain: Result, tmp_path: Path
) -> None:
    settings = (
        "[totals.categories]\nhomework = { weight = 60, assignments = ['a1'] }\n"
        "project = { weight = 40, assignments = ['a9'] }\n"
    )
    said: list[str] = []
    course = course_with(tmp_path / "whole", "a1", "a9", settings=settings)
    (row,) = course_totals(course, marks(plain, a1=50), said.append, provisional=False)
    assert (row.total, said) == (
        50.0,
        ["no results yet, so the category does not count: project"],
    )
    course = course_with(tmp_path / "less", "a1", settings=settings)
    with pytest.raises(
        KitError,
        match=r"\[totals\] names 'a9', and there is no such assignment; there are: a1",
    ):
        course_totals(course, marks(plain, a1=50), said.append, provisional=False)
    course = course_with(tmp_path / "more", "a1", "a5", "a9", settings=settings)
    with pytest.raises(KitError, match="a5 is in no category"):
        course_totals(
            course, marks(plain, a1=50, a5=50), said.append, provisional=False
        )


def test_where_all_weights_are_zero_all_count_alike(plain: Result) -> None:
    weights = Weights({"a1": 0.0, "a2": 0.0})
    assert [row.total for row in totals(marks(plain, a1=50, a2=90), 0, weights)] == [
        70.0
    ]
