"""`autograder report`, `export` and `totals`: stored results in; pages, files and marks out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.errors import BadSuite, KitError, NothingToGrade
from autograder.basics.file_transaction import FileTransaction
from autograder.course import Assignment, Course
from autograder.course.platform_names import NAMES, PUSH_PLATFORMS
from autograder.intake.collected import read_collected
from autograder.marks.late_policy import shown_now
from autograder.marks.marks import Mark
from autograder.marks.rubric import expand_comments, read_rubrics
from autograder.outputs.class_report import write_report
from autograder.outputs.export import render_student_csv, render_test_csv
from autograder.outputs.feedback_archive import pack_feedback
from autograder.outputs.feedback_page import feedback_path, render_feedback
from autograder.outputs.junit import junit_xml
from autograder.outputs.speed_table import describe_speeds, speed_bonus
from autograder.outputs.totals import course_totals, find_split_students, totals_csv
from autograder.platforms.fill import (
    PlatformFile,
    fill,
    learn_people,
    read_platform_file,
)
from autograder.platforms.platform import Platform
from autograder.platforms.push import push_marks
from autograder.platforms.registry import platforms, with_own_file
from autograder.records.groups import read_current_groups
from autograder.records.model import Graded
from autograder.records.results import Tell, copy_for_history, path_name
from autograder.reporting.stored_marks import StoredMarks, listing

_FEEDBACK = "-feedback"
"""The end of a format's name that is a zip of feedback pages."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The options of `autograder export`.

    Attributes:
        results: the folder of results.
        to: a file; None for the terminal.
        roster: the platform's own file, which is to be filled in.
        column: the platform's name for the column.
        provisional: whether students who wait for a person's points are exported with the points
            so far.
        push: whether the marks are sent to the platform through its interface, and no file is
            written.
        dry_run: with `push`: whether nothing is sent, and a line shows each change.
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
        """The name of the format's platform; "" for a format without a platform."""
        name = self.format.removesuffix(_FEEDBACK)
        return name if name in NAMES else ""


def report_command(
    course: Course, assignment: Assignment, results: Path, tell: Tell
) -> Iterator[str]:
    """Write every student's feedback page and the class report; yields a line on each, and tells
    what a person should look at.

    Raises:
        NothingToGrade: there is nobody to report on.
    """
    stored = StoredMarks(course, assignment, results, tell)
    marks = stored.marks()
    uses = read_uses(assignment, tell) if any(map(_has_carried, marks)) else {}
    speeds = {entry.student: describe_speeds(entry.speeds) for entry in stored.timing}
    rubrics = read_rubrics(assignment)
    collected = read_collected(course.submitted, assignment.name)
    stale = stored.tell_stale([mark.result for mark in marks if mark.result])
    pages = 0
    with FileTransaction(
        course.kept, f"`autograder report {assignment.name}`"
    ) as files:
        for mark in expand_comments(marks, rubrics):
            page = None  # a page of an earlier version would show a score that no longer holds
            if (result := mark.own_result) is not None:
                shown = shown_now(
                    course, assignment.name, mark.student, mark.person, result
                )
                page = render_feedback(shown, uses, speeds.get(mark.holder, ""), mark)
                pages += 1
            _replace_feedback(files, stored, mark, page)
        report = write_report(
            files,
            results,
            assignment.name,
            marks,
            stored.timing,
            collected,
            course.feedback,
            stale,
            rubrics,
            read_current_groups(results, assignment.name, stored.results),
        )
    if pages:
        yield f"{pages} feedback pages in {course.feedback}"
    yield f"class report: {report.resolve().as_uri()}"


def _replace_feedback(
    files: FileTransaction, stored: StoredMarks, mark: Mark, page: str | None
) -> None:
    """Write a page, or remove it; the history keeps the page before."""
    assignment = stored.assignment.name
    path = feedback_path(stored.course.feedback, assignment, mark.own_folder)
    content = page.encode("utf-8", "backslashreplace") if page is not None else None
    if path.is_file() and path.read_bytes() == content:
        return
    name = f"feedback/{path_name(mark.student)}.html"
    if copy := copy_for_history(stored.folder, assignment, path, content, name):
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
    stored = StoredMarks(course, assignment, request.results, tell)
    if request.format == "gradebook":
        # imports nbgrader, which takes seconds
        from autograder.reporting.gradebook_export import export_gradebook

        yield from export_gradebook(stored, request.to)
        return
    _check_push(request)
    file = _read_roster(request)
    if request.roster is not None:
        learn_people(course, assignment.name, request.platform, request.roster, tell)
    marks = stored.marks(file)
    results = [mark.result for mark in marks if mark.result]
    stored.tell_stale(results)
    stored.tell_flagged(results)
    if request.push:
        _tell_unfinished(marks, request.provisional, tell)
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
    content = _content(request, marks, stored.timing, file, tell)
    if (
        request.roster is None
        and request.platform
        and NAMES[request.platform].groups_have_ids
    ):
        _tell_possible_groups(marks, request.platform, tell)
    if request.to is None:
        yield from _lines(request.format, content)
    else:
        with FileTransaction(
            course.kept, f"`autograder export {assignment.name}`"
        ) as files:
            files.write(request.to, content)
        yield f"{len(results)} results of {assignment.name} in {request.to}"


def _check_push(request: ExportRequest) -> None:
    """Refuse options that do not go together with, or without, `--push`.

    Raises:
        KitError: there is no interface for the format, a file was named beside the interface, or
            an interface is all that there is.
    """
    has_interface = request.format in PUSH_PLATFORMS
    if not request.push:
        if has_interface and request.format not in with_own_file():
            raise KitError(f"{request.format} has no file: add --push")
        return
    if not has_interface:
        raise KitError(
            f"--push goes with --format {', '.join(PUSH_PLATFORMS)}, not with {request.format}"
        )
    if request.to is not None or request.roster is not None:
        raise KitError(
            "--push reads and writes the platform itself: leave --to and --roster out"
        )


def _tell_possible_groups(marks: Sequence[Mark], platform: str, tell: Tell) -> None:
    """Name the students who may be groups, by the platform's download."""
    if students := [
        mark.student for mark in marks if mark.may_be_a_group and mark.result
    ]:
        tell(
            f"taken for people, though in a group assignment these are groups: "
            f"{listing(students)}; give {NAMES[platform].title}'s {NAMES[platform].own_file} as "
            "`--roster`, which tells them apart"
        )


def _lines(format_: str, content: Iterable[str | bytes]) -> Iterator[str]:
    """The text as it is printed: without the end of its last line, which printing adds."""
    unprinted = ""
    for piece in content:
        if isinstance(piece, bytes):
            raise KitError(
                f"{format_} is a zip: name a file for it, `--to feedback.zip`"
            )
        lines, end, unprinted = (unprinted + piece).rpartition("\n")
        if end:
            yield lines
    if unprinted:
        yield unprinted


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
        stored = StoredMarks(course, assignment, results, tell)
        if (results / assignment.name).is_dir():
            by_assignment[assignment.name] = stored.marks()
    if not by_assignment:
        raise NothingToGrade(f"no results in {results}: run `autograder grade` first")
    names = list(by_assignment)
    rows = course_totals(course, by_assignment, tell, provisional=provisional)
    if unknown := [
        next(iter(row.marks.values())).student for row in rows if row.total is None
    ]:
        tell(f"without a total yet: {listing(unknown)}")
    if split := find_split_students(rows, names):
        titles = ", ".join(
            sorted({NAMES[platform].title for platform in split.values()})
        )
        tell(
            f"{titles} numbers people anew in each assignment, so these may stand here once for "
            f"each: {listing(list(split))}; write students.csv with names or emails, or collect "
            "each assignment with its worksheet as `--roster`"
        )
    table = totals_csv(rows, names)
    if to is None:
        yield table.removesuffix("\n")
    else:
        with FileTransaction(course.kept, "`autograder totals`") as files:
            files.write(to, table)
        yield f"totals of {len(rows)} students over {len(names)} assignments in {to}"


def _content(
    request: ExportRequest,
    marks: Sequence[Mark],
    timing: Sequence[Graded],
    file: PlatformFile | None,
    tell: Tell,
) -> Iterable[str | bytes]:
    """The exported file, in pieces."""
    course, assignment = request.course, request.assignment.name
    if request.format == "junit":
        problems = [
            Graded(mark.student, problem=mark.note or mark.status)
            for mark in marks
            if mark.result is None
        ]
        return junit_xml(
            [result for mark in marks if (result := mark.own_result)], problems
        )
    if request.format == "tests":
        return render_test_csv(marks)
    platform = platforms().get(request.platform, Platform())
    if request.format.endswith(_FEEDBACK) and platform.feedback_name:
        pieces, unknown = pack_feedback(
            marks, assignment, course.feedback, platform.feedback_name
        )
        if unknown:
            tell(f"without a name that {request.platform} knows: {listing(unknown)}")
        return pieces
    if request.format == "csv":
        _tell_unfinished(marks, request.provisional, tell)
        late, bonus = any(mark.late for mark in marks), _speed_bonuses(course, timing)
        return [
            render_student_csv(
                marks, provisional=request.provisional, late=late, bonus=bonus
            )
        ]
    try:
        if file is not None:
            text, difference = fill(
                course, assignment, marks, file, provisional=request.provisional
            )
        elif platform.own_file and platform.own_file.make:
            text, difference = platform.own_file.make(
                marks, assignment, request.column, request.provisional
            )
        else:
            raise KitError(
                "give the platform's own file as `--roster`: without it nobody's row is known"
            )
    except (ValueError, KitError) as error:
        raise KitError(f"{request.roster or request.format}: {error}") from error
    _tell_unfinished(marks, request.provisional, tell)
    for line in difference.lines(NAMES[request.platform].title):
        tell(line)
    return [text]


def _read_roster(request: ExportRequest) -> PlatformFile | None:
    """The platform's own file that is to be filled in; None without one, and for feedback.

    Raises:
        KitError: the file is not what the platform writes, or the format has no such file.
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


def _tell_unfinished(marks: Sequence[Mark], provisional: bool, tell: Tell) -> None:
    """Say who has no mark in an export, and why: nobody disappears."""
    by_status: dict[str, list[str]] = {}
    for mark in marks:
        if mark.status != "graded":
            by_status.setdefault(mark.status, []).append(mark.student)
    for status, students in by_status.items():
        line = f"{status}: {listing(students)}"
        if status != "waits for a person":
            tell(f"without a mark, {line}")
        elif provisional:
            tell(f"exported, {line} (exported with the points so far)")
        else:
            tell(f"without a mark, {line} (`--provisional` exports the points so far)")


def read_uses(assignment: Assignment, tell: Tell) -> dict[str, tuple[str, ...]]:
    """The questions that each question builds on; none for a suite that does not import.

    A process of its own imports the suite, and takes the memory of torch along when it ends.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        try:
            return executor.submit(_collect_uses, assignment.suite).result()
        except BadSuite as error:
            tell(f"pages do not say which question carried points come from: {error}")
            return {}


def _collect_uses(suite: Path) -> dict[str, tuple[str, ...]]:
    from autograder.suite.collection import collect_suite  # brings torch in

    return {question.name: question.uses for question in collect_suite(suite).questions}


def _has_carried(mark: Mark) -> bool:
    questions = mark.result.questions if mark.result else ()
    return any(question.carried > 0 for question in questions)


def _speed_bonuses(course: Course, timing: Sequence[Graded]) -> dict[str, float] | None:
    """Points for speed by student; None where the course gives none, or nothing of the assignment
    was timed.
    """
    timed = [entry for entry in timing if entry.speeds]
    if not course.grading.speed_bonus or not timed:
        return None
    return {entry.student: speed_bonus(entry.speeds, course.grading) for entry in timed}
