"""Groups of wrong answers without a name, as `autograder mistakes` stores them beside the results.

- `<folder>/<assignment>.groups.json`: the groups of the class, and the results that they were made
  of.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.points import is_full
from autograder.basics.stored_json import encode_stored, read_stored
from autograder.basics.whole_files import write_whole
from autograder.records.model import QuestionResult, Result


@dataclass(frozen=True, slots=True)
class MistakeGroup:
    """Wrong answers to one question that fail the same tests with the same answers.

    Attributes:
        name: the group's name, which follows from the question and the behaviour.
        tests: the failed tests that no slip explains, in the order of the suite.
        ways: how the answers differ from the right ones, in words.
        message: what the students read about the failed test with the most points.
        code: the shortest answer among those with the fewest faults, without comments and names;
            "" where none could be cut out.
        problem: why that answer cannot become a known mistake; "" where it can.
        other_code: the answer that is written most differently; "" without one.
        students: the members, sorted.
        mistake: the known mistake that an instructor made of the group; "" before.
    """

    name: str
    question: str
    tests: tuple[str, ...]
    ways: tuple[str, ...]
    message: str
    code: str
    problem: str
    other_code: str
    students: tuple[str, ...]
    mistake: str = ""


@dataclass(frozen=True, slots=True)
class ClassGroups:
    """The groups of a class.

    Attributes:
        results_sha256: the fingerprint of the nameless answers in the results.
        suite_sha256: `course_sha256` when the groups were made, or when the last one was named.
        groups: the largest group first.
        left_out: students' answers that could not be run again, and why.
    """

    results_sha256: str
    suite_sha256: str
    groups: tuple[MistakeGroup, ...]
    left_out: tuple[str, ...] = ()

    def group(self, name: str) -> MistakeGroup | None:
        """The group of that name."""
        return next((group for group in self.groups if group.name == name), None)

    def with_mistake(self, name: str, mistake: str, suite_sha256: str) -> ClassGroups:
        """The same groups after one of them got the name of a known mistake."""
        groups = [
            dataclasses.replace(group, mistake=mistake) if group.name == name else group
            for group in self.groups
        ]
        return dataclasses.replace(
            self, suite_sha256=suite_sha256, groups=tuple(groups)
        )


def nameless_questions(result: Result) -> dict[str, tuple[str, ...]]:
    """The questions of a result that lost points by a written answer, and of which no known mistake
    explains half: each with the failed tests that a slip explains.
    """
    questions = {}
    for question in result.questions:
        if question.diagnosis or is_full(question.score, question.max_score):
            continue
        explained = tuple(test for slip in question.slips for test in slip.tests)
        if _has_unexplained_tests(question, explained):
            questions[question.name] = explained
    return questions


def _has_unexplained_tests(
    question: QuestionResult, explained: Collection[str]
) -> bool:
    return any(
        test.outcome not in ("passed", "missing") and test.name not in explained
        for test in question.tests
    )


def fingerprint_nameless(results: Iterable[Result]) -> str:
    """A hash of the nameless answers: groups of other answers are out of date."""
    digest = hashlib.sha256()
    for result in sorted(results, key=lambda result: result.student):
        if questions := nameless_questions(result):
            fields = (
                result.student,
                result.submission_sha256,
                result.suite_sha256,
                *questions,
            )
            digest.update("\0".join(fields).encode("utf-8", "surrogatepass") + b"\1")
    return digest.hexdigest()


def groups_path(folder: Path, assignment: str) -> Path:
    """The path of the groups' file among the results in `folder`."""
    return folder / f"{assignment}.groups.json"


def read_groups(folder: Path, assignment: str) -> ClassGroups | None:
    """The stored groups; None where the file is missing or broken: they can be made again."""
    try:
        return read_stored(groups_path(folder, assignment), ClassGroups)
    except (OSError, ValueError):
        return None


def read_current_groups(
    folder: Path, assignment: str, results: Iterable[Result]
) -> ClassGroups | None:
    """The stored groups, where they are those of these results' nameless answers."""
    groups = read_groups(folder, assignment)
    if groups is None or groups.results_sha256 != fingerprint_nameless(results):
        return None
    return groups


def write_groups(folder: Path, assignment: str, groups: ClassGroups) -> None:
    """Store the groups."""
    content = encode_stored(groups).encode("utf-8", "backslashreplace")
    write_whole(groups_path(folder, assignment), content)
