"""The instructor's page of a regrade: begin it, see whose mark would move and why, and then accept
it whole or drop it.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from autograder.grading.regrade import Comparison
from autograder.server.instructor_pages import class_address
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

_REFRESH_SECONDS = 5
_MOST_LOGGED = 20
"""How many marks that move a line of the log names."""


def regrade_address(assignment: str) -> str:
    """The address of the regrade's page, on this server."""
    return f"{class_address(assignment)}/regrade"


def regrade_page(request: Request) -> Response:
    """How the regrade stands: not begun, under way, or a table of marks that would move."""
    instructor_of(request)
    office = office_of(request)
    assignment = assignment_of(request).name
    regrade = office.regrades.look(assignment, office.rules())
    return page(
        request,
        "regrade.html",
        refresh=_REFRESH_SECONDS if regrade and regrade.waiting else 0,
        assignment=assignment,
        regrade=regrade,
        queue=office.attempts.queue_state(),
    )


@takes_form(instructor_of)
def begin(request: Request, visitor: Visitor, _: SentForm) -> Response:
    """Grade every attempt again, aside."""
    office = office_of(request)
    assignment = assignment_of(request).name
    count = office.begin_regrade(assignment)
    office.people.log(
        visitor.student, "regrade begun", f"{assignment}: {count} attempts"
    )
    return go_to(request, regrade_address(assignment))


@takes_form(instructor_of)
def accept(request: Request, visitor: Visitor, _: SentForm) -> Response:
    """Make the new results those that count."""
    office = office_of(request)
    assignment = assignment_of(request).name
    comparison = office.regrades.accept(assignment, office.rules())
    detail = f"{assignment}: {_describe(comparison)}"
    office.people.log(visitor.student, "regrade accepted", detail)
    return go_to(request, class_address(assignment))


@takes_form(instructor_of)
def drop(request: Request, visitor: Visitor, _: SentForm) -> Response:
    """End the regrade without a change."""
    office = office_of(request)
    assignment = assignment_of(request).name
    office.regrades.drop(assignment)
    office.people.log(visitor.student, "regrade dropped", assignment)
    return go_to(request, regrade_address(assignment))


def _describe(comparison: Comparison) -> str:
    moves = [
        f"{move.student} {move.change}" for move in comparison.moves[:_MOST_LOGGED]
    ]
    if left_out := len(comparison.moves) - len(moves):
        moves.append(f"and {left_out} more")
    return f"{len(comparison.moves)} marks move: {', '.join(moves) or 'none'}"


ROUTES = [
    Route("/class/{assignment}/regrade", regrade_page),
    Route("/class/{assignment}/regrade", begin, methods=["POST"]),
    Route("/class/{assignment}/regrade/accept", accept, methods=["POST"]),
    Route("/class/{assignment}/regrade/drop", drop, methods=["POST"]),
]
