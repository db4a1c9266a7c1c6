"""The gradebook on a server of PostgreSQL: what stands in it is what would stand in the file."""

from __future__ import annotations

import csv
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from nbgrader.api import Base
from nbgrader.apps import ExportApp
from nbgrader.coursedir import CourseDirectory
from nbgrader_course import TinyCourse, result_for
from postgresql_server import postgresql
from sqlalchemy import create_engine
from traitlets.config import Config

from autograder.basics.errors import BadCourseFile, KitError
from autograder.cli.commands import main
from autograder.course import Course, load_course, settings_without_people
from autograder.course.roster import Person
from autograder.marks.late_policy import GradebookTimes
from autograder.nbgrader.class_list import read_gradebook_times, write_class_list
from autograder.nbgrader.csv_exporter import SafeCsvExport
from autograder.nbgrader.gradebook import fill_gradebook, open_gradebook
from autograder.nbgrader.manual_grades import read_manual_grades
from autograder.records.model import Graded, ManualGrades
from autograder.records.results import write_result

__all__ = ["postgresql"]
AT = "2026-03-01 10:00:00 UTC"


@pytest.fixture
def on_server(tiny: TinyCourse, postgresql: Callable[[], str]) -> Callable[..., None]:
    """Move the gradebook to the server; with nbgrader's tables, since it starts programs to make
    its own.
    """

    def move(*, empty: bool = False) -> None:
        address = postgresql()
        if not empty:
            engine = create_engine(address)
            Base.metadata.create_all(engine)
            engine.dispose()
        text = (tiny.root / "course.toml").read_text(encoding="utf-8")
        (tiny.root / "course.toml").write_text(
            f'{text}\n[gradebook]\ndb_url = "{address}"\n', encoding="utf-8"
        )
        (tiny.root / "gradebook.db").unlink()

    return move


def fill(course: Course, half: float) -> None:
    results = [result_for("ada", half), result_for("ben–ß", 3.0)]
    times = {result.student: AT for result in results}
    problems = {"cay": "not a notebook % or one"}
    fill_gradebook(
        course,
        course.assignment("tiny"),
        [(result, None) for result in results],
        times,
        problems,
    )


def everything(tiny: TinyCourse) -> tuple[object, dict[str, ManualGrades]]:
    rows = {
        student: (tiny.grades(student), tiny.comments(student))
        for student in ("ada", "ben–ß", "cay")
    }
    return rows, read_manual_grades(tiny.course.db_url, "tiny")


def test_a_server_holds_what_the_file_would(
    tiny: TinyCourse, on_server: Callable[..., None]
) -> None:
    """Filled, scored by hand, and filled again with another result."""

    def a_term() -> tuple[object, dict[str, ManualGrades]]:
        fill(tiny.course, 1.0)
        tiny.score_by_hand("ada", "written_why", 2.5)
        fill(tiny.course, 0.0)
        fill(tiny.course, 0.0)
        return everything(tiny)

    in_file = a_term()
    on_server(empty=True)
    assert read_manual_grades(tiny.course.db_url, "tiny") == {}
    assert a_term() == in_file
    assert in_file[1]["ada"].written[0].points == 2.5
    assert not (tiny.root / "gradebook.db").exists()


def test_due_times_and_extensions(
    tiny: TinyCourse, on_server: Callable[..., None]
) -> None:
    dates = '\n[due]\ntiny = "2026-03-01 09:00 UTC"\n[extensions]\ntiny = { ada = 2 }\n'
    (tiny.root / "course.toml").write_text(
        (tiny.root / "course.toml").read_text(encoding="utf-8") + dates
    )

    def told() -> object:
        fill(tiny.course, 1.0)
        people = {"ada": Person("ada", "Ada Lovelace", "ada@example.org", "", {})}
        for _ in range(2):
            write_class_list(
                tiny.course, tiny.course.assignment("tiny"), people, tiny.course.db_url
            )
        with open_gradebook(tiny.course) as gradebook:
            extensions = {
                row.student_id: row.extension
                for row in gradebook.assignment_submissions("tiny")
            }
            gradebook.grant_extension("tiny", "ada", days=3)
        return extensions, read_gradebook_times(tiny.course)

    in_file = told()
    due = datetime(2026, 3, 1, 9, tzinfo=UTC)
    extensions = {"ada": timedelta(days=2), "ben–ß": None, "cay": None}
    handed_in = dict.fromkeys(("ada", "ben–ß"), due + timedelta(hours=1))
    times = GradebookTimes(due, {"ada": timedelta(days=3)}, handed_in)
    assert in_file == (extensions, {"tiny": times})
    on_server()
    assert told() == in_file


def test_nbgrader_grades_into_it(
    tiny: TinyCourse,
    on_server: Callable[..., None],
    graded: dict[str, Graded | Exception],
) -> None:
    """nbgrader takes the address from the course's own settings."""
    on_server()
    tiny.hand_in("ada", at=AT)
    tiny.autograde()
    assert tiny.grades("ada")["check_double"] == (3.0, None, False)
    assert "tiny" in tiny.feedback("ada")
    app = ExportApp(config=Config())
    app.coursedir = CourseDirectory(root=str(tiny.root))
    with open_gradebook(tiny.course) as gradebook:
        SafeCsvExport(parent=app, to="grades.csv").export(gradebook)
    with Path("grades.csv").open(encoding="utf-8", newline="") as file:
        (ada,) = csv.DictReader(file)
    assert (ada["student_id"], ada["score"], ada["needs_manual_grade"]) == (
        "ada",
        "4",
        "no",
    )


def test_the_command_fills_it_and_shows_no_password(
    tiny: TinyCourse, on_server: Callable[..., None]
) -> None:
    on_server()
    write_result(tiny.root / "results", result_for("ada"))
    done = CliRunner().invoke(main, ["export", "tiny", "--format", "gradebook"])
    assert done.exit_code == 0, done.output
    assert (
        "1 results of tiny in postgresql+psycopg://postgres:***@/course" in done.stdout
    )
    assert "secret" not in done.output
    done = CliRunner().invoke(main, ["export", "tiny", "--format", "csv"])
    assert "without a mark, waits for a person: 1: ada" in done.stderr


def test_a_server_that_is_away_is_named(tiny: TinyCourse) -> None:
    away = "postgresql+psycopg://ada:secret@127.0.0.1:9/course"
    text = (tiny.root / "course.toml").read_text(encoding="utf-8")
    (tiny.root / "course.toml").write_text(
        f'{text}\n[gradebook]\ndb_url = "{away}"\n', encoding="utf-8"
    )
    with pytest.raises(
        KitError,
        match=r"postgresql\+psycopg://ada:\*\*\*@127.0.0.1:9/course: .*refused",
    ):
        read_manual_grades(tiny.course.db_url, "tiny")
    write_result(tiny.root / "results", result_for("ada"))
    done = CliRunner().invoke(main, ["export", "tiny", "--format", "gradebook"])
    assert done.exit_code == 2
    assert "secret" not in done.output
    assert "/course: the database cannot be used (" in done.stderr.splitlines()[-1]
    assert "secret" not in settings_without_people(tiny.course)


@pytest.mark.parametrize(
    "address",
    ["mysql://host/course", "course", "sqlite:///other.db", "postgresql://a b"],
)
def test_other_addresses_are_refused(tmp_path: Path, address: str) -> None:
    (tmp_path / "course.toml").write_text(
        f'[gradebook]\ndb_url = "{address}"\n', encoding="utf-8"
    )
    with pytest.raises(BadCourseFile, match="address of a database"):
        load_course(tmp_path)
