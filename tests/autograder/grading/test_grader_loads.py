"""What a grader loads of an assignment, once for a class; its parts are played."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import BadSuite
from autograder.course import Assignment, Course
from autograder.grading import grader as grader_module
from autograder.grading.grader import AssignmentGrader
from autograder.suite.timed_functions import SpeedTest

CELLS = [
    SimpleNamespace(role=role, name=name, source=f"# {name}")
    for role, name in (("given", "imports"), ("question", "f"), ("check", "f"))
]
RELEASE = SimpleNamespace(cells=CELLS)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Any, ...]]:
    """The arguments of each part that was made, by its name."""
    loaded: dict[str, tuple[Any, ...]] = {}

    def noting(name: str, made: Any) -> Any:
        def make(*arguments: Any) -> Any:
            loaded[name] = arguments
            return made

        return make

    key = SimpleNamespace(
        known_answers=lambda file: [f"of {file}"], cells="the key's cells"
    )
    suite = SimpleNamespace(questions=[SimpleNamespace(name="f")])
    for name, made in {
        "load_release": RELEASE,
        "load_reference": "the reference",
        "LoadedSuite": suite,
        "course_sha256": "sha",
        "AnswerKey": key,
        "KnownRuns": "known runs",
        "KnownSitting": "known sitting",
        "Diagnostician": "diagnostician",
        "Examples": "examples",
        "names_of_checks": {"n": "check"},
    }.items():
        monkeypatch.setattr(grader_module, name, noting(name, made))
    return loaded


def test_all_that_a_class_shares_is_loaded_once(
    loaded: dict[str, tuple[Any, ...]], tmp_path: Path
) -> None:
    course, assignment = Course(tmp_path), Assignment("m1", tmp_path)
    grader: Any = AssignmentGrader(course, assignment)
    questions = grader.questions
    assert list(questions) == ["f"]
    # a suite is collected for the released questions, and for no other cell
    assert loaded["LoadedSuite"] == (assignment, "the reference", {"f": "# f"})
    assert loaded["AnswerKey"] == (assignment, RELEASE, course.limits)
    assert loaded["KnownRuns"] == (course, assignment, "sha")
    known = (grader.key, grader.suite, course.limits, "known runs")
    assert loaded["KnownSitting"] == known
    assert loaded["Diagnostician"] == (
        "known sitting",
        ["of mistakes.py"],
        "the key's cells",
    )
    examples = (assignment, "known sitting", "the reference", questions, course.limits)
    assert loaded["Examples"] == examples
    assert (grader.sha256, grader._names_of_checks) == ("sha", {"n": "check"})
    assert (grader._device, grader._speed_meter) == (None, None)


def test_a_function_is_timed_where_the_suite_says_which(
    loaded: dict[str, tuple[Any, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grader: Any = AssignmentGrader(Course(tmp_path), Assignment("m1", tmp_path))
    device: Any = SimpleNamespace(device=SimpleNamespace(name="cuda"))
    tests: list[Any] = [None]
    monkeypatch.setattr(grader_module, "load_speed_test", lambda suite: tests[-1])
    grader.use_device(device)
    assert (grader._device, grader._speed_meter) == (device, None)
    client: Any = SimpleNamespace(tier="namespaces")
    assert grader.isolation(client) == "strict+cuda"
    test = SpeedTest("f", "f", "", lambda: (), lambda answer: answer, 0.0)
    tests.append(test)
    grader.use_device(device)
    assert (grader._speed_meter.test, grader._speed_meter._device) == (test, device)
    tests.append(SpeedTest("g", "g", "", lambda: (), lambda answer: answer, 0.0))
    with pytest.raises(BadSuite, match=r"speed\.py: there is no question 'g'$"):
        grader.use_device(device)
