"""Settles what counts of a submission's runs, and which points come back because a prerequisite
failed.

Failed questions whose prerequisites failed too run again, with stand-ins for those prerequisites. A
test that passes then is carried; a test that fails again fails by the question's own fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.sitting.charges import adjust_verdicts
from autograder.sitting.sitting import Sitting, TestRun
from autograder.suite.collection import SuiteQuestion
from autograder.suite.prerequisites import prerequisites


@dataclass(frozen=True, slots=True)
class SettledQuestion:
    """The runs of one question, adjusted.

    Attributes:
        runs: all tests, with the verdicts that count.
        stand_in_runs: failed tests once more, with stand-ins for failed prerequisites.
        carried: tests that fail in `runs` and pass with stand-ins.
    """

    runs: Mapping[str, TestRun]
    stand_in_runs: Mapping[str, TestRun]
    carried: frozenset[str]

    @property
    def has_failed(self) -> bool:
        """Whether any test failed."""
        return len(passed_tests(self.runs)) < len(self.runs)


def settle_questions(
    sitting: Sitting,
    runs: Mapping[str, Mapping[str, TestRun]],
    questions: Mapping[str, SuiteQuestion],
    reference: Mapping[str, Any],
) -> dict[str, SettledQuestion]:
    """Settle what counts of each question's runs.

    Args:
        sitting: the submission's.
        runs: by question, the runs of all its tests.
        questions: all questions of the suite, in the order of the notebook.
        reference: the answer key's names.
    """
    failed_questions = set()
    for name, question_runs in runs.items():
        if len(passed_tests(adjust_verdicts(question_runs))) < len(question_runs):
            failed_questions.add(name)
    settled = {}
    with sitting.watch.stage("carry", whole=True):
        for name, question_runs in runs.items():
            stand_in_runs: Mapping[str, TestRun] = {}
            if name in failed_questions:
                names = _choose_stand_ins(
                    prerequisites(name, sitting.uses), failed_questions, reference
                )
                stand_in_runs = _run_with_stand_ins(
                    sitting, questions[name], question_runs, names
                )
            adjusted = adjust_verdicts(question_runs, stand_in_runs)
            adjusted_stand_in_runs = adjust_verdicts(stand_in_runs, question_runs)
            carried = passed_tests(adjusted_stand_in_runs) - passed_tests(adjusted)
            settled[name] = SettledQuestion(adjusted, stand_in_runs, carried)
    return settled


def passed_tests(runs: Mapping[str, TestRun]) -> frozenset[str]:
    """The tests that count as passed."""
    return frozenset([test for test, run in runs.items() if run.passed])


def _choose_stand_ins(
    names: Sequence[str],
    failed_questions: set[str],
    reference: Mapping[str, Any],
) -> tuple[str, ...]:
    """The prerequisites to stand in for: those that failed, and along with them classes, since a
    stand-in for a function takes no objects of the student's.
    """
    failed = [name for name in names if name in failed_questions]
    if not failed:
        return ()
    classes = [name for name in names if isinstance(reference.get(name), type)]
    return tuple(dict.fromkeys([*failed, *classes]))


def _run_with_stand_ins(
    sitting: Sitting,
    question: SuiteQuestion,
    runs: Mapping[str, TestRun],
    stand_ins: tuple[str, ...],
) -> dict[str, TestRun]:
    """The failed tests of a question once more, with stand-ins; nothing where that cannot help.

    All tests of the question run, in their order, so that a fault that one call leaves behind for
    the next shows here too.
    """
    passed_and_counted = passed_tests(runs) & passed_tests(adjust_verdicts(runs))
    # Forgiven failures too: one test is charged for each cause, and with stand-ins it may pass.
    failed = [test for test in runs if test not in passed_and_counted]
    if not stand_ins or not any(runs[test].answered for test in failed):
        return {}
    stand_in_runs = sitting.run(question, stand_ins=stand_ins)
    return {test: stand_in_runs[test] for test in failed}
