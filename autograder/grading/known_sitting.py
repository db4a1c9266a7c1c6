"""Known answers in front of the suite, those of a question one after the other in one worker: a fork and the answer
key's cells once.

Only for diagnosis; `verify` proves each of them in a worker of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from autograder.course import Limits
from autograder.grading.answer_key import AnswerKey
from autograder.grading.loaded_suite import LoadedSuite
from autograder.grading.sitting import Sitting, TestRun
from autograder.intake.matching import cell_of
from autograder.sandbox.host import HostClient
from autograder.suite.collect import SuiteQuestion
from autograder.suite.known import KnownAnswer


class KnownSitting:
    """Runs tests on the answer key, and on the answer key with one known answer in it."""

    def __init__(self, key: AnswerKey, suite: LoadedSuite, limits: Limits) -> None:
        self._key, self._suite, self._limits = key, suite, limits
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

    def run(self, question: SuiteQuestion, answer: KnownAnswer | None, tests: Sequence[str]) -> dict[str, TestRun]:
        """Run tests of a question on a known answer to it, or on the answer key's own where that is None."""
        assert self._client is not None
        submission = self._key.with_answer(answer) if answer else self._key.submission
        if self._sitting is None or self._question != question.name:
            self._close()
            self._sitting = Sitting(self._client, self._limits, self._suite, submission)
            self._question = question.name
        else:
            # the key's own answer first: the known answer before may have bound other names than this one
            own = cell_of(self._key.submission, question.name)
            self._sitting.place.go_on_with(submission, [*([own] if own else []), *submission.cells[-1:] * bool(answer)])
        return self._sitting.run(question, tuple(tests), keep_worker=True, keep_calls=True)

    def _close(self) -> None:
        if self._sitting is not None:
            self._sitting.close()
            self._sitting = None
