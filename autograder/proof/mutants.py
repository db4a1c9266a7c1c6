"""Mutants in front of a suite: killed, survived, or listed as equivalent."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from autograder.proof.code_mutants import Variant, code_mutants, double_mutants
from autograder.proof.equivalent import FILE, Equivalent
from autograder.proof.late_checks import late_checks
from autograder.proof.trials import Trial, TrialOutcome
from autograder.proof.wrappers import ObservedFunction, property_mutants

ENOUGH_KILLED = 0.99
"""The share of the mutants that a suite has to kill, equivalent ones aside."""
DOUBLES = 12
"""How many mutants with two changes each question gets."""
_Item = TypeVar("_Item")
Fate = Literal[
    "killed",
    "survived",
    "equivalent",
]


@dataclass(frozen=True, slots=True)
class JudgedMutant:
    """A mutant with its fate.

    Attributes:
        reason: why the mutant is equivalent, where `equivalent.toml` lists it.
    """

    mutant: Variant
    fate: Fate
    reason: str = ""


def all_mutants(
    question: str,
    cell: str,
    observed: Sequence[ObservedFunction],
) -> list[Variant]:
    """The mutants of a question.

    Args:
        cell: the answer key's cell.
        observed: the functions of the cell that the suite calls.
    """
    return [
        *code_mutants(question, cell),
        *double_mutants(question, cell, DOUBLES),
        *late_checks(question, cell),
        *property_mutants(question, cell, observed),
    ]


def sample(
    items: Sequence[_Item],
    count: int | None,
    seed: str,
) -> list[_Item]:
    """`count` of the items (all where None), drawn with `seed`, in their order."""
    if count is None or count >= len(items):
        return list(items)
    places = random.Random(seed).sample(range(len(items)), count)
    return [items[place] for place in sorted(places)]


def mutant_trials(mutants: Iterable[Variant]) -> list[Trial]:
    """A trial of each mutant."""
    return [
        Trial("mutant", mutant.question, mutant.name, mutant.cell) for mutant in mutants
    ]


def judge_mutants(
    outcomes: Iterable[TrialOutcome],
    mutants: Sequence[Variant],
    listed: Sequence[Equivalent],
) -> list[JudgedMutant]:
    """The fate of every mutant that could be graded, in the order of `mutants`."""
    killed = {
        (outcome.trial.question, outcome.trial.name): bool(outcome.failed)
        for outcome in outcomes
        if not outcome.problem
    }
    judged = []
    for mutant in mutants:
        if (mutant.question, mutant.name) not in killed:
            continue
        fate: Fate = "survived"
        reason = _reason(mutant, listed)
        if killed[mutant.question, mutant.name]:
            fate = "killed"
        elif reason:
            fate = "equivalent"
        judged.append(JudgedMutant(mutant, fate, reason))
    return judged


def _reason(
    mutant: Variant,
    listed: Sequence[Equivalent],
) -> str:
    """Why a mutant computes what the answer key computes: by an entry of its own, or by entries for
    all its parts; "" where nothing says so.
    """
    for entry in listed:
        if entry.matches(mutant):
            return entry.reason
    of_parts = [_reason(part, listed) for part in mutant.parts]
    return of_parts[0] if of_parts and all(of_parts) else ""


def stale_entries(
    listed: Iterable[Equivalent],
    mutants: Sequence[Variant],
    judged: Iterable[JudgedMutant],
) -> list[str]:
    """Entries of equivalent.toml that are not true: no mutant has the name, or one is killed."""
    killed = [mutant.mutant for mutant in judged if mutant.fate == "killed"]
    problems = []
    for entry in listed:
        where = f"{FILE}, [{entry.question}]"
        if not any(entry.matches(mutant) for mutant in mutants):
            problems.append(
                f"{where}: there is no mutant {entry.pattern!r}; take the entry out"
            )
        problems += [
            f"{where}: the mutant {mutant.name!r} is killed; take the entry {entry.pattern!r} out"
            for mutant in killed
            if entry.matches(mutant)
        ]
    return problems


def too_many_alive(judged: Sequence[JudgedMutant], *, sampled: bool) -> bool:
    """Whether more mutants survive than may. One of a sample always may: a single survivor says
    nothing of all mutants.
    """
    fates = [mutant.fate for mutant in judged]
    counted = len(fates) - fates.count("equivalent")
    allowed = (1 - ENOUGH_KILLED) * counted
    if sampled:
        allowed = max(1.0, allowed)
    return fates.count("survived") > allowed


def killed_share(judged: Sequence[JudgedMutant]) -> float:
    """The share of killed mutants among those that are not equivalent; 1 where there are none."""
    fates = [mutant.fate for mutant in judged if mutant.fate != "equivalent"]
    return fates.count("killed") / len(fates) if fates else 1.0
