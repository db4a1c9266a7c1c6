"""`autograder serve` up to the moment at which its HTTP server would listen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import uvicorn
from served_course import write_class

from autograder.basics.errors import ResultsInUse
from autograder.course import Course, load_course
from autograder.server.office import Office
from autograder.server.serve_command import (
    ServeRequest,
    _secret,
    database_address,
    serve_command,
)


@pytest.fixture
def course(built: Path, tmp_path: Path) -> Course:
    settings = '[server]\naddress = "https://grades.x.edu"\ninstructors = "prof"\n'
    return load_course(write_class(built, tmp_path / "course", settings))


def test_a_server_is_told_where_to_listen_and_holds_the_course_meanwhile(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that needs the course is open before the first request."""
    request = ServeRequest(course, "0.0.0.0", 8080, graders=0, link=("ada", "prof"))
    lines: list[str] = []
    offices: list[Office] = []

    def run(app: Any, **options: Any) -> None:
        assert app.state.office is offices[0]
        lines.append("listening")
        assert options == {
            "host": "0.0.0.0",
            "port": 8080,
            "log_level": "warning",
            "proxy_headers": True,
            "timeout_keep_alive": 60,
        }
        holder = course.kept / "locks" / "server"
        assert holder.read_text(encoding="utf-8").startswith("process ")
        with pytest.raises(ResultsInUse, match=r"\) serves this course: wait"):
            serve_command(ServeRequest(course, graders=0), lines.append)

    monkeypatch.setattr(uvicorn, "run", run)
    serve_command(request, lines.append, offices.append)
    ada, prof, *rest = lines
    assert ada.startswith("ada (student): https://grades.x.edu/sign-in?key=")
    assert prof.startswith("prof (instructor): https://grades.x.edu/sign-in?key=")
    address = "https://grades.x.edu"
    assert rest == [f"serving {course.about.name} at {address}", "listening"]
    (office,) = offices
    assert (course.kept / "server.db").is_file()
    assert len(office.after_filing) == 1


@pytest.mark.parametrize("address", ["http://127.0.0.1:8000", "https://x.edu"])
def test_a_cookie_needs_https_where_people_come_by_it(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Without an address of its own, the server is where it listens, and no proxy is before it."""
    is_https = address.startswith("https:")
    settings = f'[server]\naddress = "{address}"\n' if is_https else ""
    course = load_course(write_class(built, tmp_path / "course", settings))
    given: list[Any] = []

    def make_app(office: Office, secret: str, **options: Any) -> None:
        given.append((secret, options))

    monkeypatch.setattr("autograder.server.serve_command.make_app", make_app)
    monkeypatch.setattr(uvicorn, "run", lambda app, **options: given.append(options))
    lines: list[str] = []
    serve_command(ServeRequest(course, graders=0), lines.append)
    (secret, options), run = given
    assert secret == (course.kept / "server-secret").read_text(encoding="utf-8")
    assert options == {"is_https": is_https, "hub": None}
    assert run["proxy_headers"] is is_https
    assert lines == [f"serving {course.about.name} at {address}"]


def test_the_secret_of_cookies_is_made_once_and_private(tmp_path: Path) -> None:
    """Sessions outlast the server; 32 random bytes are 43 letters in base 64."""
    course = Course(tmp_path)
    course.kept.mkdir()
    secret = _secret(course)
    assert len(secret) == 43
    assert _secret(course) == secret
    path = tmp_path / ".autograder" / "server-secret"
    assert path.read_text(encoding="utf-8") == secret
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_database_lies_in_the_course_unless_settings_name_one(
    tmp_path: Path,
) -> None:
    own = tmp_path / ".autograder" / "server.db"
    assert database_address(Course(tmp_path)) == f"sqlite:///{own}"
    (tmp_path / "course.toml").write_text(
        '[server]\ndb_url = "postgresql+psycopg://db/kit"\n', encoding="utf-8"
    )
    assert database_address(load_course(tmp_path)) == "postgresql+psycopg://db/kit"
