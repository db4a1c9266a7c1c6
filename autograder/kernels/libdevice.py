"""Functions of NVIDIA's library libdevice, which kernels call as `tl.extra.libdevice`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.kernels.number_types import Array


def _one_by_one(function: Callable[..., float], arity: int = 1) -> Callable[..., Array]:
    """A function of Python's, for each element; where Python raises, a GPU gives NaN."""

    def guarded(*values: float) -> float:
        try:
            return function(*values)
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan

    universal = np.frompyfunc(guarded, arity, 1)
    return lambda *values: np.asarray(universal(*values)).astype(np.float64)


def _float_functions() -> dict[str, Callable[..., Any]]:
    """Functions of floating point numbers, under the names that they have for float64."""
    pi = math.pi
    return {
        "abs": np.abs,
        "acos": np.arccos,
        "acosh": np.arccosh,
        "asin": np.arcsin,
        "asinh": np.arcsinh,
        "atan": np.arctan,
        "atan2": np.arctan2,
        "atanh": np.arctanh,
        "cbrt": np.cbrt,
        "ceil": np.ceil,
        "copysign": np.copysign,
        "cos": np.cos,
        "cosh": np.cosh,
        "cospi": lambda x: np.cos(pi * x.astype(np.float64)),
        "erf": _one_by_one(math.erf),
        "erfc": _one_by_one(math.erfc),
        "exp": np.exp,
        "exp10": lambda x: np.power(10.0, x.astype(np.float64)),
        "exp2": np.exp2,
        "expm1": np.expm1,
        "fabs": np.abs,
        "fdim": lambda x, y: np.where(
            x > y, x - y, np.where(np.isnan(x + y), np.nan, 0)
        ),
        "floor": np.floor,
        "fma": lambda x, y, z: x.astype(np.float64) * y + z,
        "fmax": np.fmax,
        "fmin": np.fmin,
        "fmod": np.fmod,
        "hypot": np.hypot,
        "ldexp": np.ldexp,
        "lgamma": _one_by_one(math.lgamma),
        "log": np.log,
        "log10": np.log10,
        "log1p": np.log1p,
        "log2": np.log2,
        "logb": lambda x: np.floor(np.log2(np.abs(x))),
        "nearbyint": np.rint,
        "nextafter": np.nextafter,
        "normcdf": _one_by_one(lambda x: 0.5 * math.erfc(-x / math.sqrt(2))),
        "pow": np.power,
        "powi": np.power,
        "rcbrt": lambda x: 1 / np.cbrt(x),
        "remainder": _one_by_one(math.remainder, 2),
        "rhypot": lambda x, y: 1 / np.hypot(x, y),
        "rint": np.rint,
        "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "scalbn": np.ldexp,
        "sin": np.sin,
        "sinh": np.sinh,
        "sinpi": lambda x: np.sin(pi * x.astype(np.float64)),
        "sqrt": np.sqrt,
        "tan": np.tan,
        "tanh": np.tanh,
        "tgamma": _one_by_one(math.gamma),
        "trunc": np.trunc,
    }


_ROUNDED_TO_NEAREST: dict[str, Callable[..., Any]] = {
    "add_rn": np.add,
    "sub_rn": np.subtract,
    "mul_rn": np.multiply,
    "div_rn": np.divide,
    "sqrt_rn": np.sqrt,
    "rcp_rn": lambda x: 1 / x,
}
_FAST = ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "pow", "tanh")


def _popcount(values: Array) -> Array:
    bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
    return np.asarray(np.bitwise_count(bits))


def _leading_zeros(values: Array) -> Array:
    """Zeros before the first bit that is set, as `clz` counts them."""
    bits = 8 * values.dtype.itemsize
    lengths = np.frompyfunc(
        lambda value: bits - (int(value) % (1 << bits)).bit_length(), 1, 1
    )
    return np.asarray(lengths(values)).astype(np.int32)


def _first_set(values: Array) -> Array:
    """The place of the lowest bit that is set, from 1; 0 where none is."""
    lowest = np.frompyfunc(lambda value: (int(value) & -int(value)).bit_length(), 1, 1)
    return np.asarray(lowest(values)).astype(np.int32)


def _all_functions() -> dict[str, Callable[..., Any]]:
    functions: dict[str, Callable[..., Any]] = {}
    for name, function in _float_functions().items():
        functions[name] = functions[f"{name}f"] = function
    for name in _FAST:
        functions[f"fast_{name}f"] = functions[name]
    functions["fast_fdividef"] = np.divide
    for name, function in _ROUNDED_TO_NEAREST.items():
        functions[f"f{name}"] = functions[f"d{name}"] = function
    functions["fmaf_rn"] = functions["fma_rn"] = functions["fma"]
    tests = {
        "isnan": np.isnan,
        "isinf": np.isinf,
        "signbit": np.signbit,
        "finite": np.isfinite,
    }
    for name, test in tests.items():
        for suffix in ("f", "d", ""):
            functions[f"{name}{suffix}"] = test
    functions["isfinited"] = np.isfinite
    for suffix in ("", "ll"):
        functions[f"popc{suffix}"] = _popcount
        functions[f"clz{suffix}"] = _leading_zeros
        functions[f"ffs{suffix}"] = _first_set
    functions["abs"] = functions["llabs"] = functions["fabsf"] = np.abs
    return functions


FUNCTIONS = _all_functions()
"""By their names in libdevice without `__nv_`."""
