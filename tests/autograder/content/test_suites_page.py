"""The tables of docs/suites.md say what the suites hold now, and a command writes each row."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from autograder.course import Assignment, load_course
from autograder.proof.cost_exceptions import load_costs
from autograder.proof.equivalent import load_equivalent
from autograder.proof.proof_report import NOT_TRIED, TABLES, read_rows
from autograder.suite.collection import collect_suite
from autograder.suite.known_answers import load_known_answers

ROOT = Path(__file__).resolve().parents[3]
ASSIGNMENTS = load_course(ROOT).assignments()
PAGE = (ROOT / "docs" / "suites.md").read_text(encoding="utf-8")
ROWS, DIAGNOSED = (read_rows(PAGE, table) for table in TABLES)


def key_cells(assignment: Assignment) -> dict[str, str]:
    cells = json.loads(assignment.solution.read_text(encoding="utf-8"))["cells"]
    kits = [(cell["metadata"].get("attention_kit", {}), cell) for cell in cells]
    return {
        kit["name"]: "".join(cell["source"])
        for kit, cell in kits
        if kit.get("role") == "question"
    }


def refresh(assignment: str) -> str:
    """What to do where the page says something else than the suite."""
    return (
        f"run: autograder verify {assignment} --mutants all --samples all --alone all --report "
        "docs/suites.md"
    )


def test_both_tables_have_a_row_for_each_assignment() -> None:
    names = [assignment.name for assignment in ASSIGNMENTS]
    assert (list(ROWS), list(DIAGNOSED)) == (names, names), refresh("NAME")


@pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.name)
def test_the_counts_of_a_row_are_those_of_the_suite(assignment: Assignment) -> None:
    row = ROWS[assignment.name]
    questions, cells = collect_suite(assignment.suite).questions, key_cells(assignment)
    counted = {
        "questions": len(questions),
        "tests": sum(len(question.tests) for question in questions),
        "mistakes": len(load_known_answers(assignment.suite / "mistakes.py", cells)),
        "alternates": len(
            load_known_answers(assignment.suite / "alternates.py", cells)
        ),
    }
    expected = {name: str(count) for name, count in counted.items()}
    assert {name: row[name] for name in counted} == expected, refresh(assignment.name)


@pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.name)
def test_samples_are_many_and_the_page_counts_them(assignment: Assignment) -> None:
    """At least twelve wrong answers, a third of them with a second fault, or none that is known;
    right ones too. A new suite may have no samples yet.
    """
    samples = load_known_answers(assignment.suite / "samples.py", key_cells(assignment))
    if not samples:
        assert DIAGNOSED[assignment.name]["samples"] == NOT_TRIED, refresh(
            assignment.name
        )
        return
    deserved = [sample.deserves for sample in samples if sample.deserves is not None]
    assert len(deserved) >= 12
    assert 3 * sum(len(names) != 1 for names in deserved) >= len(deserved)
    assert len(deserved) < len(samples)
    assert DIAGNOSED[assignment.name]["samples"] == str(len(deserved)), refresh(
        assignment.name
    )


@pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.name)
def test_every_mutant_that_is_listed_is_of_a_question(assignment: Assignment) -> None:
    assert {entry.question for entry in load_equivalent(assignment.suite)} <= key_cells(
        assignment
    ).keys()


@pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.name)
def test_every_suite_says_of_its_mistakes_which_may_cost_more_or_less(
    assignment: Assignment,
) -> None:
    """Without the file `verify` would hold mistakes to nothing; what they cost it measures."""
    said = load_costs(assignment.suite)
    assert said is not None
    mistakes = load_known_answers(
        assignment.suite / "mistakes.py", key_cells(assignment)
    )
    known = {(mistake.question, mistake.name) for mistake in mistakes}
    assert {
        answer for answer, what in said.items() if what.kind != "for_nothing"
    } <= known


@pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.name)
def test_no_two_mistakes_are_the_same_program(assignment: Assignment) -> None:
    """A diagnosis could never name the second of them. a5 and a9 each had such a pair."""
    mistakes = load_known_answers(
        assignment.suite / "mistakes.py", key_cells(assignment)
    )
    programs: dict[str, str] = {}
    for mistake in mistakes:
        program = f"{mistake.question}: {ast.dump(ast.parse(mistake.cell))}"
        same = programs.setdefault(program, mistake.name)
        assert same == mistake.name, f"{same} and {mistake.name} of {mistake.question}"
