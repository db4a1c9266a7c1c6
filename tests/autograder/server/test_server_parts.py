"""Parts of the server without a request from outside: settings that change, filing, links,
figures.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
from starlette.exceptions import HTTPException

from autograder.basics.errors import KitError
from autograder.course import COURSE_FILE, Assignment, Course, load_course
from autograder.ledger.ledger_file import LedgerContent, StudentRecord, write_content
from autograder.server import lti_pages, office, serve_command
from autograder.server.extensions import grant_extension
from autograder.server.filing import Filed
from autograder.server.metrics import _is_local
from autograder.server.office import FILING_SECONDS, LOOK_SECONDS, Office
from autograder.server.people import Visitor
from autograder.server.serve_command import (
    ServeRequest,
    _print_links,
    grade_for_server,
)
from autograder.server.web_app import (
    explain_crash,
    explain_http_error,
    explain_kit_error,
)

# settings


@pytest.fixture
def played_office(tmp_path: Path) -> Any:
    """An office without a database. `told` has what it tells."""
    played: Any = object.__new__(Office)
    played._lock = threading.Lock()
    played._root = tmp_path
    played._settings_stamp = 0
    played._course = Course(tmp_path)
    played.told = []
    played._tell = played.told.append
    return played


def write_settings(root: Path, text: str, stamp: int) -> None:
    path = root / COURSE_FILE
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(stamp, stamp))


def test_settings_are_read_when_their_file_has_changed(
    played_office: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[Path] = []

    def load(root: Path) -> Course:
        loads.append(root)
        return load_course(root)

    monkeypatch.setattr(office, "load_course", load)
    assert played_office.course is played_office.course
    assert loads == []
    write_settings(tmp_path, '[course]\nname = "One"\n', 1_000)
    assert [played_office.course.about.name for _ in range(2)] == ["One", "One"]
    assert len(loads) == 1
    # a mistake is told once, and the settings from before stay
    write_settings(tmp_path, "[course]\nname = 1\n", 2_000)
    assert [played_office.course.about.name for _ in range(2)] == ["One", "One"]
    (line,) = played_office.told
    assert line.startswith("the settings from before stay: ")
    write_settings(tmp_path, '[course]\nname = "Two"\n', 3_000)
    assert played_office.course.about.name == "Two"


def test_without_a_class_list_everybody_may_enter(
    played_office: Any, tmp_path: Path
) -> None:
    write_settings(tmp_path, '[server]\ninstructors = "ines"\n', 1_000)
    may_enter = played_office.may_enter
    assert [may_enter(name) for name in ("ada", "eve", "ines")] == [True, True, True]
    (tmp_path / "students.csv").write_text("id\nada\n", encoding="utf-8")
    assert [may_enter(name) for name in ("ada", "eve", "ines")] == [True, False, True]

    # a download brought eve, whom the class list lacks
    ledger = LedgerContent(1, {"eve": StudentRecord("eve", "eve")})
    write_content(tmp_path, ledger)
    assert [may_enter(name) for name in ("ada", "eve", "bob")] == [True, True, False]


@pytest.mark.parametrize(
    ("visitor", "handed_in_by", "may_see"),
    [
        ("ada", "", True),
        ("bob", "", False),
        ("cyd", "", True),
        ("bob", "bob", True),
        ("ada", "bob", False),
    ],
)
def test_an_attempt_is_seen_by_who_handed_it_in_and_by_the_group(
    played_office: Any, visitor: str, handed_in_by: str, may_see: bool
) -> None:
    """Cyd is the only member, since the others have left the group."""
    rules = SimpleNamespace(members=lambda owner, assignment: ("cyd",))
    played_office.rules = lambda: rules
    attempt = SimpleNamespace(student="ada", assignment="m1", handed_in_by=handed_in_by)
    assert played_office.may_see(Visitor(visitor, "student"), attempt) is may_see
    assert played_office.may_see(Visitor("prof", "instructor"), attempt)


def test_who_uses_whom_is_read_once_an_assignment(
    played_office: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source/m1/m1.py"
    source.parent.mkdir(parents=True)
    source.touch()
    played_office._uses = {}
    played_office._reading_uses = threading.Lock()
    reads: list[str] = []

    def read_uses(assignment: Assignment, tell: object) -> dict[str, tuple[str, ...]]:
        reads.append(assignment.name)
        return {"half": ("double",)}

    monkeypatch.setattr(office, "read_uses", read_uses)
    answers = [played_office._read_uses("m1") for _ in range(2)]
    assert answers == [{"half": ("double",)}] * 2
    assert reads == ["m1"]


def test_an_extension_is_written_beside_the_others(tmp_path: Path) -> None:
    write_settings(tmp_path, "# ours\n[due]\nm1 = 2026-10-01T12:00:00Z\n", 1_000)
    source = tmp_path / "source/m1/m1.py"
    source.parent.mkdir(parents=True)
    source.touch()
    course = load_course(tmp_path)
    assert grant_extension(course, "m1", "ada", "2") == "m1: 2 days for ada"
    assert grant_extension(course, "m1", "ben", "0.5") == "m1: 0.5 days for ben"
    path = tmp_path / COURSE_FILE
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ours\n[due]")
    assert text.rstrip().endswith("[extensions]\nm1 = {ada = 2,ben = 0.5}")
    assert grant_extension(course, "m1", "ada", "0") == "m1: 0 days for ada"
    assert load_course(tmp_path).extensions["m1"].keys() == {"ben"}
    # of nobody's extension there is nothing to take back
    grant_extension(course, "m1", "cyd", "0")
    assert load_course(tmp_path).extensions["m1"].keys() == {"ben"}


@pytest.mark.parametrize(
    ("student", "days", "words"),
    [
        ("ada", "soon", r"^'soon' is no number of days$"),
        ("", "2", r"^name a student$"),
        ("ada", "-3", r"course\.toml: "),
        ("ada", "nan", r"course\.toml: "),
    ],
)
def test_an_extension_that_is_none_changes_nothing(
    tmp_path: Path, student: str, days: str, words: str
) -> None:
    write_settings(tmp_path, "[due]\nm1 = 2026-10-01T12:00:00Z\n", 1_000)
    before = (tmp_path / COURSE_FILE).read_bytes()
    with pytest.raises(KitError, match=words):
        grant_extension(load_course(tmp_path), "m1", student, days)
    assert (tmp_path / COURSE_FILE).read_bytes() == before


# filing


def test_graded_attempts_are_filed_every_two_seconds_until_the_server_ends(
    played_office: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is looked at again once a while, and a problem is told once."""
    clock = SimpleNamespace(now=0.0)
    looks: list[bool] = []
    problems: Iterator[list[str] | KeyError] = iter(
        [["full"], ["full"], KeyError("odd"), [], ["full"]]
    )
    waits: list[float] = []
    filed: list[Any] = []

    class Closed:
        def wait(self, seconds: float) -> bool:
            waits.append(seconds)
            clock.now += seconds
            return len(waits) == 6

    def follow(*, look_at_all: bool) -> list[str]:
        looks.append(look_at_all)
        entry = next(problems)
        if isinstance(entry, KeyError):
            raise entry
        return entry

    monkeypatch.setattr("time.monotonic", lambda: clock.now)
    monkeypatch.setattr(office, "LOOK_SECONDS", 5.0)
    monkeypatch.setattr(played_office, "_file_and_follow", follow)
    monkeypatch.setattr(office, "file_attempts", lambda *given: filed.append(given))
    played_office.attempts = "attempts"
    played_office.file_until(Closed())
    assert waits == [2.0] * 6
    assert (FILING_SECONDS, LOOK_SECONDS) == (2.0, 600.0)
    # at 2 s, and 5 s later
    assert looks == [True, False, False, True, False]
    assert played_office.told == ["full", "not filed yet: 'odd'", "full"]
    assert filed == [(played_office._course, "attempts")]


@pytest.mark.parametrize("look_at_all", [True, False])
def test_whoever_follows_hears_of_assignments_with_new_results(
    played_office: Any, monkeypatch: pytest.MonkeyPatch, look_at_all: bool
) -> None:
    heard: list[tuple[str, ...]] = []
    filed = [Filed(("m2",), ("m3: busy",)), Filed()]
    monkeypatch.setattr(office, "file_attempts", lambda *_: filed.pop(0))
    played_office.attempts = None
    both = [Assignment(name, Path()) for name in ("m1", "m2")]
    monkeypatch.setattr(played_office, "assignments", lambda: both)

    def follow_up(names: tuple[str, ...]) -> list[str]:
        heard.append(names)
        return ["not sent"]

    played_office.after_filing = [follow_up]
    problems = played_office._file_and_follow(look_at_all=look_at_all)
    assert problems == ["m3: busy", "not sent"]
    again = played_office._file_and_follow(look_at_all=look_at_all)
    if look_at_all:
        assert (again, heard) == (["not sent"], [("m1", "m2"), ("m1", "m2")])
    else:
        assert (again, heard) == ([], [("m2",)])


# the command


def test_links_are_printed_with_their_role() -> None:
    made: list[Any] = []

    def make_link(student: str, role: str) -> str:
        made.append((student, role))
        return "key-1"

    played: Any = SimpleNamespace(
        role_of=lambda student: "student", people=SimpleNamespace(make_link=make_link)
    )
    request: Any = SimpleNamespace(link=("ada",), address="https://x.edu")
    lines: list[str] = []
    _print_links(request, played, lines.append)
    assert lines == ["ada (student): https://x.edu/sign-in?key=key-1"]
    assert made == [("ada", "student")]


def test_a_machine_that_grades_for_a_server_does_so_until_it_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Any] = []

    class PlayedDesk:
        def __init__(self, read_course: Callable[[], Course], *rest: Any) -> None:
            events.append((read_course().root, *rest[1:4]))

        def __enter__(self) -> None:
            events.append("begun")

        def __exit__(self, *_: object) -> None:
            events.append("ended")

    monkeypatch.setattr(serve_command, "GradingDesk", PlayedDesk)
    monkeypatch.setattr(serve_command.socket, "gethostname", lambda: "node-1")  # type: ignore[attr-defined]
    monkeypatch.setattr(
        serve_command.signal,  # type: ignore[attr-defined]
        "sigwait",
        lambda signals: events.append(sorted(signals)),
    )
    request = ServeRequest(Course(tmp_path), "", 0, 3)
    lines: list[str] = []
    (tmp_path / ".autograder").mkdir()
    (tmp_path / COURSE_FILE).touch()
    grade_for_server(request, lines.append)
    assert events == [(tmp_path, "node-1", 3, "auto"), "begun", [2, 15], "ended"]
    assert lines == [f"grading for the server of {request.course.about.name}"]


@pytest.mark.parametrize(
    ("host", "headers", "is_local"),
    [
        ("127.0.0.1", {}, True),
        ("::1", {}, True),
        ("10.0.0.7", {}, False),
        ("testclient", {}, False),
        (None, {}, False),
        # a proxy on this machine speaks for somebody elsewhere
        ("127.0.0.1", {"x-forwarded-for": "10.0.0.7"}, False),
    ],
)
def test_figures_are_for_this_machine(
    host: str | None, headers: dict[str, str], is_local: bool
) -> None:
    client = SimpleNamespace(host=host) if host else None
    request: Any = SimpleNamespace(client=client, headers=headers)
    assert _is_local(request) is is_local


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "This cannot be understood."),
        (403, "This is not possible for you."),
        (404, "There is no such page, or it is somebody else's."),
        (405, "This page cannot be used like that."),
        (413, "This file is too large."),
        (418, "I'm a Teapot"),
    ],
)
def test_a_status_without_words_of_its_own_has_ours(status: int, words: str) -> None:
    request: Any = SimpleNamespace(url=SimpleNamespace(path="/api/attempts"))
    answer = explain_http_error(request, HTTPException(status))
    assert json.loads(bytes(answer.body)) == {"problem": words}
    own = explain_http_error(
        request, HTTPException(status, "wait", {"retry-after": "7"})
    )
    assert json.loads(bytes(own.body)) == {"problem": "wait"}
    assert (own.status_code, own.headers["retry-after"]) == (status, "7")


def test_the_clock_of_a_platform_may_be_a_minute_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoded: list[Any] = []

    def decode(token: str, key: str = "", **options: Any) -> dict[str, str]:
        decoded.append((key, options.get("leeway")))
        if key:
            raise jwt.ExpiredSignatureError("Signature has expired")
        return {"aud": "client-7"}

    monkeypatch.setattr(jwt, "decode", decode)
    registration = SimpleNamespace(client_id="client-7", issuer="https://lms.example")
    monkeypatch.setattr(lti_pages, "_registration", lambda *_: registration)
    desk: Any = SimpleNamespace(platform_key=lambda *_: "the platform's key")
    nothing: Any = None
    with pytest.raises(
        HTTPException, match=r"cannot be trusted: Signature has expired"
    ):
        lti_pages.check_launch(nothing, desk, registration.issuer, "nonce", "token")
    assert decoded == [("", None), ("the platform's key", 60)]


def test_a_reason_that_may_name_files_is_for_instructors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error, request = KitError("/course/secret is missing"), SimpleNamespace()
    visitor = SimpleNamespace(is_instructor=True)
    web_app = "autograder.server.web_app"
    monkeypatch.setattr(f"{web_app}.visitor_or_none", lambda request: visitor)
    monkeypatch.setattr(f"{web_app}.page", lambda *given, **values: (given, values))
    shown: Any = explain_kit_error(request, error)  # type: ignore[arg-type]
    assert shown == (
        (request, "refused.html"),
        {"status": 400, "message": "/course/secret is missing"},
    )
    for other in (None, SimpleNamespace(is_instructor=False)):
        visitor = other  # type: ignore[assignment]
        with pytest.raises(KitError):
            explain_kit_error(request, error)  # type: ignore[arg-type]
    answer = explain_crash(request, error)  # type: ignore[arg-type]
    assert answer.status_code == 500
    assert b"secret" not in answer.body
