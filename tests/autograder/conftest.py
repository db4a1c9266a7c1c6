"""Fixtures of several folders: a small course that can be graded, and results with awkward content.

Before torch and triton are loaded: one thread, since graders are forked from this process, and
interpreted kernels.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from courses import built_course, handed_in
from small_course import ANSWERS, write_course
from standing_host import lent
from stored_results import hostile, plain, problem

from autograder.course import Course
from autograder.grading.bench import Bench
from autograder.records.model import Graded, Result
from autograder.records.submission import FoundSubmission

__all__ = ["hostile", "plain", "problem"]

# The gate draws the same examples each time. `--hypothesis-profile=any-seed` draws others.
hypothesis.settings.register_profile(
    "any-seed", database=None, deadline=None, print_blob=True
)
hypothesis.settings.register_profile(
    "gate", hypothesis.settings.get_profile("any-seed"), derandomize=True
)
hypothesis.settings.load_profile("gate")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Add the skipped tests to the file that `make test` lists at its end (tests/left_out.py)."""
    path = os.environ.get("LEFT_OUT")
    if not path:
        return
    with Path(path).open("a", encoding="utf-8") as file:
        for report in terminalreporter.stats.get("skipped", []):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            file.write(f"{' '.join(reason.split())}\t{report.nodeid}\n")


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return built_course(tmp_path_factory.mktemp("course"), write_course)


@pytest.fixture(scope="session")
def bench(course: Course) -> Iterator[Bench]:
    with Bench(course, course.assignment("small"), clients=2) as started:
        yield started


@pytest.fixture
def standing_host(bench: Bench) -> Iterator[None]:
    """Whatever grades in this test does so on the host of `bench`, and starts none."""
    with lent(bench):
        yield


@pytest.fixture
def hand_in(bench: Bench, tmp_path: Path) -> Callable[..., Graded]:
    """Grade a notebook made of right answers with some cells exchanged, and extra cells."""

    def grade(*extra: str, **cells: str | None) -> Graded:
        answers = {
            name: source
            for name, source in {**ANSWERS, **cells}.items()
            if source is not None
        }
        path = tmp_path / "student-001.ipynb"
        path.write_text(handed_in(answers, extra), encoding="utf-8")
        return bench.grader.grade(
            bench.clients[0], FoundSubmission("student-001", path)
        )

    return grade


@pytest.fixture
def grade(hand_in: Callable[..., Graded]) -> Callable[..., Result]:
    """As `hand_in`, for submissions that can be graded."""

    def result(*extra: str, **cells: str | None) -> Result:
        graded = hand_in(*extra, **cells)
        assert graded.result is not None, graded.problem
        return graded.result

    return result
