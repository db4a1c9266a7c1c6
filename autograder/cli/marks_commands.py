"""What `autograder report`, `export` and `totals` do: read the stored results, write what was asked
for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.errors import BadSuite, KitError, NothingToGrade
from autograder.basics.file_transaction import FileTransaction
from autograder.cli.stored_marks import (
    assert_graded,
    consistent_results,
    handed_in_at,
    listing,
    read_marks,
    tell_stale,
)
from autograder.course import Assignment, Course
from autograder.course.platform_names import NAMES
from autograder.intake.collected import read_collected
from autograder.ledger import read_ledger
from autograder.marks.late_policy import describe_conflicts
from autograder.marks.marks import Mark, class_marks
from autograder.marks.rubric import expand_comments, read_rubrics
from autograder.outputs.class_report import write_report
from autograder.outputs.difference import Difference
from autograder.outputs.export import render_student_csv, render_test_csv
from autograder.outputs.feedback_archive import pack_feedback
from autograder.outputs.feedback_page import feedback_path, render_feedback
from autograder.outputs.junit import junit_xml
from autograder.outputs.speed_table import describe_speeds, speed_bonus
from autograder.outputs.totals import course_totals, find_split_students, totals_csv
from autograder.platforms.fill import PlatformFile, fill, learn_people, read_platform_file
from autograder.platforms.platform import Platform
from autograder.platforms.push import push_marks
from autograder.platforms.registry import platforms, with_interface, with_own_file
from autograder.records.model import Graded, Result, Submission
from autograder.records.results import Tell, copy_for_history, path_name, read_timing

_FEEDBACK = "-feedback"
"""How formats end that are a zip of feedback pages."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What was asked for on the command line.

    Attributes:
        results: where the results lie.
        to: a file; None for the terminal.
        roster: the platform's own file, which is to be filled in.
        column: what the platform calls the column.
        provisional: whether those who wait for a person's points are exported with what they have.
        push: whether the marks are sent to the platform through its interface, and no file is
            written.
        dry_run: with `push`: whether it is only said what would be sent.
    """

    course: Course
    assignment: Assignment
    results: Path
    format: str
    to: Path | None = None
    roster: Path | None = None
    column: str = ""
    provisional: bool = False
    push: bool = False
    dry_run: bool = False

    @property
    def platform(self) -> str:
        """The platform whose format it is; "" for a format of no platform's."""
        name = self.format.removesuffix(_FEEDBACK)
        return name if name in NAMES else ""


def report_command(
    course: Course, assignment: Assignment, results: Path, tell: Tell
) -> Iterator[str]:
    """Write every student's feedback page and the class report; yields what came of it, and tells
    what to look at.

    Raises:
        NothingToGrade: there is nobody to report on.
    """
    timing = read_timing(results, assignment.name, tell)
    marks = read_marks(course, assignment, results, timing, tell)
    uses = _uses(assignment, tell) if any(map(_has_carried, marks)) else {}
    speeds = {entry.student: describe_speeds(entry.speeds) for entry in timing}
    rubrics = read_rubrics(assignment)
    collected = read_collected(course.submitted, assignment.name)
    old = tell_stale(
        course, assignment, results, [mark.result for mark in marks if mark.result], tell
    )
    with FileTransaction(course.kept, f"`autograder report {assignment.name}`") as files:
        for mark in expand_comments(marks, rubrics):
            page = None  # a page of an earlier version would show a score that no longer holds
            if (result := mark.own_result) is not None:
                page = render_feedback(result, uses, speeds.get(mark.holder, ""), mark)
            _replace_feedback(files, course, results, assignment.name, mark, page)
        report = write_report(
            files, results, assignment.name, marks, timing, collected, course.feedback, old, rubrics
        )
    if pages := sum(mark.own_result is not None for mark in marks):
        yield f"{pages} feedback pages in {course.feedback}"
    yield f"class report: {report.resolve().as_uri()}"


def _replace_feedback(
    files: FileTransaction,
    course: Course,
    results: Path,
    assignment: str,
    mark: Mark,
    page: str | None,
) -> None:
    """Write a page, or remove it; another that was there is kept in the history."""
    path = feedback_path(course.feedback, assignment, mark.own_folder)
    content = page.encode("utf-8", "backslashreplace") if page is not None else None
    if path.is_file() and path.read_bytes() == content:
        return
    if copy := copy_for_history(
        results, assignment, path, content, f"feedback/{path_name(mark.student)}.html"
    ):
        files.write(*copy)
    if content is not None:
        files.write(path, content, to_disk=False)  # the next report writes it again
    elif path.exists():
        files.remove(path)


def export_command(request: ExportRequest, tell: Tell) -> Iterator[str]:
    """Export the results; yields the text itself where it goes to no file.

    Raises:
        NothingToGrade: there is nobody to export.
        KitError: the roster is not one, or a zip has nowhere to go.
    """
    course, assignment = request.course, request.assignment
    timing = read_timing(request.results, assignment.name, tell)
    if request.format == "gradebook":
        yield from _fill_gradebook(request, timing, tell)
        return
    if request.push:
        _assert_can_push(request)
    elif request.format in with_interface() and request.format not in with_own_file():
        raise KitError(f"{request.format} has no file: add --push")
    file = _platform_file(request)
    if request.roster is not None:
        learn_people(course, assignment.name, request.platform, request.roster, tell)
    marks = read_marks(course, assignment, request.results, timing, tell, file)
    tell_stale(
        course, assignment, request.results, [mark.result for mark in marks if mark.result], tell
    )
    _tell_flagged([mark.result for mark in marks if mark.result], tell)
    if request.push:
        for line in _unfinished(marks, request.provisional):
            tell(line)
        yield from push_marks(
            course,
            assignment.name,
            marks,
            request.platform,
            column=request.column,
            provisional=request.provisional,
            dry_run=request.dry_run,
        )
        return
    content, said = _content(request, marks, timing, file)
    for line in said:
        tell(line)
    if request.roster is None and request.platform and NAMES[request.platform].groups_have_ids:
        for line in _perhaps_groups(marks, request.platform):
            tell(line)
    if request.to is None:
        yield from _lines(request.format, content)
    else:
        with FileTransaction(course.kept, f"`autograder export {assignment.name}`") as files:
            files.write(request.to, content)
        yield (
            f"{sum(m.result is not None for m in marks)} results of {assignment.name} in "
            f"{request.to}"
        )


def _assert_can_push(request: ExportRequest) -> None:
    """Make sure that marks in this format can be sent.

    Raises:
        KitError: there is no interface for the format, or a file was named.
    """
    if request.format not in with_interface():
        raise KitError(
            f"--push goes with --format {', '.join(with_interface())}, not with {request.format}"
        )
    if request.to is not None or request.roster is not None:
        raise KitError("--push reads and writes the platform itself: leave --to and --roster out")


def _perhaps_groups(marks: Sequence[Mark], platform: str) -> Iterator[str]:
    """Of whom the platform's download does not tell whether they are a person."""
    if students := [mark.student for mark in marks if mark.may_be_a_group and mark.result]:
        yield (
            "taken for people, though in a group assignment these are groups: "
            f"{listing(students)}; give "
            f"{NAMES[platform].title}'s {NAMES[platform].own_file} as `--roster`, which "
            "tells them apart"
        )


def _tell_flagged(results: Sequence[Result], tell: Tell) -> None:
    """Say whose functions answered one call differently in two runs: nothing else in an export
    shows it.
    """
    flagged = [
        f"{result.student} ({', '.join(result.flagged)})" for result in results if result.flagged
    ]
    if flagged:
        tell(
            f"two answers to one call, for a person to look at: {listing(flagged)}; `autograder "
            "report` shows them"
        )


def _lines(format_: str, content: Iterable[str | bytes]) -> Iterator[str]:
    """The text as it is printed: without the end of its last line, which printing adds."""
    waiting = ""
    for piece in content:
        if isinstance(piece, bytes):
            raise KitError(f"{format_} is a zip: name a file for it, `--to feedback.zip`")
        whole, end, rest = (waiting + piece).rpartition("\n")
        if end:
            yield whole
        waiting = rest
    if waiting:
        yield waiting


def totals_command(
    course: Course, results: Path, to: Path | None, tell: Tell, *, provisional: bool
) -> Iterator[str]:
    """The mark of the course, from every assignment that has results; yields the text where it goes
    to no file.

    Raises:
        NothingToGrade: no assignment has results.
    """
    by_assignment = {}
    for assignment in course.assignments():
        timing = read_timing(results, assignment.name, tell)
        if (results / assignment.name).is_dir():
            by_assignment[assignment.name] = read_marks(course, assignment, results, timing, tell)
    if not by_assignment:
        raise NothingToGrade(f"no results in {results}: run `autograder grade` first")
    rows = course_totals(course, by_assignment, tell, provisional=provisional)
    if unknown := [next(iter(row.marks.values())).student for row in rows if row.total is None]:
        tell(f"without a total yet: {listing(unknown)}")
    if split := find_split_students(rows, list(by_assignment)):
        titles = ", ".join(sorted({NAMES[platform].title for platform in split.values()}))
        tell(
            f"{titles} numbers people anew in each assignment, so these may stand here "
            "once for each: "
            f"{listing(list(split))}; write students.csv with names or emails, or collect each "
            "assignment with its "
            "worksheet as `--roster`"
        )
    table = totals_csv(rows, list(by_assignment))
    if to is None:
        yield table.removesuffix("\n")
    else:
        with FileTransaction(course.kept, "`autograder totals`") as files:
            files.write(to, table)
        yield f"totals of {len(rows)} students over {len(by_assignment)} assignments in {to}"


def _content(
    request: ExportRequest,
    marks: Sequence[Mark],
    timing: Sequence[Graded],
    file: PlatformFile | None,
) -> tuple[Iterable[str | bytes], list[str]]:
    """What the format is made of, in pieces, and what to say beside it."""
    format_, provisional = request.format, request.provisional
    if format_ == "junit":
        problems = [
            Graded(m.student, problem=m.note or m.status) for m in marks if m.result is None
        ]
        return junit_xml([result for mark in marks if (result := mark.own_result)], problems), []
    if format_ == "tests":
        return render_test_csv(marks), []
    platform = platforms().get(request.platform, Platform())
    if format_.endswith(_FEEDBACK) and platform.feedback_name:
        packed, unknown = pack_feedback(
            marks, request.assignment.name, request.course.feedback, platform.feedback_name
        )
        return packed, [
            f"without a name that {request.platform} knows: {listing(unknown)}"
        ] if unknown else []
    said = _unfinished(marks, provisional)
    if format_ == "csv":
        late, bonus = any(mark.late for mark in marks), _bonus(request.course, timing)
        return [render_student_csv(marks, provisional=provisional, late=late, bonus=bonus)], said
    text, difference = _filled(request, marks, file)
    return [text], [*said, *difference.lines(NAMES[request.platform].title)]


def _platform_file(request: ExportRequest) -> PlatformFile | None:
    """The platform's own file that is to be filled in; None where none was named, or feedback is
    asked for.

    Raises:
        KitError: it is not what the platform writes, or the format has no such file.
    """
    if request.roster is None:
        return None
    if request.platform not in with_own_file():
        raise KitError(
            f"--roster goes with --format {', '.join(with_own_file())}, not with {request.format}"
        )
    if request.format.endswith(_FEEDBACK):
        return None
    return read_platform_file(
        request.platform, request.roster, request.assignment.name, request.column
    )


def _filled(
    request: ExportRequest, marks: Sequence[Mark], file: PlatformFile | None
) -> tuple[str, Difference]:
    assignment, new_file = request.assignment.name, platforms()[request.platform].new_file
    try:
        if file is not None:
            return fill(request.course, assignment, marks, file, provisional=request.provisional)
        if new_file is None:
            raise KitError(
                "give the platform's own file as `--roster`: without it nobody's row is known"
            )
        return new_file(marks, assignment, request.column, request.provisional)
    except (ValueError, KitError) as error:
        raise KitError(f"{request.roster or request.format}: {error}") from error


def _unfinished(marks: Sequence[Mark], provisional: bool) -> list[str]:
    """Who has no mark in an export, and why: nobody disappears."""
    by_status: dict[str, list[str]] = {}
    for mark in marks:
        if mark.status != "graded":
            by_status.setdefault(mark.status, []).append(mark.student)
    lines = []
    for status, students in by_status.items():
        waits = status == "waits for a person"
        how = (
            (
                "exported with the points so far"
                if provisional
                else "`--provisional` exports the points so far"
            )
            if waits
            else ""
        )
        lines.append(
            f"{'exported' if waits and provisional else 'without a mark'}, {status}: "
            f"{listing(students)}" + (f" ({how})" if how else "")
        )
    return lines


def _uses(assignment: Assignment, tell: Tell) -> dict[str, tuple[str, ...]]:
    """What each question builds on; without a suite that imports, the pages do without.

    A process of its own imports the suite, and takes the memory of torch along when it ends.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
        try:
            return apart.submit(_collected_uses, assignment.suite).result()
        except BadSuite as error:
            tell(f"pages do not say which question carried points come from: {error}")
            return {}


def _collected_uses(suite: Path) -> dict[str, tuple[str, ...]]:
    from autograder.suite.collection import collect_suite  # brings torch in

    return {question.name: question.uses for question in collect_suite(suite).questions}


def _has_carried(mark: Mark) -> bool:
    return mark.result is not None and any(
        question.carried > 0 for question in mark.result.questions
    )


def _bonus(course: Course, timing: Sequence[Graded]) -> dict[str, float] | None:
    """Points for speed by student; None where the course gives none, or nothing of the assignment
    was timed.
    """
    timed = [entry for entry in timing if entry.speeds]
    if not course.grading.speed_bonus or not timed:
        return None
    return {entry.student: speed_bonus(entry.speeds, course.grading) for entry in timed}


def _fill_gradebook(request: ExportRequest, timing: Sequence[Graded], tell: Tell) -> Iterator[str]:
    from autograder.nbgrader.class_list import read_gradebook_times, write_class_list
    from autograder.nbgrader.course_name import shown_gradebook
    from autograder.nbgrader.for_graders import AutogradedFolder, graded_submissions
    from autograder.nbgrader.gradebook import fill_gradebook
    from autograder.nbgrader.gradebook_file import gradebook_file

    course, assignment = request.course, request.assignment
    ledger = read_ledger(course)
    graded = consistent_results(course, request.results, assignment, tell)
    problems = {entry.student: entry.problem for entry in timing if entry.problem}
    assert_graded(course, assignment, request.results, graded, timing)
    tell_stale(course, assignment, request.results, graded, tell)
    _tell_flagged(graded, tell)
    students = [*(result.student for result in graded), *problems]
    times = {
        student: when
        for student in students
        if (when := handed_in_at(ledger, course, assignment, student, tell))
    }
    other: list[str] = []

    def each_read_once() -> Iterator[tuple[Result, Submission | None]]:
        for result, submission in graded_submissions(course, assignment, graded):
            if submission is None:
                other.append(result.student)
            elif autograded is not None:
                autograded.write(result, submission)
            yield result, submission

    file = request.to or (None if course.on_server.db_url else course.gradebook)
    with (
        FileTransaction(
            course.kept, f"`autograder export {assignment.name} --format gradebook`"
        ) as files,
        gradebook_file(file, files) if file else contextlib.nullcontext((None, 0)) as (
            written,
            version,
        ),
    ):
        autograded = AutogradedFolder(course, assignment, files) if request.to is None else None
        if autograded is not None:
            for student, problem in problems.items():
                autograded.write_problem(student, problem)
        db_url = f"sqlite:///{written.absolute()}" if written else course.db_url
        fill_gradebook(
            course, assignment, each_read_once(), times, problems, db_url=db_url, version=version
        )
        everybody = class_marks(course, assignment, graded, timing)
        for line in describe_conflicts(
            course, assignment.name, read_gradebook_times(course, db_url)
        ):
            tell(line)
        people = {mark.own_folder: mark.person for mark in everybody if mark.person}
        write_class_list(course, assignment, people, db_url)
    if other:
        tell(
            "not what was graded, or not in submitted/ any more, so that nobody can grade their "
            "written answers: "
            f"{listing(other)}; run `autograder grade {assignment.name}` first"
        )
    yield f"{len(graded)} results of {assignment.name} in {file or shown_gradebook(db_url)}"
    if autograded is not None:
        yield (
            f"{autograded.written} notebooks to grade by hand in {course.autograded}: open them "
            "in the formgrader"
        )
