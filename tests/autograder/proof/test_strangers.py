"""Strangers' answers: their files are whole, their figures are right, and docs/suites.md has
them.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "benchmarks"))

from strangers_figures import (  # noqa: E402
    GradedAnswer,
    Judgement,
    StrangersAnswer,
    assignments,
    figures_of,
    folder_of,
    load_answers,
    load_graded,
    open_decisions,
    store_graded,
)

ASSIGNMENTS = assignments()


def answer(
    name: str, *faults: str, named: Judgement = "", truly_wrong: bool | None = None
) -> StrangersAnswer:
    return StrangersAnswer(
        name,
        "softmax",
        "unseen",
        right=not faults,
        faults=faults,
        code="",
        named=named,
        truly_wrong=truly_wrong,
    )


ANSWERS = [
    answer("slip", "a", named="rightly"),
    answer("another_slip", "a", named="wrongly"),
    answer("two_faults", "a", "b", named="not"),
    answer("hole", "a", truly_wrong=True),
    answer("right_after_all", "a", truly_wrong=False),
    answer("right"),
    answer("robbed", truly_wrong=False),
]
GRADED = {
    "slip": GradedAnswer("slip", 0.25, mistakes=("m",), hints=("h",)),
    "another_slip": GradedAnswer("another_slip", 0.5, {"attend": 1.0}, ("m",), ("h",)),
    "two_faults": GradedAnswer(
        "two_faults", 1.0, evidence="Your rows do not sum to 1."
    ),
    "hole": GradedAnswer("hole", 0.0),
    "right_after_all": GradedAnswer("right_after_all", 0.0),
    "right": GradedAnswer("right", 0.0),
    "robbed": GradedAnswer("robbed", 0.1),
}


def test_figures_count_by_what_a_person_found() -> None:
    assert figures_of(ANSWERS, GRADED).row("all") == {
        "assignment": "all",
        "wrong answers": "4",
        "at full marks": "1 (25%)",
        "right answers": "3",
        "that lose": "1 (33%)",
        "named rightly": "1 (33%)",
        "wrongly": "1 (33%)",
        "evidence alone": "1 (33%)",
        "one slip loses": "38%",  # the median of 25 % and 50 %
        "cost elsewhere": "1",
    }


def test_answers_without_a_result_do_not_count() -> None:
    row = figures_of(ANSWERS, {"right": GRADED["right"]}).row("all")
    assert (row["wrong answers"], row["right answers"]) == ("0", "1")
    assert (row["at full marks"], row["one slip loses"]) == ("–", "–")


@pytest.mark.parametrize(
    ("stranger", "lost", "mistakes", "expected"),
    [
        (answer("wrong", "a"), 0.0, (), "truly_wrong"),
        (answer("wrong", "a", truly_wrong=True), 0.0, (), ""),
        (answer("right"), 0.1, (), "truly_wrong"),
        (answer("wrong", "a"), 0.1, ("m",), "named"),
        (answer("wrong", "a", named="not"), 0.1, (), ""),
        (answer("wrong", "a", named="not"), 0.1, ("m",), "named"),
    ],
)
def test_a_person_decides_what_the_grader_cannot(
    stranger: StrangersAnswer, lost: float, mistakes: tuple[str, ...], expected: str
) -> None:
    graded = GradedAnswer(stranger.id, lost, mistakes=mistakes)
    decisions = [
        decision.partition(":")[0] for decision in open_decisions(stranger, graded)
    ]
    assert decisions == ([expected] if expected else [])


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_each_answer_is_labelled_and_can_be_read(assignment: str) -> None:
    answers = load_answers(assignment)
    assert len({stranger.id for stranger in answers}) == len(answers)
    for stranger in answers:
        assert bool(stranger.faults) != stranger.right, stranger.id
        ast.parse(stranger.code)


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_both_halves_have_as_many_of_each_kind(assignment: str) -> None:
    halves: Counter[tuple[str, int]] = Counter(
        (stranger.half, len(stranger.faults)) for stranger in load_answers(assignment)
    )
    for faults in {faults for _, faults in halves}:
        assert abs(halves["seen", faults] - halves["unseen", faults]) <= 1


def test_a_further_set_is_kept_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answers and its results stand in a folder of its own."""
    monkeypatch.setattr("strangers_figures.FOLDER", tmp_path)
    for set_name, answer_id in (("", "first"), ("spring", "second")):
        folder = tmp_path / set_name
        folder.mkdir(exist_ok=True)
        text = f"[[answer]]\nid = '{answer_id}'\nquestion = 'f'\nhalf = 'unseen'\nright = true\n"
        (folder / "a1.toml").write_text(
            text + "faults = []\ncode = 'f = 1'\n", encoding="utf-8"
        )
    spring = folder_of("spring")
    assert assignments(spring) == ["a1"]
    assert [stranger.id for stranger in load_answers("a1", spring)] == ["second"]
    store_graded("a1", [GradedAnswer("second", 0.5)], spring)
    assert load_graded("a1", spring) == {"second": GradedAnswer("second", 0.5)}
    assert load_graded("a1", tmp_path) == {}
    with pytest.raises(SystemExit, match="autumn has no answers"):
        folder_of("autumn")


def test_the_page_has_the_figures_of_the_unseen_halves() -> None:
    page = (ROOT / "docs" / "suites.md").read_text(encoding="utf-8")
    for assignment in ASSIGNMENTS:
        if graded := load_graded(assignment):
            unseen = [a for a in load_answers(assignment) if a.half == "unseen"]
            cells = figures_of(unseen, graded).row(assignment).values()
            assert f"| {' | '.join(cells)} |" in page
