"""What tried answers say against the predicates of mistakes, on records made by hand."""

from __future__ import annotations

from autograder.proof.evidence_proof import ShownMistakes, evidence_problems
from autograder.suite.known_answers import KnownAnswer

COLUMNS = KnownAnswer("f", "columns", "hint", "", shows="sums_to_one(-2)")
SCALED = KnownAnswer(
    "f", "scaled", "hint", "", shows="sums_to_one(-2) & off_by_a_factor()"
)
OTHER = KnownAnswer("f", "other", "hint", "", shows="not_finite()")


def problems(*records: ShownMistakes) -> list[str]:
    return list(evidence_problems(records, [COLUMNS, SCALED, OTHER]))


def tried(name: str, made: tuple[str, ...], *shown: str) -> ShownMistakes:
    return ShownMistakes("f", name, made, len(made) == 1, shown, failed=2)


def test_a_mistake_shows_itself_and_what_its_own_idea_includes() -> None:
    assert (
        problems(
            tried("columns", ("columns",), "columns"),
            tried("scaled", ("scaled",), "columns", "scaled"),
            tried("an_alternate", ()),
            tried("without_evidence", ("without_evidence",)),
        )
        == []
    )


def test_a_mistake_that_does_not_show_itself_is_told() -> None:
    assert problems(tried("columns", ("columns",))) == [
        "f/columns does not show what its own shows= says"
    ]


def test_a_mistake_or_an_alternate_that_shows_another_is_told() -> None:
    told = problems(tried("columns", ("columns",), "columns", "scaled"))
    assert told == [
        "f/columns shows scaled, and does not say so: give it the same shows="
    ]
    assert problems(tried("an_alternate", (), "other")) == [
        "f/an_alternate shows other, and does not say so: give it the same shows="
    ]


def test_a_predicate_that_is_true_of_other_pairs_says_too_little() -> None:
    """Of ten pairs without `other` one may show it, and two may not; pairs with it do not count."""
    silent = [
        tried(f"pair {number}", ("scaled", "plain"), "scaled") for number in range(8)
    ]
    false = tried("scaled and plain", ("scaled", "plain"), "scaled", "other")
    with_it = tried("scaled and other", ("scaled", "other"), "scaled", "other")
    assert problems(*silent, silent[0], false, with_it) == []
    assert problems(*silent, false, false, with_it) == [
        "other: its shows= is true of 2 of 10 pairs of other mistakes, as of scaled and plain: add "
        "what tells it from them"
    ]
    assert problems(*silent[:7], false, false) == []  # too few pairs to tell


def test_a_predicate_must_hold_beside_other_faults() -> None:
    """One of four is enough, none of four is not; pairs may show a third mistake."""
    shown = tried("columns and other", ("columns", "other"), "columns", "scaled")
    hidden = tried("columns, + → -", ("columns", ""))
    assert problems(shown, hidden, hidden, hidden) == []
    assert problems(hidden, hidden, hidden, hidden) == [
        "columns: its shows= is true of 0 of 4 pairs and mutants"
    ]
