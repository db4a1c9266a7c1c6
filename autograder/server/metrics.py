"""Figures for whoever watches the server or adds machines, in the text format of Prometheus."""

from __future__ import annotations

import ipaddress

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from autograder.server.office import Office
from autograder.server.pages_base import office_of, visitor_or_none


def metrics_page(request: Request) -> Response:
    """The figures, for this machine and for instructors.

    Raises:
        HTTPException: 404 for everybody else.
    """
    visitor = visitor_or_none(request)
    is_instructor = visitor is not None and visitor.is_instructor
    if not is_instructor and not _is_local(request):
        raise HTTPException(404)
    return PlainTextResponse(render_metrics(office_of(request)))


def _is_local(request: Request) -> bool:
    if "x-forwarded-for" in request.headers:
        return False  # a proxy on this machine speaks for somebody elsewhere
    try:
        return ipaddress.ip_address(
            request.client.host if request.client else ""
        ).is_loopback
    except ValueError:
        return False


def render_metrics(office: Office) -> str:
    """The figures of this moment."""
    queue = office.attempts.queue_state()
    lines = [
        "# HELP attention_kit_queue_length Attempts that wait for a grader.",
        "# TYPE attention_kit_queue_length gauge",
        f"attention_kit_queue_length {queue.waiting}",
        "# HELP attention_kit_queue_oldest_seconds Age of the oldest waiting attempt.",
        "# TYPE attention_kit_queue_oldest_seconds gauge",
        f"attention_kit_queue_oldest_seconds {queue.oldest_seconds:.3f}",
        "# HELP attention_kit_attempt_seconds Mean time of an attempt in a grader, of the last 50.",
        "# TYPE attention_kit_attempt_seconds gauge",
        f"attention_kit_attempt_seconds {queue.seconds_each:.3f}",
        "# HELP attention_kit_attempts Attempts by state.",
        "# TYPE attention_kit_attempts gauge",
    ]
    counts = office.attempts.count_by_state()
    for state in ("waiting", "started", "graded", "failed"):
        lines.append(
            f'attention_kit_attempts{{state="{state}"}} {counts.get(state, 0)}'
        )
    return "\n".join(lines) + "\n"
