"""What a suite is worth, in figures: what mistakes cost, which tests catch nothing, what empty
answers score.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from autograder.proof.cost_exceptions import FILE, Said
from autograder.proof.mutants import Judged
from autograder.proof.trials import Tried
from autograder.proof.wrapped import TRIVIAL
from autograder.suite.collection import SuiteQuestion

MOST_FOR_A_SLIP = 1 / 2
"""The largest share of its question's points that a mistake may lose: a right idea with one
slip.
"""
LEAST_FOR_THE_POINT = 1 / 3
"""The smallest share of its question's points that a mistake loses which misses the point of the
question.
"""
MOST_FOR_NOTHING = 0.05
"""The largest share of its points that a question may give to an answer without an idea."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Cost:
    """What one known mistake loses.

    Attributes:
        lost: the share of its question's points.
        tests: those with points that it fails.
        said: what the suite's `costs.toml` says of it.
    """

    name: str
    lost: float
    tests: tuple[str, ...]
    said: Said | None = None


@dataclass(frozen=True, slots=True)
class QuestionFigures:
    """One question of a suite.

    Attributes:
        idle: tests with points that no known mistake fails.
        trivial: the share of the points that each answer without an idea scores.
        furthest_right, nearest_wrong: how far right answers were from the expected values at most,
            and known mistakes that failed by their values at least, as multiples of what is
            allowed; None where nothing was compared.
        mutants: those that were tried.
    """

    name: str
    points: float
    tests: int
    alternates: int
    mistakes: tuple[Cost, ...]
    idle: tuple[str, ...]
    trivial: Mapping[str, float]
    furthest_right: float | None
    nearest_wrong: float | None
    mutants: tuple[Judged, ...]

    @property
    def caught_once(self) -> tuple[str, ...]:
        """Mistakes that one test alone catches."""
        return tuple(mistake.name for mistake in self.mistakes if len(mistake.tests) == 1)

    @property
    def median_lost(self) -> float:
        """What its mistakes lose of its points: the median, as a share."""
        return statistics.median([mistake.lost for mistake in self.mistakes] or [0.0])

    @property
    def most_lost(self) -> float:
        """What its dearest mistake loses of its points, as a share."""
        return max([mistake.lost for mistake in self.mistakes] or [0.0])

    def exceptions(self, kind: str) -> int:
        """How many of its mistakes are listed as `kind` in costs.toml."""
        return sum(
            mistake.said is not None and mistake.said.kind == kind for mistake in self.mistakes
        )

    def count(self, fate: str) -> int:
        """How many of its mutants met this fate."""
        return sum(one.fate == fate for one in self.mutants)


def question_figures(
    questions: Iterable[SuiteQuestion],
    tried: Iterable[Tried],
    mutants: Sequence[Judged],
    costs: Mapping[tuple[str, str], Said],
) -> list[QuestionFigures]:
    """The figures of each question of which something was tried, in their order.

    Args:
        costs: what `costs.toml` says of single answers, by question and name.
    """
    by_question: dict[str, list[Tried]] = {}
    for outcome in tried:
        if outcome.trial.draw == 0 and not outcome.problem:
            by_question.setdefault(outcome.trial.question, []).append(outcome)
    return [
        _figures(question, by_question[question.name], mutants, costs)
        for question in questions
        if question.name in by_question
    ]


def _figures(
    question: SuiteQuestion,
    tried: Sequence[Tried],
    mutants: Sequence[Judged],
    costs: Mapping[tuple[str, str], Said],
) -> QuestionFigures:
    worth = {test.name: test.points for test in question.tests if test.points > 0}
    mistakes = [outcome for outcome in tried if outcome.trial.kind == "mistake"]
    right = [outcome for outcome in tried if outcome.trial.kind in ("key", "alternate")]
    caught = {test for mistake in mistakes for test in mistake.failed}
    return QuestionFigures(
        name=question.name,
        points=question.points,
        tests=len(question.tests),
        alternates=sum(outcome.trial.kind == "alternate" for outcome in tried),
        mistakes=tuple(
            _cost(one, worth, costs.get((question.name, one.trial.name))) for one in mistakes
        ),
        idle=tuple(test for test in worth if test not in caught),
        trivial={
            one.trial.name: 1 - _cost(one, worth).lost
            for one in tried
            if one.trial.kind == "trivial"
        },
        furthest_right=max(_distances(right, "passed"), default=None),
        nearest_wrong=min((far for far in _distances(mistakes, "failed") if far > 1), default=None),
        mutants=tuple(mutant for mutant in mutants if mutant.mutant.question == question.name),
    )


def _cost(tried: Tried, worth: Mapping[str, float], said: Said | None = None) -> Cost:
    tests = tuple(test for test in worth if test in tried.failed)
    lost = sum(worth[test] for test in tests) / (sum(worth.values()) or 1)
    return Cost(tried.trial.name, min(lost, 1 - tried.trial.keeps), tests, said)


def _distances(tried: Iterable[Tried], outcome: str) -> Iterator[float]:
    """All distances in tests that ended so; a test that fails by a value ends with the distance of
    that value.
    """
    for one in tried:
        for test in one.tests:
            if test.outcome == outcome:
                yield from test.distances if outcome == "passed" else test.distances[-1:]


def flaky(tried: Iterable[Tried]) -> list[str]:
    """What depends on the draw of the inputs: right answers that fail, mistakes that nothing
    catches.
    """
    problems = []
    for one in tried:
        trial = one.trial
        if trial.draw > 0 and not one.problem:
            name = trial.question if trial.kind == "key" else f"{trial.question}/{trial.name}"
            if trial.kind == "mistake" and not one.failed:
                problems.append(f"mistake {name} is not caught by draw {trial.draw} of the inputs")
            elif trial.kind != "mistake" and one.failed:
                problems.append(
                    f"{trial.kind} {name} fails {min(one.failed)} with draw {trial.draw} "
                    "of the inputs"
                )
    return problems


def cost_problems(
    figures: Sequence[QuestionFigures],
    listed: Mapping[tuple[str, str], Said] | None,
    questions: Collection[str],
) -> list[str]:
    """Answers that cost or score another share than they should, and entries of costs.toml that say
    nothing true.

    Args:
        figures: of the questions that were looked at; only their entries are checked.
        listed: what costs.toml says; None where there is none, and then any mistake may cost what
            it does.
        questions: all of the suite.
    """
    said_of = listed or {}
    problems = [
        f"{FILE}: there is no question {of}"
        for of in sorted({of for of, _ in said_of} - set(questions))
    ]
    for question in figures:
        its = {name: said for (of, name), said in said_of.items() if of == question.name}
        known = {mistake.name for mistake in question.mistakes} | TRIVIAL.keys()
        for name, said in its.items():
            if name not in known:
                problems.append(
                    f"{FILE}, [{question.name}.{said.kind}]: there is no answer {name}; take "
                    "the entry out"
                )
        for mistake in question.mistakes if listed is not None else ():
            problems += _of_mistake(question.name, mistake, its.get(mistake.name))
        for name, share in question.trivial.items():
            problems += _for_nothing(question.name, name, share, its.get(name))
    return problems


def _of_mistake(question: str, mistake: Cost, said: Said | None) -> Iterator[str]:
    kind, lost = said.kind if said else "", mistake.lost
    does = f"mistake {question}/{mistake.name} loses {lost:.0%}"
    is_dear, is_cheap = lost > MOST_FOR_A_SLIP + _ROUNDING, lost < LEAST_FOR_THE_POINT - _ROUNDING
    if not kind and is_dear:
        yield f"{does}, and is not in {FILE}: a right idea with one slip loses half at most"
    elif kind == "misses_the_point" and is_cheap:
        yield f"{does}: what misses the point of its question loses a third at least"
    elif (kind == "dear" and not is_dear) or (kind == "cheap" and not is_cheap):
        yield f"{does}, which is not {kind}: take it out of [{question}.{kind}] in {FILE}"
    elif kind == "for_nothing":
        yield (
            f"{FILE}, [{question}.for_nothing]: {mistake.name} is a mistake, not an answer "
            "without an idea"
        )


def _for_nothing(question: str, name: str, share: float, said: Said | None) -> Iterator[str]:
    if said is None and share > MOST_FOR_NOTHING + _ROUNDING:
        yield f"{question}: an answer that is {name} scores {share:.0%} of the points"
    elif said is not None and share <= MOST_FOR_NOTHING + _ROUNDING:
        yield f"{question}: an answer that is {name} scores {share:.0%}: take it out of {FILE}"
