"""Scores of notebooks without a hidden suite, from their outputs; and pages with names as text."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import nbformat
import pytest
from nbgrader.preprocessors import Execute
from traitlets.config import Config
from traitlets.utils.importstring import import_item

from autograder.basics.errors import UnreadableSubmission
from autograder.course import COURSE_FILE
from autograder.nbgrader import grading_pass, settings
from autograder.nbgrader.formgrader import (
    _as_text,
    _PagesOfCourse,
    _render,
    make_pages_safe,
)
from autograder.nbgrader.grading_pass import (
    ExecuteWithoutSuite,
    SaveScores,
    _has_unreadable_result,
)
from autograder.nbgrader.settings import _steps
from autograder.records.submission import Answer


def graded(*outputs: Any, kind: str = "code", **nbgrader: Any) -> Any:
    """A cell of 4 points with these outputs."""
    make = getattr(nbformat.v4, f"new_{kind}_cell")
    cell = make("assert True")
    cell.metadata["nbgrader"] = {
        "schema_version": 3,
        "grade_id": "check_double",
        "grade": True,
        "solution": False,
        "locked": True,
        "task": False,
        "points": 4,
        **nbgrader,
    }
    if kind == "code":
        cell.outputs = list(outputs)
    return cell


def shown(text: str | None) -> Any:
    data = {} if text is None else {"text/plain": text}
    return nbformat.v4.new_output("execute_result", data, execution_count=1)


def error() -> Any:
    return nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])


class Saved:
    """A submission that is handed in; `entry` and `problem` are what is saved of it."""

    entry: Any
    problem: str
    reading: Exception | None

    def __init__(self, course_folder: object, **place: object) -> None:
        assert (course_folder, place) == ("the course", {"notebook": "m1"})

    def read(self) -> Any:
        if Saved.reading is not None:
            raise Saved.reading
        written = (Answer("written_why", "", blank=True), Answer("written_how", "so"))
        return SimpleNamespace(student="ada", written=written, sha256="sha")

    def save(self, entry: Any) -> None:
        Saved.entry = entry

    def save_problem(self, problem: str) -> None:
        Saved.problem = problem


@pytest.fixture
def save(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Saves the scores of cells; gives the entry of the gradebook."""
    Saved.entry, Saved.problem, Saved.reading = None, "", None
    monkeypatch.setattr(grading_pass, "HandedIn", Saved)
    monkeypatch.setattr(grading_pass, "read_answers", lambda submission: {"a": "b"})
    step: Any = SaveScores()
    course = SimpleNamespace(coursedir="the course")
    monkeypatch.setattr(SaveScores, "parent", SimpleNamespace(parent=course))
    monkeypatch.setattr(SaveScores, "log", logging.getLogger("a test"))

    def run(*cells: Any) -> Any:
        notebook = nbformat.v4.new_notebook(cells=list(cells))
        resources = {"nbgrader": {"notebook": "m1"}}
        assert step.preprocess(notebook, resources) == (notebook, resources)
        return Saved.entry

    return run


@pytest.mark.parametrize(
    ("cell", "score"),
    [
        (graded(), 4.0),
        (graded(shown("2.5")), 2.5),
        (graded(shown("0")), 0.0),
        (graded(shown("4")), 4.0),
        (graded(error()), 0.0),
        (graded(error(), shown("3")), 0.0),
        # nbgrader would take these for full marks
        (graded(shown("array([1])")), None),
        (graded(shown("-1")), None),
        (graded(shown("nan")), None),
        (graded(shown("inf")), None),
        (graded(shown(None)), None),
        # more than there are
        (graded(shown("5")), None),
        (graded(kind="markdown"), None),
    ],
)
def test_a_score_is_an_outputs_or_waits_for_a_person(
    save: Any, cell: Any, score: float | None
) -> None:
    scores = save(cell, nbformat.v4.new_code_cell("x = 1")).scores
    assert scores.pop("written_why") == 0.0
    assert scores == ({} if score is None else {"check_double": score})


def test_an_entry_has_what_was_left_blank_and_the_answers(save: Any) -> None:
    entry = save()
    assert (entry.student, entry.scores) == ("ada", {"written_why": 0.0})
    assert entry.comments == {"written_why": "No response."}
    assert (entry.answers, entry.submission_sha256) == ({"a": "b"}, "sha")


def test_a_notebook_that_cannot_be_read_is_a_problem(save: Any) -> None:
    Saved.reading = UnreadableSubmission("m1.ipynb: is no notebook")
    assert save() is None
    assert Saved.problem == "m1.ipynb: is no notebook"


@pytest.mark.parametrize(
    ("cell", "is_unreadable"),
    [
        (graded(), False),
        (graded(shown("0")), False),
        (graded(shown("1e400")), True),
        (graded(shown("-0.5")), True),
        (graded(shown("2"), shown("text")), False),
        (graded(shown("text"), shown("2")), True),
        (graded(shown("text"), solution=True), False),
        (graded(shown("text"), error()), False),
        (graded(kind="markdown"), False),
    ],
)
def test_a_result_is_read_as_a_number_from_0_on(cell: Any, is_unreadable: bool) -> None:
    assert _has_unreadable_result(cell) is is_unreadable


def test_running_without_a_suite_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Execute, "preprocess", lambda _, *given: given)
    step: Any = ExecuteWithoutSuite()
    monkeypatch.setattr(ExecuteWithoutSuite, "log", logging.getLogger("a test"))
    resources = {"nbgrader": {"notebook": "m1"}}
    with caplog.at_level(logging.WARNING):
        assert step.preprocess("notebook", resources) == ("notebook", resources)
    (record,) = caplog.records
    assert record.getMessage() == (
        "m1 has no hidden suite: nbgrader runs it, without a sandbox"
    )


# pages of the formgrader


def test_names_are_text_in_pages_wherever_they_stand() -> None:
    values = {"name": "<b>", "number": 3, "inner": {"mail": '"&'}, "list": ["<i>"]}
    assert _as_text(values) == {
        "name": "&lt;b&gt;",
        "number": 3,
        "inner": {"mail": "&quot;&amp;"},
        "list": ["<i>"],
    }


def test_a_page_is_rendered_with_escaped_values() -> None:
    templates: list[str] = []

    def get_template(name: str) -> Any:
        templates.append(name)
        return SimpleNamespace(render=lambda **values: values)

    environment = SimpleNamespace(get_template=get_template)
    handler = SimpleNamespace(settings={"nbgrader_jinja2_env": environment})
    assert _render(handler, "page.html", student="<b>") == {"student": "&lt;b&gt;"}
    assert templates == ["page.html"]


def test_a_notebooks_page_has_the_courses_filters_and_escaped_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []

    class PlayedExporter:
        def __init__(self, config: Any) -> None:
            made.append(config)

        def from_filename(self, filename: str, resources: Any) -> Any:
            return filename, resources

    monkeypatch.setattr("nbconvert.exporters.HTMLExporter", PlayedExporter)
    formgrader = SimpleNamespace(config="the course's")
    handler = SimpleNamespace(settings={"nbgrader_formgrader": formgrader})
    pages = _PagesOfCourse(handler)
    assert pages.from_filename("m1.ipynb", {"last_name": "<b>"}) == (
        "m1.ipynb",
        {"last_name": "&lt;b&gt;"},
    )
    assert made == ["the course's"]


def test_nbgraders_handlers_get_both_where_there_is_a_formgrader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "nbgrader.server_extensions.formgrader.base"
    monkeypatch.delitem(sys.modules, name, raising=False)
    make_pages_safe()
    base: Any = ModuleType(name)
    base.BaseHandler = type("BaseHandler", (), {})
    monkeypatch.setitem(sys.modules, name, base)
    make_pages_safe()
    assert base.BaseHandler.render is _render
    assert base.BaseHandler.exporter.fget is _PagesOfCourse


# settings


def test_nbgrader_is_configured_for_the_course(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[str] = []
    for name in ("put_alembic_on_path", "make_pages_safe"):
        monkeypatch.setattr(settings, name, lambda name=name: done.append(name))
    monkeypatch.setattr(settings, "mirror", lambda course: done.append("mirror"))
    monkeypatch.setattr(settings, "unknown_names", lambda course: ["who is eve?"])
    (tmp_path / COURSE_FILE).touch()
    config = Config()
    settings.configure(config, tmp_path)
    assert sorted(done) == ["make_pages_safe", "mirror", "put_alembic_on_path"]
    assert capsys.readouterr().err == "who is eve?\n"
    assert config.CourseDirectory.root == str(tmp_path)
    assert config.GenerateAssignment.force is True


def test_every_step_that_the_settings_name_is_there() -> None:
    config = Config()
    _steps(config)
    names: list[str] = []
    for section in config.values():
        for value in section.values():
            names += [value] if isinstance(value, str) else []
            names += value if isinstance(value, list) else []
    assert len(names) > 20
    for name in names:
        assert callable(import_item(name)), name
    exporters = {
        command: settings["exporter_class"].rpartition(".")[2]
        for command, settings in config.items()
        if "exporter_class" in settings
    }
    assert exporters == {
        "GenerateAssignment": "BuiltExporter",
        "GenerateSolution": "BuiltExporter",
        "Autograde": "SubmissionExporter",
        "GenerateFeedback": "FeedbackExporter",
    }
    assert config.HTMLExporter.sanitize_html is True
    assert config.GenerateAssignment.force is config.GenerateSolution.force is True
