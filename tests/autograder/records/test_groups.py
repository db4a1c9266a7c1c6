"""Which questions lost points that no known mistake explains, and when stored groups are current."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from stored_results import OVER_QUERIES, outcome, question, result_of

from autograder.records.groups import (
    ClassGroups,
    MistakeGroup,
    fingerprint_nameless,
    nameless_questions,
    read_current_groups,
    write_groups,
)
from autograder.records.model import Diagnosis, QuestionResult, Result


def result(*questions: QuestionResult) -> Result:
    return result_of("ada", *questions, cells=[], isolation="strict", suite="suite-1")


def test_a_question_is_nameless_where_tests_failed_that_no_mistake_explains() -> None:
    wrong = outcome("test_values", 0.0, 2.0)
    unchecked = outcome("test_refuses", 0.0, 1.0)
    slip = Diagnosis("no_checks", "Check the sizes.", ("test_refuses",))
    named = question("named", wrong, diagnosis=OVER_QUERIES)
    half = dataclasses.replace(question("half", wrong, unchecked), slips=(slip,))
    slipped = dataclasses.replace(question("slipped", unchecked), slips=(slip,))
    unwritten = question("unwritten", outcome("test_values", 0.0, 2.0, "missing"))
    right = question("right", outcome("test_values", 2.0, 2.0))
    graded = result(named, half, slipped, unwritten, right, question("bare", wrong))
    assert nameless_questions(graded) == {"half": ("test_refuses",), "bare": ()}


def test_groups_of_other_results_are_not_current(tmp_path: Path) -> None:
    first = result(question("f", outcome("test_values", 0.0, 2.0)))
    groups = ClassGroups(fingerprint_nameless([first]), "suite-1", ())
    assert read_current_groups(tmp_path, "attention", [first]) is None
    write_groups(tmp_path, "attention", groups)
    assert read_current_groups(tmp_path, "attention", [first]) == groups
    handed_in_again = dataclasses.replace(first, submission_sha256="another")
    assert read_current_groups(tmp_path, "attention", [handed_in_again]) is None
    (tmp_path / "attention.groups.json").write_text("{")
    assert read_current_groups(tmp_path, "attention", [first]) is None


def test_one_group_of_several_gets_the_name_of_a_mistake() -> None:
    """Its suite is then the one with that mistake; results stay those of before."""
    first, second = (
        MistakeGroup(name, "f", (), (), "", "", "", "", ("ada",))
        for name in ("f-1", "f-2")
    )
    groups = ClassGroups("of results", "suite-1", (first, second), ("ben: away",))
    assert (groups.group("f-2"), groups.group("f-3")) == (second, None)
    named = groups.with_mistake("f-2", "half", "suite-2")
    assert named == ClassGroups(
        "of results",
        "suite-2",
        (first, dataclasses.replace(second, mistake="half")),
        ("ben: away",),
    )
    assert ClassGroups("", "", ()).left_out == ()
    assert first.mistake == ""
