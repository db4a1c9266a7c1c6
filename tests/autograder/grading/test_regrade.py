"""A regrade changes nothing until it is looked at; what it replaces is kept by date, and what is
stale is said.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from courses import handed_in, on_stderr
from small_course import ANSWERS

from autograder.basics.whole_files import write_whole
from autograder.cli.commands import main
from autograder.course import Course, load_course
from autograder.grading.regrade import compare_results, explain_move
from autograder.grading.staleness import HANDED_IN, OTHER_SUITE, find_stale
from autograder.records.model import QuestionResult, TestOutcome
from autograder.records.model import Result as Graded
from autograder.records.results import read_results, write_result

Run = Callable[..., Result]

pytestmark = pytest.mark.usefixtures("standing_host")


@pytest.fixture
def mine(course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A copy of the course with one submission that gets 11 of 11."""
    shutil.copytree(course.root, tmp_path / "course")
    monkeypatch.chdir(tmp_path / "course")
    write_whole(Path("submitted/ada/small/small.ipynb"), handed_in(ANSWERS))
    return load_course(Path.cwd())


@pytest.fixture
def run(mine: Course) -> Run:
    return lambda *arguments: CliRunner().invoke(main, [str(a) for a in arguments])


def score(course: Course) -> float:
    return float(
        json.loads((course.root / "results/small/ada.json").read_text())["score"]
    )


def test_marks_move_only_when_they_are_taken_over(mine: Course, run: Run) -> None:
    assert run("grade", "small", "--workers", "1").exit_code == 0
    before = (mine.root / "results/small/ada.json").read_bytes()
    suite = mine.assignment("small").suite / "test_counter.py"
    suite.write_text(
        suite.read_text().replace("@points(1)", "@points(2)").replace("== 7", "== 8")
    )

    looked = run("regrade", "small", "--workers", "1")
    assert looked.exit_code == 0, looked.output
    assert (
        "ada 11 → 10 of 12 (-1): counter: test_counts passed → failed (-1, worth 2 now)"
        in looked.stdout
    )
    assert "marks that move: 1, that stay: 0" in looked.stdout
    assert (mine.root / "results/small/ada.json").read_bytes() == before
    assert (
        f"stale results: {OTHER_SUITE}: 1: ada"
        in run("export", "small", "--format", "csv").stderr
    )

    assert "taken over" in run("regrade", "small", "--workers", "1", "--apply").stdout
    assert score(mine) == 10.0
    (kept,) = (mine.root / "results/history/small").glob("*/ada.json")
    assert kept.read_bytes() == before
    assert not (mine.root / "results/regrade/small").exists()
    assert "stale" not in run("export", "small", "--format", "csv").stderr
    assert "1 unchanged" in run("grade", "small", "--workers", "1").stdout


def outcome(name: str, points: float, most: float = 2.0) -> TestOutcome:
    return TestOutcome(name, "passed" if points else "failed", points, most)


def result(
    *tests: TestOutcome, carried: float = 0.0, submission: str = "a", suite: str = "s"
) -> Graded:
    earned, most = (
        sum(t.points for t in tests) + carried,
        sum(t.max_points for t in tests),
    )
    question = QuestionResult("softmax", earned, most, carried, None, tests)
    return Graded(
        "small", "ada", submission, suite, "strict", earned, most, (question,), ()
    )


def test_each_test_that_moves_a_mark_is_named() -> None:
    before = result(outcome("a", 2.0), outcome("b", 0.0), outcome("c", 2.0))
    # the sum is the same
    assert (
        explain_move(
            before, result(outcome("a", 2.0), outcome("b", 2.0), outcome("d", 0.0))
        )
        == []
    )
    after = result(
        outcome("a", 0.0),
        outcome("b", 0.0),
        outcome("d", 3.0, 3.0),
        carried=1.0,
        submission="b",
    )
    assert explain_move(
        result(outcome("a", 2.0), outcome("b", 0.0), outcome("c", 1.0)), after
    ) == [
        "another notebook has been handed in",
        "softmax: a passed → failed (-2)",
        "softmax: c is gone (-1 of 2)",
        "softmax: d is new, passed (+3 of 3)",
        "softmax: carried points (+1)",
    ]
    assert explain_move(before, None, "it is empty") == [
        "can no longer be graded: it is empty"
    ]
    assert explain_move(None, before) == ["has no result that counts yet"]


@pytest.mark.parametrize(
    ("old", "new", "reasons"),
    [
        # a test that is worth more moves the mark's share, though it has the same points
        ((2.0, 2.0), (2.0, 3.0), ["a still passed (+0, worth 3 now)"]),
        ((2.0, 2.0), (3.0, 3.0), ["a still passed (+1, worth 3 now)"]),
        ((1.0, 2.0), (1.5, 2.0), ["a still passed (+0.5)"]),
        ((0.0, 2.0), (2.0, 2.0), ["a failed → passed (+2)"]),
        # what rounding leaves is nothing
        ((2.0, 2.0), (2.0 + 1e-10, 2.0), []),
    ],
)
def test_a_test_moves_points_or_is_worth_others(
    old: tuple[float, float], new: tuple[float, float], reasons: list[str]
) -> None:
    moved = explain_move(result(outcome("a", *old)), result(outcome("a", *new)))
    assert moved == [f"softmax: {reason}" for reason in reasons]


def test_points_that_are_kept_no_more_move_a_mark() -> None:
    before = result(outcome("a", 1.0))
    (question,) = before.questions
    after = dataclasses.replace(
        before,
        score=0.5,
        questions=(dataclasses.replace(question, score=0.5, kept=-0.5),),
    )
    assert explain_move(before, after) == ["softmax: kept points (-0.5)"]


def test_a_result_is_stale_where_its_suite_or_its_notebook_is_another(
    mine: Course,
) -> None:
    assignment, other = mine.assignment("small"), result(outcome("a", 2.0))
    assert find_stale(mine, assignment, [other], own_submissions=False) == {
        "ada": OTHER_SUITE
    }
    assert find_stale(mine, assignment, [other], own_submissions=True) == {
        "ada": HANDED_IN
    }
    elsewhere = dataclasses.replace(other, student="eve")
    assert find_stale(mine, assignment, [elsewhere], own_submissions=True) == {
        "eve": OTHER_SUITE
    }


def test_a_replaced_result_and_its_page_are_kept_by_date(
    mine: Course, run: Run
) -> None:
    results = mine.root / "results"
    for points in (
        2.0,
        2.0,
        0.0,
        1.0,
    ):  # the second is the first again, and replaces nothing
        write_result(results, result(outcome("a", points)))
        assert run("report", "small").exit_code == 0
    kept = sorted(
        path.relative_to(results / "history/small")
        for path in results.glob("history/small/**/ada.*")
    )
    day = kept[0].parts[0]
    assert [path.as_posix() for path in kept] == [
        f"{day}/ada.json",
        f"{day}/feedback/ada.html",
        f"{day}.2/ada.json",
        f"{day}.2/feedback/ada.html",
    ]
    assert [
        json.loads((results / "history/small" / path).read_text())["score"]
        for path in kept[::2]
    ] == [2.0, 0.0]
    assert [r.score for r in read_results(results, "small", on_stderr)] == [1.0]
    assert "1 stale" in (results / "small.html").read_text()


def test_a_comparison_counts_moves_suites_and_who_was_not_tried() -> None:
    """Ada moves by two points, Bob stays, Cyd is not tried, Dan is new, Eve is not asked for."""

    def scored(student: str, points: float, suite: str = "old") -> Graded:
        tests = (TestOutcome("a", "passed", points, 4.0),)
        questions = (QuestionResult("f", points, 4.0, 0.0, None, tests),)
        return Graded(
            "small", student, "n", suite, "strict", points, 4.0, questions, ()
        )

    counting = {name: scored(name, 1.0) for name in ("ada", "bob", "cyd")}
    counting["eve"] = scored("eve", 1.0, "older")
    regraded = {
        "ada": scored("ada", 3.0),
        "bob": scored("bob", 1.0),
        "dan": scored("dan", 2.0),
    }
    students = ["dan", "cyd", "bob", "ada"]
    comparison = compare_results(
        students, counting, regraded, {"cyd": "no disk"}, ("cyd",)
    )
    assert [(move.student, move.change) for move in comparison.moves] == [
        ("ada", "1 → 3 of 4 (+2)"),
        ("dan", "none → 2 of 4"),
    ]
    assert (comparison.same, comparison.untried) == (1, ("cyd",))
    assert "cyd: not graded by this run: no disk" in list(comparison.lines())
    assert comparison.suites == {"old": 3}
    gone = compare_results(["ada"], counting, {}, {"ada": "it is empty"})
    assert [(move.change, move.reasons) for move in gone.moves] == [
        ("1 → none of none", ("can no longer be graded: it is empty",))
    ]
