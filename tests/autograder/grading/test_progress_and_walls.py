"""What a person sees while a class is graded, which walls a result may name, and what a run says of
submissions that it did not reach.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from autograder.course import Limits
from autograder.grading.batch import read_finished_job
from autograder.grading.bench import extras_for_any
from autograder.grading.graded_bytes import pack_graded
from autograder.grading.pool import FinishedJob
from autograder.grading.request import GradeRequest, Progress, Watcher
from autograder.grading.staleness import _accepted_isolations, why_stale
from autograder.records.model import Graded, Result
from autograder.records.submission import FoundSubmission
from autograder.sandbox.tiers import TIERS

ADA = FoundSubmission("ada", Path("submitted/ada/a1/a1.ipynb"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def result_of(student: str = "ada", score: float = 7.0) -> Result:
    return Result(
        assignment="a1",
        student=student,
        submission_sha256="notebook",
        suite_sha256="suite",
        isolation="strict",
        score=score,
        max_score=10.0,
        questions=(),
        cells=(),
    )


# what a person sees


def test_a_watcher_prints_warnings_alone() -> None:
    stream = io.StringIO()
    with Watcher(stream) as watcher:
        watcher.begin("a1", 2)
        watcher.step(Graded("ada", result_of()))
        watcher.warn("the disk is full")
    assert stream.getvalue() == "autograder: the disk is full\n"
    Watcher().warn("nobody reads this")


@pytest.mark.parametrize(
    ("total", "line"),
    [(1, "grading 1 submission of a1\n"), (2, "grading 2 submissions of a1\n")],
)
def test_outside_of_a_terminal_there_is_one_line(total: int, line: str) -> None:
    stream = io.StringIO()
    with Progress(stream) as progress:
        progress.begin("a1", total)
        progress.step(Graded("ada", result_of()))
        progress.warn("slow")
    assert stream.getvalue() == f"{line}autograder: slow\n"


def test_a_terminal_has_a_bar_with_the_last_student() -> None:
    stream = Terminal()
    progress = Progress(stream)
    with progress:
        progress.begin("a1", 2)
        assert "0/2" in stream.getvalue()
        progress.step(Graded("ada", result_of(score=7.5)))
        shown = stream.getvalue()
        assert "grading 1 submission" not in shown
        assert "1/2" in shown
        assert "ada: 7.5" in shown
        name = "b" * 41
        progress.step(Graded(name, problem="no notebook"))
        shown = stream.getvalue()
        assert "2/2" in shown
    bar = progress._bar
    assert f"{'b' * 40}: not graded" in shown
    assert name not in shown
    assert bar.finished
    assert not bar.live.is_started


def test_markup_in_a_students_name_is_text() -> None:
    stream = Terminal()
    with Progress(stream) as progress:
        progress.begin("a1", 1)
        progress.step(Graded("[bold]eve", result_of()))
    assert "[bold]eve: 7" in stream.getvalue()


# submissions that a run did not reach


def test_a_job_that_was_not_begun_names_the_limit() -> None:
    graded, content = read_finished_job(FinishedJob(ADA), Limits(run_minutes=90.5))
    assert content == b""
    assert graded == Graded(
        "ada",
        problem="a1.ipynb: the time of this run ([limits] run_minutes = 90.5) was over "
        "before; `autograder grade` again goes on with what is left",
        untried=True,
    )


def test_a_job_that_failed_says_why() -> None:
    job = FinishedJob(ADA, fault="the machine is gone")
    graded, content = read_finished_job(job, Limits())
    assert content == b""
    problem = "a1.ipynb: the machine is gone"
    assert graded == Graded("ada", problem=problem, untried=True)


def test_a_job_that_is_done_is_its_answer() -> None:
    whole = Graded("ada", result_of())
    job = FinishedJob(ADA, pack_graded(whole))
    graded, content = read_finished_job(job, Limits())
    assert graded.student == "ada"
    assert not graded.untried
    assert graded.result is not None
    assert graded.result.score == 7.0
    assert b'"score"' in content


# walls


def request(**options: Any) -> GradeRequest:
    nothing: Any = None
    return GradeRequest(nothing, nothing, **options)


@pytest.mark.parametrize(
    ("isolation", "names"),
    [
        ("auto", {"strict", *TIERS}),
        ("strict", {"strict"}),
        ("namespaces", {"strict"}),
        ("landlock", {"strict"}),
        ("uid", {"uid"}),
        ("none", {"none"}),
    ],
)
def test_a_result_is_current_behind_the_walls_that_were_asked_for(
    isolation: str, names: set[str]
) -> None:
    accepted = _accepted_isolations(request(isolation=isolation))
    assert accepted == names
    on_gpu = _accepted_isolations(request(isolation=isolation, device="cuda"))
    assert on_gpu == {f"{name}+cuda" for name in names}


def test_a_result_is_stale_for_the_first_reason_that_holds() -> None:
    result = result_of()
    assert why_stale(result, "notebook", "suite", ["strict"]) == ""
    assert why_stale(result) == ""
    assert why_stale(result, "", "other", []) == (
        "another notebook has been handed in since"
    )
    assert why_stale(result, "notebook", "other", []) == (
        "the suite, the answer key or the limits have changed since"
    )
    assert why_stale(result, "notebook", "suite", []) == (
        "it was graded behind other walls"
    )
    assert why_stale(result, "notebook", "suite", ["uid"]) != ""


def test_hosts_for_unknown_submissions_are_ready_for_plots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing: Any = None
    course: Any = type("Course", (), {"limits": Limits()})

    def find(assignment: object, files: object, limits: object) -> tuple[str, ...]:
        assert files == ()
        return extras

    monkeypatch.setattr("autograder.grading.bench.find_extras", find)
    extras: tuple[str, ...] = ("torch", "sympy")
    assert extras_for_any(course, nothing) == ("dynamo", "matplotlib", "sympy", "torch")
    extras = ()
    assert extras_for_any(course, nothing) == ("matplotlib",)
