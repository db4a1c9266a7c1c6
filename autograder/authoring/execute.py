"""Run a notebook top to bottom in a real Jupyter kernel, quietly, and say which cells raised.

The kernel and its client live in a process of their own (`python -m autograder.authoring.execute`): what they print
is kept away from the terminal, and what they write goes to a temporary folder instead of the user's home.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import KitError

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
    with tempfile.TemporaryDirectory(prefix="autograder-kernel-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch) / "notebook"
        folder.mkdir()
        for name, content in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        path, report = Path(scratch) / "notebook.ipynb", Path(scratch) / "report.json"
        path.write_bytes(notebook)
        finished = subprocess.run(
            [sys.executable, "-m", __name__, str(path), str(folder), str(report), str(cell_seconds)],
            env=_environment(Path(scratch)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if finished.returncode != 0 or not report.exists():
            raise KitError(f"the Jupyter kernel could not run the notebook:\n{finished.stderr.strip()[-2000:]}")
        return tuple(CellError(**error) for error in json.loads(report.read_text(encoding="utf-8")))


def _environment(scratch: Path) -> dict[str, str]:
    """This process's environment, with Jupyter's and IPython's folders in `scratch`."""
    package_parent = str(Path(__file__).parents[2])
    paths = [package_parent, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "IPYTHONDIR": str(scratch / "ipython"),
        "JUPYTER_CONFIG_DIR": str(scratch / "config"),
        "JUPYTER_RUNTIME_DIR": str(scratch / "runtime"),
        "JUPYTER_PLATFORM_DIRS": "1",
        # a cell that trains for minutes takes a few steps where it finds this, and loads nothing from a network
        "ATTENTION_KIT_QUICK": "1",
        # notebooks are checked on every core at once: two threads each would stand in each other's way
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def _run(notebook: Path, folder: Path, report: Path, cell_seconds: float) -> None:
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    started: list[int] = []
    loaded = nbformat.read(notebook, as_version=4)
    client = NotebookClient(
        loaded,
        timeout=cell_seconds,
        kernel_name="python3",
        allow_errors=True,
        on_cell_execute=lambda cell, cell_index: started.append(cell_index),
        resources={"metadata": {"path": str(folder)}},
    )
    stopped: list[CellError] = []
    try:
        client.execute()
    except CellTimeoutError:
        stopped = [CellError(started[-1], "Timeout", f"took longer than {cell_seconds:g} seconds", "")]
    except DeadKernelError:
        stopped = [CellError(started[-1] if started else 0, "KernelDied", "the kernel died", "")]
    errors = [
        CellError(index, output.ename, output.evalue, _plain("\n".join(output.traceback)))
        for index, cell in enumerate(loaded.cells)
        for output in cell.get("outputs", [])
        if output.output_type == "error" and not any(index == stop.cell for stop in stopped)
    ]
    report.write_text(json.dumps([dataclasses.asdict(error) for error in (*errors, *stopped)]), encoding="utf-8")


def _plain(text: str) -> str:
    """The text without terminal colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


if __name__ == "__main__":
    _run(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4]))
