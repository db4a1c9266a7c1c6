"""When several mistakes in one answer are said to break a law of prices, and which groups of
mistakes there are.
"""

from __future__ import annotations

import pytest

from autograder.proof.pairs import Loss, broken_laws, combine_mistakes
from autograder.suite.known_answers import KnownAnswer

CELLS = {"f": "def f(x):\n    return scaled(turned(x))\n"}


def mistake(name: str, *changes: tuple[str, str], question: str = "f") -> KnownAnswer:
    return KnownAnswer(question, name, f"about {name}", "", changes=changes)


@pytest.mark.parametrize(
    ("together", "broken"),
    [
        (Loss(5.0, 9.0), []),  # between 4 and 5
        (Loss(4.0, 9.0), []),
        (Loss(5.5, 9.0), ["together they lose 5.5 points, and by themselves 5"]),
        (Loss(3.0, 9.0), ["together they lose 3 points, and one of them by itself 4"]),
        (Loss(3.0, 3.0), []),  # they undo each other: only tests worth 3 fail
    ],
)
def test_the_two_laws(together: Loss, broken: list[str]) -> None:
    assert list(broken_laws(together, [Loss(4.0, 9.0), Loss(1.0, 1.0)])) == broken


def test_a_group_changes_different_places_of_one_cell() -> None:
    known = [
        mistake("unscaled", ("scaled", "left")),
        mistake("inverted", ("turned", "kept")),
        mistake("unturned", ("turned", "")),
        mistake("own_algorithm"),
    ]
    groups = combine_mistakes(known, CELLS, 2, None, "seed")
    assert sorted(answer.name for answer in groups) == [
        "unscaled and inverted",
        "unscaled and unturned",
    ]
    assert {answer.question for answer in groups} == {"f"}
    assert len(combine_mistakes(known, CELLS, 2, 1, "seed")) == 1
    assert combine_mistakes(known, CELLS, 3, None, "seed") == {}
