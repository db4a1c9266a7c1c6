"""How well a known mistake explains a student's wrong answer.

A mistake explains a failed test where the mistake fails it too, with the same answers to the same
calls (`agreement.py`). A test that the mistake fails and the student passes, or fails otherwise,
speaks against the mistake.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from autograder.basics.errors import StudentError
from autograder.diagnosis.known_sitting import AnswerRecord, Departures, unite
from autograder.diagnosis.telling_numbers import FEWEST_TELLING, count_telling
from autograder.records.model import Diagnosis
from autograder.sitting.agreement import (
    answers_agree,
    costs_about_as_much,
    describe_form,
    distance,
    dtypes_agree,
    gradients_agree,
    tensors_moved_otherwise,
)
from autograder.sitting.sitting import TestRun
from autograder.suite.calls import Call
from autograder.suite.known_answers import KnownAnswer

_SAYS_RIGHT = re.compile(r"\bright\b", re.IGNORECASE)
"""What is in a hint that says that the answers are right: "Right numbers, but …"."""
_SIZES = {"cost of flops", "cost of largest", "cost of peak"}
"""Costs that are larger where more is computed or held than needed, in however many steps."""
_SAME = 0.01
"""Roundings up to which two answers were computed in the same way."""
_RAISES = re.compile(r".*?, line \d+, in \S+: (?:raise|assert)\b")
"""The innermost frame of an error that a statement raises which does nothing else."""


@dataclass(frozen=True, slots=True)
class StudentAnswer:
    """A student's answer to the tests of a question.

    Attributes:
        failed: the runs to be explained, in the order of the tests.
        key_runs: the answer key's runs of the failed tests.
        departures: how the failed runs depart from the answer key's.
        passed: tests that the answer passed.
    """

    failed: Mapping[str, TestRun]
    key_runs: Mapping[str, TestRun]
    departures: Mapping[str, Departures]
    passed: frozenset[str]

    def ways(self, test: str) -> frozenset[str]:
        """The ways in which a failed test's calls depart from the answer key's."""
        return unite(self.departures[test])

    def unexplained_by(self, fits: Iterable[Fit]) -> StudentAnswer:
        """The answer to the failed tests that these fits do not explain."""
        explained = unite([fit.explained for fit in fits])
        failed = {
            test: run for test, run in self.failed.items() if test not in explained
        }
        return dataclasses.replace(self, failed=failed)

    @property
    def has_wrong_values(self) -> bool:
        """Whether a function of the student's returned a wrong value.

        A suite's own code shows what the student's functions leave behind, such as torch's random
        state, and that is no value of theirs. Nor is what a refused call leaves behind.
        """
        for test, departures in self.departures.items():
            calls = zip(
                self.failed[test].calls,
                self.key_runs[test].calls,
                departures,
                strict=False,
            )
            for call, key_call, ways in calls:
                if is_refusal(key_call):
                    break
                if "value" in ways and not call.of_suite:
                    return True
        return False


@dataclass(frozen=True, slots=True)
class Fit:
    """How one mistake, or several at once, fit a student's answer.

    Attributes:
        explained: failed tests that the mistakes explain.
        against: tests that the mistakes fail and the student passes.
        otherwise: failed tests that the mistakes fail in another way.
        mismatch: in how many ways the student's answer departs from the answer key and the
            mistake's does not; then how far the answers lie apart, in roundings.
        unnamed: mistakes that have a price, and of which the student is not told: their effect is
            seen by errors alone, which another mistake may raise as well.
        own_tests: of several mistakes at once, the explained tests that each fails by itself: its
            hint stands beside these, and not beside the tests of another one.
        said: what is told in place of the hints, where they might be false; "" for the hints.
        is_telling: whether what agrees is more than chance can do: several wrong numbers, a call
            that is not refused, a cost.
    """

    mistakes: tuple[KnownAnswer, ...]
    explained: frozenset[str]
    against: frozenset[str]
    otherwise: frozenset[str]
    mismatch: tuple[int, float]
    unnamed: tuple[KnownAnswer, ...] = ()
    own_tests: Mapping[str, frozenset[str]] = field(default_factory=dict)
    said: str = ""
    is_telling: bool = True

    def diagnoses(self, tests: Sequence[str]) -> list[Diagnosis]:
        """The mistakes as the student reads of them, beside the tests that they explain."""
        return [
            Diagnosis(
                mistake.name,
                self.said or mistake.hint,
                self._tests_of(mistake, tests),
                mistake.keeps,
            )
            for mistake in self.mistakes
            if mistake not in self.unnamed
        ]

    def _tests_of(self, mistake: KnownAnswer, tests: Sequence[str]) -> tuple[str, ...]:
        """The tests beside which a mistake is told; all where it shows only beside the others."""
        own_tests = self.own_tests.get(mistake.name, frozenset(tests))
        return tuple(test for test in tests if test in own_tests) or tuple(tests)


def fit_mistake(record: AnswerRecord, answer: StudentAnswer) -> Fit | None:
    """How a mistake fits; None where it explains nothing, or its hint would be untrue."""
    assert record.answer is not None
    failed = record.failed(answer.failed)
    explained = frozenset(test for test in failed if explains(record, test, answer))
    if not explained:
        return None
    if _SAYS_RIGHT.search(record.answer.hint) and says_nothing_of_wrong_values(
        record, failed, answer
    ):
        return None
    unmatched_ways = 0
    largest_distance = 0.0
    for test in explained:
        mistake_ways = unite(record.departures(test, answer.key_runs[test]))
        unmatched_ways += len(answer.ways(test) - mistake_ways)
        test_distance = _largest_distance(
            answer.failed[test].calls, record.run(test).calls
        )
        largest_distance = max(largest_distance, test_distance)
    return Fit(
        (record.answer,),
        explained,
        against=record.failed(answer.passed),
        otherwise=failed - explained,
        mismatch=(unmatched_ways, largest_distance),
        is_telling=any(_tells(record, test, answer) for test in explained)
        or has_telling_values(record, explained, answer),
    )


def _tells(record: AnswerRecord, test: str, answer: StudentAnswer) -> bool:
    """Whether a mistake shows in a test by something else than a wrong value or an error: by a call
    that is not refused, a dtype, a gradient, an argument that is changed, a cost.
    """
    key_run = answer.key_runs[test]
    if find_unrefused(record.run(test), key_run) is not None:
        return True
    return not unite(record.departures(test, key_run)) & {"value", "fault"}


def has_telling_values(
    record: AnswerRecord, tests: Iterable[str], answer: StudentAnswer
) -> bool:
    """Whether a mistake answers enough telling values in some tests, in the calls that the
    student's runs reach.
    """
    count = 0
    for test in tests:
        runs = answer.failed[test], record.run(test), answer.key_runs[test]
        count += count_telling(zip(*[run.calls for run in runs], strict=False))
        if count >= FEWEST_TELLING:
            return True
    return False


def explains(
    record: AnswerRecord,
    test: str,
    answer: StudentAnswer,
) -> bool:
    """Whether a known mistake that fails a test fails it as the student does: equal answers to the
    calls that both made, and the same departure from the answer key.
    """
    student_calls = answer.failed[test].calls
    mistake_calls = record.run(test).calls
    key_run = answer.key_runs[test]
    calls = list(zip(student_calls, mistake_calls, strict=False))
    if not calls:
        return False
    if len(student_calls) > len(mistake_calls):
        # the student's answers have passed what ended the mistake's run
        return False
    if _both_end_without_a_refusal(record, test, answer):
        return True
    for index, (student_call, mistake_call) in enumerate(calls):
        key_call = key_run.calls[index] if index < len(key_run.calls) else None
        if not answers_agree(student_call, mistake_call, key_call):
            return False
    if not _dtypes_agree(record, test, answer):
        return False
    student_ways = unite(answer.departures[test][: len(calls)])
    mistake_ways = unite(record.departures(test, key_run)[: len(calls)])
    if not all(set(second.changed) <= set(first.changed) for first, second in calls):
        # the mistake is to write into an argument, and the student did not
        return False
    if student_ways & {"value", "fault"}:
        return bool(student_ways & mistake_ways & {"value", "fault"})
    if len(student_calls) != len(mistake_calls):
        return False
    if not mistake_ways and student_ways == {"cost of operations"}:
        # both do a little more than is needed, and the student in more steps
        return all(_have_equal_flops(*pair) for pair in calls)
    if bool(mistake_ways) != bool(student_ways):
        return False
    if not mistake_ways and not _agree_below_rounding(calls, key_run.calls):
        return False
    # The number of operations counts only where nothing else is larger: a student who leaves out
    # checks makes up for some, and one who makes large tensors needs more of them.
    telling_ways = mistake_ways - {"cost of operations"} or mistake_ways
    if not telling_ways <= student_ways:
        return False
    if mistake_ways == {"cost of operations"} and student_ways & _SIZES:
        return False
    for (student_call, mistake_call), key_call in zip(
        calls, key_run.calls, strict=False
    ):
        # whoever loads the queries too often does not visit too many keys
        moved = tensors_moved_otherwise(mistake_call, key_call)
        if not moved <= tensors_moved_otherwise(student_call, key_call):
            return False
        if not costs_about_as_much(student_call, mistake_call, key_call, telling_ways):
            return False
    if "gradient" not in mistake_ways:
        # a mistake that writes into an argument says nothing of gradients that are wrong besides
        return "gradient" not in student_ways
    return all(gradients_agree(*pair) for pair in calls)


def _agree_below_rounding(
    calls: Iterable[tuple[Call, Call]], key_calls: Iterable[Call]
) -> bool:
    """Whether a student's answers are nearer to a mistake's than to the answer key's, where all are
    equal up to rounding: a test that allows less than rounding has failed both, and any two answers
    of half precision are near each other.
    """
    for (student_call, mistake_call), key_call in zip(calls, key_calls, strict=False):
        if student_call.fault is not None or mistake_call.fault is not None:
            continue
        to_the_mistake = distance(student_call.result, mistake_call.result)
        to_the_key = distance(student_call.result, key_call.result)
        if to_the_mistake > max(_SAME, to_the_key / 2):
            return False
    return True


def _dtypes_agree(record: AnswerRecord, test: str, answer: StudentAnswer) -> bool:
    """Whether the answers of which a mistake has the dtype wrong have that dtype in the student's
    run too: who is told that float64 is too wide must have answered in float64.
    """
    calls = zip(
        answer.failed[test].calls,
        record.run(test).calls,
        record.departures(test, answer.key_runs[test]),
        strict=False,
    )
    return all(
        dtypes_agree(student_call, mistake_call)
        for student_call, mistake_call, ways in calls
        if "dtype" in ways
    )


def _have_equal_flops(student_call: Call, mistake_call: Call) -> bool:
    """Whether two calls were counted, and multiply and add as often."""
    if student_call.cost is None or mistake_call.cost is None:
        return student_call.cost is mistake_call.cost
    return student_call.cost.flops == mistake_call.cost.flops


def _both_end_without_a_refusal(
    record: AnswerRecord,
    test: str,
    answer: StudentAnswer,
) -> bool:
    """Whether a mistake's run ends with an answer to a call that the answer key refuses, as the
    student's does: what they answer there is chance, and the missing check is the mistake. So is
    which error both raise where no check is. All else in the mistake's run is right.
    """
    calls = record.run(test).calls
    key_run = answer.key_runs[test]
    if len(answer.failed[test].calls) != len(calls) or len(calls) > len(key_run.calls):
        return False
    student_call, mistake_call = answer.failed[test].calls[-1], calls[-1]
    if not is_refusal(key_run.calls[len(calls) - 1]):
        return False
    if any(map(is_refusal, (student_call, mistake_call))):
        return False
    if not end_alike(student_call, mistake_call):
        return False
    return not unite(record.departures(test, key_run)[:-1])


def end_alike(student_call: Call, mistake_call: Call) -> bool:
    """Whether two calls that should be refused end in the same way: both have an answer; or both
    raise an error where no check is, which error being chance; or both raise the same one of
    their own, where a check is there, and raises another error than it should.
    """
    student_fault, mistake_fault = student_call.fault, mistake_call.fault
    if student_fault is None or mistake_fault is None:
        return student_fault is mistake_fault
    if not isinstance(student_fault, StudentError):
        return False
    if not isinstance(mistake_fault, StudentError):
        return False
    is_checked = _raises_by_itself(student_fault)
    if is_checked != _raises_by_itself(mistake_fault):
        return False
    return not is_checked or student_fault.type_name == mistake_fault.type_name


def _raises_by_itself(fault: StudentError) -> bool:
    """Whether an error comes from a statement of the answer that does nothing else than to raise
    it, and not from what the answer computes.
    """
    return bool(fault.frames and _RAISES.match(fault.frames[-1]))


def is_refusal(call: Call) -> bool:
    """Whether a call is refused with a ValueError."""
    fault = call.fault
    return isinstance(fault, StudentError) and fault.type_name == "ValueError"


def raises_another_refusal(call: Call) -> bool:
    """Whether a call is refused by `assert`: the check is there, and its error is not the one that
    is asked for.
    """
    fault = call.fault
    return isinstance(fault, StudentError) and fault.type_name == "AssertionError"


def ends_unrefused(answer: StudentAnswer, test: str) -> bool:
    """Whether a test has ended with a call that should be refused, and was not."""
    place = find_unrefused(answer.failed[test], answer.key_runs[test])
    return place is not None


def find_unrefused(run: TestRun, key_run: TestRun) -> int | None:
    """The place of a test's last call, where the answer key refuses that call and the run does
    not: it has an answer, or another error.
    """
    place = len(run.calls) - 1
    if not 0 <= place < len(key_run.calls):
        return None
    call, key_call = run.calls[place], key_run.calls[place]
    if call.name != key_call.name or not is_refusal(key_call) or is_refusal(call):
        return None
    return place if isinstance(call.fault, StudentError | None) else None


def says_nothing_of_wrong_values(
    record: AnswerRecord,
    tests: Iterable[str],
    answer: StudentAnswer,
) -> bool:
    """Whether a mistake leaves values and dtypes right, and the student's values are wrong.

    Args:
        tests: the tests that both the mistake and the student fail.
    """
    ways = unite(
        [unite(record.departures(test, answer.key_runs[test])) for test in tests]
    )
    return answer.has_wrong_values and not ways & {"value", "fault", "dtype"}


def tests_failed_in_pair(record: AnswerRecord, answer: StudentAnswer) -> frozenset[str]:
    """The student's failed tests that a mistake fails which may be one of several at once: the
    mistake is written as changes, and fails no test that the student passes.
    """
    if record.answer is None or not record.answer.changes:
        return frozenset()
    failed = record.failed(answer.failed)
    if (
        not failed
        or says_nothing_of_wrong_values(record, failed, answer)
        or record.failed(answer.passed)
    ):
        return frozenset()
    return failed


def count_equal_forms(record: AnswerRecord, answer: StudentAnswer) -> int:
    """In how many of the student's failed tests a mistake answers in the student's form (a list,
    another shape), where that is not the answer key's.
    """
    count = 0
    for test, run in answer.failed.items():
        student_forms = [describe_form(call.result) for call in run.calls]
        key_forms = [describe_form(call.result) for call in answer.key_runs[test].calls]
        if student_forms != key_forms[: len(student_forms)]:
            mistake_forms = [
                describe_form(call.result) for call in record.run(test).calls
            ]
            count += student_forms == mistake_forms
    return count


def mistakes_seen_by_errors(
    fit: Fit,
    base: Fit | None,
    mistakes: Sequence[KnownAnswer],
    answer: StudentAnswer,
) -> tuple[KnownAnswer, ...]:
    """Of a combination's mistakes those that were added to `base`, where the tests that they
    explain show no wrong value, and no call that should be refused.
    """
    if base is None:
        return ()
    added_tests = fit.explained - base.explained
    if any(ends_unrefused(answer, test) for test in added_tests):
        return ()
    # the last calls ended the tests
    ways = unite([unite(answer.departures[test][-1:]) for test in added_tests])
    if ways & {"value", "gradient"}:
        return ()
    return tuple(mistake for mistake in mistakes if mistake not in base.mistakes)


def _largest_distance(
    student_calls: Sequence[Call], mistake_calls: Sequence[Call]
) -> float:
    distances = [
        distance(student_call.result, mistake_call.result)
        for student_call, mistake_call in zip(
            student_calls, mistake_calls, strict=False
        )
        if student_call.fault is None and mistake_call.fault is None
    ]
    return max(distances, default=0.0)
