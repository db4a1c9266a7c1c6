"""A course that hands in by itself: who hands in what, and that nothing stays; the server is
played.
"""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import KitError
from autograder.course import Assignment, Course
from autograder.server import demo_day
from autograder.server.demo_day import INSTRUCTOR, STUDENT, serve_demo
from autograder.server.serve_command import ServeRequest


def test_a_demo_course_hands_in_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody but the student of whoever watches; one of them hands in no notebook."""
    unbuilt, built, later = (Assignment(f"m{n}", tmp_path) for n in (1, 2, 3))
    for each in (built, later):
        each.release.parent.mkdir(parents=True)
        each.release.touch()
    monkeypatch.setattr(Course, "assignments", lambda _: [unbuilt, built, later])
    monkeypatch.setattr(demo_day, "pack_course", lambda course, each: each.name)
    seen: dict[str, Any] = {}

    def unpack(packed: str, root: Path) -> None:
        seen["packed"] = packed
        root.mkdir()

    def write_class(course: Course, assignment: Assignment, folder: Path) -> list[Any]:
        seen["settings"] = (course.submit.tries, course.server.instructors)
        folder.mkdir()
        (folder / "ada").write_bytes(b"{}")
        names = ("ada", STUDENT, "ben")
        return [SimpleNamespace(student=name, path=folder / name) for name in names]

    def serve(request: ServeRequest, tell: object, begin: Any) -> None:
        seen["request"] = request
        seen["roster"] = (request.course.root / "students.csv").read_text()
        begin(demo_office)
        for thread in threads:
            thread.join()

    threads: list[threading.Thread] = []
    start = threading.Thread.start

    def start_and_note(thread: threading.Thread) -> None:
        threads.append(thread)
        start(thread)

    hand_ins: list[Any] = []

    def hand_in(student: str, assignment: Any, data: bytes) -> None:
        hand_ins.append((student, assignment, data))
        if not data:
            raise KitError("this is no notebook")

    demo_office = SimpleNamespace(
        hand_in=hand_in, course=SimpleNamespace(assignment=lambda name: f"<{name}>")
    )
    naps: list[float] = []
    monkeypatch.setattr(demo_day, "unpack_course", unpack)
    monkeypatch.setattr(demo_day, "write_demo_class", write_class)
    monkeypatch.setattr(demo_day, "serve_command", serve)
    monkeypatch.setattr(demo_day.time, "sleep", naps.append)  # type: ignore[attr-defined]
    monkeypatch.setattr(threading.Thread, "start", start_and_note)
    lines: list[str] = []
    serve_demo(Course(tmp_path), "localhost", 8000, 2, lines.append)
    assert (seen["packed"], seen["settings"]) == ("m2", (5, INSTRUCTOR))
    assert seen["roster"] == f"id\n{INSTRUCTOR}\nada\n{STUDENT}\nben\n"
    request = seen["request"]
    assert (request.host, request.port, request.graders) == ("localhost", 8000, 2)
    assert request.link == (INSTRUCTOR, STUDENT)
    assert not request.course.root.exists()  # what they did is gone
    assert sorted(hand_ins) == [("ada", "<m2>", b"{}"), ("ben", "<m2>", b"")]
    assert naps == [2.0, 2.0]
    assert lines == ["3 students hand in m2; what they do is gone when you end this"]
    built.release.unlink()
    later.release.unlink()
    with pytest.raises(
        KitError, match=r"^nothing is built here: run `autograder build`"
    ):
        serve_demo(Course(tmp_path), "localhost", 8000, 2, lines.append)
