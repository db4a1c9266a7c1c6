"""What a suite is worth, in figures: what mistakes cost, which tests catch nothing, what answers
without an idea score.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from autograder.proof.cost_exceptions import FILE, CostException, CostExceptions
from autograder.proof.mutants import JudgedMutant
from autograder.proof.trials import TrialOutcome
from autograder.proof.wrappers import TRIVIAL
from autograder.sitting.pricing import MEMORY_FAULT_KEEPS
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
class MistakeCost:
    """What one known mistake loses.

    Attributes:
        lost: the share of its question's points.
        tests: the failed tests with points.
        exception: the mistake's entry in the suite's `costs.toml`.
    """

    name: str
    lost: float
    tests: tuple[str, ...]
    exception: CostException | None = None


@dataclass(frozen=True, slots=True)
class QuestionFigures:
    """The figures of one question.

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
    mistakes: tuple[MistakeCost, ...]
    idle: tuple[str, ...]
    trivial: Mapping[str, float]
    furthest_right: float | None
    nearest_wrong: float | None
    mutants: tuple[JudgedMutant, ...]

    @property
    def caught_once(self) -> tuple[str, ...]:
        """Mistakes that one test alone catches."""
        caught_once = [mistake for mistake in self.mistakes if len(mistake.tests) == 1]
        return tuple(mistake.name for mistake in caught_once)


def question_figures(
    questions: Iterable[SuiteQuestion],
    outcomes: Iterable[TrialOutcome],
    mutants: Sequence[JudgedMutant],
    exceptions: CostExceptions,
) -> list[QuestionFigures]:
    """The figures of each question that has trials, in the order of the questions."""
    by_question: defaultdict[str, list[TrialOutcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.trial.draw == 0 and not outcome.problem:
            by_question[outcome.trial.question].append(outcome)
    return [
        _figures(question, by_question[question.name], mutants, exceptions)
        for question in questions
        if question.name in by_question
    ]


def _figures(
    question: SuiteQuestion,
    outcomes: Sequence[TrialOutcome],
    mutants: Sequence[JudgedMutant],
    exceptions: CostExceptions,
) -> QuestionFigures:
    points = {test.name: test.points for test in question.tests if test.points > 0}
    by_kind: defaultdict[str, list[TrialOutcome]] = defaultdict(list)
    for outcome in outcomes:
        by_kind[outcome.trial.kind].append(outcome)
    mistakes = by_kind["mistake"]
    right = by_kind["key"] + by_kind["alternate"]
    caught = {test for mistake in mistakes for test in mistake.failed}
    costs = []
    for mistake in mistakes:
        exception = exceptions.get((question.name, mistake.trial.name))
        costs.append(_cost(mistake, points, exception))
    trivial = [_cost(answer, points) for answer in by_kind["trivial"]]
    # a test that fails by a value ends with the distance of that value
    wrong_distances = [
        test.distances[-1]
        for mistake in mistakes
        for test in mistake.tests
        if test.outcome == "failed" and test.distances
    ]
    right_distances = [
        distance
        for answer in right
        for test in answer.tests
        if test.outcome == "passed"
        for distance in test.distances
    ]
    return QuestionFigures(
        name=question.name,
        points=question.points,
        tests=len(question.tests),
        alternates=len(by_kind["alternate"]),
        mistakes=tuple(costs),
        idle=tuple(test for test in points if test not in caught),
        trivial={cost.name: 1 - cost.lost for cost in trivial},
        furthest_right=max(right_distances, default=None),
        nearest_wrong=min((far for far in wrong_distances if far > 1), default=None),
        mutants=tuple(
            mutant for mutant in mutants if mutant.mutant.question == question.name
        ),
    )


def _cost(
    outcome: TrialOutcome,
    points: Mapping[str, float],
    exception: CostException | None = None,
) -> MistakeCost:
    trial = outcome.trial
    tests = tuple(test for test in points if test in outcome.failed)
    all_points = sum(points.values()) or 1
    lost = sum(points[test] for test in tests) / all_points
    lost = min(lost, 1 - trial.keeps)
    if any(test.has_memory_fault for test in outcome.tests if test.name in tests):
        lost = max(lost, 1 - MEMORY_FAULT_KEEPS)
    return MistakeCost(trial.name, lost, tests, exception)


def flaky(outcomes: Iterable[TrialOutcome]) -> Iterator[str]:
    """Right answers that fail with a further draw of the inputs, and mistakes that pass then."""
    for outcome in outcomes:
        trial, failed = outcome.trial, outcome.failed
        if trial.draw == 0 or outcome.problem:
            continue
        if trial.kind == "mistake" and not failed:
            yield f"mistake {trial.title} is not caught by draw {trial.draw} of the inputs"
        elif trial.kind != "mistake" and failed:
            yield (
                f"{trial.kind} {trial.title} fails {min(failed)} with draw {trial.draw} "
                "of the inputs"
            )


def cost_problems(
    figures: Sequence[QuestionFigures],
    exceptions: CostExceptions | None,
    questions: Collection[str],
) -> Iterator[str]:
    """Answers that cost or score another share than they should, and entries of costs.toml that
    are not true.

    Args:
        figures: of the questions with trials; only their entries are checked.
        exceptions: the entries of costs.toml; None without the file: then mistakes may cost
            anything.
        questions: all of the suite.
    """
    entries = exceptions or {}
    for name in sorted({question for question, _ in entries} - set(questions)):
        yield f"{FILE}: there is no question {name}"
    for question in figures:
        answers = {mistake.name for mistake in question.mistakes} | TRIVIAL.keys()
        for (owner, name), entry in entries.items():
            if owner == question.name and name not in answers:
                yield (
                    f"{FILE}, [{question.name}.{entry.kind}]: there is no answer {name}; take "
                    "the entry out"
                )
        if exceptions is not None:
            for mistake in question.mistakes:
                yield from _mistake_problems(
                    question.name,
                    mistake,
                    exceptions.get((question.name, mistake.name)),
                )
        for name, share in question.trivial.items():
            is_listed = (question.name, name) in entries
            scores = f"{question.name}: an answer that is {name} scores {share:.0%}"
            is_too_much = share > MOST_FOR_NOTHING + _ROUNDING
            if is_too_much and not is_listed:
                yield f"{scores} of the points"
            elif is_listed and not is_too_much:
                yield f"{scores}: take it out of {FILE}"


def _mistake_problems(
    question: str, mistake: MistakeCost, exception: CostException | None
) -> Iterator[str]:
    kind = exception.kind if exception else ""
    is_dear = mistake.lost > MOST_FOR_A_SLIP + _ROUNDING
    is_cheap = mistake.lost < LEAST_FOR_THE_POINT - _ROUNDING
    loses = f"mistake {question}/{mistake.name} loses {mistake.lost:.0%}"
    if not kind and is_dear:
        yield f"{loses}, and is not in {FILE}: a right idea with one slip loses half at most"
    elif kind == "misses_the_point" and is_cheap:
        yield f"{loses}: what misses the point of its question loses a third at least"
    elif (kind == "dear" and not is_dear) or (kind == "cheap" and not is_cheap):
        yield f"{loses}, which is not {kind}: take it out of [{question}.{kind}] in {FILE}"
    elif kind == "for_nothing":
        yield (
            f"{FILE}, [{question}.for_nothing]: {mistake.name} is a mistake, not an answer "
            "without an idea"
        )
