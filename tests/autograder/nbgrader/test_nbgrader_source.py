"""nbgrader's source folder: text sources are built, Jupyter sources go nbgrader's own way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient.exceptions import DeadKernelError
from nbgrader.converters import (
    Autograde,
    GenerateAssignment,
    GenerateFeedback,
    GenerateSolution,
)
from nbgrader.converters.base import NbGraderException
from nbgrader.preprocessors import Execute
from nbgrader_course import TinyCourse, cell, notebook, write
from tiny_course import suite_question

from autograder.authoring.build import build_assignment
from autograder.nbgrader import assignment_exporter
from autograder.nbgrader.gradebook import open_gradebook
from autograder.nbgrader.mirror import mirror

TEXT_SOURCE = '''# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Tiny
#
# ![a picture](figures/a.svg)

# %% question="double"
def double(x):
    """Twice x."""
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION


# %% check="double"
assert double(2) == 4
'''


def text_course(tiny: TinyCourse) -> None:
    folder = tiny.root / "source" / "tiny"
    (folder / "tiny.py").write_text(TEXT_SOURCE, encoding="utf-8")
    (folder / "figures").mkdir()
    (folder / "figures" / "a.svg").write_text("<svg/>", encoding="utf-8")
    (tiny.root / "tests" / "hidden" / "tiny" / "test_half.py").unlink()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_text_source_gives_the_bytes_of_the_build(
    tiny: TinyCourse, monkeypatch: pytest.MonkeyPatch
) -> None:
    text_course(tiny)
    monkeypatch.setattr(
        assignment_exporter,
        "suite_questions",
        lambda assignment: {"double": suite_question(3.0)},
    )
    tiny.convert(GenerateAssignment)
    tiny.convert(GenerateSolution)
    built = build_assignment(
        tiny.course, tiny.course.assignment("tiny"), {"double": suite_question(3.0)}
    )
    assert Path("assignments/tiny/tiny.ipynb").read_bytes() == built.release_bytes
    assert Path("solutions/tiny/tiny.ipynb").read_bytes() == built.solution_bytes
    assert b"return 2 * x" not in built.release_bytes
    files = [path for path in Path("assignments").rglob("*") if path.is_file()]
    assert sorted(path.as_posix() for path in files) == [
        "assignments/tiny/figures/a.svg",
        "assignments/tiny/tiny.ipynb",
    ]
    with open_gradebook(tiny.course) as gradebook:
        assert gradebook.find_assignment("tiny").max_score == 3.0
        assert gradebook.find_source_cell("check_double", "tiny", "tiny").locked


def test_the_mirror_holds_a_stand_in_and_what_is_shipped_but_no_answers(
    tiny: TinyCourse,
) -> None:
    text_course(tiny)
    mirror(tiny.course)
    mirror(tiny.course)
    files = sorted(
        path.relative_to("build/nbgrader").as_posix()
        for path in Path("build/nbgrader").rglob("*.*")
    )
    assert files == ["tiny/figures/a.svg", "tiny/tiny.ipynb"]
    assert "2 * x" not in Path("build/nbgrader/tiny/tiny.ipynb").read_text(
        encoding="utf-8"
    )
    assert (
        nbformat.read("build/nbgrader/tiny/tiny.ipynb", as_version=4)
        .cells[0]
        .source.startswith("This notebook")
    )

    Path("source/tiny/figures/a.svg").unlink()
    mirror(tiny.course)
    assert not Path("build/nbgrader/tiny/figures/a.svg").exists()
    Path("source/tiny/tiny.py").unlink()
    mirror(tiny.course)
    assert not Path("build/nbgrader/tiny").exists()


def test_a_jupyter_source_is_linked_and_a_new_one_is_moved_into_source(
    tiny: TinyCourse,
) -> None:
    write(tiny.root / "source" / "native" / "native.ipynb", notebook([]))
    # by the formgrader
    write(tiny.root / "build" / "nbgrader" / "made" / "made.ipynb", notebook([]))
    mirror(tiny.course)
    assert (
        Path("build/nbgrader/native").resolve()
        == tiny.root.resolve() / "source" / "native"
    )
    assert Path("source/made/made.ipynb").is_file()
    assert (
        Path("build/nbgrader/made").resolve() == tiny.root.resolve() / "source" / "made"
    )


@pytest.fixture
def native(tiny: TinyCourse, monkeypatch: pytest.MonkeyPatch) -> TinyCourse:
    """An assignment written in Jupyter with nbgrader's metadata, and without a hidden suite."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tiny.root.parent / "jupyter"))
    hidden = "assert square(2) == 4\n### BEGIN HIDDEN TESTS\nassert square(3) == 9\n### END HIDDEN TESTS"
    answer = (
        "def square(x):\n    ### BEGIN SOLUTION\n    return x * x\n    ### END SOLUTION"
    )
    cells = [
        cell("code", answer, "square", solution=True),
        cell("code", hidden, "test_square", grade=True, points=2),
        cell("code", "share", "test_share", grade=True, points=6),
    ]
    write(tiny.root / "source" / "native" / "native.ipynb", notebook(cells))
    return tiny


# nbgrader's own path: kernels, tornado and SQLAlchemy each have something to say
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_without_a_suite_goes_nbgraders_way(native: TinyCourse) -> None:
    native.convert(GenerateAssignment, "native")
    released = nbformat.read("assignments/native/native.ipynb", as_version=4)
    assert "return x * x" not in released.cells[0].source
    assert "square(3)" not in released.cells[1].source

    share = (
        "share = '5/6'\n"  # nbgrader takes a result that is no number for full marks
    )
    for student, answer in (
        ("ada", f"{share}def square(x):\n    return x * x"),
        ("ben", "def square(x):\n    return 4"),
    ):
        handed_in = nbformat.from_dict(json.loads(json.dumps(released)))
        handed_in.cells[0].source = answer
        write(
            native.root / "submitted" / student / "native" / "native.ipynb", handed_in
        )
    native.convert(Autograde, "native")
    grades = {}
    with open_gradebook(native.course) as gradebook:
        for student in ("ada", "ben"):
            rows = gradebook.find_submission_notebook(
                "native", "native", student
            ).grades
            grades[student] = {
                row.name: (row.auto_score, row.needs_manual_grade) for row in rows
            }
    assert grades == {
        "ada": {"test_square": (2.0, False), "test_share": (0.0, True)},
        "ben": {"test_square": (0.0, False), "test_share": (0.0, False)},
    }
    native.convert(GenerateFeedback, "native")
    page = Path("feedback/ben/native/native.html").read_text(encoding="utf-8")
    assert "square" in page
    assert "HIDDEN TESTS" not in page
    assert "9" not in page[page.index("a hidden test failed") - 200 :][:400]


@pytest.mark.filterwarnings("ignore")
def test_a_failure_while_nbgrader_runs_a_notebook_leaves_its_hidden_tests_in_the_database(
    native: TinyCourse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A submission that ends its kernel must not take the hidden tests of everybody after it
    along.
    """

    def die(*_: Any, **__: Any) -> None:
        raise DeadKernelError("Kernel died")

    native.convert(GenerateAssignment, "native")
    released = nbformat.read("assignments/native/native.ipynb", as_version=4)
    write(native.root / "submitted" / "ada" / "native" / "native.ipynb", released)
    monkeypatch.setattr(Execute, "preprocess", die)
    with pytest.raises(NbGraderException):
        native.convert(Autograde, "native")
    with open_gradebook(native.course) as gradebook:
        assert (
            "square(3)"
            in gradebook.find_source_cell("test_square", "native", "native").source
        )
        rows = gradebook.find_submission_notebook("native", "native", "ada").grades
        assert {(row.auto_score, row.needs_manual_grade) for row in rows} == {
            (0.0, True)
        }
