"""A class: the same results with one worker and with two, an interrupted run goes on."""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from courses import handed_in
from small_course import ANSWERS
from standing_host import lent

from autograder.basics.errors import HostFailed
from autograder.course import Course
from autograder.grading.bench import Bench, start_bench
from autograder.grading.grader import AssignmentGrader
from autograder.grading.pool import FinishedJob, Pool
from autograder.grading.request import GradeRequest
from autograder.grading.run import grade_command
from autograder.records.model import Graded
from autograder.records.results import read_timing
from autograder.records.submission import FoundSubmission

WRONG = "def softmax(z, dim=-1):\n    return z.exp() / z.exp().sum(dim=0)\n"


def write_class(root: Path) -> Path:
    made = root / "handed-in"
    made.mkdir()
    (made / "student-001.ipynb").write_text(handed_in(ANSWERS), encoding="utf-8")
    (made / "student-002.ipynb").write_text(
        handed_in({**ANSWERS, "softmax": WRONG}), encoding="utf-8"
    )
    (made / "student-003.ipynb").write_text("not a notebook", encoding="utf-8")
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_class(tmp_path)


@pytest.fixture(scope="module")
def graded_class(
    course: Course, bench: Bench, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """What was handed in and its results by one worker, for tests that begin with a class that has
    been graded.
    """
    root = tmp_path_factory.mktemp("graded")
    with lent(bench):
        grade_command(request(course, write_class(root), root, workers=1))
    return root


@pytest.fixture
def graded(graded_class: Path, tmp_path: Path) -> Path:
    """The folder of what was handed in; the results lie beside it."""
    shutil.copytree(graded_class, tmp_path, dirs_exist_ok=True)
    return tmp_path / "handed-in"


def request(
    course: Course, folder: Path, tmp_path: Path, workers: int = 2, force: bool = False
) -> GradeRequest:
    results = tmp_path / "results"
    return GradeRequest(
        course, course.assignment("small"), (folder,), results, workers, "auto", force
    )


def files(tmp_path: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in (tmp_path / "results" / "small").glob("*")
    }


def test_one_worker_and_two_with_a_host_each_give_the_same_bytes(
    course: Course, graded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = files(tmp_path)
    monkeypatch.setattr("autograder.grading.bench.GRADERS_A_HOST", 1)
    summary = grade_command(request(course, graded, tmp_path, workers=2, force=True))
    assert files(tmp_path) == one
    assert sorted(one) == ["student-001.json", "student-002.json"]
    assert [(result.student, result.score) for result in summary.results] == [
        ("student-001", 11.0),
        ("student-002", 7.0),
    ]
    assert [problem.student for problem in summary.problems] == ["student-003"]


@pytest.mark.usefixtures("standing_host")
def test_only_what_changed_is_graded_again(
    course: Course, graded: Path, tmp_path: Path
) -> None:
    (tmp_path / "results" / "small" / "student-001.json").unlink()
    (graded / "student-003.ipynb").unlink()
    again = grade_command(request(course, graded, tmp_path))
    assert (again.graded, len(again.results)) == (1, 2)
    assert grade_command(request(course, graded, tmp_path)).graded == 0
    (graded / "student-002.ipynb").write_text(handed_in(ANSWERS), encoding="utf-8")
    changed = grade_command(request(course, graded, tmp_path))
    assert [result.score for result in changed.results] == [11.0, 11.0]


@pytest.mark.usefixtures("standing_host")
def test_a_submission_that_can_no_longer_be_graded_keeps_no_old_score(
    course: Course, graded: Path, tmp_path: Path
) -> None:
    (graded / "student-002.ipynb").write_text("[]", encoding="utf-8")
    again = grade_command(request(course, graded, tmp_path))
    assert [result.student for result in again.results] == ["student-001"]
    assert sorted(files(tmp_path)) == ["student-001.json"]


@pytest.mark.usefixtures("graded")
def test_times_are_kept_apart_from_results(tmp_path: Path) -> None:
    timing = json.loads(
        (tmp_path / "results" / "small.timing.json").read_text(encoding="utf-8")
    )
    assert [entry["student"] for entry in timing["submissions"]] == [
        "student-001",
        "student-002",
        "student-003",
    ]
    assert "second" not in (
        tmp_path / "results" / "small" / "student-001.json"
    ).read_text(encoding="utf-8")


@pytest.mark.usefixtures("standing_host")
def test_one_grader_grades_one_after_the_other(course: Course, folder: Path) -> None:
    with start_bench(course, course.assignment("small")) as bench:
        scores = [
            bench.grade(FoundSubmission(name, folder / f"{name}.ipynb")).result
            for name in ("student-001", "student-002")
        ]
    assert [result.score for result in scores if result] == [11.0, 7.0]


@pytest.mark.usefixtures("standing_host")
def test_past_the_time_of_a_run_nothing_is_lost_and_the_next_run_goes_on(
    course: Course, graded: Path, tmp_path: Path
) -> None:
    (graded / "student-003.ipynb").unlink()
    before = files(tmp_path)
    (graded / "student-002.ipynb").write_text(handed_in(ANSWERS), encoding="utf-8")
    (graded / "student-004.ipynb").write_text(handed_in(ANSWERS), encoding="utf-8")
    limits = dataclasses.replace(course.limits, run_minutes=1e-6)
    short = grade_command(
        request(dataclasses.replace(course, limits=limits), graded, tmp_path)
    )
    assert [one.student for one in short.problems] == ["student-002", "student-004"]
    assert "run_minutes = 1e-06" in short.problems[0].problem
    assert files(tmp_path) == before, (
        "another limit for the run makes no result stale, and none was thrown away"
    )
    rest = grade_command(request(course, graded, tmp_path))
    assert (rest.graded, rest.problems) == (2, ())
    assert [result.score for result in rest.results] == [11.0, 11.0, 11.0]


@pytest.mark.usefixtures("standing_host")
def test_a_forced_run_that_was_cut_off_is_finished_by_the_next(
    course: Course, folder: Path, tmp_path: Path
) -> None:
    (folder / "student-003.ipynb").unlink()
    grade_command(request(course, folder, tmp_path))
    limits = dataclasses.replace(course.limits, run_minutes=1e-6)
    grade_command(
        request(
            dataclasses.replace(course, limits=limits), folder, tmp_path, force=True
        )
    )
    assert all(
        entry.older and not entry.problem
        for entry in read_timing(tmp_path / "results", "small")
    )
    rest = grade_command(request(course, folder, tmp_path))
    assert (rest.graded, rest.problems) == (2, ())
    assert not any(entry.older for entry in read_timing(tmp_path / "results", "small"))
    assert grade_command(request(course, folder, tmp_path)).graded == 0


@pytest.mark.usefixtures("standing_host")
def test_a_host_that_dies_costs_no_older_result(
    course: Course, graded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(tmp_path)

    def gone(*_: object) -> Graded:
        raise HostFailed("the sandbox host does not answer")

    monkeypatch.setattr(AssignmentGrader, "grade", gone)
    monkeypatch.setattr(Bench, "renew_hosts", lambda self: None)
    summary = grade_command(request(course, graded, tmp_path, force=True))
    assert [one.student for one in summary.problems] == [
        "student-001",
        "student-002",
        "student-003",
    ]
    assert files(tmp_path) == before


class Lines:
    """One process, and no host."""

    clients: Sequence[Any] = (None,)

    def renew_hosts(self) -> None:
        raise AssertionError("no host has failed")


def test_a_pool_takes_any_time() -> None:
    pool = Pool(
        cast("Any", Lines()),
        ["job"],
        lambda _, job: job.encode(),
        until=time.monotonic() + 1e12,
    )
    assert list(pool.run()) == [FinishedJob("job", b"job")]


def test_a_pool_ends_what_is_at_work_when_the_time_is_up() -> None:
    def work(_: Any, job: str) -> bytes:
        if job == "endless":
            time.sleep(600)
        return job.encode()

    jobs = ["quick", "endless", "never begun"]
    done = list(
        Pool(cast("Any", Lines()), jobs, work, until=time.monotonic() + 3).run()
    )
    assert done == [
        FinishedJob("quick", b"quick"),
        FinishedJob("endless"),
        FinishedJob("never begun"),
    ]
