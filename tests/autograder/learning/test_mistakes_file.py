"""A learned mistake is written as text: whoever imports the file runs nothing of a student's."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from autograder.basics.errors import BadSuite
from autograder.learning.mistakes_file import (
    add_definition,
    mistake_text,
    name_from_sentence,
    sample_text,
)
from autograder.suite.known_answers import load_known_answers

EVIL = '''\
open('/tmp/was-run', 'w')

def f(x):
    text = """a \\" quote\\n and \\\\ a backslash"""
    return text + '\\x00' + "ü"
'''


def test_a_name_is_made_of_the_sentence() -> None:
    assert (
        name_from_sentence("Softmax runs over the queries")
        == "softmax_runs_over_queries"
    )
    assert (
        name_from_sentence("2 of the axes are exchanged!") == "mistake_2_axes_exchanged"
    )
    assert name_from_sentence("один") == ""


def test_an_answer_comes_back_to_the_letter_and_nothing_of_it_runs(
    tmp_path: Path,
) -> None:
    definition = mistake_text("f", "leaks", 'Say "why".', 0.25, EVIL)
    path = tmp_path / "mistakes.py"
    path.write_text(
        add_definition(
            '"""Mistakes.\n\nfrom f.\n"""\n\nimport os\n', definition, "mistake"
        )
    )
    (answer,) = load_known_answers(path, {})
    assert (answer.question, answer.name, answer.hint, answer.keeps) == (
        "f",
        "leaks",
        'Say "why".',
        0.25,
    )
    assert answer.cell == EVIL
    assert answer.is_students
    spec = importlib.util.spec_from_file_location("learned_mistakes", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert not Path("/tmp/was-run").exists()
    assert module.leaks() is None


def test_the_decorator_is_imported_once() -> None:
    first = add_definition("", sample_text("f", "one", "leaks", "f = 1\n"), "sample")
    second = add_definition(
        first, sample_text("f", "two", "leaks", "f = 2\n"), "sample"
    )
    assert second.count("from autograder.suite import sample") == 1
    assert second.startswith("from autograder.suite import sample\n\n\n@sample(\n")
    with_docstring = add_definition(
        '"""Samples."""\n\nimport torch\n', "x = 1\n", "sample"
    )
    assert with_docstring == (
        '"""Samples."""\n\nfrom autograder.suite import sample\nimport torch\n\n\nx = 1\n'
    )


@pytest.mark.parametrize(
    ("decorator", "message"),
    [
        (
            '@mistake("f", hint="h", answer="f = 1")\ndef wrong(x):\n    return x\n',
            "a body of its own",
        ),
        (
            '@mistake("f", hint="h", answer="f = 1", replace=("a", "b"))\ndef wrong(): ...\n',
            "not both",
        ),
        ('@mistake("f", hint="h", answer=3)\ndef wrong(): ...\n', "plain text only"),
    ],
)
def test_an_answer_as_text_has_no_other_answer_beside_it(
    tmp_path: Path, decorator: str, message: str
) -> None:
    path = tmp_path / "mistakes.py"
    path.write_text(f"from autograder.suite import mistake\n\n\n{decorator}")
    with pytest.raises(BadSuite, match=message):
        load_known_answers(path, {"f": "def f(a): pass\n"})
