"""Mistakes that show by a call which is not refused.

What becomes of arguments that no check looks at is chance: an answer, or an error of torch's, by
what stands behind the check in a student's code. So a missing check is recognized by the call that
it lets through, whatever that call ends in. But an error that also ends calls which are right says
nothing of checks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from autograder.basics.errors import StudentError
from autograder.diagnosis.known_sitting import AnswerRecord, Departures, unite
from autograder.diagnosis.mistake_fit import (
    Fit,
    StudentAnswer,
    end_alike,
    find_unrefused,
    raises_another_refusal,
)
from autograder.sitting.sitting import TestRun
from autograder.suite.calls import Call
from autograder.suite.known_answers import KnownAnswer

LACKS_A_CHECK = "lacks_a_check"
"""The name of a missing check that no mistake of a suite leaves out. It has no price of its own."""
_HINT = (
    "A call that should be refused with a ValueError is not: your function {does}. Which of your "
    "checks looks at what is wrong with the call, and does it come before everything else?"
)


def fit_missing_checks(
    records: Sequence[AnswerRecord],
    answer: StudentAnswer,
) -> list[Fit]:
    """The mistakes that let the calls through which the student's answer does not refuse. A test
    is left out where several mistakes with different hints do.
    """
    errors = _errors_of_right_calls(answer)
    tests_of: dict[AnswerRecord, set[str]] = {}
    for test in answer.failed:
        place = _place_of_student(answer, test, errors)
        if place is None:
            continue
        lacking = _mistakes_of_one_place(records, test, place, answer)
        hints = {record.answer.hint for record in lacking if record.answer}
        if len(hints) == 1:
            tests_of.setdefault(lacking[0], set()).add(test)
    return [
        _fit(record.answer, tests)
        for record, tests in tests_of.items()
        if record.answer is not None
    ]


def find_unknown_check(
    question: str,
    answer: StudentAnswer,
    chosen: Sequence[Fit],
) -> Fit | None:
    """The missing checks that end the failed tests which no chosen mistake explains; None where
    there are none.
    """
    errors = _errors_of_right_calls(answer)
    unexplained = answer.unexplained_by(chosen).failed
    places = {test: _place_of_student(answer, test, errors) for test in unexplained}
    lacking = {test: place for test, place in places.items() if place is not None}
    if not lacking:
        return None
    first, place = next(iter(lacking.items()))
    has_error = bool(_error_name(unexplained[first].calls[place]))
    hint = _HINT.format(does="ends in another error" if has_error else "answers it")
    return _fit(KnownAnswer(question, LACKS_A_CHECK, hint, cell=""), lacking)


def _fit(mistake: KnownAnswer, tests: Iterable[str]) -> Fit:
    """A mistake that explains these tests, and against which nothing speaks."""
    return Fit(
        (mistake,),
        frozenset(tests),
        against=frozenset(),
        otherwise=frozenset(),
        mismatch=(0, 0.0),
    )


def _place_of_student(
    answer: StudentAnswer,
    test: str,
    errors: Collection[str],
) -> int | None:
    """The place of the call that a student's answer lets through in a failed test; None where the
    test ended otherwise.

    Args:
        errors: names of errors that end right calls too.
    """
    run = answer.failed[test]
    place = _place_behind_right_calls(
        run, answer.key_runs[test], answer.departures[test]
    )
    if place is None or _error_name(run.calls[place]) in errors:
        return None
    return place


def _place_behind_right_calls(
    run: TestRun,
    key_run: TestRun,
    departures: Departures,
) -> int | None:
    """The place of the last call of a run, where it is not refused as the answer key refuses it,
    and all calls before it are right.
    """
    place = find_unrefused(run, key_run)
    return None if place is None or unite(departures[:place]) else place


def _mistakes_of_one_place(
    records: Sequence[AnswerRecord],
    test: str,
    place: int,
    answer: StudentAnswer,
) -> list[AnswerRecord]:
    """The mistakes that let the same call through as the student's answer, and end it in the same
    way. A mistake that lets an earlier call through lacks another check.
    """
    student_call = answer.failed[test].calls[place]
    return [
        record
        for record in records
        if _place_of_mistake(record, test, answer) == place
        and end_alike(student_call, record.run(test).calls[place])
    ]


def _errors_of_right_calls(answer: StudentAnswer) -> set[str]:
    """The names of the errors that have ended calls which the answer key answers."""
    names = set()
    for test, run in answer.failed.items():
        for call, key_call in zip(run.calls, answer.key_runs[test].calls, strict=False):
            if key_call.fault is None and call.fault is not None:
                names.add(_error_name(call))
    return names


def _error_name(call: Call) -> str:
    """The name of the error that a call has ended in; "" for an answer."""
    fault = call.fault
    return fault.type_name if isinstance(fault, StudentError) else ""


def _place_of_mistake(
    record: AnswerRecord,
    test: str,
    answer: StudentAnswer,
) -> int | None:
    """The place of the call that a mistake lets through in a test, where the mistake is one of
    checks alone: all else that it does is right, and it fails no test that the student passes.
    """
    if record.failed(answer.passed):
        return None
    places = {
        failed_test: _place_of_departure(record, failed_test, answer)
        for failed_test in record.failed(answer.failed)
    }
    return None if None in places.values() else places.get(test)


def _place_of_departure(
    record: AnswerRecord,
    test: str,
    answer: StudentAnswer,
) -> int | None:
    """The place of the only call in which a mistake departs from the answer key, where the answer
    key refuses that call, and the mistake lets it through.
    """
    key_run = answer.key_runs[test]
    run = record.run(test)
    place = _place_behind_right_calls(run, key_run, record.departures(test, key_run))
    if place is None or raises_another_refusal(run.calls[place]):
        return None
    return place
