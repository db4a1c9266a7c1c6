"""Who a page's visitor is, the addresses that a page writes, and files that a browser keeps."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from autograder.server import pages_base
from autograder.server.office import SentFile
from autograder.server.pages_base import (
    RowNumber,
    SentForm,
    SignInNeeded,
    _read_weights,
    download,
    go_to,
    instructor_of,
    own_address,
    read_form,
    read_parts,
    sign_in,
    sign_in_member,
    visitor_of,
    visitor_or_none,
)
from autograder.server.people import Visitor


def request(root: str = "", address: str = "", **session: Any) -> Any:
    """A request below a path, of a course whose settings name an address."""
    server = SimpleNamespace(address=address)
    office = SimpleNamespace(
        course=SimpleNamespace(server=server),
        may_enter=lambda student: student == "ada",
        weights_limit=lambda assignment: 3 if assignment == "m1" else 0,
    )
    return SimpleNamespace(
        session=session,
        scope={"root_path": root} if root else {},
        base_url="http://127.0.0.1:8000/",
        app=SimpleNamespace(state=SimpleNamespace(office=office)),
        path_params={"assignment": "m1"},
    )


@pytest.mark.parametrize(
    ("session", "visitor"),
    [
        ({}, None),
        ({"student": ""}, None),
        ({"student": 7}, None),
        ({"student": ["ada"]}, None),
        ({"student": "ada"}, Visitor("ada", "student")),
        ({"student": "ada", "role": "owner"}, Visitor("ada", "student")),
        ({"student": "prof", "role": "instructor"}, Visitor("prof", "instructor")),
        ({"role": "instructor"}, None),
    ],
)
def test_a_visitor_is_a_name_in_the_session(
    session: dict[str, Any], visitor: Visitor | None
) -> None:
    assert visitor_or_none(request(**session)) == visitor


def test_pages_of_instructors_are_not_there_for_others() -> None:
    prof = request(student="prof", role="instructor")
    assert instructor_of(prof) == visitor_of(prof) == Visitor("prof", "instructor")
    with pytest.raises(HTTPException) as refused:
        instructor_of(request(student="ada"))
    assert refused.value.status_code == 404
    for check in (visitor_of, instructor_of):
        with pytest.raises(SignInNeeded):
            check(request())


def test_a_session_of_before_ends_where_somebody_signs_in() -> None:
    asked = request(root="/services/kit", student="eve", form_token="old")
    answer = sign_in(asked, Visitor("ada", "student"), "/attempts/7")
    assert asked.session == {"student": "ada", "role": "student"}
    assert answer.status_code == 303
    assert answer.headers["location"] == "/services/kit/attempts/7"


def test_only_members_sign_in() -> None:
    answer = asyncio.run(sign_in_member(request(), Visitor("ada", "student")))
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    asked = request()
    with pytest.raises(HTTPException, match="not in the class list of this course"):
        asyncio.run(sign_in_member(asked, Visitor("eve", "student")))
    assert asked.session == {}


@pytest.mark.parametrize(
    ("root", "setting", "address"),
    [
        ("", "", "http://127.0.0.1:8000"),
        ("", "https://grades.x.edu/", "https://grades.x.edu"),
        ("/services/kit", "https://hub.x.edu", "https://hub.x.edu/services/kit"),
    ],
)
def test_an_address_is_the_settings_or_the_requests(
    root: str, setting: str, address: str
) -> None:
    assert own_address(request(root, setting)) == address


def test_a_page_leads_to_another_below_the_same_path() -> None:
    answer = go_to(request("/services/kit"), "/class/m1")
    assert answer.headers["location"] == "/services/kit/class/m1"
    assert go_to(request(), "/class/m1").headers["location"] == "/class/m1"


def test_a_file_is_kept_and_never_shown() -> None:
    """Quotes and letters that a header cannot have are left out of its name."""
    answer = download(b"<html>", 'Zoë "7".ipynb')
    assert (answer.body, answer.media_type) == (b"<html>", "application/octet-stream")
    disposition = answer.headers["content-disposition"]
    assert disposition == 'attachment; filename="Zo 7.ipynb"'


def test_a_rows_number_has_as_many_digits_as_every_database_compares() -> None:
    assert RowNumber.regex == "[0-9]{1,9}"


@pytest.mark.parametrize(("size", "content"), [(None, b"abcd"), (3, b"abcd"), (4, b"")])
def test_weights_beyond_the_bound_are_not_read(
    size: int | None, content: bytes
) -> None:
    async def read() -> bytes:
        return b"abcd"

    file: Any = SimpleNamespace(size=size, filename="m1.safetensors", read=read)
    sent = asyncio.run(_read_weights(request(), file))
    assert sent == SentFile("m1.safetensors", content, size or 0)


def test_a_form_has_fields_a_notebook_and_weights() -> None:
    """A file under another name is neither; a browser sends one without a name for none."""

    def upload(content: bytes, name: str) -> UploadFile:
        return UploadFile(io.BytesIO(content), size=len(content), filename=name)

    sent: list[tuple[str, Any]] = [
        ("token", "t"),
        ("notebook", upload(b"{}", "a.ipynb")),
        ("weights", upload(b"abc", "m1.safetensors")),
        ("notes", upload(b"notes", "b.ipynb")),
    ]
    bounds: list[dict[str, int]] = []

    @contextlib.asynccontextmanager
    async def open_form(**given: int) -> AsyncIterator[Any]:
        bounds.append(given)
        yield SimpleNamespace(items=lambda: sent)

    asked = request()
    asked.form = open_form
    weights = SentFile("m1.safetensors", b"abc", 3)
    assert asyncio.run(read_parts(asked)) == SentForm({"token": "t"}, b"{}", weights)
    sent[1:] = [("notebook", upload(b"{}", "a")), ("weights", upload(b"", ""))]
    assert asyncio.run(read_parts(asked)) == SentForm({"token": "t"}, b"{}", None)
    sent[1:] = []
    assert asyncio.run(read_parts(asked)) == SentForm({"token": "t"}, b"", None)
    assert bounds == [{"max_files": 2, "max_fields": 20}] * 3


@pytest.mark.parametrize(
    ("student", "host", "counted"),
    [
        ("ada", "10.0.0.7", ("forms", "ada")),
        ("", "10.0.0.7", ("sign_ins", "10.0.0.7")),
        ("", None, ("sign_ins", "")),
    ],
)
def test_a_form_counts_for_a_person_or_else_for_an_address(
    monkeypatch: pytest.MonkeyPatch, student: str, host: str | None, counted: object
) -> None:
    """It counts before it is read, and is taken with the session's own token alone."""
    events: list[Any] = []
    limits = {
        name: SimpleNamespace(check=lambda who, name=name: events.append((name, who)))
        for name in ("forms", "sign_ins")
    }

    async def read(request: Any) -> SentForm:
        events.append("read")
        return SentForm({"token": "other"}, b"", None)

    monkeypatch.setattr(pages_base, "read_parts", read)
    asked = request(student=student, form_token="own")
    asked.client = SimpleNamespace(host=host) if host else None
    asked.app.state.rates = SimpleNamespace(**limits)
    with pytest.raises(HTTPException, match="this form is too old"):
        asyncio.run(read_form(asked))
    assert events == [counted, "read"]
    asked.session["form_token"] = "other"
    assert asyncio.run(read_form(asked)).fields == {"token": "other"}


def test_a_field_is_text_without_spaces_around_it() -> None:
    form = SentForm({"code": " a\x00b \n"}, b"", None)
    assert (form.text("code"), form.text("points")) == ("ab", "")


def test_a_page_says_whether_it_loads_itself_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And writes times in the course's zone."""
    rendered: list[dict[str, Any]] = []

    def render(**values: Any) -> str:
        rendered.append(values)
        return "<html>"

    template = SimpleNamespace(render=render)
    environment = SimpleNamespace(get_template=lambda name: template)
    monkeypatch.setattr(pages_base, "_environment", lambda: environment)
    asked = request(root="/services/kit", student="ada")
    asked.app.state.office.course.about = SimpleNamespace(
        name="Our course", timezone="Europe/Berlin"
    )
    answer = pages_base.page(asked, "home.html", status=404, refresh=7, views=[])
    assert (answer.status_code, answer.body) == (404, b"<html>")
    pages_base.page(asked, "home.html")
    first, second = rendered
    assert "12:00" in first.pop("when")(1_775_037_600)  # 10:00 in UTC, in summer
    assert first == {
        "course_name": "Our course",
        "visitor": Visitor("ada", "student"),
        "token": asked.session["form_token"],
        "root": "/services/kit",
        "refresh": 7,
        "views": [],
    }
    assert second["refresh"] == 0
    assert len(first["token"]) == 22  # 16 bytes
