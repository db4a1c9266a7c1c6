"""What an export changes on a platform, in words and counts."""

from __future__ import annotations

import dataclasses

import pytest

from autograder.marks.marks import Mark, mark_from_result
from autograder.outputs.difference import (
    Change,
    Difference,
    PlatformPerson,
    compare_marks,
    full_marks,
    has_other_maximum,
    points_to_give,
)
from autograder.records.model import Result


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Change("Ada", "ada", "gets", "", 7.5), "Ada gets 7.5 (had none)"),
        (
            Change("Ada", "ada", "gets", "3", 7.5, "if late"),
            "Ada gets 7.5 (had 3): if late",
        ),
        (
            Change("Ada", "ada", "keeps", "3", None, "nobody here"),
            "Ada keeps 3: nobody here",
        ),
        (Change("A\nda", "ada", "keeps"), "A da keeps none"),
        (
            Change("Ada", "ada", "skipped", "3", 7.5, "locked"),
            "Ada will be skipped and keeps 3 (here 7.5): locked",
        ),
    ],
)
def test_a_change_in_words(change: Change, text: str) -> None:
    assert str(change) == text


def test_the_difference_begins_with_counts_and_what_is_skipped() -> None:
    changes = (
        Change("Ada", "ada", "keeps", "3", 3.0, "the same as here"),
        Change("Bob", "bob", "gets", "", 4.0),
        Change("Cyd", "cyd", "skipped", "1", 2.0),
    )
    assert Difference(changes, ("dan",), ("a note",)).lines("canvas") == [
        "canvas: 1 to get a mark, 1 to keep what is there, 1 to be skipped there",
        "  Cyd will be skipped and keeps 1 (here 2)",
        "  Bob gets 4 (had none)",
        "  Ada keeps 3: the same as here",
        "  dan has a mark and is not known there",
        "a note",
    ]
    assert Difference((), (), ("a note",)).lines("canvas") == ["a note"]
    assert len(Difference((), ("dan",)).lines("canvas")) == 2


def test_marks_that_look_alike_to_two_decimals_are_the_same() -> None:
    assert not has_other_maximum(None, 20.0)
    assert not has_other_maximum(20.0049, 20.0)
    assert has_other_maximum(20.0051, 20.0)
    assert has_other_maximum(19.9949, 20.0)
    assert full_marks([]) == 0.0


def person(student: str, mark: str, points: float | None) -> PlatformPerson:
    return PlatformPerson(
        f"{student}!", student, mark, points, lambda new: ("gets", f"{new:g}")
    )


def test_a_mark_is_given_kept_or_missed(plain: Result) -> None:
    """Ada has 11 here, Bob waits for a person, Cyd is not on the platform."""
    ada = mark_from_result(plain)
    bob = dataclasses.replace(
        ada, student="bob", status="waits for a person", total=None
    )
    cyd = dataclasses.replace(ada, student="cyd")
    empty = Mark("dan", "handed in nothing")
    marks = [ada, bob, cyd, empty]
    points = points_to_give(marks, provisional=False)
    assert points == {"ada": 11.0, "cyd": 11.0}
    assert full_marks(marks) == 20.0
    people = [
        person("ada", "11", 11.0049),
        person("ada", "11.01", 11.0051),
        person("ada", "-", None),
        person("bob", "5", 5.0),
        person("dan", "", None),
        person("eve", "6", 6.0),
    ]
    difference = compare_marks(marks, people, points, ["a note"])
    assert [(change.outcome, change.reason) for change in difference.changes] == [
        ("keeps", "the same as here"),
        ("gets", "11"),
        ("gets", "11"),
        ("keeps", "waits for a person"),
        ("keeps", "handed in nothing"),
        ("keeps", "nobody here"),
    ]
    assert (difference.missing, difference.notes) == (("cyd",), ("a note",))
