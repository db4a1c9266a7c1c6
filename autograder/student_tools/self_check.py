"""Is your notebook ready to be handed in? `python check.py a2_attention.ipynb` says so.

It reads the notebook as grading does, with the same code, and says of each question and each
written answer whether it is there and where. It runs the cells as grading does: in an empty folder,
without the demos, within the course's limits, and the visible checks apart from them. It sees what
is saved: save first. It changes nothing. It needs Python 3.11 or later, and what the notebook
needs.

Ends with 0 where all is well, 1 where something is to be done, 2 where it was called wrongly.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.basics.definitions import defined_names, top_level_names, used_globals
from autograder.basics.errors import UnreadableSubmission
from autograder.intake.cell_matching import find_answer_cell
from autograder.intake.cell_text import CellText, describe_cell
from autograder.intake.magics import strip_magics
from autograder.intake.notebook import match_notebook
from autograder.intake.reading import Notebook, parse_notebook
from autograder.intake.released_notebook import Release, ReleaseCell, make_release
from autograder.records.submission import Cell, Submission

TABLE = ".cells.json"
"""How the file ends that holds the notebook as it was given out; it lies beside this program."""
GRACE = 10.0
"""Seconds of wall time that a cell gets beyond the course's limits, which its own process keeps."""
START_SECONDS = 300.0
"""Seconds of wall time for Python to start and load the notebook's libraries."""
_CONFLICT = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
_ANY_CODE = re.compile(r"^\s*[^#\s]", re.MULTILINE)


class NothingRan(Exception):
    """No cell can be run; the text says why."""


@dataclass(frozen=True)
class Table:
    """What the file beside this program tells of an assignment.

    Attributes:
        release: the notebook as it was given out.
        only_in_checks: names that only a check or a demo defines, each with that cell, in words.
        limits: the course's limits on one submission, by their names in course.toml.
    """

    release: Release
    only_in_checks: Mapping[str, str]
    limits: Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    """One cell to run: a graded one, or a visible check.

    Attributes:
        id: no other step has it.
        title: which cell it is, in words.
    """

    id: str
    source: str
    title: str
    check_of: str = ""


@dataclass
class Findings:
    """What is to be done before handing in, and what is only said."""

    to_do: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def main(arguments: Sequence[str], program: Path) -> int:
    """Check the one notebook that is named; returns the exit status.

    Args:
        program: the file that runs a notebook's cells when it is started with `--run-cells`:
            `check.py` itself.
    """
    path = Path(arguments[0]) if len(arguments) == 1 else None
    if path is None or arguments[0].startswith("-"):
        return _wrong("python check.py NOTEBOOK, for instance: python check.py a2_attention.ipynb")
    if not path.is_file():
        there = sorted(other.name for other in Path.cwd().glob("*.ipynb"))
        return _wrong(
            f"{path}: there is no such file. Notebooks here: {', '.join(there) or 'none'}"
        )
    path = path.resolve()
    tables = _tables(path.parent, program.parent)
    if not tables:
        return _wrong(
            f"no file *{TABLE} lies beside check.py: unpack it from what you were given, "
            "next to check.py"
        )
    saved = path.stat().st_mtime
    day = datetime.datetime.fromtimestamp(saved)
    print(f"{path.name}, saved {day:%Y-%m-%d %H:%M} ({_ago(int(time.time() - saved))})\n")
    try:
        notebook = parse_notebook(path.read_bytes(), path.name)
        table, submission = _best_match(tables, notebook, path)
    except UnreadableSubmission as problem:
        print(f"Not ready: {problem}")
        return 1
    findings = Findings()
    _look_at_file(path, table, notebook, findings)
    _look_at_cells(table, submission, findings)
    unwritten = _look_at_questions(table.release, submission, findings)
    _look_at_answers(table.release, submission, findings)
    _run(program, path.parent, table, submission, unwritten, findings)
    return _say(findings)


def _wrong(problem: str) -> int:
    print(problem, file=sys.stderr)
    return 2


def _ago(seconds: int) -> str:
    for length, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            return f"{seconds // length} {unit}{'s' * (seconds // length > 1)} ago"
    return "just now"


def _tables(*folders: Path) -> list[Table]:
    """Every table that lies in these folders."""
    files = {file.name: file for folder in folders for file in folder.glob(f"*{TABLE}")}
    tables = []
    for file in files.values():
        # it is no table of ours
        with contextlib.suppress(ValueError, KeyError, TypeError, UnreadableSubmission):
            raw = json.loads(file.read_text(encoding="utf-8"))
            released = parse_notebook(json.dumps(raw["release"]).encode(), file.name)
            release = make_release(released.cells, str(raw["assignment"]))
            tables.append(Table(release, raw["only_in_checks"], raw["limits"]))
    return tables


def _best_match(
    tables: Sequence[Table], notebook: Notebook, path: Path
) -> tuple[Table, Submission]:
    """The table of the notebook's assignment: by the file's name, else by the number of cells that
    match.

    Raises:
        UnreadableSubmission: the notebook is of no assignment that has a table here.
    """
    matches = []
    for table in sorted(tables, key=lambda each: each.release.assignment != path.stem):
        try:
            submission = match_notebook(notebook, table.release, "", path)
        except UnreadableSubmission as problem:
            refusal = problem
            continue
        matches.append((table, submission))
        if table.release.assignment == path.stem:
            break
    if not matches:
        raise refusal
    return max(matches, key=lambda match: sum(bool(cell.id) for cell in match[1].handed_in))


def _place(submission: Submission, number: float) -> str:
    return describe_cell(int(number), submission.handed_in[int(number)].source)


def _look_at_file(path: Path, table: Table, notebook: Notebook, findings: Findings) -> None:
    """The file's name and size, and newer copies, in which the student may have worked."""
    name, most = table.release.assignment, table.limits["notebook_mb"]
    if path.name != f"{name}.ipynb":
        findings.to_do.append(f"the file is called {path.name}: hand it in as {name}.ipynb")
    if path.stat().st_size > most << 20:
        findings.to_do.append(f"the file is larger than {most} MB: clear the outputs and save it")
    copies = [path.parent / ".ipynb_checkpoints" / f"{path.stem}-checkpoint.ipynb"]
    copies += sorted(
        other for other in path.parent.glob(f"{name}*.ipynb") if other.name != path.name
    )
    own = [(cell.kind, cell.source) for cell in notebook.cells]
    for copy in copies:
        with contextlib.suppress(UnreadableSubmission):
            newer = copy.is_file() and copy.stat().st_mtime > path.stat().st_mtime
            if (
                newer
                and [(c.kind, c.source) for c in parse_notebook(copy.read_bytes(), copy.name).cells]
                != own
            ):
                findings.to_do.append(
                    f"{copy.relative_to(path.parent)} is newer than the file, and differs: save "
                    "your work as "
                    f"{name}.ipynb, and remove what is not it"
                )


def _look_at_cells(table: Table, submission: Submission, findings: Findings) -> None:
    """What the reader says of the file and its cells, lines of a merge conflict, and names that
    only checks define.
    """
    questions = {question.id for question in table.release.questions}
    for notice in submission.notices:
        is_missing = notice.outcome == "missing" and notice.id in questions
        (findings.to_do if is_missing else findings.notes).append(f"{notice.id}: {notice.message}")
    findings.notes += [
        f"{_place(submission, cell.place)}: {cell.note}"
        if cell.place == int(cell.place)
        else f"{cell.id}: {cell.note}"
        for cell in submission.cells
        if cell.note
    ]
    for number, handed_in in enumerate(submission.handed_in):
        if _CONFLICT.search(handed_in.source):
            place = _place(submission, number)
            findings.to_do.append(
                f"{place}: lines of a merge conflict (<<<<<<<, >>>>>>>): choose one version"
            )
    if any("import *" in cell.source for cell in submission.cells):
        return
    defined, used = set[str](), dict[str, float]()
    for cell in submission.cells:
        # which running it tells
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            defined |= top_level_names(cell.source)
            used = dict.fromkeys(used_globals(cell.source), cell.place) | used
    for name in sorted((used.keys() & table.only_in_checks.keys()) - defined):
        findings.to_do.append(
            f"{_place(submission, used[name])} needs {name}, which only "
            f"{table.only_in_checks[name]} defines: "
            "checks and demos do not run in grading; define it in a cell of your own"
        )


def _answering_cell(submission: Submission, question: str) -> Cell | None:
    """The cell whose definition of a question's function is there in the end: the last one; else
    the question's own.
    """
    defining = [cell for cell in submission.cells if question in defined_names(cell.source)]
    return defining[-1] if defining else find_answer_cell(submission, question)


def _look_at_questions(release: Release, submission: Submission, findings: Findings) -> set[str]:
    """Which questions are not answered yet."""
    unwritten = set()
    for question in release.questions:
        cell = _answering_cell(submission, question.id)
        if cell is not None and CellText(cell.source).is_unfinished(question.text):
            unwritten.add(question.name)
            findings.to_do.append(
                f"{question.name}: not written yet, in {_place(submission, cell.place)}"
            )
    return unwritten


def _look_at_answers(release: Release, submission: Submission, findings: Findings) -> None:
    """Which written answers are there."""
    answers = {answer.id: answer for answer in submission.written}
    places = {cell.id: number for number, cell in reversed(list(enumerate(submission.handed_in)))}
    for prompt in (cell for cell in release.cells if cell.role == "written"):
        answer = answers.get(prompt.id)
        if answer is not None and not answer.blank and not answer.elsewhere:
            continue
        if prompt.id not in places:
            problem = "its cell was not found; see that it stands below its question"
        else:
            problem = f"nothing is written yet in {_place(submission, places[prompt.id])}"
        if answer is not None and answer.elsewhere:
            nearest = _place(submission, answer.elsewhere[0])
            problem += f"; if your answer is {nearest}, move it there, or a person has to find it"
        findings.to_do.append(f"written answer {prompt.name}: {problem}")


# Running it


def _steps(release: Release, submission: Submission) -> list[Step]:
    """The cells that grading runs, in its order, and each visible check, as released, where the
    student has it, but not before the cell that it checks.
    """
    places = {cell.id: float(number) for number, cell in enumerate(submission.handed_in)}
    placed: list[tuple[float, Step]] = []
    for cell in submission.cells:
        stands = cell.place == int(cell.place)
        title = f"{_place(submission, cell.place)}, " if stands else ""
        title += (
            f"{cell.role} {cell.id.removeprefix('given_')}"
            if cell.role != "extra"
            else "one of your own"
        )
        placed.append((cell.place, Step(cell.id, cell.source, title)))
    for check in (cell for cell in release.cells if cell.role == "check"):
        question = _answering_cell(submission, check.name)
        answered = question.place if question else 0.0
        place = places.get(check.id, answered)
        title = _place(submission, place) if check.id in places else "the check that you deleted"
        placed.append(
            (
                max(place, answered),
                Step(f"check {check.id}", strip_magics(check.source)[0], title, check.name),
            )
        )
    return [step for _, step in sorted(placed, key=lambda pair: pair[0])]


def _run(
    program: Path,
    folder: Path,
    table: Table,
    submission: Submission,
    unwritten: set[str],
    findings: Findings,
) -> None:
    """Run the graded cells and the checks; print how each check fared."""
    steps = _steps(table.release, submission)
    passed = ran = 0
    try:
        for step, reply in _outcomes(program, folder, steps, table):
            problem, skipped = _problem(reply), reply.get("printed", "")
            if step is None:
                _look_at_names(table.release, submission, reply["defined"], unwritten, findings)
            elif not step.check_of:
                if problem:
                    findings.to_do.append(f"{step.title}, does not run: {problem}")
            elif not _ANY_CODE.search(step.source):
                print(f"  {step.check_of:<28} has no visible check")
            elif skipped.startswith("Skipped: ") and not problem:
                print(f"  {step.check_of:<28} {skipped.strip()}")
            else:
                ran += 1
                passed += not problem
                not_written = step.check_of in unwritten and problem
                print(
                    f"  {step.check_of:<28} "
                    f"{'not written yet' if not_written else problem or 'passes'}",
                    flush=True,
                )
                if problem and not not_written:
                    findings.to_do.append(
                        f"{step.check_of}: its check in {step.title} does not pass"
                    )
    except NothingRan as problem:
        findings.to_do.append(f"nothing ran: {problem}")
    print(
        f"\n{passed} of {ran} visible checks pass. They are a first test: hidden tests run when "
        "it is graded.\n"
    )


def _look_at_names(
    release: Release,
    submission: Submission,
    defined: Sequence[str],
    unwritten: set[str],
    findings: Findings,
) -> None:
    """Questions whose function is not there after all cells have run."""
    missing = {notice.id for notice in submission.notices if notice.outcome == "missing"}
    for question in release.questions:
        wanted = _asked(release, question)
        cell = _answering_cell(submission, question.id)
        if (
            question.id in missing
            or question.name in unwritten
            or cell is None
            or wanted & set(defined)
        ):
            continue
        where = _place(submission, cell.place)
        findings.to_do.append(
            f"{question.name}: {where} does not define {' or '.join(sorted(wanted))} any more"
        )


def _asked(release: Release, question: ReleaseCell) -> frozenset[str]:
    """The names under which tests call a question's answer."""
    functions = release.functions[question.id]
    return frozenset({question.name}) & functions or functions


def _outcomes(
    program: Path, folder: Path, steps: Sequence[Step], table: Table
) -> Iterator[tuple[Step | None, Mapping[str, Any]]]:
    """Each step with the reply about it; at the end None, with the names that are defined.

    A cell that ends the process is left out, and the others run again without it, as when they are
    graded.

    Raises:
        NothingRan: Python does not start, or cannot load the notebook's libraries.
    """
    by_id = {step.id: step for step in steps}
    functions = sorted(
        {name for question in table.release.questions for name in _asked(table.release, question)}
    )
    told: set[str] = set()
    left_out: set[str] = set()
    while True:
        cells = [
            {"id": step.id, "source": step.source, "is_check": bool(step.check_of)}
            for step in steps
            if step.id not in left_out
        ]
        job = {
            "cells": cells,
            "functions": functions,
            "folder": str(folder),
            "limits": dict(table.limits),
        }
        running = iter(cells)
        for reply in _replies(program, json.dumps(job), table.limits):
            if "defined" in reply:
                yield None, reply
                return
            cell = next(running, None)
            if cell is None:  # a thread of the notebook's ended the process after the last cell
                return
            step = by_id[str(cell["id"])]
            if step.id not in told:
                told.add(step.id)
                yield step, reply
            if "error" not in reply:
                left_out.add(step.id)
                break


def _replies(program: Path, job: str, limits: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The replies of one process that runs the cells; the last reply is "ended" if the process
    ended too early.

    Raises:
        NothingRan: it ended before the first cell.
    """
    most = 3 * float(limits["cell_seconds"]) + GRACE  # computing, and asleep twice as long
    folder = tempfile.TemporaryDirectory(prefix="check-", ignore_cleanup_errors=True)
    with folder as empty, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, str(program), "--run-cells"],
            cwd=empty,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MPLBACKEND": "Agg"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
        )
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=_read_lines, args=(process, job, lines), daemon=True).start()
        ended = "the process ended in it"
        try:
            wait = START_SECONDS
            while line := lines.get(timeout=wait):
                reply: dict[str, Any] = json.loads(line)
                if "ready" not in reply:
                    yield reply
                wait = most
                if "defined" in reply or "too_long" in reply:
                    return
            if wait == START_SECONDS:
                errors.seek(0)
                raise NothingRan(errors.read().decode(errors="replace").strip().rpartition("\n")[2])
        except queue.Empty:
            ended = f"it took longer than {most:g} s"
        finally:
            process.kill()
            process.wait()
        yield {"ended": ended}


def _read_lines(process: subprocess.Popen[str], job: str, lines: queue.Queue[str]) -> None:
    """Give a process its job, and put what it writes into the queue, line by line; "" at its
    end.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(OSError, ValueError):
        process.stdin.write(job)
        process.stdin.close()
        for line in process.stdout:
            lines.put(line)
    lines.put("")


def _problem(reply: Mapping[str, Any]) -> str:
    """What went wrong in a cell, in one line; "" where nothing did."""
    error = reply.get("error")
    if not error:
        return str(reply.get("too_long") or reply.get("ended") or "")
    text = " ".join(error["message"].split())
    shown = text if error["type"] == "AssertionError" and text else f"{error['type']}: {text}"
    return shown.rstrip(": ") if len(shown) <= 160 else shown[:157] + "..."


def _say(findings: Findings) -> int:
    for title, lines in (
        ("To do:", findings.to_do),
        ("Notes, which cost nothing:", findings.notes),
    ):
        if lines:
            print("\n  - ".join([title, *lines]) + "\n")
    print("Not ready to be handed in." if findings.to_do else "Ready to be handed in.")
    return 1 if findings.to_do else 0
