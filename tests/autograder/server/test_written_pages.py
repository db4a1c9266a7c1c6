"""The pages on which written answers are marked; gradebook and notebooks are played."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.exceptions import HTTPException

from autograder.basics.errors import KitError
from autograder.marks.rubric import RubricItem
from autograder.nbgrader.manual_grades import HandMark
from autograder.server import written_pages
from autograder.server.written_pages import (
    WrittenAnswer,
    answers_to,
    bring_in,
    code_of,
    list_page,
    question_page,
    save_mark,
    written_marks,
)

ASSIGNMENT: Any = SimpleNamespace(name="m1")
REQUEST: Any = SimpleNamespace(path_params={"question": "why"})
GUIDE = (RubricItem(1, 2.0, "names the inverse"),)


def mark(student: str, question: str = "why", **fields: Any) -> HandMark:
    default: dict[str, Any] = {"written": True, "waits": True}
    return HandMark(student, question, 5.0, **{**default, **fields})


class Played:
    """The course at work: what pages showed, marks that were written, and lines of the log."""

    def __init__(self) -> None:
        marks = [mark("ada"), mark("ben"), mark("cyd"), mark("cyd", "how", waits=False)]
        marks.append(mark("ada", "double", written=False))
        self.marks = {(each.student, each.question): each for each in marks}
        self.handed_in: dict[str, dict[str, str] | None] = {
            "ada": {"written_why": "It undoes it."},
            "ben": None,
            "cyd": {"written_how": "So."},
            "dan": {"written_why": "nobody marks this"},
        }
        self.pages: list[Any] = []
        self.written: list[Any] = []
        self.log: list[tuple[str, ...]] = []
        self.exports: list[Any] = []
        self.problem: KitError | None = None
        self.office: Any = SimpleNamespace(
            course=SimpleNamespace(results="results"),
            people=SimpleNamespace(log=lambda *line: self.log.append(line)),
            stored_marks=lambda assignment: f"marks of {assignment.name}",
        )

    def read_hand_marks(self, course: Any, assignment: Any) -> Any:
        if self.problem:
            raise self.problem
        return self.marks

    def graded_submissions(self, course: Any, assignment: Any, results: Any) -> Any:
        assert results == ["the results"]
        for student, texts in self.handed_in.items():
            submission = None
            if texts is not None:
                written = [SimpleNamespace(id=id_, text=texts[id_]) for id_ in texts]
                submission = SimpleNamespace(written=written)
            yield SimpleNamespace(student=student), submission

    def show(self, request: Any, template: str, **values: Any) -> str:
        self.pages.append((template, values))
        return template

    def export(self, marks: str, to: None) -> Any:
        self.exports.append((marks, to))
        yield "2 results"


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    played = Played()
    instead: dict[str, Any] = {
        "read_hand_marks": played.read_hand_marks,
        "graded_submissions": played.graded_submissions,
        "read_results": lambda folder, name, tell: ["the results"],
        "read_rubrics": lambda assignment: {"why": GUIDE},
        "write_hand_marks": lambda *given: played.written.append(given),
        "export_gradebook": played.export,
        "instructor_of": lambda request: None,
        "assignment_of": lambda request: ASSIGNMENT,
        "office_of": lambda request: played.office,
        "page": played.show,
        "go_to": lambda request, path: path,
    }
    for name, function in instead.items():
        monkeypatch.setattr(written_pages, name, function)
    return played


def form(**fields: str) -> Any:
    return SimpleNamespace(text=lambda name: fields.get(name, ""))


PROF: Any = SimpleNamespace(student="prof")


def test_a_code_stands_for_a_student_in_one_assignment() -> None:
    """Twelve digits: of a thousand students two have one code once in half a billion courses."""
    codes = {code_of(name, student) for name in ("m1", "m2") for student in ("a", "b")}
    assert len(codes) == 4
    assert {len(code) for code in codes} == {12}


def test_marks_of_written_answers_stand_by_question(played: Played) -> None:
    marks = written_marks(played.office, ASSIGNMENT)
    assert {name: [each.student for each in marks[name]] for name in marks} == {
        "why": ["ada", "ben", "cyd"],
        "how": ["cyd"],
    }


def test_answers_stand_by_code_and_those_that_cannot_be_read_are_counted(
    played: Played,
) -> None:
    """Ben's notebook is not what was graded; cyd left the answer out; nobody has dan's mark."""
    answers, unread = answers_to(played.office, ASSIGNMENT, "why")
    assert unread == 1
    by_code = {answer.code: answer for answer in answers}
    assert list(by_code) == sorted(by_code)
    assert by_code == {
        code_of("m1", student): WrittenAnswer(
            code_of("m1", student), text, mark(student)
        )
        for student, text in (("ada", "It undoes it."), ("cyd", ""))
    }
    assert answers_to(played.office, ASSIGNMENT, "other") == ([], 0)


def test_a_list_says_how_many_answers_wait(played: Played) -> None:
    list_page(REQUEST)
    played.problem = KitError("no gradebook")
    list_page(REQUEST)
    values = {"assignment": "m1", "rows": [("why", 3, 3), ("how", 1, 0)], "problem": ""}
    nothing = "No answers have been brought in yet."
    assert played.pages == [
        ("written.html", values),
        ("written.html", {**values, "rows": [], "problem": nothing}),
    ]


def test_a_page_of_answers_has_the_guide(played: Played) -> None:
    question_page(REQUEST)
    question_page(REQUEST, "points are from 0 to 5")
    answers, unread = answers_to(played.office, ASSIGNMENT, "why")
    values = {
        "status": 200,
        "assignment": "m1",
        "question": "why",
        "answers": answers,
        "unread": unread,
        "guide": GUIDE,
        "problem": "",
    }
    refused = {"status": 400, "problem": "points are from 0 to 5"}
    assert played.pages == [
        ("marking.html", values),
        ("marking.html", {**values, **refused}),
    ]


def test_a_question_that_nobody_answered_has_no_page(played: Played) -> None:
    """One that only unreadable notebooks answered has a page, which counts them."""
    played.handed_in = {"ben": None}
    assert question_page(REQUEST)
    assert played.pages[0][1]["unread"] == 1
    other: Any = SimpleNamespace(path_params={"question": "other"})
    for _ in range(2):
        with pytest.raises(HTTPException) as refused:
            question_page(other)
        assert refused.value.status_code == 404
        played.problem = KitError("no gradebook")


def test_a_mark_is_written_and_logged(played: Played) -> None:
    save: Any = save_mark.__wrapped__  # type: ignore[attr-defined]
    code = code_of("m1", "cyd")
    path = save(REQUEST, PROF, form(code=code, points="4", comment="Nice."))
    assert path == f"/class/m1/written/why#{code}"
    given = dataclasses.replace(mark("cyd"), points=4.0, comment="Nice.", waits=False)
    assert played.written == [(played.office.course, ASSIGNMENT, [given])]
    played.marks["cyd", "why"] = given
    save(REQUEST, PROF, form(code=code, comment="see #1"))
    assert played.log == [
        ("prof", "mark", "m1, why, cyd: no mark became 4 points"),
        ("prof", "mark", "m1, why, cyd: 4 points became 2 points"),
    ]


def test_a_mark_that_is_none_is_refused_on_the_page(played: Played) -> None:
    save: Any = save_mark.__wrapped__  # type: ignore[attr-defined]
    assert save(REQUEST, PROF, form(code=code_of("m1", "cyd"), points="6"))
    ((template, values),) = played.pages
    assert (template, values["problem"]) == ("marking.html", "points are from 0 to 5")
    with pytest.raises(HTTPException) as refused:
        save(REQUEST, PROF, form(code=code_of("m1", "dan"), points="1"))
    assert refused.value.status_code == 404
    assert (played.written, played.log) == ([], [])


def test_answers_are_brought_in_from_the_attempts_that_count(played: Played) -> None:
    fill: Any = bring_in.__wrapped__  # type: ignore[attr-defined]
    assert fill(REQUEST, PROF, form()) == "/class/m1/written"
    assert played.exports == [("marks of m1", None)]
    assert played.log == [("prof", "gradebook", "m1")]
