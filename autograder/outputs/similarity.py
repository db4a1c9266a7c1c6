"""Pairs of submissions that share more than the assignment explains, for a person to look at. It is
never a score.

What the release, the answer key or a known answer holds explains itself, and so does what much of
the class has.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.errors import KitError, UnreadableSubmission
from autograder.basics.safe_text import one_line
from autograder.basics.whole_files import write_whole
from autograder.course import Assignment, Course
from autograder.intake.find import find_submissions
from autograder.intake.notebook import read_submission
from autograder.intake.reading import read_notebook
from autograder.intake.released_notebook import load_release
from autograder.outputs.code_fingerprints import Fingerprint, fingerprints
from autograder.outputs.pages import render
from autograder.outputs.shingles import shingles
from autograder.records.model import Cell, Submission
from autograder.suite.known_answers import load_known_answers

LEAST_SHARED = 6
"""Fingerprints that a pair must share to be shown: some sixty tokens, which are about six lines."""
LEAST_SHARED_WORDS = 10
"""Runs of words in written answers that a pair must share to be shown: a sentence of thirteen
words, or pieces.
"""
MOST_PAIRS = 40
_COMMON, _SHARE_OF_CLASS = 3, 0.1
"""What more submissions have than these, the number or the share of the class, is what people
write.
"""


@dataclass(frozen=True, slots=True)
class Passage:
    """Two cells that share something: their lines, each with whether it lies in what is shared."""

    names: tuple[str, str]
    sides: tuple[tuple[tuple[str, bool], ...], tuple[tuple[str, bool], ...]]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two students whose submissions share `shared` fingerprints, of code and of words, that
    nothing explains.
    """

    students: tuple[str, str]
    shared: int
    passages: tuple[Passage, ...]


def similarity_command(
    course: Course, assignment: Assignment, paths: Sequence[Path], results: Path
) -> Iterator[str]:
    """Compare every submission with every other, and write a page for a person; yields what to
    tell.

    Raises:
        KitError: there is nothing to compare, or the assignment is not built.
    """
    release = load_release(assignment)
    submissions = []
    for found in find_submissions(course, assignment, paths):
        try:
            submissions.append(read_submission(found, release, course.limits))
        except UnreadableSubmission as problem:
            yield one_line(f"not compared: {found.student}: {problem}")
    pairs = find_similar_pairs(submissions, read_known_texts(course, assignment))
    page = results / f"{assignment.name}.similarity.html"
    write_whole(page, render_similarity(assignment.name, len(submissions), pairs))
    for pair in pairs:
        yield one_line(f"to look at: {pair.students[0]} and {pair.students[1]}")
    yield (
        f"{len(submissions)} submissions compared, {len(pairs)} pairs to look at: "
        f"{page.resolve().as_uri()}"
    )


def read_known_texts(course: Course, assignment: Assignment) -> list[str]:
    """The code and the text that the assignment itself gives, or that the course knows as an
    answer.
    """
    if not assignment.solution.is_file():
        raise KitError(
            f"{assignment.solution} is not built; run `autograder build {assignment.name}`"
        )
    key = read_notebook(assignment.solution.resolve(), course.limits.notebook_mb).cells
    release = load_release(assignment).cells
    answers = {cell.name: cell.source for cell in key if cell.role == "question"}
    files = (assignment.suite / name for name in ("mistakes.py", "alternates.py"))
    known = [answer.cell for path in files for answer in load_known_answers(path, answers)]
    return [*(cell.source for cell in release), *(cell.source for cell in key), *known]


def find_similar_pairs(submissions: Sequence[Submission], explaining: Sequence[str]) -> list[Pair]:
    """The pairs that share most, most first. Given cells and checks are the release's and are not
    looked at.
    """
    known = {
        print_.value
        for source in explaining
        for print_ in (*fingerprints(source), *shingles(source))
    }
    of_words = {
        print_.value
        for one in submissions
        for answer in one.written
        for print_ in shingles(answer.text)
    }
    prints = {one.student: _by_cell(one, known) for one in submissions}
    having: defaultdict[bytes, set[str]] = defaultdict(set)
    for student, cells in prints.items():
        for cell in cells.values():
            for print_ in cell:
                having[print_.value].add(student)
    most = max(_COMMON, int(_SHARE_OF_CLASS * len(submissions)))
    shared: defaultdict[tuple[str, str], set[bytes]] = defaultdict(set)
    for value, students in having.items():
        if len(students) <= most:
            for pair in itertools.combinations(sorted(students), 2):
                shared[pair].add(value)
    sides = {one.student: (_texts(one), prints[one.student]) for one in submissions}
    flagged = [(pair, values) for pair, values in shared.items() if _is_much(values, of_words)]
    flagged.sort(key=lambda row: (-len(row[1]), row[0]))
    return [
        Pair((one, other), len(values), _passages(values, sides[one], sides[other]))
        for (one, other), values in flagged[:MOST_PAIRS]
    ]


def render_similarity(assignment: str, compared: int, pairs: Sequence[Pair]) -> str:
    """The page as HTML: for each pair its passages side by side."""
    return render("similarity.html", assignment=assignment, compared=compared, pairs=pairs)


def _by_cell(submission: Submission, known: set[bytes]) -> dict[str, list[Fingerprint]]:
    """What nothing explains, of each cell of the student's own and of each written answer."""
    of_code = {cell.id: fingerprints(cell.source) for cell in submission.cells if _is_own(cell)}
    of_words = {
        answer.id: shingles(answer.text) for answer in submission.written if not answer.blank
    }
    return {
        id_: [print_ for print_ in prints if print_.value not in known]
        for id_, prints in (of_code | of_words).items()
    }


def _texts(submission: Submission) -> dict[str, str]:
    """The text of each cell and of each written answer."""
    return {cell.id: cell.source for cell in submission.cells} | {
        each.id: each.text for each in submission.written
    }


def _is_much(shared: set[bytes], of_words: set[bytes]) -> bool:
    words = len(shared & of_words)
    return words >= LEAST_SHARED_WORDS or len(shared) - words >= LEAST_SHARED


def _is_own(cell: Cell) -> bool:
    return cell.role in ("question", "extra")


_Side = tuple[Mapping[str, str], Mapping[str, Sequence[Fingerprint]]]
"""A submission's cells: their texts, and their fingerprints that nothing explains."""


def _passages(shared: set[bytes], one: _Side, other: _Side) -> tuple[Passage, ...]:
    """Each cell of the first with that cell of the second that shares most of it."""
    passages = []
    for name, prints in one[1].items():
        common = {
            theirs: {p.value for p in prints} & {p.value for p in their_prints} & shared
            for theirs, their_prints in other[1].items()
        }
        theirs = max(common, key=lambda cell: len(common[cell]), default="")
        if theirs and common[theirs]:
            left = _marked(one[0][name], prints, common[theirs])
            right = _marked(other[0][theirs], other[1][theirs], common[theirs])
            passages.append(Passage((name, theirs), (left, right)))
    return tuple(passages)


def _marked(
    source: str, prints: Sequence[Fingerprint], shared: set[bytes]
) -> tuple[tuple[str, bool], ...]:
    marked = {line for p in prints if p.value in shared for line in range(p.first, p.last + 1)}
    return tuple((line, number in marked) for number, line in enumerate(source.split("\n")))
