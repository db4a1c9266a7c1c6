"""A server of S3 for tests, on this machine: PORT LOG. Each request is a line of the log."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = "40"  # so that listings have pages


def main(port: int, log: Path) -> None:
    """Serve until this process is ended."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    answer = DomainDispatcherApplication(create_backend_app)

    def logged(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']} {environ['QUERY_STRING']}\n")
        made: Iterable[bytes] = answer(environ, start)
        return made

    make_server("127.0.0.1", port, logged, threaded=True).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
