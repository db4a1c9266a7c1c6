"""Points by hand count for the answer that they were given for, and for no other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from courses import on_stderr
from nbgrader_course import HALF_ANSWERED, TinyCourse, release_cells, result_for

from autograder.nbgrader.gradebook import open_gradebook
from autograder.records.results import write_result
from autograder.reporting.marks_commands import report_command


@pytest.fixture
def scored(tiny: TinyCourse) -> TinyCourse:
    """Ada has 4 of 6 from the tests and 3 of 4 from a person, for "Because."; the answer key's 10
    are full marks.
    """
    tiny.hand_in_words("ada", "Because.")
    tiny.export_gradebook()
    tiny.score_by_hand("ada", "written_why", 3.0)
    return tiny


def exported(tiny: TinyCourse, *, provisional: bool = False) -> dict[str, str]:
    """Ada's row of the CSV."""
    return tiny.exported(provisional=provisional)["ada"]


def test_other_words_wait_for_a_person_before_the_gradebook_is_filled_again(
    scored: TinyCourse, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (exported(scored)["total"], exported(scored)["status"]) == ("7", "graded")
    assert "earlier answer" not in capsys.readouterr().err
    scored.hand_in_words("ada", "Who knows?")
    ada = exported(scored)
    assert (
        "points by hand are for an earlier answer and wait: 1: ada; fill the gradebook"
        in capsys.readouterr().err
    )
    assert (ada["total"], ada["status"]) == ("", "waits for a person")
    assert ada["note"] == "waits: why; why: 3 of 4 given for an earlier answer"
    assert exported(scored, provisional=True)["total"] == "7"


def test_the_page_says_what_the_points_were_given_for(scored: TinyCourse) -> None:
    scored.hand_in_words("ada", "Who knows?")
    course = scored.course
    list(
        report_command(
            course, course.assignment("tiny"), scored.root / "results", on_stderr
        )
    )
    page = (scored.root / "feedback" / "ada" / "tiny" / "tiny.html").read_text(
        encoding="utf-8"
    )
    assert "3 of 4 points were given for your earlier answer." in page
    assert "Up to 4 more points, for written answers, are given by a person." in page
    assert "(points for an earlier answer)" in (
        scored.root / "results" / "tiny.html"
    ).read_text(encoding="utf-8")


def test_they_wait_after_it_is_filled_again_too_until_a_person_has_looked(
    scored: TinyCourse,
) -> None:
    scored.hand_in_words("ada", "Who knows?")
    scored.export_gradebook()
    assert (
        exported(scored)["note"]
        == "waits: why; why: 3 of 4 given for an earlier answer"
    )
    scored.score_by_hand("ada", "written_why", 0.5)
    assert (exported(scored)["total"], exported(scored)["status"]) == ("4.5", "graded")


def test_the_same_words_in_another_file_keep_their_points(scored: TinyCourse) -> None:
    cells = release_cells()
    cells[2].source = "def double(x):\n    return x + x"
    cells[-1].source = "Why?  Because.\n"
    scored.store_result("ada", scored.hand_in("ada", cells))
    assert (exported(scored)["total"], exported(scored)["status"]) == ("7", "graded")


def test_an_answer_that_was_blank_and_is_not_any_more_waits(tiny: TinyCourse) -> None:
    tiny.hand_in_words("ada", None)
    tiny.export_gradebook()
    assert (exported(tiny)["total"], exported(tiny)["status"]) == ("4", "graded")
    tiny.hand_in_words("ada", "Because.")
    assert (exported(tiny)["total"], exported(tiny)["status"]) == (
        "",
        "waits for a person",
    )


def test_points_in_place_of_the_tests_are_for_that_code(scored: TinyCourse) -> None:
    cells = release_cells()
    cells[4].source, cells[-1].source = HALF_ANSWERED, "Why? Because."
    scored.score_by_hand("ada", "check_half", 2.0)
    assert exported(scored)["total"] == "8"
    scored.store_result("ada", scored.hand_in("ada", cells))
    ada = exported(scored)
    assert (ada["total"], ada["note"]) == (
        "",
        "waits: half; half: 2 of 3 given for an earlier answer",
    )


def test_a_submission_that_is_not_there_any_more_gives_no_points_to_another_result(
    scored: TinyCourse,
) -> None:
    write_result(
        scored.root / "results", replace(result_for("ada"), submission_sha256="f" * 64)
    )
    assert exported(scored)["status"] == "waits for a person"
    scored.export_gradebook()  # without the answers, which nobody can read any more
    assert exported(scored)["status"] == "waits for a person"


def test_a_gradebook_without_hashes_is_read_as_before(scored: TinyCourse) -> None:
    with open_gradebook(scored.course) as gradebook:
        for table in ("attention_kit_answer", "attention_kit_submission"):
            gradebook.db.connection().exec_driver_sql(f"DROP TABLE {table}")
        gradebook.db.commit()
    assert (exported(scored)["total"], exported(scored)["status"]) == ("7", "graded")
