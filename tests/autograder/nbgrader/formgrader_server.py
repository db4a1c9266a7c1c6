"""Jupyter's server with the formgrader, for tests in a browser."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "outputs"))

from devtools import PATIENCE


@contextlib.contextmanager
def formgrader(root: Path, start_in: Path | None = None) -> Iterator[str]:
    """The address of a Jupyter server with little but the formgrader, started in the course folder
    or in another.
    """
    others = ("jupyterlab", "jupyter_lsp", "jupyterlab_jupytext", "notebook")
    extensions = {
        "nbgrader.server_extensions.formgrader": True,
        **dict.fromkeys(others, False),
    }
    options = [
        f"--ServerApp.jpserver_extensions={extensions}",
        "--ServerApp.open_browser=False",
        "--allow-root",
        "--ServerApp.ip=127.0.0.1",
        "--IdentityProvider.token=secret",
        "--ServerApp.port=0",
    ]
    folders = {
        name: str(root.parent / name)
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "HOME")
    }
    command = [sys.executable, "-m", "jupyter_server", *options]
    with (root.parent / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command,
            cwd=start_in or root,
            env=os.environ | folders,
            stdout=log,
            stderr=log,
        )
    try:
        yield f"{_address(root.parent / 'server.log', server)}"
    finally:
        server.terminate()
        server.wait(PATIENCE)


def _address(log: Path, server: subprocess.Popen[bytes]) -> str:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and server.poll() is None:
        if found := re.search(
            r"http://127\.0\.0\.1:\d+/", log.read_text(encoding="utf-8")
        ):
            return found.group()
        time.sleep(0.05)
    raise AssertionError(log.read_text(encoding="utf-8"))
