"""The class report, for instructors: everybody's mark or why there is none, and common faults."""

from __future__ import annotations

import os
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from autograder.basics.file_transaction import FileTransaction
from autograder.intake.collected import Collected
from autograder.marks.marks import Mark
from autograder.marks.rubric import RubricItem, written_statistics
from autograder.outputs.feedback_page import feedback_path
from autograder.outputs.pages import render_pieces
from autograder.outputs.statistics import (
    AttemptSummary,
    class_shares,
    histogram,
    read_attempts,
    summarize_attempts,
    summarize_questions,
    summarize_timing,
)
from autograder.outputs.terminal import question_sign
from autograder.records.groups import ClassGroups, nameless_questions
from autograder.records.model import Graded


def render_report(
    assignment: str,
    marks: Sequence[Mark],
    timing: Sequence[Graded] = (),
    collected: Collected | None = None,
    pages: Mapping[str, str] | None = None,
    stale: Mapping[str, str] | None = None,
    tries: Sequence[AttemptSummary] = (),
    rubrics: Mapping[str, Sequence[RubricItem]] | None = None,
    groups: ClassGroups | None = None,
) -> Iterator[str]:
    """The class report as HTML, in pieces.

    Args:
        marks: the whole class.
        timing: seconds of each submission; an entry also says if its result is an earlier run's.
        collected: the record of the last `collect`.
        pages: student → address of the feedback page, relative to the report.
        stale: student → why grading would give another result now.
        tries: statistics of first, second and further submissions.
        rubrics: the items of the marking schemes, by written answer.
        groups: the groups of wrong answers without a name; None where they are not made yet.
    """
    results = [mark.result for mark in marks if mark.result is not None]
    shares = class_shares(marks)
    counts = Counter({"graded": 0})
    counts.update("graded" if mark.result else mark.status for mark in marks)
    by_mark = sorted(marks, key=_mark_order)
    by_status = sorted(marks, key=_status_order)
    grades_by_hand = [mark.by_hand for mark in marks if mark.by_hand]
    return render_pieces(
        "report.html",
        assignment=assignment,
        results=results,
        counts=counts,
        unfinished=[
            mark
            for mark in marks
            if mark.result is None or mark.status == "time cannot be read"
        ],
        waiting=[mark for mark in marks if mark.status == "waits for a person"],
        flagged=[
            (result.student, question.name, flag)
            for result in results
            for question in result.questions
            for flag in question.two_answers
        ],
        older=[entry for entry in timing if entry.older],
        mean=statistics.fmean(shares or [0.0]),
        median=statistics.median(shares or [0.0]),
        bins=histogram(shares),
        questions=summarize_questions(results),
        tries=tries if len(tries) > 1 else (),
        nameless=sum([len(nameless_questions(result)) for result in results]),
        groups=groups.groups if groups else (),
        written=written_statistics(grades_by_hand, rubrics or {}),
        orders=(("student", marks), ("mark", by_mark), ("status", by_status)),
        pages=pages or {},
        stale=stale or {},
        collected=collected or Collected(),
        timing=summarize_timing(timing),
        suites=len({result.suite_sha256 for result in results}),
        unwalled=sum(result.walls == "none" for result in results),
        sign=question_sign,
    )


def _mark_order(mark: Mark) -> tuple[bool, float, str]:
    """The best mark first; students without a mark last."""
    return mark.score is None, -(mark.score or 0.0), mark.student


def _status_order(mark: Mark) -> tuple[bool, str, str]:
    """Graded students last."""
    return mark.status == "graded", mark.status, mark.student


def write_report(
    files: FileTransaction,
    folder: Path,
    assignment: str,
    marks: Sequence[Mark],
    timing: Sequence[Graded],
    collected: Collected,
    feedback: Path,
    stale: Mapping[str, str] | None = None,
    rubrics: Mapping[str, Sequence[RubricItem]] | None = None,
    groups: ClassGroups | None = None,
) -> Path:
    """Write `<folder>/<assignment>.html`, with links to the pages in the folder `feedback`."""
    path = folder / f"{assignment}.html"
    pages = {}
    for mark in marks:
        page = feedback_path(feedback, assignment, mark.own_folder)
        if mark.result is not None and files.will_exist(page):
            address = os.path.relpath(page.resolve(), folder.resolve())
            pages[mark.student] = quote(address)
    results = [mark.result for mark in marks if mark.result is not None]
    tries = summarize_attempts(read_attempts(folder, assignment, results))
    report = render_report(
        assignment, marks, timing, collected, pages, stale, tries, rubrics, groups
    )
    files.write(path, report)
    return path
