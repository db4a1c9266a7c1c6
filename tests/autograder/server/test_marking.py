"""Written answers marked on a page, in the gradebook that the formgrader has too."""

from __future__ import annotations

import json
import re

import pytest
from served_course import Served

from autograder.marks.rubric import RubricItem
from autograder.nbgrader.manual_grades import HandMark, read_manual_grades
from autograder.server.filing import file_attempts
from autograder.server.written_pages import code_of, mark_from_form

WHY = "/class/tiny/written/why"
MARK = HandMark("ada", "why", 5.0, written=True, waits=True)
GUIDE = (RubricItem(1, 2.0, "names the inverse"), RubricItem(2, 1.5, "says why"))


def notebook(text: str) -> bytes:
    """A notebook with the written answer `why`."""
    metadata = {"attention_kit": {"role": "written", "name": "why"}}
    metadata["nbgrader"] = {"grade_id": "written_why"}
    cell = {"cell_type": "markdown", "metadata": metadata, "source": text}
    return json.dumps(
        {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    ).encode()


@pytest.fixture
def with_answers(served: Served) -> Served:
    for student, text in (("ada", "<b>It</b> undoes it."), ("bob", "Just so.")):
        served.browser(student).hand_in(notebook(text))
        served.grade(2.0)
    assert file_attempts(served.office.course, served.office.attempts).problems == ()
    return served


def test_answers_are_marked_without_names(with_answers: Served) -> None:
    prof = with_answers.browser("prof")
    assert (
        "No answers have been brought in yet." in prof.get("/class/tiny/written").text
    )
    listed = prof.send("/class/tiny/written", "/class/tiny/written").text
    assert re.search(r'written/why">why</a></td><td class="number">2</td>', listed)
    text = prof.get(WHY).text
    assert "&lt;b&gt;It&lt;/b&gt; undoes it." in text
    assert "ada" not in text
    assert "bob" not in text
    saved = prof.send(
        WHY, WHY, code=code_of("tiny", "ada"), points="4", comment="Nice."
    )
    assert "4 of 5" in saved.text
    course = with_answers.office.course
    grades = read_manual_grades(course.db_url, "tiny")["ada"]
    (score,) = grades.written
    assert (score.points, score.comment, score.waits) == (4.0, "Nice.", False)
    log = prof.get("/people").text
    assert "tiny, why, ada: no mark became 4 points" in log


@pytest.mark.parametrize(
    ("points", "comment", "given"),
    [("3", "", 3.0), ("", "#1 and #2", 3.5), ("0", "#1", 0.0), ("5", "", 5.0)],
)
def test_points_come_from_the_field_or_from_the_guide(
    points: str, comment: str, given: float
) -> None:
    changed = mark_from_form(MARK, points, comment, GUIDE)
    assert (changed.points, changed.waits) == (given, False)


@pytest.mark.parametrize("points", ["-1", "5.5", "nan", "inf", "many", ""])
def test_what_are_no_points_is_refused(points: str) -> None:
    with pytest.raises(ValueError, match="points"):
        mark_from_form(MARK, points, "well done", GUIDE)


def test_a_refused_mark_says_why_and_changes_nothing(with_answers: Served) -> None:
    prof = with_answers.browser("prof")
    prof.send("/class/tiny/written", "/class/tiny/written")
    code = code_of("tiny", "ada")
    refused = prof.send(WHY, WHY, code=code, points="9", comment="")
    assert refused.status_code == 400
    assert "points are from 0 to 5" in refused.text
    unknown = prof.send(WHY, WHY, code=code_of("tiny", "eve"), points="1", comment="")
    assert unknown.status_code == 404


def test_students_do_not_mark(with_answers: Served) -> None:
    ada = with_answers.browser("ada")
    assert ada.get("/class/tiny/written").status_code == 404
    assert (
        ada.send("/", WHY, code=code_of("tiny", "ada"), points="5").status_code == 404
    )
