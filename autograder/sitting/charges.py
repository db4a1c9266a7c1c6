"""Verdicts as they count, after all tests of a question have run.

One fault is charged to one test, and raising errors alone earns nothing. `pricing.py` says what a
question loses where a known mistake explains the failures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from autograder.basics.safe_text import describe_test
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Verdict


def adjust_verdicts(
    runs: Mapping[str, TestRun], further_runs: Mapping[str, TestRun] | None = None
) -> dict[str, TestRun]:
    """The runs of a question's tests with the verdicts that count.

    * A function that changes its arguments does so in every test. One test is lost for it: the
      first that asks for unchanged arguments, or else the first in which it happens.
    * A test that asks for a ValueError is passed by a function that always raises one. It counts
      where another test of the question passed in which that function answered, with stand-ins or
      without.
    * A wrong value on ordinary arguments, which the first test of a question has, shows in the
      tests after it too, whatever their claim is: their hints are left out.
    * An error has the cause that a test's hint names only where ordinary arguments do not raise
      one: where the first test did not pass, errors stand without hints.

    Args:
        further_runs: runs of the same tests with stand-ins, or without where `runs` have them.
    """
    adjusted = dict(runs)
    _forgive_changed_arguments(adjusted)
    _withhold_refusals(adjusted, further_runs or {})
    _drop_hints(adjusted)
    return adjusted


def _forgive_changed_arguments(runs: dict[str, TestRun]) -> None:
    """Charge one test for changed arguments, and let the others pass."""
    asking_tests = []
    other_tests = []
    for name, run in runs.items():
        if run.verdict.cause == "changed argument, asked for":
            asking_tests.append(name)
        elif run.verdict.cause == "changed argument":
            other_tests.append(name)
    for name in [*asking_tests, *other_tests][1:]:
        _set_verdict(runs, name, Verdict("passed"))


def _withhold_refusals(
    runs: dict[str, TestRun], further_runs: Mapping[str, TestRun]
) -> None:
    """Fail passed tests whose function refused, and never answered in a passed test."""
    answering: set[str] = set()
    for run in (*runs.values(), *further_runs.values()):
        if run.passed:
            answering |= run.answering - run.refusing
    for name, run in runs.items():
        only_refusing = sorted(run.refusing - answering)
        if run.passed and only_refusing:
            function = only_refusing[0]
            message = (
                f"`{function}` raises ValueError here, as it should. A function that always raises "
                f"it would too, so this counts once {_describe_asking_test(runs, function)} gets "
                f"a right answer from `{function}`."
            )
            _set_verdict(runs, name, Verdict("failed", message))


def _describe_asking_test(runs: Mapping[str, TestRun], function: str) -> str:
    """The first failed test that does not ask the function for an error, in words."""
    for name, run in runs.items():
        if not run.passed and function not in run.refusing:
            return f'the test "{describe_test(name)}"'
    return "another test of this question"


def _drop_hints(runs: dict[str, TestRun]) -> None:
    """Leave out hints that would name another cause than the first test's failure shows."""
    first = next(iter(runs.values()), None)
    if first is None or first.passed:
        return
    for name, run in runs.items():
        cause = run.verdict.cause
        repeats_first = (
            cause == "wrong value" == first.verdict.cause and run is not first
        )
        if cause == "raised" or repeats_first:
            _set_verdict(runs, name, dataclasses.replace(run.verdict, hint=""))


def _set_verdict(
    runs: dict[str, TestRun],
    name: str,
    verdict: Verdict,
) -> None:
    runs[name] = dataclasses.replace(runs[name], verdict=verdict)
