"""The pages of instructors: the class as it is now, each student, requests, links, extensions."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from autograder.outputs.class_report import render_report
from autograder.server.attempts import Attempt
from autograder.server.extensions import grant_extension
from autograder.server.lti_desk import LtiDesk
from autograder.server.office import Office
from autograder.server.pages_base import (
    SLOWEST_REFRESH,
    SentForm,
    go_to,
    instructor_of,
    office_of,
    own_address,
    page,
    takes_form,
)
from autograder.server.people import Role, Visitor
from autograder.server.student_pages import assignment_of

_RECENT = 20
"""How many attempts the class's page lists."""
_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"


@dataclass(frozen=True, slots=True)
class ClassView:
    """The class at this moment, in one assignment.

    Attributes:
        missing: students of the class list without an attempt.
        failed: how many attempts this server could not grade.
        mistakes: the commonest mistakes in the attempts that count, with their questions.
        stuck: question → students whose counting attempt has none of its points.
    """

    counting: Sequence[Attempt]
    missing: Sequence[str]
    recent: Sequence[Attempt]
    failed: int
    mean: float | None
    mistakes: Sequence[tuple[tuple[str, str], int]]
    stuck: Sequence[tuple[str, list[str]]]


def view_class(office: Office, assignment: str) -> ClassView:
    """Look at everybody's attempts at an assignment."""
    attempts = office.attempts.of_assignment(assignment)
    rules = office.rules()
    counting = list(rules.counting_by_student(attempts).values())
    owners = {attempt.student for attempt in attempts}
    handing_in = {
        member for owner in owners for member in rules.members(owner, assignment)
    }
    results = office.attempts.results([attempt.id for attempt in counting])
    mistakes: Counter[tuple[str, str]] = Counter()
    stuck: dict[str, list[str]] = {}
    for attempt in counting:
        result = results.get(attempt.id)
        for question in result.questions if result else ():
            if question.diagnosis is not None:
                mistakes[question.name, question.diagnosis.hint] += 1
            if question.max_score and not question.score:
                stuck.setdefault(question.name, []).append(attempt.student)
    scores = [attempt.score for attempt in counting if attempt.score is not None]
    return ClassView(
        counting=counting,
        missing=_who_is_missing(office, handing_in),
        recent=attempts[:_RECENT],
        failed=sum(attempt.state == "failed" for attempt in attempts),
        mean=statistics.fmean(scores) if scores else None,
        mistakes=mistakes.most_common(10),
        stuck=sorted(stuck.items(), key=lambda entry: -len(entry[1])),
    )


def _who_is_missing(office: Office, handing_in: Set[str]) -> list[str]:
    """Students of the class list without an attempt."""
    absent = office.ledger().listed.keys() - handing_in
    return sorted(student for student in absent if office.role_of(student) == "student")


def class_address(assignment: str) -> str:
    """The address of the class's page, on this server."""
    return f"/class/{quote(assignment)}"


def class_page(request: Request) -> Response:
    """Who handed in, who is stuck where, and the commonest mistakes, as they are now."""
    instructor_of(request)
    assignment = assignment_of(request)
    office = office_of(request)
    return page(
        request,
        "class.html",
        refresh=SLOWEST_REFRESH,
        assignment=assignment.name,
        view=view_class(office, assignment.name),
        queue=office.attempts.queue_state(),
        requests=office.requests.of_assignment(assignment.name),
    )


def student_page(request: Request) -> Response:
    """All attempts of one student."""
    instructor_of(request)
    assignment = assignment_of(request)
    office = office_of(request)
    student = request.path_params["student"]
    view = office.assignment_view(student, assignment.name)
    return page(request, "student.html", student=student, view=view)


def report_page(request: Request) -> Response:
    """The class report, as `autograder report` writes it."""
    instructor_of(request)
    assignment = assignment_of(request)
    stored = office_of(request).stored_marks(assignment)
    text = "".join(render_report(assignment.name, stored.marks(), stored.timing))
    return HTMLResponse(text, headers={"content-security-policy": _REPORT_POLICY})


@takes_form(instructor_of)
def reply(request: Request, visitor: Visitor, form: SentForm) -> Response:
    """Reply to a student's request."""
    office = office_of(request)
    request_id = request.path_params["request"]
    text = form.text("reply")
    office.requests.reply(request_id, text, visitor.student)
    office.people.log(visitor.student, "reply", f"to request {request_id}: {text}")
    return go_to(request, f"{class_address(form.text('assignment'))}#requests")


@takes_form(instructor_of)
def extend(request: Request, visitor: Visitor, form: SentForm) -> Response:
    """Give a student more days; it is written into course.toml."""
    office = office_of(request)
    assignment = assignment_of(request).name
    student = form.text("student")
    line = grant_extension(office.course, assignment, student, form.text("days"))
    office.people.log(visitor.student, "extension", line)
    return go_to(request, f"{class_address(assignment)}/students/{quote(student)}")


@takes_form(instructor_of)
def grade_again(request: Request, visitor: Visitor, _: SentForm) -> Response:
    """Put the attempts that this server could not grade into the queue once more."""
    office = office_of(request)
    assignment = assignment_of(request).name
    attempts = office.attempts.of_assignment(assignment)
    chosen = [attempt.id for attempt in attempts if attempt.state == "failed"]
    office.attempts.grade_again(chosen)
    office.people.log(
        visitor.student, "grade again", f"{len(chosen)} attempts at {assignment}"
    )
    return go_to(request, class_address(assignment))


def people_page(
    request: Request, made: Sequence[tuple[str, Role, str]] = ()
) -> Response:
    """Everybody of the class list, and a form that makes links for signing in.

    Args:
        made: person, role and link of the links that were made just now.
    """
    instructor_of(request)
    office = office_of(request)
    return page(
        request,
        "people.html",
        listed=office.ledger().listed.values(),
        made=made,
        log=office.people.log_lines(),
        has_lti=bool(office.course.lti),
    )


@takes_form(instructor_of)
def make_links(request: Request, visitor: Visitor, form: SentForm) -> Response:
    """Make links for the students that the form names, and show them once."""
    office = office_of(request)
    students = form.text("students").split() or list(office.ledger().listed)
    made = []
    for student in students:
        role = office.role_of(student)
        key = office.people.make_link(student, role)
        made.append((student, role, f"{own_address(request)}/sign-in?key={key}"))
    detail = f"for {len(students)}: {', '.join(students[:20])}"
    office.people.log(visitor.student, "links", detail)
    return people_page(request, made)


@takes_form(instructor_of)
def fetch_roster(request: Request, visitor: Visitor, _: SentForm) -> Response:
    """Ask the learning platforms who is in the course."""
    office = office_of(request)
    students = LtiDesk(office).fetch_roster()
    detail = f"{len(students)} people: {', '.join(students[:20])}"
    office.people.log(visitor.student, "roster", detail)
    return go_to(request, "/people")


ROUTES = [
    Route("/class/{assignment}", class_page),
    Route("/class/{assignment}/report", report_page),
    Route("/class/{assignment}/students/{student:path}", student_page),
    Route("/class/{assignment}/extensions", extend, methods=["POST"]),
    Route("/class/{assignment}/grade-again", grade_again, methods=["POST"]),
    Route("/requests/{request:row}", reply, methods=["POST"]),
    Route("/people", people_page),
    Route("/people/roster", fetch_roster, methods=["POST"]),
    Route("/people", make_links, methods=["POST"]),
]
