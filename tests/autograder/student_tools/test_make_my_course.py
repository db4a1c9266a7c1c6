"""`make_my_course.py`: a student's own earlier answers as a module."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.student_tools import make_my_course

FIRST = [
    (
        "given",
        "library",
        "import math\nSCALE = 3\nWORDS = ['one']\n\ndef given_here(x):\n    return math.floor(x)\n",
    ),
    (
        "question",
        "scaled",
        "%matplotlib inline\ndef scaled(x, times=1):\n    return given_here(_helper(x) * times)\n",
    ),
    (
        "",
        "",
        "class Box:\n    def __init__(self, x):\n        self.x = x\n\ndef _helper(x): return "
        "Box(x).x * SCALE\n",
    ),
    ("check", "scaled", "raise RuntimeError('a check')\n"),
    ("demo", "show", "WORDS = open('not there')\n"),
    ("question", "both", "def both(x, y):\n    return [scaled(x), y, WORDS]\n"),
    ("", "", "experiment = both(1, 2)[7]  # fails, and nobody needs it\n"),
    (
        "question",
        "later",
        'def later(x):\n    raise NotImplementedError("later: write your answer here")\n',
    ),
]
SECOND = [
    (
        "given",
        "library",
        "def scaled(x):\n    return 0\n\ndef both(x): return 0\n\ndef absent(x):\n    return 5\n",
    ),
    ("", "", "from my_course import scaled, absent\n"),
    ("", "", "from math import *; from my_course import *\n"),
    ("question", "again", "def again(x):\n    return scaled(x), absent(x), floor(x)\n"),
    ("question", "given_here", "def given_here(x):\n    return 'the second'\n"),
]
"""What these notebooks give is of other arguments, in part; `given_here` is a name that the first
one has too.
"""

Cells = list[tuple[str, str, str]]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def write_(name: str, cells: Cells, *, metadata: bool = True) -> str:
        made: list[dict[str, Any]] = [
            {
                "cell_type": "code",
                "metadata": {"attention_kit": {"role": role, "name": given}}
                if metadata and role
                else {},
                "source": source,
            }
            for role, given, source in cells
        ]
        path = tmp_path / name
        path.write_text(
            json.dumps(
                {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
            )
        )
        return str(path)

    return write_


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The release in which a student works."""
    made = tmp_path / "release"
    made.mkdir()
    return made


def python(folder: Path, code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def test_functions_come_with_what_they_need_and_each_keeps_to_its_notebook(
    folder: Path, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        make_my_course.main(
            [write("first.ipynb", FIRST), write("second.ipynb", SECOND)],
            folder / "make_my_course.py",
        )
        == 0
    )
    assert capsys.readouterr().out.split("\n")[:2] == [
        "first.ipynb: scaled, both",
        "second.ipynb: again, given_here",
    ]
    code = "from my_course import *; print(scaled(1.5), both(2, 'y'), again(1), given_here(1))"
    assert python(folder, code) == "4 [6, 'y', ['one']] (3, 5, 1) the second\n"


def test_the_line_for_the_notebook_beside_it_has_what_fits(
    folder: Path, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    write("release/second.ipynb", SECOND)
    assert (
        make_my_course.main([write("first.ipynb", FIRST)], folder / "make_my_course.py")
        == 0
    )
    assert capsys.readouterr().out.split("\n")[1:] == [
        "",
        "second.ipynb: put this line into a cell of your own below the given code:",
        "",
        "    from my_course import scaled",
        "",
        "second.ipynb: both of first takes other arguments than the one given here: keep that",
        "",
    ]


@pytest.mark.parametrize(
    ("theirs", "yours", "fits"),
    [
        ("(x, dim=-1)", "(z, dim=-1)", True),
        ("(x)", "(z, dim=-1)", True),
        ("(x, theta)", "(x, theta=2.0)", True),
        ("(x, dim=-1)", "(x)", False),
        ("(x, mask=None)", "(x, window=None)", False),
        ("(x, mask=None)", "(x, window=None, mask=None)", False),
        ("(x, *, mask=None)", "(x, mask=None)", True),
        ("(x)", "(x, y)", False),
        ("(x)", "(x, *, mask)", False),
    ],
)
def test_what_fits(theirs: str, yours: str, fits: bool) -> None:
    one, other = (ast.parse(f"def f{text}: pass").body[0] for text in (theirs, yours))
    assert make_my_course._fits(one, other) is fits


def test_without_metadata_a_name_is_the_first_notebooks(
    folder: Path, write: Callable[..., str]
) -> None:
    first = [cell for cell in FIRST if cell[0] in ("given", "question")] + [FIRST[2]]
    paths = [
        write("first.ipynb", first, metadata=False),
        write("second.ipynb", SECOND, metadata=False),
    ]
    assert make_my_course.main(paths, folder / "make_my_course.py") == 0
    assert (
        python(
            folder,
            "from my_course import scaled, given_here; print(scaled(1.5), given_here(2.5))",
        )
        == "4 2\n"
    )


def test_made_again_it_is_replaced_and_what_is_another_s_stays(
    folder: Path, write: Callable[..., str]
) -> None:
    paths = [write("first.ipynb", FIRST), write("second.ipynb", SECOND)]
    assert make_my_course.main(paths, folder / "make_my_course.py") == 0
    assert make_my_course.main(paths[:1], folder / "make_my_course.py") == 0
    assert sorted(path.name for path in (folder / "my_course").glob("*.py")) == [
        "__init__.py",
        "first.py",
    ]
    (folder / "my_course" / "__init__.py").write_text("mine = 1\n")
    assert make_my_course.main(paths, folder / "make_my_course.py") == 2
    assert (folder / "my_course" / "__init__.py").read_text() == "mine = 1\n"


def test_a_cell_that_is_not_python_is_left_out_and_named(
    folder: Path, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        make_my_course.main(
            [write("first.ipynb", [*FIRST, ("", "", "def half(")])],
            folder / "make_my_course.py",
        )
        == 0
    )
    said = capsys.readouterr().out
    assert said.startswith(
        "first.ipynb: cell 9 (def half() is left out, '(' was never closed in line 1\n"
    )


def test_a_notebook_that_does_not_import_is_left_out_and_named(
    folder: Path, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    broken = [
        ("given", "library", "import no_such_library\n"),
        ("question", "f", "def f():\n    no_such_library.g()\n"),
    ]
    assert (
        make_my_course.main(
            [write("broken.ipynb", broken), write("first.ipynb", FIRST)],
            folder / "make_my_course.py",
        )
        == 0
    )
    assert capsys.readouterr().out.split("\n")[2] == (
        "broken.ipynb: left out, since what is needed of it does not run: ModuleNotFoundError: "
        "No module named "
        "'no_such_library'"
    )
    assert python(folder, "from my_course import scaled; print(scaled(1.5))") == "4\n"


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ([], "python make_my_course.py NOTEBOOK..., in the order of the course"),
        (["none.ipynb"], "there is no such file"),
        (["first (1).ipynb"], "name it as it was given out: it is a module"),
    ],
)
def test_a_wrong_call(
    folder: Path,
    write: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
    names: list[str],
    problem: str,
) -> None:
    write("first (1).ipynb", FIRST)
    assert (
        make_my_course.main(
            [str(folder.parent / name) for name in names], folder / "make_my_course.py"
        )
        == 2
    )
    assert problem in capsys.readouterr().err


def test_where_nothing_is_written_nothing_is_made(
    folder: Path, write: Callable[..., str]
) -> None:
    assert (
        make_my_course.main(
            [write("first.ipynb", FIRST[-1:])], folder / "make_my_course.py"
        )
        == 1
    )
    assert not (folder / "my_course").exists()


def test_modules_beside_a_notebook_come_along(
    folder: Path, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    """`first` takes a function from a module beside it. The module `second_library` gives the
    function that the student wrote in `first`, and one that calls it.
    """
    first = [
        ("given", "library", "from first_library import tripled\n"),
        ("question", "nine", "def nine(x):\n    return tripled(tripled(x))\n"),
    ]
    Path(write("first.ipynb", first)).with_name("first_library.py").write_text(
        "import math\n\ndef tripled(x):\n    return 3 * math.floor(x)\n"
    )
    given = "from second_library import nine, ten, half\n"
    write("release/second.ipynb", [("given", "library", given)])
    (folder / "second_library.py").write_text(
        "def nine(x):\n    return 0\n\ndef ten(x):\n    return nine(x) + x\n\n"
        "def half(x):\n    return x / 2\n"
    )
    path = folder.parent / "first.ipynb"
    assert make_my_course.main([str(path)], folder / "make_my_course.py") == 0
    line = "from my_course.second_library import nine, ten"
    assert f"    {line}\n" in capsys.readouterr().out
    assert python(folder, f"{line}; print(nine(2.5), ten(1))") == "18 10\n"
