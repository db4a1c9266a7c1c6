"""Rubric items: the lines of a marking scheme, given by their numbers in a grader's comment."""

from __future__ import annotations

import dataclasses

from autograder.marks.marks import mark_from_result
from autograder.marks.rubric import (
    RubricItem,
    WrittenStatistics,
    count_items,
    expand_comments,
    expand_items,
    find_items,
    number_items,
    rubric_items,
    sum_points,
    written_statistics,
)
from autograder.outputs.class_report import render_report
from autograder.outputs.feedback_page import render_feedback
from autograder.records.model import ManualGrades, ManualScore, Result

SCHEME = """\
**Marking guide**

- 2 points: variances add up,
  so that of the sum is $d$. (1 point where it is not said why.)
- 0.5 points: the root of it.
* 1 point: dividing by $d$ makes it shrink.

Anything else: look at the model answer.
"""
SUM, ROOT, SHRINKS = (
    RubricItem(
        1,
        2.0,
        "variances add up, so that of the sum is $d$. (1 point where it is not said why.)",
    ),
    RubricItem(2, 0.5, "the root of it."),
    RubricItem(3, 1.0, "dividing by $d$ makes it shrink."),
)


def test_the_lines_of_a_scheme_are_its_items() -> None:
    assert rubric_items(SCHEME) == (SUM, ROOT, SHRINKS)
    assert rubric_items("Up to 5 points, as you see fit.") == ()
    assert sum_points([SUM, ROOT]) == 2.5


def test_a_grader_sees_the_numbers() -> None:
    assert number_items(
        "For graders\n\n- 2 points: sums.\n  And so on.\n* 1 point: roots.\n- neither"
    ) == (
        "For graders\n\n- **#1** 2 points: sums.\n  And so on.\n- **#2** 1 point: roots.\n- neither"
    )


def test_a_comment_gives_items_by_their_numbers() -> None:
    """Each once, in the order of the scheme; no numbers of others, addresses, entities, or parts of
    words.
    """
    items = rubric_items(SCHEME)
    assert find_items("#2 #1, and #2 again", items) == (SUM, ROOT)
    assert find_items("#4, see issue#1, &#49; and x/#3 #1st", items) == ()


def test_a_student_reads_what_the_items_say() -> None:
    items = rubric_items(SCHEME)
    assert (
        expand_items("#2 #7 Nearly.", items)
        == "the root of it. (0.5 points) #7 Nearly."
    )
    assert expand_items("#3", items) == "dividing by $d$ makes it shrink. (1 point)"


def test_items_are_counted() -> None:
    comments = ["#1 #2", "#2 Good.", "", "no number"]
    assert count_items(comments, rubric_items(SCHEME)) == (
        (SUM, 1),
        (ROOT, 2),
        (SHRINKS, 0),
    )


def by_hand(
    student: str, points: float | None, comment: str, *, waits: bool = False
) -> ManualGrades:
    return ManualGrades(
        student, (ManualScore("why", 3.5, points, comment=comment, waits=waits),)
    )


def test_the_class_report_counts_them_and_names_other_sums(plain: Result) -> None:
    """Ada has 2.5 for 2 + 0.5, Ben 3 for 0.5 alone, Cay 1 without a number; Dan still waits: the
    mean is 6.5 / 3.
    """
    hands = [
        by_hand("ada", 2.5, "#1 #2"),
        by_hand("ben", 3.0, "#2"),
        by_hand("cay", 1.0, "Short."),
        by_hand("dan", 2.0, "#1", waits=True),
    ]
    rubrics = {"why": rubric_items(SCHEME)}
    (statistics,) = written_statistics(hands, rubrics)
    assert statistics == WrittenStatistics(
        "why", 3.5, 3, 6.5 / 3, ((SUM, 1), (ROOT, 2), (SHRINKS, 0)), ("ben",)
    )
    marks = [
        dataclasses.replace(mark_from_result(plain), student=hand.student, by_hand=hand)
        for hand in hands
    ]
    page = "".join(render_report("attention", marks, rubrics=rubrics))
    assert '<td class="number">2</td><td>#2, 0.5: the root of it.</td>' in page
    assert "Other points than their lines give together: <bdi>ben</bdi></p>" in page


def test_the_students_page_has_the_text_and_no_number(plain: Result) -> None:
    marks = [
        mark_from_result(plain),
        dataclasses.replace(
            mark_from_result(plain), by_hand=by_hand("ada", 2.5, "#2 Good.")
        ),
    ]
    untouched, mark = expand_comments(marks, {"why": rubric_items(SCHEME)})
    assert untouched == marks[0]
    page = render_feedback(plain, mark=mark)
    assert "the root of it. (0.5 points) Good." in page
    assert "#2" not in page
