"""Tests that passed with stand-ins only run again, with stand-ins that give the submission's own
values.

A function that computes its answers from its prerequisites' values then answers as it did without
stand-ins. A function that takes the presence of stand-ins for a further try does not.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from autograder.basics.errors import StudentFault, StudentTimeout
from autograder.records.model import TwoAnswers
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.stand_in_answers import WorkerObject
from autograder.sandbox.student import Handle
from autograder.sitting.hedges import FRESH, find_two_answers
from autograder.sitting.sitting import HANGS_BEFORE_GIVING_UP, Sitting, TestRun
from autograder.suite.calls import start_log
from autograder.suite.collection import SuiteQuestion
from autograder.wire.trees import leaves

_RUN_NAMES = (
    FRESH,
    "a fresh worker with stand-ins that give the submission's own values",
)


class OwnFunctions:
    """The functions of a submission in a worker of their own, for stand-ins that answer as the
    submission does.

    Attributes:
        hangs: calls that did not end.
        exact: whether all calls since this was last set were answered as the submission itself
            answers. A function that raises, changes its arguments, or takes or gives objects does
            more than to return data, and makes this False.
    """

    def __init__(self, sitting: Sitting) -> None:
        self._student = sitting.functions()
        self.exact = True
        self.hangs = 0

    def wrap(
        self,
        name: str,
        key_function: Any,
    ) -> Callable[..., Any]:
        """The submission's function of that name, with the signature of the answer key's, so that
        its stand-in looks the same. The caller's log gets none of the calls.
        """

        @functools.wraps(key_function)
        def own_function(*arguments: Any, **keywords: Any) -> Any:
            return contextvars.copy_context().run(self._call, name, arguments, keywords)

        signature = inspect.signature(key_function)
        own_function.__signature__ = signature  # type: ignore[attr-defined]
        return own_function

    def _call(
        self,
        name: str,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        log = start_log({})
        try:
            result = getattr(self._student, name)(*arguments, **keywords)
        except StudentFault as fault:
            self.exact = False
            self.hangs += isinstance(fault, StudentTimeout)
            raise ValueError(str(fault)) from None
        values = leaves([arguments, keywords, result])
        has_objects = any(isinstance(value, (Handle, WorkerObject)) for value in values)
        if has_objects or any(call.changed for call in log.calls):
            self.exact = False
        return result


def replay(
    client: HostClient,
    sitting: Sitting,
    question: SuiteQuestion,
    runs: Mapping[str, TestRun],
    stand_in_runs: Mapping[str, TestRun],
    signatures: Mapping[str, Any],
) -> tuple[TwoAnswers, ...]:
    """Run a question's tests with stand-ins that give the submission's own values, and compare
    those that passed with stand-ins only: the first call that was answered differently, if any.

    A test that hung without stand-ins has no answer to compare. After the second call that does not
    end nothing is replayed any more.

    Prerequisites that are classes are not replayed: their objects would have to live in two
    workers.

    Args:
        sitting: the submission's.
        runs, stand_in_runs: the question's runs without stand-ins and with them.
        signatures: the answer key's names.
    """
    gained = [
        name
        for name, run in stand_in_runs.items()
        if run.passed
        and runs[name].calls
        and runs[name].verdict.outcome not in ("passed", "timeout")
    ]
    stand_ins = stand_in_runs[gained[0]].stand_ins if gained else ()
    if not stand_ins or any(
        isinstance(signatures.get(name), type) for name in stand_ins
    ):
        return ()
    with contextlib.ExitStack() as stack:
        own_sitting = stack.enter_context(
            contextlib.closing(sitting.start_another(client))
        )
        own = OwnFunctions(own_sitting)
        answering = {
            name: own.wrap(name, signatures[name])
            for name in stand_ins
            if name in signatures
        }
        replaying = stack.enter_context(
            contextlib.closing(sitting.start_another(client, answering))
        )
        # the submission's cells ran before; where they fail now, there is nothing to compare
        with contextlib.suppress(StudentFault):
            own_sitting.workplace.worker()
            # all tests, in their order: a call finds the state that earlier calls left behind
            for test in question.tests:
                if own.hangs >= HANGS_BEFORE_GIVING_UP:
                    break
                own.exact = True
                replayed = replaying.run(
                    question, (test.name,), stand_ins, keep_worker=True, keep_calls=True
                )
                if test.name not in gained:
                    continue
                calls = {test.name: runs[test.name].calls}
                replayed_calls = {name: run.calls for name, run in replayed.items()}
                flags = find_two_answers(calls, replayed_calls, _RUN_NAMES, signatures)
                if flags and own.exact:
                    return flags
    return ()
