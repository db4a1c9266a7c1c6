"""Which stored results hold, and what a regrade takes over, with files that the test writes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from stored_results import outcome, question

from autograder.basics.errors import KitError
from autograder.course import Assignment, Course, Limits
from autograder.grading import staleness
from autograder.grading.regrade import (
    Comparison,
    Move,
    apply_regrade,
    explain_move,
    side_folder,
)
from autograder.grading.request import GradeRequest
from autograder.grading.share import Share, parse_share
from autograder.grading.staleness import find_misvalued, find_stale, keep_current
from autograder.records import results as results_module
from autograder.records.model import Graded, Result
from autograder.records.results import (
    TimingFile,
    load_timing,
    read_result,
    result_path,
    write_result,
)


def result(student: str = "ada", points: float = 1.0, **fields: Any) -> Result:
    tests = outcome("test_a", points, 2.0), outcome("test_b", 1.0, 1.0)
    answered = question("double", *tests)
    whole = Result(
        "m1", student, "notebook", "suite", "strict", points + 1.0, 3.0, (answered,), ()
    )
    return dataclasses.replace(whole, **fields)


# results that hold


def test_older_results_are_left_out_and_told_beside_current_ones() -> None:
    lines: list[str] = []
    new, old = result(), result("bob", suite_sha256="old")
    assert keep_current([new, old, old], "suite", "m1", lines.append) == [new]
    assert lines == [
        "2 results are older than the suite and left out; `autograder grade m1`"
    ]
    lines.clear()
    assert keep_current([new], "suite", "m1", lines.append) == [new]
    assert keep_current([old], "suite", "m1", lines.append) == []
    assert keep_current([], "suite", "m1", lines.append) == []
    assert lines == []


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A course whose suite has the hash "suite", with a built assignment m1."""
    monkeypatch.setattr(staleness, "course_sha256", lambda course, assignment: "suite")
    course = Course(tmp_path, limits=Limits(notebook_mb=1))
    assignment = Assignment("m1", tmp_path)
    for path in (assignment.release, assignment.solution):
        path.parent.mkdir(parents=True)
        path.touch()
    return course


def hand_in(course: Course, student: str, content: bytes) -> None:
    path = course.submitted / student / "m1" / "m1.ipynb"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)


EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_result_is_stale_for_its_notebook_or_its_suite(course: Course) -> None:
    assignment = Assignment("m1", course.root)
    hand_in(course, "ada", b"other")
    hand_in(course, "bob", b"")
    results = [
        result("ada"),
        result("bob", submission_sha256=EMPTY),
        result("cyd", suite_sha256="old"),
        result("dan"),
    ]
    own = find_stale(course, assignment, results, own_submissions=True)
    assert own == {
        "ada": "another notebook has been handed in since",
        "cyd": "the suite, the answer key or the limits have changed since",
    }
    other = find_stale(course, assignment, results, own_submissions=False)
    assert list(other) == ["cyd"]
    assignment.solution.unlink()
    assert find_stale(course, assignment, results, own_submissions=False) == {}


def test_without_submissions_there_is_nothing_to_compare_with(course: Course) -> None:
    assignment = Assignment("m1", course.root)
    assert find_stale(course, assignment, [result()], own_submissions=True) == {}


def test_a_notebook_that_is_too_large_has_no_hash(course: Course) -> None:
    assignment = Assignment("m1", course.root)
    hand_in(course, "ada", b"x" * (1 << 20))
    hand_in(course, "bob", b"x" * ((1 << 20) + 1))
    results = [result("ada"), result("bob")]
    stale = find_stale(course, assignment, results, own_submissions=True)
    assert list(stale) == ["ada"]


def test_points_of_the_suite_are_compared_for_its_own_results(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    assignment = Assignment("m1", course.root)
    points = {"double": 4.0}
    monkeypatch.setattr(staleness, "points_of_questions", lambda assignment: points)
    results = [result("ada"), result("bob", suite_sha256="old")]
    assert find_misvalued(course, assignment, results) == {
        "ada": "double is worth 4, not 3"
    }
    points["double"] = 3.0
    assert find_misvalued(course, assignment, results) == {}
    points.clear()
    assert find_misvalued(course, assignment, results) == {}
    points["double"] = 4.0
    assignment.solution.unlink()
    assert find_misvalued(course, assignment, results) == {}


# regrades


@pytest.fixture
def request_of(course: Course) -> GradeRequest:
    assignment = Assignment("m1", course.root)
    return GradeRequest(course, assignment, results=course.root / "results")


def store(folder: Path, *entries: Graded) -> None:
    """Write results and the timing file as a run does."""
    for entry in entries:
        if entry.result is not None:
            write_result(folder, entry.result)
    TimingFile(folder, "m1").note(entries)


def test_new_results_replace_old_ones_which_go_to_the_history(
    request_of: GradeRequest,
) -> None:
    folder = request_of.results
    side = side_folder(folder)
    store(folder, Graded("ada", result()), Graded("bob", result("bob")))
    store(
        side,
        Graded("ada", result(points=2.0), seconds={"run": 1.0}),
        Graded("bob", problem="no notebook"),
        Graded("cyd", result("cyd")),
    )
    write_result(side, result(assignment="m2"))
    apply_regrade(request_of)
    ada = read_result(folder, "m1", "ada")
    assert ada is not None
    assert ada.score == 3.0
    assert read_result(folder, "m1", "bob") is None
    assert read_result(folder, "m1", "cyd") is not None
    history = sorted(path.name for path in folder.glob("history/m1/*/*.json"))
    assert history == ["ada.json", "bob.json"]
    entries = {entry.student: entry for entry in load_timing(folder, "m1")}
    assert entries["ada"].seconds == {"run": 1.0}
    assert entries["bob"].problem == "no notebook"
    assert not (side / "m1").exists()
    assert not (side / "m1.timing.json").exists()
    assert read_result(side, "m2", "ada") is not None  # another assignment's regrade


def test_a_new_result_that_is_the_old_one_stays_without_a_copy(
    request_of: GradeRequest,
) -> None:
    folder = request_of.results
    store(folder, Graded("ada", result()))
    store(side_folder(folder), Graded("ada", result()))
    apply_regrade(request_of)
    assert read_result(folder, "m1", "ada") == result()
    assert not (folder / "history").exists()


def test_a_new_result_that_does_not_add_up_stops_all(request_of: GradeRequest) -> None:
    folder = request_of.results
    side = side_folder(folder)
    store(folder, Graded("ada", result()), Graded("bob", result("bob")))
    store(side, Graded("ada", result(points=2.0)), Graded("bob", result("bob")))
    broken = result_path(side, "m1", "bob")
    broken.write_text(broken.read_text().replace('"score": 2.0', '"score": 2.5'))
    with pytest.raises(KitError, match="it is no result that adds up; nothing was"):
        apply_regrade(request_of)
    ada = read_result(folder, "m1", "ada")
    assert ada is not None
    assert ada.score == 2.0
    assert (side / "m1" / "ada.json").exists()


def test_an_entry_of_a_run_that_was_killed_changes_nothing(
    request_of: GradeRequest,
) -> None:
    folder = request_of.results
    store(folder, Graded("ada", result()))
    store(side_folder(folder), Graded("ada"))
    apply_regrade(request_of)
    assert read_result(folder, "m1", "ada") == result()


def test_a_timing_file_that_cannot_be_read_stops_a_regrade(
    request_of: GradeRequest,
) -> None:
    side = side_folder(request_of.results)
    side.mkdir(parents=True)
    (side / "m1.timing.json").write_text("{")
    with pytest.raises(KitError, match="nothing was taken over: remove it, and run"):
        apply_regrade(request_of)


def test_a_comparison_in_lines() -> None:
    moves = (Move("ada", "2 → 3 of 3 (+1)", ("test_a failed → passed (+1)", "more")),)
    suites = {"b" * 20: 2, "a" * 20: 1}
    assert list(Comparison(moves, 4, ("bob",), suites).lines()) == [
        "results that count: 1 of suite aaaaaaaaaaaa, 2 of suite bbbbbbbbbbbb",
        "ada 2 → 3 of 3 (+1): test_a failed → passed (+1); more",
        "bob: not graded by this run",
        "marks that move: 1, that stay: 4",
    ]
    assert next(Comparison((), 0, (), {}).lines()) == "results that count: none"


def test_a_mark_moves_by_the_smallest_difference() -> None:
    old = result()
    assert explain_move(old, dataclasses.replace(old, score=2.0 + 1e-10)) == []
    # of other full points a mark moves though its score stays
    other = dataclasses.replace(old, max_score=4.0, submission_sha256="other")
    assert explain_move(old, other) == ["another notebook has been handed in"]
    assert explain_move(None, None) == []
    assert explain_move(old, None, "no notebook") == [
        "can no longer be graded: no notebook"
    ]
    assert explain_move(None, old) == ["has no result that counts yet"]


def test_tests_that_move_points_are_named() -> None:
    old = result()
    moved = dataclasses.replace(
        old,
        score=4.0,
        max_score=5.0,
        questions=(
            question(
                "double",
                outcome("test_a", 3.0, 4.0),
                outcome("test_c", 1.0, 1.0),
            ),
        ),
    )
    assert explain_move(old, moved) == [
        "double: test_a still failed (+2, worth 4 now)",
        "double: test_b is gone (-1 of 1)",
        "double: test_c is new, passed (+1 of 1)",
    ]
    kept = dataclasses.replace(old.questions[0], kept=0.5, carried=0.25)
    changed = dataclasses.replace(old, score=2.75, questions=(kept,))
    assert explain_move(old, changed) == [
        "double: carried points (+0.25)",
        "double: kept points (+0.5)",
    ]
    # a question that comes or goes takes its points with it
    empty = dataclasses.replace(old, score=0.0, questions=())
    alone = dataclasses.replace(
        changed, questions=(dataclasses.replace(kept, tests=()),)
    )
    assert explain_move(empty, alone) == [
        "double: carried points (+0.25)",
        "double: kept points (+0.5)",
    ]
    assert explain_move(alone, empty) == [
        "double: carried points (-0.25)",
        "double: kept points (-0.5)",
    ]


# shares


def test_a_share_in_words() -> None:
    assert parse_share("3/16") == Share(3, 16)
    assert parse_share("999999/999999").name == "999999-of-999999"
    for text in ("0/3", "4/3", "1/1000000", "1/", "a/3", "1/3 "):
        with pytest.raises(KitError, match="write the third of sixteen shares as 3/16"):
            parse_share(text)


# times


def test_a_problem_of_the_machine_keeps_an_older_result(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    write_result(folder, result("ada"))
    file = TimingFile(folder, "m1")
    file.note(
        [
            Graded("ada", problem="no disk", untried=True),
            Graded("bob", problem="no disk", untried=True),
            Graded("cyd", problem="no notebook"),
        ]
    )
    entries = {entry.student: entry for entry in load_timing(folder, "m1")}
    assert (entries["ada"].older, entries["ada"].problem) == ("no disk", "")
    assert (entries["bob"].older, entries["bob"].problem) == ("", "no disk")
    assert (entries["cyd"].older, entries["cyd"].problem) == ("", "no notebook")
    file.mark_older(["ada", "bob"])
    entries = {entry.student: entry for entry in load_timing(folder, "m1")}
    words = "it was to be graded again, and the run ended first"
    assert (entries["ada"].older, entries["bob"].older) == (words, "")
    file.note([Graded("ada", result("ada"))])
    (ada, *_) = load_timing(folder, "m1")
    assert ada == Graded("ada")


def test_a_copy_for_the_history_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "m1" / "ada.json"
    old.parent.mkdir()
    copy = results_module.copy_for_history
    assert copy(tmp_path, "m1", old, b"new", "ada.json") is None
    old.write_bytes(b"old")
    assert copy(tmp_path, "m1", old, b"old", "ada.json") is None
    folders = []
    for _ in range(3):
        made = copy(tmp_path, "m1", old, None, "ada.json")
        assert made is not None
        path, content = made
        assert content == b"old"
        path.parent.mkdir(parents=True)
        path.touch()
        folders.append(path.parent.name)
    day = folders[0]
    assert folders == [day, f"{day}.2", f"{day}.3"]
