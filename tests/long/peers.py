"""Commands of other graders, nbgrader and otter-grader, in the environment that holds them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def has(python: str, module: str) -> bool:
    """Whether this Python can import a module."""
    return (
        subprocess.run(
            [python, "-c", f"import {module}"], capture_output=True
        ).returncode
        == 0
    )


def checked(command: Sequence[str], **options: Any) -> None:
    """Run a command; its last lines are raised where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")


def peer_environment(python: str) -> dict[str, str]:
    """This environment's variables for a peer: its own programs come first, one thread."""
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "PATH": path, "OMP_NUM_THREADS": "1"}
