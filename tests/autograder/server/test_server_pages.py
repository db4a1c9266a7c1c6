"""What students and instructors see and do, and what nobody may."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from served_course import NOTEBOOK, Served

from autograder.records.results import read_result
from autograder.server.filing import file_attempts
from autograder.server.instructor_pages import view_class

ServeWith = Callable[[str], Served]


def test_a_visitor_without_a_session_is_asked_to_sign_in(served: Served) -> None:
    for path in ("/", "/assignments/tiny", "/attempts/1", "/class/tiny", "/people"):
        answer = served.browser().get(path)
        assert answer.url.path == "/sign-in", path


def test_a_link_signs_in_once(served: Served) -> None:
    key = served.office.people.make_link("ada", "student")
    first, second = served.browser(), served.browser()
    assert "Assignments" in first.send(f"/sign-in?key={key}", "/sign-in", key=key).text
    refused = second.send(f"/sign-in?key={key}", "/sign-in", key=key)
    assert refused.status_code == 403
    assert "used before, or is too old" in refused.text


def test_looking_at_a_link_does_not_use_it_up(served: Served) -> None:
    key = served.office.people.make_link("ada", "student")
    for _ in range(3):  # mail programs look at links
        served.browser().get(f"/sign-in?key={key}")
    assert served.office.people.use_link(key) is not None


def test_a_person_who_is_not_in_the_class_list_does_not_enter(served: Served) -> None:
    key = served.office.people.make_link("eve", "student")
    refused = served.browser().send(f"/sign-in?key={key}", "/sign-in", key=key)
    assert refused.status_code == 403
    assert "not in the class list" in refused.text


def test_a_student_hands_in_watches_and_reads_the_page(served: Served) -> None:
    ada = served.browser("ada")
    waiting = ada.hand_in()
    assert waiting.url.path == "/attempts/1"
    assert "Your notebook is stored, and is next." in waiting.text
    assert '<meta http-equiv="refresh"' in waiting.text
    served.grade(1.5)
    attempt = ada.get("/attempts/1")
    assert "1.5 <small>of 2.5 points" in attempt.text
    assert '<meta http-equiv="refresh"' not in attempt.text
    page = ada.get("/attempts/1/page").text
    assert "<code>double(7)</code> is 13, not 14." in page
    assert 'href="/attempts/1"' in page, "the way back"
    assert ada.get("/attempts/1/notebook").content == NOTEBOOK


def test_attempts_before_mine_are_told(served: Served) -> None:
    for student in ("bob", "ada"):
        answer = served.browser(student).hand_in()
    assert "1 attempt is before yours" in answer.text


def test_a_page_that_waits_long_loads_itself_seldom(served: Served) -> None:
    """An attempt takes a second as long as none was measured: 8 of 32, and no more than 15."""
    for number in range(100):
        served.office.attempts.add(f"student-{number}", "tiny", NOTEBOOK)
        if number in (30, 99):
            waiting = served.browser("ada").hand_in(NOTEBOOK + b" " * number)
            seconds = 8 if number == 30 else 15
            assert f'<meta http-equiv="refresh" content="{seconds}">' in waiting.text


def test_a_notebook_that_cannot_be_graded_has_its_reason(served: Served) -> None:
    ada = served.browser("ada")
    ada.hand_in()
    served.grade(0.0, problem="tiny.ipynb: has no cell of this assignment")
    assert "tiny.ipynb: has no cell of this assignment" in ada.get("/attempts/1").text


@pytest.mark.parametrize("data", [b"", b"hello", b'{"cells": 3}'])
def test_what_is_no_notebook_is_refused_at_once(served: Served, data: bytes) -> None:
    answer = served.browser("ada").hand_in(data)
    assert answer.status_code == 400
    assert "It was not handed in." in answer.text
    assert served.office.attempts.of_student("ada", "tiny") == []


def test_another_students_attempt_is_no_page(served: Served) -> None:
    served.browser("ada").hand_in()
    served.grade(2.5)
    bob = served.browser("bob")
    for path in (
        "/attempts/1",
        "/attempts/1/page",
        "/attempts/1/notebook",
        "/attempts/99",
    ):
        assert bob.get(path).status_code == 404, path
    assert served.browser("prof").get("/attempts/1/page").status_code == 200


def test_pages_of_instructors_are_no_pages_for_students(served: Served) -> None:
    ada = served.browser("ada")
    paths = ("/class/tiny", "/class/tiny/report", "/class/tiny/students/bob", "/people")
    assert [ada.get(path).status_code for path in paths] == [404] * 4
    posts = (
        "/class/tiny/extensions",
        "/class/tiny/grade-again",
        "/requests/1",
        "/people",
    )
    assert [ada.send("/", path).status_code for path in posts] == [404] * 4


def test_a_form_of_another_site_changes_nothing(served: Served) -> None:
    ada = served.browser("ada")
    for token in ("", "guess", served.browser("bob").token("/")):
        answer = ada.client.post(
            "/assignments/tiny/hand-in",
            data={"token": token},
            files={"notebook": NOTEBOOK},
        )
        assert answer.status_code == 403
    assert served.office.attempts.of_student("ada", "tiny") == []


def test_every_answer_forbids_scripts_and_frames(served: Served) -> None:
    browser = served.browser("ada")
    for path in ("/", "/nothing", "/style.css", "/sign-in"):
        policy = browser.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "script-src" not in policy
        assert "unsafe" not in policy


def test_an_upload_that_is_too_large_ends_while_it_streams(
    serve_with: ServeWith,
) -> None:
    served = serve_with("[limits]\nnotebook_mb = 1\n")
    answer = served.browser("ada").hand_in(b" " * (3 << 20))
    assert answer.status_code == 413
    assert "larger than a notebook may be" in answer.text


def test_tries_are_counted(serve_with: ServeWith) -> None:
    served = serve_with("[submit]\ntries = 2\n")
    ada = served.browser("ada")
    ada.hand_in()
    assert "1 of 2 attempts left" in ada.get("/assignments/tiny").text
    ada.hand_in()
    page = ada.get("/assignments/tiny").text
    assert "You cannot hand in now: all 2 attempts are used." in page
    assert "Hand in</button>" not in page
    assert ada.hand_in().status_code == 400, "the form of an old tab"


def test_a_pause_between_attempts_is_told_with_its_end(serve_with: ServeWith) -> None:
    served = serve_with("[submit]\npause_minutes = 10\n")
    ada = served.browser("ada")
    ada.hand_in()
    assert "the next attempt is possible from" in ada.hand_in().text


@pytest.mark.parametrize(
    ("counts", "scores", "counting"),
    [("best", (2.0, 2.5, 1.0), 2), ("last", (2.0, 2.5, 1.0), 3)],
)
def test_the_best_or_the_last_attempt_counts(
    serve_with: ServeWith, counts: str, scores: tuple[float, ...], counting: int
) -> None:
    served = serve_with(f'[submit]\ncounts = "{counts}"\n')
    ada = served.browser("ada")
    for number, score in enumerate(scores):
        ada.hand_in(NOTEBOOK + b" " * number)
        served.grade(score)
    view = served.office.assignment_view("ada", "tiny")
    assert view.counting is not None
    assert view.counting.number == counting
    assert file_attempts(served.office.course, served.office.attempts).problems == ()
    course = served.office.course
    result = read_result(course.results, "tiny", "ada")
    assert result is not None
    assert result.score == scores[counting - 1]
    handed_in = course.submitted / "ada" / "tiny" / "tiny.ipynb"
    assert handed_in.read_bytes() == NOTEBOOK + b" " * (counting - 1)


def test_a_late_best_attempt_counts_only_after_its_penalty(
    serve_with: ServeWith,
) -> None:
    """1.5 in time against 2 a day late, at 0.4 of 2.5 points a day: 1.5 against 1."""
    settings = '[late]\npolicy = "per_day"\npenalty_per_day = 0.4\n[due]\ntiny = "{}"\n'
    due = datetime.now(UTC) + timedelta(hours=1)
    served = serve_with(settings.format(due.strftime("%Y-%m-%d %H:%M UTC")))
    ada = served.browser("ada")
    ada.hand_in()
    first = served.grade(1.5)
    ada.hand_in()
    second = served.grade(2.0)
    late = served.office.attempts.get(second.id)
    assert late is not None
    after_due = dataclasses.replace(second, received=due.timestamp() + 3600)
    counting = served.office.rules().counting([after_due, first])
    assert counting == first


@pytest.mark.parametrize(
    ("show", "sees_points", "sees_questions", "sees_page"),
    [
        ("all", True, True, True),
        ("failed questions", True, True, False),
        ("score", True, False, False),
    ],
)
def test_before_the_due_time_students_see_what_the_course_shows(
    serve_with: ServeWith,
    show: str,
    sees_points: bool,
    sees_questions: bool,
    sees_page: bool,
) -> None:
    served = serve_with(
        f'[submit]\nshow = "{show}"\n[due]\ntiny = "2099-01-01 12:00 UTC"\n'
    )
    ada = served.browser("ada")
    ada.hand_in()
    served.grade(1.0)
    text = ada.get("/attempts/1").text
    assert ("of 2.5 points of the tests" in text) is sees_points
    assert ("<code>double</code>" in text) is sees_questions
    assert (ada.get("/attempts/1/page").status_code == 200) is sees_page
    assert served.browser("prof").get("/attempts/1/page").status_code == 200


def test_after_the_due_time_the_page_opens(serve_with: ServeWith) -> None:
    settings = '[submit]\nshow = "score"\n[due]\ntiny = "2020-01-01 12:00 UTC"\n'
    served = serve_with(settings)
    ada = served.browser("ada")
    ada.hand_in()
    served.grade(1.0)
    assert ada.get("/attempts/1/page").status_code == 200


def test_what_a_student_writes_is_never_markup(served: Served) -> None:
    ada = served.browser("ada")
    ada.hand_in()
    served.grade(0.0, problem="<script>alert(1)</script>")
    ada.send(
        "/attempts/1",
        "/attempts/1/ask",
        text="<img src=x onerror=alert(2)>",
        question="<b>",
    )
    for browser, path in (
        (ada, "/attempts/1"),
        (served.browser("prof"), "/class/tiny"),
    ):
        text = browser.get(path).text
        assert "<script>" not in text
        assert "<img" not in text
        assert "<b>" not in text
        assert "&lt;img src=x" in text


def test_a_request_is_answered(served: Served) -> None:
    ada = served.browser("ada")
    ada.hand_in()
    served.grade(1.0)
    ada.send(
        "/attempts/1", "/attempts/1/ask", text="double(7) is 14 here", question="double"
    )
    prof = served.browser("prof")
    assert "double(7) is 14 here" in prof.get("/class/tiny").text
    prof.send("/class/tiny", "/requests/1", reply="You are right.", assignment="tiny")
    assert "You are right." in ada.get("/attempts/1").text
    assert "to request 1: You are right." in prof.get("/people").text, "the log"


def test_an_extension_is_written_into_course_toml(served: Served) -> None:
    path = served.root / "course.toml"
    path.write_text(
        path.read_text(encoding="utf-8")
        + '# why\n[due]\ntiny = "2026-10-02 12:00 UTC"\n',
        encoding="utf-8",
    )
    prof = served.browser("prof")
    sent = prof.send(
        "/class/tiny/students/ada", "/class/tiny/extensions", student="ada", days="2"
    )
    assert sent.status_code == 200
    assert "2026-10-04 12:00 UTC" in sent.text
    text = path.read_text(encoding="utf-8")
    assert "# why" in text, "comments stay"
    refused = prof.send(
        "/class/tiny", "/class/tiny/extensions", student="ada", days="soon"
    )
    assert refused.status_code == 400
    assert path.read_text(encoding="utf-8") == text


def test_the_class_page_says_who_is_stuck_and_who_is_missing(served: Served) -> None:
    served.browser("ada").hand_in()
    served.grade(0.0)
    text = served.browser("prof").get("/class/tiny").text
    assert re.search(r"<code>double</code>: <a[^>]*><bdi>ada</bdi>", text)
    assert "1 without an attempt" in text  # bob: the instructor need not


def test_a_key_hands_in_without_a_session(served: Served) -> None:
    ada = served.browser("ada")
    page = ada.send("/", "/key").text
    key = re.search(r"<p><code>([\w-]+)</code></p>", page)
    assert key is not None
    client = served.browser().client
    headers = {"authorization": f"Bearer {key[1]}"}
    sent = client.post(
        "/api/assignments/tiny/attempts", content=NOTEBOOK, headers=headers
    )
    assert sent.status_code == 201
    assert sent.json()["state"] == "waiting"
    served.grade(2.0)
    told = client.get("/api/attempts/1", headers=headers).json()
    assert (told["state"], told["score"], told["max_score"]) == ("graded", 2.0, 2.5)
    wrong = client.get("/api/attempts/1", headers={"authorization": "Bearer guess"})
    assert wrong.status_code == 401


def test_figures_are_for_this_machine_and_instructors(served: Served) -> None:
    served.browser("ada").hand_in()
    assert served.browser("ada").get("/metrics").status_code == 404
    text = served.browser("prof").get("/metrics").text
    assert "attention_kit_queue_length 1\n" in text
    assert 'attention_kit_attempts{state="waiting"} 1\n' in text


def test_a_mistake_in_course_toml_changes_nothing_until_it_is_mended(
    served: Served,
) -> None:
    path = served.root / "course.toml"
    good = path.read_text(encoding="utf-8")
    path.write_text(good + "\n[nonsense]\n", encoding="utf-8")
    assert served.browser("ada").get("/").status_code == 200
    path.write_text(good.replace("Small Course", "Renamed"), encoding="utf-8")
    assert "Renamed" in served.browser("ada").get("/").text


def test_the_classes_page_lists_the_last_twenty_attempts(served: Served) -> None:
    store = served.office.attempts
    for _ in range(21):
        store.add("ada", "tiny", NOTEBOOK)
    view = view_class(served.office, "tiny")
    assert [attempt.number for attempt in view.recent] == list(range(21, 1, -1))


def test_what_instructors_do_stands_in_the_log(served: Served) -> None:
    office = served.office
    first = office.attempts.add("ada", "tiny", NOTEBOOK)
    served.grade(1.5)
    office.requests.ask(first, "ada", "double", "Why?")
    prof = served.browser("prof")
    prof.send("/people", "/people", students="ada bob")
    prof.send("/people", "/people")
    prof.send("/people", "/requests/1", reply="Since 13 is odd.", assignment="tiny")
    prof.send("/people", "/class/tiny/extensions", student="ada", days="2")
    prof.send("/people", "/class/tiny/grade-again")
    prof.send("/people", "/class/tiny/regrade")
    prof.send("/people", "/class/tiny/regrade/drop")
    prof.send("/people", "/class/tiny/regrade")
    served.grade(2.5)
    prof.send("/people", "/class/tiny/regrade/accept")
    lines = office.people.log_lines()
    assert {line.person for line in lines} == {"prof"}
    assert [(line.action, line.detail) for line in reversed(lines)] == [
        ("links", "for 2: ada, bob"),
        ("links", "for 3: ada, bob, prof"),
        ("reply", "to request 1: Since 13 is odd."),
        ("extension", "tiny: 2 days for ada"),
        ("grade again", "0 attempts at tiny"),
        ("regrade begun", "tiny: 1 attempts"),
        ("regrade dropped", "tiny"),
        ("regrade begun", "tiny: 1 attempts"),
        ("regrade accepted", "tiny: 1 marks move: ada 1.5 → 2.5 of 2.5 (+1)"),
    ]
