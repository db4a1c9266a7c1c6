"""Gives each failed question of an assignment its example, where torch is loaded."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from autograder.basics.errors import KitError
from autograder.course import Assignment, Limits
from autograder.diagnosis.asking import Asker
from autograder.diagnosis.known_sitting import KnownSitting
from autograder.diagnosis.suite_inputs import call_fingerprint
from autograder.records.model import SmallExample
from autograder.sitting.sitting import TestRun
from autograder.suite.collection import SuiteQuestion
from autograder.wire.libraries import loaded_torch

if TYPE_CHECKING:
    from autograder.diagnosis.example_finder import ExampleFinder


class Examples:
    """The examples of one assignment.

    Args:
        known_sitting: has the answer key's runs.
        reference: the answer key's names.
        questions: the names of all questions.
    """

    def __init__(
        self,
        assignment: Assignment,
        known_sitting: KnownSitting,
        reference: Mapping[str, Any],
        questions: Collection[str],
        limits: Limits,
    ) -> None:
        self._assignment = assignment
        self._known_sitting = known_sitting
        self._reference = reference
        self._questions = questions
        self._limits = limits
        self._suite_inputs: dict[str, frozenset[str]] = {}
        self._finder: ExampleFinder | None = None

    def is_free(self, question: str) -> bool:
        """Whether other answers than the answer key's are right too, by all contracts of a
        question; False where nobody says.
        """
        return loaded_torch() is not None and self._open_finder().is_free(question)

    def find(
        self,
        question: SuiteQuestion,
        runs: Mapping[str, TestRun],
        asker: Asker,
    ) -> SmallExample | None:
        """The example of a failed question; None where no call shows the fault."""
        has_wrong_answer = any(run.answered and not run.passed for run in runs.values())
        if loaded_torch() is None or not has_wrong_answer:
            return None
        from autograder.diagnosis.example_finder import FailedQuestion

        key_runs = self._known_sitting.record(question, None).runs(runs)
        if question.name not in self._suite_inputs:
            calls = [call for run in key_runs.values() for call in run.calls]
            self._suite_inputs[question.name] = frozenset(map(call_fingerprint, calls))
        failed = FailedQuestion(
            question.name, runs, key_runs, self._suite_inputs[question.name]
        )
        try:
            return self._open_finder().find(
                failed,
                asker.functions,
                asker.fresh_functions,
            )
        except KitError:
            raise
        except Exception:
            # An answer in a form that nobody foresaw (an integer of 5000 digits cannot be printed)
            # has no example, and its points stand.
            return None

    def _open_finder(self) -> ExampleFinder:
        """The finder, which is made when the first question fails: it needs torch."""
        from autograder.diagnosis.example_finder import ExampleFinder

        if self._finder is None:
            self._finder = ExampleFinder(
                self._assignment.suite, self._reference, self._questions, self._limits
            )
        return self._finder
