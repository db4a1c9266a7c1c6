"""Which values have a NaN, whatever holds it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from autograder.suite.kinds import has_nan

NAN = math.nan


@pytest.mark.parametrize(
    "value",
    [
        NAN,
        complex(0, NAN),
        np.float32(NAN),
        np.array([1.0, NAN]),
        np.array([complex(NAN, 1)]),
        torch.tensor([[1.0], [NAN]]),
        torch.tensor([NAN], dtype=torch.bfloat16),
        torch.tensor([complex(1, NAN)]),
    ],
)
def test_a_nan_is_seen(value: Any) -> None:
    assert has_nan(value)


@pytest.mark.parametrize(
    "value",
    [
        0.0,
        math.inf,
        7,
        True,
        None,
        "nan",
        [NAN],  # its parts are asked one by one
        np.array(["nan"]),
        np.array([1, 2]),
        np.array([math.inf]),
        torch.tensor([], dtype=torch.float32),
        torch.tensor([1, 2]),
        torch.tensor([True]),
    ],
)
def test_other_values_have_none(value: Any) -> None:
    assert not has_nan(value)
