"""Two laws of prices, tried on several known mistakes in one answer.

* Together they cost no less than the dearest of them by itself. So mending one of two faults never
  lowers a score, and adding one never raises it. The law holds as far as tests see the dearest: two
  can undo each other, and a function that raises an error shows nothing else. A test sees a mistake
  where its message is another one than without the mistake.
* Where all of them are named, they cost no more than their sum, and the points of tests that only
  all together fail. Two changes may also meet and make one that nobody knows, which costs its
  tests: no sum is a bound there.

Where two meet and make a third known mistake, it has a price of its own, and neither law says
anything.

A mistake that answers differently each time is not named where it stands alone, and has no price to
compare with.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from autograder.grading.bench import Bench
from autograder.proof.trials import examine_each, grade_answer
from autograder.sandbox.host_process import HostClient
from autograder.suite.known_answers import KnownAnswer, combine_answers

_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Loss:
    """The points that an answer lost.

    Attributes:
        points: as graded.
        failed: the points of each test that failed.
        named: the mistakes that were named.
        messages: the first line of what each failed test said.
    """

    points: float
    failed: Mapping[str, float]
    named: frozenset[str]
    messages: Mapping[str, str]


def combine_mistakes(
    mistakes: Sequence[KnownAnswer],
    cells: Mapping[str, str],
    size: int,
    count: int | None,
    seed: str,
) -> dict[KnownAnswer, tuple[KnownAnswer, ...]]:
    """Random answers with `size` mistakes each, which change different places of the answer key's
    cell: each answer with its mistakes.

    Args:
        cells: the answer key's cell of each question.
        count: how many answers at most; None for all.
    """
    by_question: dict[str, list[KnownAnswer]] = {}
    for mistake in mistakes:
        if mistake.changes:
            by_question.setdefault(mistake.question, []).append(mistake)
    groups: list[tuple[KnownAnswer, ...]] = []
    for of_question in by_question.values():
        groups += itertools.combinations(of_question, size)
    random.Random(seed).shuffle(groups)
    combinations: dict[KnownAnswer, tuple[KnownAnswer, ...]] = {}
    for group in groups:
        if len(combinations) == count:
            break
        answer = combine_answers(group, cells[group[0].question])
        if answer is not None:
            combinations[answer] = group
    return combinations


def price_problems(
    bench: Bench,
    groups: Mapping[KnownAnswer, Sequence[KnownAnswer]],
) -> list[str]:
    """Prices of several mistakes in one answer that break a law. Only the question of the mistakes
    is graded.
    """
    # in each grader's process: a mistake is in many groups
    losses: dict[str, Loss] = {}

    def measure(client: HostClient, answer: KnownAnswer) -> Loss:
        (graded,) = grade_answer(bench, client, answer, [answer.question])
        failed_tests = [test for test in graded.tests if test.outcome != "passed"]
        failed = {test.name: test.max_points for test in failed_tests}
        # what follows the first line says where in the cell, and the changes move lines
        messages = {test.name: test.message.partition("\n")[0] for test in failed_tests}
        named = [slip.mistake for slip in graded.slips]
        if graded.diagnosis is not None:
            named.append(graded.diagnosis.mistake)
        lost = graded.max_score - graded.score
        return Loss(lost, failed, frozenset(named), messages)

    def compare(client: HostClient, answer: KnownAnswer) -> list[str]:
        for mistake in groups[answer]:
            if mistake.name not in losses:
                losses[mistake.name] = measure(client, mistake)
        alone = {mistake.name: losses[mistake.name] for mistake in groups[answer]}
        if not all(loss.named for loss in alone.values()):
            return []
        broken = broken_laws(measure(client, answer), alone)
        return [f"{answer.question}/{answer.name}: {law}" for law in broken]

    records, problems = examine_each(bench, list(groups), compare, list[str])
    return [*itertools.chain.from_iterable(records), *problems]


def broken_laws(
    together: Loss,
    alone: Mapping[str, Loss],
) -> Iterator[str]:
    """The laws that the price of several mistakes in one answer breaks.

    Args:
        alone: the loss of each mistake by itself.
    """
    failed_alone = set[str]().union(*[loss.failed for loss in alone.values()])
    only_together = [
        points for test, points in together.failed.items() if test not in failed_alone
    ]
    most = sum([loss.points for loss in alone.values()]) + sum(only_together)
    is_known = together.named == alone.keys()
    if is_known and together.points > most + _ROUNDING:
        yield f"together they lose {together.points:g} points, and by themselves {most:g}"
    if together.named and together.named.isdisjoint(alone):
        return  # together they are a third mistake, with a price of its own
    for name, loss in alone.items():
        others = [other for other in alone if other != name]
        seen = _points_that_show(together, loss, [alone[other] for other in others])
        if together.points < min(loss.points, seen) - _ROUNDING:
            yield (
                f"together they lose {together.points:g} points, and {name} by itself "
                f"{loss.points:g}, of which tests see {min(loss.points, seen):g}"
            )


def _points_that_show(
    together: Loss, of_mistake: Loss, of_others: Sequence[Loss]
) -> float:
    """The points of the tests that a mistake fails by itself, and that fail otherwise with it than
    with the other mistakes alone.
    """
    points = [
        worth
        for test, worth in of_mistake.failed.items()
        if test in together.failed
        and all(
            together.messages[test] != other.messages.get(test) for other in of_others
        )
    ]
    return sum(points)
