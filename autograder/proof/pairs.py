"""Two laws of prices, tried on known mistakes that stand in one answer: together they cost no more
than their sum, and no less than the dearest of them.

The second law in other words: mending one of two faults never lowers a score, and adding one never
raises it. It holds
as far as tests see both faults: two can undo each other, and then fewer tests fail than one alone
would lose. A mistake that is not named where it stands alone, since it answers differently each
time, has no price that could be asked for.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from autograder.grading.bench import Bench
from autograder.proof.trials import examine_each
from autograder.sandbox.host_process import HostClient
from autograder.suite.known_answers import KnownAnswer, combined

_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Group:
    """Two or three known mistakes in one answer.

    Attributes:
        answer: the answer key with the changes of all of them.
    """

    mistakes: tuple[KnownAnswer, ...]
    answer: KnownAnswer


@dataclass(frozen=True, slots=True)
class Lost:
    """What one answer lost of its question.

    Attributes:
        points: as it was graded.
        by_tests: the points of the tests that it failed.
        is_named: whether a known mistake was named.
    """

    points: float
    by_tests: float
    is_named: bool = True


def groups_of(
    mistakes: Sequence[KnownAnswer],
    cells: Mapping[str, str],
    size: int,
    count: int | None,
    seed: str,
) -> list[Group]:
    """Random groups of `size` mistakes of one question: those that change different places of the
    answer key's cell.

    Args:
        cells: the answer key's cell of each question.
        count: how many at most; None for all.
    """
    by_question: dict[str, list[KnownAnswer]] = {}
    for mistake in mistakes:
        if mistake.changes:
            by_question.setdefault(mistake.question, []).append(mistake)
    every = [
        members for its in by_question.values() for members in itertools.combinations(its, size)
    ]
    random.Random(seed).shuffle(every)
    answers = ((members, combined(members, cells[members[0].question])) for members in every)
    return list(
        itertools.islice((Group(members, answer) for members, answer in answers if answer), count)
    )


def price_problems(bench: Bench, groups: Sequence[Group]) -> list[str]:
    """Where the price of several mistakes in one answer breaks a law. Only their question is
    graded.
    """
    alone: dict[str, Lost] = {}  # in each grader's process: a mistake is in many groups

    def lost(client: HostClient, answer: KnownAnswer) -> Lost:
        grader = bench.grader
        result, _ = grader.grade_submission(
            client, grader.key.with_answer(answer), [answer.question]
        )
        (graded,) = result.questions
        failed = sum(test.max_points for test in graded.tests if test.outcome != "passed")
        return Lost(graded.max_score - graded.score, failed, graded.diagnosis is not None)

    def grade(client: HostClient, group: Group) -> list[str]:
        for mistake in group.mistakes:
            if mistake.name not in alone:
                alone[mistake.name] = lost(client, mistake)
        losses = [alone[mistake.name] for mistake in group.mistakes]
        return (
            list(broken_laws(lost(client, group.answer), losses))
            if all(one.is_named for one in losses)
            else []
        )

    examined = examine_each(bench, groups, grade, list[str])
    return [
        f"{group.answer.question}/{group.answer.name}: {law}"
        for group, laws, problem in examined
        for law in ([problem] if laws is None else laws)
    ]


def broken_laws(together: Lost, alone: Sequence[Lost]) -> Iterator[str]:
    """What is wrong with the price of several mistakes in one answer, beside the price of each by
    itself.
    """
    most = sum(lost.points for lost in alone)
    dearest = max(lost.points for lost in alone)
    if together.points > most + _ROUNDING:
        yield f"together they lose {together.points:g} points, and by themselves {most:g}"
    if together.points < min(dearest, together.by_tests) - _ROUNDING:
        yield (
            f"together they lose {together.points:g} points, and one of them by itself {dearest:g}"
        )
