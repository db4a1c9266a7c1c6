"""Runs known answers in front of the tests of their question, unless their runs are on disk.

The known answers of a question run one after the other in one worker: a fork and the answer key's
cells once. An answer that a student wrote gets a worker of its own: it could change what later
answers compute. For diagnosis alone; `verify` proves each known answer in a worker of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from autograder.course import Limits
from autograder.diagnosis.answer_key import AnswerKey
from autograder.diagnosis.known_runs import KnownRuns
from autograder.intake.cell_matching import find_answer_cell
from autograder.sandbox.host_process import HostClient
from autograder.sitting.agreement import find_departures
from autograder.sitting.loaded_suite import LoadedSuite
from autograder.sitting.sitting import Sitting, TestRun
from autograder.suite.collection import SuiteQuestion
from autograder.suite.known_answers import KnownAnswer


class KnownSitting:
    """Runs tests on the answer key, and on the answer key with one known answer in it.

    Attributes:
        stored_runs: the runs of known answers on disk.
    """

    def __init__(
        self,
        key: AnswerKey,
        suite: LoadedSuite,
        limits: Limits,
        stored_runs: KnownRuns,
    ) -> None:
        self._key = key
        self._suite = suite
        self._limits = limits
        self.stored_runs = stored_runs
        self._records: dict[tuple[str, str], AnswerRecord] = {}
        self._client: HostClient | None = None
        self._question = ""
        self._sitting: Sitting | None = None

    @contextlib.contextmanager
    def use_client(self, client: HostClient) -> Iterator[None]:
        """Inside, tests can run, in workers of this client; at the end the open worker ends."""
        self._client = client
        try:
            yield
        finally:
            self._close()
            self._client = None

    def record(
        self,
        question: SuiteQuestion,
        answer: KnownAnswer | None,
    ) -> AnswerRecord:
        """The record of a known answer, or of the answer key where `answer` is None.

        The same object each time.
        """
        name = (question.name, answer.name if answer else "")
        if name not in self._records:
            self._records[name] = AnswerRecord(answer, question, self)
        return self._records[name]

    def run(
        self,
        question: SuiteQuestion,
        answer: KnownAnswer | None,
        tests: Sequence[str],
    ) -> dict[str, TestRun]:
        """Run tests of a question on a known answer, or on the answer key where that is None."""
        assert self._client is not None
        submission = self._key.with_answer(answer) if answer else self._key.submission
        is_students = answer is not None and answer.is_students
        if self._sitting is None or self._question != question.name or is_students:
            self._close()
            self._sitting = Sitting(self._client, self._limits, self._suite, submission)
            self._question = question.name
        else:
            # The key's own answer first: the known answer before may have bound other names than
            # the next one.
            key_cell = find_answer_cell(self._key.submission, question.name)
            cells = [key_cell] if key_cell else []
            if answer:
                cells.append(submission.cells[-1])
            self._sitting.workplace.replace_submission(submission, cells)
        runs = self._sitting.run(
            question, tuple(tests), keep_worker=True, keep_calls=True
        )
        if is_students:
            self._close()
        return runs

    def _close(self) -> None:
        if self._sitting is not None:
            self._sitting.close()
            self._sitting = None


class AnswerRecord:
    """The runs of one known answer, or of the answer key, on the tests of its question.

    A test runs when its run is first asked for, unless the run is on disk.

    Attributes:
        answer: None for the answer key.
    """

    def __init__(
        self,
        answer: KnownAnswer | None,
        question: SuiteQuestion,
        sitting: KnownSitting,
    ) -> None:
        self.answer = answer
        self._question = question
        self._sitting = sitting
        self._name = f"the answer key's {question.name}"
        if answer is not None:
            self._name = answer.stored_name
        self._runs: dict[str, TestRun] = {}
        self._departures: dict[str, Departures] = {}

    def runs(self, tests: Iterable[str]) -> dict[str, TestRun]:
        """The runs of some tests."""
        names = sorted(tests)
        missing = []
        for test in names:
            if test in self._runs:
                continue
            stored = self._sitting.stored_runs.load(self._name, test)
            if stored is not None:
                self._runs[test] = stored
            else:
                missing.append(test)
        if missing:
            new_runs = self._sitting.run(self._question, self.answer, missing)
            store = self._sitting.stored_runs
            for run in store.save_and_reload(self._name, [*new_runs.values()]):
                self._runs[run.name] = run
        return {test: self._runs[test] for test in names}

    def run(self, test: str) -> TestRun:
        """The run of one test."""
        return self.runs([test])[test]

    def failed(self, tests: Iterable[str]) -> frozenset[str]:
        """The tests among these that the answer does not pass."""
        runs = self.runs(tests)
        return frozenset(test for test, run in runs.items() if not run.passed)

    def departures(
        self,
        test: str,
        key_run: TestRun,
    ) -> Departures:
        """How the run of a test departs from the answer key's, call by call."""
        if test not in self._departures:
            self._departures[test] = list_departures(self.run(test), key_run)
        return self._departures[test]


Departures = tuple[frozenset[str], ...]
"""The ways in which each call of a run departs from the answer key's
(`agreement.find_departures`).
"""


def list_departures(run: TestRun, key_run: TestRun) -> Departures:
    """How a run departs from the answer key's run of the same test, call by call."""
    departures = []
    for call, key_call in zip(run.calls, key_run.calls, strict=False):
        is_same_call = call.name == key_call.name
        departures.append(
            find_departures(call, key_call) if is_same_call else frozenset()
        )
    return tuple(departures)


def unite(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    """The elements of all sets."""
    return frozenset[str]().union(*sets)
