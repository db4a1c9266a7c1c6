"""Parts of the server without a request from outside: settings that change, filing, links,
figures.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import KitError
from autograder.course import COURSE_FILE, Assignment, Course, load_course
from autograder.ledger import read_ledger
from autograder.records.model import Graded
from autograder.server import filing, office, serve_command
from autograder.server.extensions import grant_extension
from autograder.server.filing import Filed, file_attempts
from autograder.server.metrics import _is_local
from autograder.server.office import FILING_SECONDS, LOOK_SECONDS, Office
from autograder.server.serve_command import (
    ServeRequest,
    _print_links,
    grade_for_server,
)
from autograder.server.web_app import explain_crash, explain_kit_error

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
    assert (FILING_SECONDS, LOOK_SECONDS > FILING_SECONDS) == (2.0, True)
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


class PlayedAttempts:
    """A store with these attempts, all of them unfiled; those in `answers` are graded."""

    def __init__(self, *attempts: Any, answers: dict[int, Any]) -> None:
        self.all = attempts
        self.answers = answers
        self.filed: list[list[int]] = []

    def unfiled(self) -> list[Any]:
        return list(self.all)

    def of_student(self, student: str, assignment: str) -> list[Any]:
        return [
            each
            for each in self.all
            if (each.student, each.assignment) == (student, assignment)
        ]

    def answer(self, number: int) -> Any:
        return self.answers.get(number)

    def notebook(self, number: int) -> bytes:
        return f"notebook {number}".encode()

    def weights(self, number: int) -> bytes | None:
        return b"weights" if number == 1 else None

    def mark_filed(self, numbers: list[int]) -> None:
        self.filed.append(numbers)


def attempt(number: int, student: str, assignment: str = "m1", **more: Any) -> Any:
    values = {"nickname": "", "handed_in": None, **more}
    return SimpleNamespace(id=number, student=student, assignment=assignment, **values)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several attempts the first one counts."""
    rules = SimpleNamespace(counting=lambda attempts: attempts[0])
    monkeypatch.setattr(filing, "AttemptRules", lambda *_: rules)


@pytest.mark.usefixtures("counting")
def test_an_attempt_lies_where_a_collected_notebook_would(tmp_path: Path) -> None:
    course = Course(tmp_path)
    store = PlayedAttempts(
        attempt(1, "ada", nickname="A. L."),
        attempt(2, "ben"),
        attempt(3, "cyd"),
        attempt(4, "ada"),
        answers={
            1: (Graded("ada", seconds={"run": 1.0}), b'{"result": 1}'),
            2: (Graded("ben", problem="no notebook"), b""),
        },
    )
    assert file_attempts(course, store) == Filed(("m1",), ())  # type: ignore[arg-type]
    files = {
        path.relative_to(course.submitted).as_posix(): path.read_text()
        for path in course.submitted.rglob("*")
        if path.is_file()
    }
    assert files == {
        "ada/m1/m1.ipynb": "notebook 1",
        "ada/m1/m1.safetensors": "weights",
        "ada/m1/nickname.txt": "A. L.\n",
        "ben/m1/m1.ipynb": "notebook 2",
    }
    # a notebook that could not be graded keeps no result; cyd's attempt has no answer yet
    assert [path.name for path in (course.results / "m1").iterdir()] == ["ada.json"]
    assert store.filed == [[1, 4, 2, 3]]


@pytest.mark.usefixtures("counting")
def test_an_assignment_that_cannot_be_filed_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PlayedAttempts(attempt(2, "ben", "m2"), attempt(1, "ada", "m1"), answers={})
    lock_results = vars(filing)["lock_results"]

    def lock(locks: Path, folder: Path, assignment: str) -> Any:
        if assignment == "m1":
            raise KitError("another command writes them")
        return lock_results(locks, folder, assignment)

    monkeypatch.setattr(filing, "lock_results", lock)
    filed = file_attempts(Course(tmp_path), store)  # type: ignore[arg-type]
    assert filed == Filed(("m2",), ("m1: another command writes them",))
    assert store.filed == [[2]]


@pytest.mark.usefixtures("counting")
def test_a_student_who_can_have_no_folder_of_the_name_is_remembered(
    tmp_path: Path,
) -> None:
    course = Course(tmp_path)
    answers = {1: (Graded("a/b", problem="none"), b""), 2: (Graded("ada"), b"")}
    store = PlayedAttempts(attempt(1, "a/b"), attempt(2, "ada"), answers=answers)
    for _ in range(2):
        file_attempts(course, store)  # type: ignore[arg-type]
        ledger = read_ledger(course)
        assert (ledger.has_record("a/b"), ledger.has_record("ada")) == (True, False)
        assert ledger.student_in(ledger.folder("a/b")) == "a/b"
    history = (tmp_path / "ledger.json").read_text(encoding="utf-8")
    assert history.count('"source"') <= 1


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
