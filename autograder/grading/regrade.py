"""Implements `autograder regrade`: grades into a side folder, and says which tests would move which
marks.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.basics.points import format_points
from autograder.grading.request import GradeRequest, Watcher
from autograder.grading.run import grade_command
from autograder.records.model import Graded, QuestionResult, Result, TestOutcome
from autograder.records.results import (
    TimingFile,
    copy_for_history,
    load_timing,
    lock_results,
    read_result,
    read_results,
    read_timing,
    result_path,
    timing_path,
)

SIDE_FOLDER = "regrade"
_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Move:
    """The change of one student's mark.

    Attributes:
        change: the scores, as in "85 → 87 of 95 (+2)".
        reasons: the tests that moved it, one each.
    """

    student: str
    change: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes that a regrade would make.

    Attributes:
        moves: of each student whose mark moves.
        same: how many students keep their mark.
        untried: students whom this run did not grade; while there are any, no result is applied.
        suites: hash of a suite → how many of the results that count came from it.
        obstacles: why a student was not graded, where that is known.
    """

    moves: tuple[Move, ...]
    same: int
    untried: tuple[str, ...]
    suites: Mapping[str, int]
    obstacles: Mapping[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """The lines for the person: suites, then whose mark moves, by how much and why."""
        suites = [
            f"{count} of suite {suite[:12]}"
            for suite, count in sorted(self.suites.items())
        ]
        yield f"results that count: {', '.join(suites) or 'none'}"
        for move in self.moves:
            yield f"{move.student} {move.change}: {'; '.join(move.reasons)}"
        for student in self.untried:
            obstacle = self.obstacles.get(student)
            reason = f": {obstacle}" if obstacle else ""
            yield f"{student}: not graded by this run{reason}"
        yield f"marks that move: {len(self.moves)}, that stay: {self.same}"


def side_folder(results: Path) -> Path:
    """The folder of the results that do not count yet."""
    return results / SIDE_FOLDER


def regrade(request: GradeRequest, watcher: Watcher = Watcher()) -> Comparison:
    """Grade into the side folder, and compare with the results that count, which stay as they are.

    Raises:
        KitError: as `grade_command`.
    """
    name = request.assignment.name
    side = side_folder(request.results)
    summary = grade_command(dataclasses.replace(request, results=side), watcher)
    students = {result.student for result in summary.results}
    students |= {problem.student for problem in summary.problems}
    obstacles = {
        problem.student: problem.problem
        for problem in summary.problems
        if problem.untried
    }
    timing = read_timing(side, name, watcher.warn)
    problems = {entry.student: entry.problem for entry in timing}
    counting, regraded = (
        {result.student: result for result in read_results(folder, name, watcher.warn)}
        for folder in (request.results, side)
    )
    return compare_results(
        students, counting, regraded, problems | obstacles, tuple(obstacles)
    )


def compare_results(
    students: Collection[str],
    counting: Mapping[str, Result],
    regraded: Mapping[str, Result],
    problems: Mapping[str, str],
    untried: Sequence[str] = (),
) -> Comparison:
    """The changes for these students, of results that count and new ones.

    Args:
        problems: why a student has no new result, also of those who were not graded again.
        untried: students who were not graded again.
    """
    moves = []
    for student in sorted(set(students).difference(untried)):
        old = counting.get(student)
        new = regraded.get(student)
        if reasons := explain_move(old, new, problems.get(student, "")):
            moves.append(Move(student, _describe_change(old, new), tuple(reasons)))
    suites = Counter(
        [
            result.suite_sha256
            for result in counting.values()
            if result.student in students
        ]
    )
    same = len(students) - len(untried) - len(moves)
    obstacles = {
        student: problems[student] for student in untried if problems.get(student)
    }
    return Comparison(tuple(moves), same, tuple(untried), suites, obstacles)


def apply_regrade(request: GradeRequest) -> None:
    """Make the results of the side folder those that count; results that are replaced go to the
    history.
    """
    results = request.results
    side = side_folder(request.results)
    name = request.assignment.name
    with (
        lock_results(request.course.kept / "locks", results, name),
        FileTransaction(
            request.course.kept, f"`autograder regrade {name} --apply`"
        ) as files,
    ):
        entries = _load_side_timing(side, name)
        for entry in entries:
            path = result_path(results, name, entry.student)
            new_path = result_path(side, name, entry.student)
            if read_result(side, name, entry.student) is not None:
                _replace(files, request, path, new_path.read_bytes())
                files.remove(new_path)
            elif new_path.exists():
                raise KitError(
                    f"{new_path}: it is no result that adds up; nothing was taken over, run "
                    "`regrade` again"
                )
            elif entry.problem:  # an entry without one is of a run that was killed
                _replace(files, request, path, None)
        times = TimingFile(results, name)
        times.add(entries)
        files.write(timing_path(results, name), times.text())
        files.remove(timing_path(side, name))
    shutil.rmtree(side / name, ignore_errors=True)


def _load_side_timing(side: Path, assignment: str) -> list[Graded]:
    try:
        return load_timing(side, assignment)
    except ValueError as error:
        raise KitError(
            f"{error}; nothing was taken over: remove it, and run `regrade` again"
        ) from error


def _replace(
    files: FileTransaction,
    request: GradeRequest,
    path: Path,
    content: bytes | None,
) -> None:
    """Replace or remove a result that counts; the old one goes to the history."""
    if path.is_file() and path.read_bytes() == content:
        return
    if copy := copy_for_history(
        request.results, request.assignment.name, path, content, path.name
    ):
        files.write(*copy)
    if content is None:
        files.remove(path)
    else:
        files.write(path, content)


def _describe_change(old: Result | None, new: Result | None) -> str:
    """The scores, as in "85 → 87 of 95 (+2)"."""
    old_score = format_points(old.score) if old else "none"
    if new is None:
        return f"{old_score} → none of none"
    change = f" ({_signed(new.score - old.score)})" if old else ""
    full = format_points(new.max_score)
    return f"{old_score} → {format_points(new.score)} of {full}{change}"


def explain_move(
    old: Result | None,
    new: Result | None,
    problem: str = "",
) -> list[str]:
    """Why a mark moves, one reason each; nothing where the mark stays."""
    if new is None:
        return [f"can no longer be graded: {problem}"] if old else []
    if old is None:
        return ["has no result that counts yet"]
    if _is_same(old.score, new.score) and _is_same(old.max_score, new.max_score):
        return []
    reasons = []
    if old.submission_sha256 != new.submission_sha256:
        reasons.append("another notebook has been handed in")
    old_questions = {question.name: question for question in old.questions}
    new_questions = {question.name: question for question in new.questions}
    for name in dict.fromkeys((*old_questions, *new_questions)):
        changes = _compare_questions(old_questions.get(name), new_questions.get(name))
        reasons += [f"{name}: {change}" for change in changes]
    return reasons


def _compare_questions(
    old: QuestionResult | None, new: QuestionResult | None
) -> Iterator[str]:
    """The tests that moved points, then carried and kept points."""
    old_tests = {test.name: test for test in old.tests} if old else {}
    new_tests = {test.name: test for test in new.tests} if new else {}
    for name in dict.fromkeys((*old_tests, *new_tests)):
        change = _compare_tests(old_tests.get(name), new_tests.get(name))
        if change:
            yield f"{name} {change}"
    for kind in ("carried", "kept"):
        points = getattr(new, kind, 0.0) - getattr(old, kind, 0.0)
        if not _is_same(points, 0.0):
            yield f"{kind} points ({_signed(points)})"


def _compare_tests(old: TestOutcome | None, new: TestOutcome | None) -> str:
    """How a test moved points; "" where it did not."""
    if new is None:
        assert old is not None  # one of the two is there
        return f"is gone ({_signed(-old.points)} of {format_points(old.max_points)})"
    full = format_points(new.max_points)
    if old is None:
        return f"is new, {new.outcome} ({_signed(new.points)} of {full})"
    is_worth_the_same = _is_same(old.max_points, new.max_points)
    if is_worth_the_same and _is_same(old.points, new.points):
        return ""
    change = f"{old.outcome} → {new.outcome}"
    if old.outcome == new.outcome:
        change = f"still {new.outcome}"
    worth = "" if is_worth_the_same else f", worth {full} now"
    return f"{change} ({_signed(new.points - old.points)}{worth})"


def _signed(points: float) -> str:
    return f"{points:+g}"


def _is_same(points: float, other_points: float) -> bool:
    return abs(points - other_points) < _CLOSE
