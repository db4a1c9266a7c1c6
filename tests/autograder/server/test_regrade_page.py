"""A regrade on the instructor's page: nothing counts until it was seen and accepted."""

from __future__ import annotations

import itertools

import pytest
from served_course import MACHINE, NOTEBOOK, Browser, Served

from autograder.grading.graded_bytes import pack_graded
from autograder.records.model import Graded
from autograder.records.results import read_result
from autograder.server.filing import file_attempts

REGRADE = "/class/tiny/regrade"
_SPACES = itertools.count()


@pytest.fixture
def graded(served: Served) -> Served:
    """Ada's attempts have 2 and 1.5 of 2.5 points, bob's has 1."""
    for student, score in (("ada", 2.0), ("ada", 1.5), ("bob", 1.0)):
        hand_in_another(served.browser(student))
        served.grade(score)
    assert file_attempts(served.office.course, served.office.attempts).problems == ()
    return served


def hand_in_another(browser: Browser) -> None:
    """Hand in a notebook that nobody handed in before."""
    browser.hand_in(NOTEBOOK + b" " * next(_SPACES))


def filed_score(served: Served, student: str) -> float:
    course = served.office.course
    assert file_attempts(course, served.office.attempts).problems == ()
    result = read_result(course.results, "tiny", student)
    assert result is not None
    return result.score


def begin(served: Served, *scores: float) -> Browser:
    """Begin a regrade, in which attempts get these scores in the order in which they came."""
    prof = served.browser("prof")
    assert "begin" not in prof.get("/people").text
    prof.send(REGRADE, REGRADE)
    for score in scores:
        served.grade(score)
    return prof


def test_nothing_counts_until_it_is_accepted(graded: Served) -> None:
    """Ada's second attempt would be her best, with 2.5 in place of her first one's 2."""
    prof = begin(graded, 2.0, 2.5)
    page = prof.get(REGRADE).text
    assert "2 of 3 attempts are graded" in page
    assert "Accept" not in page
    graded.grade(1.0)
    page = prof.get(REGRADE).text
    assert "Marks that move: 1, that stay: 1." in page
    assert "<td>2 → 2.5 of 2.5 (+0.5)</td>" in page
    assert "double: test_doubles failed → passed (+0.5)" in page
    assert filed_score(graded, "ada") == 2.0
    assert (
        "<td>2 of 2.5 points</td>"
        in graded.browser("ada").get("/assignments/tiny").text
    )
    assert "2 <small>of 2.5" in graded.browser("ada").get("/attempts/1").text

    prof.send(REGRADE, f"{REGRADE}/accept")
    assert filed_score(graded, "ada") == 2.5
    assert filed_score(graded, "bob") == 1.0
    assert "2.5 <small>of 2.5" in graded.browser("ada").get("/attempts/2").text
    assert "Grade again, and show what would move" in prof.get(REGRADE).text
    log = prof.get("/people").text
    assert "tiny: 3 attempts" in log
    assert "tiny: 1 marks move: ada 2 → 2.5 of 2.5 (+0.5)" in log


def test_a_dropped_regrade_leaves_everything_as_it_was(graded: Served) -> None:
    prof = begin(graded, 0.0, 0.0)
    late = graded.office.attempts.claim(MACHINE)
    assert late is not None
    prof.send(REGRADE, f"{REGRADE}/drop")
    answer = pack_graded(Graded("bob", problem="came after the drop"))
    assert not graded.office.attempts.finish(late, answer)
    assert [filed_score(graded, student) for student in ("ada", "bob")] == [2.0, 1.0]
    assert graded.office.attempts.queue_state().waiting == 0
    assert "regrade dropped" in prof.get("/people").text


def test_whom_the_machine_could_not_grade_is_named_and_nothing_is_accepted(
    graded: Served,
) -> None:
    prof = begin(graded, 0.0, 0.0)
    store = graded.office.attempts
    claim = store.claim(MACHINE)
    assert claim is not None
    assert store.fail(claim, "no host can be had", is_final=True)
    page = prof.get(REGRADE).text
    assert "This server could not grade <bdi>bob</bdi> again" in page
    assert "Accept" not in page
    refused = prof.send(REGRADE, f"{REGRADE}/accept")
    assert refused.status_code == 400
    assert "not everybody was graded again" in refused.text
    assert [filed_score(graded, student) for student in ("ada", "bob")] == [2.0, 1.0]


def test_what_is_handed_in_meanwhile_is_graded_first_and_counts(graded: Served) -> None:
    prof = begin(graded)
    hand_in_another(graded.browser("bob"))
    graded.grade(2.25)  # bob's new attempt
    assert filed_score(graded, "bob") == 2.25
    for score in (2.0, 1.5, 1.0):
        graded.grade(score)
    assert "Marks that move: 0, that stay: 2." in prof.get(REGRADE).text


def test_a_notebook_that_cannot_be_graded_any_more_is_a_move(graded: Served) -> None:
    prof = begin(graded, 2.0, 1.5)
    graded.grade(0.0, problem="has no cell of this assignment")
    assert (
        "can no longer be graded: has no cell of this assignment"
        in prof.get(REGRADE).text
    )
    prof.send(REGRADE, f"{REGRADE}/accept")
    course = graded.office.course
    file_attempts(course, graded.office.attempts)
    assert read_result(course.results, "tiny", "bob") is None
