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
    *,
    beside: Sequence[Fit] = (),
    may_guess: bool = False,
) -> list[Fit]:
    """The fewest mistakes that together explain the failures, the most explaining one first.

    Args:
        beside: mistakes that are chosen already; the others explain what these do not.
        may_guess: whether to choose also those of which a student must not be told, since another
            mistake may answer alike. They may have a price.
    """
    guesses = _choose(fits, answer, weights, beside, may_guess=True)
    explains_all = not answer.unexplained_by([*beside, *guesses]).failed
    if may_guess or (explains_all and not any(fit.against for fit in guesses)):
        return guesses
    return _choose(fits, answer, weights, beside, may_guess=False)


def _choose(
    fits: Sequence[Fit],
    answer: StudentAnswer,
    weights: Mapping[str, float],
    beside: Sequence[Fit],
    *,
    may_guess: bool,
) -> list[Fit]:
    failed = frozenset(answer.failed)
    unexplained = frozenset(answer.unexplained_by(beside).failed)
    chosen = list[Fit]()
    lost = weigh(failed, weights)
    while unexplained and len(chosen) < MOST_NAMED:
        candidates = []
        for fit in fits:
            against = weigh(fit.against, weights)
            against += _OTHERWISE * weigh(fit.otherwise & unexplained, weights)
            gain = weigh(fit.explained & unexplained, weights) - against
            if gain <= 0:
                continue
            if may_guess or _is_certain(fit, failed - unexplained, answer, weights):
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


def _is_certain(
    fit: Fit,
    explained: frozenset[str],
    answer: StudentAnswer,
    weights: Mapping[str, float],
) -> bool:
    """Whether a mistake may be named that leaves something unexplained: what agrees is more than
    chance can do, or it explains most of what is lost, with nothing against it.

    Args:
        explained: the tests that mistakes explain which are chosen already.
    """
    if fit.against:
        return False
    if fit.is_telling and len(fit.mistakes) == 1:
        return weigh(fit.otherwise, weights) < weigh(fit.explained, weights)
    if fit.otherwise:
        return False
    if fit.is_telling:
        return True
    # a changed argument needs no mistake that explains it
    lost = [test for test in answer.failed if answer.ways(test) != {"changed"}]
    return 2 * weigh(fit.explained | explained, weights) > weigh(lost, weights)


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
