"""`build --check`: stale files, leaks, and what counts as a notebook that runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tiny_course import TINY

from autograder.authoring import build_check
from autograder.authoring.build import BuiltNotebooks, build_assignment, write_build
from autograder.authoring.build_check import (
    check_assignment,
    file_problems,
    leak_problems,
    run_problems,
)
from autograder.authoring.execute import CellError
from autograder.basics.errors import StaleBuild
from autograder.course import Assignment, Course
from autograder.suite.collection import SuiteQuestion


def build(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    text: str = TINY,
) -> BuiltNotebooks:
    tiny.source.write_text(text, encoding="utf-8")
    built = build_assignment(course, tiny, questions)
    write_build(tiny, built)
    return built


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Say what the kernel reports, in place of running one (test_notebook_runs.py runs one)."""

    def report(*errors: CellError) -> None:
        monkeypatch.setattr(
            build_check, "execute_notebook", lambda notebook, files, seconds: errors
        )

    return report


# cells of the built `tiny`, from 0: text, given, double, two checks of double, half, its grade
# cell, demo, written
GIVEN, CHECK, DEMO = 1, 4, 7
STUB = "double: write your answer here"


def problems_of_the_release(built: BuiltNotebooks) -> list[str]:
    return run_problems("the release", built.release_bytes, built, 1.0, stubs=True)


def test_a_sound_assignment_passes_and_nothing_is_written(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    run: Callable[..., None],
) -> None:
    built = build(course, tiny, questions)
    run()
    before = {path: path.stat().st_mtime_ns for path in course.root.rglob("*")}
    assert check_assignment(course, tiny, questions) == built
    assert {path: path.stat().st_mtime_ns for path in course.root.rglob("*")} == before


def test_all_problems_are_listed_at_once(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    run: Callable[..., None],
) -> None:
    build(course, tiny, questions)
    tiny.solution.unlink()
    tiny.release.write_text("<svg/>")
    run(CellError(DEMO, "ZeroDivisionError", "division by zero", ""))
    with pytest.raises(StaleBuild) as caught:
        check_assignment(course, tiny, questions)
    assert str(caught.value).split("\n") == [
        "tiny: 5 problems",
        "  - assignments/tiny/tiny.ipynb is stale: run `autograder build tiny`",
        "  - solutions/tiny/tiny.ipynb is missing: run `autograder build tiny`",
        "  - assignments/tiny/tiny.ipynb is not a notebook",
        "  - the release does not run: cell 8, demo 'both': ZeroDivisionError: division by zero",
        "  - the answer key does not run: cell 8, demo 'both': ZeroDivisionError: division by zero",
    ]


def test_stale_and_missing_files_are_named(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    built = build(course, tiny, questions)
    assert file_problems(tiny, built) == []
    (tiny.release.parent / "figures" / "line.svg").write_text("<svg></svg>")
    (tiny.release.parent / "data").mkdir()
    (tiny.release.parent / "data" / "old.csv").write_text("1")
    tiny.release.unlink()
    assert file_problems(tiny, built) == [
        "assignments/tiny/figures/line.svg is stale: run `autograder build tiny`",
        "assignments/tiny/tiny.ipynb is missing: run `autograder build tiny`",
        "assignments/tiny/data/old.csv is not in the source any more",
    ]


def test_a_release_edited_by_hand_is_searched_for_leaks_too(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    built = build(course, tiny, questions)
    tiny.release.write_bytes(built.solution_bytes)
    assert leak_problems(tiny, built) == [
        "assignments/tiny/tiny.ipynb: cell 3 (double) gives away a line of the answer to double: "
        "doubled_by_addition = x + x",
        "assignments/tiny/tiny.ipynb: cell 6 (half) gives away a line of the answer to half: "
        "return x * math.exp(-math.log(2.0))",
        "assignments/tiny/tiny.ipynb: cell 9 (why) gives away a line of the answer to why: "
        "Halving undoes doubling, since one multiplies by two and the other divides by it.",
    ]


@pytest.mark.parametrize(
    "error",
    [
        CellError(CHECK, "NotImplementedError", STUB, ""),
        CellError(DEMO, "InterpreterError", f"NotImplementedError('{STUB}')", ""),
        CellError(
            DEMO,
            "RuntimeError",
            "the kernel failed",
            f"NotImplementedError: {STUB}\n\nRuntimeError: the kernel",
        ),
    ],
)
def test_a_cell_may_fail_because_it_calls_a_stub(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    run: Callable[..., None],
    error: CellError,
) -> None:
    run(error)
    assert problems_of_the_release(build(course, tiny, questions)) == []


def test_a_cell_may_miss_what_a_failed_cell_would_have_made(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    run: Callable[..., None],
) -> None:
    built = build(
        course, tiny, questions, TINY + '\n# %% demo="after"\nprint(shown, shwon)\n'
    )
    stub, after = CellError(DEMO, "NotImplementedError", STUB, ""), 9
    run(stub, CellError(after, "NameError", "name 'shown' is not defined", ""))
    assert problems_of_the_release(built) == []
    run(stub, CellError(after, "NameError", "name 'shwon' is not defined", ""))
    assert problems_of_the_release(built) == [
        "the release does not run: cell 10, demo 'after': NameError: name 'shwon' is not defined"
    ]


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (
            CellError(GIVEN, "ModuleNotFoundError", "No module named 'numpi'", ""),
            "cell 2, given 'imports': ModuleNotFoundError: No module named 'numpi'",
        ),
        (
            CellError(GIVEN, "NotImplementedError", STUB, ""),
            f"cell 2, given 'imports': NotImplementedError: {STUB}",
        ),
        (
            CellError(DEMO, "NotImplementedError", "conv2d on this device\nmore", ""),
            "cell 8, demo 'both': NotImplementedError: conv2d on this device",
        ),
        (
            CellError(DEMO, "Timeout", "took longer than 1 seconds", ""),
            "cell 8, demo 'both': Timeout: took longer than 1 seconds",
        ),
    ],
)
def test_a_cell_may_not_fail_by_itself(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    run: Callable[..., None],
    error: CellError,
    problem: str,
) -> None:
    run(error)
    assert problems_of_the_release(build(course, tiny, questions)) == [
        f"the release does not run: {problem}"
    ]


def test_the_answer_key_may_not_call_a_stub(
    course: Course,
    tiny: Assignment,
    questions: dict[str, SuiteQuestion],
    run: Callable[..., None],
) -> None:
    built = build(course, tiny, questions)
    run(CellError(CHECK, "NotImplementedError", STUB, ""))
    assert run_problems(
        "the answer key", built.solution_bytes, built, 1.0, stubs=False
    ) == [
        f"the answer key does not run: cell 5, check 'double': NotImplementedError: {STUB}"
    ]
