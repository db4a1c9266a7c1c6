"""`check.py` as students get it: what it says of a notebook, and with which status it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from autograder.authoring.build import build_assignment, write_build
from autograder.authoring.student_package import write_release
from autograder.course import Assignment, Course
from autograder.student_tools import self_check
from autograder.suite.collection import SuiteQuestion

Cells = list[dict[str, Any]]
IMPORTS, DOUBLE, CHECK_1, CHECK_2, HALF, DEMO, WHY = 1, 2, 3, 4, 5, 7, 8


@pytest.fixture
def folder(
    course: Course,
    tiny: Assignment,
    questions: Mapping[str, SuiteQuestion],
    tmp_path: Path,
) -> Path:
    """The release, with all questions answered."""
    built = build_assignment(course, tiny, questions)
    write_build(tiny, built)
    to = tmp_path / "release"
    write_release(course, tiny, questions, to)
    notebook = json.loads(built.solution_bytes)
    notebook["cells"] = [
        cell for cell in notebook["cells"] if not cell["id"].startswith("guide")
    ]
    (to / "tiny.ipynb").write_text(json.dumps(notebook))
    return to


@pytest.fixture
def edit(folder: Path) -> Callable[[Callable[[Cells], object]], None]:
    def edit_(change: Callable[[Cells], object]) -> None:
        path = folder / "tiny.ipynb"
        notebook = json.loads(path.read_text())
        change(notebook["cells"])
        path.write_text(json.dumps(notebook))

    return edit_


@pytest.fixture
def looked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """What it says of a file, without running it; the status must be 1, and 0 for "Ready"."""
    monkeypatch.setattr(self_check, "run_steps", lambda *arguments: iter(()))

    def look(name: str = "tiny.ipynb") -> str:
        status = self_check.main([str(folder / name)], folder / "check.py")
        said = capsys.readouterr().out
        assert status == (0 if "Ready to be handed in." in said else 1)
        return said

    return look


def to_do(said: str) -> list[str]:
    return re.findall(
        r"^  - (.*)", said.partition("To do:")[2].partition("Notes")[0], re.MULTILINE
    )


def notes(said: str) -> list[str]:
    return re.findall(r"^  - (.*)", said.partition("cost nothing:")[2], re.MULTILINE)


def code(source: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": "own",
        "metadata": {},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # without site-packages: the kit is not there
    command = [sys.executable, "-S", "check.py", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )


# Its cells run


def test_an_answered_notebook_is_ready_and_stays_as_it_is(folder: Path) -> None:
    before = (folder / "tiny.ipynb").read_bytes()
    done = run(folder, "tiny.ipynb")
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.split("\n")[2:] == [
        "  double                       passes",
        "  double                       passes",
        "  half                         has no visible check",
        "",
        "2 of 2 visible checks pass. They are a first test: hidden tests run when it is graded.",
        "",
        "Ready to be handed in.",
        "",
    ]
    assert (folder / "tiny.ipynb").read_bytes() == before


def test_what_does_not_run_is_said_with_its_place(
    folder: Path, edit: Callable[..., None]
) -> None:
    def change(cells: Cells) -> None:
        cells[DOUBLE]["source"] = "def double(x):\n    return abs(x) * 2"
        cells[DEMO]["source"] = "1 / 0  # a demo: it does not run"
        cells.append(code("deleted_long_ago + 1"))

    edit(change)
    done = run(folder, "tiny.ipynb")
    assert done.returncode == 1
    assert (
        "  double                       passes\n  double                       AssertionError\n"
        in done.stdout
    )
    assert "1 of 2 visible checks pass." in done.stdout
    assert to_do(done.stdout) == [
        "double: its check in cell 5 (assert double(-1.5) == -3.0) does not pass",
        "cell 10 (deleted_long_ago + 1), one of your own, does not run: NameError: name "
        "'deleted_long_ago' is not "
        "defined",
    ]


def test_it_runs_in_an_empty_folder_as_grading_does(
    folder: Path, edit: Callable[..., None]
) -> None:
    """What lies beside the notebook is not handed in; no process is started, and there is no
    network.
    """
    (folder / "helpers.py").write_text("scale = 2")
    (folder / "numbers.csv").write_text("1,2")
    own = [
        "from helpers import scale",
        "open('numbers.csv')",
        f"open({str(folder / 'numbers.csv')!r})",
        "import subprocess\nsubprocess.run(['true'])",
        "import socket\nsocket.create_connection(('192.0.2.1', 9))",
        "exit()",
        "!pip install something\nimport math",
    ]
    edit(lambda cells: cells.extend(map(code, own)))
    said = run(folder, "tiny.ipynb").stdout
    by_its_whole_path = to_do(said).pop(2)
    assert by_its_whole_path.startswith(
        f"cell 12 ({own[2][:37]}...), one of your own, does not run: FileNotFoundError: "
    )
    assert "only the notebook is there when it is graded" in by_its_whole_path
    assert [line for line in to_do(said) if line != by_its_whole_path] == [
        "cell 10 (from helpers import scale), one of your own, does not run: "
        "ModuleNotFoundError: No module named "
        "'helpers'",
        "cell 11 (open('numbers.csv')), one of your own, does not run: FileNotFoundError: [Errno "
        "2] No such file or "
        "directory: 'numbers.csv'",
        "cell 13 (import subprocess), one of your own, does not run: PermissionError: [Errno 1] "
        "no process can be "
        "started when this is graded",
        "cell 14 (import socket), one of your own, does not run: PermissionError: [Errno 1] "
        "there is no network when "
        "this is graded",
        "cell 15 (exit()), one of your own, does not run: SystemExit: None",
    ]
    assert "2 of 2 visible checks pass." in said
    assert (
        "cell 16 (!pip install something): left out when grading: !pip (line 1)"
        in notes(said)
    )


def test_a_name_that_a_check_defines_is_seen_by_checks_alone(
    folder: Path, edit: Callable[..., None]
) -> None:
    """The check passes in the notebook: grading, which runs no check, has no `times_two`."""
    table = json.loads((folder / "tiny.cells.json").read_text())
    released = table["release"]["cells"]
    released[CHECK_1]["source"] = (
        "def times_two(x):\n    return 2 * x\nassert times_two(1) == 2"
    )
    released[CHECK_2]["source"] = "assert times_two(2) == 4\nassert double(3) == 6"
    table["only_in_checks"] = {"times_two": "the check of double"}
    (folder / "tiny.cells.json").write_text(json.dumps(table))
    edit(
        lambda cells: cells[DOUBLE].update(
            source="def double(x):\n    return times_two(x)"
        )
    )
    said = run(folder, "tiny.ipynb").stdout
    assert (
        "  double                       NameError: name 'times_two' is not defined\n"
        in said
    )
    assert "1 of 2 visible checks pass." in said
    assert to_do(said) == [
        "cell 3 (def double(x):) needs times_two, which only the check of double defines: checks "
        "and demos do not run "
        "in grading; define it in a cell of your own",
        "double: its check in cell 5 (assert double(-1.5) == -3.0) does not pass",
    ]


def test_a_cell_that_ends_python_or_takes_too_long_is_left_out_and_named(
    folder: Path, edit: Callable[..., None]
) -> None:
    """The others run again without it, as when they are graded; a check that never ran does not
    count as passed.
    """
    table = json.loads((folder / "tiny.cells.json").read_text())
    table["limits"]["cell_seconds"] = 0.5
    (folder / "tiny.cells.json").write_text(json.dumps(table))

    def change(cells: Cells) -> None:
        cells[HALF]["source"] = "while True:\n    pass"
        cells.insert(IMPORTS, code("import os\nos._exit(3)"))

    edit(change)
    said = run(folder, "tiny.ipynb").stdout
    assert to_do(said) == [
        "cell 2 (import os), one of your own, does not run: the process ended in it",
        "cell 7 (while True:), question half, does not run: it took longer than 0.5 s, the most "
        "when it is graded",
        "half: cell 7 (while True:) does not define half any more",
    ]
    assert "2 of 2 visible checks pass." in said


@pytest.mark.parametrize(
    "answer", ["mine = lambda x: x / 2\nhalf = mine", "half = lambda x: x / 2"]
)
def test_an_assigned_function_is_a_definition(
    folder: Path, edit: Callable[..., None], answer: str
) -> None:
    edit(lambda cells: cells[HALF].update(source=answer))
    assert to_do(run(folder, "tiny.ipynb").stdout) == []


def test_it_carries_the_grader_s_reader_and_nothing_that_is_hidden(
    folder: Path,
) -> None:
    text = (folder / "check.py").read_text()
    carried = re.findall("^#@ autograder[.](.*)", text, re.MULTILINE)
    assert carried == [
        "basics.definitions",
        "basics.errors",
        "basics.handed_in",
        "basics.points",
        "intake.cell_matching",
        "intake.cell_text",
        "intake.companion_files",
        "intake.magics",
        "intake.notebook",
        "intake.own_text",
        "intake.pictures",
        "intake.reading",
        "intake.released_notebook",
        "intake.written",
        "kernels",
        "records.submission",
        "student_tools.course_progress",
        "student_tools.notebook_run",
        "student_tools.release_table",
        "student_tools.self_check",
        "student_tools.submit",
        "worker.cell_runner",
        "worker.cells",
        "worker.companion_modules",
        "worker.notebook_world",
        "worker.stand_in_hooks",
    ]
    package = Path(self_check.__file__).parents[1]
    for name in carried:
        place = package / name.replace(".", "/")
        path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        lines = path.read_text().rstrip("\n").split("\n")
        assert (
            "\n".join(
                [f"#@ autograder.{name}", *(f"#| {line}".rstrip() for line in lines)]
            )
            in text
        )


# The cells


def test_a_notebook_as_released_says_what_is_to_be_written(
    folder: Path, tiny: Assignment, looked: Callable[..., str]
) -> None:
    (folder / "tiny.ipynb").write_bytes(tiny.release.read_bytes())
    assert to_do(looked()) == [
        "double: not written yet, in cell 3 (def double(x):)",
        "half: not written yet, in cell 6 (def half(x):)",
        "written answer why: nothing is written yet in cell 9 (Why is half(double(x)) "
        "the same as x?)",
    ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda cells: cells.pop(HALF),
            "half: no cell defines half; copy its cell from the released notebook and answer there",
        ),
        (
            lambda cells: cells[HALF].update(cell_type="markdown"),
            "half: this cell is a text cell now and does not run; make it a code cell",
        ),
        (
            lambda cells: cells[HALF]["source"].append("\n<<<<<<< HEAD\n"),
            "cell 6 (def half(x):): lines of a merge conflict (<<<<<<<, >>>>>>>): "
            "choose one version",
        ),
        (
            lambda cells: cells[WHY].update(
                source="Why is half(double(x)) the same as x?"
            ),
            "written answer why: nothing is written yet in cell 9 (Why is half(double(x)) "
            "the same as x?)",
        ),
        (
            lambda cells: cells.pop(WHY),
            "written answer why: its cell was not found; see that it stands below its question",
        ),
    ],
)
def test_what_is_missing_is_said(
    edit: Callable[..., None],
    looked: Callable[..., str],
    change: Callable[[Cells], object],
    problem: str,
) -> None:
    edit(change)
    assert to_do(looked()) == [problem]


BLANK = "Why is half(double(x)) the same as x?\n\n*Your answer here.*"
NOT_YET = "written answer why: nothing is written yet in cell {} (Why is half(double(x)) the same as x?)"


def own_text(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": "own", "metadata": {}, "source": source}


@pytest.mark.parametrize("place", [0, HALF, WHY])
def test_an_answer_in_words_above_its_prompt_is_to_be_moved(
    edit: Callable[..., None], looked: Callable[..., str], place: int
) -> None:
    def change(cells: Cells) -> None:
        cells[WHY]["source"] = BLANK
        cells.insert(place, own_text("It is the mean."))

    edit(change)
    where = f"cell {place + 1} (It is the mean.)"
    assert to_do(looked()) == [
        f"{NOT_YET.format(10)}; if your answer is {where}, move it there, or a person "
        "has to find it"
    ]


def test_an_answer_in_words_below_its_prompt_counts(
    edit: Callable[..., None], looked: Callable[..., str]
) -> None:
    def change(cells: Cells) -> None:
        cells[WHY]["source"] = BLANK
        cells.append(own_text("It is the mean."))

    edit(change)
    assert to_do(looked()) == []


def test_a_picture_is_an_answer(
    edit: Callable[..., None], looked: Callable[..., str]
) -> None:
    picture = {"page.png": {"image/png": "iVBORw0KGgo="}}
    edit(lambda cells: cells[WHY].update(source=BLANK, attachments=picture))
    assert to_do(looked()) == []


@pytest.mark.parametrize(
    "answer", ["    return x / shown", "    return [shown for _ in range(x)]"]
)
def test_a_name_that_only_a_demo_or_check_defines_is_to_be_defined(
    edit: Callable[..., None], looked: Callable[..., str], answer: str
) -> None:
    edit(lambda cells: cells[HALF].update(source=f"def half(x):\n{answer}"))
    assert to_do(looked()) == [
        "cell 6 (def half(x):) needs shown, which only the demo both defines: checks and demos "
        "do not run in grading; "
        "define it in a cell of your own"
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "await half(2)\nis_two = 2 is 2\nshown = 3\ndef half(x):\n    return x / shown",
        "def half(shown):\n    return shown / 2",
        "shown = 2\ndef half(x):\n    return x / shown",
    ],
)
def test_a_name_of_ones_own_may_be_that_of_a_demos(
    edit: Callable[..., None], looked: Callable[..., str], answer: str
) -> None:
    edit(lambda cells: cells[HALF].update(source=answer))
    assert to_do(looked()) == []


def test_an_answer_in_another_cell_counts(
    edit: Callable[..., None], looked: Callable[..., str]
) -> None:
    def change(cells: Cells) -> None:
        cells.insert(HALF + 1, code("def half(x):\n    return x / 2"))
        cells[HALF]["source"] = (
            'def half(x):\n    raise NotImplementedError("half: write your answer here")'
        )

    edit(change)
    said = looked()
    assert to_do(said) == []
    assert "Ready to be handed in." in said


def test_what_costs_nothing_is_a_note(
    edit: Callable[..., None], looked: Callable[..., str]
) -> None:
    def change(cells: Cells) -> None:
        cells[IMPORTS]["source"] = "import math, cmath"
        cells.insert(HALF, dict(cells[HALF]))
        del cells[CHECK_2]

    edit(change)
    assert notes(looked()) == [
        "check_double: this check was deleted; grading does not need it",
        "half: there are several cells for half; the last one that defines the function was graded",
        "cell 2 (import math, cmath): you changed this locked cell; it ran as released",
        "extra-1: the imports and functions that you added to the locked cell given_imports",
    ]


def test_without_metadata_cells_are_known_by_what_stands_in_them(
    edit: Callable[..., None], looked: Callable[..., str]
) -> None:
    edit(
        lambda cells: [
            cell.update(metadata={}, id=f"a{n}") for n, cell in enumerate(cells)
        ]
    )
    said = looked()
    assert to_do(said) == []
    assert notes(said) == [
        "notebook: an editor dropped the labels of its cells: 3 cells were recognised by their "
        "content, which costs nothing"
    ]


# The file


def test_another_name_and_a_newer_copy(
    folder: Path, looked: Callable[..., str]
) -> None:
    text = (folder / "tiny.ipynb").read_text()
    (folder / "tiny (1).ipynb").write_text(text)
    os.utime(folder / "tiny.ipynb", (1, 1))
    assert to_do(looked()) == []  # newer, and the same
    (folder / "tiny (1).ipynb").write_text(text.replace("x + x", "2 * x"))
    newer = (
        "is newer than the file, and differs: save your work as tiny.ipynb, and remove "
        "what is not it"
    )
    assert to_do(looked()) == [f"tiny (1).ipynb {newer}"]
    assert to_do(looked("tiny (1).ipynb")) == [
        "the file is called tiny (1).ipynb: hand it in as tiny.ipynb"
    ]
    (folder / "tiny (1).ipynb").rename(folder / "kept")
    (folder / ".ipynb_checkpoints").mkdir()
    (folder / "kept").rename(folder / ".ipynb_checkpoints" / "tiny-checkpoint.ipynb")
    assert to_do(looked()) == [
        f"{Path('.ipynb_checkpoints') / 'tiny-checkpoint.ipynb'} {newer}"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '{"cells": [\n<<<<<<< HEAD\n>>>>>>> mine\n',
            "holds an unresolved merge conflict from line 2 on",
        ),
        ('{"cells": [', "is not a notebook (no valid JSON); open it in Jupyter"),
        ("[]", "is not a notebook (it has no cells); open it in Jupyter"),
        (
            '{"cells": []}',
            "has none of the assignment's cells; hand in the notebook of tiny",
        ),
    ],
)
def test_a_file_that_is_no_such_notebook(
    folder: Path, looked: Callable[..., str], text: str, problem: str
) -> None:
    (folder / "tiny.ipynb").write_text(text)
    assert f"Not ready: tiny.ipynb: {problem}" in looked()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "python check.py NOTEBOOK"),
        (["--help"], "python check.py NOTEBOOK"),
        (
            ["none.ipynb"],
            "none.ipynb: there is no such file. Notebooks here: tiny.ipynb",
        ),
    ],
)
def test_a_wrong_call(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    problem: str,
) -> None:
    monkeypatch.chdir(folder)
    assert self_check.main(arguments, folder / "check.py") == 2
    assert capsys.readouterr().err.startswith(problem)


@pytest.mark.parametrize("table", ["", "[]", '{"cells": [{}]}'])
def test_without_its_table_it_says_what_is_missing(
    folder: Path, capsys: pytest.CaptureFixture[str], table: str
) -> None:
    (folder / "tiny.cells.json").write_text(table)
    assert self_check.main([str(folder / "tiny.ipynb")], folder / "check.py") == 2
    assert capsys.readouterr().err.startswith(
        "no file *.cells.json lies beside check.py"
    )
