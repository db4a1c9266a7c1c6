"""The attack corpus at the door: every hostile notebook handed in over HTTP to a running server,
beside requests that are no hand-ins at all; and what nobody may see, get or break by it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import html
import io
import json
import re
import socket
import struct
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from courses import HIDDEN_INI, built_course
from running_server import RunningServer, running_server

sys.path.append(str(Path(__file__).resolve().parents[1] / "attacks"))

from attack import ANSWERS, FULL, Attack, code_cell, notebook, whole
from pages import STEERING, formulas, live_parts
from vault_course import CANARY, write_vault
from yard import ALL, NEIGHBOUR_EVERY, Yard

from autograder.basics.safe_text import one_line
from autograder.server.attempts import Attempt, AttemptStore
from autograder.server.database import open_database
from autograder.server.people import PeopleStore

INSTRUCTOR = "prof"
PATIENCE = 1200.0
"""Seconds; the whole corpus takes some minutes on two cores at rest."""
_MARKUP = "<script>alert(1)</script><svg onload=alert(1)><img src=x onerror=alert(1)>"
_DISPLAY = {
    "output_type": "display_data",
    "metadata": {"isolated": _MARKUP},
    "data": {
        "text/html": _MARKUP,
        "text/markdown": f"[x](javascript:alert(1)) {_MARKUP}",
        "text/latex": "$\\href{javascript:alert(1)}{x}$",
        "image/svg+xml": f"<svg xmlns='http://www.w3.org/2000/svg'>{_MARKUP}</svg>",
        "image/png": "bm90IGEgcGljdHVyZQ==",
        "application/javascript": "alert(1)",
        "application/vnd.jupyter.widget-view+json": {"model_id": _MARKUP},
    },
}
_ERROR = {
    "output_type": "error",
    "ename": _MARKUP,
    "evalue": "\x1b[31m" + _MARKUP,
    "traceback": [_MARKUP, "\x1b]0;owned\x07"],
}
_MARKDOWN = {
    "cell_type": "markdown",
    "metadata": {"title": _MARKUP},
    "attachments": {"x.svg": {"image/svg+xml": _MARKUP}},
    "source": f"# {_MARKUP}\n[x](javascript:alert(1)) ![y](attachment:x.svg) {{{{ 7 * 191 }}}}",
}


def _with_cells(*cells: dict[str, Any], **changes: Any) -> dict[str, Any]:
    right = notebook(ANSWERS)
    return {**right, "cells": [*right["cells"], *cells], **changes}


NOTEBOOKS = [
    whole(
        "hostile_outputs",
        _with_cells({**code_cell("x = 1"), "outputs": [_DISPLAY, _ERROR]}),
    ),
    whole("hostile_markdown", _with_cells(_MARKDOWN)),
    whole("hostile_raw_cell", _with_cells({**_MARKDOWN, "cell_type": "raw"})),
    whole(
        "hostile_metadata",
        _with_cells(
            metadata={
                "title": _MARKUP,
                "authors": [{"name": _MARKUP}],
                "kernelspec": {"name": "../../bin/sh", "display_name": _MARKUP},
                "language_info": {"name": _MARKUP, "mimetype": "text/html"},
                "widgets": {
                    "application/vnd.jupyter.widget-state+json": {"state": _MARKUP}
                },
                "attention_kit": {"role": _MARKUP},
            }
        ),
    ),
    whole(
        "hostile_cell_id",
        _with_cells({**code_cell("x = 1"), "id": _MARKUP}, nbformat_minor=5),
    ),
]
"""Right answers beside content that would run in a browser that shows it: 12 of 12 points."""

AT_THE_DOOR = [
    *(
        dataclasses.replace(attack, name=one_line(attack.name))
        for attack in ALL
        if not attack.link and not attack.beside
    ),
    *NOTEBOOKS,
]
"""All attacks that are one file: links, pipes and files beside the notebook cannot be handed in.
Their names are the students' ids here, and no way in gives an id of two lines.
"""

FILE_NAMES = (
    "../../course.toml",
    "/etc/passwd",
    "<script>alert(1)</script>.ipynb",
    "\u202ebpyni.homework",
    "=cmd|' C calc'!A0.ipynb",
    "x" * 250,
    "homework.ipynb; name=token",
)

_RIGHT = json.dumps(notebook(ANSWERS)).encode()


def _zip() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../vault.ipynb", _RIGHT)
        archive.writestr("zeros", b"0" * (20 << 20))
    return data.getvalue()


_LONG = 1_000_000
WEIGHTS = [
    ("vault.safetensors", struct.pack("<Q", (1 << 64) - 1) + b"{}"),
    ("vault.safetensors", struct.pack("<Q", _LONG) + b"[" * _LONG),
    ("vault.safetensors", struct.pack("<Q", _LONG) + b'{"a":' * (_LONG // 5)),
    ("vault.safetensors", struct.pack("<Q", 20_000) + b"1" * 20_000),
    ("vault.safetensors", b"\x80\x04\x8c\x02os\x8c\x06system\x93."),
    ("vault.safetensors", b"PK\x03\x04" + bytes(100)),
    ("../../vault.safetensors", struct.pack("<Q", 2) + b"{}"),
    (f"{_MARKUP}.safetensors", struct.pack("<Q", 2) + b"{}"),
    ("vault.safetensors", bytes(100 << 20)),
]
"""Name and content of what is handed in as weights: headers that are huge, deep, or one number of
20,000 digits; a pickle, a zip; names that are paths or markup; and a hundred times too many bytes.
"""

BODIES = {
    "a zip of a notebook and of 20 MB of zeros": _zip(),
    "a compressed notebook": gzip.compress(_RIGHT),
    "half a notebook": _RIGHT[: len(_RIGHT) // 2],
    "nothing": b"",
    "a lone surrogate": b'"\\ud800"',
    "a form instead of a notebook": b"token=x&notebook=y",
    "bytes": bytes(range(256)) * 100,
}
"""What is no notebook, for a program that hands in: each is refused with 400."""


@dataclass
class Findings:
    """What went wrong, and how much was tried.

    Attributes:
        wrong: a line for each thing.
    """

    wrong: list[str] = field(default_factory=list)
    handed_in: int = 0
    refused: int = 0
    pages: int = 0


class Door:
    """The running server, as students and the instructor see it."""

    def __init__(
        self, server: RunningServer, people: PeopleStore, findings: Findings
    ) -> None:
        self.server = server
        self._people = people
        self._findings = findings

    def key_of(self, student: str) -> str:
        """A new key with which the person hands in."""
        return self._people.make_api_key(student)

    @contextlib.contextmanager
    def sign_in(self, student: str) -> Iterator[httpx.Client]:
        """A browser in which the person has signed in."""
        key = self._people.make_link(
            student, "instructor" if student == INSTRUCTOR else "student"
        )
        address = self.server.address
        with httpx.Client(
            base_url=address, timeout=60.0, follow_redirects=True
        ) as client:
            token = token_of(client.get("/sign-in", params={"key": key}).text)
            answer = client.post("/sign-in", data={"token": token, "key": key})
            assert answer.status_code == 200, answer.text
            yield client

    def hand_in_by_form(
        self, student: str, data: bytes, file_name: str
    ) -> httpx.Response:
        """Hand in as a browser does, and ask about a question in hostile words."""
        with self.sign_in(student) as browser:
            token = token_of(browser.get("/").text)
            file = {"notebook": (file_name, data)}
            sent = browser.post(
                "/assignments/vault/hand-in", data={"token": token}, files=file
            )
            if sent.status_code == 200:
                words = {
                    "token": token,
                    "question": _MARKUP,
                    "text": f"{_MARKUP} {{{{ 7*191 }}}}",
                }
                browser.post(f"{sent.url.path}/ask", data=words)
                self.look_at(browser, sent.url.path)
        return sent

    def hand_in_by_key(self, student: str, data: bytes) -> httpx.Response:
        """Hand in as `check.py --submit` does."""
        headers = {"authorization": f"Bearer {self.key_of(student)}"}
        address = f"{self.server.address}/api/assignments/vault/attempts"
        return httpx.post(address, content=data, headers=headers, timeout=60.0)

    def look_at(self, browser: httpx.Client, path: str) -> None:
        """Load a page, and note what is live or hidden in it."""
        answer = browser.get(path)
        self._findings.pages += 1
        text = answer.text
        faults = [f"status {answer.status_code}"] if answer.status_code != 200 else []
        faults += live_parts(text, own="/")
        faults += [f"shows {CANARY}"] if CANARY in html.unescape(text) else []
        faults += [f"has {mark!r}" for mark in STEERING if mark in text]
        faults += ["computes a template"] if "1337" in text else []
        self._findings.wrong += [f"{path}: {fault}" for fault in faults]


def token_of(text: str) -> str:
    """The token in the forms of a page."""
    match = re.search(r'name="token" value="([^"]+)"', text)
    return match[1] if match else ""


def attack_server(
    folder: Path, attacks: Sequence[Attack], graders: int = 1
) -> Findings:
    """Build the attacked course in the folder, serve it, hand every attack in, and look."""
    findings = Findings()
    root = folder / "vault"
    root.mkdir()
    course = built_course(root, lambda path: write_vault(path, HIDDEN_INI))
    with (root / "course.toml").open("a", encoding="utf-8") as settings:
        settings.write(f'[server]\ninstructors = "{INSTRUCTOR}"\n')
        settings.write('[leaderboard]\nweights = "vault"\nweights_mb = 1\n')
    (root / "gradebook.db").unlink()  # the corpus's is no database, and pages read it
    (root / ".autograder").mkdir(exist_ok=True)
    engine = open_database(f"sqlite:///{root / '.autograder' / 'server.db'}")
    yard = Yard(course, folder / "unused")
    try:
        with running_server(root, graders=graders) as server:
            yard.grader = server.process.pid
            door = Door(server, PeopleStore(engine), findings)
            with slow_uploads(server, door.key_of("slow"), 15):
                expected = _hand_in_all(door, yard, attacks, findings)
                expected |= _hand_in_weights(door, yard, findings)
                knock_wrongly(door, findings)
                attempts = wait_until_graded(AttemptStore(engine))
            findings.wrong += judge(attempts, expected)
            _look_everywhere(door, attempts)
            if server.process.poll() is not None:
                findings.wrong.append("the server ended")
        log = server.log.read_text(encoding="utf-8")
        findings.wrong += (
            ["the server's log has a traceback"] if "Traceback" in log else []
        )
    finally:
        engine.dispose()
        findings.wrong += [
            f"changed: {path}" for path in yard.changed() if _is_guarded(path)
        ]
        findings.wrong += [f"left behind: {path}" for path in yard.left_behind()]
        findings.wrong += [f"heard: {name}" for name in yard.heard()]
        yard.close()
    findings.wrong += _tables(root)
    return findings


def _is_guarded(path: str) -> bool:
    """Whether neither the server nor a filed hand-in may change the file."""
    return not {"submitted", "results", ".autograder", "course.toml"} & set(
        Path(path).parts
    )


def _hand_in_all(
    door: Door, yard: Yard, attacks: Sequence[Attack], findings: Findings
) -> dict[str, Attack]:
    """Hand in by form and by key in turns, with a neighbour now and then; by student, whoever was
    told that the notebook is stored.
    """
    expected = {}
    for number, attack in enumerate(attacks):
        if number % NEIGHBOUR_EVERY == 0:
            neighbour = Attack(f"neighbour-{number}")
            door.hand_in_by_key(neighbour.name, yard.notebook(neighbour))
            expected[neighbour.name] = neighbour
        data = yard.notebook(attack)
        if number % 2:
            file_name = FILE_NAMES[number // 2 % len(FILE_NAMES)]
            status = door.hand_in_by_form(attack.name, data, file_name).status_code
            is_stored = status == 200
        else:
            status = door.hand_in_by_key(attack.name, data).status_code
            is_stored = status == 201
        findings.handed_in += 1
        if is_stored:
            expected[attack.name] = attack
        elif status in (400, 413) and attack.ungraded:
            findings.refused += 1
        else:
            findings.wrong.append(f"{attack.name!a}: status {status}")
    return expected


def _hand_in_weights(door: Door, yard: Yard, findings: Findings) -> dict[str, Attack]:
    """Hand right notebooks in with hostile weights beside them: each is taken, and stored whole;
    of the weights nothing is kept.
    """
    expected = {}
    for number, (name, content) in enumerate(WEIGHTS):
        honest = Attack(f"weights-{number}")
        notebook = yard.notebook(honest)
        with door.sign_in(honest.name) as browser:
            token = token_of(browser.get("/").text)
            files = {"notebook": ("a.ipynb", notebook), "weights": (name, content)}
            sent = browser.post(
                "/assignments/vault/hand-in", data={"token": token}, files=files
            )
            if "The notebook counts without it" not in sent.text:
                findings.wrong.append(f"{honest.name}: status {sent.status_code}")
            door.look_at(browser, sent.url.path)
        expected[honest.name] = honest
    return expected


def is_deserved(score: float, attack: Attack) -> bool:
    """Whether an attack may have this score: its tricks may cost it more, and gain nothing."""
    return score <= attack.deserves if attack.may_lose else score == attack.deserves


def judge(attempts: Sequence[Attempt], expected: dict[str, Attack]) -> list[str]:
    """Whose points are not what the notebook deserves; a line for each."""
    by_student = {attempt.student: attempt for attempt in attempts}
    wrong = [f"{name!a}: lost" for name in expected.keys() - by_student.keys()]
    for student, attempt in by_student.items():
        attack = expected.get(student)
        if attack is None:
            wrong.append(f"{student!a}: an attempt that nobody was told of")
        elif attempt.state != "graded":
            wrong.append(f"{student!a}: {attempt.state}, {attempt.problem}")
        elif attack.ungraded:
            wrong += [f"{student!a}: has a result"] if attempt.score is not None else []
        elif attempt.score is None or not is_deserved(attempt.score, attack):
            wrong.append(f"{student!a}: {attempt.score}, deserves {attack.deserves}")
        elif attempt.max_score != FULL:
            wrong.append(f"{student!a}: of {attempt.max_score} points")
    return wrong


def wait_until_graded(store: AttemptStore) -> list[Attempt]:
    """Everybody's attempts, when none is open any more."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        queue = store.queue_state()
        if not queue.waiting and not queue.started:
            break
        time.sleep(0.2)
    return store.of_assignment("vault")


def _look_everywhere(door: Door, attempts: Sequence[Attempt]) -> None:
    """Every page that shows anything of a student, as the instructor."""
    time.sleep(3.0)  # attempts are put into the class's folders every two seconds
    with door.sign_in(INSTRUCTOR) as prof:
        for path in (
            "/",
            "/people",
            "/class/vault",
            "/class/vault/report",
            "/class/vault/written",
        ):
            door.look_at(prof, path)
        for attempt in attempts:
            door.look_at(prof, f"/attempts/{attempt.id}")
            door.look_at(
                prof, f"/class/vault/students/{quote(attempt.student, safe='')}"
            )
            if attempt.score is not None:
                door.look_at(prof, f"/attempts/{attempt.id}/page")
            file = prof.get(f"/attempts/{attempt.id}/notebook")
            assert file.headers["content-type"] == "application/octet-stream"
            assert file.headers["content-disposition"].startswith("attachment;")


def _tables(root: Path) -> list[str]:
    """Formulas in the table that `autograder export` makes of what was handed in."""
    from autograder.course import load_course
    from autograder.outputs.export import render_student_csv
    from autograder.reporting.stored_marks import StoredMarks

    course = load_course(root)
    stored = StoredMarks(
        course, course.assignment("vault"), course.results, lambda line: None
    )
    return [
        f"a formula: {cell}" for cell in formulas(render_student_csv(stored.marks()))
    ]


# Requests that hand nothing in


def knock_wrongly(door: Door, findings: Findings) -> None:
    """Bodies, forms and connections that are no hand-in: each is refused, and costs nothing."""
    for name, data in BODIES.items():
        status = door.hand_in_by_key("knocks", data).status_code
        findings.wrong += [f"{name}: status {status}"] if status != 400 else []
    with door.sign_in("knocks") as browser:
        token = token_of(browser.get("/").text)
        for name, request in _forms(token).items():
            status = browser.post("/assignments/vault/hand-in", **request).status_code
            findings.wrong += [f"{name}: status {status}"] if status // 100 != 4 else []
    endless = send_without_end(door.server, door.key_of("knocks"))
    if b" 413 " not in endless:
        findings.wrong.append(f"a body without end: {endless[:80]!r}")
    leave_halfway(door.server, door.key_of("knocks"))


def _forms(token: str) -> dict[str, dict[str, Any]]:
    """Forms that are wrong in some way, as arguments of httpx's `post`."""
    mixed = {"content-type": "multipart/form-data; boundary=b"}
    part = (
        b'--b\r\nContent-Disposition: form-data; name="token"\r\n\r\n' + token.encode()
    )
    return {
        "no boundary": {
            "content": part,
            "headers": {"content-type": "multipart/form-data"},
        },
        "no end": {"content": part, "headers": mixed},
        "a thousand fields": {
            "data": {f"field-{number}": "x" for number in range(1000)}
        },
        "two files": {
            "data": {"token": token},
            "files": [
                ("notebook", ("a.ipynb", b"{}")),
                ("notebook", ("b.ipynb", b"{}")),
            ],
        },
        "a file as the token": {"files": {"token": ("x", token.encode())}},
        "a codec that makes surrogates": {
            "content": part + b"\r\n--b--\r\n",
            "headers": {
                "content-type": "multipart/form-data; boundary=b; charset=unicode_escape"
            },
        },
        "a header of 100 kB in a part": {
            "content": b"--b\r\nX: " + b"x" * 100_000 + b"\r\n\r\n\r\n--b--\r\n",
            "headers": mixed,
        },
        "a file name of 5000 letters": {
            "data": {"token": token},
            "files": {"notebook": ("x" * 5000, _RIGHT)},
        },
        "no file": {"data": {"token": token}},
        "a field instead of a file": {
            "data": {"token": token, "notebook": _RIGHT.decode()}
        },
    }


def _open(server: RunningServer) -> socket.socket:
    address = urlsplit(server.address)
    assert address.hostname is not None
    assert address.port is not None
    return socket.create_connection((address.hostname, address.port), timeout=30.0)


def _head(key: str) -> bytes:
    """The begin of a hand-in's request."""
    return (
        "POST /api/assignments/vault/attempts HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {key}\r\n"
    ).encode()


def send_without_end(server: RunningServer, key: str) -> bytes:
    """Send a notebook in chunks, at most 64 MB, until the server answers; the answer's begin."""
    chunk = b"10000\r\n" + b"x" * (1 << 16) + b"\r\n"
    with _open(server) as connection:
        connection.sendall(_head(key) + b"Transfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(1000):
                connection.sendall(chunk)
        with contextlib.suppress(ConnectionError):
            return connection.recv(4096)
    return b"the connection was closed without an answer"


def leave_halfway(server: RunningServer, key: str) -> None:
    """Announce a body, send a part of it, and go."""
    for length in (1000, 5 << 30):
        head = _head(key) + f"Content-Length: {length}\r\n\r\n".encode()
        with _open(server) as connection:
            connection.sendall(head + b"x" * 500)


@contextlib.contextmanager
def slow_uploads(server: RunningServer, key: str, count: int) -> Iterator[None]:
    """Hold so many uploads open, of which no byte comes any more, while others hand in."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(_open(server))
            connection.sendall(_head(key) + b"Content-Length: 100000\r\n\r\nx")
        yield
