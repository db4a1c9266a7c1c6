"""Whatever a student does to the cells, the right ones run and the student is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from multiples import (
    ANSWERS,
    AT,
    CHECKS,
    IMPORTS,
    LIBRARY,
    STUBS,
    WRITTEN,
    code,
    given,
    notebook,
    question,
    sheet,
    text,
)

from autograder.basics.errors import UnreadableSubmission
from autograder.course import Assignment, Course
from autograder.intake.cell_matching import find_answer_cell
from autograder.intake.cell_text import CellText, describe_cell
from autograder.intake.notebook import read_submission
from autograder.intake.released_notebook import load_release
from autograder.records.submission import Answer, FoundSubmission, Submission

Read = Callable[..., Submission]


def ids(submission: Submission) -> list[str]:
    return [cell.id for cell in submission.cells]


def source(submission: Submission, id_: str) -> str:
    return next(cell.source for cell in submission.cells if cell.id == id_)


def note(submission: Submission, id_: str) -> str:
    return next(cell.note for cell in submission.cells if cell.id == id_)


def told(submission: Submission) -> list[tuple[str, str]]:
    return [(notice.id, notice.outcome) for notice in submission.notices]


IN_ORDER = ["given_imports", "double", "given_library", "triple", "Counter"]


def test_an_untroubled_notebook_runs_given_and_question_cells_only(read: Read) -> None:
    submission = read(sheet(ANSWERS))
    assert ids(submission) == IN_ORDER
    assert [cell.source for cell in submission.cells] == [
        IMPORTS,
        ANSWERS["double"],
        LIBRARY,
        ANSWERS["triple"],
        ANSWERS["Counter"],
    ]
    assert all(cell.note == "" for cell in submission.cells)
    assert submission.notices == ()
    assert submission.written == (Answer("written_why", WRITTEN, blank=True),)


def test_every_cell_of_the_file_has_the_id_of_the_released_cell_that_it_is(
    read: Read,
) -> None:
    """Of two copies of a locked cell the one that counts; a stub that another cell answers has
    none.
    """
    cells = sheet(ANSWERS)
    cells.insert(AT["imports"] + 1, given("imports", IMPORTS))
    cells.insert(0, code("mine = 1"))
    cells.append(question("double", STUBS["double"]))
    ids_of_file = [cell.id for cell in read(cells).handed_in]
    assert ids_of_file == [
        "",
        "",
        "given_imports",
        "",
        "",
        "double",
        "check_double",
        "given_library",
        "triple",
        "check_triple",
        "Counter",
        "check_Counter",
        "demo_plot",
        "written_why",
        "",
    ]


def test_own_cells_run_in_their_place(read: Read) -> None:
    cells = sheet(ANSWERS)
    cells.insert(AT["double"] + 1, code("helper = 1"))
    cells.append(code("print(helper)"))
    submission = read(cells)
    assert ids(submission) == [
        "given_imports",
        "double",
        "extra-1",
        "given_library",
        "triple",
        "Counter",
        "extra-2",
    ]
    assert source(submission, "extra-2") == "print(helper)"


# A question's cell without its label


KEPT = """def double(x):
    # a first hint
    half = x / 2
    whole = x + half
    rest = x - half
    raise NotImplementedError
"""
RENAMED = {
    # of the stub's 5 lines of code
    3: "def doubled(x):\n    half = x / 2\n    whole = x + half\n    rest = x - half\n    return 2 * x",
    2: "def doubled(x):\n    half = x / 2\n    whole = x + half\n    return 2 * x",
}


@pytest.mark.parametrize(("lines", "is_found"), [(3, True), (2, False)])
def test_a_renamed_answer_without_its_label_is_found_by_three_of_five_lines(
    course: Course, assignment: Assignment, tmp_path: Path, lines: int, is_found: bool
) -> None:
    released = sheet({})
    released[AT["double"]] = question("double", KEPT)
    assignment.release.write_text(json.dumps(notebook(released)))
    cells = sheet(ANSWERS)
    cells[AT["double"]] = code(RENAMED[lines])
    path = tmp_path / "student-001.ipynb"
    path.write_text(json.dumps(notebook(cells)))
    found = FoundSubmission("student-001", path)
    submission = read_submission(found, load_release(assignment), course.limits)
    assert ("double" in ids(submission)) is is_found
    assert (("double", "missing") in told(submission)) is not is_found


# Given and check cells


def test_a_deleted_given_cell_comes_back_before_what_follows_it(read: Read) -> None:
    cells = sheet(ANSWERS)
    del cells[AT["library"]], cells[AT["imports"]]
    submission = read(cells)
    assert ids(submission) == IN_ORDER
    assert "restored" in note(submission, "given_imports")
    assert source(submission, "given_library") == LIBRARY


def test_an_edited_given_cell_runs_as_released(read: Read) -> None:
    cells = sheet(ANSWERS)
    cells[AT["library"]]["source"] = "def scale(x):\n    return 0"
    submission = read(cells)
    assert source(submission, "given_library") == LIBRARY
    assert "changed this locked cell" in note(submission, "given_library")
    assert ids(submission) == IN_ORDER


def test_what_is_added_to_a_given_cell_still_run(read: Read) -> None:
    cells = sheet(ANSWERS)
    cells[AT["imports"]]["source"] = (
        IMPORTS + "\nimport random\nprint('hi')\ndef helper():\n    return 3\nlimit = 4"
    )
    submission = read(cells)
    assert ids(submission)[:2] == ["given_imports", "extra-1"]
    assert (
        source(submission, "extra-1")
        == "\n\nimport random\n\ndef helper():\n    return 3\nlimit = 4"
    )


def test_a_given_cell_moved_to_the_end_runs_before_the_questions(read: Read) -> None:
    cells = sheet(ANSWERS)
    cells.append(cells.pop(AT["imports"]))
    assert ids(read(cells)) == IN_ORDER


def test_an_edited_check_does_not_run_and_costs_nothing(read: Read) -> None:
    cells = sheet(ANSWERS)
    cells[AT["check_double"]]["source"] = "while True: pass"
    submission = read(cells)
    assert ids(submission) == IN_ORDER
    assert told(submission) == [("check_double", "skipped")]


def test_a_deleted_check_is_said_to_be_missing(read: Read) -> None:
    cells = sheet(ANSWERS)
    del cells[AT["check_double"]]
    assert told(read(cells)) == [("check_double", "missing")]


def test_a_check_turned_into_a_solution_cell_with_other_points_stays_a_check(
    read: Read,
) -> None:
    cells = sheet(ANSWERS)
    cells[AT["check_double"]]["metadata"]["nbgrader"] |= {
        "solution": True,
        "locked": False,
        "points": 1000,
    }
    cells[AT["check_double"]]["source"] = "double = print"
    submission = read(cells)
    assert ids(submission) == IN_ORDER
    assert told(submission) == [("check_double", "skipped")]


# Questions


def test_a_deleted_question_is_missing(read: Read) -> None:
    cells = sheet(ANSWERS)
    del cells[AT["triple"]]
    submission = read(cells)
    assert "triple" not in ids(submission)
    assert ("triple", "missing") in told(submission)
    assert find_answer_cell(submission, "triple") is None


def test_reordered_questions_keep_the_students_order(read: Read) -> None:
    cells = sheet(ANSWERS)
    cells.insert(AT["triple"], cells.pop(AT["Counter"]))
    assert ids(read(cells)) == [
        "given_imports",
        "double",
        "given_library",
        "Counter",
        "triple",
    ]


def test_a_question_moved_above_a_given_cell_still_has_it(read: Read) -> None:
    cells = sheet(ANSWERS)
    cells.insert(AT["double"], cells.pop(AT["Counter"]))
    assert ids(read(cells)) == [
        "given_imports",
        "given_library",
        "Counter",
        "double",
        "triple",
    ]


@pytest.mark.parametrize("stub_first", [True, False])
def test_of_a_stub_and_an_answer_the_answer_is_kept(
    read: Read, stub_first: bool
) -> None:
    cells = sheet(ANSWERS)
    cells.insert(
        AT["double"] + (0 if stub_first else 1), question("double", STUBS["double"])
    )
    submission = read(cells)
    assert ids(submission) == IN_ORDER
    assert source(submission, "double") == ANSWERS["double"]
    assert told(submission) == [("double", "skipped")]


def test_of_two_answers_the_last_that_defines_the_function_is_kept(read: Read) -> None:
    cells = sheet(ANSWERS)
    cells[AT["double"]]["source"] = "def double(x):\n    return 0"
    cells.insert(AT["double"] + 1, question("double", ANSWERS["double"]))
    cells.insert(AT["double"] + 2, question("double", "print('trying')"))
    submission = read(cells)
    assert source(submission, "double") == ANSWERS["double"]
    assert ids(submission) == IN_ORDER


def test_a_split_cell_keeps_its_helper(read: Read) -> None:
    cells = sheet(ANSWERS)
    cells[AT["double"]]["source"] = "def double(x):\n    return _twice(x)"
    cells.insert(AT["double"], question("double", "def _twice(x):\n    return 2 * x"))
    submission = read(cells)
    assert ids(submission) == [
        "given_imports",
        "extra-1",
        "double",
        "given_library",
        "triple",
        "Counter",
    ]
    assert "_twice" in source(submission, "extra-1")


def test_two_questions_merged_into_one_cell_are_both_found(read: Read) -> None:
    cells = sheet(ANSWERS)
    cells[AT["double"]]["source"] = ANSWERS["double"] + "\n\n" + ANSWERS["triple"]
    del cells[AT["triple"]]
    submission = read(cells)
    assert ("triple", "ok") in told(submission)
    assert ("triple", "missing") not in told(submission)
    answer = find_answer_cell(submission, "triple")
    assert answer is not None
    assert answer.id == "double"


def test_an_answer_in_a_cell_above_its_stub_is_not_undone_by_the_stub(
    read: Read,
) -> None:
    cells = sheet({**ANSWERS, "triple": STUBS["triple"]})
    cells.insert(AT["triple"], code(ANSWERS["triple"]))
    submission = read(cells)
    assert source(submission, "triple") == ANSWERS["triple"]
    assert STUBS["triple"] not in [cell.source for cell in submission.cells]


def test_an_answer_in_another_questions_cell_is_not_undone_by_the_stub(
    read: Read,
) -> None:
    cells = sheet({**ANSWERS, "triple": STUBS["triple"]})
    cells[AT["double"]]["source"] = ANSWERS["double"] + "\n\n" + ANSWERS["triple"]
    submission = read(cells)
    assert STUBS["triple"] not in [cell.source for cell in submission.cells]
    assert ("triple", "ok") in told(submission)


def test_an_answer_merged_into_a_check_is_found(read: Read) -> None:
    cells = sheet(ANSWERS)
    cells[AT["check_double"]]["source"] = ANSWERS["double"] + "\n" + CHECKS["double"]
    del cells[AT["double"]]
    submission = read(cells)
    assert "return 2 * x" in source(submission, "double")
    assert "assert" not in source(submission, "double")


def test_a_question_made_a_text_cell_is_missing_and_says_why(read: Read) -> None:
    cells = sheet(ANSWERS)
    cells[AT["double"]]["cell_type"] = "markdown"
    notice = next(n for n in read(cells).notices if n.id == "double")
    assert notice.outcome == "missing"
    assert "code cell" in notice.message


def test_a_cell_that_does_not_parse_is_matched_all_the_same(read: Read) -> None:
    cells = [
        {**cell, "metadata": {}}
        for cell in sheet({**ANSWERS, "double": "def double(x:\n    return (2 *"})
    ]
    submission = read(cells)
    assert source(submission, "double") == "def double(x:\n    return (2 *"


# Lost metadata


def test_without_any_metadata_the_same_cells_run(read: Read) -> None:
    with_it = read(sheet(ANSWERS))
    without = read([{**cell, "metadata": {}} for cell in sheet(ANSWERS)])
    assert [(c.id, c.role, c.source) for c in without.cells] == [
        (c.id, c.role, c.source) for c in with_it.cells
    ]
    assert without.written == with_it.written
    # said once about the file, and not on every cell
    assert not any("an editor dropped" in cell.note for cell in without.cells)
    gone = [notice.message for notice in without.notices if notice.id == "notebook"]
    count = len(without.cells)
    assert gone == [
        f"an editor dropped the labels of its cells: {count} cells were recognised by their "
        "content, which costs nothing"
    ]


def test_without_metadata_a_stub_below_the_answer_is_dropped(read: Read) -> None:
    cells = sheet(ANSWERS)
    cells.insert(AT["double"] + 1, code(STUBS["double"]))
    assert STUBS["double"] not in [cell.source for cell in read(cells).cells]


def test_a_written_answer_is_found_by_its_place(read: Read) -> None:
    cells = sheet(ANSWERS)
    cells[AT["written"]] = text("Since it maps sums to sums.")
    cells[AT["written"]]["metadata"] = {}
    assert read(cells).written == (
        Answer("written_why", "Since it maps sums to sums."),
    )


def test_a_deleted_written_answer_is_missing(read: Read) -> None:
    cells = sheet(ANSWERS)
    del cells[AT["written"]]
    submission = read(cells)
    assert submission.written == ()
    assert told(submission) == [("written_why", "missing")]


# Other notebooks


def test_another_assignments_notebook_is_refused(read: Read) -> None:
    with pytest.raises(
        UnreadableSubmission,
        match=r"^student-001\.ipynb: has the cells of another assignment \(halve\)",
    ):
        read(
            [
                question("halve", "def halve(x):\n    return x / 2"),
                given("imports", IMPORTS),
            ]
        )


def test_what_another_assignment_gives_is_no_answer(read: Read) -> None:
    with pytest.raises(UnreadableSubmission, match="another assignment"):
        read(
            [
                given("library", ANSWERS["double"]),
                question("halve", "def halve(x):\n    return x / 2"),
            ]
        )


def test_a_notebook_of_something_else_is_refused(read: Read) -> None:
    with pytest.raises(
        UnreadableSubmission,
        match="none of the assignment's cells; hand in the notebook of m1",
    ):
        read([code("print('hello')"), text("my notes")])


def test_a_fresh_notebook_with_the_functions_only_is_graded(read: Read) -> None:
    submission = read([code(ANSWERS["double"]), code(ANSWERS["triple"])])
    assert {"double", "triple", "given_imports", "given_library"} == set(
        ids(submission)
    )
    assert ("Counter", "missing") in told(submission)


def test_strange_metadata_matches_nothing_and_breaks_nothing(read: Read) -> None:
    cells: list[Any] = sheet(ANSWERS)
    cells[AT["double"]]["metadata"] = {
        "nbgrader": ["grade_id"],
        "attention_kit": {"role": 3, "name": None},
    }
    cells[AT["triple"]]["metadata"] = {"nbgrader": {"grade_id": {"a": 1}}}
    cells[AT["Counter"]]["metadata"] = None
    assert ids(read(cells)) == IN_ORDER


def test_the_hash_is_that_of_the_file(read: Read) -> None:
    import hashlib

    raw = json.dumps(notebook(sheet(ANSWERS))).encode()
    assert read(raw).sha256 == hashlib.sha256(raw).hexdigest()


def test_a_given_cell_that_is_there_twice_runs_once_and_is_told(read: Read) -> None:
    cells = sheet(ANSWERS)
    cells.insert(AT["library"], given("library", LIBRARY))
    submission = read(cells)
    assert ids(submission).count("given_library") == 1
    (notice,) = submission.notices
    assert (notice.outcome, notice.message) == (
        "skipped",
        "this cell is there 2 times; it counts once",
    )


def test_a_cell_is_described_by_its_number_and_its_first_line() -> None:
    assert describe_cell(0, "\n  x = 1\ny = 2") == "cell 1 (x = 1)"
    assert describe_cell(2, "x" * 40) == f"cell 3 ({'x' * 40})"
    assert describe_cell(2, "x" * 41) == f"cell 3 ({'x' * 37}...)"
    assert describe_cell(4, " \n") == "cell 5 ()"


def test_the_share_of_lines_that_another_text_keeps() -> None:
    """Of four lines of code; comments and indentation do not count."""
    text = CellText("a\n  b\nc\nd\n# note\n")
    assert text.share_kept_in(CellText("    a\nb\n# c\nx")) == 0.5
    assert text.share_kept_in(CellText("")) == 0.0
    assert CellText("# note").share_kept_in(text) == 0.0
