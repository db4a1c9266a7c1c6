"""Notebooks in a real Jupyter kernel. Every test starts one or two, which takes seconds: keep them
few.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from tiny_course import TINY

from autograder.authoring.build import BuiltNotebooks, build_assignment, write_build
from autograder.authoring.build_check import check_assignment, run_problems
from autograder.authoring.execute import execute_notebook, run_notebook
from autograder.course import Assignment, Course
from autograder.suite.collection import SuiteQuestion


def build(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion], text: str
) -> BuiltNotebooks:
    tiny.source.write_text(text, encoding="utf-8")
    return build_assignment(course, tiny, questions)


def test_a_sound_assignment_runs_quietly_and_leaves_no_trace(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    data = tiny.source.parent / "data"
    data.mkdir()
    (data / "numbers.csv").write_text("1,2")
    reads = (
        'assert open("data/numbers.csv").read() == "1,2"\nprint("noise")\nopen("made.txt", '
        '"w").close()\n'
    )
    after = '\n# %% demo="after"\nprint(shown)\n'
    built = build(
        course,
        tiny,
        questions,
        TINY.replace("import math\n", f"import math\n{reads}") + after,
    )
    write_build(tiny, built)
    before = sorted(course.root.rglob("*"))
    assert check_assignment(course, tiny, questions) == built
    assert sorted(course.root.rglob("*")) == before
    assert list(home.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_every_cell_that_fails_by_itself_is_named(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    text = TINY.replace("import math\n", "import math\nimport no_such_module\n")
    text += (
        '\n# %% demo="typo"\nprint(shwon)\n\n# %% demo="wrapped"\ntry:\n    half(1)\n'
    )
    text += 'except NotImplementedError as e:\n    raise RuntimeError("the kernel failed") from e\n'
    text += '\n# %% given="table"\nTABLE = [double(i) for i in range(3)]\n'
    built = build(course, tiny, questions, text)
    assert run_problems(
        "the release", built.release_bytes, built, 60.0, stubs=True
    ) == [
        "the release does not run: cell 2, given 'imports': ModuleNotFoundError: No module named "
        "'no_such_module'",
        "the release does not run: cell 10, demo 'typo': NameError: name 'shwon' is not defined",
        "the release does not run: cell 12, given 'table': NotImplementedError: double: write "
        "your answer here",
    ]


def test_a_cell_that_takes_too_long_ends_the_run(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    built = build(
        course,
        tiny,
        questions,
        TINY.replace("shown = half(double(5))", "import time\ntime.sleep(600)"),
    )
    (error,) = execute_notebook(built.solution_bytes, built.files, cell_seconds=4.0)
    assert (error.cell, error.name, error.message) == (
        7,
        "Timeout",
        "took longer than 4 seconds",
    )


def test_a_kernel_that_dies_ends_the_run(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    built = build(
        course,
        tiny,
        questions,
        TINY.replace("shown = half(double(5))", "import os\nos._exit(1)"),
    )
    (error,) = execute_notebook(built.solution_bytes, built.files)
    assert (error.cell, error.name, error.message) == (
        7,
        "KernelDied",
        "the kernel died",
    )


def test_kernels_take_no_ports_that_others_could_take() -> None:
    """Two kernels that start at once would choose one port now and then, and one of them die."""
    cells = [
        new_code_cell("import ipykernel, json"),
        new_code_cell(
            "print(json.load(open(ipykernel.get_connection_file()))['transport'])"
        ),
    ]
    notebook = nbformat.writes(new_notebook(cells=cells)).encode()
    run = run_notebook(notebook, (), 60.0)
    assert run.errors == ()
    assert [output.text for output in run.notebook.cells[1].outputs] == ["ipc\n"]
