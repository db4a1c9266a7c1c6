"""What answers may cost, and `costs.toml`, which says why some cost more or less."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.basics.errors import BadSuite
from autograder.proof.cost_exceptions import CostException, load_costs
from autograder.proof.figures import MistakeCost, QuestionFigures, cost_problems


def figures(
    mistakes: dict[str, float], trivial: dict[str, float] | None = None
) -> QuestionFigures:
    costs = tuple(
        MistakeCost(name, lost, ("test_a",)) for name, lost in mistakes.items()
    )
    return QuestionFigures("f", 4.0, 3, 2, costs, (), trivial or {}, None, None, ())


def found(
    mistakes: dict[str, float], trivial: dict[str, float] | None = None, **said: str
) -> list[str]:
    listed = {("f", name): CostException(kind, "why") for name, kind in said.items()}
    return [
        problem.partition(":")[0]
        for problem in cost_problems([figures(mistakes, trivial)], listed, ["f", "g"])
    ]


def test_a_slip_loses_half_at_most_and_what_misses_the_point_a_third_at_least() -> None:
    assert found(
        {"half": 0.5, "third": 1 / 3, "nearly_all": 0.9}, third="misses_the_point"
    ) == ["mistake f/nearly_all loses 90%, and is not in costs.toml"]
    assert found(
        {"cheap": 0.3, "all": 1.0}, cheap="misses_the_point", all="misses_the_point"
    ) == ["mistake f/cheap loses 30%"]
    assert found({"cheap": 0.3, "all": 1.0}, cheap="cheap", all="dear") == []


def test_an_exception_that_is_none_is_stale() -> None:
    assert found({"a": 0.5, "b": 0.4}, a="dear", b="cheap") == [
        "mistake f/a loses 50%, which is not dear",
        "mistake f/b loses 40%, which is not cheap",
    ]
    assert found({"a": 0.5}, b="dear") == ["costs.toml, [f.dear]"]
    assert list(
        cost_problems([], {("h", "a"): CostException("dear", "why")}, ["f"])
    ) == ["costs.toml: there is no question h"]


def test_answers_without_an_idea_score_next_to_nothing() -> None:
    assert found({}, {"zeros": 0.06, "ones": 0.05}) == ["f"]
    assert found(
        {}, {"zeros": 0.06, "ones": 0.05}, zeros="for_nothing", ones="for_nothing"
    ) == ["f"]
    assert found({}, {"zeros": 0.06}, zeros="for_nothing") == []
    assert found({}, zeros="for_nothing") == []  # they were not tried
    assert found({"a": 0.1}, a="for_nothing") == ["costs.toml, [f.for_nothing]"]


def test_a_suite_without_the_file_is_asked_for_trivial_answers_only(
    tmp_path: Path,
) -> None:
    assert load_costs(tmp_path) is None
    assert list(cost_problems([figures({"all": 1.0})], None, ["f"])) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[f.dear]\na = ["why"]\n', 'lists a = "reason"'),
        ('[f.dear]\na = " "\n', 'lists a = "reason"'),
        ('[f.dear]\na = "as b"\n', "as another_answer"),
        ('[f.dear]\na = "as b"\nb = "as a"\n', "as another_answer"),
        ('[f.deer]\na = "why"\n', "is none of"),
        ('[f.dear]\na = "why"\n[f.cheap]\na = "so"\n', "listed twice"),
        ('f = "a"\n', "outside"),
        ("[f\n", "cannot be read"),
    ],
)
def test_a_file_of_another_form_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "costs.toml").write_text(text, encoding="utf-8")
    with pytest.raises(BadSuite, match=said):
        load_costs(tmp_path)


def test_an_answer_has_its_own_reason_or_that_of_another(tmp_path: Path) -> None:
    (tmp_path / "costs.toml").write_text(
        '[f.dear]\nb = "as a"\na = "why"\n', encoding="utf-8"
    )
    assert load_costs(tmp_path) == {
        ("f", "a"): CostException("dear", "why"),
        ("f", "b"): CostException("dear", "why"),
    }
