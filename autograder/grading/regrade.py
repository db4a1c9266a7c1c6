"""What `autograder regrade` does: grades into a side folder, and says which tests would move which
marks.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.errors import KitError
from autograder.basics.file_transaction import FileTransaction
from autograder.basics.points import format_points
from autograder.grading.request import GradeRequest, Watcher
from autograder.grading.run import grade_command
from autograder.records.model import Graded, QuestionResult, Result
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
class Comparison:
    """What a regrade would change.

    Attributes:
        moves: a line for each student whose mark moves: by how much, and why.
        same: how many keep theirs.
        untried: whom this run did not come to; nothing is taken over while there is one.
        suites: hash of a suite → how many of the results that count came from it.
    """

    moves: tuple[str, ...]
    same: int
    untried: tuple[str, ...]
    suites: Mapping[str, int]

    def lines(self) -> Iterator[str]:
        """What to tell the person: which suites, then whose mark moves, by how much and why."""
        of = ", ".join(
            f"{count} of suite {suite[:12]}" for suite, count in sorted(self.suites.items())
        )
        yield f"results that count: {of or 'none'}"
        yield from self.moves
        for student in self.untried:
            yield f"{student}: not graded by this run"
        yield f"marks that move: {len(self.moves)}, that stay: {self.same}"


def side_folder(results: Path) -> Path:
    """Where the results lie that do not count yet."""
    return results / SIDE_FOLDER


def regrade(request: GradeRequest, watcher: Watcher = Watcher()) -> Comparison:
    """Grade into the side folder, and compare with the results that count, which stay as they are.

    Raises:
        KitError: as `grade_command`.
    """
    side = side_folder(request.results)
    summary = grade_command(dataclasses.replace(request, results=side), watcher)
    name = request.assignment.name
    students = {result.student for result in summary.results} | {
        problem.student for problem in summary.problems
    }
    untried = tuple(problem.student for problem in summary.problems if problem.untried)
    problems = {
        entry.student: entry.problem
        for entry in read_timing(side, name, watcher.warn)
        if entry.problem
    }
    before, after = (
        {
            result.student: result
            for result in read_results(folder, name, watcher.warn)
            if result.student in students
        }
        for folder in (request.results, side)
    )
    moves = []
    for student in sorted(students - set(untried)):
        old, new = before.get(student), after.get(student)
        if reasons := why(old, new, problems.get(student, "")):
            moves.append(f"{student} {_change(old, new)}: {'; '.join(reasons)}")
    suites = Counter(result.suite_sha256 for result in before.values())
    return Comparison(tuple(moves), len(students) - len(untried) - len(moves), untried, suites)


def take_over(request: GradeRequest) -> None:
    """Make the results of the side folder those that count; what they replace goes to the
    history.
    """
    results, side, name = request.results, side_folder(request.results), request.assignment.name
    kept = request.course.kept
    with (
        lock_results(kept / "locks", results, name),
        FileTransaction(kept, f"`autograder regrade {name} --apply`") as files,
    ):
        entries = _side_times(side, name)
        for entry in entries:
            path, new = (
                result_path(results, name, entry.student),
                result_path(side, name, entry.student),
            )
            if read_result(side, name, entry.student) is not None:
                _replace(files, request, path, new.read_bytes())
                files.remove(new)
            elif new.exists():
                raise KitError(
                    f"{new}: it is no result that adds up; nothing was taken over, run "
                    "`regrade` again"
                )
            elif entry.problem:  # without one it is of a run that was killed
                _replace(files, request, path, None)
        times = TimingFile(results, name)
        times.take_in(entries)
        files.write(timing_path(results, name), times.text())
        files.remove(timing_path(side, name))
    shutil.rmtree(side / name, ignore_errors=True)


def _side_times(side: Path, assignment: str) -> list[Graded]:
    try:
        return load_timing(side, assignment)
    except ValueError as error:
        raise KitError(
            f"{error}; nothing was taken over: remove it, and run `regrade` again"
        ) from error


def _replace(
    files: FileTransaction, request: GradeRequest, path: Path, content: bytes | None
) -> None:
    """Put a result in the place of the one that counts, or none; that one goes to the history."""
    if path.is_file() and path.read_bytes() == content:
        return
    if copy := copy_for_history(request.results, request.assignment.name, path, content, path.name):
        files.write(*copy)
    if content is None:
        files.remove(path)
    else:
        files.write(path, content)


def _change(before: Result | None, after: Result | None) -> str:
    """As "85 → 87 of 95 (+2)"."""
    scores = " → ".join(
        format_points(result.score) if result else "none" for result in (before, after)
    )
    by = f" ({_signed(after.score - before.score)})" if after and before else ""
    return f"{scores} of {format_points(after.max_score) if after else 'none'}{by}"


def why(before: Result | None, after: Result | None, problem: str = "") -> list[str]:
    """Why a mark moves, one reason each; nothing where it stays."""
    if after is None:
        return [f"can no longer be graded: {problem}"] if before else []
    if before is None:
        return ["has no result that counts yet"]
    if _same(before.score, after.score) and _same(before.max_score, after.max_score):
        return []
    again = (
        ["another notebook has been handed in"]
        if before.submission_sha256 != after.submission_sha256
        else []
    )
    old = {question.name: question for question in before.questions}
    new = {question.name: question for question in after.questions}
    reasons = [
        reason
        for name in dict.fromkeys((*old, *new))
        for reason in _of_question(old.get(name), new.get(name))
    ]
    return again + reasons


def _of_question(before: QuestionResult | None, after: QuestionResult | None) -> list[str]:
    name = (after or before).name  # type: ignore[union-attr]  # one of the two is there
    old = {test.name: test for test in before.tests} if before else {}
    new = {test.name: test for test in after.tests} if after else {}
    reasons = []
    for test in dict.fromkeys((*old, *new)):
        was, now = old.get(test), new.get(test)
        if was is None and now is not None:
            reasons.append(
                f"{name}: {test} is new, {now.outcome} ({_signed(now.points)} of "
                f"{format_points(now.max_points)})"
            )
        elif now is None and was is not None:
            reasons.append(
                f"{name}: {test} is gone ({_signed(-was.points)} of "
                f"{format_points(was.max_points)})"
            )
        elif (
            was
            and now
            and not (_same(was.points, now.points) and _same(was.max_points, now.max_points))
        ):
            how = (
                f"{was.outcome} → {now.outcome}"
                if was.outcome != now.outcome
                else f"still {now.outcome}"
            )
            worth = (
                ""
                if _same(was.max_points, now.max_points)
                else f", worth {format_points(now.max_points)} now"
            )
            reasons.append(f"{name}: {test} {how} ({_signed(now.points - was.points)}{worth})")
    for what in ("carried", "kept"):
        change = (getattr(after, what) if after else 0.0) - (
            getattr(before, what) if before else 0.0
        )
        if not _same(change, 0.0):
            reasons.append(f"{name}: {what} points ({_signed(change)})")
    return reasons


def _signed(points: float) -> str:
    return f"{points:+g}"


def _same(one: float, other: float) -> bool:
    return abs(one - other) < _CLOSE
