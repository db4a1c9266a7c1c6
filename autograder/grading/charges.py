"""What a question's tests cost together: one mistake is charged once, and raising errors alone earns nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from autograder.grading.outcomes import Verdict
from autograder.grading.sitting import TestRun


def charged(runs: Mapping[str, TestRun], again: Mapping[str, TestRun] | None = None) -> dict[str, TestRun]:
    """The runs of a question's tests as they count; `again` are those with stand-ins.

    * A function that changes its arguments does so in every test. One test is lost for it: the first that asks for
      unchanged arguments, or else the first in which it happens.
    * A test that asks for a ValueError is passed by a function that always raises one. It counts where another test of
      the question passed in which that function answered, with stand-ins or without.
    * A wrong value on ordinary arguments, which the first test of a question has, shows in the tests after it too,
      whatever their claim is: their hints are left out.
    * An error has the cause that a test's hint names only where ordinary arguments do not raise one: where the first
      test did not pass, errors stand without hints.
    """
    return _hinted(_seen_to_answer(_charged_once(runs), (again or {}).values()))


def _charged_once(runs: Mapping[str, TestRun]) -> dict[str, TestRun]:
    by_cause = {name: run.verdict.cause for name, run in runs.items()}
    asked = [name for name, cause in by_cause.items() if cause == "changed argument, asked for"]
    found = [name for name, cause in by_cause.items() if cause == "changed argument"]
    forgiven = [*asked, *found][1:]
    return {n: _with(run, Verdict("passed")) if n in forgiven else run for n, run in runs.items()}


def _seen_to_answer(runs: Mapping[str, TestRun], again: Iterable[TestRun]) -> dict[str, TestRun]:
    answering: set[str] = set()
    for run in (*runs.values(), *again):
        if run.verdict.outcome == "passed":
            answering |= run.answering - run.refusing
    return {name: _withheld(run, answering) for name, run in runs.items()}


def _withheld(run: TestRun, answering: set[str]) -> TestRun:
    unseen = sorted(run.refusing - answering)
    if run.verdict.outcome != "passed" or not unseen:
        return run
    said = f"`{unseen[0]}` raises ValueError here. That counts once another test has got a right answer of it."
    return _with(run, Verdict("failed", said))


def _hinted(runs: Mapping[str, TestRun]) -> dict[str, TestRun]:
    first = next(iter(runs.values()), None)
    unhinted = set()
    if first is not None and first.verdict.outcome != "passed":
        unhinted = {name for name, run in runs.items() if run.verdict.cause == "raised"}
    if first is not None and first.verdict.cause == "wrong value":
        unhinted |= {name for name, run in runs.items() if run.verdict.cause == "wrong value" and run is not first}
    return {
        name: _with(run, dataclasses.replace(run.verdict, hint="")) if name in unhinted else run
        for name, run in runs.items()
    }


def _with(run: TestRun, verdict: Verdict) -> TestRun:
    return dataclasses.replace(run, verdict=verdict)
