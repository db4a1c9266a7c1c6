"""Failed tests that pass with stand-ins, once more with stand-ins that give the submission's own
values.

A function whose answers are computed from its prerequisites' values answers then as it did without
stand-ins. One that takes the presence of stand-ins for a further try does not.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from autograder.basics.errors import StudentFault
from autograder.records.model import TwoAnswers
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.stand_in_answers import WorkerObject
from autograder.sandbox.student import Handle
from autograder.sitting.hedges import two_answers
from autograder.sitting.sitting import Sitting, TestRun
from autograder.suite.calls import start_log
from autograder.suite.collection import SuiteQuestion
from autograder.wire.trees import leaves

_RUNS = (
    "a fresh worker, which counts",
    "a fresh worker with stand-ins that give the submission's own values",
)


class OwnFunctions:
    """The functions of a submission in a worker of their own, for stand-ins that answer as the
    submission does.

    Attributes:
        exact: whether all that was asked since this was last set could be answered as the
            submission itself would: a function that raises, changes its arguments or takes or gives
                objects does more than to return data.
    """

    def __init__(self, sitting: Sitting) -> None:
        self._student = sitting.functions()
        self.exact = True

    def named(self, name: str, like: Any) -> Callable[..., Any]:
        """The function of that name with the signature of the answer key's, so that its stand-in
        looks the same. The log of whoever calls it has none of its calls.
        """

        @functools.wraps(like)
        def own(*arguments: Any, **keywords: Any) -> Any:
            return contextvars.copy_context().run(self._call, name, arguments, keywords)

        own.__signature__ = inspect.signature(like)  # type: ignore[attr-defined]
        return own

    def _call(self, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        log = start_log({})
        try:
            result = getattr(self._student, name)(*arguments, **keywords)
        except StudentFault as fault:
            self.exact = False
            raise ValueError(str(fault)) from None
        values = leaves([arguments, keywords, result])
        if any(call.changed for call in log.calls) or any(
            isinstance(leaf, (Handle, WorkerObject)) for leaf in values
        ):
            self.exact = False
        return result


def replayed(
    client: HostClient,
    sitting: Sitting,
    question: SuiteQuestion,
    seen: Mapping[str, TestRun],
    again: Mapping[str, TestRun],
    signatures: Mapping[str, Any],
) -> tuple[TwoAnswers, ...]:
    """The tests that only pass with stand-ins once more, with stand-ins that give the submission's
    own values.

    Whoever computes what the prerequisites' values say answers as without stand-ins then.
    Prerequisites that are classes are not replayed: their objects would have to live in two
    workers.

    Args:
        sitting: of the submission.
        seen, again: the question's runs without stand-ins and with them.
    """
    gained = {
        name: run.stand_ins
        for name, run in again.items()
        if run.verdict.outcome == "passed"
        and seen[name].verdict.outcome != "passed"
        and seen[name].calls
    }
    stand_ins = next(iter(gained.values()), ())
    if not stand_ins or any(isinstance(signatures.get(name), type) for name in stand_ins):
        return ()
    with contextlib.ExitStack() as stack:
        beside = stack.enter_context(contextlib.closing(sitting.another(client)))
        own = OwnFunctions(beside)
        answering = {
            name: own.named(name, signatures[name]) for name in stand_ins if name in signatures
        }
        replay = stack.enter_context(contextlib.closing(sitting.another(client, answering)))
        # its cells ran before; where they do not now, nothing can be said
        with contextlib.suppress(StudentFault):
            beside.place.worker()
            # all, in their order: what one call leaves behind for the next is there again
            for test in question.tests:
                own.exact = True
                runs = replay.run(
                    question, (test.name,), stand_ins, keep_worker=True, keep_calls=True
                )
                if test.name not in gained:
                    continue
                calls = {name: run.calls for name, run in runs.items()}
                flags = two_answers({test.name: seen[test.name].calls}, calls, _RUNS, signatures)
                if flags and own.exact:
                    return flags
    return ()
