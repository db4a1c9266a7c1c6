"""The figures of a proof: what mistakes cost, what is idle or flaky, and how they are written
down.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from autograder.basics.errors import KitError
from autograder.proof.code_mutants import Variant
from autograder.proof.cost_exceptions import CostException
from autograder.proof.figures import (
    QuestionFigures,
    cost_problems,
    flaky,
    question_figures,
)
from autograder.proof.mutants import JudgedMutant
from autograder.proof.proof_report import (
    TABLES,
    as_json,
    describe_difference,
    diagnosis_row,
    figures_row,
    read_rows,
    write_report,
)
from autograder.proof.trials import Trial, TrialKind, TrialOutcome, TrialTest
from autograder.proof.verify import Proof
from autograder.proof.whole_submissions import (
    DiagnosedSample,
    LoneAnswer,
    sample_problems,
    unfit_samples,
    verdict_shares,
)
from autograder.suite.collection import SuiteQuestion, SuiteTest
from autograder.suite.known_answers import KnownAnswer

QUESTION = SuiteQuestion(
    "f",
    (
        SuiteTest("test_a", 3.0, ""),
        SuiteTest("test_b", 1.0, ""),
        SuiteTest("test_c", 0.0, ""),
    ),
    (),
    (),
)
CELL = "def f(x):\n    return x + 1\n"


def tried(
    kind: TrialKind, name: str, failing: str = "", *, draw: int = 0, far: float = 0.5
) -> TrialOutcome:
    """A trial that fails the tests whose last letters are given; all values compared are `far`
    apart.
    """
    tests = tuple(
        TrialTest(
            test.name,
            "failed" if test.name[-1] in failing else "passed",
            "",
            (far,),
            0.0,
        )
        for test in QUESTION.tests
    )
    return TrialOutcome(Trial(kind, "f", name, draw=draw), tests)


TRIED = [
    tried("key", "key", far=0.01),
    tried("alternate", "other", far=0.25),
    tried("mistake", "cheap", "b", far=40.0),
    tried("mistake", "dear", "abc", far=9.0),
    tried("mistake", "middling", "bc", far=30.0),
    tried("trivial", "zeros", "a"),
    tried("trivial", "NaN", "ab"),
]
JUDGED = [
    JudgedMutant(Variant("f", "x + 1 → x", CELL.replace("x + 1", "x")), "survived"),
    JudgedMutant(Variant("f", "1 → 2", CELL.replace("1", "2")), "killed"),
    JudgedMutant(
        Variant("f", "x + 1 → 1 + x", CELL.replace("x + 1", "1 + x")),
        "equivalent",
        "a sum <b>",
    ),
]


SAID = {("f", "dear"): CostException("dear", "all of it is <one> value")}


def figures() -> QuestionFigures:
    (one,) = question_figures(
        [QUESTION, SuiteQuestion("g", (), (), ())], TRIED, JUDGED, SAID
    )
    return one


def test_costs_idle_tests_and_margins() -> None:
    one = figures()
    assert [(cost.name, cost.lost, cost.tests) for cost in one.mistakes] == [
        ("cheap", 0.25, ("test_b",)),
        ("dear", 1.0, ("test_a", "test_b")),
        ("middling", 0.25, ("test_b",)),
    ]
    assert one.caught_once == ("cheap", "middling")
    assert one.idle == ()
    assert (one.furthest_right, one.nearest_wrong) == (0.25, 9.0)
    assert one.trivial == {"zeros": 0.25, "NaN": 0.0}
    without_dear = [trial for trial in TRIED if trial.trial.name != "dear"]
    assert question_figures([QUESTION], without_dear, [], {})[0].idle == ("test_a",)


def test_what_scores_for_nothing_and_what_depends_on_the_draw() -> None:
    assert list(cost_problems([figures()], None, ["f"])) == [
        "f: an answer that is zeros scores 25% of the points"
    ]
    assert list(flaky(TRIED)) == []
    again = [
        tried("key", "key", "b", draw=3),
        tried("alternate", "other", draw=3),
        tried("mistake", "cheap", draw=4),
        tried("mistake", "dear", "a", draw=4),
    ]
    assert list(flaky(again)) == [
        "key f fails test_b with draw 3 of the inputs",
        "mistake f/cheap is not caught by draw 4 of the inputs",
    ]


def proof(name: str = "a1") -> Proof:
    return Proof(
        name, "strict", 4.0, {"f": CELL}, (figures(),), ("survives: f: x + 1 → x",)
    )


def test_a_row_of_the_table() -> None:
    assert tuple(figures_row(proof()).values()) == (
        "a1",
        "1",
        "3",
        "3",
        "25%",
        "100%",
        "1",
        "0",
        "2",
        "0",
        "1",
        "3",
        "50.0%",
        "1",
        "25%",
    )


TOLD = (
    DiagnosedSample(
        "f", "axis_swapped", ("wrong_axis",), ("wrong_axis", "no_checks"), 3.0
    ),
    DiagnosedSample(
        "f",
        "both_faults",
        ("wrong_axis", "no_checks"),
        ("wrong_axis", "no_checks"),
        3.0,
    ),
    DiagnosedSample("f", "own_idea", (), (), 2.0),
    DiagnosedSample(
        "f", "smaller_fault_named", ("wrong_axis", "no_checks"), ("no_checks",), 2.0
    ),
    DiagnosedSample("f", "in_a_loop", None, (), 0.0),
)
ALONE = (
    LoneAnswer("f", "wrong_axis", ("wrong_axis",), {}, ()),
    LoneAnswer("f", "no_checks", ("wrong_axis",), {"g": 2.0}, ("g",)),
)


def test_a_sample_is_named_rightly_or_wrongly_or_told_too_little() -> None:
    assert [one.verdict for one in TOLD] == [
        "wrong",
        "right",
        "right",
        "too little",
        "right",
    ]
    assert verdict_shares(TOLD) == (0.5, 0.25)
    assert verdict_shares([]) == (1.0, 0.0)
    row_of_a1 = diagnosis_row(
        dataclasses.replace(proof("a1"), samples=TOLD, lone_mistakes=ALONE)
    )
    assert tuple(row_of_a1.values()) == (
        "a1",
        "4",
        "50%",
        "25%",
        "1",
        "0",
        "2",
        "1",
        "1",
        "1",
    )
    assert tuple(diagnosis_row(proof("a1")).values()) == ("a1", *9 * ("–",))


def test_what_is_wrong_with_samples_is_named() -> None:
    assert list(sample_problems(TOLD[4:])) == []
    assert list(
        sample_problems(
            [
                DiagnosedSample("f", "in_a_loop", None, (), 2.0),
                DiagnosedSample("f", "is_right", ("a",), (), 0.0),
            ]
        )
    ) == [
        "samples.py: f/in_a_loop is a right answer, and loses 2 points",
        "samples.py: f/is_right is a wrong answer, and loses nothing",
    ]
    assert list(
        sample_problems(
            [DiagnosedSample("f", name, ("a",), (), 1.0) for name in ("one", "two")]
        )
    ) == [
        "samples.py: 0% are named rightly, 0% wrongly:",
        "samples.py: f/one is told nothing, and deserves a",
        "samples.py: f/two is told nothing, and deserves a",
    ]
    assert list(sample_problems(TOLD))[1:] == [
        "samples.py: f/axis_swapped is told wrong_axis and no_checks, and deserves wrong_axis",
        "samples.py: f/smaller_fault_named is told no_checks, and deserves wrong_axis and no_checks",
    ]
    sample = KnownAnswer("f", "mine", "", "", deserves=("wrong_axis",))
    known = [KnownAnswer(question, "wrong_axis", "hint", "") for question in ("f", "g")]
    assert list(unfit_samples([sample], known)) == []
    assert list(unfit_samples([sample], known[1:])) == [
        "samples.py: mine deserves wrong_axis, which is no mistake of f"
    ]


def test_the_table_of_a_page_keeps_other_rows_and_words(tmp_path: Path) -> None:
    page = tmp_path / "suites.md"
    figures, diagnosis = TABLES
    marks = f"{figures.begin}\n{figures.end}\n\nBetween.\n\n{diagnosis.begin}\n{diagnosis.end}"
    page.write_text(f"Before.\n\n{marks}\n\nAfter.\n", encoding="utf-8")
    write_report(page, [proof("a2")])
    write_report(page, [proof("a1")])
    text = page.read_text(encoding="utf-8")
    assert text.startswith(
        "Before.\n\n<!-- begin of the figures -->\n| assignment | questions |"
    )
    assert "\n<!-- end of the figures -->\n\nBetween.\n" in text
    assert text.endswith("\n<!-- end of diagnosis -->\n\nAfter.\n")
    assert list(read_rows(text)) == ["a1", "a2"]
    assert read_rows(text)["a2"] == figures_row(proof("a2"))
    told = dataclasses.replace(proof("a2"), samples=TOLD, lone_mistakes=ALONE)
    write_report(page, [told])
    write_report(page, [proof("a2")])
    assert read_rows(page.read_text(encoding="utf-8"), diagnosis)[
        "a2"
    ] == diagnosis_row(told)
    plain = question_figures(
        [QUESTION], [one for one in TRIED if one.trial.kind != "trivial"], [], SAID
    )
    write_report(page, [dataclasses.replace(proof("a1"), figures=tuple(plain))])
    assert read_rows(page.read_text(encoding="utf-8"))["a1"] == figures_row(proof("a1"))
    with pytest.raises(KitError, match="of a1 only a part was proven"):
        write_report(
            page, [dataclasses.replace(proof("a1"), cells={"f": CELL, "g": CELL})]
        )
    (tmp_path / "other.md").write_text("nothing")
    with pytest.raises(KitError, match="begin of the figures"):
        write_report(tmp_path / "other.md", [proof()])


def test_the_page_names_what_survives_and_escapes_what_people_wrote(
    tmp_path: Path,
) -> None:
    page = tmp_path / "page.html"
    write_report(page, [proof()])
    text = page.read_text(encoding="utf-8")
    assert "x + 1 → x" in text
    assert "a sum &lt;b&gt;" in text
    assert "-    return x + 1" in text
    assert "dear: all of it is &lt;one&gt; value" in text


def test_a_wrapped_answer_has_no_difference() -> None:
    assert (
        describe_difference(CELL, JUDGED[0].mutant)
        == " def f(x):\n-    return x + 1\n+    return x"
    )
    assert (
        describe_difference(CELL, Variant("f", "changes x", CELL + "f = g(f)\n")) == ""
    )


def test_figures_as_json() -> None:
    (one,) = json.loads(as_json([proof()]))
    assert one["questions"][0]["mistakes"][0] == {
        "name": "cheap",
        "lost": 0.25,
        "tests": ["test_b"],
        "exception": None,
    }
    assert one["questions"][0]["mutants"][1] == {
        "name": "1 → 2",
        "fate": "killed",
        "reason": "",
    }
