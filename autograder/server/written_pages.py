"""Marking written answers on a page: points by the marking guide, and a comment, without names.

Points go into nbgrader's gradebook, in the formgrader's own rows: what is marked here is seen
there, and the other way round.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from autograder.basics.errors import KitError
from autograder.basics.points import format_points
from autograder.course import Assignment
from autograder.marks.rubric import RubricItem, find_items, read_rubrics, sum_points
from autograder.nbgrader.for_graders import graded_submissions
from autograder.nbgrader.manual_grades import (
    HandMark,
    read_hand_marks,
    write_hand_marks,
)
from autograder.records.results import read_results
from autograder.reporting.gradebook_export import export_gradebook
from autograder.server.instructor_pages import class_address
from autograder.server.office import Office
from autograder.server.pages_base import (
    SentForm,
    go_to,
    instructor_of,
    office_of,
    page,
    takes_form,
)
from autograder.server.people import Visitor
from autograder.server.student_pages import assignment_of


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """One student's answer, as it is marked.

    Attributes:
        code: stands for the student, who is not named.
        text: the prompt with the answer.
        mark: the gradebook's.
    """

    code: str
    text: str
    mark: HandMark


def code_of(assignment: str, student: str) -> str:
    """The code of a student in an assignment. Sorting by codes gives everybody another place in
    each assignment.
    """
    return hashlib.sha256(f"{assignment} {student}".encode()).hexdigest()[:12]


def written_marks(office: Office, assignment: Assignment) -> dict[str, list[HandMark]]:
    """The gradebook's marks of written answers, by question.

    Raises:
        KitError: the gradebook was never filled.
    """
    by_question: dict[str, list[HandMark]] = {}
    for mark in read_hand_marks(office.course, assignment).values():
        if mark.written:
            by_question.setdefault(mark.question, []).append(mark)
    return by_question


def answers_to(
    office: Office, assignment: Assignment, question: str
) -> tuple[list[WrittenAnswer], int]:
    """Everybody's answers to a question, in the order of codes; and how many submissions cannot be
    read, or have changed since they were graded.
    """
    marks = {
        mark.student: mark
        for mark in written_marks(office, assignment).get(question, ())
    }
    results = read_results(office.course.results, assignment.name, lambda line: None)
    answers = []
    unread = 0
    for result, submission in graded_submissions(office.course, assignment, results):
        mark = marks.get(result.student)
        if mark is None:
            continue
        if submission is None:
            unread += 1
            continue
        texts = {
            entry.id.removeprefix("written_"): entry.text
            for entry in submission.written
        }
        text = texts.get(question, "")
        answers.append(
            WrittenAnswer(code_of(assignment.name, result.student), text, mark)
        )
    return sorted(answers, key=lambda answer: answer.code), unread


def list_page(request: Request) -> Response:
    """The written questions, and how many answers wait."""
    instructor_of(request)
    assignment = assignment_of(request)
    problem = ""
    marks: dict[str, list[HandMark]] = {}
    try:
        marks = written_marks(office_of(request), assignment)
    except KitError:
        problem = "No answers have been brought in yet."
    rows = [
        (question, len(entries), sum(entry.waits for entry in entries))
        for question, entries in marks.items()
    ]
    return page(
        request, "written.html", assignment=assignment.name, rows=rows, problem=problem
    )


@takes_form(instructor_of)
def bring_in(request: Request, visitor: Visitor, _: SentForm) -> Response:
    """Fill the gradebook with the attempts that count now. Points that were given stay; those for
    an answer that has changed since wait for another look.
    """
    office = office_of(request)
    assignment = assignment_of(request)
    list(export_gradebook(office.stored_marks(assignment), None))
    office.people.log(visitor.student, "gradebook", assignment.name)
    return go_to(request, f"{class_address(assignment.name)}/written")


def question_page(request: Request, problem: str = "") -> Response:
    """Everybody's answers to one question, each with a form."""
    instructor_of(request)
    assignment = assignment_of(request)
    question = request.path_params["question"]
    try:
        answers, unread = answers_to(office_of(request), assignment, question)
    except KitError as error:
        raise HTTPException(404) from error
    if not answers and not unread:
        raise HTTPException(404)
    return page(
        request,
        "marking.html",
        status=400 if problem else 200,
        assignment=assignment.name,
        question=question,
        answers=answers,
        unread=unread,
        guide=read_rubrics(assignment).get(question, ()),
        problem=problem,
    )


@takes_form(instructor_of)
def save_mark(request: Request, visitor: Visitor, form: SentForm) -> Response:
    """Store one answer's points and comment."""
    office = office_of(request)
    assignment = assignment_of(request)
    question = request.path_params["question"]
    code = form.text("code")
    marks = written_marks(office, assignment).get(question, ())
    by_code = {code_of(assignment.name, mark.student): mark for mark in marks}
    if code not in by_code:
        raise HTTPException(404)
    mark = by_code[code]
    guide = read_rubrics(assignment).get(question, ())
    try:
        changed = mark_from_form(mark, form.text("points"), form.text("comment"), guide)
    except ValueError as error:
        return question_page(request, str(error))
    write_hand_marks(office.course, assignment, [changed])
    detail = (
        f"{assignment.name}, {question}, {mark.student}: {_describe(mark)} became "
        f"{_describe(changed)}"
    )
    office.people.log(visitor.student, "mark", detail)
    return go_to(request, f"{class_address(assignment.name)}/written/{question}#{code}")


def mark_from_form(
    mark: HandMark, points: str, comment: str, guide: Sequence[RubricItem]
) -> HandMark:
    """The mark with what a form says. Without points, those of the items that the comment names by
    number count.

    Raises:
        ValueError: these are no points of this answer.
    """
    if points:
        try:
            given = float(points)
        except ValueError:
            raise ValueError(f"{points!r} is no number of points") from None
    else:
        items = find_items(comment, guide)
        if not items:
            raise ValueError("give points, or name items of the marking guide, like #1")
        given = sum_points(items)
    if not 0 <= given <= mark.max_points:
        raise ValueError(f"points are from 0 to {format_points(mark.max_points)}")
    return replace(mark, points=given, comment=comment, waits=False)


def _describe(mark: HandMark) -> str:
    return "no mark" if mark.points is None else f"{format_points(mark.points)} points"


ROUTES = [
    Route("/class/{assignment}/written", list_page),
    Route("/class/{assignment}/written", bring_in, methods=["POST"]),
    Route("/class/{assignment}/written/{question}", question_page),
    Route("/class/{assignment}/written/{question}", save_mark, methods=["POST"]),
]
