"""Downloads whose notebooks hold the points that they are worth: each mark then tells whose work it
was given for.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from autograder.course import Course
from autograder.intake.find import find_submissions
from autograder.platforms.collect import collect
from autograder.records.model import QuestionResult, Result, TestOutcome
from autograder.records.results import write_result
from autograder.reporting.marks_commands import ExportRequest, export_command


def write_csv(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def take_in(
    course: Course,
    name: str,
    origin: str,
    works: Mapping[str, float | str],
    roster: Path | None = None,
) -> list[str]:
    """Collect a download: by the file's path, the points of the notebook, or the text of a file
    beside them.
    """
    archive = course.root / "download.zip"
    with zipfile.ZipFile(archive, "w") as download:
        for path, points in works.items():
            download.writestr(
                path,
                points if isinstance(points, str) else json.dumps({"points": points}),
            )
    return collect(course, course.assignment(name), archive, origin, roster)


def grade(course: Course, name: str) -> None:
    """What grading would do: each notebook gets the points that it holds."""
    for found in find_submissions(course, course.assignment(name), []):
        data = found.path.read_bytes()
        points = json.loads(data)["points"]
        sha = hashlib.sha256(data).hexdigest()
        test = TestOutcome("test_all", "failed", points, 1000.0)
        question = QuestionResult("all", points, 1000.0, 0.0, None, (test,))
        write_result(
            course.results,
            Result(
                name,
                found.student,
                sha,
                "suite",
                "strict",
                points,
                1000.0,
                (question,),
                (),
            ),
        )


def exported(
    course: Course, name: str, format_: str, roster: Path | None = None
) -> list[dict[str, str]]:
    request = ExportRequest(
        course, course.assignment(name), course.results, format_, roster=roster
    )
    text = "\n".join(export_command(request, print))
    return list(csv.DictReader(io.StringIO(text)))


def marks(course: Course, name: str) -> dict[str, str]:
    """Student → total; "" where there is none."""
    rows = exported(course, name, "csv")
    assert len({row["student"] for row in rows}) == len(rows)
    return {row["student"]: row["total"] for row in rows}
