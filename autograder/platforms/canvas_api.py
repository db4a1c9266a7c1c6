"""Canvas's REST API, through canvasapi: an assignment's marks read and written.

The calls and their answers are documented in canvas-lms
(`app/controllers/submissions_api_controller.rb`, `assignments_api_controller.rb`,
`users_controller.rb`). Canvas writes marks in a job, and the job is polled until its end.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import requests
from canvasapi import Canvas
from canvasapi.exceptions import CanvasException
from requests.adapters import HTTPAdapter

from autograder.basics.errors import PlatformUnavailable
from autograder.basics.safe_text import one_line
from autograder.basics.times import read_time
from autograder.outputs.export import points_cell
from autograder.platforms.api_client import find_titled, identity_from
from autograder.platforms.platform import Standing, Standings

_SECONDS = 30  # of one request
_POLLS = 120  # one a second


class _Bounded(HTTPAdapter):  # type: ignore[misc]
    """Requests with a time limit, which canvasapi does not set."""

    def send(self, request: Any, *arguments: Any, **keywords: Any) -> Any:
        keywords["timeout"] = keywords.get("timeout") or _SECONDS
        return super().send(request, *arguments, **keywords)


class CanvasInterface:
    """One assignment of a course on Canvas."""

    def __init__(
        self,
        url: str,
        course: str,
        title: str,
        token: str,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._title = title
        self._course_id = course
        self._sleep = sleep
        with warnings.catch_warnings():
            # canvasapi warns of http; course.toml allows http to this machine alone
            warnings.simplefilter("ignore")
            self._canvas = Canvas(url, token)
        session = (
            self._canvas._Canvas__requester._session
        )  # nothing public leads to the session
        for scheme in ("https://", "http://"):
            session.mount(scheme, _Bounded())

    def read(self) -> Standings:
        """The assignment, everybody in the course, and their marks."""
        try:
            course = self._canvas.get_course(self._course_id)
            assignment = self._assignment(course)
            people = {
                user.id: user
                for user in course.get_users(
                    enrollment_type=["student"], include=["email"], per_page=100
                )
            }
            rows = assignment.get_submissions(include=["visibility"], per_page=100)
            standings = tuple(
                _standing(row, people[row.user_id])
                for row in rows
                if row.user_id in people
            )
        except (CanvasException, requests.RequestException, ValueError) as error:
            raise _unavailable(error) from error
        notes: tuple[str, ...] = ()
        if getattr(assignment, "post_manually", False):
            notes = (
                f"students see the marks in {assignment.name!r} only when you post them in Canvas",
            )
        return Standings(
            assignment.name,
            getattr(assignment, "points_possible", None),
            standings,
            True,
            notes,
        )

    def send(self, marks: Mapping[str, float]) -> None:
        """Write all marks in one job, and wait for its end."""
        data = {
            id_: {"posted_grade": points_cell(points)} for id_, points in marks.items()
        }
        try:
            assignment = self._assignment(self._canvas.get_course(self._course_id))
            job = assignment.submissions_bulk_update(grade_data=data)
            for _ in range(_POLLS):
                if job.workflow_state in ("completed", "failed"):
                    break
                self._sleep(1.0)
                job = job.query()
        except (CanvasException, requests.RequestException, ValueError) as error:
            raise _unavailable(error) from error
        if job.workflow_state != "completed":
            reason = one_line(str(getattr(job, "message", "") or job.workflow_state))
            raise PlatformUnavailable(
                f"Canvas did not write the marks: {reason}; see what it has with --dry-run"
            )

    def _assignment(self, course: Any) -> Any:
        assignments = course.get_assignments(per_page=100)
        entries = (
            (assignment.name, assignment.id, assignment) for assignment in assignments
        )
        assignment = find_titled("Canvas", "assignment", self._title, entries)
        if not assignment.published:
            raise PlatformUnavailable(
                f"{assignment.name!r} is not published in Canvas, so it takes no marks"
            )
        if assignment.grading_type in ("pass_fail", "not_graded"):
            raise PlatformUnavailable(
                f"{assignment.name!r} takes no points: it is {assignment.grading_type} in Canvas"
            )
        if getattr(assignment, "anonymize_students", False):
            raise PlatformUnavailable(
                f"Canvas hides who is who in {assignment.name!r}: post the marks there first"
            )
        return assignment


def _standing(row: Any, user: Any) -> Standing:
    ids = (("canvas", str(user.id)),)
    identity = identity_from(
        ids, vars(user), ("login_id", "sis_user_id", "email"), user.name
    )
    refused = ""
    if getattr(row, "excused", False):
        refused = (
            "they are excused in Canvas: end that there where the mark should count"
        )
    elif getattr(row, "assignment_visible", True) is False:
        refused = "Canvas does not assign this assignment to them"
    score = getattr(row, "score", None)
    submitted = getattr(row, "submitted_at", None)
    return Standing(
        str(user.id),
        identity,
        None if score is None else float(score),
        refused,
        read_time(str(submitted)) if submitted else None,
    )


def _unavailable(error: Exception) -> PlatformUnavailable:
    """What went wrong in one line. No header of a request, and so no token, is in these errors."""
    if isinstance(error, CanvasException):
        return PlatformUnavailable(
            f"Canvas says: {one_line(str(error.message or type(error).__name__))[:300]}"
        )
    return PlatformUnavailable(f"Canvas does not answer ({type(error).__name__})")
