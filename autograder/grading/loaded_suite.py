"""A hidden suite, collected once, whose tests are run as often as there are submissions."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from typing import Any

import pytest

from autograder.course import Assignment
from autograder.errors import BadSuite, KitError, SuiteFault
from autograder.grading.plain_tests import call_plainly, is_plain
from autograder.suite.blame import is_suites_own, suite_fault
from autograder.suite.calls import current_log
from autograder.suite.collect import collect_suite, pytest_arguments
from autograder.suite.plugin import Fixtures, fixtures_key


class LoadedSuite:
    """The tests of a suite.

    Args:
        reference: the answer key's names.
        released: the release's text of each question cell, in the order of the notebook.

    Attributes:
        questions: what the suite holds, in the order of the notebook.
        fixtures: what `student` and `reference` are for the tests run next.
    """

    def __init__(self, assignment: Assignment, reference: dict[str, Any], released: Mapping[str, str]) -> None:
        self.assignment, self.released = assignment, released
        order = list(released)
        collected = collect_suite(assignment.suite)
        unknown = [question.name for question in collected.questions if question.name not in order]
        if unknown:
            raise BadSuite(f"{assignment.suite}: test_{unknown[0]}.py, but the notebook has no question {unknown[0]!r}")
        self.fixtures = Fixtures(reference=reference)
        self.questions = tuple(sorted(collected.questions, key=lambda question: order.index(question.name)))
        self._items = collected.items
        self._plain = {name: item for name, item in self._items.items() if is_plain(item)}

    @property
    def max_score(self) -> float:
        """The points of all tests together."""
        return sum(question.points for question in self.questions)

    def run(self, question: str, test: str) -> BaseException | None:
        """Run one test; what it raised, or None.

        Raises:
            KitError: what is not the student's: the machine's fault, or the suite's own (SuiteFault).
        """
        item = self._plain.get((question, test))
        raised = call_plainly(item, self.fixtures) if item else self._run_by_protocol(self._items[question, test])
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
            raise BadSuite(f"{item.path}: {item.name} was there when the suite was collected, and is no more")
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
