"""Run a notebook top to bottom in a real Jupyter kernel, quietly, and say which cells raised.

What the kernel prints is kept away from the terminal, and what it writes goes to a temporary folder
instead of the user's home.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from autograder.basics.errors import KitError

CELL_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class CellError:
    """What one cell raised.

    Attributes:
        cell: its index in the notebook, from 0.
        name: the exception's class, or "Timeout" or "KernelDied", which end the run.
        message: the exception's text.
        traceback: as the notebook shows it, without colours; wrapped exceptions stand in it.
    """

    cell: int
    name: str
    message: str
    traceback: str


def execute_notebook(
    notebook: bytes, files: Iterable[tuple[str, bytes]], cell_seconds: float = CELL_SECONDS
) -> tuple[CellError, ...]:
    """Run every cell, going on after errors; returns the errors.

    Args:
        notebook: the notebook's JSON.
        files: (relative path, content) of what lies beside it.
        cell_seconds: wall time that one cell may take.

    Raises:
        KitError: no kernel could be started.
    """
    import nbformat
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient import NotebookClient
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    loaded = nbformat.reads(notebook.decode(), as_version=4)
    started: list[int] = []
    stopped: list[CellError] = []
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
        )
        quiet = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
        try:
            # the kernel and its client read it
            with mock.patch.dict(os.environ, _environment(Path(scratch))):
                client.execute(**quiet)
        except CellTimeoutError:
            stopped = [
                CellError(started[-1], "Timeout", f"took longer than {cell_seconds:g} seconds", "")
            ]
        except DeadKernelError:
            stopped = [
                CellError(started[-1] if started else 0, "KernelDied", "the kernel died", "")
            ]
        except (RuntimeError, NoSuchKernel) as error:
            raise KitError(f"the Jupyter kernel could not run the notebook: {error}") from error
    errors = [
        CellError(index, output.ename, output.evalue, _plain("\n".join(output.traceback)))
        for index, cell in enumerate(loaded.cells)
        for output in cell.get("outputs", [])
        if output.output_type == "error" and not any(index == stop.cell for stop in stopped)
    ]
    return (*errors, *stopped)


def _environment(scratch: Path) -> dict[str, str]:
    """Jupyter's and IPython's folders in `scratch`, and what keeps a run short."""
    return {
        "IPYTHONDIR": str(scratch / "ipython"),
        "JUPYTER_CONFIG_DIR": str(scratch / "config"),
        "JUPYTER_RUNTIME_DIR": str(scratch / "runtime"),
        "JUPYTER_PLATFORM_DIRS": "1",
        # a cell that trains for minutes takes a few steps where it finds this, and loads nothing
        # from a network
        "ATTENTION_KIT_QUICK": "1",
        # notebooks are checked on every core at once: two threads each would stand in each other's
        # way
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def _plain(text: str) -> str:
    """The text without terminal colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
