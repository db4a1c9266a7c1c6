"""Find pairs of submissions that share more than the assignment explains, for a person to look at.

Passages of the release, the answer key and known answers explain themselves, and so do passages
that much of the class has. A pair is never a score.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from autograder.records.submission import Submission
from autograder.suite.known_answers import load_known_answers

LEAST_SHARED = 6
"""Fingerprints that a pair must share to be shown: some sixty tokens, which are about six lines."""
LEAST_SHARED_WORDS = 10
"""Runs of words in written answers that a pair must share to be shown: a sentence of thirteen
words.
"""
MOST_PAIRS = 40
COMMON = 3
SHARE_OF_CLASS = 0.1
"""A fingerprint of more submissions, by number and by share of the class, is common writing."""


@dataclass(frozen=True, slots=True)
class ComparedCell:
    """A cell or a written answer of a student, with its unexplained fingerprints."""

    text: str
    fingerprints: Sequence[Fingerprint]

    def values(self) -> set[bytes]:
        """The hashes of the fingerprints."""
        return _hashes(self.fingerprints)

    def marked_lines(self, shared: set[bytes]) -> list[tuple[str, bool]]:
        """Each line, and whether it lies in a shared passage."""
        marked: set[int] = set()
        for fingerprint in self.fingerprints:
            if fingerprint.value in shared:
                marked.update(range(fingerprint.first, fingerprint.last + 1))
        lines = []
        for number, line in enumerate(self.text.split("\n")):
            lines.append((line, number in marked))
        return lines


Cells = Mapping[str, ComparedCell]
"""A submission's cells and written answers, by id."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Two cells that share a passage: their names, and `ComparedCell.marked_lines` of each."""

    names: tuple[str, str]
    sides: tuple[list[tuple[str, bool]], list[tuple[str, bool]]]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two students whose submissions share `shared` unexplained fingerprints."""

    students: tuple[str, str]
    shared: int
    passages: Sequence[Passage]


def similarity_command(
    course: Course, assignment: Assignment, paths: Sequence[Path], results: Path
) -> Iterator[str]:
    """Compare every submission with every other, and write a page; yields lines for the terminal.

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
    """The cells of release and answer key, and the known answers: texts that explain passages."""
    if not assignment.solution.is_file():
        raise KitError(
            f"{assignment.solution} is not built; run `autograder build {assignment.name}`"
        )
    path = assignment.solution.resolve()
    key = read_notebook(path, course.limits.notebook_mb).cells
    answers = {cell.name: cell.source for cell in key if cell.role == "question"}
    texts = [cell.source for cell in load_release(assignment).cells]
    texts += [cell.source for cell in key]
    for name in ("mistakes.py", "alternates.py"):
        known_answers = load_known_answers(assignment.suite / name, answers)
        # a mistake that was learned from a student explains no copy of that student's answer
        texts += [answer.cell for answer in known_answers if not answer.is_students]
    return texts


def find_similar_pairs(
    submissions: Sequence[Submission], known_texts: Sequence[str]
) -> list[Pair]:
    """The pairs that share most, most first.

    Given cells and checks are the release's, and are not compared.
    """
    explained: set[bytes] = set()
    for text in known_texts:
        explained |= _hashes(fingerprints(text))
        explained |= _hashes(shingles(text))
    of_words: set[bytes] = set()
    submitted_cells: dict[str, Cells] = {}
    students: defaultdict[bytes, set[str]] = defaultdict(set)
    for submission in submissions:
        for answer in submission.written:
            of_words |= _hashes(shingles(answer.text))
        cells = _read_cells(submission, explained)
        submitted_cells[submission.student] = cells
        for cell in cells.values():
            for value in cell.values():
                students[value].add(submission.student)
    shared = _shared_by_pairs(students, len(submissions))
    flagged = [pair for pair, values in shared.items() if _is_much(values, of_words)]
    flagged.sort(key=lambda pair: (-len(shared[pair]), pair))
    pairs = []
    for left, right in flagged[:MOST_PAIRS]:
        values = shared[left, right]
        passages = _find_passages(values, submitted_cells[left], submitted_cells[right])
        pairs.append(Pair((left, right), len(values), passages))
    return pairs


def render_similarity(assignment: str, compared: int, pairs: Sequence[Pair]) -> str:
    """The page as HTML: for each pair its passages side by side."""
    return render(
        "similarity.html", assignment=assignment, compared=compared, pairs=pairs
    )


def _read_cells(submission: Submission, explained: set[bytes]) -> Cells:
    """The student's own cells and written answers, with their unexplained fingerprints."""
    cells = {}
    for cell in submission.cells:
        if cell.role in ("question", "extra"):
            unexplained = _unexplained(fingerprints(cell.source), explained)
            cells[cell.id] = ComparedCell(cell.source, unexplained)
    for answer in submission.written:
        if not answer.blank:
            unexplained = _unexplained(shingles(answer.text), explained)
            cells[answer.id] = ComparedCell(answer.text, unexplained)
    return cells


def _hashes(prints: Iterable[Fingerprint]) -> set[bytes]:
    return {fingerprint.value for fingerprint in prints}


def _unexplained(
    prints: Iterable[Fingerprint], explained: set[bytes]
) -> list[Fingerprint]:
    return [fingerprint for fingerprint in prints if fingerprint.value not in explained]


def _shared_by_pairs(
    students: Mapping[bytes, set[str]], class_size: int
) -> Mapping[tuple[str, str], set[bytes]]:
    """Pair of students → fingerprints in the work of both; common fingerprints are left out."""
    most = max(COMMON, int(SHARE_OF_CLASS * class_size))
    shared: defaultdict[tuple[str, str], set[bytes]] = defaultdict(set)
    for value, having in students.items():
        if len(having) <= most:
            for pair in itertools.combinations(sorted(having), 2):
                shared[pair].add(value)
    return shared


def _is_much(shared: set[bytes], of_words: set[bytes]) -> bool:
    words = len(shared & of_words)
    return words >= LEAST_SHARED_WORDS or len(shared) - words >= LEAST_SHARED


def _find_passages(shared: set[bytes], left: Cells, right: Cells) -> list[Passage]:
    """Match each cell of one submission to the most similar cell of the other submission."""
    passages = []
    for name, cell in left.items():
        values = cell.values() & shared
        best, most_common = "", set[bytes]()
        for their_name, their_cell in right.items():
            common = values & their_cell.values()
            if len(common) > len(most_common):
                best, most_common = their_name, common
        if best:
            left_lines = cell.marked_lines(most_common)
            right_lines = right[best].marked_lines(most_common)
            passages.append(Passage((name, best), (left_lines, right_lines)))
    return passages
