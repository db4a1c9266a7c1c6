"""The libraries that a host loads ahead: those that the assignment uses, and those that some
notebook names more often than the release does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import BadSuite
from autograder.course import Assignment, Limits
from autograder.grading import extras as extras_module
from autograder.grading.extras import (
    EXTRAS,
    _is_installed,
    _uses_torch,
    find_extras,
    needs_torch,
)
from autograder.records.submission import FoundSubmission

Find = Callable[..., tuple[str, ...]]


@pytest.fixture
def find(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Find:
    """The extras of an assignment with such cells, files and submissions."""

    def make(
        *submissions: str,
        cells: dict[str, str] | None = None,
        release: str = "",
        solution: str | None = None,
        companions: dict[str, str] | None = None,
        suite: dict[str, str] | None = None,
        with_torch: bool = True,
        limit: int = 1,
    ) -> tuple[str, ...]:
        folder = tmp_path / "suite"
        folder.mkdir(exist_ok=True)
        for name, text in (suite or {}).items():
            (folder / name).write_text(text, encoding="utf-8")
        (tmp_path / "release.ipynb").write_text(release, encoding="utf-8")
        key = tmp_path / "key.ipynb"
        key.unlink(missing_ok=True)
        if solution is not None:
            key.write_text(solution, encoding="utf-8")
        files = []
        for number, text in enumerate(submissions):
            path = tmp_path / f"{number}.ipynb"
            path.write_text(text, encoding="utf-8")
            files.append(FoundSubmission(str(number), path))
        released = [
            SimpleNamespace(role=role, source=source)
            for role, source in (cells or {}).items()
        ]
        monkeypatch.setattr(extras_module, "needs_torch", lambda assignment: with_torch)
        monkeypatch.setattr(
            extras_module,
            "load_release",
            lambda assignment: SimpleNamespace(
                cells=released, companions=companions or {}
            ),
        )
        assignment: Any = SimpleNamespace(
            suite=folder, release=tmp_path / "release.ipynb", solution=key
        )
        return find_extras(assignment, files, Limits(notebook_mb=limit))

    return make


def test_cells_that_run_and_known_answers_name_libraries(find: Find) -> None:
    assert find() == ("torch",)
    assert find(cells={"given": "import matplotlib"}) == ("matplotlib", "torch")
    assert find(cells={"question": "torch.optim.SGD"}) == ("dynamo", "torch")
    # a demo does not run
    assert find(cells={"demo": "import matplotlib"}) == ("torch",)
    assert find(companions={"p.py": "import triton"}) == ("torch", "triton")
    mistakes = {"mistakes.py": "torch.autograd.grad(y, x)"}
    assert find(suite=mistakes) == ("sympy", "torch")


def test_known_alternates_name_libraries(find: Find) -> None:
    assert find(suite={"alternates.py": "gradcheck(f, x)"}) == ("sympy", "torch")


def test_a_notebook_that_names_a_library_more_often_loads_it(find: Find) -> None:
    release = "matplotlib here"
    assert find("matplotlib", release=release) == ("torch",)
    assert find("", "matplotlib, matplotlib", release=release) == (
        "matplotlib",
        "torch",
    )
    assert find(release=release, solution="matplotlib matplotlib") == (
        "matplotlib",
        "torch",
    )
    assert find(release=release, solution="matplotlib") == ("torch",)


def test_a_notebook_that_cannot_be_read_names_nothing(find: Find) -> None:
    assert find("matplotlib" + " " * (1 << 20)) == ("torch",)
    assert find("matplotlib".ljust(1 << 20)) == ("matplotlib", "torch")


def test_parts_of_torch_come_with_torch_alone(find: Find) -> None:
    notebook = "triton matplotlib torch.optim."
    assert find(notebook, with_torch=False) == ("matplotlib",)
    assert find(notebook) == ("dynamo", "matplotlib", "torch", "triton")


def test_where_everything_is_loaded_anyway_no_more_notebooks_are_read(
    find: Find, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    read_handed_in = vars(extras_module)["read_handed_in"]

    def read_and_note(path: Path, limit: int) -> bytes:
        read.append(path.name)
        content: bytes = read_handed_in(path, limit)
        return content

    monkeypatch.setattr(extras_module, "read_handed_in", read_and_note)
    all_but_one = {"given": "triton torch.optim. y.backward(g)"}
    # a generator reads one notebook ahead of what is looked at
    assert len(find("matplotlib", "", "", cells=all_but_one)) == len(EXTRAS)
    assert read == ["0.ipynb", "1.ipynb"]


def test_torch_is_used_by_code_and_not_by_text(tmp_path: Path) -> None:
    def write(kind: str, source: str) -> Path:
        cell: dict[str, Any] = {"cell_type": kind, "source": source, "id": "a"}
        cell["metadata"] = {}
        if kind == "code":
            cell |= {"outputs": [], "execution_count": None}
        path = tmp_path / "key.ipynb"
        content = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    assert _uses_torch(write("code", "import torch"))
    assert not _uses_torch(write("code", "import numpy"))
    assert not _uses_torch(write("markdown", "import torch"))
    assert not _uses_torch(tmp_path / "none.py")


def test_a_suite_that_needs_torch_is_refused_where_torch_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assignment = Assignment("m1", tmp_path)
    assignment.suite.mkdir(parents=True)
    test = assignment.suite / "test_m1.py"
    test.write_text("import numpy\n", encoding="utf-8")
    monkeypatch.setattr(extras_module, "_is_installed", lambda library: False)
    assert not needs_torch(assignment)
    test.write_text("import torch\n", encoding="utf-8")
    with pytest.raises(BadSuite, match=r"test_m1\.py uses torch, and torch is not "):
        needs_torch(assignment)
    monkeypatch.setattr(extras_module, "_is_installed", lambda library: True)
    assert needs_torch(assignment)


def test_a_library_is_installed_where_python_finds_its_spec(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert _is_installed("json")
    assert not _is_installed("no_such_library")
    assert not _is_installed("no_such_library.part")
    monkeypatch.setitem(sys.modules, "half_loaded", ModuleType("half_loaded"))
    assert not _is_installed("half_loaded")  # without a spec
