"""What instructors see of a class and change in it; the course at work is played."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest
from stored_results import outcome, question

from autograder.grading.regrade import Comparison, Move
from autograder.records.model import Diagnosis, QuestionResult, Result
from autograder.server import instructor_pages, metrics, regrade_pages
from autograder.server.attempts import Attempt, QueueState
from autograder.server.instructor_pages import ClassView, class_address, view_class
from autograder.server.pages_base import SentForm
from autograder.server.people import Visitor
from autograder.server.regrades import Regrade

PROF = Visitor("prof", "instructor")
QUEUE = QueueState(waiting=3, started=1, oldest_seconds=12.5, seconds_each=1.25)


def attempt(number: int, student: str, score: float | None = 1.0) -> Attempt:
    return Attempt(
        id=number,
        student=student,
        assignment="m 1",
        number=1,
        received=0.0,
        sha256="",
        state="failed" if score is None else "graded",
        runs=1,
        machine="",
        started=None,
        finished=None,
        suite_sha256="",
        score=score,
        max_score=2.0,
        problem="",
        filed=False,
        aside=False,
        handed_in_by="",
    )


class Desk:
    """An office with these attempts, all of which count; `calls` has what was asked of it."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.attempts: list[Attempt] = []
        self.results: dict[int, Result] = {}
        self.listed = dict.fromkeys(("ada", "ben", "cyd", "dan", "prof"), "a person")
        self.comparison = Comparison((), 0, (), {})
        self.regrade: Regrade | None = None
        rules = SimpleNamespace(
            counting_by_student=lambda attempts: {
                each.student: each for each in attempts if each.state == "graded"
            },
            members=lambda owner, name: ("ben", "cyd") if owner == "red" else (owner,),
        )
        self.office: Any = SimpleNamespace(
            course=SimpleNamespace(lti={"lms": "registration"}),
            attempts=SimpleNamespace(
                of_assignment=lambda name: self.attempts,
                results=lambda ids: {n: self.results[n] for n in ids},
                queue_state=lambda: QUEUE,
                count_by_state=lambda: {"waiting": 3, "graded": 40},
                grade_again=self.note("grade again"),
            ),
            people=SimpleNamespace(
                log=self.note("log"),
                log_lines=lambda: ["a line"],
                make_link=lambda student, role: f"key-of-{student}",
            ),
            requests=SimpleNamespace(
                of_assignment=lambda name: ["a request"], reply=self.note("reply")
            ),
            regrades=SimpleNamespace(
                look=lambda name, rules: self.regrade,
                accept=lambda name, rules: self.comparison,
                drop=self.note("drop"),
            ),
            rules=lambda: rules,
            ledger=lambda: SimpleNamespace(listed=self.listed),
            role_of=lambda name: "instructor" if name == "prof" else "student",
            assignment_view=lambda student, name: f"{student} in {name}",
            begin_regrade=lambda name: 40,
        )

    def note(self, name: str) -> Any:
        return lambda *given: self.calls.append((name, *given))


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk()
    instead: dict[str, Any] = {
        "office_of": lambda request: desk.office,
        "assignment_of": lambda request: SimpleNamespace(name="m 1"),
        "instructor_of": lambda request: PROF,
        "page": lambda request, template, **values: (template, values),
        "go_to": lambda request, path: path,
    }
    for module in (instructor_pages, regrade_pages):
        for name, function in instead.items():
            monkeypatch.setattr(module, name, function)
    monkeypatch.setattr(
        instructor_pages, "own_address", lambda request: "https://x.edu"
    )
    return desk


def request(**path: Any) -> Any:
    return SimpleNamespace(path_params=path)


def send(page: Any, asked: Any = None, **fields: str) -> Any:
    """Send a form to a page, past the check of its token."""
    return page.__wrapped__(asked or request(), PROF, SentForm(fields, b"", None))


def result(number: int, student: str, *questions: QuestionResult) -> Result:
    return Result("m 1", student, "", "", "strict", 1.0, 2.0, questions, ())


# the class


def test_a_class_is_seen_by_attempts_mistakes_and_who_is_stuck(desk: Desk) -> None:
    """Ada's and the red team's attempts count, of which ben and cyd are members; dan's could not
    be graded, and prof is no student.
    """
    half = Diagnosis("half", "You halve.")
    wrong = question("double", outcome("test_doubles", 0.0, 2.0))
    worthless = question("triple", outcome("test_triples", 0.0, 0.0))
    right = question("half", outcome("test_halves", 2.0, 2.0))
    slip = dataclasses.replace(wrong, diagnosis=half)
    desk.attempts = [attempt(1, "ada", 0.5), attempt(2, "red", 2.0)]
    desk.attempts += [attempt(3, "dan", None)]
    desk.results = {
        1: result(1, "ada", slip, right, worthless),
        2: result(2, "red", slip, dataclasses.replace(right, score=0.0)),
    }
    assert view_class(desk.office, "m 1") == ClassView(
        counting=desk.attempts[:2],
        missing=[],
        recent=desk.attempts,
        failed=1,
        mean=1.25,
        mistakes=[(("double", "You halve."), 2)],
        stuck=[("double", ["ada", "red"]), ("half", ["red"])],
    )


def test_a_class_lists_twenty_attempts_ten_mistakes_and_who_is_missing(
    desk: Desk,
) -> None:
    def slip(number: int) -> QuestionResult:
        answer = question(f"q{number:02}", outcome("test_it", 1.0, 2.0))
        return dataclasses.replace(answer, diagnosis=Diagnosis("m", f"hint {number}"))

    desk.attempts = [attempt(number, "ada") for number in range(21)]
    desk.results = {20: result(20, "ada", *[slip(number) for number in range(11)])}
    view = view_class(desk.office, "m 1")
    assert view.recent == desk.attempts[:20]
    assert [name for (name, _), _ in view.mistakes] == [f"q{n:02}" for n in range(10)]
    assert (view.missing, view.stuck) == (["ben", "cyd", "dan"], [])
    desk.attempts = []
    assert view_class(desk.office, "m 1").mean is None


def test_pages_of_a_class_show_what_the_office_says(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instructor_pages, "view_class", lambda office, name: name)
    assert instructor_pages.class_page(request()) == (  # type: ignore[comparison-overlap]
        "class.html",
        {
            "refresh": 15,
            "assignment": "m 1",
            "view": "m 1",
            "queue": QUEUE,
            "requests": ["a request"],
        },
    )
    assert instructor_pages.student_page(request(student="ada")) == (  # type: ignore[comparison-overlap]
        "student.html",
        {"student": "ada", "view": "ada in m 1"},
    )
    people: Any = instructor_pages.people_page(request())
    template, values = people
    assert (template, list(values.pop("listed"))) == ("people.html", ["a person"] * 5)
    assert values == {"made": (), "log": ["a line"], "has_lti": True}


def test_a_report_is_shown_with_no_scripts(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = SimpleNamespace(marks=lambda: ["a mark"], timing=["a time"])
    desk.office.stored_marks = lambda assignment: stored
    monkeypatch.setattr(
        instructor_pages, "render_report", lambda *given: [str(given), "<end>"]
    )
    answer = instructor_pages.report_page(request())
    assert answer.body == b"('m 1', ['a mark'], ['a time'])<end>"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; ")


# what instructors change


def test_what_instructors_change_is_in_the_log(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    grants: list[Any] = []

    def grant(*given: Any) -> str:
        grants.append(given[1:])
        return "m 1: 2 days for a/b"

    monkeypatch.setattr(instructor_pages, "grant_extension", grant)
    assert class_address("m 1") == "/class/m%201"
    place = send(instructor_pages.extend, student="a/b", days="2")
    assert place == "/class/m%201/students/a/b"
    assert grants == [("m 1", "a/b", "2")]
    asked = request(request=9)
    place = send(instructor_pages.reply, asked, reply=" So. ", assignment="m 1")
    assert place == "/class/m%201#requests"
    desk.attempts = [attempt(1, "ada"), attempt(2, "ben", None), attempt(3, "c", None)]
    assert send(instructor_pages.grade_again) == "/class/m%201"
    assert desk.calls == [
        ("log", "prof", "extension", "m 1: 2 days for a/b"),
        ("reply", 9, "So.", "prof"),
        ("log", "prof", "reply", "to request 9: So."),
        ("grade again", [2, 3]),
        ("log", "prof", "grade again", "2 attempts at m 1"),
    ]


@pytest.mark.parametrize(
    ("named", "students"), [("ben prof", ["ben", "prof"]), (" ", ["ada", "ben"])]
)
def test_links_are_made_for_those_who_are_named_or_for_all(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, named: str, students: list[str]
) -> None:
    desk.listed = dict.fromkeys(("ada", "ben"), "a person")
    monkeypatch.setattr(instructor_pages, "people_page", lambda request, made: made)
    made = send(instructor_pages.make_links, students=named)
    assert made == [
        (
            student,
            "instructor" if student == "prof" else "student",
            f"https://x.edu/sign-in?key=key-of-{student}",
        )
        for student in students
    ]
    assert desk.calls == [("log", "prof", "links", f"for 2: {', '.join(students)}")]


def test_a_line_of_the_log_names_twenty_people(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"s{number}" for number in range(21)]
    monkeypatch.setattr(instructor_pages, "people_page", lambda request, made: made)
    send(instructor_pages.make_links, students=" ".join(names))
    roster = SimpleNamespace(fetch_roster=lambda: names)
    monkeypatch.setattr(instructor_pages, "LtiDesk", lambda office: roster)
    assert send(instructor_pages.fetch_roster) == "/people"
    first = ", ".join(names[:20])
    assert desk.calls == [
        ("log", "prof", "links", f"for 21: {first}"),
        ("log", "prof", "roster", f"21 people: {first}"),
    ]


# regrades


@pytest.mark.parametrize(
    ("regrade", "refresh"),
    [(None, 0), (Regrade(3, 1, None), 5), (Regrade(3, 0, None), 0)],
)
def test_a_regrades_page_loads_itself_again_while_something_waits(
    desk: Desk, regrade: Regrade | None, refresh: int
) -> None:
    desk.regrade = regrade
    values = {"refresh": refresh, "assignment": "m 1", "regrade": regrade}
    page: Any = regrade_pages.regrade_page(request())
    assert page == ("regrade.html", {**values, "queue": QUEUE})


def test_a_regrade_is_begun_dropped_or_accepted_with_a_line_in_the_log(
    desk: Desk,
) -> None:
    desk.comparison = Comparison((Move("ada", "1 → 2", ()),), 0, (), {})
    assert send(regrade_pages.begin) == "/class/m%201/regrade"
    assert send(regrade_pages.drop) == "/class/m%201/regrade"
    assert send(regrade_pages.accept) == "/class/m%201"
    assert desk.calls == [
        ("log", "prof", "regrade begun", "m 1: 40 attempts"),
        ("drop", "m 1"),
        ("log", "prof", "regrade dropped", "m 1"),
        ("log", "prof", "regrade accepted", "m 1: 1 marks move: ada 1 → 2"),
    ]


# figures


def test_figures_are_those_of_the_queue(desk: Desk) -> None:
    lines = metrics.render_metrics(desk.office).splitlines()
    figures = [line for line in lines if not line.startswith("#")]
    assert figures == [
        "attention_kit_queue_length 3",
        "attention_kit_queue_oldest_seconds 12.500",
        "attention_kit_attempt_seconds 1.250",
        'attention_kit_attempts{state="waiting"} 3',
        'attention_kit_attempts{state="started"} 0',
        'attention_kit_attempts{state="graded"} 40',
        'attention_kit_attempts{state="failed"} 0',
    ]
    kinds = [line.split()[1:3] for line in lines if line.startswith("# TYPE")]
    assert [name for _, name in kinds] == [
        "attention_kit_queue_length",
        "attention_kit_queue_oldest_seconds",
        "attention_kit_attempt_seconds",
        "attention_kit_attempts",
    ]
