"""Run a notebook top to bottom in a real Jupyter kernel, and list the cells that raised.

The kernel's output does not reach the terminal, and its files go to a temporary folder instead of
the user's home.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from autograder.basics.errors import KitError

CELL_SECONDS = 120.0
_LONGEST_SOCKET_PATH = 100
"""Bytes: Linux allows 107, and Jupyter puts the number of a channel behind."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class CellError:
    """The error of one cell.

    Attributes:
        cell: the cell's index in the notebook, from 0.
        name: the exception's class, or "Timeout" or "KernelDied", which end the run.
        message: the exception's text.
        traceback: as the notebook shows it, without colours; includes wrapped exceptions.
    """

    cell: int
    name: str
    message: str
    traceback: str


@dataclass(frozen=True, slots=True)
class NotebookRun:
    """A notebook that has run: with its outputs, and the errors of its cells."""

    notebook: Any
    errors: tuple[CellError, ...]


def execute_notebook(
    notebook: bytes,
    files: Iterable[tuple[str, bytes]],
    cell_seconds: float = CELL_SECONDS,
) -> tuple[CellError, ...]:
    """Run every cell, going on after errors; returns the errors.

    Args:
        notebook: the notebook's JSON.
        files: (relative path, content) of the files beside the notebook.
        cell_seconds: wall time that one cell may take.

    Raises:
        KitError: no kernel could be started.
    """
    return run_notebook(notebook, files, cell_seconds).errors


def run_notebook(
    notebook: bytes,
    files: Iterable[tuple[str, bytes]],
    cell_seconds: float,
    *,
    quick: bool = True,
) -> NotebookRun:
    """As `execute_notebook`; returns the notebook with its outputs too.

    Args:
        quick: whether cells that train for minutes take a few steps only.
    """
    import nbformat
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient import NotebookClient
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    loaded = nbformat.reads(notebook.decode(), as_version=4)
    started = [0]
    fatal: list[CellError] = []
    with tempfile.TemporaryDirectory(
        prefix="autograder-kernel-", ignore_cleanup_errors=True
    ) as scratch:
        folder = Path(scratch) / "notebook"
        folder.mkdir()
        for name, content in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        client = NotebookClient(
            loaded,
            timeout=cell_seconds,
            kernel_name="python3",
            allow_errors=True,
            on_cell_execute=lambda cell, cell_index: started.append(cell_index),
            resources={"metadata": {"path": str(folder)}},
            config=_sockets_in(Path(scratch)),
        )
        quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        try:
            # both the kernel and its client read the environment
            with mock.patch.dict(os.environ, _environment(Path(scratch), quick=quick)):
                client.execute(**quiet)
        except CellTimeoutError:
            message = f"took longer than {cell_seconds:g} seconds"
            fatal = [CellError(started[-1], "Timeout", message, "")]
        except DeadKernelError:
            fatal = [CellError(started[-1], "KernelDied", "the kernel died", "")]
        except (RuntimeError, NoSuchKernel) as error:
            raise KitError(
                f"the Jupyter kernel could not run the notebook: {error}"
            ) from error
    errors = []
    for index, cell in enumerate(loaded.cells):
        for output in cell.get("outputs", []):
            if output.output_type == "error" and all(
                index != error.cell for error in fatal
            ):
                traceback = _COLOUR.sub("", "\n".join(output.traceback))
                errors.append(CellError(index, output.ename, output.evalue, traceback))
    return NotebookRun(loaded, (*errors, *fatal))


def _sockets_in(scratch: Path) -> Any:
    """Settings for a kernel that talks through sockets in `scratch`. Ports are chosen before the
    kernel takes them, and of several kernels that start at once one can take another's and die.
    They remain where the folder's path is too long for a socket's.
    """
    from traitlets.config import Config

    settings = Config()
    path = str(scratch / "kernel")
    if len(path) < _LONGEST_SOCKET_PATH:
        settings.KernelManager.transport = "ipc"
        settings.KernelManager.ip = path
    return settings


def _environment(scratch: Path, *, quick: bool) -> dict[str, str]:
    """Jupyter's and IPython's folders in `scratch`, and variables that keep a run short."""
    environment = {
        "IPYTHONDIR": str(scratch / "ipython"),
        "JUPYTER_CONFIG_DIR": str(scratch / "config"),
        "JUPYTER_RUNTIME_DIR": str(scratch / "runtime"),
        "JUPYTER_PLATFORM_DIRS": "1",
        # notebooks are checked on every core at once, so further threads would only compete
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    if quick:
        # with this variable a cell that trains for minutes takes a few steps, and loads nothing
        # from a network
        environment["ATTENTION_KIT_QUICK"] = "1"
    return environment
