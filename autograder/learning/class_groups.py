"""The groups of a class: read where they are stored for the same results, else made anew."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.basics.errors import KitError, NothingToGrade
from autograder.course import Assignment, Course
from autograder.grading.staleness import keep_current
from autograder.intake.find import find_submissions
from autograder.ledger import Ledger, read_ledger
from autograder.records.groups import (
    ClassGroups,
    MistakeGroup,
    fingerprint_nameless,
    nameless_questions,
    read_current_groups,
    write_groups,
)
from autograder.records.model import Result
from autograder.records.results import Tell, course_sha256, read_results
from autograder.records.submission import FoundSubmission

if TYPE_CHECKING:
    from autograder.grading.bench import Bench
    from autograder.learning.behaviour import NamelessSubmission


@dataclass(frozen=True, slots=True)
class MistakesRequest:
    """The options of `autograder mistakes` that say whose answers are meant.

    Attributes:
        paths: notebooks or folders of them; the course's `submitted/` where there are none.
        results: the folder of results.
        workers: how many processes; None for one a core.
    """

    course: Course
    assignment: Assignment
    results: Path
    paths: tuple[Path, ...] = ()
    workers: int | None = None


def load_groups(
    request: MistakesRequest, results: Sequence[Result], tell: Tell
) -> ClassGroups:
    """The groups of the results' nameless answers. Stored groups count as long as neither the
    results nor the suite has changed, but for mistakes that the groups got as names.

    Raises:
        KitError: all results are older than the suite, or this machine cannot grade.
    """
    suite = course_sha256(request.course, request.assignment)
    stored = read_current_groups(request.results, request.assignment.name, results)
    if stored is not None and stored.suite_sha256 == suite:
        return stored
    groups = _make_groups(request, results, suite, tell)
    write_groups(request.results, request.assignment.name, groups)
    return groups


def load_results(request: MistakesRequest, tell: Tell) -> list[Result]:
    """The stored results of the class.

    Raises:
        NothingToGrade: there are none.
    """
    name = request.assignment.name
    results = read_results(request.results, name, tell)
    if not results:
        raise NothingToGrade(
            f"no results in {request.results / name}: run `autograder grade {name}` first"
        )
    return results


def _make_groups(
    request: MistakesRequest, results: Sequence[Result], suite: str, tell: Tell
) -> ClassGroups:
    """Run the nameless answers again, and group them."""
    name = request.assignment.name
    current = keep_current(results, suite, name, tell)
    if not current:
        raise KitError(
            f"all results of {name} are older than the suite, the answer key or the limits: run "
            f"`autograder grade {name}` first"
        )
    nameless = [result for result in current if nameless_questions(result)]
    groups: list[MistakeGroup] = []
    left_out: list[str] = []
    if nameless:
        files = find_files(request)
        left_out = [
            f"{result.student}: the notebook is not there any more"
            for result in nameless
            if result.student not in files
        ]
        graded = [result for result in nameless if result.student in files]
        groups, problems = _observe_and_group(request, graded, files, tell)
        left_out += problems
    fingerprint = fingerprint_nameless(results)
    return ClassGroups(fingerprint, suite, tuple(groups), tuple(left_out))


def find_files(request: MistakesRequest) -> dict[str, FoundSubmission]:
    """The notebooks of the class, by student."""
    submissions = find_submissions(request.course, request.assignment, request.paths)
    return {submission.student: submission for submission in submissions}


def start_class_bench(
    request: MistakesRequest, files: Sequence[FoundSubmission]
) -> Bench:
    """A bench with a grader for each core, and the libraries that the notebooks load."""
    # torch and pytest come in with this
    from autograder.grading import bench

    course, assignment = request.course, request.assignment
    return bench.start_class_bench(course, assignment, files, request.workers)


def _observe_and_group(
    request: MistakesRequest,
    results: Sequence[Result],
    files: dict[str, FoundSubmission],
    tell: Tell,
) -> tuple[list[MistakeGroup], list[str]]:
    from autograder.learning.behaviour import RunStore, observe_class
    from autograder.learning.grouping import group_answers

    ledger = read_ledger(request.course)
    jobs = [_job(request, result, files[result.student], ledger) for result in results]
    tell(
        f"running the answers without a name of {len(jobs)} submissions again, behind walls"
    )
    with (
        start_class_bench(request, [job.file for job in jobs]) as bench,
        tempfile.TemporaryDirectory(prefix="autograder-") as folder,
    ):
        store = RunStore(bench, Path(folder))
        answers, problems = observe_class(bench, jobs, store)
        return group_answers(answers, store), problems


def _job(
    request: MistakesRequest, result: Result, file: FoundSubmission, ledger: Ledger
) -> NamelessSubmission:
    from autograder.learning.behaviour import NamelessSubmission

    people = names_of_people(ledger, result.student, request.assignment.name)
    questions = nameless_questions(result)
    return NamelessSubmission(file, result.submission_sha256, questions, people)


def names_of_people(ledger: Ledger, student: str, assignment: str) -> tuple[str, ...]:
    """What names the people who handed in, or anybody of the class: ids and full names of all, and
    each word of the names of those who handed in.
    """
    names = {student, *ledger.listed}
    names |= {person.name for person in ledger.listed.values()}
    for member in {student, *ledger.members(student, assignment)}:
        name = ledger.name(member)
        names |= {
            member,
            name,
            *name.replace(",", " ").split(),
            *ledger.record(member).accounts,
        }
    return tuple(sorted(name for name in names if name))
