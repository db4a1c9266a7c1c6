"""Handing in from a terminal, at a server of the test's own."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from autograder.student_tools import submit as module
from autograder.student_tools.submit import submit

GRADED = {
    "attempt": 3,
    "number": 1,
    "state": "graded",
    "problem": "",
    "page": "http://x/3",
}


class Handler(BaseHTTPRequestHandler):
    """A server that takes one key, and has a result at the second look."""

    bodies: ClassVar[list[bytes]] = []
    looks: ClassVar[list[str]] = []
    result: ClassVar[dict[str, Any]] = {}

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.bodies.append(self.rfile.read(length))
        if self.headers["Authorization"] != "Bearer right-key":
            self._send(401, {"problem": "this key is not known"})
        else:
            self._send(201, {**GRADED, "state": "waiting", "before": 0, "seconds": 0.1})

    def do_GET(self) -> None:
        self.looks.append(self.path)
        self._send(200, {**GRADED, **self.result})

    def _send(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(module, "KEPT", tmp_path / "kept.json")
    Handler.bodies.clear()
    Handler.looks.clear()
    Handler.result = {"score": 4.5, "max_score": 5.5}
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.ipynb"
    path.write_bytes(b"{}")
    return path


def type_in(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setattr("getpass.getpass", lambda prompt: key)


def test_a_notebook_is_handed_in_and_its_points_are_printed(
    address: str,
    notebook: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    type_in(monkeypatch, "right-key")
    assert submit(notebook, "tiny", address, {}) == 0
    assert Handler.bodies == [b"{}"]
    assert Handler.looks == ["/api/attempts/3"]
    assert capsys.readouterr().out == (
        "Handed in: attempt 1 at tiny.\n4.5 of 5.5 points of the tests.\nYour page: http://x/3\n"
    )


def test_address_and_key_are_asked_for_once(
    address: str, notebook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, "right-key")
    assert submit(notebook, "tiny", address, {}) == 0
    monkeypatch.setattr("getpass.getpass", pytest.fail)
    assert submit(notebook, "tiny", "", {}) == 0
    assert stat.S_IMODE(module.KEPT.stat().st_mode) == 0o600


def test_a_key_that_is_not_known_is_told_and_forgotten(
    address: str,
    notebook: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    type_in(monkeypatch, "wrong-key")
    assert submit(notebook, "tiny", address, {}) == 1
    assert "Not handed in: this key is not known" in capsys.readouterr().out
    assert not module.KEPT.exists()


def test_a_server_that_does_not_answer_is_named(
    notebook: Path,
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    type_in(monkeypatch, "right-key")
    assert submit(notebook, "tiny", "http://127.0.0.1:9", {}) == 1
    assert (
        "Not handed in: http://127.0.0.1:9 does not answer" in capsys.readouterr().out
    )


def test_what_could_not_be_graded_has_its_reason(
    address: str,
    notebook: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    type_in(monkeypatch, "right-key")
    Handler.result = {"problem": "has no cell of this assignment"}
    assert submit(notebook, "tiny", address, {}) == 0
    assert (
        "It could not be graded: has no cell of this assignment"
        in capsys.readouterr().out
    )


def test_weights_beside_the_notebook_go_with_it(
    address: str,
    notebook: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    type_in(monkeypatch, "right-key")
    monkeypatch.setattr("secrets.token_hex", lambda count: "edge")
    notebook.with_name("tiny.safetensors").write_bytes(b"numbers")
    assert submit(notebook, "tiny", address, {"weights_mb": 1}) == 0
    assert submit(notebook, "tiny", address, {}) == 0, "a course that takes none"
    form = (
        b'--edge\r\nContent-Disposition: form-data; name="notebook"; filename="tiny.ipynb"\r\n\r\n'
        b"{}\r\n--edge\r\nContent-Disposition: form-data; "
        b'name="weights"; filename="tiny.safetensors"\r\n\r\nnumbers\r\n--edge--\r\n'
    )
    assert Handler.bodies == [form, b"{}"]


def test_weights_that_are_too_large_stay_and_the_notebook_goes(
    address: str,
    notebook: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    type_in(monkeypatch, "right-key")
    notebook.with_name("tiny.safetensors").write_bytes(b"x" * ((1 << 20) + 1))
    assert submit(notebook, "tiny", address, {"weights_mb": 1}) == 0
    assert Handler.bodies == [b"{}"]
    printed = capsys.readouterr().out
    assert printed.startswith("tiny.safetensors stays here: it is larger than 1 MB.\n")


def test_a_nickname_beside_the_notebook_goes_with_it(
    address: str,
    notebook: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    type_in(monkeypatch, "right-key")
    monkeypatch.setattr("secrets.token_hex", lambda count: "edge")
    nickname = notebook.with_name("nickname.txt")
    nickname.write_bytes("Gräfin".encode())
    assert submit(notebook, "tiny", address, {"nickname_bytes": 1000}) == 0
    assert submit(notebook, "tiny", address, {}) == 0, "a course without a leaderboard"
    nickname.write_bytes(b"x" * 1001)
    assert submit(notebook, "tiny", address, {"nickname_bytes": 1000}) == 0
    form = (
        b'--edge\r\nContent-Disposition: form-data; name="nickname"\r\n\r\nGr\xc3\xa4fin\r\n'
        b'--edge\r\nContent-Disposition: form-data; name="notebook"; filename="tiny.ipynb"\r\n\r\n'
        b"{}\r\n--edge--\r\n"
    )
    assert Handler.bodies == [form, b"{}", b"{}"]
    printed = capsys.readouterr().out
    assert "nickname.txt stays here: it is larger than 1000 bytes." in printed
