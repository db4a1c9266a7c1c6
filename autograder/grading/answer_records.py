"""What known answers answer to the tests of their question, each test run when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable

from autograder.grading.agreement import departures
from autograder.grading.known_runs import KnownRuns
from autograder.grading.known_sitting import KnownSitting
from autograder.grading.sitting import TestRun
from autograder.suite.collect import SuiteQuestion
from autograder.suite.known import KnownAnswer


class AnswerRecord:
    """What one known answer (or the answer key, where that is None) answers to the tests of its question; each test is
    run when it is first asked for, unless it was on this machine before."""

    def __init__(
        self, answer: KnownAnswer | None, question: SuiteQuestion, sitting: KnownSitting, kept: KnownRuns
    ) -> None:
        self.answer, self._question = answer, question
        self._name = answer.name if answer else f"the answer key's {question.name}"
        self._sitting, self._kept = sitting, kept
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
    return tuple(departures(call, right) if call.name == right.name else frozenset() for call, right in pairs)


def all_of(found: Departures) -> frozenset[str]:
    """The ways of all calls together."""
    return frozenset[str]().union(*found)
