"""When several mistakes in one answer are said to break a law of prices, and which groups of
mistakes there are.
"""

from __future__ import annotations

import pytest

from autograder.proof.pairs import Lost, broken_laws, groups_of
from autograder.suite.known_answers import KnownAnswer

CELLS = {"f": "def f(x):\n    return scaled(turned(x))\n"}


def mistake(name: str, *changes: tuple[str, str], question: str = "f") -> KnownAnswer:
    return KnownAnswer(question, name, f"about {name}", "", changes=changes)


@pytest.mark.parametrize(
    ("together", "broken"),
    [
        (Lost(5.0, 9.0), []),  # between 4 and 5
        (Lost(4.0, 9.0), []),
        (Lost(5.5, 9.0), ["together they lose 5.5 points, and by themselves 5"]),
        (Lost(3.0, 9.0), ["together they lose 3 points, and one of them by itself 4"]),
        (Lost(3.0, 3.0), []),  # they undo each other: only tests worth 3 fail
    ],
)
def test_the_two_laws(together: Lost, broken: list[str]) -> None:
    assert list(broken_laws(together, [Lost(4.0, 9.0), Lost(1.0, 1.0)])) == broken


def test_a_group_changes_different_places_of_one_cell() -> None:
    known = [
        mistake("unscaled", ("scaled", "left")),
        mistake("inverted", ("turned", "kept")),
        mistake("unturned", ("turned", "")),
        mistake("own_algorithm"),
    ]
    groups = groups_of(known, CELLS, 2, None, "seed")
    assert sorted(group.answer.name for group in groups) == [
        "unscaled and inverted",
        "unscaled and unturned",
    ]
    assert {group.answer.question for group in groups} == {"f"}
    assert len(groups_of(known, CELLS, 2, 1, "seed")) == 1
    assert groups_of(known, CELLS, 3, None, "seed") == []
