"""Marks through the platforms' interfaces, against servers on this machine that answer as
documented.

Canvas: canvas-lms, `app/controllers/submissions_api_controller.rb` (submissions, update_grades),
`assignments_api_ controller.rb`, `users_controller.rb` and `progress_controller.rb`, and canvasapi
3.6. Moodle: moodle, `mod/assign/externallib.php` and `lib/externallib.php` (errors). Google
Classroom: the reference of its REST API, courses.courseWork, courses.courseWork.studentSubmissions,
courses.students. All as read on 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from platform_server import Answer, Asked, serve
from test_fill import canvas, hand_in, moodle

from autograder.basics.errors import KitError
from autograder.cli.commands import main
from autograder.course import Course, load_course
from autograder.intake.collected import Arrival
from autograder.platforms.push import read_token
from autograder.records.model import Result

TOKEN = "secret-token-1234"


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A course of one assignment, `attention`, outside of which nobody has a token."""
    root = tmp_path / "course"
    source = root / "source" / "attention" / "attention.py"
    source.parent.mkdir(parents=True)
    source.write_text("", encoding="utf-8")
    (root / "course.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(root)
    for platform in ("CANVAS", "MOODLE", "CLASSROOM"):
        monkeypatch.delenv(f"{platform}_TOKEN_FILE", raising=False)
        monkeypatch.setenv(f"{platform}_TOKEN", TOKEN)
    return load_course(root)


def push(course: Course, platform: str, url: str, *options: str) -> tuple[int, str]:
    """Exit status and what the command printed, but for stale results; the token never stands in
    it.
    """
    (course.root / "course.toml").write_text(
        f'[{platform}]\nurl = "{url}"\ncourse = "7"\n', encoding="utf-8"
    )
    made = CliRunner().invoke(
        main, ["export", "attention", "--format", platform, "--push", *options]
    )
    assert TOKEN not in made.output
    return made.exit_code, re.sub(r"stale results: .*\n", "", made.output)


# Canvas


@dataclass
class FakeCanvas:
    """Course 7 with the assignment 4711 of 20 points. Jane has no mark, two people are John Doe."""

    scores: dict[int, float | None] = field(
        default_factory=lambda: {101: None, 102: None, 103: 5.0, 104: None}
    )
    locked: set[int] = field(default_factory=set)
    assignment: dict[str, Any] = field(
        default_factory=lambda: {
            "id": 4711,
            "name": "attention",
            "points_possible": 20.0,
            "published": True,
            "grading_type": "points",
            "course_id": 7,
            "post_manually": True,
        }
    )
    sent: list[dict[str, str]] = field(default_factory=list)

    def answer(self, asked: Asked) -> Answer:
        if asked.token != TOKEN:
            return Answer(
                {"errors": [{"message": "Invalid access token."}]},
                401,
                headers={"WWW-Authenticate": "x"},
            )
        place = asked.path.removeprefix("/api/v1")
        if place == "/courses/7":
            return Answer({"id": 7, "name": "Attention"})
        if place == "/courses/7/assignments":
            return Answer(
                [self.assignment, {**self.assignment, "id": 9, "name": "Quiz"}]
            )
        if place in ("/courses/7/users", "/courses/7/search_users"):
            assert asked.query["enrollment_type[]"] == ["student"]
            names = {101: "Jane Doe", 102: "John Doe", 103: "John Doe", 104: "Zoe Lee"}
            return Answer(
                [
                    {"id": id_, "name": name, "login_id": f"u{id_}"}
                    for id_, name in names.items()
                ]
            )
        if place == "/courses/7/assignments/4711/submissions":
            return self._submissions(asked)
        if (
            place == "/courses/7/assignments/4711/submissions/update_grades"
            and asked.method == "POST"
        ):
            given = {
                re.fullmatch(r"grade_data\[(\d+)\]\[posted_grade\]", name)[1]: values[0]  # type: ignore[index]
                for name, values in asked.form.items()
            }
            self.sent.append(given)
            self.scores |= {
                int(id_): float(mark)
                for id_, mark in given.items()
                if int(id_) not in self.locked
            }
            return Answer(
                {
                    "id": 1,
                    "workflow_state": "completed",
                    "completion": 100,
                    "tag": "submissions_update",
                }
            )
        return Answer(
            {"errors": [{"message": "The specified resource does not exist."}]}, 404
        )

    def _submissions(self, asked: Asked) -> Answer:
        page = int(asked.query.get("page", ["1"])[0])
        ids = sorted(self.scores)[(page - 1) * 2 : page * 2]  # two on a page
        rows = [
            {
                "id": 900 + id_,
                "user_id": id_,
                "assignment_id": 4711,
                "score": self.scores[id_],
                "excused": id_ == 104,
                "assignment_visible": True,
                "workflow_state": "submitted",
                "submitted_at": None if id_ == 102 else f"2026-10-01T21:{id_ - 90}:00Z",
            }
            for id_ in ids
        ]
        return Answer(
            rows,
            next_page=f"{self.url}{asked.path}?page={page + 1}" if page == 1 else "",
        )

    url: str = ""


@pytest.fixture
def fake_canvas() -> Iterator[FakeCanvas]:
    fake = FakeCanvas()
    with serve(fake.answer) as url:
        fake.url = url
        yield fake


CLASS = {
    "doejane_101": canvas("101", "doejane"),
    "doejohn_103": canvas("103", "doejohn"),
    "leezoe_104": canvas("104", "leezoe"),
}


def test_a_dry_run_on_canvas_says_everything_and_sends_nothing(
    course: Course, plain: Result, fake_canvas: FakeCanvas
) -> None:
    hand_in(course, plain, CLASS)
    status, said = push(course, "canvas", fake_canvas.url, "--dry-run")
    assert (status, fake_canvas.sent) == (0, [])
    assert said.splitlines() == [
        "Canvas: 2 to get a mark, 1 to keep what is there, 1 to be skipped there",
        "  Zoe Lee (canvas 104) will be skipped and keeps none (here 13): "
        "they are excused in Canvas: end that there where the mark should count",
        "  Jane Doe (canvas 101) gets 11 (had none)",
        "  John Doe (canvas 103) gets 12 (had 5)",
        "  John Doe (canvas 102) keeps none: nobody here",
        "students see the marks in 'attention' only when you post them in Canvas",
        "nothing was sent to canvas, since --dry-run was given",
    ]


def test_canvas_gets_the_marks_of_those_whose_they_are(
    course: Course, plain: Result, fake_canvas: FakeCanvas
) -> None:
    hand_in(course, plain, CLASS)
    status, said = push(course, "canvas", fake_canvas.url)
    assert status == 0
    assert fake_canvas.sent == [{"101": "11", "103": "12"}]
    assert fake_canvas.scores == {101: 11.0, 102: None, 103: 12.0, 104: None}
    assert said.splitlines()[-1] == "marks of attention sent to canvas, 'attention': 2"
    status, said = push(course, "canvas", fake_canvas.url)
    assert (status, len(fake_canvas.sent)) == (
        0,
        1,
    )  # they have them: nothing is sent again


def test_canvas_is_asked_when_everybody_handed_in(
    course: Course, fake_canvas: FakeCanvas, tmp_path: Path
) -> None:
    (course.root / "course.toml").write_text(
        f'[canvas]\nurl = "{fake_canvas.url}"\ncourse = "7"\n', encoding="utf-8"
    )
    download = tmp_path / "download"
    download.mkdir()
    for name in ("doejane_101_9001", "doejohn_102_9002", "doejohn_LATE_103_9003"):
        (download / f"{name}_attention.ipynb").write_text(
            '{"cells": []}', encoding="utf-8"
        )
    made = CliRunner().invoke(
        main, ["collect", "attention", str(download), "--from", "canvas", "--ask-times"]
    )
    assert made.exit_code == 0, made.output
    times = {
        path.parts[-3]: path.read_text(encoding="utf-8")
        for path in course.submitted.glob("*/*/timestamp.txt")
    }
    assert times == {
        "doejane_101": "2026-10-01 21:11:00.000000 UTC",
        "doejohn_103": "2026-10-01 21:13:00.000000 UTC",
    }


def test_what_canvas_did_not_take_is_named(
    course: Course, plain: Result, fake_canvas: FakeCanvas
) -> None:
    hand_in(course, plain, CLASS)
    fake_canvas.locked = {103}
    status, said = push(course, "canvas", fake_canvas.url)
    assert status == 1
    assert "canvas took 1 of 2 marks, and not those of John Doe (canvas 103)" in said


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"points_possible": 50.0},
            "'attention' has 50 points on canvas, and the marks here are out of 20",
        ),
        ({"published": False}, "'attention' is not published in Canvas"),
        (
            {"grading_type": "pass_fail"},
            "'attention' takes no points: it is pass_fail in Canvas",
        ),
        ({"anonymize_students": True}, "Canvas hides who is who in 'attention'"),
        (
            {"name": "week 2"},
            "Canvas has no assignment 'attention'; `--column` names one of: week 2 (4711), Quiz (9)",
        ),
    ],
)
def test_an_assignment_that_cannot_take_the_marks_gets_none(
    course: Course,
    plain: Result,
    fake_canvas: FakeCanvas,
    change: dict[str, Any],
    why: str,
) -> None:
    hand_in(course, plain, CLASS)
    fake_canvas.assignment |= change
    status, said = push(course, "canvas", fake_canvas.url)
    assert (status != 0, fake_canvas.sent) == (True, [])
    assert why in said


def test_a_wrong_token_is_told_without_the_token(
    course: Course,
    plain: Result,
    fake_canvas: FakeCanvas,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hand_in(course, plain, CLASS)
    monkeypatch.setenv("CANVAS_TOKEN", "another-secret")
    status, said = push(course, "canvas", fake_canvas.url)
    assert (status, "another-secret" in said) == (1, False)
    assert "Canvas says: " in said


def test_namesakes_whom_nobody_can_tell_apart_get_nothing(
    course: Course, plain: Result, fake_canvas: FakeCanvas
) -> None:
    (course.root / "students.csv").write_text(
        "id,name\nu1,Jane Doe\nu2,John Doe\n", encoding="utf-8"
    )
    hand_in(course, plain, {"u1": None, "u2": None})
    status, said = push(course, "canvas", fake_canvas.url)
    assert (status, fake_canvas.sent) == (2, [])
    assert "John Doe (canvas 102) and John Doe (canvas 103) have one name" in said


def test_a_server_that_is_not_there_is_told_in_one_line(
    course: Course, plain: Result
) -> None:
    hand_in(course, plain, CLASS)
    status, said = push(course, "canvas", "http://127.0.0.1:9")
    assert (status, said) == (
        1,
        "autograder: Canvas does not answer (ConnectionError)\n",
    )


# Moodle


@dataclass
class FakeMoodle:
    """Course 7 with the assignment 31 (module 310) of 20 points, with comments as feedback."""

    grades: dict[int, str] = field(
        default_factory=lambda: {11: "5.00000", 13: "-1.00000"}
    )
    comments: dict[int, str] = field(default_factory=lambda: {11: "<p>Well done.</p>"})
    locked: set[int] = field(default_factory=set)
    grade: int = 20
    workflow: int = 0
    saved: list[dict[str, str]] = field(default_factory=list)

    def answer(self, asked: Asked) -> Answer:
        form = {name: values[0] for name, values in asked.form.items()}
        assert (asked.method, asked.path) == (
            "POST",
            "/moodle/webservice/rest/server.php",
        )
        assert (form["moodlewsrestformat"], asked.query) == ("json", {})
        if form["wstoken"] != TOKEN:
            return Answer(
                {
                    "exception": "moodle_exception",
                    "errorcode": "invalidtoken",
                    "message": "Invalid token",
                }
            )
        function = form["wsfunction"].removeprefix("mod_assign_")
        return Answer(getattr(self, f"_{function}")(form))

    def _get_assignments(self, form: dict[str, str]) -> Any:
        assert form["courseids[0]"] == "7"
        configs = [
            {
                "plugin": "comments",
                "subtype": "assignfeedback",
                "name": "enabled",
                "value": "1",
            }
        ]
        assignment = {
            "id": 31,
            "cmid": 310,
            "name": "attention",
            "grade": self.grade,
            "configs": configs,
            "markingworkflow": self.workflow,
        }
        return {
            "courses": [
                {
                    "id": 7,
                    "assignments": [
                        assignment,
                        {**assignment, "id": 32, "cmid": 320, "name": "b"},
                    ],
                }
            ]
        }

    def _list_participants(self, form: dict[str, str]) -> Any:
        assert (form["assignid"], form["groupid"], form["filter"]) == ("31", "0", "")
        people = (
            (11, "Jane Doe", "jane@x.edu"),
            (12, "John Doe", "john@x.edu"),
            (13, "John Doe", "john3@x.edu"),
        )
        return [
            {
                "id": id_,
                "fullname": name,
                "email": email,
                "submitted": True,
                "requiregrading": True,
            }
            for id_, name, email in people
        ]

    def _get_grades(self, form: dict[str, str]) -> Any:
        rows = [
            {"id": 100 + user, "userid": user, "grade": grade, "timemodified": 1}
            for user, grade in self.grades.items()
        ]
        return {"assignments": [{"assignmentid": 31, "grades": rows}], "warnings": []}

    def _get_submission_status(self, form: dict[str, str]) -> Any:
        text = self.comments.get(int(form["userid"]), "")
        fields = [
            {
                "name": "comments",
                "description": "Feedback comments",
                "text": text,
                "format": 1,
            }
        ]
        return {
            "feedback": {
                "plugins": [
                    {
                        "type": "comments",
                        "name": "Feedback comments",
                        "editorfields": fields,
                    }
                ]
            }
        }

    def _get_user_flags(self, form: dict[str, str]) -> Any:
        flags = [{"id": 1, "userid": 11, "workflowstate": "inreview"}]
        return {
            "assignments": [{"assignmentid": 31, "userflags": flags}],
            "warnings": [],
        }

    def _save_grades(self, form: dict[str, str]) -> None:
        assert (form["assignmentid"], form["applytoall"]) == ("31", "0")
        number = 0
        while f"grades[{number}][userid]" in form:
            start = f"grades[{number}]"
            self.saved.append(
                {
                    name.removeprefix(start): value
                    for name, value in form.items()
                    if name.startswith(start)
                }
            )
            user = int(form[f"{start}[userid]"])
            if user not in self.locked:  # Moodle says nothing of a grade that is locked
                self.grades[user] = f"{float(form[f'{start}[grade]']):.5f}"
                self.comments[user] = form[
                    f"{start}[plugindata][assignfeedbackcomments_editor][text]"
                ]
            number += 1


MOODLE_CLASS: dict[str, Arrival | None] = {
    "Jane Doe_501": moodle("501", "Jane Doe"),
    "j2": None,
}


def moodle_course(course: Course) -> None:
    (course.root / "students.csv").write_text(
        "id,name,email,moodle\nJane Doe_501,Jane Doe,jane@x.edu,501\nj2,John Doe,john3@x.edu,\n",
        encoding="utf-8",
    )


def test_moodle_gets_the_marks_and_keeps_its_comments(
    course: Course, plain: Result
) -> None:
    moodle_course(course)
    hand_in(course, plain, MOODLE_CLASS)
    fake = FakeMoodle()
    with serve(fake.answer) as url:
        status, said = push(course, "moodle", f"{url}/moodle")
    assert status == 0, said
    assert said.splitlines() == [
        "Moodle: 2 to get a mark, 1 to keep what is there, 0 to be skipped there",
        "  Jane Doe (jane@x.edu) gets 11 (had 5)",
        "  John Doe (john3@x.edu) gets 12 (had none)",
        "  John Doe (john@x.edu) keeps none: nobody here",
        "marks of attention sent to moodle, 'attention': 2",
    ]
    assert fake.grades == {11: "11.00000", 13: "12.00000"}
    assert fake.comments == {11: "<p>Well done.</p>", 13: ""}
    assert fake.saved[0] == {
        "[userid]": "11",
        "[grade]": "11.0",
        "[attemptnumber]": "-1",
        "[addattempt]": "0",
        "[workflowstate]": "",
        "[plugindata][assignfeedbackcomments_editor][text]": "<p>Well done.</p>",
        "[plugindata][assignfeedbackcomments_editor][format]": "1",
    }


def test_a_dry_run_on_moodle_sends_nothing(course: Course, plain: Result) -> None:
    moodle_course(course)
    hand_in(course, plain, MOODLE_CLASS)
    fake = FakeMoodle()
    with serve(fake.answer) as url:
        status, said = push(
            course, "moodle", f"{url}/moodle", "--dry-run", "--column", "310"
        )
    assert (status, fake.saved) == (0, [])
    assert (
        said.splitlines()[-1] == "nothing was sent to moodle, since --dry-run was given"
    )


def test_a_grade_that_moodle_locks_is_named(course: Course, plain: Result) -> None:
    moodle_course(course)
    hand_in(course, plain, MOODLE_CLASS)
    fake = FakeMoodle(locked={11})
    with serve(fake.answer) as url:
        status, said = push(course, "moodle", f"{url}/moodle")
    assert status == 1
    assert (
        "moodle took 1 of 2 marks, and not those of Jane Doe (jane@x.edu): they may be locked "
        "or overridden" in said
    )


def test_a_workflow_state_stays_as_it_is(course: Course, plain: Result) -> None:
    moodle_course(course)
    hand_in(course, plain, MOODLE_CLASS)
    fake = FakeMoodle(workflow=1)
    with serve(fake.answer) as url:
        status, said = push(course, "moodle", f"{url}/moodle")
    assert status == 0
    assert [(row["[userid]"], row["[workflowstate]"]) for row in fake.saved] == [
        ("11", "inreview"),
        ("13", ""),
    ]
    assert "students see a mark when its state is Released" in said


@pytest.mark.parametrize(
    ("grade", "why"),
    [
        (50, "'attention' has 50 points on moodle"),
        (-2, "'attention' takes no points in Moodle"),
    ],
)
def test_moodle_with_another_maximum_or_a_scale_gets_nothing(
    course: Course, plain: Result, grade: int, why: str
) -> None:
    moodle_course(course)
    hand_in(course, plain, MOODLE_CLASS)
    fake = FakeMoodle(grade=grade)
    with serve(fake.answer) as url:
        status, said = push(course, "moodle", f"{url}/moodle")
    assert (status != 0, fake.saved) == (True, [])
    assert why in said


def test_moodles_own_error_is_told(
    course: Course, plain: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(course, plain, MOODLE_CLASS)
    monkeypatch.setenv("MOODLE_TOKEN", "another-secret")
    with serve(FakeMoodle().answer) as url:
        status, said = push(course, "moodle", f"{url}/moodle")
    assert status == 1
    assert (
        "Moodle refuses mod_assign_get_assignments: Invalid token (invalidtoken)"
        in said
    )
    assert "another-secret" not in said


# Google Classroom


@dataclass
class FakeClassroom:
    """Course 7 with the course work w1 of 20 points, made by the project that asks; two students on
    two pages.
    """

    grades: dict[str, float | None] = field(
        default_factory=lambda: {"g1": None, "g2": 12.0}
    )
    own: bool = True

    def answer(self, asked: Asked) -> Answer:
        if asked.token != TOKEN:
            return Answer(
                {
                    "error": {
                        "code": 401,
                        "message": "Request had invalid authentication credentials.",
                    }
                },
                401,
            )
        place = asked.path.removeprefix("/v1/courses/7/")
        if place == "courseWork":
            work = {
                "id": "w1",
                "title": "attention",
                "maxPoints": 20,
                "associatedWithDeveloper": self.own,
            }
            return Answer({"courseWork": [work]})
        if place == "students":
            page = asked.query.get("pageToken", [""])[0]
            user, name, email = (
                ("g2", "John Doe", "john@x.edu")
                if page
                else ("g1", "Jane Doe", "jane@x.edu")
            )
            person = {
                "userId": user,
                "profile": {
                    "id": user,
                    "name": {"fullName": name},
                    "emailAddress": email,
                },
            }
            return Answer(
                {"students": [person], **({} if page else {"nextPageToken": "p2"})}
            )
        if place == "courseWork/w1/studentSubmissions":
            rows: list[dict[str, Any]] = [
                {
                    "id": f"s-{user}",
                    "userId": user,
                    "state": "TURNED_IN",
                    "assignedGrade": grade,
                }
                for user, grade in self.grades.items()
            ]
            rows = [
                {name: value for name, value in row.items() if value is not None}
                for row in rows
            ]
            return Answer({"studentSubmissions": rows})
        if asked.method == "PATCH" and place.startswith(
            "courseWork/w1/studentSubmissions/s-"
        ):
            assert asked.query["updateMask"] == ["assignedGrade,draftGrade"]
            self.grades[place.rpartition("/s-")[2]] = asked.body["assignedGrade"]
            return Answer({"id": place.rpartition("/")[2], **asked.body})
        return Answer(
            {"error": {"code": 404, "message": "Requested entity was not found."}}, 404
        )


def classroom_course(course: Course, plain: Result) -> None:
    (course.root / "students.csv").write_text(
        "id,name,email\ns1,Jane Doe,jane@x.edu\ns2,John Doe,john@x.edu\n",
        encoding="utf-8",
    )
    hand_in(course, plain, {"s1": None, "s2": None})


def test_classroom_gets_the_marks(course: Course, plain: Result) -> None:
    classroom_course(course, plain)
    fake = FakeClassroom()
    with serve(fake.answer) as url:
        status, said = push(course, "classroom", url)
    assert (status, fake.grades) == (0, {"g1": 11.0, "g2": 12.0})
    assert said.splitlines() == [
        "Classroom: 1 to get a mark, 1 to keep what is there, 0 to be skipped there",
        "  Jane Doe (classroom g1) gets 11 (had none)",
        "  John Doe (classroom g2) keeps 12: the same as here",
        "marks of attention sent to classroom, 'attention': 1",
    ]


def test_what_another_project_made_in_classroom_is_refused(
    course: Course, plain: Result
) -> None:
    classroom_course(course, plain)
    fake = FakeClassroom(own=False)
    with serve(fake.answer) as url:
        status, said = push(course, "classroom", url)
    assert (status, fake.grades["g1"]) == (1, None)
    assert "Google lets only the project that made 'attention' write its marks" in said


def test_classroom_without_push_has_no_file(course: Course) -> None:
    made = CliRunner().invoke(main, ["export", "attention", "--format", "classroom"])
    assert (made.exit_code, "add --push" in made.output) == (2, True)


# Tokens and settings


def test_a_token_may_lie_in_a_file_outside_the_course(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CANVAS_TOKEN")
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="utf-8")
    monkeypatch.setenv("CANVAS_TOKEN_FILE", str(file))
    file.chmod(0o644)
    with pytest.raises(KitError, match="can be read by others"):
        read_token(course.root, "canvas")
    file.chmod(0o600)
    assert read_token(course.root, "canvas") == TOKEN
    inside = course.root / "token"
    inside.write_text(TOKEN, encoding="utf-8")
    inside.chmod(0o600)
    monkeypatch.setenv("CANVAS_TOKEN_FILE", str(inside))
    with pytest.raises(KitError, match="where it could be committed"):
        read_token(course.root, "canvas")
    monkeypatch.delenv("CANVAS_TOKEN_FILE")
    with pytest.raises(
        KitError, match=r"no token for canvas: put it into \$CANVAS_TOKEN"
    ):
        read_token(course.root, "canvas")


@pytest.mark.parametrize(
    "url",
    [
        "http://canvas.example.org",
        "https://user:pw@canvas.example.org",
        "canvas.example.org",
    ],
)
def test_a_token_goes_to_no_address_that_is_not_encrypted(
    course: Course, plain: Result, url: str
) -> None:
    hand_in(course, plain, CLASS)
    status, said = push(course, "canvas", url)
    assert status == 2
    assert "canvas.url" in said
    assert "it must be a text that is the address of a platform" in said


def test_without_a_course_nothing_is_asked(course: Course, plain: Result) -> None:
    hand_in(course, plain, CLASS)
    result = CliRunner().invoke(
        main, ["export", "attention", "--format", "canvas", "--push"]
    )
    assert result.exit_code == 2
    assert "write `url` and `course` under [canvas]" in result.output
