"""The kit's own tables in nbgrader's database, and errors of the database: on a file or a server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from memory_gradebook import db
from sqlalchemy import String, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from autograder.basics.errors import KitError
from autograder.course import About, Course
from autograder.course.course import GradebookAddress
from autograder.nbgrader import answers, gradebook, gradebook_times, manual_grades

__all__ = ["db"]


@pytest.mark.parametrize(
    "address", ["sqlite:////course/gradebook.db", "postgresql://prof:pass@db/course"]
)
def test_an_error_of_the_database_names_the_gradebook(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """The course's own, or another that a command names; without the password."""

    def refuse(url: str, course_id: str) -> Any:
        assert (url, course_id) == (address, "attention-kit")
        raise OperationalError("", {}, ValueError("locked"))

    monkeypatch.setattr(gradebook, "Gradebook", refuse)
    course = Course(
        Path("/c"), About("Attention Kit"), on_server=GradebookAddress(address)
    )
    for named in ("", address):
        with (
            pytest.raises(OperationalError) as caught,
            gradebook.open_gradebook(course, named),
        ):
            pass
        shown = address.removeprefix("sqlite:///").replace(":pass@", ":***@")
        assert caught.value.__notes__ == [shown]


def test_the_kits_tables_have_room_for_ids_and_hashes() -> None:
    """PostgreSQL refuses what is longer. nbgrader's ids are 32 letters, and SHA-256 is 64."""
    tables = [answers._ANSWERS, answers._SUBMISSIONS, gradebook_times._WRITTEN]
    lengths = {
        f"{table.name}.{column.name}": column.type.length
        for table in tables
        for column in table.columns
        if isinstance(column.type, String)
    }
    assert lengths == {
        "attention_kit_answer.notebook_id": 32,
        "attention_kit_answer.cell_id": 32,
        "attention_kit_answer.sha256": 64,
        "attention_kit_submission.notebook_id": 32,
        "attention_kit_submission.sha256": 64,
        "attention_kit_extension.submission_id": 32,
    }
    keys = [[column.name for column in table.primary_key] for table in tables]
    assert keys == [["notebook_id", "cell_id"], ["notebook_id"], ["submission_id"]]
    needed = {
        f"{table.name}.{column.name}"
        for table in tables
        for column in table.columns
        if not column.nullable
    }
    assert needed == {*lengths, "attention_kit_extension.seconds"}


def test_an_answer_is_new_until_it_is_stored(db: Session) -> None:
    """Two notebooks of one cell; what another batch stored stays."""
    first = {("n1", "c"): "Since.", ("n2", "c"): "Because."}
    assert answers.store_answers(db, first, {"n1": "h1", "n2": ""}) == set(first)
    assert answers.store_answers(db, first, {"n1": "h1", "n2": ""}) == set()
    other = {("n1", "c"): "Since not.", ("n1", "d"): "More."}
    assert answers.store_answers(db, other, {"n1": "h3"}) == set(other)
    assert answers.store_answers(db, first, {"n1": "h1", "n2": "h2"}) == {("n1", "c")}
    stored = {
        (row.notebook_id, row.cell_id): row.sha256
        for row in db.execute(select(answers._ANSWERS))
    }
    assert stored == {
        ("n1", "c"): answers.answer_sha256("Since."),
        ("n1", "d"): answers.answer_sha256("More."),
        ("n2", "c"): answers.answer_sha256("Because."),
    }
    submissions = {tuple(row) for row in db.execute(select(answers._SUBMISSIONS))}
    assert submissions == {("n1", "h1"), ("n2", "h2")}


@pytest.mark.parametrize(
    ("address", "is_file"), [("sqlite:///{file}", True), ("postgresql://db/c", False)]
)
def test_a_database_on_a_server_may_be_empty_and_a_file_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str, is_file: bool
) -> None:
    file = tmp_path / "gradebook.db"
    address = address.format(file=file)
    asked: list[object] = []

    @contextlib.contextmanager
    def connect() -> Iterator[str]:
        yield "connection"

    def query(connection: str, assignment: str, *, may_be_empty: bool) -> list[Any]:
        asked.append((connection, assignment, may_be_empty))
        if assignment == "locked":
            raise OperationalError("", {}, ValueError("it is locked\nby another"))
        return ["a mark"]

    def engine(place: object) -> Any:
        asked.append(place)
        return SimpleNamespace(connect=connect, dispose=lambda: asked.append("end"))

    monkeypatch.setattr(manual_grades, "_engine", engine)
    monkeypatch.setattr(manual_grades, "_query", query)
    read: Any = manual_grades._stored_marks
    assert read(address, "m1") == ([] if is_file else ["a mark"])
    assert asked == ([] if is_file else [address, ("connection", "m1", True), "end"])
    file.touch()
    asked.clear()
    place = file if is_file else address
    assert read(address, "m1") == ["a mark"]
    assert asked == [place, ("connection", "m1", not is_file), "end"]
    with pytest.raises(KitError) as caught:
        read(address, "locked")
    assert str(caught.value) == (
        f"{place}: people's scores cannot be read from it (it is locked)"
    )
    assert asked[-1] == "end"
