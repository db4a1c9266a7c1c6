"""Which wrong numbers tell by what mistake they were made, worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from autograder.basics.errors import StudentError
from autograder.diagnosis.telling_numbers import count_telling, find_telling
from autograder.suite.calls import Call


def test_zeros_ones_and_what_is_right_tell_nothing() -> None:
    wrong = torch.tensor([0.0, 1.0, -1.0, 0.25, 7.0, math.nan, math.inf])
    right = torch.tensor([0.5, 0.5, 0.5, 0.25, 0.5, 0.5, 0.5])
    assert find_telling(wrong, right).tolist() == [False] * 4 + [True] + [False] * 2


def test_of_whole_numbers_the_large_ones_tell() -> None:
    """17 is an index or an id of a token, 2850 a count."""
    wrong, right = np.array([17, 2850, 3]), np.array([5, 1425, 3])
    assert find_telling(wrong, right).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("wrong", "right", "count"),
    [
        (torch.tensor([0.25, 0.25, 0.75]), torch.tensor([0.5, 0.5, 0.5]), 2),
        (torch.tensor([0.25, 0.3]), torch.tensor([[0.25, 0.3]]), 2),
        ([0.25, (2850, "cat")], [0.5, (1425, "dog")], 2),
        (2850, None, 1),
        (True, False, 0),
        (10**30, 3, 0),
        (torch.tensor([True]), torch.tensor([False]), 0),
    ],
    ids=["equal", "shape", "nested", "None", "bool", "too large", "mask"],
)
def test_each_value_of_an_answer_counts_once(
    wrong: Any, right: Any, count: int
) -> None:
    """Of an answer in another shape all values count."""
    call, key_call = (Call("f", (), {}, result=answer) for answer in (wrong, right))
    assert count_telling([(call, call, key_call)]) == count


def test_an_error_has_no_numbers() -> None:
    error = Call("f", (), {}, fault=StudentError("IndexError", "3.75"))
    assert count_telling([(error, error, Call("f", (), {}, result=0.5))]) == 0


def test_numbers_of_the_arguments_tell_nothing() -> None:
    """0.75 and 0.3 are passed in, and 0.41 was computed: of a mistake whose run was stored without
    its arguments the student's call has them.
    """
    shift = torch.tensor([0.75, 0.3])
    student = Call("f", (torch.ones(2, 2),), {"beta": shift})
    wrong = Call("f", (), {}, result=torch.tensor([[0.75, 0.3], [0.41, 0.3]]))
    right = Call("f", (), {}, result=torch.full((2, 2), 2.5))
    assert count_telling([(student, wrong, right)]) == 1
