"""Tests that are called without pytest's protocol: which they are, and that they end as they do
with it.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from courses import HIDDEN_INI

from autograder.basics.errors import BadSuite
from autograder.course import Assignment
from autograder.sitting.loaded_suite import (
    LoadedSuite,
    call_plainly,
    parametrized_arguments,
)

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
INTERRUPTED = """\
from autograder.suite import points


@points(1)
def test_plain(reference):
    raise KeyboardInterrupt


@points(1)
def test_with_a_request(request):
    raise KeyboardInterrupt
"""


def loaded(root: Path, text: str, **others: str) -> LoadedSuite:
    assignment = Assignment("tiny", root)
    assignment.suite.mkdir(parents=True)
    (assignment.suite.parent / "pytest.ini").write_text(
        HIDDEN_INI.read_text(encoding="utf-8"), encoding="utf-8"
    )
    for name, content in {"test_question": text, **others}.items():
        (assignment.suite / f"{name}.py").write_text(content, encoding="utf-8")
    return LoadedSuite(assignment, {"n": 1}, {"question": ""})


def test_what_pytest_has_no_say_in_is_called(tmp_path: Path) -> None:
    made = loaded(tmp_path, SUITE)
    assert sorted(item.name for item in made._plain.values()) == [
        "test_plain",
        "test_with_a_number[1]",
        "test_with_a_number[2]",
    ]


def test_it_ends_and_draws_as_with_the_protocol(tmp_path: Path) -> None:
    student = SimpleNamespace(n=1, drawn=[])
    made = loaded(tmp_path, SUITE)
    made.fixtures.student = student
    plain = list(made._plain.values())
    called = [call_plainly(item, made.fixtures) for item in plain]
    by_protocol = [made._run_by_protocol(item) for item in plain]
    assert [type(raised) for raised in called] == [
        type(None),
        type(None),
        AssertionError,
    ]
    assert [type(raised) for raised in by_protocol] == [
        type(None),
        type(None),
        AssertionError,
    ]
    assert student.drawn[:2] == student.drawn[2:]
    assert student.drawn[0] != student.drawn[1]


def test_what_pytest_has_a_say_in_runs_by_its_protocol(tmp_path: Path) -> None:
    made = loaded(tmp_path, SUITE)
    made.fixtures.student = SimpleNamespace(n=1)
    others = [item for name, item in made._items.items() if name not in made._plain]
    ended = {item.name: type(made._run_by_protocol(item)) for item in others}
    assert ended == {
        "test_with_a_fixture": type(None),
        "test_with_a_fixtures_number[3]": type(None),
        "test_with_a_request": type(None),
        "test_with_a_mark": pytest.skip.Exception,
        "test_method": type(None),
    }


def test_a_test_that_is_no_longer_there_has_not_passed(tmp_path: Path) -> None:
    made = loaded(tmp_path, SUITE)
    item = made._items["question", "test_method"]
    item.name = "test_that_was_renamed"
    with pytest.raises(
        BadSuite,
        match="test_that_was_renamed was there when the suite was collected, and is no more",
    ):
        made._run_by_protocol(item)


def test_ctrl_c_in_a_test_is_no_outcome(tmp_path: Path) -> None:
    made = loaded(tmp_path, INTERRUPTED)
    for name in ("test_plain", "test_with_a_request"):
        with pytest.raises(KeyboardInterrupt):
            made.run("question", name)


def test_this_version_of_pytest_still_says_what_parametrize_gives(
    tmp_path: Path,
) -> None:
    """Where this fails, `Function.callspec` has changed: see `plain_tests.parameters`, and keep
    pytest below that.
    """
    made = loaded(tmp_path, SUITE)
    assert [dict(parametrized_arguments(item)) for item in made._plain.values()] == [
        {},
        {"n": 1},
        {"n": 2},
    ]


@pytest.mark.parametrize(
    "others",
    [
        {"conftest": ""},
        {"test_question": f"{SUITE}\n\ndef setup_module():\n    pass\n"},
    ],
)
def test_where_the_whole_suite_asks_for_more_nothing_is(
    tmp_path: Path, others: dict[str, str]
) -> None:
    assert loaded(tmp_path, others.get("test_question", SUITE), **others)._plain == {}


def test_a_student_of_the_suites_own_is_no_plain_one(tmp_path: Path) -> None:
    own = "@pytest.fixture\ndef student():\n    return 1\n\n\n@points(1)\n"
    assert loaded(tmp_path, SUITE.replace("@points(1)\n", own, 1))._plain == {}


def test_a_suite_for_a_question_that_the_notebook_lacks_is_bad(tmp_path: Path) -> None:
    with pytest.raises(BadSuite, match=r"test_other\.py, but the notebook has no"):
        loaded(tmp_path, SUITE, test_other=SUITE)


ENDING_BADLY = """\
import pytest

from autograder.suite import points


@pytest.fixture
def own():
    yield 1
    raise RuntimeError("after the test")


@points(1)
def test_with_a_fixture(own):
    assert own == 1
"""


def test_what_a_fixture_raises_after_a_test_does_not_fail_the_test(
    tmp_path: Path,
) -> None:
    suite = loaded(tmp_path, ENDING_BADLY)
    assert suite.run("question", "test_with_a_fixture") is None
