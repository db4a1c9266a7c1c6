"""`autograder serve`: the web application and a grading desk on this machine."""

from __future__ import annotations

import secrets
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass

import uvicorn

from autograder.basics.locks import hold_lock
from autograder.basics.whole_files import make_private
from autograder.course import Course, load_course
from autograder.records.results import Tell
from autograder.sandbox.machine_limits import raise_open_files
from autograder.server.attempts import AttemptStore
from autograder.server.database import open_database
from autograder.server.desk import GradingDesk
from autograder.server.hub_pages import hub_from_environment
from autograder.server.lti_desk import LtiDesk
from autograder.server.office import Office
from autograder.server.pages_base import SLOWEST_REFRESH
from autograder.server.people import Role
from autograder.server.web_app import make_app

KEEP_ALIVE_SECONDS = 4 * SLOWEST_REFRESH
"""How long a browser's idle connection stays open. A page that waits asks again over the same
connection: where the server closes it at that moment, as uvicorn's own 5 seconds did, the request
is lost.
"""


@dataclass(frozen=True, slots=True)
class ServeRequest:
    """The options of `autograder serve`.

    Attributes:
        host, port: where the server listens.
        graders: how many attempts are graded at once; 0 where other machines grade.
        link: people for whom links are made and printed before it starts.
    """

    course: Course
    host: str = "127.0.0.1"
    port: int = 8000
    graders: int = 1
    isolation: str = "auto"
    link: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """The address that people type."""
        return self.course.server.address or f"http://{self.host}:{self.port}"


def database_address(course: Course) -> str:
    """The address of the server's database."""
    return course.server.db_url or f"sqlite:///{course.kept / 'server.db'}"


def serve_command(
    request: ServeRequest, tell: Tell, begin: Callable[[Office], None] | None = None
) -> None:
    """Serve until somebody ends it. Attempts that were being graded are graded at the next start.

    Args:
        begin: called once, before the first request.

    Raises:
        KitError: another server of this course runs here, or the database is of another version.
    """
    course = request.course
    raise_open_files()  # each idle connection is one
    course.kept.mkdir(exist_ok=True)
    with hold_lock(course.kept / "locks" / "server", "serves this course"):
        engine = open_database(database_address(course))
        store = AttemptStore(engine)
        desk = _make_desk(request, lambda: office.course, store, tell)
        office = Office(course.root, engine, desk.wake, tell)
        office.after_filing.append(LtiDesk(office).send_marks)
        _print_links(request, office, tell)
        is_https = request.address.startswith("https:")
        app = make_app(
            office, _secret(course), is_https=is_https, hub=hub_from_environment()
        )
        closed = threading.Event()
        filing = threading.Thread(target=office.file_until, args=(closed,))
        with desk:
            filing.start()
            try:
                if begin is not None:
                    begin(office)
                tell(f"serving {course.about.name} at {request.address}")
                uvicorn.run(
                    app,
                    host=request.host,
                    port=request.port,
                    log_level="warning",
                    proxy_headers=bool(course.server.address),
                    timeout_keep_alive=KEEP_ALIVE_SECONDS,
                )
            finally:
                closed.set()
                filing.join()


def grade_for_server(request: ServeRequest, tell: Tell) -> None:
    """Grade for a server on another machine, with the same database, until somebody ends it."""
    course = request.course
    store = AttemptStore(open_database(database_address(course)))
    root = course.root
    with _make_desk(request, lambda: load_course(root), store, tell):
        tell(f"grading for the server of {course.about.name}")
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


def _make_desk(
    request: ServeRequest,
    read_course: Callable[[], Course],
    store: AttemptStore,
    tell: Tell,
) -> GradingDesk:
    machine = socket.gethostname()
    return GradingDesk(
        read_course, store, machine, request.graders, request.isolation, tell
    )


def _print_links(request: ServeRequest, office: Office, tell: Tell) -> None:
    for student in request.link:
        role: Role = office.role_of(student)
        key = office.people.make_link(student, role)
        tell(f"{student} ({role}): {request.address}/sign-in?key={key}")


def _secret(course: Course) -> str:
    """The secret that signs cookies, made once; nobody else on the machine may read it."""
    path = course.kept / "server-secret"
    if not path.exists():
        make_private(path, secrets.token_urlsafe(32))
    return path.read_text(encoding="utf-8")
