"""Runs a student's notebook for `check.py`: the cells that grading runs, and the visible checks.

The cells run in a process of their own (`worker/cell_runner.py`), in an empty folder. A cell that
ends that process is left out, and the others run again without it, as in grading.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.intake.magics import strip_magics
from autograder.records.submission import Cell
from autograder.student_tools.release_table import MatchedNotebook

GRACE = 10.0
"""Seconds of wall time that a cell gets beyond the course's limits, which its own process keeps."""
START_SECONDS = 300.0
"""Seconds of wall time for Python to start and load the notebook's libraries."""

Reply = Mapping[str, Any]
"""The reply of `cell_runner.py` about one cell."""


class NothingRan(Exception):
    """No cell can be run; the text says why."""


@dataclass(frozen=True)
class Step:
    """One cell to run: a graded one, or a visible check.

    Attributes:
        id: a name that no other step has.
        title: the cell, in words.
        check_of: the question that a visible check belongs to, "" for other cells.
    """

    id: str
    source: str
    title: str
    check_of: str = ""


def make_steps(matched: MatchedNotebook) -> list[Step]:
    """The cells that grading runs, in its order, and each visible check, as released, where the
    student has it, but not before the cell that it checks.
    """
    submission = matched.submission
    steps: list[tuple[float, Step]] = []
    for cell in submission.cells:
        step = Step(cell.id, cell.source, _cell_title(matched, cell))
        steps.append((cell.place, step))
    places = {
        cell.id: float(number) for number, cell in enumerate(submission.handed_in)
    }
    for check in matched.table.release.cells:
        if check.role != "check":
            continue
        answer = matched.answer_cell(check.name)
        answer_place = answer.place if answer else 0.0
        place = places.get(check.id, answer_place)
        if check.id in places:
            title = matched.describe_place(place)
        else:
            title = "the check that you deleted"
        source, _ = strip_magics(check.source)
        step = Step(f"check {check.id}", source, title, check.name)
        steps.append((max(place, answer_place), step))
    steps.sort(key=lambda placed: placed[0])
    return [step for _, step in steps]


def _cell_title(matched: MatchedNotebook, cell: Cell) -> str:
    if cell.role == "extra":
        title = "one of your own"
    else:
        title = f"{cell.role} {cell.id.removeprefix('given_')}"
    is_in_file = cell.place == int(cell.place)
    return f"{matched.describe_place(cell.place)}, {title}" if is_in_file else title


def run_steps(
    program: Path, folder: Path, matched: MatchedNotebook
) -> Iterator[tuple[Step | None, Reply]]:
    """Run all steps; yields each with the reply about it, and at the end None with the names that
    are defined.

    Raises:
        NothingRan: Python does not start, or cannot load the notebook's libraries.
    """
    steps = make_steps(matched)
    functions: set[str] = set()
    for question in matched.table.release.questions:
        functions |= matched.answer_names(question)
    limits = matched.table.limits
    job: dict[str, Any] = {
        "functions": sorted(functions),
        "companions": dict(matched.submission.companions),
        "folder": str(folder),
        "limits": dict(limits),
    }
    reported: set[str] = set()
    while True:
        cells = [
            {"id": step.id, "source": step.source, "is_check": bool(step.check_of)}
            for step in steps
        ]
        remaining = iter(steps)
        job["cells"] = cells
        for reply in _run_process(program, json.dumps(job), limits):
            if "defined" in reply:
                yield None, reply
                return
            step = next(remaining, None)
            if (
                step is None
            ):  # a thread of the notebook's ended the process after the last cell
                return
            if step.id not in reported:
                reported.add(step.id)
                yield step, reply
            if "error" not in reply:
                steps.remove(step)
                break


def _run_process(program: Path, job: str, limits: Mapping[str, Any]) -> Iterator[Reply]:
    """Run one process; yields its replies, and {"ended": problem} where the process ended too
    early.

    Raises:
        NothingRan: the process ended before the first cell.
    """
    cell_seconds = (
        3 * float(limits["cell_seconds"]) + GRACE
    )  # computing, and asleep twice as long
    folder = tempfile.TemporaryDirectory(prefix="check-", ignore_cleanup_errors=True)
    with folder as empty, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, str(program), "--run-cells"],
            cwd=empty,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "MKL_NUM_THREADS": "1",
                "MPLBACKEND": "Agg",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
        )
        lines: queue.Queue[str] = queue.Queue()
        reader = threading.Thread(
            target=_read_lines, args=(process, job, lines), daemon=True
        )
        reader.start()
        problem = "the process ended in it"
        is_ready = False
        try:
            while line := lines.get(
                timeout=cell_seconds if is_ready else START_SECONDS
            ):
                reply: dict[str, Any] = json.loads(line)
                if is_ready:
                    yield reply
                is_ready = True
                if "defined" in reply or "too_long" in reply:
                    return
            if not is_ready:
                errors.seek(0)
                text = errors.read().decode(errors="replace")
                raise NothingRan(text.strip().rpartition("\n")[2])
        except queue.Empty:
            problem = f"it took longer than {cell_seconds:g} s"
        finally:
            process.kill()
            process.wait()
            reader.join(
                GRACE
            )  # a program that the notebook started may keep the pipe open
            if process.stdout is not None and not reader.is_alive():
                process.stdout.close()
        yield {"ended": problem}


def _read_lines(
    process: subprocess.Popen[str], job: str, lines: queue.Queue[str]
) -> None:
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


def describe_problem(reply: Reply) -> str:
    """What went wrong in a cell, in one line; "" where nothing did."""
    error = reply.get("error")
    if not error:
        return str(reply.get("too_long") or reply.get("ended") or "")
    text = " ".join(error["message"].split())
    if "AssertionError" not in error["kinds"] or not text:
        text = f"{error['type']}: {text}"
    return text.rstrip(": ") if len(text) <= 160 else text[:157] + "..."
