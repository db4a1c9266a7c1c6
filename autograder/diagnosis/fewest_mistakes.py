"""Chooses, of the mistakes that fit an answer, the fewest that explain its failures.

What speaks against a mistake is weighed by the points of the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from autograder.diagnosis.mistake_fit import Fit, StudentAnswer

FIRST_SHARE = 0.5
"""The share of the lost points that a mistake explains for which a student should look first."""
MOST_NAMED = 3
_OTHERWISE = 0.25
"""How much a test that a mistake fails in another way speaks against the mistake, beside a test
that the student passes.
"""


def choose_fewest(
    fits: Sequence[Fit],
    answer: StudentAnswer,
    weights: Mapping[str, float],
) -> list[Fit]:
    """The fewest mistakes that together explain the failures, the most explaining one first."""
    unexplained = frozenset(answer.failed)
    chosen = list[Fit]()
    lost = weigh(unexplained, weights)
    while unexplained and len(chosen) < MOST_NAMED:
        candidates = []
        for fit in fits:
            against = weigh(fit.against, weights)
            against += _OTHERWISE * weigh(fit.otherwise & unexplained, weights)
            gain = weigh(fit.explained & unexplained, weights) - against
            if gain > 0:
                candidates.append((gain, fit))
        if not candidates:
            break
        _, best = max(candidates, key=lambda candidate: candidate[0])
        if chosen or 2 * weigh(best.explained, weights) < lost:
            # a mistake that explains little is named only where nothing speaks against it: not
            # where an explained test is failed otherwise, unless the two are run as one answer
            candidates = [
                (gain, fit)
                for gain, fit in candidates
                if not fit.against and not fit.otherwise
            ]
            if not candidates:
                break

        def rank(
            candidate: tuple[float, Fit],
        ) -> tuple[float, float, tuple[int, float], float]:
            gain, fit = candidate
            doubts = weigh(fit.against | fit.otherwise, weights)
            # of two that answer alike the dearer one: else a second fault would make an answer
            # that misses the point cheaper, by hiding behind a slip
            keeps = min(mistake.keeps for mistake in fit.mistakes)
            return -round(gain, 6), doubts, fit.mismatch, keeps

        _, best = min(candidates, key=rank)
        chosen.append(best)
        unexplained -= best.explained
    return chosen


def weigh(tests: Iterable[str], weights: Mapping[str, float]) -> float:
    """The weight of several tests together."""
    return sum([weights[test] for test in tests])


def explains_half(
    chosen: Sequence[Fit],
    answer: StudentAnswer,
    weights: Mapping[str, float],
) -> bool:
    """Whether the first chosen mistake explains so much that a student should look there first."""
    if not chosen:
        return False
    lost = weigh(answer.failed, weights)
    return weigh(chosen[0].explained, weights) >= FIRST_SHARE * lost
