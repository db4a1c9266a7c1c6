"""An `.ipynb` source with nbgrader's metadata gives the same records as a text source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.authoring.source_notebook import SourceNotebook, read_source
from autograder.basics.errors import BadSource
from autograder.course import Assignment

ANSWER = "def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION"
Cell = dict[str, Any]


def marked(make: Callable[..., Cell], source: str, **settings: object) -> Cell:
    defaults = {
        "grade": False,
        "solution": False,
        "locked": False,
        "task": False,
        "schema_version": 3,
    }
    return make(source, metadata={"nbgrader": {**defaults, **settings}})


def question(name: str = "f", source: str = ANSWER) -> Cell:
    return marked(new_code_cell, source, solution=True, grade_id=name)


def read(tiny: Assignment, *cells: Cell) -> SourceNotebook:
    tiny.source.unlink(missing_ok=True)
    path = tiny.source.with_suffix(".ipynb")
    path.write_text(nbformat.writes(new_notebook(cells=list(cells))), encoding="utf-8")
    return read_source(tiny)


def kinds(notebook: SourceNotebook) -> list[tuple[str, str]]:
    return [(cell.kind, cell.name) for cell in notebook.cells]


def test_nbgrader_kinds_become_ours(tiny: Assignment) -> None:
    notebook = read(
        tiny,
        new_markdown_cell("# Title"),
        marked(new_code_cell, "import math", locked=True, grade_id="imports"),
        question(),
        marked(
            new_code_cell,
            "assert f(1) == 1",
            grade=True,
            locked=True,
            points=2,
            grade_id="test_f",
        ),
        marked(new_markdown_cell, "Read on.", locked=True, grade_id="note"),
        marked(
            new_markdown_cell,
            "Why?\n### BEGIN SOLUTION\nSo.\n### END SOLUTION",
            grade=True,
            solution=True,
            points=5,
            grade_id="why",
        ),
    )
    assert kinds(notebook) == [
        ("text", ""),
        ("given", "imports"),
        ("question", "f"),
        ("check", "f"),
        ("text", ""),
        ("written", "why"),
    ]
    assert notebook.cells[-1].points == 5.0
    assert notebook.cells[2].place == "source/tiny/tiny.ipynb, cell 3"


@pytest.mark.parametrize(
    "grade_id", ["test_f", "check_f", "check_f_2", "test_f1", "correct_answer"]
)
def test_a_test_cell_belongs_to_the_question_it_names_or_the_one_above(
    tiny: Assignment, grade_id: str
) -> None:
    test = marked(
        new_code_cell, "f(1)", grade=True, locked=True, points=1, grade_id=grade_id
    )
    assert kinds(
        read(tiny, question("g", ANSWER.replace("f(", "g(")), question(), test)
    )[-1] == (
        "check",
        "f",
    )


def test_the_name_counts_more_than_the_place(tiny: Assignment) -> None:
    test = marked(
        new_code_cell, "g(1)", grade=True, locked=True, points=1, grade_id="test_g"
    )
    assert kinds(
        read(tiny, question("g", ANSWER.replace("f(", "g(")), question(), test)
    )[-1] == (
        "check",
        "g",
    )


def test_the_names_that_build_gives_are_read_back(tiny: Assignment) -> None:
    notebook = read(
        tiny,
        marked(new_code_cell, "import math", locked=True, grade_id="given_library"),
        question(),
        marked(new_code_cell, "f(1)", locked=True, grade_id="check_f_1"),
        marked(
            new_code_cell, "f(2)", locked=True, grade=True, points=1, grade_id="check_f"
        ),
        marked(
            new_markdown_cell,
            "Model answer.",
            grade=True,
            solution=True,
            points=5,
            grade_id="written_why",
        ),
    )
    assert kinds(notebook) == [
        ("given", "library"),
        ("question", "f"),
        ("check", "f"),
        ("check", "f"),
        ("written", "why"),
    ]


def test_an_answer_in_words_without_markers_is_all_answer(tiny: Assignment) -> None:
    written = marked(
        new_markdown_cell,
        "Because.",
        grade=True,
        solution=True,
        points=5,
        grade_id="why",
    )
    assert (
        read(tiny, question(), written).cells[1].source
        == "### BEGIN SOLUTION\nBecause.\n### END SOLUTION"
    )


def test_nbgraders_looser_markers_are_understood(tiny: Assignment) -> None:
    source = "def f(x):\n    # BEGIN SOLUTION\n    return x\n    # END SOLUTION"
    assert read(tiny, question(source=source)).cells[0].source == ANSWER


def test_unmarked_code_is_given_where_it_only_imports_and_defines(
    tiny: Assignment,
) -> None:
    notebook = read(
        tiny,
        new_code_cell(
            "%matplotlib inline\nimport math\n\ndef twice(x):\n    return 2 * x"
        ),
        question(),
        new_code_cell("print(f(1))"),
        new_code_cell(""),
    )
    assert kinds(notebook) == [
        ("given", "cell_1"),
        ("question", "f"),
        ("demo", "cell_3"),
    ]


def test_tags_of_the_text_form_count_first(tiny: Assignment) -> None:
    tagged = new_code_cell("import math", metadata={"demo": "shown", "collapsed": True})
    assert kinds(read(tiny, question(), tagged))[1] == ("demo", "shown")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (
            question("cell-1a2b"),
            "the grade_id 'cell-1a2b' is not a name; give the cell an ID that is a Python "
            "identifier, "
            "for a question its function's name",
        ),
        (
            marked(
                new_code_cell, ANSWER, solution=True, grade=True, points=1, grade_id="f"
            ),
            "'f' is code graded by a person; make it an autograded answer with a hidden test, "
            "or a manually graded markdown cell",
        ),
        (
            marked(new_markdown_cell, "Do it.", task=True, points=1, grade_id="t"),
            "nbgrader's task cells are not supported; make it a manually graded answer",
        ),
        (
            marked(
                new_code_cell,
                "f(1)",
                grade=True,
                locked=True,
                points=1,
                grade_id="test_f",
            ),
            "test cell 'test_f' stands before every question",
        ),
        (
            question(source="def f(x):\n    return x"),
            "question 'f' has no solution region; put the answer between ### BEGIN SOLUTION and "
            "### END SOLUTION",
        ),
    ],
)
def test_what_has_no_kind_here_is_refused_by_cell(
    tiny: Assignment, cell: Cell, message: str
) -> None:
    with pytest.raises(BadSource) as caught:
        read(tiny, cell, question("last"))
    assert str(caught.value) == f"source/tiny/tiny.ipynb, cell 1: {message}"


def test_hidden_tests_in_a_notebook_are_refused(tiny: Assignment) -> None:
    test = marked(
        new_code_cell,
        "f(1)\n### BEGIN HIDDEN TESTS\nf(2)\n### END HIDDEN TESTS",
        grade=True,
        locked=True,
        points=1,
        grade_id="test_f",
    )
    with pytest.raises(BadSource) as caught:
        read(tiny, question(), test)
    assert str(caught.value) == (
        "source/tiny/tiny.ipynb, cell 2, line 2: '### BEGIN HIDDEN TESTS': graded tests belong "
        "in tests/hidden/, "
        "where no notebook can leak them"
    )


def test_a_broken_file_is_refused(tiny: Assignment) -> None:
    tiny.source.unlink()
    tiny.source.with_suffix(".ipynb").write_text("{}")
    with pytest.raises(
        BadSource, match=r"^source/tiny/tiny\.ipynb: not a Jupyter notebook: "
    ):
        read_source(tiny)
