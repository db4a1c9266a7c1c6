"""Finds for a failed question a small call that shows the fault, for the student to try.

The call of a failed test is made smaller as long as the answer differs from the right one in the
same way. Where the call cannot be made again (it is a method, or has objects among its arguments),
scripts that the suite writes for students, or that the question's contract allows, are tried. The
search is bounded by counts and not by time, so the same submission gets the same example.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from autograder.basics.errors import StudentError
from autograder.basics.safe_text import clean, one_line
from autograder.course import Limits
from autograder.diagnosis.example_scripts import PlannedScript, ScriptPlanner
from autograder.diagnosis.example_texts import (
    EASY_CALL,
    answer_text,
    call_for_a_page,
    write_example,
)
from autograder.diagnosis.faint_differences import (
    COSTS,
    describe_cost,
    describe_missing_names,
)
from autograder.diagnosis.script_judge import ROUNDINGS, AnswerDifference, ScriptJudge
from autograder.diagnosis.script_play import StudentPlayer
from autograder.diagnosis.shrinking import Shrunk, shrink
from autograder.diagnosis.suite_inputs import is_of_suite
from autograder.records.model import SmallExample
from autograder.sandbox.bounds import OutOfTime, memory_bound, time_bound
from autograder.sandbox.student import Student
from autograder.sitting.agreement import find_departures, without_addresses
from autograder.sitting.charges import adjust_verdicts
from autograder.sitting.sitting import TestRun
from autograder.suite.calls import Call, CallLog
from autograder.suite.script_steps import StepAnswer
from autograder.suite.scripts import Script, float_dtypes

_MOST_IN_FRESH_WORKERS = 8
"""Scripts that are tried in workers of their own, where the answers have a memory."""
_MOST_IN_VAIN = 8000
"""Torch operations of the answer key for scripts that showed no difference, after which no further
script is tried. Of seven hundred known mistakes three would have an example behind these.
"""
_SEEN_AT_ONCE = 0.02
"""The difference, as a share of the largest number of a row, that a person sees at once."""


@dataclass(frozen=True, slots=True)
class FailedQuestion:
    """What is known of a question that failed by its own fault.

    Attributes:
        runs: all tests of the question, with right prerequisites.
        key_runs: the answer key's runs of the failed ones.
        suite_inputs: fingerprints of the calls of all tests.
    """

    name: str
    runs: Mapping[str, TestRun]
    key_runs: Mapping[str, TestRun]
    suite_inputs: Collection[str]


@dataclass(slots=True)
class _WrongCalls:
    """What failed tests show of an answer.

    Attributes:
        calls: calls of the question with a wrong value or an exception.
        is_seen_elsewhere: whether what the suite's own code got of it, or an attribute, is wrong.
        in_words: the first call that differs in another way.
        faintly: of the tests in which no call differs so, the first call that costs a little more
            than the answer key's, or whose exception names less.
    """

    calls: list[Call] = field(default_factory=list)
    is_seen_elsewhere: bool = False
    in_words: SmallExample | None = None
    faintly: SmallExample | None = None


class ExampleFinder:
    """Finds examples for the questions of one suite.

    Args:
        suite: the suite's folder.
        reference: the answer key's names.
        questions: the names of all questions.
    """

    def __init__(
        self,
        suite: Path,
        reference: Mapping[str, Any],
        questions: Collection[str],
        limits: Limits,
    ) -> None:
        self._planner = ScriptPlanner(suite, reference, limits)
        self._reference = reference
        self._questions = questions
        self._limits = limits

    def find(
        self,
        question: FailedQuestion,
        open_functions: Callable[[], Student | None],
        open_fresh_functions: Callable[[], Student | None],
    ) -> SmallExample | None:
        """The example of a question; None where no call shows the fault.

        Args:
            open_functions: gives the submission's functions when the first call is made.
            open_fresh_functions: gives functions that remember nothing, each time.
        """
        wrong = self._wrong_calls(question)
        if not wrong.calls and not wrong.is_seen_elsewhere:
            return wrong.in_words or wrong.faintly
        student = open_functions()
        if student is None:
            return None
        player = StudentPlayer(student, self._reference)
        has_stand_ins = any(run.stand_ins for run in question.runs.values())
        note = ""
        if has_stand_ins:
            note = "Seen with right answers in place of earlier questions that are not right yet."
        long_examples = []
        searches = []
        operations_in_vain = 0
        for planned in self._planner.scripts(question.name, wrong.calls):
            if operations_in_vain > _MOST_IN_VAIN:
                break
            is_as_it_is = planned.most_candidates == 1
            if is_as_it_is and call_for_a_page(planned.script) is None:
                continue
            search = _Search(planned, player, self._limits)
            searches.append(search)
            example = search.find(question.suite_inputs)
            if search.is_over:
                return None
            if example is None:
                operations_in_vain += planned.operations
                continue
            if searches[0].is_remembered() or search.is_remembered():
                # what earlier scripts have left behind would be the example's, too
                example = self._find_in_fresh_workers(
                    searches, question.suite_inputs, open_fresh_functions
                )
                if example is None:
                    return wrong.in_words
            # None for a call that is too long for a page
            written = write_example(
                example.script,
                example.difference,
                note,
            )
            if written is None:
                continue
            if len(written.call) <= EASY_CALL:
                return written
            long_examples.append(written)
        if long_examples:
            return min(long_examples, key=lambda example: len(example.call))
        return wrong.in_words

    def _find_in_fresh_workers(
        self,
        searches: Sequence[_Search],
        suite_inputs: Collection[str],
        open_fresh_functions: Callable[[], Student | None],
    ) -> Shrunk | None:
        """The first planned script that shows the same difference in two workers of its own, as it
        is.
        """
        for search in searches[:_MOST_IN_FRESH_WORKERS]:
            examples = []
            for _ in range(2):
                student = open_fresh_functions()
                if student is None:
                    return None
                player = StudentPlayer(student, self._reference)
                fresh_search = _Search(search.planned, player, self._limits)
                example = fresh_search.find_unchanged(suite_inputs)
                if example is None:
                    break
                examples.append(example)
            texts = [
                write_example(example.script, example.difference, "")
                for example in examples
            ]
            if len(texts) == 2 and texts[0] == texts[1]:
                return examples[0]
        return None

    def _wrong_calls(self, question: FailedQuestion) -> _WrongCalls:
        """The calls of failed tests that differ from the answer key's."""
        wrong = _WrongCalls()
        is_free = self.is_free(question.name)
        for test, run in adjust_verdicts(question.runs).items():
            key_run = question.key_runs.get(test)
            if run.passed or key_run is None or not run.answered:
                continue
            pairs = zip(run.calls, key_run.calls, strict=False)
            same_calls = list(itertools.takewhile(_is_same_call, pairs))
            departs = False
            of_test = []
            for call, key_call in same_calls:
                ways = find_departures(call, key_call)
                departs |= bool(ways)
                is_error = isinstance(call.fault, StudentError)
                is_error = is_error and key_call.fault is None
                is_wrong = is_error or bool(ways & {"value", "dtype", "changed"})
                is_of_other = self._is_of_other(question.name, call)
                if call.of_suite or call.is_attribute or is_of_other:
                    wrong.is_seen_elsewhere |= is_wrong
                elif is_wrong:
                    of_test.append(call)
                elif ways and wrong.in_words is None:
                    wrong.in_words = self._in_words(call, key_call, ways)
            # of a question with many right answers, those before the last did not end the test
            wrong.calls += of_test[-1:] if is_free else of_test
            if not departs and wrong.faintly is None:
                wrong.faintly = self._faintly(question.name, same_calls)
        return wrong

    def _is_of_other(
        self,
        question: str,
        call: Call,
    ) -> bool:
        function = call.name.partition(".")[0]
        return function != question and function in self._questions

    def _in_words(
        self,
        call: Call,
        key_call: Call,
        ways: Collection[str],
    ) -> SmallExample | None:
        """A difference that is no value: one of costs, of gradients, or of exceptions."""
        if isinstance(key_call.fault, StudentError):
            note = f"must raise {key_call.fault.type_name}; yours returns an answer."
            if isinstance(call.fault, StudentError):
                raised = clean(one_line(call.fault.type_name), 60)
                note = f"must raise {key_call.fault.type_name}; yours raises {raised}."
            elif call.fault is not None:
                return None
        elif "gradient" in ways:
            note = "has the right value; its gradients are not right."
        else:
            costs = [
                words for cost, words in COSTS.items() if f"cost of {cost}" in ways
            ]
            if not costs:
                return None
            note = f"has the right value; {costs[0]}."
        return SmallExample(CallLog(self._reference).describe(call), note=note)

    def _faintly(
        self,
        question: str,
        same_calls: Collection[tuple[Call, Call]],
    ) -> SmallExample | None:
        """The first difference in a cost or in the text of an exception among a test's calls, none
        of which shows a larger one.
        """
        for call, key_call in same_calls:
            missing_names = describe_missing_names(call, key_call)
            note = missing_names or describe_cost(call, key_call)
            if note and call.name.partition(".")[0] == question:
                return SmallExample(CallLog(self._reference).describe(call), note=note)
        return None

    def is_free(self, question: str) -> bool:
        """Whether other answers than the answer key's are right too, by all contracts of a
        question; False where nobody says.
        """
        contracts = self._planner.contracts_of(question)
        return bool(contracts) and all(
            contract.right_if is not None for contract in contracts
        )


class _Search:
    """Makes one script smaller.

    Attributes:
        is_over: whether the submission hung or crashed: it is asked nothing more.
    """

    def __init__(
        self,
        planned: PlannedScript,
        student: StudentPlayer,
        limits: Limits,
    ) -> None:
        self.planned = planned
        self._script = planned.script
        self._rules = planned.rules
        self._student = student
        self._limits = limits
        self._first_answers: Sequence[StepAnswer] | None = None
        self._early_answers: Sequence[StepAnswer] = ()
        self._dtypes = float_dtypes(self._script).union(
            *[contract.dtypes for contract in self._rules.contracts]
            or [("float32", "float64")]
        )
        self.is_over = False

    def find(self, suite_inputs: Collection[str]) -> Shrunk | None:
        """The smallest script that shows a difference twice, and is no test's."""
        # the first script may be a test's; what it becomes may be no other test's
        others = set(suite_inputs).difference(self.planned.fingerprints)
        tolerance = self._rules.tolerance
        judge = self._rules.judge(tolerance)
        examine_closely = self._examiner(judge, others)
        if examine_closely(self._script) is None:
            return None
        rough_judge = judge.with_tolerance(_clear_differences(tolerance))
        examine_roughly = self._examiner(rough_judge, others)
        for examine in (examine_roughly, examine_closely):
            shrunk = shrink(self._script, examine, self.planned.most_candidates)
            if self.is_over:
                return None
            if shrunk is not None:
                return self._settle(shrunk, examine, suite_inputs)
        return None

    def find_unchanged(self, suite_inputs: Collection[str]) -> Shrunk | None:
        """The planned script itself, where it shows a difference and is no test's."""
        if is_of_suite(self._script, suite_inputs):
            return None
        judge = self._rules.judge(self._rules.tolerance)
        difference = self._examiner(judge, suite_inputs)(self._script)
        if difference is None:
            return None
        # later steps are about what the difference has left
        steps = self._script.steps[: difference.step + 1]
        script = dataclasses.replace(self._script, steps=steps)
        return Shrunk(script, difference, 1)

    def is_remembered(self) -> bool:
        """Whether the planned script is answered otherwise than it was at first."""
        try:
            now = self._student.play(self._script)
        except OutOfTime:
            return True
        return _texts_of(self._early_answers) != _texts_of(now)

    def _examiner(
        self,
        judge: ScriptJudge,
        suite_inputs: Collection[str],
    ) -> Callable[[Script], AnswerDifference | None]:
        limits = self._limits

        def examine(script: Script) -> AnswerDifference | None:
            if self.is_over or not self._is_allowed(script, suite_inputs):
                return None
            try:
                with memory_bound(limits.memory_mb), time_bound(limits.call_seconds):
                    difference = self._difference(judge, script)
            except OutOfTime:
                self.is_over = True
                return None
            self.is_over = difference is not None and difference.kind == "fault"
            return None if self.is_over else difference

        return examine

    def _difference(
        self, judge: ScriptJudge, script: Script
    ) -> AnswerDifference | None:
        """The difference that a script shows; the planned one is played once for all judges."""
        if script is self._script:
            if self._first_answers is None:
                self._first_answers = self._student.play(script)
                self._early_answers = self._early_answers or self._first_answers
            return judge.difference(
                script,
                self._first_answers,
                self.planned.right_answers,
            )
        right_answers = judge.right_answers(script)
        if right_answers is None:
            return None
        return judge.difference(script, self._student.play(script), right_answers)

    def _is_allowed(
        self,
        script: Script,
        suite_inputs: Collection[str],
    ) -> bool:
        if script is self._script:  # it was planned, so it is allowed
            return True
        # nobody says whether the axes of a batch may be left out
        if not float_dtypes(script) <= self._dtypes or not _axes(script) <= _axes(
            self._script
        ):
            return False
        if not self._rules.allows(script):
            return False
        return not is_of_suite(script, suite_inputs)

    def _settle(
        self,
        shrunk: Shrunk,
        examine: Callable[[Script], AnswerDifference | None],
        suite_inputs: Collection[str],
    ) -> Shrunk | None:
        """The script with other numbers if it is a test's; None where the difference does not show
        again.
        """
        candidates: Iterator[Script] = iter([shrunk.script])
        if is_of_suite(shrunk.script, suite_inputs):
            candidates = _with_other_numbers(shrunk.script)
        for script in candidates:
            if is_of_suite(script, suite_inputs):
                continue
            self._first_answers = None
            first = examine(script)
            self._first_answers = None
            second = examine(script) if first is not None else None
            if first is None or second is None or not first.is_like(shrunk.difference):
                continue
            if write_example(script, first, "") == write_example(script, second, ""):
                return Shrunk(script, second, shrunk.candidates)
        return None


def _clear_differences(tolerance: Mapping[str, float]) -> dict[str, float]:
    """By dtype, from which share on a difference is seen at once; never less than is allowed."""
    allowed = {**ROUNDINGS, **tolerance}
    return {dtype: max(_SEEN_AT_ONCE, share) for dtype, share in allowed.items()}


def _texts_of(answers: Sequence[StepAnswer]) -> list[str]:
    """The answers, or what ended them, as texts."""
    return [
        answer_text(answer.value, is_rounded=True)
        + without_addresses(repr(answer.fault))
        for answer in answers
    ]


def _is_same_call(pair: tuple[Call, Call]) -> bool:
    call, key_call = pair
    return call.name == key_call.name


def _axes(script: Script) -> set[int]:
    """The numbers of axes of the tensors."""
    return {leaf.ndim for leaf in script.leaves() if isinstance(leaf, torch.Tensor)}


def _with_other_numbers(script: Script) -> Iterator[Script]:
    """The script with other numbers of the same sizes."""
    changes: tuple[Callable[[Any], Any], ...] = (
        lambda number: number + 1,
        lambda number: 2 * number,
        lambda number: -number,
        lambda number: number + 2,
    )
    for change in changes:

        def changed(leaf: Any, change: Callable[[Any], Any] = change) -> Any:
            is_number = isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
            return change(leaf) if is_number or type(leaf) is float else leaf

        yield script.map_arguments(changed)
    yield script.map_arguments(lambda leaf: leaf + 1 if type(leaf) is int else leaf)
