"""Comparisons that say what a student can act on: what was called, where it first differs, and in
which way.

No message prints an expected value in full, a line of the suite or of the answer key.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.basics.errors import StudentError
from autograder.suite.calls import current_log, describe_last, may_be_none
from autograder.suite.kinds import is_array, kind_of, numbers_in, other_form
from autograder.wire.libraries import is_tensor
from autograder.wire.values import dtype_name

ATOL = 2e-6
"""An eps in the wrong place moves float64 values by 1.6e-5 and more; float32 arithmetic inside by
5e-7.
"""
RTOL = 2e-6
_Numbers = np.ndarray[Any, Any]
_inf_and_nan_are_numbers = np.errstate(invalid="ignore", over="ignore")
"""Around a function that computes with them, and need not be warned."""


class WrongValue(AssertionError):
    """An answer of the right kind, with other numbers in it."""


def assert_close(
    actual: Any,
    expected: Any,
    *,
    atol: float = ATOL,
    rtol: float = RTOL,
    same_dtype: bool = True,
    what: str = "",
) -> None:
    """Assert that a student's value equals the expected one: kind, shape, dtype, then every
    element.

    Args:
        actual: what the student's code returned.
        expected: a tensor or a numpy array (any shape), a number, or a list, tuple or dict of
            these. Texts and booleans in it must be equal.
        atol, rtol: an element passes within `atol + rtol * |expected|`. Infinities and NaN must
            agree exactly.
        same_dtype: whether the dtype must agree too.
        what: which part of the answer this is ("the gradient of q", "weights"), where it is not the
            whole.

    Raises:
        AssertionError: with a message for the student.
    """

    def subject() -> str:
        return f"{what} of {describe_last()}" if what else describe_last()

    # what numpy's sums and means are; a student's arrive as numbers
    if isinstance(expected, np.generic):
        expected = expected.item()
    if isinstance(expected, (list, tuple, dict)):
        if problem := _entries_problem(actual, expected):
            raise AssertionError(f"{subject()} {problem}")
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            part = f"entry {key!r}" + (f" of {what}" if what else "")
            assert_close(
                actual[key], expected[key], atol=atol, rtol=rtol, same_dtype=same_dtype, what=part
            )
        return
    if isinstance(expected, (bool, str)) or expected is None:
        assert_equal(actual, expected, what=what)
        return
    if isinstance(expected, (float, int)) and not is_array(actual):
        if isinstance(actual, bool) or not isinstance(actual, (float, int)):
            raise AssertionError(f"{subject()} should be a number, and is {kind_of(actual)}.")
        actual, expected = np.array(float(actual)), np.array(float(expected))
    if isinstance(expected, (float, int)):
        expected, same_dtype = np.array(float(expected)), False
    if not is_array(actual):
        raise AssertionError(
            f"{subject()} should be {kind_of(expected)}, and is {kind_of(actual)}."
        )
    if problem := other_form(actual, expected, same_dtype=same_dtype):
        raise AssertionError(f"{subject()} {problem}")
    mine, theirs = _wide(actual), _wide(expected)
    # as many right answers are: the rest would find nothing
    if atol > 0 and np.array_equal(mine, theirs):
        current_log().note_tolerance(_closer_than_default(theirs, atol, rtol))
        current_log().distances += [0.0] if np.isfinite(theirs).any() else []
        return
    close = _close(mine, theirs, atol, rtol)
    current_log().distances += _distance(mine, theirs, atol, rtol)
    current_log().note_tolerance(_closer_than_default(theirs, atol, rtol))
    if not close.all():
        both_bool = dtype_name(actual.dtype) == "bool" == dtype_name(expected.dtype)
        difference = _opposite if both_bool else _difference
        raise WrongValue(f"{subject()} {difference(mine, theirs, close)}")


def _closer_than_default(expected: _Numbers, atol: float, rtol: float) -> float | None:
    """The least that is allowed where less is allowed than by default; None where that is nowhere
    so.
    """
    if atol >= ATOL and rtol >= RTOL:
        return None
    sizes = abs(expected[np.isfinite(expected)])
    allowed = atol + rtol * sizes
    closer = allowed[allowed < ATOL + RTOL * sizes]
    return float(closer.min()) if closer.size else None


@_inf_and_nan_are_numbers
def assert_varies(actual: Any, *, above: float, what: str = "the answer") -> None:
    """Assert floats that are finite and not all alike, whatever they are.

    For a test whose claim is not about values, as of operations or memory: who computes nothing
    spends nothing.

    Args:
        actual: what the student's code returned, a tensor or an array.
        above: what the standard deviation of its numbers must exceed.
        what: which part of the answer this is.

    Raises:
        AssertionError: with a message for the student.
    """
    if not is_array(actual) or "float" not in dtype_name(actual.dtype):
        raise AssertionError(
            f"{what} should be a tensor or an array of floats, and is {kind_of(actual)}."
        )
    numbers = _wide(actual)
    deviation = float(numbers.std(ddof=1)) if numbers.size > 1 else 0.0
    if not above < deviation < math.inf:
        raise AssertionError(f"The numbers of {what} are all alike, or are no numbers.")


def assert_equal(actual: Any, expected: Any, *, what: str = "") -> None:
    """Assert exact equality: of numbers, strings, booleans, lists, tuples, dicts and sets, tensors
    and numpy arrays.

    A tuple and a list with equal elements are equal; True is not 1. Tensors and arrays have shape
    and dtype too.

    Raises:
        AssertionError: names the first difference, never the expected value.
    """
    if is_array(expected) and is_array(actual):
        assert_close(actual, expected, atol=0, rtol=0, what=what)
    elif problem := _unequal(actual, expected, ""):
        subject = f"{what} of {describe_last()}" if what else describe_last()
        raise WrongValue(f"{subject}: {problem}")


def assert_refused(
    function: Callable[..., Any],
    *arguments: Any,
    sizes: tuple[int, ...] = (),
    naming: str = "",
    **keywords: Any,
) -> None:
    """Assert that the call raises ValueError, whose message has every number of `sizes`: as a whole
    number, or as numbers that follow each other and add up to it ("5 + 3 exceed 7" names the 8);
    and the word `naming`.

    It shows only that something is raised, so a test counts for it only where another test of the
    question has passed in which the same function answered.

    Raises:
        AssertionError: it returned, raised something else, or left a size or the word out.
    """
    try:
        function(*arguments, **keywords)
    except StudentError as error:
        if "ValueError" not in error.kinds:
            raise AssertionError(
                f"{describe_last()} should raise ValueError, and raises {error}."
            ) from None
        absent = [size for size in sizes if not _says(error.message, size)]
        if absent:
            raise AssertionError(
                f"{describe_last()} raises ValueError, whose message should name the sizes "
                "that do not fit "
                f"({absent[0]} is missing): {error.message!r}"
            ) from None
        if naming and not re.search(rf"(?<!\w){re.escape(naming)}(?!\w)", error.message):
            raise AssertionError(
                f"{describe_last()} raises ValueError, whose message should name {naming}: "
                f"{error.message!r}"
            ) from None
        current_log().calls[-1].refused = True
        return
    raise AssertionError(
        f"{describe_last()} should raise ValueError: these arguments cannot be right."
    )


_BETWEEN_SIZES = re.compile(r"(?<=\d)\s*(?:[x×]|\.\.)\s*(?=\d)")
_WHOLE_NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?!\w|\.\d)")
"""Digits by themselves: not those of 0.5, float64 or w1."""


def _says(message: str, size: int) -> bool:
    found = _WHOLE_NUMBER.findall(_BETWEEN_SIZES.sub(" ", message))
    numbers = [int(text.replace("−", "-")) for text in found]
    sums = [0, *itertools.accumulate(numbers)]
    by_parts = any(later - earlier == size for earlier, later in itertools.combinations(sums, 2))
    return by_parts or size in map(abs, numbers)


def assert_unchanged() -> None:
    """Say that this test is about arguments that stay as they are. Every call of every test is
    checked; where a question's function changes its arguments, one test is lost for it, and this
    one before others.
    """
    current_log().about_arguments = True


def call_twice(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call with the same arguments twice; assert equal answers and unchanged arguments; return the
    first answer.
    """
    assert_unchanged()
    first = function(*arguments, **keywords)
    second = function(*arguments, **keywords)
    if not same(first, second):
        raise AssertionError(
            f"{describe_last()} gives another answer the second time: it must depend on "
            "nothing else."
        )
    return first


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal through and through, NaN to itself; a tensor is no array."""
    if is_tensor(left) and is_tensor(right):
        return _same_numbers(left, right)
    if type(left) is not type(right):
        return False
    if isinstance(left, SimpleNamespace):
        return same(vars(left), vars(right))
    if isinstance(left, np.ndarray):
        return _same_numbers(left, right)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(left == right or (left != left and right != right))


def _same_numbers(left: Any, right: Any) -> bool:
    """Whether two tensors or arrays have equal shapes, dtypes and numbers."""
    return not other_form(left, right) and bool(_close(_wide(left), _wide(right), 0.0, 0.0).all())


def _wide(values: Any) -> _Numbers:
    """The numbers of a tensor or an array in double precision."""
    numbers = numbers_in(values)
    return numbers if numbers.dtype.kind == "c" else numbers.astype(np.float64, copy=False)


@_inf_and_nan_are_numbers
def _close(
    mine: _Numbers, theirs: _Numbers, atol: float, rtol: float
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which elements are equal, or finite and within `atol + rtol * |theirs|`; NaN is equal to
    itself.
    """
    apart = abs(mine - theirs)
    close = np.isfinite(apart) & (apart <= atol + rtol * abs(theirs))
    return np.asarray((mine == theirs) | close | (np.isnan(mine) & np.isnan(theirs)))


@_inf_and_nan_are_numbers
def _distance(mine: _Numbers, theirs: _Numbers, atol: float, rtol: float) -> list[float]:
    """The largest difference as a multiple of what is allowed; none where that is none, or nothing
    finite is there.
    """
    allowed = np.asarray(atol + rtol * abs(theirs))
    both = np.isfinite(mine) & np.isfinite(theirs) & (allowed > 0)
    return [float((abs(mine - theirs)[both] / allowed[both]).max())] if both.any() else []


def _difference(mine: _Numbers, theirs: _Numbers, close: _Numbers) -> str:
    """In which way two arrays of one shape differ, as the end of a sentence."""
    first = [int(i) for i in np.argwhere(~close)[0]]
    where = f"at {first}" if first else "in its value"
    value, wanted = mine[tuple(first)].item(), theirs[tuple(first)].item()
    if not _finite(value) and _finite(wanted):
        return f"is {value} {where}, where a finite number is expected. {_how_many(close)}"
    if _finite(value) and not _finite(wanted):
        return f"is {value:.6g} {where}, where {wanted} is expected. {_how_many(close)}"
    text = f"differs from the expected value first {where}: yours is {value:.6g}"
    if (factor := _common_factor(mine, theirs)) is not None:
        return f"{text}, {factor:.4g} times the expected value, and so everywhere."
    if (
        mine.ndim >= 2
        and mine.shape[-1] == mine.shape[-2]
        and _close(mine.swapaxes(-1, -2), theirs, ATOL, RTOL).all()
    ):
        return f"{text}. It is the expected matrix transposed."
    size = "too large" if value > wanted else "too small"
    return f"{text}, {size} by {abs(value - wanted):.3g}. {_how_many(close)}".rstrip()


def _opposite(mine: _Numbers, theirs: _Numbers, close: _Numbers) -> str:
    """As `_difference`, for booleans."""
    first = [int(i) for i in np.argwhere(~close)[0]]
    where = f"at {first}" if first else "in its value"
    value = bool(mine[tuple(first)])
    return f"is {value} {where}, where {not value} is expected. {_how_many(close)}".rstrip()


@_inf_and_nan_are_numbers
def _common_factor(mine: _Numbers, theirs: _Numbers) -> float | None:
    """The number that turns every expected element into the student's, where there is one worth
    telling.
    """
    nonzero = abs(theirs) > ATOL
    ratios = mine[nonzero] / theirs[nonzero]
    if ratios.size < 2 or not np.isfinite(ratios).all() or (abs(mine[~nonzero]) > ATOL).any():
        return None
    factor = float(ratios[0])
    everywhere = _close(ratios, ratios[:1], 1e-6, 1e-4).all()
    return factor if everywhere and abs(factor) > 1e-3 and abs(factor - 1) > 1e-3 else None


def _how_many(close: _Numbers) -> str:
    return f"{(~close).sum()} of {close.size} elements differ." if close.size > 1 else ""


def _entries_problem(actual: Any, expected: Any) -> str:
    """Why the entries of two containers cannot be compared one by one, as the rest of a sentence;
    "" where they can.
    """
    if isinstance(expected, dict) and isinstance(actual, dict):
        if missing := [key for key in expected if key not in actual]:
            return f"has no key {missing[0]!r}."
        extra = [key for key in actual if key not in expected]
        return f"should have no key {extra[0]!r}." if extra else ""
    if isinstance(expected, dict) or not isinstance(actual, (list, tuple)):
        return f"should be {kind_of(expected)}, and is {kind_of(actual)}."
    if len(actual) != len(expected):
        return f"has {len(actual)} entries; it should have {len(expected)}."
    return ""


def _unequal(actual: Any, expected: Any, path: str) -> str:
    where = f" at {path}" if path else ""
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        for i, (a, e) in enumerate(zip(actual, expected, strict=False)):
            if problem := _unequal(a, e, f"{path}[{i}]"):
                return problem
        if len(actual) != len(expected):
            return (
                f"yours has {len(actual)} entries{where}, not as many as expected "
                f"({len(expected)})."
            )
        return ""
    if isinstance(expected, dict) and isinstance(actual, dict):
        if missing := [key for key in expected if key not in actual]:
            return f"the key {missing[0]!r} is missing{where}."
        if extra := [key for key in actual if key not in expected]:
            return f"there should be no key {extra[0]!r}{where}."
        return next(
            (
                p
                for key in expected
                if (p := _unequal(actual[key], expected[key], f"{path}[{key!r}]"))
            ),
            "",
        )
    if isinstance(expected, np.generic):
        expected = expected.item()
    if is_array(expected) and is_array(actual):
        noun = "tensor" if is_tensor(expected) else "numpy array"
        return "" if _same_numbers(actual, expected) else f"yours is another {noun}{where}."
    if isinstance(actual, bool) != isinstance(expected, bool) or not isinstance(
        actual, _comparable(expected)
    ):
        mine = "None" if actual is None and may_be_none() else kind_of(actual)
        wanted = "None" if expected is None else kind_of(expected)
        return f"yours is {mine}{where}, where {wanted} is expected."
    return "" if actual == expected else f"yours is {_short(actual)}{where}, and that is not right."


def _comparable(expected: Any) -> type | tuple[type, ...]:
    return (int, float) if isinstance(expected, (int, float)) else type(expected)


def _short(value: Any) -> str:
    # the order of a set of texts is another in each process, and the same submission gives the same
    # message
    text = (
        f"{{{', '.join(sorted(map(repr, value)))}}}"
        if isinstance(value, set) and value
        else repr(value)
    )
    return text if len(text) <= 80 else text[:77] + "…"


def _finite(value: float) -> bool:
    return value == value and abs(value) != float("inf")
