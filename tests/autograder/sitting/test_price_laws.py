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


TESTS = {"values": 4.0, "shapes": 1.0, "costs": 3.0, "sizes": 1.0}
SLIP = Loss(4.0, {"values": 4.0}, frozenset(["slip"]), {"values": "yours is 2"})
CHECK = Loss(1.0, {"shapes": 1.0}, frozenset(["check"]), {"shapes": "has shape [2]"})
"""Two mistakes by themselves: five points for both."""


def loss(points: float, *failed: str, named: str = "slip check") -> Loss:
    """What both together lose; each failed test says that both are there."""
    worth = {test: TESTS[test] for test in failed}
    messages = dict.fromkeys(failed, "both")
    return Loss(points, worth, frozenset(named.split()), messages)


@pytest.mark.parametrize(
    ("together", "broken"),
    [
        (loss(5.0, "values", "shapes"), []),  # between 4 and 5
        (loss(4.0, "values", "shapes"), []),
        # 5, and the points of tests that only both together fail
        (loss(6.0, "values", "shapes", "sizes"), []),
        (loss(9.0, *TESTS), []),
        (
            loss(5.5, "values", "shapes"),
            ["together they lose 5.5 points, and by themselves 5"],
        ),
        (
            loss(6.5, "values", "shapes", "sizes"),
            ["together they lose 6.5 points, and by themselves 6"],
        ),
        # they make something else, or what is named explains a part only
        (loss(5.5, "values", "shapes", named=""), []),
        (loss(5.5, "values", "shapes", named="third"), []),
        (loss(5.5, "values", "shapes", named="slip check third"), []),
        (loss(5.5, "values", "shapes", named="slip"), []),
        (
            loss(3.0, *TESTS),
            [
                "together they lose 3 points, and slip by itself 4, of which tests see 4",
            ],
        ),
        (loss(3.0, *TESTS, named="third"), []),  # the third mistake's own price
        (loss(3.0, "costs"), []),  # they undo each other: only tests worth 3 fail
    ],
)
def test_the_two_laws(together: Loss, broken: list[str]) -> None:
    assert list(broken_laws(together, {"slip": SLIP, "check": CHECK})) == broken


def test_what_no_test_sees_costs_nothing() -> None:
    """A function that raises an error hides its wrong values: the tests say the same as they would
    without them.
    """
    error = {"values": "RuntimeError", "shapes": "RuntimeError"}
    raises = Loss(2.0, {"values": 4.0, "shapes": 1.0}, frozenset(["raises"]), error)
    together = Loss(2.0, raises.failed, raises.named, error)
    assert list(broken_laws(together, {"raises": raises, "slip": SLIP})) == []
    seen = Loss(2.0, raises.failed, raises.named, {**error, "values": "yours is 3"})
    assert list(broken_laws(seen, {"raises": raises, "slip": SLIP})) == [
        "together they lose 2 points, and slip by itself 4, of which tests see 4"
    ]


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
