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
from graded_results import outcome, result
from small_course import ANSWERS

from autograder.basics.whole_files import write_whole
from autograder.cli.commands import main
from autograder.course import Course, load_course
from autograder.grading.staleness import HANDED_IN, OTHER_SUITE, find_stale
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
