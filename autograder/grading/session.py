"""One pytest session that has collected a hidden suite once and runs its tests as often as there are submissions."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import pytest
from _pytest.config import _prepareconfig

from autograder.course import Assignment
from autograder.errors import BadSuite, KitError, SuiteFault
from autograder.grading.plain_tests import call_plainly, is_plain
from autograder.suite.blame import is_suites_own, suite_fault
from autograder.suite.calls import current_log
from autograder.suite.collect import (
    ImportProblems,
    SuiteQuestion,
    describe_items,
    forget_modules,
    pytest_arguments,
    question_of,
)
from autograder.suite.plugin import Fixtures, fixtures_key


class PytestSession:
    """A collected suite. A context manager: leaving it ends the pytest session.

    Args:
        reference: the answer key's names.
        order: the questions in the order of the notebook.

    Attributes:
        questions: what the suite holds, in the order of the notebook.
        fixtures: says what `student` and `reference` are for the tests run next.
    """

    def __init__(self, assignment: Assignment, reference: dict[str, Any], order: Sequence[str]) -> None:
        if not assignment.suite.is_dir():
            raise BadSuite(f"{assignment.suite}: there is no hidden suite for this assignment")
        self.assignment = assignment
        self._config = _prepareconfig(pytest_arguments(assignment.suite))
        self._session: pytest.Session | None = None
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                questions = self._collect()
        except BaseException:
            self.close()
            raise
        self.fixtures: Fixtures = self._config.stash[fixtures_key]
        self.fixtures.reference = reference
        unknown = [question.name for question in questions if question.name not in order]
        if unknown:
            self.close()
            raise BadSuite(f"{assignment.suite}: test_{unknown[0]}.py, but the notebook has no question {unknown[0]!r}")
        self.questions = tuple(sorted(questions, key=lambda question: order.index(question.name)))

    def _collect(self) -> tuple[SuiteQuestion, ...]:
        forget_modules(self.assignment.suite)
        self._config._do_configure()
        session = pytest.Session.from_config(self._config)
        self._session = session
        self._config.hook.pytest_sessionstart(session=session)
        problems = ImportProblems(self.assignment.suite)
        self._config.pluginmanager.register(problems)
        session.perform_collect()
        if problems.found:
            raise BadSuite(problems.found[0])
        if not session.items:
            raise BadSuite(
                f"{self.assignment.suite}: no tests; a suite has a file test_<question>.py for each question"
            )
        self._items: dict[tuple[str, str], pytest.Item] = {(question_of(i), i.name): i for i in session.items}
        self._plain = {item for item in session.items if is_plain(item)}
        return describe_items(session.items)

    @property
    def max_score(self) -> float:
        """The points of all tests together."""
        return sum(question.points for question in self.questions)

    def run(self, question: str, test: str) -> BaseException | None:
        """Run one test; what it raised, or None.

        Raises:
            KitError: what is not the student's: the machine's fault, or the suite's own (SuiteFault).
        """
        item = self._items[question, test]
        raised = call_plainly(item, self.fixtures) if item in self._plain else self._run_by_protocol(item)
        if isinstance(raised, KitError):
            raise raised
        if raised is not None and is_suites_own(raised, current_log(), self.assignment.suite):
            raise self.fault(test, raised)
        return raised

    def _run_by_protocol(self, item: Any) -> BaseException | None:
        """By pytest's own protocol: fixtures, parameters, teardown."""
        if not getattr(item, "_request", None):
            item._initrequest()
        raised: BaseException | None = None
        hook = item.ihook
        for when, step in (("setup", hook.pytest_runtest_setup), ("call", hook.pytest_runtest_call)):
            call = pytest.CallInfo.from_call(lambda step=step: step(item=item), when=when, reraise=(KeyboardInterrupt,))  # type: ignore[arg-type, misc]
            if call.excinfo is not None:
                raised = call.excinfo.value
                break
        pytest.CallInfo.from_call(lambda: hook.pytest_runtest_teardown(item=item, nextitem=None), when="teardown")
        item._request = False
        item.funcargs = None
        return raised

    def fault(self, test: str, raised: BaseException) -> SuiteFault:
        """What to raise where it turns out that the suite is to blame."""
        return suite_fault(raised, test, self.assignment.suite)

    def close(self) -> None:
        """End the session by the hooks that pytest ends one with."""
        if self._session is not None:
            self._config.hook.pytest_sessionfinish(session=self._session, exitstatus=0)
            self._session = None
        self._config._ensure_unconfigure()

    def __enter__(self) -> PytestSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
