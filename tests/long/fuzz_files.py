"""Files that are right JSON and wrong in type, torn, or no JSON at all, in front of every command
that reads them.

    python tests/long/fuzz_files.py [--sample N] [--seed S]

In each file that the kit has written each field is replaced by values of other types, numbers that
are none, nesting without end; it is left out, and said twice; and the whole file is damaged. Every
command that reads the file must end with status 0, 1 or 2 and without a traceback, and name the
file; a result that was changed must give nobody a mark. `--sample` takes so many of the cases for
each file, which the seed decides. The last lines are a table.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import random
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from file_faults_course import STUDENTS, TOPIC, called, download, grade, make_course

LITERALS = {
    "null": "null",
    "a list": "[]",
    "an object": "{}",
    "a text": '"x"',
    "true": "true",
    "a number": "5",
    "below zero": "-1",
    "NaN": "NaN",
    "infinity": "1e999",
    "huge": "1" + "0" * 30,
    "a million digits": "9" * 1_000_000,
    "deep": "[" * 100_000 + "]" * 100_000,
    "half a surrogate": '"\\ud800"',
}
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "torn": lambda data: data[: len(data) // 2],
    "a byte-order mark": lambda data: b"\xef\xbb\xbf" + data,
    "no UTF-8": lambda data: data[:10] + b"\xff\xfe" + data[10:],
    "null bytes": lambda data: bytes(len(data)),
    "a list": lambda data: b"[]",
    "null": lambda data: b"null",
    "deep": lambda data: b"[" * 100_000,
}
MARK = "`{file}` gives a mark"


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        path: an example of it in the course.
        readers: the command lines that read it.
        named: whether every damage has to be named; times, and what is only remembered, may be done
            without.
        marks: whether the file holds a student's points.
    """

    path: str
    readers: tuple[tuple[str, ...], ...]
    named: bool = False
    marks: bool = False
    is_json: bool = True


REPORT, TOTALS, GRADE = ("report", TOPIC), ("totals", "--provisional"), ("grade", TOPIC)
CSV, BOOK = (
    ("export", TOPIC, "--format", "csv", "--provisional"),
    ("export", TOPIC, "--format", "gradebook"),
)
MOODLE = ("export", TOPIC, "--format", "moodle", "--provisional")
REGRADE = ("regrade", TOPIC, "--apply")
COLLECT = ("collect", TOPIC, "download.zip", "--from", "folder")
KINDS = (
    Kind(
        f"results/{TOPIC}/ada.json",
        (CSV, REPORT, TOTALS, BOOK, GRADE, REGRADE),
        named=True,
        marks=True,
    ),
    Kind(f"results/{TOPIC}.timing.json", (CSV, REPORT, TOTALS, GRADE, REGRADE)),
    Kind(f"results/regrade/{TOPIC}/ada.json", (REGRADE,)),
    Kind(f"results/regrade/{TOPIC}.timing.json", (REGRADE,)),
    Kind(
        f"submitted/.collected/{TOPIC}.json", (CSV, REPORT, MOODLE, COLLECT), named=True
    ),
    Kind(f".autograder/built/{TOPIC}.json", (("build",),)),
    Kind(
        f"assignments/{TOPIC}/{TOPIC}.ipynb",
        (CSV, REPORT, BOOK, GRADE, ("demo", TOPIC, "--to", "demo")),
    ),
    Kind(f"solutions/{TOPIC}/{TOPIC}.ipynb", (BOOK, ("demo", TOPIC, "--to", "demo"))),
    Kind("course.toml", (CSV, REPORT, GRADE, ("build",)), is_json=False),
    Kind("students.csv", (CSV, REPORT, TOTALS), is_json=False),
    Kind(f"submitted/ada/{TOPIC}/timestamp.txt", (CSV, REPORT, BOOK), is_json=False),
    Kind("gradebook.db", (CSV, REPORT, BOOK), is_json=False),
    Kind(f".autograder/locks/{TOPIC}", (GRADE,), is_json=False),
    Kind(".autograder/unfinished/1-1.jsonl", (CSV,), is_json=False),
    Kind(".autograder/unfinished/1-1.committed", (REPORT,), is_json=False),
)
OPTIONAL = {"slips", "kept", "message", "schema", "keeps", "late", "unread"}
"""Fields that earlier versions did not write."""


@dataclass
class Row:
    """What came of one kind of file."""

    path: str
    cases: int = 0
    runs: int = 0
    wrong: list[str] = field(default_factory=list)


def places(
    value: Any, at: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """The path of every field; of a list the first entry stands for all."""
    if at:
        yield at
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*at, name))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*at, 0))


def replaced(text: str, at: tuple[str | int, ...], literal: str | None) -> str:
    """The JSON text with another value at a place; None leaves it out."""
    raw = json.loads(text)
    holder = raw
    for step in at[:-1]:
        holder = holder[step]
    if literal is None:
        del holder[at[-1]]
        return json.dumps(raw)
    holder[at[-1]] = "@@"
    return json.dumps(raw).replace('"@@"', literal, 1)


def cases(data: bytes, kind: Kind) -> Iterator[tuple[str, bytes, bool]]:
    """What is done, the file after it, and whether a result may be believed then."""
    for name, damage in DAMAGES.items():
        yield name, damage(data), False
    if not kind.is_json:
        return
    text = data.decode()
    for at in places(json.loads(text)):
        where = ".".join(map(str, at))
        for name, literal in LITERALS.items():
            yield (
                f"{where}: {name}",
                replaced(text, at, literal).encode(),
                not _is_wrong(text, at, literal),
            )
        yield (
            f"{where}: missing",
            replaced(text, at, None).encode(),
            at[-1] in OPTIONAL or at[0] == "cells",
        )
        if isinstance(at[-1], str):
            own = json.dumps(at[-1])
            twice = text.replace(f"{own}:", f"{own}: null, {own}:", 1)
            yield f"{where}: twice", twice.encode(), False


def _is_wrong(text: str, at: tuple[str | int, ...], literal: str) -> bool:
    """Whether a result with that value in the place of its own is none: another type, or points
    that do not add up.
    """
    value = json.loads(text)
    for step in at:
        value = value[step]
    if literal in ("NaN", "1e999") or len(literal) > 1000:
        return True
    other = json.loads(literal)
    if other == value and type(other) is type(value):
        return False
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return True  # every number of a result is part of a sum, or its schema
    if isinstance(value, str):
        return not isinstance(other, str) or at[-1] in (
            "student",
            "assignment",
            "outcome",
        )
    return type(other) is not type(value) or at[0] != "cells"


def run(command: tuple[str, ...], root: Path) -> tuple[int, str, str]:
    """Status, and what was said on standard output and error; a traceback is status 70."""
    from click.testing import CliRunner

    from autograder.cli.commands import main

    done = CliRunner().invoke(main, list(command), prog_name="autograder")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return 70, done.stdout, "".join(traceback.format_exception(done.exception))
    return done.exit_code, done.stdout, done.stderr


def mark_of(text: str, student: str) -> str:
    """The student's points in `export --format csv`; "" where there are none."""
    rows = list(csv.DictReader(io.StringIO(text)))
    return next((row["total"] for row in rows if row["student"] == student), "")


def try_kind(
    kind: Kind, course: Path, root: Path, sample: int, rng: random.Random
) -> Row:
    row, data = Row(kind.path), (course / kind.path).read_bytes()
    every = list(cases(data, kind))
    for name, content, believed in (
        rng.sample(every, min(sample, len(every))) if sample else every
    ):
        row.cases += 1
        for reader in kind.readers:
            shutil.rmtree(root, ignore_errors=True)
            shutil.copytree(course, root)
            (root / kind.path).write_bytes(content)
            os.chdir(root)
            status, out, err = run(reader, root)
            os.chdir("/")
            row.runs += 1
            problems = []
            if status not in (0, 1, 2) or "Traceback" in out + err:
                problems.append(f"status {status}: {err[-900:]}")
            if kind.marks and not believed and reader == CSV and mark_of(out, "ada"):
                problems.append(f"it is believed: {mark_of(out, 'ada')}")
            # what is broken they grade again
            reads = reader not in (GRADE, REGRADE) or not kind.marks
            if (
                kind.named
                and not believed
                and reads
                and Path(kind.path).name not in out + err
            ):
                problems.append(f"it is not named: {err!r}")
            row.wrong += [
                f"{kind.path}, {name}, {' '.join(reader)}: {problem}"
                for problem in problems
            ]
    return row


def prepare(folder: Path) -> Path:
    """A course with a file of every kind."""
    import autograder.grading.run as grading
    from autograder.records.model import Graded

    course = make_course(folder / "course")
    download(course, {student: student for student in STUDENTS})
    called(course, "collect", TOPIC, "download.zip", "--from", "folder")
    grade(course, course / "results", 1.0)
    called(course, "export", TOPIC, "--format", "gradebook")
    grade(course, course / "results" / "regrade", 0.5)
    (course / "students.csv").write_text("id,name\nada,Ada Roe\nbob,Bob Lee\n")
    (course / "submitted" / "ada" / TOPIC / "timestamp.txt").write_text(
        "2026-10-01 10:00:00 UTC"
    )
    (course / ".autograder" / "locks").mkdir(exist_ok=True)
    (course / ".autograder" / "locks" / TOPIC).write_text("process 1")
    for name in ("1-1.jsonl", "1-1.committed"):
        (course / ".autograder" / "unfinished" / name).write_text(
            '{"do": "begin", "path": "`autograder report`", "other": ""}\n'
        )
    # nothing is graded: what a command reads before that is the question
    nothing: Any = lambda request, todo, watcher: (  # noqa: E731
        (
            Graded(submission.student, problem="nothing is graded here", untried=True),
            b"",
        )
        for submission in todo
    )
    grading._start_batch = nothing
    return course


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sample",
        type=int,
        default=0,
        help="so many cases of each kind of file (0: all)",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="files whose path holds this")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="fuzz-files-") as folder:
        course = prepare(Path(folder))
        kinds = [kind for kind in KINDS if options.only in kind.path]
        rows = [
            try_kind(kind, course, Path(folder) / "damaged", options.sample, rng)
            for kind in kinds
        ]
    for problem in (problem for row in rows for problem in row.wrong):
        print(problem, file=sys.stderr)
    print("| file | cases | commands | wrong |\n| --- | --- | --- | --- |")
    for row in rows:
        print(f"| `{row.path}` | {row.cases} | {row.runs} | {len(row.wrong)} |")
    raise SystemExit(any(row.wrong for row in rows))


if __name__ == "__main__":
    main()
