"""How far two arrays of numbers lie apart, in roundings of their dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.suite.kinds import numbers_in
from autograder.wire.libraries import dtype_name

ROUNDING = {"float64": 1e-6, "float32": 1e-4, "float16": 1e-2, "bfloat16": 1e-2}
"""The difference that counts as rounding, relative to the largest element of a row.

Numbers of other dtypes agree exactly or not at all, in whatever dtypes: a mask of ones and zeros
agrees with a mask of yes and no.
"""


def array_distance(first: Any, second: Any) -> float:
    """How far two tensors or arrays lie apart, in roundings of the coarser dtype.

    0 is equal, up to 1 agrees, inf is another shape or another exact number.
    """
    if first.shape != second.shape:
        return math.inf
    dtypes = dtype_name(first.dtype), dtype_name(second.dtype)
    rounding = max(ROUNDING.get(dtype, 0.0) for dtype in dtypes)
    a = numbers_in(first)
    b = numbers_in(second)
    if "c" in (a.dtype.kind, b.dtype.kind):  # complex
        return 0.0 if dtypes[0] == dtypes[1] and np.array_equal(a, b) else math.inf
    if not rounding:
        return (
            0.0 if np.array_equal(a.astype(np.int64), b.astype(np.int64)) else math.inf
        )
    a = a.astype(np.float64, copy=False)
    b = b.astype(np.float64, copy=False)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)):
        return math.inf
    infinities = np.nan_to_num(a[~finite])
    other_infinities = np.nan_to_num(b[~finite])
    if not np.array_equal(infinities, other_infinities):
        return math.inf
    if not a.size:
        return 0.0
    a = np.where(finite, a, 0.0)
    b = np.where(finite, b, 0.0)
    size = np.maximum(abs(a), abs(b))
    largest_in_row = size.max(-1, keepdims=True) if size.ndim else size
    with np.errstate(over="ignore"):
        relative = abs(a - b) / np.maximum(largest_in_row, np.finfo(np.float32).tiny)
    return float(relative.max()) / rounding
