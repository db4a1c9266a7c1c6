"""A hidden suite that was collected once, and whose tests run as often as there are submissions.

Plain tests, for which pytest would do no more than call a function, are called: pytest's protocol
for one test costs more than most tests do.
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
from autograder.suite.blame import is_suite_fault, suite_fault
from autograder.suite.calls import current_log
from autograder.suite.collection import collect_suite, pytest_arguments
from autograder.suite.plugin import FIXTURE_NAMES, Fixtures, begin_test, fixtures_key

_MARKS_OF_SUITES = frozenset(("points", "uses", "forbid", "parametrize"))
"""Marks on which pytest does nothing while a test runs."""


class LoadedSuite:
    """The tests of a suite.

    Args:
        reference: the answer key's names.
        released: the release's text of each question cell, in the order of the notebook.

    Attributes:
        questions: the suite's questions, in the order of the notebook.
        fixtures: the values of `student` and `reference` for the tests that run next.
    """

    def __init__(
        self,
        assignment: Assignment,
        reference: dict[str, Any],
        released: Mapping[str, str],
    ) -> None:
        self.assignment = assignment
        self.released = released
        collected = collect_suite(assignment.suite)
        for question in collected.questions:
            if question.name not in released:
                raise BadSuite(
                    f"{assignment.suite}: test_{question.name}.py, but the notebook has no "
                    f"question {question.name!r}"
                )
        order = list(released)
        self.questions = tuple(
            sorted(collected.questions, key=lambda question: order.index(question.name))
        )
        self.fixtures = Fixtures(reference=reference)
        self._items = collected.items
        self._plain = {
            name: item for name, item in self._items.items() if is_plain(item)
        }

    @property
    def max_score(self) -> float:
        """The points of all tests together."""
        return sum(question.points for question in self.questions)

    def run(
        self,
        question: str,
        test: str,
    ) -> BaseException | None:
        """Run one test; the exception that it raised, or None.

        Raises:
            KitError: the fault is not the student's: the machine's, or the suite's own
                (SuiteFault).
        """
        item = self._plain.get((question, test))
        if item is not None:
            raised = call_plainly(item, self.fixtures)
        else:
            raised = self._run_by_protocol(self._items[question, test])
        if isinstance(raised, KitError):
            raise raised
        if raised is not None and is_suite_fault(
            raised, current_log(), self.assignment.suite
        ):
            raise self.make_fault(test, raised)
        return raised

    def _run_by_protocol(self, item: pytest.Item) -> BaseException | None:
        """Run one test by pytest's own protocol: fixtures, parameters, teardown."""
        plugin = _SingleTest(item.name, self.fixtures)
        with contextlib.redirect_stdout(io.StringIO()):
            pytest.main(
                pytest_arguments(self.assignment.suite, item.path), plugins=[plugin]
            )
        if plugin.interrupt is not None:
            raise plugin.interrupt
        if not plugin.has_run:  # a test that did not run has not passed
            raise BadSuite(
                f"{item.path}: {item.name} was there when the suite was collected, and is no more"
            )
        return plugin.raised

    def make_fault(
        self,
        test: str,
        raised: BaseException,
    ) -> SuiteFault:
        """The error to raise where the suite is to blame for what a test raised."""
        return suite_fault(raised, test, self.assignment.suite)


class _SingleTest:
    """A plugin that runs one test of a file, and keeps the exception that the test raised."""

    def __init__(
        self,
        name: str,
        fixtures: Fixtures,
    ) -> None:
        self._name = name
        self._fixtures = fixtures
        self.has_run = False
        self.raised: BaseException | None = None
        self.interrupt: BaseException | None = None

    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[fixtures_key] = self._fixtures

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.name == self._name]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        if call.when != "teardown":
            self.has_run = True
            if call.excinfo is not None:
                self.raised = call.excinfo.value

    def pytest_keyboard_interrupt(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> None:
        self.interrupt = excinfo.value


def is_plain(item: pytest.Item) -> TypeGuard[pytest.Function]:
    """Whether a test is a function of `student`, `reference` and its own parameters, which pytest
    would only call: no fixture of the suite's, no conftest.py, no class, and no mark that pytest
    acts on.
    """
    if type(item) is not pytest.Function or item.cls is not None:
        return False
    if inspect.iscoroutinefunction(item.function):
        return False
    for plugin in item.config.pluginmanager.get_plugins():
        if Path(getattr(plugin, "__file__", None) or "").name == "conftest.py":
            return False
    for mark in item.iter_markers():
        if mark.name not in _MARKS_OF_SUITES or mark.kwargs.get("indirect"):
            return False
    arguments = set(_argument_names(item.function))
    return (
        arguments <= FIXTURE_NAMES | parametrized_arguments(item).keys()
        # `student` and `reference` themselves take pytest's `request`
        and set(item.fixturenames) <= arguments | {"request"}
        and not any(hasattr(item.module, name) for name in FIXTURE_NAMES)
    )


@cache
def _argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of a test's arguments: found once for each test, and not for each submission."""
    return tuple(inspect.signature(function).parameters)


def parametrized_arguments(item: pytest.Item) -> Mapping[str, Any]:
    """The arguments that `parametrize` gives a test.

    pytest does not document this attribute: tests/autograder/sitting/test_plain_tests.py
    fails when another version of pytest has no `callspec` any more, and pyproject.toml goes up to
    the next minor version only when that was tried.
    """
    return item.callspec.params if hasattr(item, "callspec") else {}


def call_plainly(item: pytest.Function, fixtures: Fixtures) -> BaseException | None:
    """Call a plain test as pytest would; the exception that it raised, or None."""
    begin_test(item, fixtures)
    parametrized = parametrized_arguments(item)
    try:
        arguments = {
            name: parametrized[name]
            if name in parametrized
            else fixtures.value_of(name)
            for name in _argument_names(item.function)
        }
        item.obj(**arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error
    return None
