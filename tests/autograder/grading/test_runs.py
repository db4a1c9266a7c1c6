"""A run among other things that happen: it alone writes, notes what comes as it comes, and misses
what disappears.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from courses import handed_in
from small_course import ANSWERS

from autograder.basics.errors import OutOfReach, ResultsInUse
from autograder.basics.handed_in import read_handed_in
from autograder.basics.whole_files import write_whole
from autograder.course import Course
from autograder.grading import batch
from autograder.grading.bench import Bench
from autograder.grading.request import GradeRequest, GradeSummary
from autograder.grading.run import grade_command
from autograder.records.model import Graded, QuestionResult, Result, TestOutcome
from autograder.records.results import (
    TimingFile,
    course_sha256,
    lock_results,
    read_timing,
    result_bytes,
)
from autograder.records.submission import FoundSubmission
from autograder.sandbox.leftovers import ScratchFolder, lock_path

Meanwhile = Callable[[str], None]
Batch = Iterator[tuple[Graded, bytes]]
SECONDS = {"run": 1.5}


@pytest.fixture
def grade(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., GradeSummary]:
    """Run the command on ada, bob and cyd, where grading is nothing; `after` is called after each
    but the last.
    """
    assignment = course.assignment("small")
    for student in ("ada", "bob", "cyd"):
        write_whole(tmp_path / "handed-in" / f"{student}.ipynb", handed_in(ANSWERS))

    def run(
        *, after: Meanwhile = lambda student: None, force: bool = False
    ) -> GradeSummary:
        def made(
            course: Course, _: object, todo: Sequence[FoundSubmission], **more: Any
        ) -> Iterator[tuple[Graded, bytes]]:
            for one in todo:
                sha256 = hashlib.sha256(one.path.read_bytes()).hexdigest()
                suite = course_sha256(course, assignment)
                tests = (TestOutcome("test_it", "passed", 1.0, 1.0),)
                questions = (QuestionResult("softmax", 1.0, 1.0, 0.0, None, tests),)
                result = Result(
                    "small",
                    one.student,
                    sha256,
                    suite,
                    "strict",
                    1.0,
                    1.0,
                    questions,
                    (),
                )
                yield (
                    Graded(one.student, result.headline(), seconds=SECONDS),
                    result_bytes(result),
                )
                after(one.student)

        monkeypatch.setattr(batch, "grade_batch", made)
        request = GradeRequest(
            course,
            assignment,
            (tmp_path / "handed-in",),
            tmp_path / "results",
            force=force,
        )
        return grade_command(request)

    return run


def stored(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "results" / "small").glob("*"))


def test_two_runs_at_once_are_one_too_many(
    grade: Callable[..., GradeSummary], course: Course, tmp_path: Path
) -> None:
    locks = course.root / ".autograder" / "locks"
    with (
        lock_results(locks, tmp_path / "results", "small"),
        pytest.raises(
            ResultsInUse,
            match=rf"\(process {os.getpid()} on .*\) writes results of small into .*results",
        ),
    ):
        grade()
    with lock_results(locks, tmp_path / "elsewhere", "small"):
        assert grade().graded == 3


def test_results_that_disappear_meanwhile_are_named_and_made_anew(
    grade: Callable[..., GradeSummary], tmp_path: Path
) -> None:
    def clean_up(student: str) -> None:
        if student == "bob":
            shutil.rmtree(tmp_path / "results")

    summary = grade(after=clean_up)
    assert [problem.student for problem in summary.problems] == ["ada", "bob"]
    assert "has disappeared" in summary.problems[0].problem
    assert ([result.student for result in summary.results], stored(tmp_path)) == (
        ["cyd"],
        ["cyd.json"],
    )
    assert summary.graded == 1
    assert grade().graded == 2
    assert stored(tmp_path) == ["ada.json", "bob.json", "cyd.json"]
    assert [entry.student for entry in read_timing(tmp_path / "results", "small")] == [
        "ada",
        "bob",
        "cyd",
    ]


def test_an_older_result_that_disappears_meanwhile_is_missed(
    grade: Callable[..., GradeSummary], tmp_path: Path
) -> None:
    grade()
    write_whole(tmp_path / "handed-in" / "bob.ipynb", handed_in(ANSWERS, ["1"]))
    summary = grade(after=lambda student: shutil.rmtree(tmp_path / "results"))
    assert summary.graded == 0
    assert [problem.student for problem in summary.problems] == ["ada", "bob", "cyd"]
    assert "has disappeared" in summary.problems[0].problem
    assert summary.results == ()
    assert grade().graded == 3


def test_what_results_hold_is_not_held_by_the_driver(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty results of half a megabyte go through its hands, one after the other."""
    assignment = course.assignment("small")
    for number in range(20):
        write_whole(tmp_path / "handed-in" / f"s{number:02}.ipynb", handed_in(ANSWERS))

    def made(
        course: Course, _: object, todo: Sequence[FoundSubmission], **more: Any
    ) -> Batch:
        for one in todo:
            result = Result("small", one.student, "", "", "strict", 1.0, 1.0, (), ())
            yield Graded(one.student, result), os.urandom(1 << 18).hex().encode()

    monkeypatch.setattr(batch, "grade_batch", made)
    tracemalloc.start()
    try:
        summary = grade_command(
            GradeRequest(
                course, assignment, (tmp_path / "handed-in",), tmp_path / "results"
            )
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (summary.graded, len(stored(tmp_path))) == (20, 20)
    assert peak < 5 << 20


def test_times_stand_on_disk_as_soon_as_a_submission_is_graded(
    grade: Callable[..., GradeSummary], tmp_path: Path
) -> None:
    seen: list[list[str]] = []
    grade(
        after=lambda student: seen.append(
            [entry.student for entry in read_timing(tmp_path / "results", "small")]
        )
    )
    assert seen == [["ada"], ["ada", "bob"], ["ada", "bob", "cyd"]]


def test_what_a_forced_run_did_not_come_to_is_known_even_where_the_run_is_killed(
    grade: Callable[..., GradeSummary], tmp_path: Path
) -> None:
    grade()
    seen: list[list[str]] = []

    def look(student: str) -> None:
        seen.append(
            [
                entry.student
                for entry in read_timing(tmp_path / "results", "small")
                if entry.older
            ]
        )

    grade(after=look, force=True)
    assert seen == [
        ["bob", "cyd"],
        ["cyd"],
        [],
    ]  # each is noted once its result is written
    assert not [
        entry for entry in read_timing(tmp_path / "results", "small") if entry.older
    ]


def test_a_result_whose_submission_has_a_problem_in_the_timing_file_is_made_anew(
    grade: Callable[..., GradeSummary], tmp_path: Path
) -> None:
    """A run was killed after it wrote bob's result, and before it noted that the problem of the run
    before is gone.
    """
    grade()
    TimingFile(tmp_path / "results", "small").note(
        [Graded("bob", problem="bob.ipynb: is empty")]
    )
    assert grade().graded == 1
    assert [entry.problem for entry in read_timing(tmp_path / "results", "small")] == [
        "",
        "",
        "",
    ]
    assert grade().graded == 0


def test_what_a_killed_run_left_half_written_is_removed(
    grade: Callable[..., GradeSummary], tmp_path: Path
) -> None:
    grade()
    others = tmp_path / "results" / ".other.timing.json.abc.part"
    for left in (
        tmp_path / "results" / "small" / ".ada.json.abc.part",
        tmp_path / "results" / ".small.timing.json.abc.part",
        others,
    ):
        left.write_text("{", encoding="utf-8")
    grade()
    assert list(tmp_path.rglob("*.part")) == [others]


def test_a_file_that_the_system_does_not_let_be_read_costs_no_older_result(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = FoundSubmission("ada", tmp_path / "ada.ipynb")
    found.path.touch()
    assert not bench.grader.grade(bench.clients[0], found).untried, (
        "it is empty: the student's doing"
    )

    def fails(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "read", fails)
    with pytest.raises(
        OutOfReach, match=r"ada.ipynb: cannot be read \(Input/output error\)"
    ):
        read_handed_in(found.path, 100)
    assert bench.grader.grade(bench.clients[0], found).untried


def test_a_temporary_folder_of_a_dead_run_is_removed_and_a_living_ones_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    living = ScratchFolder()
    dead, foreign = tmp_path / "attention-kit-dead", tmp_path / "something-else"
    dead.mkdir()
    (dead / "cache").touch()
    foreign.mkdir()
    next_one = ScratchFolder()
    assert sorted(tmp_path.iterdir()) == sorted([living.path, next_one.path, foreign])
    living.remove()
    next_one.remove()
    assert list(tmp_path.iterdir()) == [foreign]


def test_a_folder_that_a_killed_run_still_held_when_this_one_began_is_removed_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dying = tmp_path / "attention-kit-dying"
    dying.mkdir()
    held = lock_path(dying)
    this_run = ScratchFolder()
    assert dying.exists()
    os.close(held)
    this_run.remove()
    assert list(tmp_path.iterdir()) == []
