"""Tests that are called without pytest's protocol: which they are, and that they end as they do with it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from courses import HIDDEN_INI

from autograder.course import Assignment
from autograder.grading.plain_tests import call_plainly
from autograder.grading.session import PytestSession

SUITE = """\
import pytest
import torch

from autograder.suite import points


@pytest.fixture
def own(request):
    return getattr(request, "param", 1)


@points(1)
def test_plain(student, reference):
    assert student.n == reference.n


@points(1)
@pytest.mark.parametrize("n", [1, 2])
def test_with_a_number(student, n):
    student.drawn.append(float(torch.rand(1)))
    assert student.n == n


@points(1)
def test_with_a_fixture(own):
    assert own == 1


@points(1)
@pytest.mark.parametrize("own", [3], indirect=True)
def test_with_a_fixtures_number(own):
    assert own == 3


@points(1)
def test_with_a_request(request):
    pass


@points(1)
@pytest.mark.skipif(True, reason="a mark that pytest acts on")
def test_with_a_mark(student):
    pass


class TestInAClass:
    @points(1)
    def test_method(self, student):
        pass
"""


@contextlib.contextmanager
def session(root: Path, text: str, **others: str) -> Iterator[PytestSession]:
    assignment = Assignment("tiny", root)
    assignment.suite.mkdir(parents=True)
    (assignment.suite.parent / "pytest.ini").write_text(HIDDEN_INI.read_text(encoding="utf-8"), encoding="utf-8")
    for name, content in {"test_question": text, **others}.items():
        (assignment.suite / f"{name}.py").write_text(content, encoding="utf-8")
    with PytestSession(assignment, {"n": 1}, ["question"]) as made:
        yield made


def test_what_pytest_has_no_say_in_is_called(tmp_path: Path) -> None:
    with session(tmp_path, SUITE) as made:
        assert sorted(item.name for item in made._plain) == [
            "test_plain",
            "test_with_a_number[1]",
            "test_with_a_number[2]",
        ]


def test_it_ends_and_draws_as_with_the_protocol(tmp_path: Path) -> None:
    student = SimpleNamespace(n=1, drawn=[])
    with session(tmp_path, SUITE) as made:
        made.fixtures.student = student
        plain = [item for item in made._items.values() if item in made._plain]
        called = [call_plainly(item, made.fixtures) for item in plain]
        by_protocol = [made._run_by_protocol(item) for item in plain]
    assert [type(raised) for raised in called] == [type(None), type(None), AssertionError]
    assert [type(raised) for raised in by_protocol] == [type(None), type(None), AssertionError]
    assert student.drawn[:2] == student.drawn[2:]
    assert student.drawn[0] != student.drawn[1]


@pytest.mark.parametrize("others", [{"conftest": ""}, {"test_question": f"{SUITE}\n\ndef setup_module():\n    pass\n"}])
def test_where_the_whole_suite_asks_for_more_nothing_is(tmp_path: Path, others: dict[str, str]) -> None:
    with session(tmp_path, others.get("test_question", SUITE), **others) as made:
        assert made._plain == set()
