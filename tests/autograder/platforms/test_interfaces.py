"""What Canvas, Classroom and Moodle are asked and may answer, one call at a time; no server runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
import requests
from canvasapi.exceptions import CanvasException
from requests.adapters import HTTPAdapter

from autograder.basics.errors import PlatformUnavailable
from autograder.course import Course
from autograder.ledger import Identity
from autograder.platforms import push
from autograder.platforms.api_client import find_titled
from autograder.platforms.canvas_api import CanvasInterface, _Bounded, _standing
from autograder.platforms.classroom import ClassroomInterface
from autograder.platforms.moodle_api import (
    MoodleInterface,
    _has_comments,
    _list,
)

# Canvas


@pytest.mark.parametrize(("given", "used"), [(None, 30), (5, 5)])
def test_canvas_has_half_a_minute_for_a_request(
    monkeypatch: pytest.MonkeyPatch, given: int | None, used: int
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(
        HTTPAdapter, "send", lambda _, request, **options: sent.append(options)
    )
    _Bounded().send("request", timeout=given)
    assert sent == [{"timeout": used}]


class PlayedJob:
    """A job of Canvas that has the state `states` one after the other."""

    def __init__(self, *states: str, message: str = "") -> None:
        self.states = list(states)
        self.message = message

    @property
    def workflow_state(self) -> str:
        return self.states[0]

    def query(self) -> PlayedJob:
        del self.states[0]
        return self


def canvas(job: PlayedJob | Exception, naps: list[float]) -> Any:
    """A Canvas whose one assignment writes marks in this job."""
    interface: Any = object.__new__(CanvasInterface)
    interface._title, interface._course_id = "m1", "7"
    interface._sleep = naps.append
    interface.sent = []

    def update(grade_data: Any) -> PlayedJob:
        interface.sent.append(grade_data)
        if isinstance(job, Exception):
            raise job
        return job

    assignment = SimpleNamespace(
        name="m1",
        id=4711,
        published=True,
        grading_type="points",
        submissions_bulk_update=update,
    )
    interface.assignment = assignment

    def pages_of(entries: list[Any]) -> Any:
        def get(**query: Any) -> list[Any]:
            interface.queries.append(query)
            return entries

        return get

    interface.queries = []
    interface.users, interface.rows = [], []
    assignment.get_submissions = pages_of(interface.rows)
    course = SimpleNamespace(
        get_assignments=pages_of([assignment]), get_users=pages_of(interface.users)
    )
    interface._canvas = SimpleNamespace(get_course=lambda number: course)
    return interface


def test_canvas_is_asked_once_a_second_until_its_job_is_done() -> None:
    naps: list[float] = []
    interface = canvas(PlayedJob("queued", "running", "completed", "failed"), naps)
    interface.send({"101": 7.5, "102": 8.0})
    assert naps == [1.0, 1.0]
    assert interface.sent == [
        {"101": {"posted_grade": "7.5"}, "102": {"posted_grade": "8"}}
    ]


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (
            PlayedJob("failed", message="no\nroom"),
            "write the marks: no room; see what it",
        ),
        (
            PlayedJob("failed"),
            "write the marks: failed; see what it has with --dry-run$",
        ),
        (PlayedJob(*["queued"] * 200), "write the marks: queued; see"),
        (CanvasException("a wrong mark"), "^Canvas says: a wrong mark$"),
        (
            requests.ConnectionError("gone"),
            r"^Canvas does not answer \(ConnectionError\)$",
        ),
        (ValueError("no JSON"), r"^Canvas does not answer \(ValueError\)$"),
    ],
)
def test_canvas_did_not_write(job: Any, words: str) -> None:
    naps: list[float] = []
    with pytest.raises(PlatformUnavailable, match=words):
        canvas(job, naps).send({"101": 7.5})
    assert len(naps) in (0, 120)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"published": False}, "'m1' is not published in Canvas, so it takes no marks"),
        (
            {"grading_type": "pass_fail"},
            "'m1' takes no points: it is pass_fail in Canvas",
        ),
        ({"grading_type": "not_graded"}, "'m1' takes no points: it is not_graded"),
        ({"anonymize_students": True}, "Canvas hides who is who in 'm1'"),
    ],
)
def test_canvas_may_take_no_marks_for_an_assignment(
    changed: dict[str, Any], words: str
) -> None:
    interface = canvas(PlayedJob("completed"), [])
    vars(interface.assignment).update(changed)
    with pytest.raises(PlatformUnavailable, match=words):
        interface.send({"101": 7.5})
    assert interface.sent == []


def test_canvas_is_read_by_pages_of_a_hundred() -> None:
    """Who has a row and is no student, such as the test student, has no standing."""
    interface = canvas(PlayedJob("completed"), [])
    interface.users += [SimpleNamespace(id=n, name=f"Student {n}") for n in (101, 102)]
    interface.rows += [
        SimpleNamespace(user_id=101, score=7.5, submitted_at="2026-10-01T12:00:00Z"),
        SimpleNamespace(user_id=999, score=1.0),
    ]
    standings = interface.read()
    assert interface.queries == [
        {"per_page": 100},
        {"enrollment_type": ["student"], "include": ["email"], "per_page": 100},
        {"include": ["visibility"], "per_page": 100},
    ]
    assert (standings.title, standings.maximum, standings.notes) == ("m1", None, ())
    (ada,) = standings.people
    assert (ada.id, ada.mark, str(ada.handed_in)) == (
        "101",
        7.5,
        "2026-10-01 12:00:00+00:00",
    )
    interface.assignment.points_possible = 10.0
    interface.assignment.post_manually = True
    standings = interface.read()
    assert (standings.maximum, standings.extra) == (10.0, True)
    (note,) = standings.notes
    assert note.startswith("students see the marks in 'm1' only when you post them")


@pytest.mark.parametrize(
    ("row", "refused", "points"),
    [
        ({}, "", None),
        ({"score": 0, "assignment_visible": True}, "", 0.0),
        ({"excused": True, "score": 3.0}, "they are excused in Canvas", 3.0),
        ({"assignment_visible": False}, "Canvas does not assign this assignment", None),
    ],
)
def test_a_person_of_canvas_may_not_get_a_mark(
    row: dict[str, Any], refused: str, points: float | None
) -> None:
    user = SimpleNamespace(id=101, name="Ada", login_id="al", email=None)
    standing = _standing(SimpleNamespace(**row), user)
    assert (standing.id, standing.mark) == ("101", points)
    assert standing.refused.startswith(refused)
    assert bool(standing.refused) == bool(refused)
    assert (standing.identity.ids, standing.handed_in) == ((("canvas", "101"),), None)


def test_an_assignment_is_known_by_its_title_or_its_number() -> None:
    entries = [("m1", 7, "first"), ("m2", 8, "second"), ("m2", 9, "third")]
    for title, entry in (("m1", "first"), ("8", "second"), ("m2 (9)", "third")):
        assert find_titled("Canvas", "assignment", title, entries) == entry
    for title, words in (
        (
            "m2",
            "Canvas has 2 assignments 'm2'; `--column` names one of: m1 (7), m2 (8), ",
        ),
        ("m3", "Canvas has no assignment 'm3'; `--column` names one of: m1 (7), "),
    ):
        with pytest.raises(PlatformUnavailable) as caught:
            find_titled("Canvas", "assignment", title, entries)
        assert str(caught.value).startswith(words)
    with pytest.raises(PlatformUnavailable, match=r"none that the token may see$"):
        find_titled("Canvas", "assignment", "m1", [])


# Google Classroom

Answer = Callable[[httpx.Request], httpx.Response]
ROOT = "https://classroom.example/v1/courses/7"
WORK = {
    "id": "w1",
    "title": "m1",
    "maxPoints": 20,
    "associatedWithDeveloper": True,
}


def classroom(answer: Answer) -> ClassroomInterface:
    interface = ClassroomInterface("https://classroom.example/", "7", "m1", "token")
    transport = httpx.MockTransport(answer)
    interface._http = httpx.Client(transport=transport)
    return interface


def lists(**records: list[Any]) -> Answer:
    """An answer for each list, by the end of its address."""

    def answer(request: httpx.Request) -> httpx.Response:
        name = request.url.path.rpartition("/")[2]
        return httpx.Response(200, json={name: records[name]})

    return answer


def test_a_class_of_classroom_has_marks_of_those_who_are_in_it() -> None:
    person = {"userId": "g1", "profile": {"name": {"fullName": "Ada"}}}
    rows = [{"userId": "g1", "id": "s1", "assignedGrade": 0}, {"userId": "g2"}, "odd"]
    read = classroom(
        lists(courseWork=[WORK], students=[person], studentSubmissions=rows)
    ).read()
    assert (read.title, read.maximum) == ("m1", 20.0)
    (standing,) = read.people
    assert (standing.id, standing.mark, standing.identity.name) == ("g1", 0.0, "Ada")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"associatedWithDeveloper": False}, "^Google lets only the project that made"),
        ({"maxPoints": 0}, "^'m1' is not graded in Classroom: give it points there$"),
    ],
)
def test_classroom_may_take_no_marks_for_a_course_work(
    changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(PlatformUnavailable, match=words):
        classroom(lists(courseWork=[{**WORK, **changed}])).read()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(200, text="no JSON"), r"does not answer \(JSONDecodeError\)$"),
        (httpx.Response(200, json=[1]), "does not answer as its reference says$"),
        (
            httpx.Response(403, json={"error": {"message": "no\nway" + "y" * 300}}),
            f"^Google Classroom says 403: no way{'y' * 294}$",
        ),
        (httpx.Response(403, json={"error": "no"}), "^Google Classroom says 403: $"),
        (httpx.Response(500), "^Google Classroom says 500: $"),
    ],
)
def test_classroom_does_not_answer(answer: httpx.Response, words: str) -> None:
    with pytest.raises(PlatformUnavailable, match=words):
        classroom(lambda request: answer).read()


def test_classroom_that_is_gone_is_told() -> None:
    def gone(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectTimeout("slow")

    with pytest.raises(PlatformUnavailable, match=r"\(ConnectTimeout\)$"):
        classroom(gone).read()


def test_pages_of_classroom_are_read_to_the_last() -> None:
    asked: list[dict[str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(dict(request.url.params))
        assert str(request.url).startswith(f"{ROOT}/students?")
        page = {"students": [{"n": len(asked)}]}
        following = {"nextPageToken": "p2"} if len(asked) == 1 else {}
        return httpx.Response(200, json={**page, **following})

    pages = classroom(answer)._pages("students", "students")
    assert list(pages) == [{"n": 1}, {"n": 2}]
    assert asked == [{"pageSize": "100"}, {"pageSize": "100", "pageToken": "p2"}]


def test_a_list_of_classroom_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that leads to itself is asked for a thousand times at most."""
    interface = ClassroomInterface("https://classroom.example", "7", "m1", "token")
    answer = {"students": [{"n": 1}, "odd"], "nextPageToken": "p1"}
    monkeypatch.setattr(interface, "_call", lambda *_: answer)
    assert len(list(interface._pages("students", "students"))) == 1000


# Moodle


def moodle(answer: Answer) -> MoodleInterface:
    interface = MoodleInterface("https://moodle.example", "7", "m1", "token")
    interface._http = httpx.Client(transport=httpx.MockTransport(answer))
    return interface


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(503), r"^Moodle does not answer to f \(HTTPStatusError\)$"),
        (httpx.Response(200, text="<html>"), r"to f \(JSONDecodeError\)$"),
        (
            httpx.Response(
                200, json={"exception": "e", "message": "no\nway", "errorcode": "c"}
            ),
            r"^Moodle refuses f: no way \(c\)$",
        ),
        (
            httpx.Response(200, json={"exception": "e", "message": "x" * 301}),
            r"^Moodle refuses f: x{300} \(\)$",
        ),
    ],
)
def test_moodle_does_not_answer(answer: httpx.Response, words: str) -> None:
    with pytest.raises(PlatformUnavailable, match=words):
        moodle(lambda request: answer)._call("f", {})


def test_a_grade_of_moodle_may_be_none() -> None:
    grades = [("5", "7.50000"), ("6", "0.00000"), ("7", None), ("8", ""), ("9", "-1")]
    rows = [{"userid": user, "grade": grade} for user, grade in grades]
    answer = {"assignments": [{"grades": rows}, {}]}
    interface = moodle(lambda request: httpx.Response(200, json=answer))
    assert interface._grades({"id": 3}) == {
        5: 7.5,
        6: 0.0,
        7: -1.0,
        8: -1.0,
        9: -1.0,
    }


def test_moodle_may_answer_nothing() -> None:
    assert moodle(lambda request: httpx.Response(200, text=" "))._call("f", {}) is None
    answer = moodle(lambda request: httpx.Response(200, json=[1]))._call("f", {"a": 1})
    assert answer == [1]


def test_a_request_to_moodle_or_classroom_ends_after_a_minute() -> None:
    """The token must not follow to another address."""
    for make in (MoodleInterface, ClassroomInterface):
        http = make("https://one.example", "7", "m1", "token")._http
        assert http.timeout == httpx.Timeout(60.0)
        assert not http.follow_redirects


def test_moodle_lists_everybody_once_with_the_grades_that_are_some() -> None:
    """A grade below 0 is none. People's other courses are not asked for."""
    asked: list[dict[str, str]] = []
    assignment = {"id": 3, "cmid": 4, "name": "m1", "grade": 10}
    given = {4: "0.00000", 5: "7.50000", 6: "-1.00000"}
    grades = [{"userid": user, "grade": grade} for user, grade in given.items()]
    people = [
        {"id": 4, "fullname": "Zoe", "idnumber": "z1"},
        {"id": 5, "fullname": "Ada", "email": "ada@x.edu"},
        {"id": 6, "fullname": "Participant 77"},
    ]
    answers: dict[str, Any] = {
        "mod_assign_get_assignments": {"courses": [{"assignments": [assignment]}]},
        "mod_assign_get_grades": {"assignments": [{"grades": grades}]},
        "mod_assign_list_participants": people,
    }

    def answer(request: httpx.Request) -> httpx.Response:
        form = dict(parse_qsl(request.content.decode(), keep_blank_values=True))
        asked.append(form)
        return httpx.Response(200, json=answers[form["wsfunction"]])

    standings = moodle(answer).read()
    assert (standings.title, standings.maximum, standings.notes) == ("m1", 10.0, ())
    assert [(each.id, each.mark, each.identity) for each in standings.people] == [
        ("4", 0.0, Identity((), ("z1",), "Zoe")),
        ("5", 7.5, Identity((), ("ada@x.edu",), "Ada")),
        ("6", None, Identity((("moodle", "77"),))),
    ]
    token = {"wstoken": "token", "moodlewsrestformat": "json"}
    assert asked == [
        {**token, "wsfunction": "mod_assign_get_assignments", "courseids[0]": "7"},
        {**token, "wsfunction": "mod_assign_get_grades", "assignmentids[0]": "3"},
        {
            **token,
            "wsfunction": "mod_assign_list_participants",
            "assignid": "3",
            "groupid": "0",
            "filter": "",
            "includeenrolments": "0",
        },
    ]
    assignment["markingworkflow"] = 1
    (note,) = moodle(answer).read().notes
    assert note.endswith("students see a mark when its state is Released")
    assignment["grade"] = 0
    with pytest.raises(
        PlatformUnavailable, match="'m1' takes no points in Moodle: cho"
    ):
        moodle(answer).read()


def test_moodle_gets_fifty_marks_in_a_request() -> None:
    """A person's comment and workflow state are sent back as they are; the last of 51 people has
    neither.
    """
    forms: list[dict[str, str]] = []
    users = [str(user) for user in range(51)]
    assignment = {
        "id": 3,
        "cmid": 4,
        "name": "m1",
        "grade": 10,
        "markingworkflow": 1,
        "configs": [setting("1")],
    }
    graded = [{"userid": user, "grade": "1.0"} for user in users[:50]]
    flags = [{"userid": "7", "workflowstate": "released"}]
    comment = {"type": "comments", "editorfields": [{"text": "well done"}]}
    answers = {
        "mod_assign_get_assignments": {"courses": [{"assignments": [assignment]}]},
        "mod_assign_get_grades": {"assignments": [{"grades": graded}]},
        "mod_assign_get_user_flags": {"assignments": [{"userflags": flags}]},
        "mod_assign_get_submission_status": {"feedback": {"plugins": [comment]}},
    }

    def answer(request: httpx.Request) -> httpx.Response:
        form = dict(parse_qsl(request.content.decode(), keep_blank_values=True))
        if form["wsfunction"] == "mod_assign_save_grades":
            forms.append(form)
            return httpx.Response(200, text="null")
        return httpx.Response(200, json=answers[form["wsfunction"]])

    moodle(answer).send({user: float(user) for user in users})
    sent = [
        [
            form[f"grades[{n}][userid]"]
            for n in range(51)
            if f"grades[{n}][userid]" in form
        ]
        for form in forms
    ]
    assert sent == [users[:50], users[50:]]
    first, second = forms
    assert {form["assignmentid"] for form in forms} == {"3"}
    assert {form["applytoall"] for form in forms} == {"0"}
    of_user_7 = {
        name.removeprefix("grades[7]"): value
        for name, value in first.items()
        if name.startswith("grades[7]")
    }
    editor = "[plugindata][assignfeedbackcomments_editor]"
    assert of_user_7 == {
        "[userid]": "7",
        "[grade]": "7.0",
        "[attemptnumber]": "-1",
        "[addattempt]": "0",
        "[workflowstate]": "released",
        f"{editor}[text]": "well done",
        f"{editor}[format]": "1",
    }
    assert second["grades[0][grade]"] == "50.0"
    assert second["grades[0][workflowstate]"] == ""
    assert second[f"grades[0]{editor}[text]"] == ""


def setting(value: object, **more: str) -> dict[str, Any]:
    comments = {"plugin": "comments", "subtype": "assignfeedback", "name": "enabled"}
    return {**comments, **more, "value": value}


@pytest.mark.parametrize(
    ("configs", "has_comments"),
    [
        ([setting("1")], True),
        ([setting(1)], True),
        ([setting("0")], False),
        ([setting("1", name="other"), setting("1", plugin="file")], False),
        ([setting("1", subtype="assignsubmission")], False),
        ([], False),
    ],
)
def test_moodle_has_comments_where_their_plugin_is_on(
    configs: list[Any], has_comments: bool
) -> None:
    assert _has_comments({"configs": configs}) is has_comments


def test_what_is_no_list_of_records_has_none() -> None:
    assert _list([{"a": 1}, "odd", None, {"b": 2}]) == [{"a": 1}, {"b": 2}]
    for value in (None, {"a": 1}, "text"):
        assert _list(value) == []


def test_a_comment_of_moodle_is_that_of_the_comments() -> None:
    def plugin(kind: str, *fields: str) -> dict[str, Any]:
        return {"type": kind, "editorfields": [{"text": text} for text in fields]}

    plugins = [plugin("file", "no"), plugin("comments", "well done", "more")]
    status = {"feedback": {"plugins": plugins}}
    interface = moodle(lambda request: httpx.Response(200, json=status))
    assert interface._comment({"id": 9}, "5") == "well done"
    status["feedback"]["plugins"] = [plugin("comments")]
    assert interface._comment({"id": 9}, "5") == ""
    status.clear()
    assert interface._comment({"id": 9}, "5") == ""


# marks on their way


@pytest.mark.parametrize(("column", "title"), [("HW 1", "HW 1"), ("", "m1")])
def test_an_assignment_may_have_another_title_on_the_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str, title: str
) -> None:
    opened: list[Any] = []
    standings = SimpleNamespace(title=title)
    interface = SimpleNamespace(read=lambda: standings)

    def open_interface(course: Course, platform: str, name: str) -> Any:
        opened.append((platform, name))
        return interface

    difference = SimpleNamespace(lines=lambda platform: [f"to {platform}"])
    monkeypatch.setattr(push, "open_interface", open_interface)
    monkeypatch.setattr(push, "_difference", lambda *_: (difference, {}))
    course = Course(tmp_path)
    options: dict[str, Any] = {"column": column}
    lines = list(push.push_marks(course, "m1", [], "canvas", **options))
    assert opened == [("canvas", title)]
    assert lines == ["to Canvas", f"marks of m1 sent to canvas, {title!r}: 0"]
    dry = list(push.push_marks(course, "m1", [], "canvas", dry_run=True, **options))
    assert dry[-1] == "nothing was sent to canvas, since --dry-run was given"
