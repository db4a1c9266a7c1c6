"""Collecting suites in one process: each is its own, and none stands in the way of a library."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from autograder.basics.errors import BadSuite
from autograder.suite.collection import collect_suite

ROOT = Path(__file__).resolve().parents[3]
TEST = '''\
from autograder.suite import points, uses, forbid

pytestmark = [uses("other"), forbid("torch.softmax")]


@points(1.5)
def test_{claim}(student):
    """A hint
    on two lines.

    Not this."""
'''


def suite(folder: Path, name: str, claim: str) -> Path:
    made = folder / "tests" / "hidden" / name
    made.mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "hidden" / "pytest.ini", made.parent)
    (made / "test_question.py").write_text(
        TEST.replace("{claim}", claim), encoding="utf-8"
    )
    return made


def claims(folder: Path) -> list[str]:
    return [
        test.name
        for question in collect_suite(folder).questions
        for test in question.tests
    ]


def test_a_question_is_described(tmp_path: Path) -> None:
    (question,) = collect_suite(suite(tmp_path, "small", "holds")).questions
    assert (question.name, question.points, question.uses, question.forbidden) == (
        "question",
        1.5,
        ("other",),
        ("torch.softmax",),
    )
    assert [(test.name, test.points, test.hint) for test in question.tests] == [
        ("test_holds", 1.5, "A hint on two lines.")
    ]


def test_files_of_one_name_in_two_suites_and_two_courses_are_their_own(
    tmp_path: Path,
) -> None:
    first, second = (
        suite(tmp_path / "a", "one", "first"),
        suite(tmp_path / "a", "two", "second"),
    )
    elsewhere = suite(tmp_path / "b", "one", "elsewhere")
    assert [claims(folder) for folder in (first, second, elsewhere, first)] == [
        ["test_first"],
        ["test_second"],
        ["test_elsewhere"],
        ["test_first"],
    ]


def test_a_suite_changed_since_is_read_anew(tmp_path: Path) -> None:
    folder = suite(tmp_path, "small", "before")
    assert claims(folder) == ["test_before"]
    (folder / "test_question.py").write_text(
        TEST.replace("{claim}", "after_the_change"), encoding="utf-8"
    )
    assert claims(folder) == ["test_after_the_change"]


def test_an_assignment_may_be_called_like_a_library(tmp_path: Path) -> None:
    import click

    assert claims(suite(tmp_path, "click", "holds")) == ["test_holds"]
    assert sys.modules["click"] is click


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no tests found"),
        (
            "import nothing_there\n",
            r"test_question.py, line 1: it does not import: ModuleNotFoundError: No module",
        ),
        (
            "x = 1\ndef (:\n",
            "test_question.py, line 2: it does not import: SyntaxError",
        ),
        (
            "from autograder.suite import points\n\n@points('two')\ndef test_x(): pass\n",
            "line 3: .*not 'two'",
        ),
        ("def test_x(): pass\n", "no @points"),
    ],
)
def test_a_suite_that_cannot_grade_says_why(
    tmp_path: Path, text: str, said: str
) -> None:
    folder = suite(tmp_path, "small", "holds")
    (folder / "test_question.py").write_text(text, encoding="utf-8")
    with pytest.raises(BadSuite, match=said):
        collect_suite(folder)


def test_no_suite_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadSuite, match="there is no hidden suite"):
        collect_suite(tmp_path / "nothing")
