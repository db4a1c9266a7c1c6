"""Implements `autograder mistakes`: shows the groups of a class, makes a known mistake of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Sized

from autograder.basics.errors import KitError, NotProven
from autograder.basics.points import format_points
from autograder.basics.safe_text import clean, describe_test, one_line
from autograder.learning.class_groups import (
    MistakesRequest,
    find_files,
    load_groups,
    load_results,
    start_class_bench,
)
from autograder.learning.naming import (
    MISTAKES_FILE,
    Lesson,
    Member,
    Regraded,
    check_sample,
    make_lesson,
    prove_lesson,
    write_lesson,
)
from autograder.records.groups import ClassGroups, MistakeGroup, write_groups
from autograder.records.model import Result
from autograder.records.results import Tell

_LONGEST_CODE = 40
"""Lines of a group's answer that are shown."""


def show_command(
    request: MistakesRequest, tell: Tell, *, with_students: bool
) -> Iterator[str]:
    """Lines on each group, the largest first.

    Raises:
        KitError: there are no results, or they are older than the suite.
    """
    groups = load_groups(request, load_results(request, tell), tell)
    if groups.left_out and not with_students:
        left_out = _count(groups.left_out, "submission")
        tell(f"{left_out} could not be run again; `--students` says whose, and why")
    elif groups.left_out:
        for line in groups.left_out:
            tell(one_line(f"left out: {line}"))
    name = request.assignment.name
    if not groups.groups:
        yield f"{name}: every wrong answer has a name"
        return
    students = [student for group in groups.groups for student in group.students]
    answers = _count(students, "wrong answer")
    yield f"{name}: {answers} without a name, in {_count(groups.groups, 'group')}"
    for group in groups.groups:
        yield ""
        yield from describe_group(group, with_students=with_students)
    yield ""
    yield f'name one: autograder mistakes {name} --name GROUP "what is wrong, in one sentence"'


def _count(things: Sized, noun: str) -> str:
    """A number of things, in words: "1 group", "2 groups"."""
    return f"1 {noun}" if len(things) == 1 else f"{len(things)} {noun}s"


def describe_group(group: MistakeGroup, *, with_students: bool) -> Iterator[str]:
    """A group in lines: who and how, and one answer."""
    name = f"{group.name}: {_count(group.students, 'student')}"
    yield f"{name}, named {group.mistake}: grade again" if group.mistake else name
    yield "  " + one_line(f"fails: {', '.join(map(describe_test, group.tests))}")
    yield "  " + one_line(f"how: {'; '.join(group.ways)}")
    if group.message:
        yield "  " + one_line(f"students read: {group.message}")
    if with_students:
        yield "  " + one_line(f"handed in by: {', '.join(group.students)}")
    if group.problem:
        yield "  " + one_line(f"cannot become a known mistake: {group.problem}")
    if not group.code:
        return
    lines = clean(group.code).rstrip().split("\n")
    for line in lines[:_LONGEST_CODE]:
        yield f"  | {line}"
    if len(lines) > _LONGEST_CODE:
        yield f"  | … {len(lines) - _LONGEST_CODE} lines more"


def name_command(
    request: MistakesRequest,
    name: str,
    sentence: str,
    tell: Tell,
    *,
    hint: str | None = None,
    keeps: float | None = None,
    mistake: str | None = None,
) -> Iterator[str]:
    """Make a known mistake of a group: prove it, write it into the suite, and say what would move.

    Args:
        name: the group.
        sentence: what is wrong.
        hint, keeps, mistake: the mistake's hint, price and name; None for the defaults.

    Raises:
        KitError: there is no such group, or it cannot be named.
        NotProven: the mistake is none; nothing is written.
    """
    results = load_results(request, tell)
    groups = load_groups(request, results, tell)
    group = groups.group(name)
    if group is None:
        listed = ", ".join(group.name for group in groups.groups) or "none"
        raise KitError(f"there is no group {name!r}; there are: {listed}")
    lesson = make_lesson(group, sentence, hint, keeps, mistake, request.assignment)
    members = _members(request, group, results)
    if not members:
        raise KitError(f"no notebook of {name} is there any more")
    with start_class_bench(request, [member.file for member in members]) as bench:
        regraded, problems = prove_lesson(bench, lesson, members)
        if not problems:
            lesson = check_sample(bench, lesson)
        suite_sha256 = bench.grader.sha256
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems)
        raise NotProven(
            f"{lesson.name} is not proven, and nothing is written:\n{listed}"
        )
    suite_sha256 = write_lesson(
        request.course, request.assignment, lesson, suite_sha256
    )
    groups = groups.with_mistake(name, lesson.name, suite_sha256)
    write_groups(request.results, request.assignment.name, groups)
    yield from _tell_written(request, lesson, regraded, groups)


def _members(
    request: MistakesRequest, group: MistakeGroup, results: Sequence[Result]
) -> list[Member]:
    files = find_files(request)
    scores = {
        result.student: question.score
        for result in results
        for question in result.questions
        if question.name == group.question
    }
    return [
        Member(files[student], group.question, scores[student])
        for student in group.students
        if student in files and student in scores
    ]


def _tell_written(
    request: MistakesRequest,
    lesson: Lesson,
    regraded: Sequence[Regraded],
    groups: ClassGroups,
) -> Iterator[str]:
    assignment = request.assignment
    yield f"written into {assignment.suite / MISTAKES_FILE}, proven: {lesson.name}"
    yield one_line(f"hint: {lesson.hint}")
    named = [member for member in regraded if lesson.name in member.named]
    share = f"{len(named)} of {len(regraded)} answers"
    yield f"the next grade names it in {share} of {lesson.group.name}"
    moves = Counter((member.before, member.after) for member in named)
    for (before, after), count in sorted(moves.items()):
        people = "1 student" if count == 1 else f"{count} students"
        most = f"of {format_points(regraded[0].max_score)} points of {lesson.group.question}"
        move = f"{format_points(before)} → {format_points(after)}"
        if before == after:
            move = f"{format_points(after)}, as before,"
        yield f"  {people}: {move} {most}"
    yield (
        f"the suite has changed, so every result of {assignment.name} is stale: `autograder "
        f"regrade {assignment.name}` shows whose mark moves, `autograder grade {assignment.name}` "
        "grades the class again"
    )
    waiting = [group for group in groups.groups if not group.mistake]
    if waiting:
        yield f"without a name yet: {_count(waiting, 'group')}; name more before that, if you like"
