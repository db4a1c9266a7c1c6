"""Names the known mistakes that explain a wrong answer.

The mistakes of `mistakes.py` are graded as a submission is, and their answers are stored
(`known_runs.py`), as are the answer key's. `mistake_fit.py` says how well a mistake explains what
failed. A test that the mistake fails and the student passes speaks against the mistake by the
points of the test, but does not always rule it out: a second fault may be in the way. Of a question
with several faults the fewest mistakes are named that explain what failed, the dearest first. Two
faults in one call show together only: `mistake_combinations.py` runs mistakes as one answer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from autograder.diagnosis.answer_types import fit_by_type
from autograder.diagnosis.asking import Asker, is_answered
from autograder.diagnosis.default_dtype import find_default_dtype
from autograder.diagnosis.evidence import fit_by_evidence, say_what_is_shared
from autograder.diagnosis.failure_words import describe_failures
from autograder.diagnosis.fewest_mistakes import (
    MOST_NAMED,
    choose_fewest,
    explains_half,
    weigh,
)
from autograder.diagnosis.known_sitting import (
    AnswerRecord,
    KnownSitting,
    list_departures,
    unite,
)
from autograder.diagnosis.missing_checks import find_unknown_check, fit_missing_checks
from autograder.diagnosis.mistake_combinations import MistakeCombinations
from autograder.diagnosis.mistake_fit import Fit, StudentAnswer, fit_mistake
from autograder.diagnosis.partial import fit_in_part
from autograder.diagnosis.smallest_repair import REPAIRED_KEEPS, Evidence, find_evidence
from autograder.records.model import Diagnosis, SmallExample
from autograder.sitting.charges import adjust_verdicts
from autograder.sitting.pricing import Price, price_mistake
from autograder.sitting.sitting import TestRun
from autograder.suite.collection import SuiteQuestion
from autograder.suite.known_answers import KnownAnswer
from autograder.suite.shows import read_shows
from autograder.suite.sight import look

_WORTH_NOTHING = 0.1
"""The weight of a test without points, which still says something."""


@dataclass(frozen=True, slots=True)
class NamedMistakes:
    """The mistakes that explain a question's failures.

    Attributes:
        first: the mistake that explains at least half of the lost points; where to look first.
        slips: further mistakes, each for its own tests.
        prices: what each of them costs by itself, and what a repair costs.
        evidence: what is known of the answer where no mistake is the first.
        example: a small call that shows the fault.
    """

    first: Diagnosis | None = None
    slips: tuple[Diagnosis, ...] = ()
    prices: tuple[Price, ...] = ()
    evidence: str = ""
    example: SmallExample | None = None


class Diagnostician:
    """Names the mistakes of a suite.

    Args:
        sitting: runs mistakes that have no stored runs.
        cells: the answer key's cell of each question.
    """

    def __init__(
        self,
        sitting: KnownSitting,
        mistakes: Sequence[KnownAnswer],
        cells: Mapping[str, str],
    ) -> None:
        self._sitting = sitting
        self._mistakes = mistakes
        self._combinations = MistakeCombinations(sitting, cells)

    def name_mistakes(
        self,
        question: SuiteQuestion,
        runs: Mapping[str, TestRun],
        asker: Asker,
    ) -> NamedMistakes:
        """The mistakes that explain the failed tests of a question.

        Args:
            runs: all tests of the question on the student's answer.
            asker: makes sights of the answers, and asks the student's functions again.
        """
        charged = _failed_tests(adjust_verdicts(runs))
        answer = self._read_answer(question, runs)
        records = self._records(question)
        if not charged or answer is None or not records:
            return NamedMistakes()
        points = {test.name: test.points for test in question.tests}
        # changed arguments show in every test and cost one: the others weigh nothing
        points.update(dict.fromkeys(answer.failed.keys() - charged, 0.0))
        weights = {test: points[test] or _WORTH_NOTHING for test in runs}
        fits = [
            fit
            for record in records
            if (fit := fit_mistake(record, answer)) is not None
        ]
        fits += self._find_combinations(question, records, answer, fits, weights)
        chosen = choose_fewest(fits, answer, weights)
        chosen = self._find_by_evidence(records, answer, chosen, weights, asker)
        has_known = bool(chosen)
        is_found = explains_half(chosen, answer, weights)
        check = find_unknown_check(question.name, answer, chosen)
        if check is not None and len(chosen) < MOST_NAMED:
            chosen = [*chosen, check]
            is_found = is_found or not answer.unexplained_by(chosen).failed
        evidence = None
        if not is_found:
            evidence = _find_evidence_elsewhere(chosen, answer, asker)
        is_repaired = evidence is not None and evidence.is_repair
        repaired = evidence.tests if evidence and is_repaired else frozenset[str]()
        guesses = _guess(fits, records, answer, chosen, weights, asker)
        priced = [
            *chosen,
            # what a repair makes right is charged once, as the repair
            *[guess for guess in guesses if not guess.explained & repaired],
        ]
        withheld = answer.passed.intersection(charged)
        prices = self._price(question, priced, answer, runs, withheld)
        if is_repaired:
            # a refusal that is withheld since no value is right comes back with the repair
            tests = (repaired | withheld).intersection(charged)
            prices += (price_mistake(tests, points, REPAIRED_KEEPS),)
        text = evidence.text if evidence else ""
        if not is_found and evidence is None and not has_known:
            unexplained = answer.unexplained_by(chosen)
            text = describe_failures(unexplained, charged, is_free=asker.is_free)
        diagnoses = _tell(chosen, answer, charged)
        first = diagnoses.pop(0) if is_found else None
        return NamedMistakes(first, tuple(diagnoses), prices, text)

    def _find_combinations(
        self,
        question: SuiteQuestion,
        records: Sequence[AnswerRecord],
        answer: StudentAnswer,
        fits: Sequence[Fit],
        weights: Mapping[str, float],
    ) -> list[Fit]:
        """The fits of several mistakes at once that explain more than single ones do."""
        combinations: list[Fit] = []
        for _ in range(MOST_NAMED - 1):
            all_fits = [*fits, *combinations]
            chosen = choose_fewest(all_fits, answer, weights, may_guess=True)
            combination = self._combinations.find_fit(
                question, records, answer, all_fits, chosen, weights
            )
            if combination is None:
                break
            combinations.append(combination)
        return combinations

    def show_mistakes(
        self,
        question: SuiteQuestion,
        runs: Mapping[str, TestRun],
        asker: Asker,
    ) -> list[str]:
        """All mistakes that the failed tests of a question show by evidence, for `verify`."""
        answer = self._read_answer(question, runs)
        if answer is None:
            return []
        records = self._records(question)
        fits = _fit_all_by_evidence(records, answer, asker, is_strict=True)
        return [mistake.name for fit in fits for mistake in fit.mistakes]

    def show_in_right_answer(
        self,
        question: SuiteQuestion,
        runs: Mapping[str, TestRun],
        asker: Asker,
    ) -> list[str]:
        """The mistakes whose predicates are true of any call of a right answer, for `verify`.

        Args:
            runs: with all calls.
        """
        key_runs = self._sitting.record(question, None).runs(runs)
        sights = [
            asker.make_sight(call, key_call.result)
            for test, run in runs.items()
            for call, key_call in zip(run.calls, key_runs[test].calls, strict=False)
            if is_answered(call)
            and is_answered(key_call)
            and call.name == key_call.name
        ]
        return [
            mistake.name
            for mistake in self._mistakes
            if mistake.question == question.name
            and mistake.shows
            and any(look(read_shows(mistake.shows), sight) for sight in sights)
        ]

    def _read_answer(
        self,
        question: SuiteQuestion,
        runs: Mapping[str, TestRun],
    ) -> StudentAnswer | None:
        """What is to be explained of a student's runs; None where no failed test has an answer."""
        answered = {
            test: runs[test] for test in _failed_tests(runs) if runs[test].answered
        }
        if not answered:
            return None
        key_runs = self._sitting.record(question, None).runs(answered)
        return StudentAnswer(
            failed=answered,
            key_runs=key_runs,
            departures={
                t: list_departures(run, key_runs[t]) for t, run in answered.items()
            },
            passed=frozenset(runs) - frozenset(_failed_tests(runs)),
        )

    def _find_by_evidence(
        self,
        records: Sequence[AnswerRecord],
        answer: StudentAnswer,
        chosen: Sequence[Fit],
        weights: Mapping[str, float],
        asker: Asker,
    ) -> list[Fit]:
        """The chosen mistakes, and further ones that the answers show in part or by evidence, for
        tests that no chosen one explains. What explains most comes first.
        """
        all_chosen = [*chosen, *_fit_all_by_type(records, answer, chosen, weights)]
        for find in (_fit_all_in_part, _fit_all_by_evidence, _fit_all_by_missing_check):
            remaining = answer.unexplained_by(all_chosen)
            if not remaining.failed:
                break
            unnamed = [
                record
                for record in _unnamed(records, all_chosen)
                if record.failed(remaining.failed)
            ]
            # tests that are explained already may speak against a mistake
            fits = [
                _restrict(fit, remaining.failed) for fit in find(unnamed, answer, asker)
            ]
            # a predicate is true of the answer whatever else is wrong
            is_proven = find is _fit_all_by_evidence
            further = choose_fewest(fits, remaining, weights, may_guess=is_proven)
            if is_proven:
                mistakes = [record.answer for record in records if record.answer]
                further = [say_what_is_shared(fit, mistakes) for fit in further]
            all_chosen += further[: MOST_NAMED - len(all_chosen)]
        if len(all_chosen) > len(chosen):
            all_chosen.sort(key=lambda fit: -weigh(fit.explained, weights))
        return all_chosen

    def _price(
        self,
        question: SuiteQuestion,
        chosen: Sequence[Fit],
        answer: StudentAnswer,
        runs: Mapping[str, TestRun],
        withheld: frozenset[str],
    ) -> tuple[Price, ...]:
        """What each chosen mistake costs by itself.

        Args:
            withheld: tests that passed and do not count, since the function only refused.
        """
        points = {test.name: test.points for test in question.tests}
        explained_ways = unite(
            [answer.ways(test) for fit in chosen for test in fit.explained]
        )
        prices = []
        for record in self._records(question):
            mistake = record.answer
            fit = next((fit for fit in chosen if mistake in fit.mistakes), None)
            if fit is None or mistake is None:
                continue
            failed_alone = _failed_tests(adjust_verdicts(record.runs(runs)))
            price = price_mistake(failed_alone, points, mistake.keeps)
            tests = price.tests
            if len(fit.mistakes) == 1:
                # what only several at once fail is charged beside their prices
                tests |= fit.explained
            if "value" in explained_ways:
                # A refusal that is withheld since no value is right is an effect of the mistake
                # that made the values wrong.
                tests |= withheld
            prices.append(dataclasses.replace(price, tests=tests))
        return tuple(prices)

    def _records(self, question: SuiteQuestion) -> list[AnswerRecord]:
        return [
            self._sitting.record(question, mistake)
            for mistake in self._mistakes
            if mistake.question == question.name
        ]


def _restrict(fit: Fit, tests: Collection[str]) -> Fit:
    return dataclasses.replace(fit, explained=fit.explained & frozenset(tests))


def _guess(
    fits: Sequence[Fit],
    records: Sequence[AnswerRecord],
    answer: StudentAnswer,
    chosen: Sequence[Fit],
    weights: Mapping[str, float],
    asker: Asker,
) -> list[Fit]:
    """The mistakes that fit what no chosen one explains, and are not certain enough to be told.
    They set the price of it.

    Args:
        fits: of all mistakes that agree with the answers.
    """
    if not answer.unexplained_by(chosen).failed:
        return []
    in_part = _fit_all_in_part(_unnamed(records, chosen), answer, asker)
    return choose_fewest(
        [*fits, *in_part], answer, weights, beside=chosen, may_guess=True
    )


def _tell(
    chosen: Sequence[Fit], answer: StudentAnswer, charged: Collection[str]
) -> list[Diagnosis]:
    """The chosen mistakes as the student reads of them, each beside the tests that it explains and
    that are charged for it.
    """
    diagnoses = []
    for fit in chosen:
        tests = [
            test for test in answer.failed if test in fit.explained and test in charged
        ]
        diagnoses += fit.diagnoses(tests)
    return _merge_equal_hints(diagnoses)


def _merge_equal_hints(diagnoses: Sequence[Diagnosis]) -> list[Diagnosis]:
    """The diagnoses, where each hint stands once: beside the tests of all mistakes that have it."""
    by_hint: dict[str, Diagnosis] = {}
    for diagnosis in diagnoses:
        first = by_hint.setdefault(diagnosis.hint, diagnosis)
        further_tests = [test for test in diagnosis.tests if test not in first.tests]
        by_hint[diagnosis.hint] = dataclasses.replace(
            first, tests=(*first.tests, *further_tests)
        )
    return list(by_hint.values())


def _unnamed(
    records: Sequence[AnswerRecord],
    chosen: Iterable[Fit],
) -> list[AnswerRecord]:
    """The records of mistakes that are not among the chosen ones."""
    named = {mistake for fit in chosen for mistake in fit.mistakes}
    return [record for record in records if record.answer not in named]


def _fit_all_by_type(
    records: Sequence[AnswerRecord],
    answer: StudentAnswer,
    chosen: Sequence[Fit],
    weights: Mapping[str, float],
) -> list[Fit]:
    """The mistake that an answer's type is that of, beside chosen ones that explain the numbers.
    Where nothing explains these, a type explains nothing: any numbers can have it, and would cost
    no more than it does.
    """
    if not explains_half(chosen, answer, weights):
        return []
    remaining = answer.unexplained_by(chosen)
    fits = [fit_by_type(record, remaining) for record in _unnamed(records, chosen)]
    of_type = [fit for fit in fits if fit is not None]
    return choose_fewest(of_type, remaining, weights)[:1]


def _fit_all_in_part(
    records: Sequence[AnswerRecord],
    answer: StudentAnswer,
    _: Asker,
) -> list[Fit]:
    """The mistakes that most of an answer's wrong numbers are those of."""
    fits = [fit_in_part(record, answer) for record in records]
    return [fit for fit in fits if fit is not None]


def _fit_all_by_evidence(
    records: Sequence[AnswerRecord],
    answer: StudentAnswer,
    asker: Asker,
    *,
    is_strict: bool = False,
) -> list[Fit]:
    """The mistakes that the failed tests of an answer show."""
    sights = asker.sights(answer.failed, answer.key_runs)
    fits = [
        fit_by_evidence(
            record, answer, sights, is_free=asker.is_free, is_strict=is_strict
        )
        for record in records
    ]
    return [fit for fit in fits if fit is not None]


def _fit_all_by_missing_check(
    records: Sequence[AnswerRecord],
    answer: StudentAnswer,
    _: Asker,
) -> list[Fit]:
    """The mistakes that let through what the student's answer does not refuse."""
    return fit_missing_checks(records, answer)


def _find_evidence_elsewhere(
    chosen: Sequence[Fit],
    answer: StudentAnswer,
    asker: Asker,
) -> Evidence | None:
    """What is known of the answer in the tests that no chosen mistake explains."""
    sights = asker.sights(answer.failed, answer.key_runs)
    compared = [test for test, run in answer.failed.items() if run.distances]
    unexplained = answer.unexplained_by(chosen).failed
    evidence = find_evidence(sights, unexplained, compared, is_free=asker.is_free)
    if evidence is not None and evidence.is_repair:
        return evidence
    errors = asker.error_sights(unexplained, answer.key_runs)
    return find_default_dtype(errors, len(unexplained)) or evidence


def _failed_tests(runs: Mapping[str, TestRun]) -> list[str]:
    return [test for test, run in runs.items() if not run.passed]
