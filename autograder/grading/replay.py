"""Failed tests that pass with stand-ins, once more with stand-ins that give the submission's own values.

A function whose answers are computed from its prerequisites' values answers then as it did without stand-ins. One that
takes the presence of stand-ins for a further try does not.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Mapping
from typing import Any

from torch.utils._pytree import tree_leaves

from autograder.errors import StudentFault
from autograder.grading.hedges import two_answers
from autograder.grading.sitting import Sitting, TestRun
from autograder.model import TwoAnswers
from autograder.sandbox.host import HostClient
from autograder.sandbox.stand_ins import WorkerObject
from autograder.sandbox.student import Handle
from autograder.suite.calls import start_log
from autograder.suite.collect import SuiteQuestion

_RUNS = ("a fresh worker, which counts", "a fresh worker with stand-ins that give the submission's own values")


class OwnFunctions:
    """The functions of a submission in a worker of their own, for stand-ins that answer as the submission does.

    Attributes:
        exact: whether all that was asked since this was last set could be answered as the submission itself would: a
            function that raises, changes its arguments or takes or gives objects does more than to return data.
    """

    def __init__(self, sitting: Sitting) -> None:
        self._student = sitting.functions()
        self.exact = True

    def named(self, name: str) -> Callable[..., Any]:
        """The function of that name, for a caller whose own calls are logged: these are not."""

        def own(*arguments: Any, **keywords: Any) -> Any:
            return contextvars.copy_context().run(self._call, name, arguments, keywords)

        return own

    def _call(self, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        log = start_log({})
        try:
            result = getattr(self._student, name)(*arguments, **keywords)
        except StudentFault as fault:
            self.exact = False
            raise ValueError(str(fault)) from None
        leaves = tree_leaves([arguments, keywords, result])
        if any(call.changed for call in log.calls) or any(isinstance(leaf, (Handle, WorkerObject)) for leaf in leaves):
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
    """The tests that only pass with stand-ins once more, with stand-ins that give the submission's own values.

    Whoever computes what the prerequisites' values say answers as without stand-ins then. Prerequisites that are
    classes are not replayed: their objects would have to live in two workers.

    Args:
        sitting: of the submission.
        seen, again: the question's runs without stand-ins and with them.
    """
    gained = [
        run
        for name, run in again.items()
        if run.verdict.outcome == "passed" and seen[name].verdict.outcome != "passed" and seen[name].calls
    ]
    stood_in = {name for run in gained for name in run.stand_ins}
    if not stood_in or any(isinstance(signatures.get(name), type) for name in stood_in):
        return ()
    with contextlib.ExitStack() as stack:
        beside = stack.enter_context(contextlib.closing(sitting.another(client)))
        own = OwnFunctions(beside)
        replay = sitting.another(client, {name: own.named(name) for name in stood_in})
        stack.enter_context(contextlib.closing(replay))
        with contextlib.suppress(StudentFault):  # its cells ran before; where they do not now, nothing can be said
            beside.place.worker()
            for run in gained:
                own.exact = True
                runs = replay.run(question, (run.name,), run.stand_ins, keep_worker=True, keep_calls=True)
                flags = two_answers(
                    {run.name: seen[run.name].calls}, {run.name: run.calls for run in runs.values()}, _RUNS, signatures
                )
                if flags and own.exact:
                    return flags
    return ()
