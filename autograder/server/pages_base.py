"""What all pages share: templates, the visitor, forms, answers."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment
from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from autograder.basics.safe_text import clean
from autograder.basics.times import shown_time
from autograder.outputs.pages import TEMPLATES as OUTPUT_TEMPLATES
from autograder.outputs.pages import make_environment
from autograder.server.office import Office, SentFile
from autograder.server.people import Role, Visitor
from autograder.server.protection import RateLimits, check_token, form_token

TEMPLATES = Path(__file__).parent / "templates"
_MOST_FIELDS = 20
SLOWEST_REFRESH = 15
"""Seconds after which a page that waits loads itself again, where the queue is long. Once a second
by everybody, 500 who wait took three times the processor time of grading.
"""


class RowNumber(IntegerConvertor):
    """The number of a database's row in an address: as many digits as every database compares."""

    regex = "[0-9]{1,9}"


register_url_convertor("row", RowNumber())


class SignInNeeded(Exception):
    """The page is for people who have signed in."""


@functools.cache
def _environment() -> Environment:
    return make_environment(TEMPLATES, OUTPUT_TEMPLATES)


def style_sheet() -> str:
    """The style of all pages: that of feedback pages, and what forms need."""
    parts = [OUTPUT_TEMPLATES / "page.css", TEMPLATES / "server.css"]
    return "\n".join(path.read_text(encoding="utf-8") for path in parts)


def office_of(request: Request) -> Office:
    """The office that this application belongs to."""
    office: Office = request.app.state.office
    return office


def rates_of(request: Request) -> RateLimits:
    """The limits on how often somebody may do something here."""
    rates: RateLimits = request.app.state.rates
    return rates


def page(
    request: Request,
    template: str,
    *,
    status: int = 200,
    refresh: int = 0,
    **values: Any,
) -> HTMLResponse:
    """Render a page.

    Args:
        refresh: seconds after which the browser asks again; 0 for never.
    """
    office = office_of(request)
    zone = office.course.about.timezone
    text = (
        _environment()
        .get_template(template)
        .render(
            course_name=office.course.about.name,
            visitor=visitor_or_none(request),
            token=form_token(request),
            root=root_of(request),
            refresh=refresh,
            when=lambda seconds: shown_time(datetime.fromtimestamp(seconds, UTC), zone),
            **values,
        )
    )
    return HTMLResponse(text, status)


def visitor_or_none(request: Request) -> Visitor | None:
    """Who has signed in."""
    student = request.session.get("student")
    role: Role = (
        "instructor" if request.session.get("role") == "instructor" else "student"
    )
    return Visitor(student, role) if isinstance(student, str) and student else None


def visitor_of(request: Request) -> Visitor:
    """Who has signed in.

    Raises:
        SignInNeeded: nobody.
    """
    visitor = visitor_or_none(request)
    if visitor is None:
        raise SignInNeeded
    return visitor


def instructor_of(request: Request) -> Visitor:
    """The instructor who has signed in.

    Raises:
        SignInNeeded: nobody has signed in.
        HTTPException: 404 for students: they need not know what there is.
    """
    visitor = visitor_of(request)
    if not visitor.is_instructor:
        raise HTTPException(404)
    return visitor


def sign_in(request: Request, visitor: Visitor, path: str = "/") -> Response:
    """Begin a session of this person's, and lead to a page. A session of before ends, with its form
    token.
    """
    request.session.clear()
    request.session["student"] = visitor.student
    request.session["role"] = visitor.role
    return go_to(request, path)


async def sign_in_member(request: Request, visitor: Visitor) -> Response:
    """Sign a person in who belongs to the course.

    Raises:
        HTTPException: 403, the person does not.
    """
    may_enter = office_of(request).may_enter
    if not await run_in_threadpool(may_enter, visitor.student):
        raise HTTPException(403, "you are not in the class list of this course")
    return sign_in(request, visitor)


@dataclass(frozen=True, slots=True)
class SentForm:
    """The fields of a form that was sent, and the files in it.

    Attributes:
        notebook: b"" where none came.
        weights: None where none came.
    """

    fields: Mapping[str, str]
    notebook: bytes
    weights: SentFile | None

    def text(self, name: str) -> str:
        """A field without the spaces around it, and without characters that a database or a
        terminal chokes on; "" where it was not sent.
        """
        return clean(self.fields.get(name, "")).strip()


async def read_form(request: Request) -> SentForm:
    """The form that was sent, by this session's own page.

    Raises:
        HTTPException: it came from elsewhere, or too many came.
    """
    visitor = visitor_or_none(request)
    if visitor is not None:
        rates_of(request).forms.check(visitor.student)
    else:
        rates_of(request).sign_ins.check(request.client.host if request.client else "")
    form = await read_parts(request)
    check_token(request, form.fields.get("token", ""))
    return form


async def read_parts(request: Request) -> SentForm:
    """The fields and files of a form, from whatever page or program."""
    async with request.form(max_files=2, max_fields=_MOST_FIELDS) as form:
        fields = {}
        notebook = b""
        weights = None
        for name, value in form.items():
            if not isinstance(value, UploadFile):
                fields[name] = value
            elif name == "weights" and value.filename:
                weights = await _read_weights(request, value)
            elif name == "notebook":
                notebook = await value.read()
    return SentForm(fields, notebook, weights)


async def _read_weights(request: Request, file: UploadFile) -> SentFile:
    """A file of weights. A browser sends one without a name where none was chosen."""
    assignment = request.path_params.get("assignment", "")
    limit = office_of(request).weights_limit(assignment)
    size = file.size or 0
    content = await file.read() if size <= limit else b""
    return SentFile(file.filename or "", content, size)


def takes_form(
    who: Callable[[Request], Visitor],
) -> Callable[
    [Callable[[Request, Visitor, SentForm], Response]],
    Callable[[Request], Awaitable[Response]],
]:
    """Decorate a function of request, visitor and form that answers a form.

    It runs in a thread, since it waits for files and for the database.

    Args:
        who: `visitor_of` or `instructor_of`; asked before anything of the form is read.
    """

    def decorate(
        answer: Callable[[Request, Visitor, SentForm], Response],
    ) -> Callable[[Request], Awaitable[Response]]:
        @functools.wraps(answer)
        async def endpoint(request: Request) -> Response:
            visitor = who(request)
            form = await read_form(request)
            return await run_in_threadpool(answer, request, visitor, form)

        return endpoint

    return decorate


def root_of(request: Request) -> str:
    """The path below which all pages are: "" but for a service of JupyterHub."""
    root: str = request.scope.get("root_path", "")
    return root


def own_address(request: Request) -> str:
    """The address of the first page as people type it, without the last slash."""
    server = office_of(request).course.server
    return f"{server.address or str(request.base_url)}".rstrip("/") + root_of(request)


def go_to(request: Request, path: str) -> RedirectResponse:
    """Have the browser get another page of this server."""
    return RedirectResponse(f"{root_of(request)}{path}", 303)


def download(data: bytes, name: str) -> Response:
    """A file that the browser keeps and does not show: a student wrote it."""
    quoted = name.replace('"', "").encode("ascii", "ignore").decode()
    return Response(
        data,
        media_type="application/octet-stream",
        headers={"content-disposition": f'attachment; filename="{quoted}"'},
    )
