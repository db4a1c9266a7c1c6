"""What `build` and `verify` say of a suite that does not fit its notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autograder.authoring.suite_checks import find_suite_problems
from autograder.suite.collection import SuiteQuestion

CELLS = {"softmax": "def softmax(z):\n    pass\n"}
TEST = "def test_x(student):\n    student.softmax(1)\n"
ANSWER = "@mistake('softmax', hint='x')\ndef one(z):\n    pass\n"


def problems(
    suite: Path,
    uses: tuple[str, ...] = (),
    forbidden: tuple[str, ...] = (),
    **files: str,
) -> list[str]:
    for name, text in {"test_softmax": TEST, **files}.items():
        (suite / f"{name}.py").write_text(text, encoding="utf-8")
    found = find_suite_problems(
        suite, [SuiteQuestion("softmax", (), uses, forbidden)], CELLS
    )
    return [problem.replace(f"{suite}/", "") for problem in found]


def test_a_suite_that_fits(tmp_path: Path) -> None:
    forbidden = (
        "torch.softmax",
        "torch.Tensor.softmax",
        "torch.nn.functional.softmax",
        "numpy.exp",
    )
    assert problems(tmp_path, ("softmax",), forbidden, mistakes=ANSWER) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"uses": ("nothing",)},
            "test_softmax.py: uses('nothing'), which is no question",
        ),
        (
            {"forbidden": ("torch.softmx",)},
            "test_softmax.py: forbid('torch.softmx'), which does not exist",
        ),
        (
            {"forbidden": ("sorted",)},
            "test_softmax.py: forbid('sorted'): functions are named with their library, like "
            "'numpy.sort'; for one of "
            "Python's own look into `student.source('softmax')`",
        ),
        (
            {"test_softmax": "def test_x(student):\n    student.cost('soft_max', 1)\n"},
            "test_softmax.py: the tests call soft_max, and the cell of question 'softmax' "
            "defines softmax",
        ),
        (
            {"mistakes": f"{ANSWER}\n\n{ANSWER}"},
            "mistakes.py, line 7: there is another one (mistakes.py, line 2); every known answer "
            "has its own name",
        ),
        (
            {"mistakes": ANSWER, "alternates": ANSWER},
            "alternates.py, line 2: there is another one (mistakes.py, line 2); every known "
            "answer has its own name",
        ),
    ],
)
def test_what_does_not_fit_is_told_in_one_line(
    tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    assert problems(tmp_path, **given) == [said]
