"""A hidden suite, collected once, whose tests are run as often as there are submissions.

Tests of which pytest would do no more than call them are called: its protocol for one costs more
than most tests do.
"""

from __future__ import annotations

import contextlib
import inspect
import io
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard

import pytest

from autograder.basics.errors import BadSuite, KitError, SuiteFault
from autograder.course import Assignment
from autograder.suite.blame import is_suites_own, suite_fault
from autograder.suite.calls import current_log
from autograder.suite.collection import collect_suite, pytest_arguments
from autograder.suite.plugin import GIVEN, Fixtures, begin, fixtures_key

_MARKS = frozenset(("points", "uses", "forbid", "parametrize"))


class LoadedSuite:
    """The tests of a suite.

    Args:
        reference: the answer key's names.
        released: the release's text of each question cell, in the order of the notebook.

    Attributes:
        questions: what the suite holds, in the order of the notebook.
        fixtures: what `student` and `reference` are for the tests run next.
    """

    def __init__(
        self, assignment: Assignment, reference: dict[str, Any], released: Mapping[str, str]
    ) -> None:
        self.assignment, self.released = assignment, released
        order = list(released)
        collected = collect_suite(assignment.suite)
        unknown = [question.name for question in collected.questions if question.name not in order]
        if unknown:
            raise BadSuite(
                f"{assignment.suite}: test_{unknown[0]}.py, but the notebook has no question "
                f"{unknown[0]!r}"
            )
        self.fixtures = Fixtures(reference=reference)
        self.questions = tuple(
            sorted(collected.questions, key=lambda question: order.index(question.name))
        )
        self._items = collected.items
        self._plain = {name: item for name, item in self._items.items() if is_plain(item)}

    @property
    def max_score(self) -> float:
        """The points of all tests together."""
        return sum(question.points for question in self.questions)

    def run(self, question: str, test: str) -> BaseException | None:
        """Run one test; what it raised, or None.

        Raises:
            KitError: what is not the student's: the machine's fault, or the suite's own
                (SuiteFault).
        """
        item = self._plain.get((question, test))
        raised = (
            call_plainly(item, self.fixtures)
            if item
            else self._run_by_protocol(self._items[question, test])
        )
        if isinstance(raised, KitError):
            raise raised
        if raised is not None and is_suites_own(raised, current_log(), self.assignment.suite):
            raise self.fault(test, raised)
        return raised

    def _run_by_protocol(self, item: pytest.Item) -> BaseException | None:
        """By pytest's own protocol: fixtures, parameters, teardown."""
        one = _OneTest(item.name, self.fixtures)
        with contextlib.redirect_stdout(io.StringIO()):
            pytest.main(pytest_arguments(self.assignment.suite, item.path), plugins=[one])
        if one.interrupted is not None:
            raise one.interrupted
        if not one.ran:  # what did not run has not passed
            raise BadSuite(
                f"{item.path}: {item.name} was there when the suite was collected, and is no more"
            )
        return one.raised

    def fault(self, test: str, raised: BaseException) -> SuiteFault:
        """What to raise where it turns out that the suite is to blame."""
        return suite_fault(raised, test, self.assignment.suite)


class _OneTest:
    """A plugin that leaves one test of a file, and notes what it raised."""

    def __init__(self, name: str, fixtures: Fixtures) -> None:
        self._name, self._fixtures = name, fixtures
        self.ran = False
        self.raised: BaseException | None = None
        self.interrupted: BaseException | None = None

    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[fixtures_key] = self._fixtures

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.name == self._name]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        if call.when != "teardown":
            self.ran = True
            self.raised = self.raised or (call.excinfo.value if call.excinfo else None)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.interrupted = excinfo.value


def is_plain(item: pytest.Item) -> TypeGuard[pytest.Function]:
    """Whether a test is a function of `student`, `reference` and its own parameters, and nothing
    else has a say in it: no fixture of the suite's, no conftest.py, no class, and no mark that
    pytest acts on.
    """
    if (
        type(item) is not pytest.Function
        or item.cls is not None
        or inspect.iscoroutinefunction(item.function)
    ):
        return False
    marks = list(item.iter_markers())
    files = (
        Path(getattr(one, "__file__", None) or "").name
        for one in item.config.pluginmanager.get_plugins()
    )
    asks_for = set(_asks_for(item.function))
    return (
        asks_for <= GIVEN | parameters(item).keys()
        # which `student` and `reference` ask for
        and set(item.fixturenames) <= asks_for | {"request"}
        and not any(hasattr(item.module, name) for name in GIVEN)
        and {mark.name for mark in marks} <= _MARKS
        and not any(mark.kwargs.get("indirect") for mark in marks)
        and "conftest.py" not in files
    )


@cache
def _asks_for(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of its parameters: looked up once a test, and not once a submission."""
    return tuple(inspect.signature(function).parameters)


def parameters(item: pytest.Item) -> Mapping[str, Any]:
    """What `parametrize` gives a test.

    The one thing here that pytest does not document: tests/autograder/sitting/test_plain_tests.py
    says so when another version has it no more, and pyproject.toml goes up to the next minor
    version only when that was tried.
    """
    return item.callspec.params if hasattr(item, "callspec") else {}


def call_plainly(item: pytest.Function, fixtures: Fixtures) -> BaseException | None:
    """Call a plain test as pytest would; what it raised, or None."""
    begin(item, fixtures)
    own = parameters(item)
    try:
        item.obj(
            **{
                name: own[name] if name in own else fixtures.given(name)
                for name in _asks_for(item.function)
            }
        )
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error
    return None
