"""What known answers answer to the tests of their question: run here, those of a question one after
the other in one worker (a fork and the answer key's cells once), unless they were on this machine
before.

Only for diagnosis; `verify` proves each of them in a worker of its own.
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
        kept: what known answers answered before, on disk.
    """

    def __init__(self, key: AnswerKey, suite: LoadedSuite, limits: Limits, kept: KnownRuns) -> None:
        self._key, self._suite, self._limits, self.kept = key, suite, limits, kept
        self._records: dict[tuple[str, str], AnswerRecord] = {}
        self._client: HostClient | None = None
        self._question = ""
        self._sitting: Sitting | None = None

    @contextlib.contextmanager
    def with_workers_of(self, client: HostClient) -> Iterator[None]:
        """Inside, tests can be run; at the end the worker that is open, if one is, ends."""
        self._client = client
        try:
            yield
        finally:
            self._close()
            self._client = None

    def record(self, question: SuiteQuestion, answer: KnownAnswer | None) -> AnswerRecord:
        """What the known answer answers, or the answer key where that is None; the same record each
        time.
        """
        name = (question.name, answer.name if answer else "")
        if name not in self._records:
            self._records[name] = AnswerRecord(answer, question, self)
        return self._records[name]

    def run(
        self, question: SuiteQuestion, answer: KnownAnswer | None, tests: Sequence[str]
    ) -> dict[str, TestRun]:
        """Run tests of a question on a known answer to it, or on the answer key's own where that is
        None.
        """
        assert self._client is not None
        submission = self._key.with_answer(answer) if answer else self._key.submission
        if self._sitting is None or self._question != question.name:
            self._close()
            self._sitting = Sitting(self._client, self._limits, self._suite, submission)
            self._question = question.name
        else:
            # the key's own answer first: the known answer before may have bound other names than
            # this one
            own = find_answer_cell(self._key.submission, question.name)
            self._sitting.workplace.go_on_with(
                submission, [*([own] if own else []), *submission.cells[-1:] * bool(answer)]
            )
        return self._sitting.run(question, tuple(tests), keep_worker=True, keep_calls=True)

    def _close(self) -> None:
        if self._sitting is not None:
            self._sitting.close()
            self._sitting = None


class AnswerRecord:
    """What one known answer (or the answer key, where that is None) answers to the tests of its
    question; each test is run when it is first asked for, unless it was on this machine before.
    """

    def __init__(
        self, answer: KnownAnswer | None, question: SuiteQuestion, sitting: KnownSitting
    ) -> None:
        self.answer, self._question = answer, question
        self._name = answer.name if answer else f"the answer key's {question.name}"
        self._sitting, self._kept = sitting, sitting.kept
        self._runs: dict[str, TestRun] = {}
        self._departures: dict[str, Departures] = {}

    def of(self, tests: Iterable[str]) -> dict[str, TestRun]:
        """Its runs of these tests."""
        wanted = sorted(tests)
        for test in wanted:
            if test not in self._runs and (kept := self._kept.load(self._name, test)) is not None:
                self._runs[test] = kept
        if missing := [test for test in wanted if test not in self._runs]:
            runs = self._sitting.run(self._question, self.answer, missing)
            self._kept.save(self._name, list(runs.values()))
            self._runs.update(runs)
        return {test: self._runs[test] for test in wanted}

    def departures(self, test: str, key: TestRun) -> Departures:
        """In which ways it departs from the answer key's run of a test, call by call."""
        if test not in self._departures:
            self._departures[test] = departures_of(self.of([test])[test], key)
        return self._departures[test]


Departures = tuple[frozenset[str], ...]
"""The ways in which each call of a run departs from the answer key's (`agreement.departures`)."""


def departures_of(run: TestRun, key: TestRun) -> Departures:
    """In which ways a run departs from the answer key's run of the same test, call by call."""
    pairs = zip(run.calls, key.calls, strict=False)
    return tuple(
        find_departures(call, right) if call.name == right.name else frozenset()
        for call, right in pairs
    )


def all_of(found: Departures) -> frozenset[str]:
    """The ways of all calls together."""
    return frozenset[str]().union(*found)
