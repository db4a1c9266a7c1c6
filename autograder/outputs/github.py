"""Results for GitHub Actions: the job summary, the points as outputs of a step, and as notices for GitHub Classroom.

A workflow runs `python -I -m autograder.outputs.github ASSIGNMENT RESULTS COURSE` after grading.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.course import Assignment
from autograder.intake.release import tested_points
from autograder.model import Graded, QuestionResult, Result
from autograder.outputs.outcome_words import WHAT_HAPPENED, WITHOUT_WALLS, carried_note, kept_note, slip_hints
from autograder.points import shown, total
from autograder.results import read_results, read_timing
from autograder.text import claim, clean, one_line, shorten

LARGEST_SUMMARY = 900_000
"""Bytes; GitHub drops a step's summary of more than 1 MiB."""

LONGEST_MESSAGE = 1000

_PUNCTUATION = re.compile(r"[!-,.-/:-@\[-`{-~]|(?<![0-9A-Za-z])-")


def escape(text: str) -> str:
    """Text that Markdown, HTML and the runner's commands leave alone: all punctuation as character references."""
    references = _PUNCTUATION.sub(lambda found: f"&#{ord(found.group())};", clean(text).strip())
    return references.replace("\n", "<br>")


def job_summary(results: Sequence[Result], problems: Sequence[Graded] = ()) -> str:
    """Markdown for $GITHUB_STEP_SUMMARY: first what could not be graded, and why. Whatever does not fit is counted."""
    parts = [_problem(entry) for entry in problems] + [_summary(result) for result in results]
    text, left_out = "", 0
    for part in parts:
        if left_out or len((text + part).encode()) > LARGEST_SUMMARY:
            left_out += 1
        else:
            text += part
    return text + (f"\n{left_out} more results are not shown here.\n" if left_out else "")


def points_output(results: Sequence[Result], not_graded: float = 0.0) -> str:
    """Lines for $GITHUB_OUTPUT: `points` and `max_points`, over all results. Numbers only.

    Args:
        not_graded: the points that those without a result could have had.
    """
    points = shown(total(result.score for result in results), digits=6)
    most = total([*(result.max_score for result in results), not_graded])
    return f"points={points}\nmax_points={shown(most, digits=6)}\n"


def classroom_notices(results: Sequence[Result], not_graded: float = 0.0) -> str:
    """The two notices from which GitHub Classroom takes the points of a run, as its own reporter writes them.

    The reporter (classroom-resources/autograding-grading-reporter, src/notify-classroom.js) wants steps of its own kind
    before it. Its last two lines do not: "Points 8.5/10", and the same as JSON with the title "Autograding report".

    Args:
        not_graded: as for `points_output`.
    """
    points = _number(total(result.score for result in results))
    most = _number(total([*(result.max_score for result in results), not_graded]))
    report = json.dumps({"totalPoints": points, "maxPoints": most}, separators=(",", ":"))
    return f"::notice title=Autograding complete::Points {points}/{most}\n::notice title=Autograding report::{report}\n"


def _number(points: float) -> int | float:
    """Points as JavaScript writes them: 20, not 20.0."""
    rounded = round(points, 6)
    return int(rounded) if rounded == int(rounded) else rounded


def _problem(entry: Graded) -> str:
    reason = escape(shorten(entry.problem, LONGEST_MESSAGE))
    return f"## Not graded\n\nStudent: <code>{escape(one_line(entry.student))}</code>\n\n{reason}\n"


def _summary(result: Result) -> str:
    lines = [f"## {escape(one_line(result.assignment))}: {shown(result.score)} of {shown(result.max_score)} points", ""]
    lines += [f"Student: <code>{escape(one_line(result.student))}</code>", ""]
    if result.walls == "none":
        heading, warning = WITHOUT_WALLS
        lines += [f"**{heading}** {warning}", ""]
    lines += ["| question | points | look here first |", "| --- | ---: | --- |"]
    for question in result.questions:
        hint = escape(one_line(question.diagnosis.hint)) if question.diagnosis else ""
        points = f"{shown(question.score)} / {shown(question.max_score)}"
        lines.append(f"| <code>{escape(one_line(question.name))}</code> | {points} | {hint} |")
    lines.append("")
    for question in result.questions:
        lines += _failures(question, result)
    return "\n".join(lines) + "\n"


def _failures(question: QuestionResult, result: Result) -> list[str]:
    failed = [test for test in question.tests if test.outcome != "passed"]
    if not failed:
        return []
    lines = [f"### {escape(one_line(question.name))}", ""]
    if note := carried_note(question, result):
        lines += [escape(note), ""]
    if kept := kept_note(question):
        lines += [kept, ""]
    for test in failed:
        message = escape(shorten(test.message, LONGEST_MESSAGE))
        reason = f"<br><code>{message}</code>" if message else ""
        hints = "".join(f"<br>{escape(one_line(hint))}" for hint in slip_hints(question, test))
        lines.append(f"- **{escape(claim(test.name))}** ({WHAT_HAPPENED[test.outcome]}){reason}{hints}")
    return [*lines, ""]


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def main(arguments: Sequence[str]) -> int:
    """Append the summary and the points to the files that the runner names, and print the notices for Classroom."""
    assignment, folder, course = arguments
    results = read_results(Path(folder), assignment, _tell)
    problems = [entry for entry in read_timing(Path(folder), assignment, _tell) if entry.problem]
    missing = len(problems) * tested_points(Assignment(assignment, Path(course)))
    for variable, text in (
        ("GITHUB_STEP_SUMMARY", job_summary(results, problems)),
        ("GITHUB_OUTPUT", points_output(results, missing)),
    ):
        with Path(os.environ[variable]).open("a", encoding="utf-8") as file:
            file.write(text)
    if results or problems:
        print(classroom_notices(results, missing), end="")
    return 0 if results else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
