"""What is replayed with the submission's own values, with sittings that the test plays, and which
cells of an answer key run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.kernels import faults
from autograder.records.model import TwoAnswers
from autograder.sitting.reference import _Importer, load_reference, run_cell
from autograder.sitting.replay import replay
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Verdict
from autograder.suite.calls import Call
from autograder.suite.collection import SuiteQuestion, SuiteTest

QUESTION = SuiteQuestion("attention", (SuiteTest("test_it", 1.0, ""),), (), ())


def softmax(z: Any) -> Any:
    return z


class PlayedSitting:
    """Notes what further sittings are started with; each answers the test's call with 2."""

    def __init__(self) -> None:
        self.stand_in_functions: list[Mapping[str, Any]] = []
        self.workplace = SimpleNamespace(worker=lambda: None)

    def start_another(
        self, client: Any, functions: Mapping[str, Any] | None = None
    ) -> PlayedSitting:
        self.stand_in_functions.append(functions or {})
        return self

    def functions(self) -> None:
        return None

    def run(self, *arguments: Any, **options: bool) -> dict[str, TestRun]:
        return {"test_it": played_run("passed", 2)}

    def close(self) -> None:
        pass


def played_run(outcome: Any, result: int, *stand_ins: str) -> TestRun:
    call = Call("attention", (), {}, result)
    return TestRun("test_it", Verdict(outcome), (call,), stand_ins=stand_ins)


def replayed(
    sitting: PlayedSitting, outcome: str, *stand_ins: str
) -> tuple[TwoAnswers, ...]:
    """The flags of a test that had `outcome` with the answer 1, and passed with stand-ins."""
    played: Any = sitting
    return replay(
        played,
        played,
        QUESTION,
        {"test_it": played_run(outcome, 1)},
        {"test_it": played_run("passed", 3, *stand_ins)},
        {"softmax": softmax, "Cache": dict},
    )


def test_another_answer_to_the_submissions_own_values_is_shown() -> None:
    sitting = PlayedSitting()
    (flag,) = replayed(sitting, "failed", "softmax", "not_in_the_key")
    assert (flag.test, flag.answers) == ("test_it", ("1", "2"))
    own, replaying = sitting.stand_in_functions
    assert (list(own), list(replaying)) == ([], ["softmax"])


@pytest.mark.parametrize(
    ("outcome", "stand_ins"),
    [
        ("passed", ("softmax",)),
        ("timeout", ("softmax",)),
        ("failed", ()),
        ("failed", ("softmax", "Cache")),  # a class
    ],
)
def test_nothing_is_replayed_where_nothing_can_be_compared(
    outcome: str, stand_ins: tuple[str, ...]
) -> None:
    sitting = PlayedSitting()
    assert replayed(sitting, outcome, *stand_ins) == ()
    assert sitting.stand_in_functions == []


def test_a_companion_that_carries_modules_of_the_kit_is_those_modules() -> None:
    text = 'raise ImportError\nCARRIES = "autograder.kernels.faults"\n'
    names: dict[str, Any] = {"__builtins__": _Importer({"carried.py": text}).builtins}
    run_cell("import carried", "<a cell>", names)
    assert names["carried"].MemoryFault is faults.MemoryFault


def test_of_the_answer_key_given_cells_and_questions_run(tmp_path: Path) -> None:
    def cell(kind: str, role: str, source: str) -> dict[str, Any]:
        metadata = {"attention_kit": {"role": role}}
        return {"cell_type": kind, "metadata": metadata, "source": source}

    cells = [
        cell("code", "given", "unit = 2"),
        cell("code", "question", "def twice(x):\n    return unit * x"),
        cell("code", "check", "raise RuntimeError"),
        cell("markdown", "given", "no Python"),
        {"cell_type": "code", "metadata": {}, "source": "raise RuntimeError"},
    ]
    key = tmp_path / "m1.ipynb"
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    key.write_text(json.dumps(notebook), encoding="utf-8")
    assignment: Any = SimpleNamespace(name="m1", solution=key)
    assert load_reference(assignment)["twice"](3) == 6
