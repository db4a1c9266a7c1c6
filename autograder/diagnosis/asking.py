"""Makes sights of a submission's failed tests, and asks its functions again for predicates that
need further calls.

Further calls are made behind the walls, after all tests, in a worker that has run the submission's
cells. They are few, and each is made once: the same submission is asked the same questions. The
answer key is asked in the trusted process.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.basics.errors import StudentError, StudentFault
from autograder.course import Limits
from autograder.sandbox.bounds import memory_bound, time_bound
from autograder.sandbox.student import Student
from autograder.sitting.agreement import find_departures
from autograder.sitting.sitting import TestRun
from autograder.suite.calls import Call, CallLog, size_in_bytes, start_log
from autograder.suite.objects import NotData
from autograder.suite.sight import Sight, Unseen
from autograder.wire.trees import leaves

MOST_ASKED = 200
"""Further calls of one question of one submission."""
LARGEST_ASKED = 1 << 20
"""Bytes of the arguments of a call that is asked again."""
_MOST_SIGHTS = 2
"""Wrong calls of one test that are looked at: further ones rarely show something else."""

PlacedSight = tuple[int, Sight]
"""A sight, and the place of its call among the calls of the test."""


class Asker:
    """Makes the sights of one question of a submission.

    Args:
        open_functions: gives the submission's functions when a further call is needed; None where
            nothing may be asked.
        reference: the answer key's names.
        is_free: whether other answers than the answer key's are right too. Then an answer that
            differs shows nothing, and the one that ended the test is looked at.
    """

    def __init__(
        self,
        open_functions: Callable[[], Student] | None,
        reference: Mapping[str, Any],
        limits: Limits,
        *,
        is_free: bool = False,
    ) -> None:
        self.is_free = is_free
        self._open_functions = open_functions
        self._reference = reference
        self._limits = limits
        self._log = CallLog(reference)
        self._student: Student | None = None
        self._asked = 0
        self._sights: dict[str, list[PlacedSight]] = {}

    def functions(self) -> Student | None:
        """The submission's functions for further calls; None where nothing may be asked."""
        if self._student is None and self._open_functions is not None:
            self._student = self._open_functions()
        return self._student

    def fresh_functions(self) -> Student | None:
        """The submission's functions in a worker that has answered nothing yet; None where nothing
        may be asked.
        """
        return None if self._open_functions is None else self._open_functions()

    def sights(
        self,
        runs: Mapping[str, TestRun],
        key_runs: Mapping[str, TestRun],
    ) -> dict[str, list[PlacedSight]]:
        """By test, the sights of its calls whose answer is not the right one. A test's sights are
        made once: they keep what they were told of further calls.
        """
        for test, run in runs.items():
            if test not in self._sights:
                self._sights[test] = self._make_sights(run, key_runs[test])
        return {test: self._sights[test] for test in runs}

    def error_sights(
        self,
        runs: Mapping[str, TestRun],
        key_runs: Mapping[str, TestRun],
    ) -> dict[str, Sight]:
        """By test, the sight of the call that an error of the submission's code has ended, and
        that the answer key answers. It has no answer, and can be asked again.
        """
        sights = {}
        for test, run in runs.items():
            pairs = zip(run.calls, key_runs[test].calls, strict=False)
            for call, key_call in pairs:
                if _is_ended_by_an_error(call, key_call):
                    sights[test] = self.make_sight(call, key_call.result)
                    break
        return sights

    def _make_sights(
        self,
        run: TestRun,
        key_run: TestRun,
    ) -> list[PlacedSight]:
        sights: list[PlacedSight] = []
        for place, (call, key_call) in enumerate(
            zip(run.calls, key_run.calls, strict=False)
        ):
            if call.name != key_call.name or len(sights) == _MOST_SIGHTS:
                break
            if _is_wrong(call, key_call):
                if self.is_free:
                    sights.clear()  # the test went on: that answer was right
                sights.append((place, self.make_sight(call, key_call.result)))
        return sights

    def make_sight(
        self,
        call: Call,
        right: Any,
    ) -> Sight:
        """The sight of one call."""
        names = self._log.parameter_names(call.name)
        arguments = dict(zip(names, call.arguments, strict=False)) | call.keywords
        if len(call.arguments) > len(names):
            return Sight(arguments, call.result, right, _nothing_to_ask)
        # the student's parameters may have other names
        return self._repeatable(
            call.name, names[: len(call.arguments)], arguments, call.result, right
        )

    def _repeatable(
        self,
        function: str,
        positional: Sequence[str],
        arguments: Mapping[str, Any],
        answer: Any,
        right: Any,
    ) -> Sight:
        """The sight of a call that can be made again.

        Args:
            positional: names of the arguments that are passed by position.
        """
        answered: dict[str, Sight] = {}

        def ask_again(label: str, changes: Mapping[str, Any]) -> Sight:
            if label not in answered:
                changed = {**arguments, **changes}
                answers = self._ask(function, positional, changed)
                answered[label] = self._repeatable(
                    function, positional, changed, *answers
                )
            return answered[label]

        return Sight(arguments, answer, right, ask_again)

    def _ask(
        self,
        name: str,
        positional: Sequence[str],
        arguments: Mapping[str, Any],
    ) -> tuple[Any, Any]:
        """The student's answer and the right one to a further call.

        Raises:
            Unseen: no further call is possible, or one of the two gives no answer.
        """
        function = self._reference.get(name)
        if (
            self._asked >= MOST_ASKED
            or self._open_functions is None
            or not callable(function)
        ):
            raise Unseen("nothing can be asked")
        values = leaves([*arguments.values()])
        is_data = not any(
            isinstance(value, NotData) or callable(value) for value in values
        )
        if isinstance(function, type) or not is_data:
            raise Unseen("objects are not asked")
        if size_in_bytes([*arguments.values()]) > LARGEST_ASKED:
            raise Unseen("too large to be asked")
        self._asked += 1
        right = self._ask_key(function, arguments)
        keywords = {
            key: value for key, value in arguments.items() if key not in positional
        }
        try:
            ask = getattr(self.functions(), name)
            by_position = [arguments[key] for key in positional]
            answer = contextvars.copy_context().run(_call, ask, by_position, keywords)
        except StudentError:
            raise Unseen("the function raises an error") from None
        except StudentFault:
            self._asked = MOST_ASKED  # a hang or a crash: nothing more is asked
            raise Unseen("the function gives no answer") from None
        return answer, right

    def _ask_key(
        self,
        function: Any,
        arguments: Mapping[str, Any],
    ) -> Any:
        """The answer key's answer; Unseen where it refuses the arguments."""
        bounds = (
            memory_bound(self._limits.memory_mb),
            time_bound(self._limits.call_seconds),
        )
        try:
            with bounds[0], bounds[1]:
                return function(**arguments)
        except Exception:
            raise Unseen("the answer key refuses the arguments") from None


def is_answered(call: Call) -> bool:
    """Whether a call of the submission's code has an answer that was kept."""
    is_foreign = call.of_suite or call.is_attribute
    return call.fault is None and not (is_foreign or call.was_dropped)


def _is_wrong(call: Call, key_call: Call) -> bool:
    """Whether a call has an answer, and another one than the answer key's."""
    if not is_answered(call) or not is_answered(key_call):
        return False
    return bool(find_departures(call, key_call) & {"value", "dtype"})


def _is_ended_by_an_error(call: Call, key_call: Call) -> bool:
    """Whether an error ended a call to which the answer key has an answer."""
    if call.name != key_call.name or call.of_suite or call.is_attribute:
        return False
    return isinstance(call.fault, StudentError) and is_answered(key_call)


def _call(
    function: Any,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:
    """Call a function of the submission outside of any test's log."""
    start_log({})
    return function(*arguments, **keywords)


def _nothing_to_ask(_: str, __: Mapping[str, Any]) -> Sight:
    raise Unseen("a call that cannot be made again")
