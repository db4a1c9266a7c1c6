"""What the suite forbids is told in the question and refused by its visible check."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from tiny_course import TINY, suite_question

from autograder.authoring.bans import names_for_students
from autograder.authoring.build import build_assignment
from autograder.authoring.visible_checks import decode_facts
from autograder.basics.errors import BadSource
from autograder.course import Assignment, Course
from autograder.student_tools.refusing import refusing
from autograder.suite.collection import SuiteQuestion

FORBIDDEN = (
    "torch.softmax",
    "torch.Tensor.softmax",
    "torch.nn.Softmax",
    "torch._C._softmax",
    "numpy.exp",
)


def cells(notebook: bytes) -> dict[str, str]:
    return {
        cell["id"]: "".join(cell["source"]) for cell in json.loads(notebook)["cells"]
    }


def test_names_are_told_as_students_know_them() -> None:
    assert names_for_students(FORBIDDEN) == ["softmax", "nn.Softmax", "numpy.exp"]
    assert names_for_students(["torch._C._nn.scaled_dot_product_attention"]) == []


def test_the_question_says_it_and_its_check_refuses_it(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    plain = build_assignment(course, tiny, questions)
    built = build_assignment(
        course, tiny, {**questions, "double": suite_question(2.5, FORBIDDEN)}
    )
    for notebook, before in (
        (built.release_bytes, plain.release_bytes),
        (built.solution_bytes, plain.solution_bytes),
    ):
        old, new = cells(before), cells(notebook)
        assert [name for name in old if old[name] != new[name]] == [
            "given-imports",
            "question-double",
            "check-double_1",
            "check-double",
        ]
        assert (
            new["check-double_1"]
            == 'with checking("double"):\n    assert double(3) == 6'
        )
        assert (
            '\n\n    Not allowed here: torch\'s softmax, nn.Softmax, numpy.exp.\n    """\n'
            in new["question-double"]
        )
        assert new["given-imports"].startswith(old["given-imports"])
        assert new["given-imports"] == (
            "import math\nfrom tiny_tools import check, checking, expect, next_hint, progress"
        )
    facts = json.loads(decode_facts(built.companions["tiny_tools.py"]))
    assert facts["refused"] == {"double": ["softmax", "Softmax"]}


def test_a_long_list_is_wrapped(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    many = tuple(f"torch.a_function_with_number_{n}" for n in range(9))
    built = build_assignment(
        course, tiny, {**questions, "double": suite_question(2.5, many)}
    )
    lines = cells(built.solution_bytes)["question-double"].split("\n")
    start = next(
        n
        for n, line in enumerate(lines)
        if line.startswith("    Not allowed here: torch's a_function")
    )
    assert max(len(line) for line in lines) <= 88
    assert lines[start + 1].startswith("        a_function_with_number_")


def test_without_a_docstring_there_is_no_place_to_say_it(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    tiny.source.write_text(TINY.replace('    """Twice x."""\n', ""), encoding="utf-8")
    with pytest.raises(
        BadSource,
        match="the suite forbids softmax in double, and its function has no docstring",
    ):
        build_assignment(
            course, tiny, {**questions, "double": suite_question(2.5, FORBIDDEN)}
        )


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: torch.softmax(x, -1),
        lambda x: x.softmax(-1),
        lambda x: torch.nn.functional.softmax(x, dim=-1),
        lambda x: torch.nn.Softmax(dim=-1)(x),
        lambda x: torch.special.softmax(x, -1),
    ],
)
def test_a_function_that_refuses_stops_what_is_forbidden_by_whatever_name(
    answer: Any,
) -> None:
    with (
        pytest.raises(AssertionError, match=r"Not allowed here: [sS]oftmax"),
        refusing(["softmax", "Softmax"]),
    ):
        answer(torch.zeros(2))
    assert torch.equal(torch.softmax(torch.zeros(2), -1), torch.tensor([0.5, 0.5]))
    assert torch.equal(torch.nn.Softmax(-1)(torch.zeros(2)), torch.tensor([0.5, 0.5]))


def test_what_asks_no_mode_is_refused_by_its_path(
    course: Course, tiny: Assignment, questions: dict[str, SuiteQuestion]
) -> None:
    forbidden = (
        "torch.optim.AdamW",
        "torch._fused_adamw_",
        "torch.nn.utils.clip_grad_norm_",
    )
    built = build_assignment(
        course, tiny, {**questions, "double": suite_question(2.5, forbidden)}
    )
    facts = json.loads(decode_facts(built.companions["tiny_tools.py"]))
    assert facts["refused"] == {"double": ["optim.AdamW", "nn.utils.clip_grad_norm_"]}

    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.tensor([3.0, 4.0])
    with (
        pytest.raises(
            AssertionError, match=r"Not allowed here: nn\.utils\.clip_grad_norm_"
        ),
        refusing(["nn.utils.clip_grad_norm_"]),
    ):
        torch.nn.utils.clip_grad_norm_([weight], 1.0)
    assert float(torch.nn.utils.clip_grad_norm_([weight], 10.0)) == 5.0


def test_a_module_written_by_hand_may_have_a_torch_of_its_own() -> None:
    """Nothing is refused where nothing is forbidden."""
    with refusing([]):
        assert torch.equal(torch.softmax(torch.zeros(2), -1), torch.tensor([0.5, 0.5]))
