"""Proves the evidence of known mistakes (`shows=` in mistakes.py).

A predicate must be true of its mistake, of the mistake beside others and of its mutants, and false
of the answer key, of every alternate and of every mistake without the idea. A mistake has the idea
of another if its own `shows=` says all that the other's says. Of pairs of other mistakes without
the idea it may hardly ever be true: a student with two faults would read a hint about a third.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from autograder.basics.errors import KitError
from autograder.grading.bench import Bench
from autograder.proof.code_mutants import code_mutants
from autograder.proof.trials import examine_each, with_answer
from autograder.sandbox.host_process import HostClient
from autograder.sitting.sitting import Sitting
from autograder.suite.known_answers import KnownAnswer, combine_answers
from autograder.suite.shows import read_shows

FEWEST_SHOWN = 0.15
"""The share of a mistake's pairs and mutants of which its predicate must be true: another fault may
hide a mistake, and a mutant may undo it.
"""
MOST_FOREIGN = 0.1
"""The share of the tried pairs without a mistake of which its predicate may be true."""
_FEWEST_FOREIGN = 10
"""Pairs without a mistake that say something of its predicate."""
_PAIRS = 3
_MUTANTS = 3
"""Pairs and mutants of each mistake that are tried."""


@dataclass(frozen=True, slots=True)
class ShownMistakes:
    """An answer, and the mistakes whose predicates are true of it.

    Attributes:
        made: the mistakes in the answer; none for right answers.
        is_whole: whether the answer is a single mistake as it stands in mistakes.py.
        shown: the mistakes that the answer shows.
        failed: how many tests it fails.
    """

    question: str
    name: str
    made: tuple[str, ...]
    is_whole: bool
    shown: tuple[str, ...]
    failed: int


def prove_evidence(
    bench: Bench,
    mistakes: Sequence[KnownAnswer],
    alternates: Sequence[KnownAnswer],
    count: int | None,
) -> list[str]:
    """What is wrong with the predicates of a suite.

    Args:
        count: how many of the mistakes are tried, and as many alternates; None for all.
    """
    chooser = random.Random(bench.assignment.name)
    questions = {mistake.question for mistake in mistakes if mistake.shows}
    mistakes = [mistake for mistake in mistakes if mistake.question in questions]
    alternates = [answer for answer in alternates if answer.question in questions]
    showing = [mistake for mistake in mistakes if mistake.shows]
    made: dict[KnownAnswer, tuple[str, ...]] = {}
    made |= dict.fromkeys(_choose(chooser, alternates, count), ())
    made |= {mistake: (mistake.name,) for mistake in _choose(chooser, mistakes, count)}
    for mistake in _choose(chooser, showing, count):
        made |= _pairs(
            bench.grader.key.cells[mistake.question], mistake, mistakes, chooser
        )
        made |= _mutants(mistake, chooser)

    def examine(client: HostClient, answer: KnownAnswer) -> ShownMistakes:
        return _examine(bench, client, answer, made[answer])

    records, problems = examine_each(bench, list(made), examine, ShownMistakes)
    return [*problems, *evidence_problems(records, showing)]


def _choose(
    chooser: random.Random,
    answers: Sequence[KnownAnswer],
    count: int | None,
) -> Sequence[KnownAnswer]:
    if count is None or count >= len(answers):
        return answers
    return chooser.sample(list(answers), count)


def _pairs(
    cell: str,
    mistake: KnownAnswer,
    mistakes: Sequence[KnownAnswer],
    chooser: random.Random,
) -> dict[KnownAnswer, tuple[str, ...]]:
    """The mistake together with others of its question that change other places of the cell."""
    others = [m for m in mistakes if m.question == mistake.question and m != mistake]
    chooser.shuffle(others)
    pairs: dict[KnownAnswer, tuple[str, ...]] = {}
    for other in others:
        together = combine_answers([mistake, other], cell)
        if together is not None and len(pairs) < _PAIRS:
            pairs[together] = mistake.name, other.name
    return pairs


def _mutants(
    mistake: KnownAnswer,
    chooser: random.Random,
) -> dict[KnownAnswer, tuple[str, ...]]:
    """The mistake with one more place of its cell changed; "" is the second fault's name."""
    mutants = code_mutants(mistake.question, mistake.cell)
    return {
        KnownAnswer(
            mistake.question, f"{mistake.name}, {mutant.name}", "", mutant.cell
        ): (
            mistake.name,
            "",
        )
        for mutant in chooser.sample(mutants, min(_MUTANTS, len(mutants)))
    }


def _examine(
    bench: Bench,
    client: HostClient,
    answer: KnownAnswer,
    made: tuple[str, ...],
) -> ShownMistakes:
    """The mistakes that one answer shows."""
    grader = bench.grader
    question = grader.questions[answer.question]
    submission = with_answer(grader.key, answer)
    sitting = Sitting(client, bench.course.limits, grader.suite, submission)
    open_functions = functools.partial(sitting.open_functions, question)
    asker = grader.make_asker(question, open_functions)
    with contextlib.closing(sitting):
        runs = sitting.run(question, keep_calls=True)
        try:
            shown = grader.show_mistakes(
                client, question, runs, asker, is_right=not made
            )
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:
            raise KitError(
                f"a predicate raises {type(error).__name__}: {error}"
            ) from error
    failed = sum(not run.passed for run in runs.values())
    return ShownMistakes(
        answer.question, answer.name, made, len(made) == 1, tuple(shown), failed
    )


def evidence_problems(
    records: Sequence[ShownMistakes],
    showing: Sequence[KnownAnswer],
) -> Iterator[str]:
    """What the tried answers say against the predicates.

    Args:
        showing: the mistakes that have a predicate.
    """
    ideas = {mistake.name: read_shows(mistake.shows).parts for mistake in showing}
    tries: dict[str, list[bool]] = {}
    for record in records:
        title = f"{record.question}/{record.name}"
        own_ideas: frozenset[str] = frozenset().union(
            *[ideas.get(made, frozenset()) for made in record.made]
        )
        for name in record.shown:
            # two faults together, or a mutant, may have the idea of a third mistake
            is_single = len(record.made) < 2
            if is_single and name not in record.made and not ideas[name] <= own_ideas:
                yield f"{title} shows {name}, and does not say so: give it the same shows="
        if not record.made or record.made[0] not in ideas or not record.failed:
            continue
        is_shown = record.made[0] in record.shown
        if record.is_whole and not is_shown:
            yield f"{title} does not show what its own shows= says"
        if not record.is_whole:
            tries.setdefault(record.made[0], []).append(is_shown)
    for name, verdicts in tries.items():
        if sum(verdicts) < FEWEST_SHOWN * len(verdicts):
            yield (
                f"{name}: its shows= is true of {sum(verdicts)} of {len(verdicts)} pairs and "
                "mutants"
            )
    for mistake in showing:
        foreign = _pairs_without(mistake, records, ideas)
        false_names = [record for record in foreign if mistake.name in record.shown]
        is_told_often = len(false_names) > MOST_FOREIGN * len(foreign)
        if len(foreign) >= _FEWEST_FOREIGN and is_told_often:
            yield (
                f"{mistake.name}: its shows= is true of {len(false_names)} of {len(foreign)} pairs "
                f"of other mistakes, as of {false_names[0].name}: add what tells it from them"
            )


def _pairs_without(
    mistake: KnownAnswer,
    records: Sequence[ShownMistakes],
    ideas: Mapping[str, frozenset[str]],
) -> list[ShownMistakes]:
    """The tried pairs of a mistake's question that have its idea in neither part."""
    pairs = []
    for record in records:
        is_pair = len(record.made) == 2 and "" not in record.made
        if (
            record.question != mistake.question
            or not is_pair
            or mistake.name in record.made
        ):
            continue
        own_ideas = [ideas.get(made, frozenset()) for made in record.made]
        if not any(ideas[mistake.name] <= own for own in own_ideas):
            pairs.append(record)
    return pairs
