"""Mistakes that were made at once: two faults in one call show together only, so a few groups of
known mistakes run as one answer, which is compared with the student's.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence

from autograder.diagnosis.fewest_mistakes import MOST_NAMED, explains_half
from autograder.diagnosis.known_sitting import AnswerRecord, KnownSitting, unite
from autograder.diagnosis.mistake_fit import (
    Fit,
    StudentAnswer,
    count_equal_forms,
    explains,
    fit_mistake,
    mistakes_seen_by_errors,
    tests_failed_in_pair,
)
from autograder.suite.collection import SuiteQuestion
from autograder.suite.known_answers import combine_answers

_MOST_COMBINATIONS = 60
"""Combinations of mistakes that are tried for one answer, most of them on one test only."""


class MistakeCombinations:
    """Runs several mistakes of a suite as one answer.

    Args:
        sitting: runs the answers.
        cells: the answer key's cell of each question.
    """

    def __init__(self, sitting: KnownSitting, cells: Mapping[str, str]) -> None:
        self._sitting = sitting
        self._cells = cells
        self._records: dict[tuple[str, ...], AnswerRecord | None] = {}

    def find_fit(
        self,
        question: SuiteQuestion,
        records: Sequence[AnswerRecord],
        answer: StudentAnswer,
        fits: Sequence[Fit],
        chosen: Sequence[Fit],
        weights: Mapping[str, float],
    ) -> Fit | None:
        """The fit of mistakes that together answer as the student does, the mistake that fails
        most by itself first; None where the chosen fits explain all, or no combination explains
        more.

        Where the first chosen mistake explains half of the points, one more is looked for beside
        it, or beside another one that explains as much, and else any two.

        Args:
            records: of all single mistakes of the question.
            fits: all single mistakes that explain something, and earlier combinations.
        """
        unexplained = list(answer.unexplained_by(chosen).failed)
        bases: list[Fit | None] = [None]
        if explains_half(chosen, answer, weights):
            first = chosen[0]
            as_good = [
                fit
                for fit in fits
                if fit.explained == first.explained and not fit.against
            ]
            bases = [first, *[fit for fit in as_good if fit is not first]]
        if not unexplained or (
            bases[0] is not None and len(bases[0].mistakes) == MOST_NAMED
        ):
            return None
        groups = (
            (base, *group)
            for base in bases
            for group in self._promising_groups(
                question, records, answer, base, unexplained
            )
        )
        for base, parts, record, test in itertools.islice(groups, _MOST_COMBINATIONS):
            if not record.failed([test]) or not explains(record, test, answer):
                continue
            fit = fit_mistake(record, answer)
            if fit is None or fit.against:
                continue
            if base is None or base.explained <= fit.explained:
                parts = sorted(parts, key=lambda part: -len(part.failed(answer.failed)))
                mistakes = tuple(part.answer for part in parts if part.answer)
                return dataclasses.replace(
                    fit,
                    mistakes=mistakes,
                    unnamed=mistakes_seen_by_errors(fit, base, mistakes, answer),
                    own_tests={
                        part.answer.name: part.failed(fit.explained)
                        for part in parts
                        if part.answer
                    },
                )
        return None

    def _promising_groups(
        self,
        question: SuiteQuestion,
        records: Sequence[AnswerRecord],
        answer: StudentAnswer,
        base: Fit | None,
        unexplained: Sequence[str],
    ) -> Iterator[tuple[Sequence[AnswerRecord], AnswerRecord, str]]:
        """Groups of mistakes that can be made at once, the most promising first: the records of the
        mistakes, the record of the answer with all of the mistakes, and a test on which they show.

        Promising are mistakes that answer in the student's form, and those that fail much of what
        is not explained.
        """
        parts = {}
        for record in records:
            failed = tests_failed_in_pair(record, answer)
            if failed:
                parts[record] = failed
        groups: dict[tuple[AnswerRecord, ...], frozenset[str]] = {}
        if base is not None:
            first = tuple(
                record for record in records if record.answer in base.mistakes
            )
            for record, failed in parts.items():
                if record not in first:
                    groups[*first, record] = failed
        else:
            for pair in itertools.combinations(parts, 2):
                in_both = parts[pair[0]] & parts[pair[1]]
                in_any = parts[pair[0]] | parts[pair[1]]
                if in_both:
                    groups[pair] = in_both
                elif in_any == frozenset(answer.failed):
                    # one may change what the other makes wrong: NaN that becomes 0
                    groups[pair] = in_any
        equal_forms = {record: count_equal_forms(record, answer) for record in records}

        def promise(group: Sequence[AnswerRecord]) -> tuple[int, int]:
            failed = unite([record.failed(unexplained) for record in group])
            return sum([equal_forms[record] for record in group]), len(failed)

        for group in sorted(groups, key=promise, reverse=True):
            combination = self._combined_record(question, group)
            if combination is not None:
                tests = [test for test in unexplained if test in groups[group]]
                yield group, combination, (tests or unexplained)[0]

    def _combined_record(
        self,
        question: SuiteQuestion,
        records: Sequence[AnswerRecord],
    ) -> AnswerRecord | None:
        """The record of several mistakes as one answer; None where they change one place."""
        mistakes = [record.answer for record in records if record.answer is not None]
        names = tuple(mistake.name for mistake in mistakes)
        if names not in self._records:
            answer = combine_answers(mistakes, self._cells[question.name])
            self._records[names] = (
                self._sitting.record(question, answer) if answer else None
            )
        return self._records[names]
