"""The content of each export, and what the command tells beside it; writers of files are played."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stored_class import course, request, result

from autograder.basics.errors import BadSuite, KitError
from autograder.course import Assignment, Course
from autograder.course.course import Grading
from autograder.marks.late_policy import Lateness
from autograder.marks.marks import Mark, mark_from_result
from autograder.platforms.platform import Platform
from autograder.records.model import Graded, Speed
from autograder.reporting import marks_commands
from autograder.reporting.marks_commands import _content, _read_roster, read_uses

__all__ = ["course"]

ADA = mark_from_result(result("ada"))
BOB = Mark("bob", "could not be graded", note="no notebook")
CYD = Mark("cyd", "handed in nothing")
MARKS = [ADA, BOB, CYD]
UNFINISHED = [
    "without a mark, could not be graded: 1: bob",
    "without a mark, handed in nothing: 1: cyd",
]


class Content:
    """What `_content` makes of a request, and the lines that it tells."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self.lines: list[str] = []

    def __call__(
        self, format: str, marks: list[Mark] = MARKS, file: Any = None, **options: Any
    ) -> Any:
        timing = options.pop("timing", ())
        asked = request(self.course, format, **options)
        return _content(asked, marks, timing, file, self.lines.append)


@pytest.fixture
def content(course: Course) -> Content:
    return Content(course)


def play(monkeypatch: pytest.MonkeyPatch, name: str, answer: Any) -> list[Any]:
    """Replace a function of the module by one with this answer; the calls that it got."""
    calls: list[Any] = []

    def played(*arguments: Any, **options: Any) -> Any:
        calls.append((*arguments, options))
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(marks_commands, name, played)
    return calls


def play_platform(
    monkeypatch: pytest.MonkeyPatch,
    *,
    feedback_name: Callable[[Mark, str], str] | None = None,
    make: Any = None,
) -> None:
    """Moodle, with or without names for feedback and an own file."""
    own_file: Any = SimpleNamespace(make=make)
    platform = Platform(feedback_name=feedback_name, own_file=own_file)
    monkeypatch.setattr(marks_commands, "platforms", lambda: {"moodle": platform})


def test_junit_has_a_reason_for_everybody_without_a_result(
    content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note, or else the status. A group's result stands under each member's name."""
    member = dataclasses.replace(ADA, student="dan", group="Team 1")
    calls = play(monkeypatch, "junit_xml", ["<xml>"])
    assert content("junit", [*MARKS, member]) == ["<xml>"]
    ((results, problems, _),) = calls
    assert [each.student for each in results] == ["ada", "dan"]
    assert problems == [
        Graded("bob", problem="no notebook"),
        Graded("cyd", problem="handed in nothing"),
    ]
    assert content.lines == []


def test_feedback_is_packed_under_the_platforms_names(
    content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    def name(mark: Mark, assignment: str) -> str:
        return mark.student

    play_platform(monkeypatch, feedback_name=name)
    calls = play(monkeypatch, "pack_feedback", ([b"PK"], ("bob", "cyd")))
    assert content("moodle-feedback") == [b"PK"]
    assert calls == [(MARKS, "m1", content.course.feedback, name, {})]
    assert content.lines == ["without a name that moodle knows: 2: bob, cyd"]
    play(monkeypatch, "pack_feedback", ([b"PK"], ()))
    content("moodle-feedback")
    assert len(content.lines) == 1


@pytest.mark.parametrize(
    ("late", "speeds", "columns"),
    [
        (None, (), {"late": False, "bonus": None}),
        (Lateness(60.0), (), {"late": True, "bonus": None}),
        (None, (Speed("small", 1.0, 4.0),), {"late": False, "bonus": {"ada": 5.0}}),
    ],
)
def test_a_table_has_columns_for_lateness_and_speed_where_there_is_some(
    content: Content,
    monkeypatch: pytest.MonkeyPatch,
    late: Lateness | None,
    speeds: tuple[Speed, ...],
    columns: dict[str, object],
) -> None:
    bonus = Grading(speed_bonus=5.0, speed_bonus_at=4.0)
    content.course = dataclasses.replace(content.course, grading=bonus)
    calls = play(monkeypatch, "render_student_csv", "table")
    marks = [dataclasses.replace(ADA, late=late), BOB, CYD]
    timing = [Graded("ada", speeds=speeds)]
    assert content("csv", marks, timing=timing, provisional=True) == ["table"]
    assert calls == [(marks, {"provisional": True, **columns})]
    assert content.lines == UNFINISHED


def test_a_platforms_own_file_is_filled_and_its_changes_are_told(
    content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    titles: list[str] = []

    def lines(title: str) -> list[str]:
        titles.append(title)
        return ["ada gets 1", "note"]

    difference = SimpleNamespace(lines=lines)
    calls = play(monkeypatch, "fill", ("filled", difference))
    assert content("moodle", file="their file", provisional=True) == ["filled"]
    expected = (content.course, "m1", MARKS, "their file", {"provisional": True})
    assert calls == [expected]
    assert titles == ["Moodle"]
    assert content.lines == [*UNFINISHED, "ada gets 1", "note"]


def test_a_file_that_cannot_be_filled_is_named(
    content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    roster = content.course.root / "theirs.csv"
    for error in (ValueError("another maximum"), KitError("another maximum")):
        play(monkeypatch, "fill", error)
        with pytest.raises(KitError) as refused:
            content("moodle", file="their file", roster=roster)
        assert str(refused.value) == f"{roster}: another maximum"
    assert content.lines == []


def test_without_a_platforms_own_file_one_is_made_where_it_takes_one(
    content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def make(*given: Any) -> Any:
        made.append(given)
        return "made", SimpleNamespace(lines=lambda title: [])

    play_platform(monkeypatch, make=make)
    assert content("moodle", column="HW 1", provisional=True) == ["made"]
    assert made == [(MARKS, "m1", "HW 1", True)]
    words = (
        "give the platform's own file as `--roster`: without it nobody's row is known"
    )
    play_platform(monkeypatch)
    with pytest.raises(KitError) as refused:
        content("moodle")
    assert str(refused.value) == f"moodle: {words}"
    monkeypatch.setattr(marks_commands, "platforms", dict)
    with pytest.raises(KitError) as refused:
        content("edx")
    assert str(refused.value) == f"edx: {words}"


def test_a_roster_is_read_for_its_column(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = play(monkeypatch, "read_platform_file", "their file")
    path = Path("theirs.csv")
    assert _read_roster(request(course, "canvas", roster=path, column="HW 1"))
    assert calls == [("canvas", path, "m1", "HW 1", {})]
    assert _read_roster(request(course, "canvas-feedback", roster=path)) is None
    assert len(calls) == 1


def test_a_suite_that_does_not_import_costs_pages_a_sentence(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of its own imports the suite; here its answer is played."""
    answers: list[Any] = [BadSuite("test_m1.py: no tests"), {"half": ("double",)}]
    processes: list[Any] = []

    class PlayedExecutor:
        def __init__(self, count: int, mp_context: Any) -> None:
            processes.append((count, mp_context.get_start_method()))

        def __enter__(self) -> PlayedExecutor:
            return self

        def __exit__(self, *_: object) -> None: ...

        def submit(self, function: Any, suite: Path) -> Any:
            answer = answers.pop(0)

            def get() -> Any:
                if isinstance(answer, BadSuite):
                    raise answer
                return answer

            return SimpleNamespace(result=get)

    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", PlayedExecutor)
    lines: list[str] = []
    assignment = Assignment("m1", course.root)
    assert read_uses(assignment, lines.append) == {}
    (line,) = lines
    assert line.startswith("pages do not say which question carried points come from: ")
    assert line.endswith("test_m1.py: no tests")
    assert read_uses(assignment, lines.append) == {"half": ("double",)}
    assert processes == [(1, "spawn")] * 2
