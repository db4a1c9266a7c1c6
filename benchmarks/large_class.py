"""What the report and the exports take for a large class: peak memory, CPU and wall time of each
command.

    python benchmarks/large_class.py COURSE a2_attention [--sizes 300 10000] [--only report tests]

COURSE is a course in which a class has been graded, such as the demo class. For each size a course
is made beside it, in which these submissions and results stand again and again under other names;
it is removed afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

COMMANDS = {
    "report": ["report"],
    "csv": ["export", "--format", "csv"],
    "tests": ["export", "--format", "tests"],
    "canvas": ["export", "--format", "canvas"],
    "moodle": ["export", "--format", "moodle"],
    "junit": ["export", "--format", "junit"],
    "gradebook": ["export", "--format", "gradebook"],
    "gradebook again": ["export", "--format", "gradebook"],
    "canvas-feedback": ["export", "--format", "canvas-feedback"],
    "totals": ["totals"],
}


def make_class(course: Path, assignment: str, size: int, to: Path) -> None:
    """A course of `size` students from the results in `course`; notebooks are one file for all that
    share them.
    """
    for name in ("course.toml", "nbgrader_config.py"):
        if (course / name).is_file():
            shutil.copy(course / name, to)
    for name in ("source", "assignments", "solutions"):
        shutil.copytree(course / name / assignment, to / name / assignment)
    shutil.copytree(course / "tests" / "hidden", to / "tests" / "hidden")
    (to / "results" / assignment).mkdir(parents=True)
    collected, timed = {}, []
    for number, path in zip(
        range(size), cycle(sorted((course / "results" / assignment).glob("*.json")))
    ):
        result = json.loads(path.read_text(encoding="utf-8"))
        notebook = (
            course
            / "submitted"
            / result["student"]
            / assignment
            / f"{assignment}.ipynb"
        )
        student = result["student"] = f"student{number:05}_{number}"
        (to / "results" / assignment / f"{student}.json").write_text(
            json.dumps(result, indent=1), encoding="utf-8"
        )
        handed_in = to / "submitted" / student / assignment / notebook.name
        handed_in.parent.mkdir(parents=True)
        os.link(notebook, handed_in)
        file = f"{student}_77_{assignment}.ipynb"
        collected[student] = {
            "origin": "canvas",
            "id": str(number),
            "name": student,
            "file": file,
        }
        timed.append({"student": student, "seconds": {"tests": 0.1}, "problem": ""})
    timing = {"assignment": assignment, "submissions": timed}
    (to / "results" / f"{assignment}.timing.json").write_text(
        json.dumps(timing), encoding="utf-8"
    )
    (to / "submitted" / ".collected").mkdir()
    record = {
        "source": "canvas",
        "said": [],
        "students": collected,
        "not_taken": {},
        "absent": [],
    }
    (to / "submitted" / ".collected" / f"{assignment}.json").write_text(
        json.dumps(record), encoding="utf-8"
    )


def measured(command: Sequence[str], course: Path) -> tuple[float, float, float]:
    """Peak memory of the command's process in MB, its CPU and wall seconds; fails where it does."""
    begun = time.monotonic()
    process = subprocess.Popen(
        command, cwd=course, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(
            f"{' '.join(command)} ended with {process.returncode}: {said.decode(errors='replace')}"
        )
    return (
        usage.ru_maxrss / 1024,
        usage.ru_utime + usage.ru_stime,
        time.monotonic() - begun,
    )


def rows(
    course: Path, assignment: str, size: int, only: Sequence[str]
) -> Iterator[str]:
    """A line of the table for each command."""
    with tempfile.TemporaryDirectory(
        dir=course.parent, prefix="large-class-"
    ) as folder:
        to = Path(folder)
        make_class(course, assignment, size, to)
        for name, (verb, *options) in COMMANDS.items():
            if only and name not in only:
                continue
            where = [] if name.startswith("gradebook") else ["--to", str(to / "out")]
            named = [] if verb == "totals" else [assignment]
            command = [
                sys.executable,
                "-m",
                "autograder",
                verb,
                *named,
                *options,
                *(where if verb != "report" else []),
            ]
            peak, cpu, wall = measured(command, to)
            yield f"{size:>6}  {name:<16} {peak:>7.0f} MB {cpu:>7.1f} s CPU {wall:>7.1f} s"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("course", type=Path)
    parser.add_argument("assignment")
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 10_000])
    parser.add_argument("--only", nargs="+", default=[], choices=COMMANDS)
    options = parser.parse_args()
    for size in options.sizes:
        for line in rows(
            options.course.resolve(), options.assignment, size, options.only
        ):
            print(line, flush=True)


if __name__ == "__main__":
    main()
