"""Nothing gets through: no points, no secrets, no harm, in every tier that this machine allows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from attack import FULL, Attack
from attacks_reading import ATTACKS as READING
from pages import STEERING, formulas, live_parts, outputs
from vault_course import CANARY
from yard import ALL, OF_TIER, Batch, Yard

Batches = Callable[[str], Batch]

CASES = [
    pytest.param(tier, attack, id=f"{tier}-{attack.name!a}")
    for tier, them in OF_TIER.items()
    for attack in them
]


def test_the_corpus_is_large_and_names_are_its_own() -> None:
    names = [attack.name for attack in ALL]
    assert len(names) >= 80
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("tier", "attack"), CASES)
def test_it_gets_what_it_deserves(batch: Batches, tier: str, attack: Attack) -> None:
    graded = batch(tier).graded[attack.name]
    assert not graded.untried, (
        graded.problem
    )  # it held up neither its grader nor the batch
    if attack.ungraded:
        assert graded.result is None
        assert graded.problem
        return
    assert graded.result is not None, graded.problem
    assert graded.result.max_score == FULL
    assert graded.result.score <= attack.deserves
    if not attack.may_lose:
        assert graded.result.score == attack.deserves, [
            q for q in graded.result.questions if q.score < q.max_score
        ]


@pytest.mark.parametrize(("tier", "attack"), CASES)
def test_it_shows_nothing_hidden_and_nothing_live(
    batch: Batches, yard: Yard, tier: str, attack: Attack
) -> None:
    graded = batch(tier).graded[attack.name]
    for name, text in outputs(graded).items():
        assert CANARY not in text, name
        assert str(yard.course.root) not in text, name
        assert not [mark for mark in STEERING if mark in text], name
        if name.endswith(".html"):
            assert live_parts(text) == [], name
        if name.endswith("csv"):
            assert formulas(text) == [], name
        if name == "github":
            assert not [line for line in text.splitlines() if line.startswith("::")]


@pytest.mark.parametrize("tier", list(OF_TIER))
def test_no_other_result_moves_by_a_byte(batch: Batches, tier: str) -> None:
    done = batch(tier)
    assert len(done.beside) >= 4
    for kind, result in done.beside:
        assert result is not None
        assert (
            dataclasses.replace(result, student=kind).to_json()
            == done.alone[kind].to_json()
        )


@pytest.mark.parametrize("tier", list(OF_TIER))
def test_nothing_outside_changes(batch: Batches, yard: Yard, tier: str) -> None:
    batch(tier)
    assert yard.changed() == []
    assert yard.left_behind() == []
    assert yard.heard() == []


def test_the_corpus_notices_where_a_wall_is_gone(yard: Yard) -> None:
    """The same thieves without walls: those that say they would steal do."""
    thieves = [attack for attack in READING if attack.steals]
    graded = yard.grade(thieves, "none").graded
    seen = [
        a.name
        for a in thieves
        if any(CANARY in text for text in outputs(graded[a.name]).values())
    ]
    assert seen == [attack.name for attack in thieves]
    assert len(seen) >= 15
