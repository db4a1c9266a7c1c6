"""One grader for a batch, another when the suite changes, none left open."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbgrader_course import TinyCourse, result_for

from autograder.basics.errors import HostFailed
from autograder.nbgrader import warm_graders
from autograder.records.model import Graded
from autograder.records.submission import FoundSubmission


class FakeBench:
    opened = 0
    closed = 0

    def __init__(self, course: Any, assignment: Any) -> None:
        pass

    def __enter__(self) -> FakeBench:
        FakeBench.opened += 1
        return self

    def __exit__(self, *error: Any) -> None:
        FakeBench.closed += 1

    def grade(self, found: FoundSubmission) -> Graded:
        if found.student == "dead host":
            raise HostFailed("gone")
        return Graded(found.student, result_for(found.student))


@pytest.fixture
def warm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    FakeBench.opened = FakeBench.closed = 0
    module = types.ModuleType("autograder.grading.bench")
    module.start_bench = FakeBench  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "autograder.grading.bench", module)
    fresh = warm_graders._Warm()
    monkeypatch.setattr(warm_graders, "_warm", fresh)
    yield fresh
    fresh.close()


def test_a_batch_shares_one_grader_until_the_suite_changes(
    tiny: TinyCourse, warm: Any
) -> None:
    course, assignment = tiny.course, tiny.course.assignment("tiny")
    warm_graders.warm_up(course, assignment)
    for student in ("ada", "ben"):
        assert (
            warm_graders.grade(
                course, assignment, FoundSubmission(student, Path("x"))
            ).student
            == student
        )
    assert (FakeBench.opened, FakeBench.closed) == (1, 0)

    (assignment.suite / "test_half.py").write_text("# corrected\n", encoding="utf-8")
    warm_graders.grade(course, assignment, FoundSubmission("ada", Path("x")))
    assert (FakeBench.opened, FakeBench.closed) == (2, 1)

    warm.close()
    assert (FakeBench.opened, FakeBench.closed) == (2, 2)


def test_a_grader_that_failed_is_not_used_again(tiny: TinyCourse, warm: Any) -> None:
    course, assignment = tiny.course, tiny.course.assignment("tiny")
    with pytest.raises(HostFailed):
        warm_graders.grade(course, assignment, FoundSubmission("dead host", Path("x")))
    assert (FakeBench.opened, FakeBench.closed) == (1, 1)
    warm_graders.grade(course, assignment, FoundSubmission("ada", Path("x")))
    assert (FakeBench.opened, FakeBench.closed) == (2, 1)


def test_a_grader_that_nobody_needs_is_closed(tiny: TinyCourse, warm: Any) -> None:
    warm_graders.warm_up(tiny.course, tiny.course.assignment("tiny"))
    assert warm._timer.interval == 30.0
    warm._timer.function()  # as when the time is up
    assert (FakeBench.opened, FakeBench.closed) == (1, 1)
