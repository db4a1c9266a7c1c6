"""Mistakes that show by evidence, where no mistake answers as the student does: a predicate says
what is true of the answer whatever else is wrong (`shows=` in mistakes.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from autograder.diagnosis.asking import PlacedSight
from autograder.diagnosis.known_sitting import AnswerRecord
from autograder.diagnosis.mistake_fit import Fit, StudentAnswer
from autograder.suite.known_answers import KnownAnswer
from autograder.suite.shows import read_shows
from autograder.suite.sight import Sight, look, look_safely

_OFTEN = 4
"""How many answers must show a mistake for each that shows the contrary, which a second fault can
make.
"""


def fit_by_evidence(
    record: AnswerRecord,
    answer: StudentAnswer,
    sights: Mapping[str, Sequence[PlacedSight]],
    *,
    is_free: bool = False,
    is_strict: bool = False,
) -> Fit | None:
    """How a mistake fits by what the student's answers show; None where they do not show it, or
    some show that the mistake was not made.

    Args:
        sights: of the failed tests.
        is_free: whether other answers than the answer key's are right too.
        is_strict: whether a predicate may raise an exception, for `verify` to tell; in grading it
            shows nothing then.
    """
    mistake = record.answer
    if mistake is None or not mistake.shows:
        return None
    telling = _telling_sights(record, answer, sights, is_free=is_free)
    against = record.failed(answer.passed)
    if len(against) > len(telling):
        return None
    predicate = read_shows(mistake.shows)
    see = look if is_strict else look_safely
    explained = set()
    count = sum(map(len, telling.values()))
    all_verdicts: list[bool | None] = []
    for test, of_test in telling.items():
        verdicts = [see(predicate, sight) for sight in of_test]
        all_verdicts += verdicts
        if True in verdicts and False not in verdicts:
            explained.add(test)
        contrary = all_verdicts.count(False)
        if _OFTEN * contrary > count - contrary:
            return None  # whatever the other calls show: the student's function is not asked
    contradicted = _OFTEN * all_verdicts.count(False) > all_verdicts.count(True)
    if contradicted or not explained or 2 * len(explained) < len(telling):
        return None
    if len(against) > len(explained):
        return None
    return Fit(
        (mistake,),
        frozenset(explained),
        against=against,
        otherwise=frozenset(),
        mismatch=(-len(predicate.parts), 0.0),
    )


def _telling_sights(
    record: AnswerRecord,
    answer: StudentAnswer,
    sights: Mapping[str, Sequence[PlacedSight]],
    *,
    is_free: bool,
) -> dict[str, list[Sight]]:
    """By failed test, the sights of calls in which the mistake's own answer is wrong: elsewhere the
    student's shows nothing of the mistake. Tests without such calls are left out.

    Of a free question the mistake's own answer may be wrong in another call of the test.
    """
    telling = {}
    for test in sorted(record.failed(answer.failed)):
        departures = record.departures(test, answer.key_runs[test])
        of_test = [
            sight
            for place, sight in sights[test]
            if is_free or (place < len(departures) and departures[place])
        ]
        if of_test:
            telling[test] = of_test
    return telling


def say_what_is_shared(fit: Fit, mistakes: Sequence[KnownAnswer]) -> Fit:
    """The fit of a mistake by evidence, told by the predicate's own sentence where another mistake
    with another hint shows by the same predicate: either hint would be false of the other's answer.

    Args:
        mistakes: all of the question.
    """
    (mistake,) = fit.mistakes
    predicate = read_shows(mistake.shows)
    hints = {
        mistake.hint
        for mistake in mistakes
        if mistake.shows and read_shows(mistake.shows).parts == predicate.parts
    }
    if len(hints) == 1:
        return fit
    shown = predicate.said or predicate.text
    said = f"In the calls that are wrong, your answer {shown}."
    return dataclasses.replace(fit, said=said)
