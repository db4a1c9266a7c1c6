"""What people gave in the formgrader, read from nbgrader's database for reports and exports.

Read with SQL and without nbgrader, whose import takes seconds that every report would pay, and without a chance to
change anything.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from autograder.errors import KitError
from autograder.model import ManualGrades, ManualScore

_SCORES = """
SELECT submission.student_id AS student, cell.name AS name, grade.auto_score AS auto_score,
       grade.manual_score AS manual_score, COALESCE(grade.extra_credit, 0) AS extra_credit,
       grade.needs_manual_grade AS waits, COALESCE(graded.max_score, task.max_score, 0) AS max_points,
       comment.manual_comment AS manual_comment, comment.auto_comment AS auto_comment,
       notebook.id AS notebook_id, cell.id AS cell_id,
       cell.type = 'TaskCell' OR answer.id IS NOT NULL AS written
FROM assignment
JOIN submitted_assignment AS submission ON submission.assignment_id = assignment.id
JOIN submitted_notebook AS notebook ON notebook.assignment_id = submission.id
JOIN grade ON grade.notebook_id = notebook.id
JOIN base_cell AS cell ON cell.id = grade.cell_id
LEFT JOIN grade_cells AS graded ON graded.id = cell.id
LEFT JOIN task_cells AS task ON task.id = cell.id
LEFT JOIN base_cell AS answer
  ON answer.notebook_id = cell.notebook_id AND answer.name = cell.name AND answer.type = 'SolutionCell'
LEFT JOIN base_cell AS commented
  ON commented.notebook_id = cell.notebook_id AND commented.type IN ('SolutionCell', 'TaskCell')
  AND commented.name = CASE WHEN cell.name LIKE 'check!_%' ESCAPE '!' THEN SUBSTR(cell.name, LENGTH('check_') + 1)
    ELSE cell.name END
LEFT JOIN comment ON comment.notebook_id = notebook.id AND comment.cell_id = commented.id
WHERE assignment.name = :assignment
ORDER BY student, name
"""


_ANSWERS = "SELECT notebook_id, cell_id, sha256 FROM attention_kit_answer"
_SUBMISSIONS = "SELECT notebook_id, '' AS cell_id, sha256 FROM attention_kit_submission"
"""The kit's own tables (`answers.py`); a gradebook that was filled by an older version has none of them."""

_Row = Mapping[str, Any] | sqlite3.Row
_SQLITE = "sqlite:///"
_Hashes = Mapping[tuple[str, str], str]
"""(submitted notebook, cell) → hash of the answer; the cell is "" for the hash of the notebook."""


def read_manual_grades(db_url: str, assignment: str) -> dict[str, ManualGrades]:
    """What people gave for one assignment, by student.

    Args:
        db_url: the database; where there is none, nobody has graded anything.
        assignment: its name.

    Returns:
        Everybody who has a submission in the gradebook. Who has none is not in it: their written answers wait.

    Raises:
        KitError: what lies there is no gradebook, another program holds it, or no server answers.
    """
    if db_url.startswith(_SQLITE):
        rows, hashes = _of_file(Path(db_url.removeprefix(_SQLITE)), assignment)
    else:
        rows, hashes = _of_server(db_url, assignment)
    found: dict[str, tuple[list[ManualScore], list[ManualScore], dict[str, float]]] = {}
    submissions: dict[str, str] = {}
    for row in rows:
        written, questions, automatic = found.setdefault(row["student"], ([], [], {}))
        submissions[row["student"]] = hashes.get((row["notebook_id"], ""), "")
        answer = hashes.get((row["notebook_id"], row["cell_id"]), "")
        if row["written"]:
            written.append(_written(row, answer))
            continue
        automatic[row["name"].removeprefix("check_")] = row["auto_score"] or 0.0
        if (score := _question(row, answer)) is not None:
            questions.append(score)
    return {
        student: ManualGrades(student, tuple(written), tuple(questions), automatic, submissions[student])
        for student, (written, questions, automatic) in found.items()
    }


def _hashes(rows: Sequence[_Row]) -> dict[tuple[str, str], str]:
    return {(row["notebook_id"], row["cell_id"]): row["sha256"] for row in rows}


def _of_file(gradebook: Path, assignment: str) -> tuple[Sequence[_Row], _Hashes]:
    if not gradebook.is_file():
        return [], {}
    try:
        with closing(sqlite3.connect(f"{gradebook.resolve().as_uri()}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            rows = database.execute(_SCORES, {"assignment": assignment}).fetchall()
            tables = {row["name"] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            hashes: dict[tuple[str, str], str] = {}
            for table, query in (("attention_kit_answer", _ANSWERS), ("attention_kit_submission", _SUBMISSIONS)):
                if table in tables:
                    hashes |= _hashes(database.execute(query).fetchall())
            return rows, hashes
    except sqlite3.Error as error:
        raise KitError(f"{gradebook}: people's scores cannot be read from it ({error})") from error


def _of_server(db_url: str, assignment: str) -> tuple[Sequence[_Row], _Hashes]:
    from sqlalchemy import create_engine, inspect, text
    from sqlalchemy.exc import SQLAlchemyError

    try:
        engine = create_engine(db_url)
        try:
            with engine.connect() as connection:
                tables = inspect(connection).get_table_names()
                if "submitted_assignment" not in tables:
                    return [], {}  # nothing was exported to it yet
                rows: Sequence[_Row] = connection.execute(text(_SCORES), {"assignment": assignment}).mappings().all()
                hashes: dict[tuple[str, str], str] = {}
                for table, query in (("attention_kit_answer", _ANSWERS), ("attention_kit_submission", _SUBMISSIONS)):
                    if table in tables:
                        hashes |= _hashes(connection.execute(text(query)).mappings().all())
                return rows, hashes
        finally:
            engine.dispose()
    except SQLAlchemyError as error:
        said = str(getattr(error, "orig", None) or error).split("\n")[0]
        raise KitError(f"{engine.url!r}: people's scores cannot be read from it ({said})") from error


def _written(row: _Row, answer: str) -> ManualScore:
    points = row["auto_score"] if row["manual_score"] is None else row["manual_score"]
    return ManualScore(
        name=row["name"].removeprefix("written_"),
        max_points=row["max_points"],
        points=points,
        extra_credit=row["extra_credit"],
        comment=row["manual_comment"] or row["auto_comment"] or "",
        waits=bool(row["waits"]),
        earlier=bool(row["waits"]) and row["manual_score"] is not None,
        answer=answer,
    )


def _question(row: _Row, answer: str) -> ManualScore | None:
    """A question that a person had to do with. The automatic comment is in the result already."""
    comment = row["manual_comment"] or ""
    if row["manual_score"] is None and not (row["extra_credit"] or comment or row["waits"]):
        return None
    return ManualScore(
        name=row["name"].removeprefix("check_"),
        max_points=row["max_points"],
        points=row["manual_score"],
        extra_credit=row["extra_credit"],
        comment=comment,
        waits=bool(row["waits"]),
        earlier=bool(row["waits"]) and row["manual_score"] is not None,
        answer=answer,
    )
