"""A server on this machine that answers as a learning platform's documentation says."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

MOST = 1_000_000  # bytes of a request


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    query: dict[str, list[str]]
    form: dict[str, list[str]]
    body: Any
    token: str


@dataclass(frozen=True)
class Answer:
    """What is answered: a status, JSON, and the address of the next page where there is one."""

    body: Any
    status: int = 200
    next_page: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@contextlib.contextmanager
def serve(answer: Callable[[Asked], Answer]) -> Iterator[str]:
    """The server's address; it answers on 127.0.0.1 alone and ends with the block."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def _answer(self) -> None:
            address = urlsplit(self.path)
            data = self.rfile.read(
                min(int(self.headers.get("Content-Length") or 0), MOST)
            )
            is_json = "json" in self.headers.get("Content-Type", "")
            form = {} if is_json else parse_qs(data.decode(), keep_blank_values=True)
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            body = json.loads(data) if is_json and data else None
            made = answer(
                Asked(
                    self.command,
                    address.path,
                    parse_qs(address.query),
                    form,
                    body,
                    token,
                )
            )
            content = b"" if made.body is None else json.dumps(made.body).encode()
            self.send_response(made.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            for name, value in made.headers.items():
                self.send_header(name, value)
            if made.next_page:
                self.send_header("Link", f'<{made.next_page}>; rel="next"')
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = _answer  # noqa: N815 - http.server asks for these names

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing is printed: a token must stand in no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
