"""Pastes the examples of feedback pages below wrong answers, in an interpreter of their own.

    python tests/long/pasted_examples.py [--every 10] [ASSIGNMENT ...]

In a course. Every tenth known mistake is graded, and the call of its example is run below the answer
key's notebook with the mistake in it, and below the answer key itself. What comes out is compared
with what the page says.
"""

from __future__ import annotations

import argparse
import ast
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.course import Assignment, Course, load_course
from autograder.grading.bench import Bench
from autograder.grading.extras import find_extras
from autograder.proof.trials import Replacement, examine_each, grade_answer
from autograder.sandbox.host_process import HostClient


@dataclass(frozen=True, slots=True)
class PastedExample:
    """An example of a feedback page, and the cell of the wrong answer that it is about."""

    question: str
    name: str
    cell: str
    call: str
    yours: str
    expected: str


def find_examples(
    course: Course,
    assignment: Assignment,
    every: int,
) -> list[PastedExample]:
    """The examples that a student can run, of every so many mistakes."""
    extras = find_extras(assignment, (), course.limits)
    with Bench(course, assignment, "auto", os.cpu_count() or 1, extras) as bench:
        mistakes = [
            mistake for mistake in bench.grader.mistakes if not mistake.is_students
        ]

        def look(client: HostClient, mistake: Replacement) -> list[PastedExample]:
            (result,) = grade_answer(bench, client, mistake, [mistake.question])
            example = result.example
            if example is None or not example.yours:
                return []
            return [
                PastedExample(
                    mistake.question,
                    mistake.name,
                    mistake.cell,
                    example.call,
                    example.yours,
                    example.expected,
                )
            ]

        sampled = mistakes[::every]
        records, problems = examine_each(bench, sampled, look, list[PastedExample])
    if problems:
        raise SystemExit("\n".join(problems))
    return [example for record in records for example in record]


def notebook_cells(assignment: Assignment) -> list[str]:
    """The cells of the answer key's notebook that grading runs."""
    cells = json.loads(assignment.solution.read_text(encoding="utf-8"))["cells"]
    return [
        "".join(cell["source"])
        for cell in cells
        if cell["metadata"].get("attention_kit", {}).get("role")
        in ("given", "question")
    ]


def run_pasted(cells: Sequence[str], call: str) -> dict[str, Any]:
    """What the last line of a call gives below some cells: the text that a page would have, with few
    digits and with all; or the exception's.
    """
    from autograder.diagnosis.example_texts import answer_text

    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        exec(compile(cell, "<cell>", "exec", dont_inherit=True), names)
    body = ast.parse(call).body
    last = body.pop()
    assert isinstance(last, ast.Expr)
    try:
        exec(compile(ast.Module(body, []), "<call>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<call>", "eval"), names)
    except Exception as error:
        return {"error": f"raises {type(error).__name__}"}
    return {
        "few": answer_text(value, is_rounded=True),
        "all": answer_text(value, is_rounded=False),
    }


def run_jobs(folder: Path) -> None:
    """Run the calls of a folder's jobs, each in a process of its own."""
    jobs = json.loads((folder / "jobs.json").read_text(encoding="utf-8"))
    os.chdir(jobs["folder"])
    sys.path.insert(0, jobs["folder"])
    context = multiprocessing.get_context("fork")
    with context.Pool(1, maxtasksperchild=1) as pool:
        answers = pool.starmap(run_pasted, jobs["calls"], chunksize=1)
    (folder / "answers.json").write_text(json.dumps(answers), encoding="utf-8")


def run_all(
    assignment: Assignment,
    examples: Sequence[PastedExample],
    folder: Path,
) -> list[dict[str, Any]]:
    """The answers of wrong answer and answer key to each example, in turn."""
    cells = notebook_cells(assignment)
    calls: list[tuple[list[str], str]] = []
    for example in examples:
        calls.append(([*cells, example.cell], example.call))
        calls.append((cells, example.call))
    jobs = {"folder": str(assignment.solution.parent.resolve()), "calls": calls}
    (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
    command = [sys.executable, __file__, "--jobs", str(folder)]
    subprocess.run(command, check=True)
    answers = (folder / "answers.json").read_text(encoding="utf-8")
    loaded: list[dict[str, Any]] = json.loads(answers)
    return loaded


def disagreements(
    examples: Sequence[PastedExample],
    answers: Sequence[dict[str, Any]],
) -> Iterator[str]:
    """What came out otherwise than the page says."""
    for number, example in enumerate(examples):
        wrong, right = answers[2 * number : 2 * number + 2]
        for said, answer in ((example.yours, wrong), (example.expected, right)):
            if said.startswith(("changes its argument", "leaves it")):
                continue
            texts = [answer.get("few"), answer.get("all")]
            is_error = said.startswith(answer.get("error", "no error"))
            if said not in texts and not is_error:
                yield (
                    f"{example.question}/{example.name}: the page says {said}, "
                    f"pasted it is {answer}\n{example.call}"
                )


def main() -> int:
    """Compare, print what differs, and return the exit status: 1 where there is any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("assignments", nargs="*", metavar="ASSIGNMENT")
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--jobs", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.jobs is not None:
        run_jobs(options.jobs)
        return 0
    course = load_course(Path.cwd())
    named = [course.assignment(name) for name in options.assignments]
    status = 0
    for assignment in named or course.assignments():
        examples = find_examples(course, assignment, options.every)
        with tempfile.TemporaryDirectory() as folder:
            answers = run_all(assignment, examples, Path(folder))
        lines = list(disagreements(examples, answers))
        print(
            f"{assignment.name}: {len(examples)} pasted, {len(lines)} otherwise",
            *lines,
            sep="\n",
            flush=True,
        )
        if lines:
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
