"""Reading a text source: the records, and every way in which a source can be wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_course import HEADER, TINY

from autograder.authoring.source_notebook import SourceNotebook, read_source
from autograder.basics.errors import BadSource
from autograder.course import Assignment

QUESTION = '# %% question="f"\ndef f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION\n'
"""Stands at line 8 of a source that begins with HEADER: HEADER is six lines and an empty one."""


def read(tiny: Assignment, text: str) -> SourceNotebook:
    tiny.source.write_text(text, encoding="utf-8")
    return read_source(tiny)


def test_every_cell_becomes_a_record_in_order(tiny: Assignment) -> None:
    notebook = read_source(tiny)
    assert [(cell.kind, cell.name, cell.points) for cell in notebook.cells] == [
        ("text", "", 0.0),
        ("given", "imports", 0.0),
        ("question", "double", 0.0),
        ("check", "double", 0.0),
        ("check", "double", 0.0),
        ("question", "half", 0.0),
        ("demo", "both", 0.0),
        ("written", "why", 5.0),
    ]
    assert notebook.questions == ("double", "half")
    assert notebook.cells[3].source == "assert double(3) == 6"


def test_an_assignments_name_that_would_fail_later_is_refused_at_once(
    tiny: Assignment,
) -> None:
    with pytest.raises(BadSource, match=r"an assignment cannot be called 'hw1\(a\)'"):
        read_source(replace(tiny, name="hw1(a)"))


def test_a_record_knows_its_line(tiny: Assignment) -> None:
    line = TINY.split("\n").index('# %% question="half"') + 1
    assert (
        read_source(tiny).of_kind("question")[1].place == f"source/tiny/tiny.py:{line}"
    )


def test_magics_are_no_syntax_errors(tiny: Assignment) -> None:
    demo = '# %% demo="plot"\n# %matplotlib inline\n# !ls\nprint(f(1))\n'
    assert (
        read(tiny, HEADER + QUESTION + demo).cells[1].source
        == "%matplotlib inline\n!ls\nprint(f(1))"
    )


def test_a_marker_inside_a_string_costs_the_line_numbers_only(tiny: Assignment) -> None:
    bad = '# %% demo="d"\ntext = """\n# %% not a cell\n"""\n\n# %% demo="d"\n1\n'
    with pytest.raises(BadSource) as caught:
        read(tiny, HEADER + QUESTION + bad)
    assert str(
        caught.value
    ) == "source/tiny/tiny.py, cell 3: a second demo named 'd'; the first is at " + (
        "source/tiny/tiny.py, cell 2"
    )


TAGS = "question, check, given, demo, predict"

REFUSED = {
    "a code cell without a tag": (
        "# %%\n1\n",
        f":14: a code cell without a tag; it carries exactly one of {TAGS}",
    ),
    "two tags": (
        '# %% given="a" demo="b"\n1\n',
        ":14: two tags, given and demo; a code cell carries exactly one",
    ),
    "unknown tag": (
        '# %% exercise="a"\n1\n',
        f":14: unknown tag 'exercise'; there are: {TAGS}, written",
    ),
    "points on code": (
        '# %% demo="a" points=3\n1\n',
        f":14: unknown tag 'points'; there are: {TAGS}, written; points of a question stand "
        "in its tests",
    ),
    "code tag on text": (
        '# %% [markdown] question="a"\n# 1\n',
        ":14: the tag 'question' does not belong on a markdown cell",
    ),
    "text tag on code": (
        '# %% written="a"\n1\n',
        ":14: the tag 'written' does not belong on a code cell",
    ),
    "raw cell": (
        "# %% [raw]\n# 1\n",
        ":14: a raw cell; a source notebook has code and markdown cells",
    ),
    "not a name": (
        '# %% demo="heat map"\n1\n',
        ":14: demo='heat map' is not a name; write a Python identifier, demo=\"softmax\"",
    ),
    "keyword": (
        '# %% demo="class"\n1\n',
        ":14: demo='class' is not a name; write a Python identifier, demo=\"softmax\"",
    ),
    "long name": (
        f'# %% demo="{"n" * 51}"\n1\n',
        f":14: the name '{'n' * 51}' is longer than 50 characters",
    ),
    "second question of a name": (
        QUESTION,
        ":14: a second question named 'f'; the first is at source/tiny/tiny.py:8",
    ),
    "check of nothing": (
        '# %% check="g"\n1\n',
        ":14: check 'g' has no question of that name",
    ),
    "check before its question": (
        '# %% check="g"\n1\n\n' + QUESTION.replace('"f"', '"g"'),
        ":14: check 'g' stands before its question",
    ),
    "question without a region": (
        '# %% question="g"\ndef g(x):\n    return x\n',
        ":14: question 'g' has no solution region; put the answer between ### BEGIN SOLUTION and "
        "### END SOLUTION",
    ),
    "written without a region": (
        '# %% [markdown] written="w" points=5\n# Why?\n',
        ":14: written 'w' has no solution region; put the answer between ### BEGIN SOLUTION and "
        "### END SOLUTION",
    ),
    "written without points": (
        '# %% [markdown] written="w"\n# ### BEGIN SOLUTION\n# a\n# ### END SOLUTION\n',
        ":14: written answer 'w' has no points; write written=\"w\" points=5",
    ),
    "written for nothing": (
        '# %% [markdown] written="w" points=0\n# ### BEGIN SOLUTION\n# a\n# ### END SOLUTION\n',
        ":14: points=0 of written answer 'w' is not a number above 0",
    ),
    "points in words": (
        '# %% [markdown] written="w" points="five"\n# ### BEGIN SOLUTION\n# a\n# ### END SOLUTION\n',
        ":14: points='five' of written answer 'w' is not a number above 0",
    ),
    "points on plain text": (
        "# %% [markdown] points=5\n# a\n",
        ':14: points on plain text; a written answer is tagged written="name"',
    ),
    "unclosed region": (
        '# %% question="g"\ndef g(x):\n    ### BEGIN SOLUTION\n    return x\n',
        ":16: ### BEGIN SOLUTION without an ### END SOLUTION after it",
    ),
    "stray end": (
        '# %% demo="d"\n1\n### END SOLUTION\n',
        ":16: ### END SOLUTION without a ### BEGIN SOLUTION before it",
    ),
    "region in a demo": (
        '# %% demo="d"\n### BEGIN SOLUTION\n1\n### END SOLUTION\n',
        ":14: a solution region in a demo cell; only questions and written answers have one",
    ),
    "region in text": (
        "# %% [markdown]\n# ### BEGIN SOLUTION\n# a\n# ### END SOLUTION\n",
        ":14: a solution region in a text cell; only questions and written answers have one",
    ),
    "syntax error": (
        '# %% demo="d"\nx = 1\ny = (2\n',
        ":16: demo 'd' is not valid Python: '(' was never closed",
    ),
    "a stub that is no Python": (
        '# %% question="g"\ndef g(x):\n### BEGIN SOLUTION\n    return x\n### END SOLUTION\n',
        ":16: question 'g' is not valid Python: expected an indented block after function "
        "definition on line 1",
    ),
    "imports the kit": (
        '# %% demo="d"\nfrom autograder.student_tools.expect import expect\n',
        ":14: demo 'd' imports autograder, which students do not have; only a given cell may import "
        "from it, and only modules of autograder.student_tools and autograder.kernels",
    ),
    "a module of another cell": (
        '# %% demo="d" module="m"\n1\n',
        ':14: only a given cell has module="name"',
    ),
}


@pytest.mark.parametrize(("cell", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_built_is_refused_by_line(
    tiny: Assignment, cell: str, message: str
) -> None:
    with pytest.raises(BadSource) as caught:
        read(tiny, HEADER + QUESTION + "\n" + cell)
    assert str(caught.value) == "source/tiny/tiny.py" + message


def test_a_notebook_without_questions_is_refused(tiny: Assignment) -> None:
    with pytest.raises(
        BadSource,
        match=r'^source/tiny/tiny.py: no question; .* tagged question="name"$',
    ):
        read(tiny, HEADER + "# %% [markdown]\n# text\n")


def test_a_file_that_is_no_text_is_refused(tiny: Assignment) -> None:
    tiny.source.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadSource, match=r"^source/tiny/tiny\.py: cannot be read: "):
        read_source(tiny)
