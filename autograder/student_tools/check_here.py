"""`check()`: asks `check.py` from inside a notebook, also where there is no file to point at."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autograder.student_tools.check_box import running_notebook
from autograder.student_tools.notebook_facts import FACTS

_TABLE_SUFFIX = ".cells.json"


def check(notebook: str = "") -> None:
    """Say whether this notebook is ready to be handed in, as `python check.py NOTEBOOK` does.

    Save first. On Colab the notebook is asked for as it is. Where its file cannot be found, what
    you have run so far is looked at, and answers in words are not seen.

    Args:
        notebook: the notebook's file, where it is not found by itself.
    """
    program = Path.cwd() / "check.py"
    if not program.is_file():
        print("check.py is not here: put it beside the notebook, as it was given out")
        return
    with _notebook_file(notebook, Path.cwd()) as path:
        done = subprocess.run(
            [sys.executable, str(program), str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
    print(done.stdout + done.stderr)


@contextlib.contextmanager
def _notebook_file(named: str, folder: Path) -> Iterator[Path]:
    """The file of this notebook; where it has none, a temporary one."""
    file = Path(named) if named else _find_file(folder)
    if file is not None:
        yield file
        return
    content = _ask_colab() or _from_history(folder)
    with tempfile.TemporaryDirectory(prefix="check-") as scratch:
        path = Path(scratch) / f"{FACTS['assignment']}.ipynb"
        path.write_text(json.dumps(content), encoding="utf-8")
        yield path


def _find_file(folder: Path) -> Path | None:
    """The notebook's file, by what Jupyter or VS Code says, else by its name."""
    if "google.colab" in sys.modules:
        return None
    shell = running_notebook()
    names = shell.user_ns if shell else {}
    told = (os.environ.get("JPY_SESSION_NAME"), names.get("__vsc_ipynb_file__"))
    for path in (*told, folder / f"{FACTS['assignment']}.ipynb"):
        if path and Path(path).is_file():
            return Path(path)
    return None


def _ask_colab() -> Any:
    """The notebook as Colab has it, saved or not; None elsewhere."""
    if "google.colab" not in sys.modules:
        return None
    message = importlib.import_module("google.colab._message")
    answer = message.blocking_request("get_ipynb", request="", timeout_sec=60)
    return answer["ipynb"]


def _from_history(folder: Path) -> dict[str, Any]:
    """A notebook of the released cells, with what ran in this session in place of the answers."""
    table = json.loads(
        (folder / f"{FACTS['assignment']}{_TABLE_SUFFIX}").read_text("utf-8")
    )
    release: dict[str, Any] = table["release"]
    shell = running_notebook()
    history = list(shell.user_ns.get("In", [])) if shell else []
    print("The notebook's file is not here: this looks at what has run so far.\n")
    return {**release, "cells": list(_answered(release["cells"], history))}


def _answered(
    cells: Sequence[Mapping[str, Any]], history: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The released cells; a question's has the text that last defined its function."""
    for cell in cells:
        kit = cell["metadata"].get("attention_kit", {})
        source = "".join(cell["source"])
        if kit.get("role") == "question":
            name = kit["name"]
            marks = (f"def {name}(", f"class {name}", f"{name} = ")
            ran = [
                text
                for text in history
                if text.startswith(marks) or f"\n{marks[0]}" in text
            ]
            source = ran[-1] if ran else source
        yield {**cell, "source": source}
