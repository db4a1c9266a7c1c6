"""What is replayed with the submission's own values, with sittings that the test plays, and which
cells of an answer key run.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.basics.errors import (
    BadSuite,
    KitError,
    StudentError,
    StudentFault,
    StudentTimeout,
)
from autograder.kernels import faults
from autograder.records.model import TwoAnswers
from autograder.sandbox.stand_in_answers import WorkerObject
from autograder.sitting.reference import _Importer, load_reference, run_cell
from autograder.sitting.replay import OwnFunctions, replay
from autograder.sitting.sitting import TestRun
from autograder.sitting.verdict import Verdict
from autograder.suite.calls import Call, current_log, start_log
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


# the submission's own functions


class PlayedStudent:
    """A student whose `softmax` answers or raises what the test says, and changes `changed`."""

    def __init__(self) -> None:
        self.answer: Any = 1
        self.fault: StudentFault | None = None
        self.changed: tuple[str, ...] = ()

    def softmax(self, *arguments: Any, **keywords: Any) -> Any:
        call = Call("softmax", arguments, keywords, self.answer, changed=self.changed)
        current_log().note(call)
        if self.fault is not None:
            raise self.fault
        return self.answer


def own_functions(student: PlayedStudent) -> OwnFunctions:
    sitting: Any = SimpleNamespace(functions=lambda: student)
    return OwnFunctions(sitting)


def no_object(*_: object) -> Any:
    raise AssertionError("nobody asks")


@pytest.mark.parametrize(
    ("argument", "answer", "changed", "is_exact"),
    [
        (1, [2, 3.5], (), True),
        (1, 2, ("z",), False),
        (1, {"a": WorkerObject(1, no_object)}, (), False),
        (WorkerObject(1, no_object), 2, (), False),
    ],
)
def test_an_own_function_that_does_more_than_return_data_is_not_exact(
    argument: Any, answer: Any, changed: tuple[str, ...], is_exact: bool
) -> None:
    student = PlayedStudent()
    student.answer, student.changed = answer, changed
    own = own_functions(student)
    log = start_log({})
    own_softmax = own.wrap("softmax", softmax)
    assert own_softmax(argument) == answer
    assert (own.exact, own.hangs) == (is_exact, 0)
    assert log.calls == []  # the calls are none of the test's
    assert str(inspect.signature(own_softmax)) == str(inspect.signature(softmax))


def test_an_own_function_that_fails_refuses_its_arguments() -> None:
    student = PlayedStudent()
    own = own_functions(student)
    own_softmax = own.wrap("softmax", softmax)
    for fault, hangs in (
        (StudentError("KeyError", "no"), 0),
        (StudentTimeout("it hangs"), 1),
        (StudentTimeout("it hangs"), 2),
    ):
        student.fault, own.exact = fault, True
        with pytest.raises(ValueError, match=str(fault)):
            own_softmax(1)
        assert (own.exact, own.hangs) == (False, hangs)


# the answer key


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (None, KitError, r"the answer key is not built; run `autograder build m1`$"),
        ("[1]", KitError, r"the answer key is no notebook \(.*; run `autograder build"),
    ],
)
def test_without_a_notebook_there_is_no_answer_key(
    tmp_path: Path, content: str | None, error: type[Exception], words: str
) -> None:
    key = tmp_path / "m1.ipynb"
    if content is not None:
        key.write_text(content, encoding="utf-8")
    assignment: Any = SimpleNamespace(name="m1", solution=key)
    with pytest.raises(error, match=words):
        load_reference(assignment)


def test_a_cell_of_the_answer_key_that_fails_is_named(tmp_path: Path) -> None:
    metadata = {"attention_kit": {"role": "given"}}
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ""},
        {"cell_type": "code", "metadata": metadata, "source": "one = 1\nmissing"},
    ]
    key = tmp_path / "m1.ipynb"
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    key.write_text(json.dumps(notebook), encoding="utf-8")
    assignment: Any = SimpleNamespace(name="m1", solution=key)
    with pytest.raises(BadSuite, match=r"cell 1 of the answer key does not run: NameE"):
        load_reference(assignment)


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
