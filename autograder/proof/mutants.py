"""What a suite says to mutants of its answer key: killed, survived, or listed as equivalent."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from autograder.proof.code_mutants import Mutant, code_mutants
from autograder.proof.equivalent import FILE, Equivalent
from autograder.proof.trials import Trial, Tried
from autograder.proof.wrapped import Observed, property_mutants

ENOUGH_KILLED = 0.99
Tryable = TypeVar("Tryable")
Fate = Literal["killed", "survived", "equivalent"]


@dataclass(frozen=True, slots=True)
class Judged:
    """One mutant that was tried.

    Attributes:
        reason: why it is equivalent, where it is listed as such.
    """

    mutant: Mutant
    fate: Fate
    reason: str = ""


def all_mutants(
    cells: Mapping[str, str], observed: Mapping[str, Sequence[Observed]]
) -> list[Mutant]:
    """The mutants of all questions, in the order of the notebook.

    Args:
        cells: the answer key's cell of each question.
        observed: what the suite asked of its functions.
    """
    return [
        mutant
        for question, cell in cells.items()
        for mutant in (
            *code_mutants(question, cell),
            *property_mutants(question, cell, observed.get(question, ())),
        )
    ]


def sample(all_of_them: Sequence[Tryable], count: int | None, seed: str) -> list[Tryable]:
    """So many mutants, or other answers (all where None), drawn with `seed`, in their order."""
    if count is None or count >= len(all_of_them):
        return list(all_of_them)
    chosen = random.Random(seed).sample(range(len(all_of_them)), count)
    return [all_of_them[place] for place in sorted(chosen)]


def mutant_trials(mutants: Iterable[Mutant]) -> list[Trial]:
    """The mutants as answers to be tried."""
    return [Trial("mutant", mutant.question, mutant.name, mutant.cell) for mutant in mutants]


def judge_mutants(
    tried: Iterable[Tried], mutants: Sequence[Mutant], listed: Sequence[Equivalent]
) -> list[Judged]:
    """The fate of every mutant that was tried, in the order of `mutants`."""
    lost = {
        (one.trial.question, one.trial.name): bool(one.failed) for one in tried if not one.problem
    }
    judged = []
    for mutant in mutants:
        is_killed = lost.get((mutant.question, mutant.name))
        if is_killed is None:
            continue
        reason = next((entry.reason for entry in listed if entry.matches(mutant)), "")
        fate: Fate = "killed" if is_killed else "equivalent" if reason else "survived"
        judged.append(Judged(mutant, fate, reason))
    return judged


def stale(
    listed: Iterable[Equivalent], mutants: Sequence[Mutant], judged: Iterable[Judged]
) -> list[str]:
    """Entries of equivalent.toml that say nothing true: of a mutant that is not made, or that was
    killed.
    """
    killed = [mutant.mutant for mutant in judged if mutant.fate == "killed"]
    problems = []
    for entry in listed:
        where = f"{FILE}, [{entry.question}]"
        if not any(entry.matches(mutant) for mutant in mutants):
            problems.append(f"{where}: there is no mutant {entry.pattern!r}; take the entry out")
        problems += [
            f"{where}: the mutant {mutant.name!r} is killed; take the entry {entry.pattern!r} out"
            for mutant in killed
            if entry.matches(mutant)
        ]
    return problems


def too_many_alive(judged: Sequence[Judged], *, sampled: bool) -> bool:
    """Whether more survive than may. Of a sample one may, however small it is: that says nothing of
    all of them.
    """
    counted = sum(one.fate != "equivalent" for one in judged)
    may = (1 - ENOUGH_KILLED) * counted
    return sum(one.fate == "survived" for one in judged) > (max(1.0, may) if sampled else may)


def killed_share(judged: Sequence[Judged]) -> float:
    """The share of killed ones among those that are not equivalent; 1 where there are none."""
    counted = [one for one in judged if one.fate != "equivalent"]
    return sum(one.fate == "killed" for one in counted) / len(counted) if counted else 1.0
