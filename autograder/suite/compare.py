"""Comparisons of a suite. Their messages name the call, the first element that differs, and how.

No message prints an expected value in full, or a line of the suite or of the answer key.
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
from autograder.suite.array_differences import (
    ATOL,
    RTOL,
    Numbers,
    as_float64,
    close_elements,
    describe_difference,
    inf_and_nan_are_numbers,
    largest_distance,
)
from autograder.suite.calls import (
    current_log,
    describe_call_of,
    describe_last,
    none_may_be_right,
)
from autograder.suite.kinds import count_entries, describe_other_form, is_array, kind_of
from autograder.wire.libraries import dtype_name, is_tensor


class WrongValue(AssertionError):
    """The answer has the right kind and a wrong value."""


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
        actual: the answer of the student's code.
        expected: a tensor or a numpy array (any shape), a number, or a list, tuple or dict of
            these. Texts and booleans among them must be equal.
        atol, rtol: an element passes within `atol + rtol * |expected|`. Infinities and NaN must
            agree exactly.
        same_dtype: whether the dtype must agree too.
        what: the part of the answer that is compared ("the gradient of q", "weights"); "" for the
            whole answer.

    Raises:
        AssertionError: with a message for the student.
    """

    if isinstance(
        expected, np.generic
    ):  # a sum or mean of numpy's; a student's arrives as a number
        expected = expected.item()
    if isinstance(expected, (list, tuple, dict)):
        if problem := _entries_problem(actual, expected):
            raise AssertionError(f"{_subject(actual, what)} {problem}")
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            part = f"entry {key!r} of {what}" if what else f"entry {key!r}"
            assert_close(
                actual[key],
                expected[key],
                atol=atol,
                rtol=rtol,
                same_dtype=same_dtype,
                what=part,
            )
        return
    if isinstance(expected, (bool, str)) or expected is None:
        assert_equal(actual, expected, what=what)
        return
    if isinstance(expected, (float, int)):
        if not is_array(actual):
            if isinstance(actual, bool) or not isinstance(actual, (float, int)):
                raise AssertionError(
                    f"{_subject(actual, what)} should be a number, and is {kind_of(actual)}."
                )
            actual = np.array(float(actual))
        expected = np.array(float(expected))
        same_dtype = False
    if not is_array(actual):
        raise AssertionError(
            f"{_subject(actual, what)} should be {kind_of(expected)}, and is {kind_of(actual)}."
        )
    if problem := describe_other_form(actual, expected, same_dtype=same_dtype):
        raise AssertionError(f"{_subject(actual, what)} {problem}")
    numbers = as_float64(actual)
    right = as_float64(expected)
    log = current_log()
    log.note_tolerance(_closer_than_default(right, atol, rtol))
    if atol > 0 and np.array_equal(
        numbers, right
    ):  # most right answers: nothing else to compute
        if np.isfinite(right).any():
            log.distances.append(0.0)
        return
    close = close_elements(numbers, right, atol, rtol)
    log.distances += largest_distance(numbers, right, atol, rtol)
    if not close.all():
        are_bool = dtype_name(actual.dtype) == "bool" == dtype_name(expected.dtype)
        difference = describe_difference(numbers, right, close, are_bool=are_bool)
        raise WrongValue(f"{_subject(actual, what)} {difference}")


def _subject(actual: Any, what: str) -> str:
    """The subject of a message's sentence: the call that was compared, or a part of its answer."""
    call = describe_call_of(actual)
    return f"{what} of {call}" if what else call


def _closer_than_default(expected: Numbers, atol: float, rtol: float) -> float | None:
    """The smallest allowance below the default one; None where no element's is below."""
    if atol >= ATOL and rtol >= RTOL:
        return None
    sizes = abs(expected[np.isfinite(expected)])
    allowed = atol + rtol * sizes
    closer = allowed[allowed < ATOL + RTOL * sizes]
    return float(closer.min()) if closer.size else None


@inf_and_nan_are_numbers
def assert_varies(
    actual: Any,
    *,
    above: float,
    what: str = "the answer",
) -> None:
    """Assert that an answer has finite floats that are not all alike.

    For a test of operations or memory, which compares no values: code that computes nothing spends
    nothing.

    Args:
        actual: the answer of the student's code, a tensor or an array.
        above: lower bound on the standard deviation of the numbers.
        what: the part of the answer that is looked at.

    Raises:
        AssertionError: with a message for the student.
    """
    if not is_array(actual) or "float" not in dtype_name(actual.dtype):
        raise AssertionError(
            f"{what} should be a tensor or an array of floats, and is {kind_of(actual)}."
        )
    numbers = as_float64(actual)
    deviation = float(numbers.std(ddof=1)) if numbers.size > 1 else 0.0
    if not above < deviation < math.inf:
        raise AssertionError(f"The numbers of {what} are all alike, or are no numbers.")


def assert_equal(
    actual: Any,
    expected: Any,
    *,
    what: str = "",
) -> None:
    """Assert exact equality: of numbers, strings, booleans, lists, tuples, dicts and sets, tensors
    and numpy arrays.

    A tuple and a list with equal elements are equal; True is not 1. Tensors and arrays have shape
    and dtype too.

    Raises:
        AssertionError: names the first difference, never the expected value.
    """
    if is_array(expected) and is_array(actual):
        assert_close(actual, expected, atol=0, rtol=0, what=what)
    elif problem := _describe_inequality(actual, expected, ""):
        raise WrongValue(f"{_subject(actual, what)}: {problem}")


def assert_refused(
    function: Callable[..., Any],
    *arguments: Any,
    sizes: tuple[int, ...] = (),
    naming: str = "",
    **keywords: Any,
) -> None:
    """Assert that the call raises ValueError.

    The message must have every number of `sizes`, as a whole number or as neighbouring numbers that
    add up to the size ("5 + 3 exceed 7" names the 8), and the word `naming`.

    A function that always raises would pass. So a test with this check counts only where the
    function has answered in another passed test of the question.

    Raises:
        AssertionError: the call returned, raised something else, or left a size or the word out.
    """
    try:
        function(*arguments, **keywords)
    except StudentError as error:
        if "ValueError" not in error.kinds:
            raise AssertionError(
                f"{describe_last()} should raise ValueError, and raises {error}."
            ) from None
        absent = [size for size in sizes if not _names_size(error.message, size)]
        if absent:
            raise AssertionError(
                f"{describe_last()} raises ValueError, whose message should name the sizes that do "
                f"not fit ({absent[0]} is missing): {error.message!r}"
            ) from None
        if naming and not re.search(
            rf"(?<!\w){re.escape(naming)}(?!\w)", error.message
        ):
            raise AssertionError(
                f"{describe_last()} raises ValueError, whose message should name {naming}: "
                f"{error.message!r}"
            ) from None
        current_log().calls[-1].refused = True
    else:
        raise AssertionError(
            f"{describe_last()} should raise ValueError: these arguments cannot be right."
        )


_BETWEEN_SIZES = re.compile(r"(?<=\d)\s*(?:[x×]|\.\.)\s*(?=\d)")
_WHOLE_NUMBER = re.compile(r"(?<![\w.])-?\d+(?!\w|\.\d)")
"""Digits that are a number by themselves, unlike those of 0.5, float64 or w1."""


def _names_size(message: str, size: int) -> bool:
    """Whether a message has the size as a number, or neighbouring numbers that add up to it."""
    spaced = _BETWEEN_SIZES.sub(" ", message).replace("−", "-")
    numbers = [int(text) for text in _WHOLE_NUMBER.findall(spaced)]
    sums = itertools.accumulate(numbers, initial=0)
    pairs = itertools.combinations(sums, 2)
    by_parts = any(later - earlier == size for earlier, later in pairs)
    return by_parts or size in map(abs, numbers)


def assert_unchanged() -> None:
    """Declare that the test's claim is that arguments stay unchanged.

    Every call of every test is checked for it. A question whose function changes its arguments
    loses one test, this one first.
    """
    current_log().about_arguments = True


def call_twice(
    function: Callable[..., Any],
    *arguments: Any,
    **keywords: Any,
) -> Any:
    """Call twice with the same arguments, and assert equal answers and unchanged arguments.

    Returns:
        The first answer.
    """
    assert_unchanged()
    first = function(*arguments, **keywords)
    second = function(*arguments, **keywords)
    if not are_equal(first, second):
        raise AssertionError(
            f"{describe_last()} gives another answer the second time: it must depend on "
            "nothing else."
        )
    return first


def are_equal(left: Any, right: Any) -> bool:
    """Whether two values are equal in all parts. NaN equals NaN; a tensor equals no array."""
    if is_tensor(left) and is_tensor(right):
        return _same_numbers(left, right)
    if type(left) is not type(right):
        return False
    if isinstance(left, SimpleNamespace):
        return are_equal(vars(left), vars(right))
    if isinstance(left, np.ndarray):
        return _same_numbers(left, right)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(are_equal, left, right))
    if isinstance(left, dict):
        if left.keys() != right.keys():
            return False
        return all(are_equal(left[key], right[key]) for key in left)
    return bool(left == right or (left != left and right != right))


def _same_numbers(left: Any, right: Any) -> bool:
    """Whether two tensors or arrays have equal shapes, dtypes and numbers."""
    if describe_other_form(left, right):
        return False
    return bool(close_elements(as_float64(left), as_float64(right), 0.0, 0.0).all())


def _entries_problem(actual: Any, expected: Any) -> str:
    """Why the entries of two containers cannot be compared one by one, as the end of a sentence; ""
    where they can.
    """
    if isinstance(expected, dict) and isinstance(actual, dict):
        if missing := [key for key in expected if key not in actual]:
            return f"has no key {missing[0]!r}."
        extra = [key for key in actual if key not in expected]
        return f"should have no key {extra[0]!r}." if extra else ""
    if isinstance(expected, dict) or not isinstance(actual, (list, tuple)):
        return f"should be {kind_of(expected)}, and is {kind_of(actual)}."
    if len(actual) != len(expected):
        return f"has {count_entries(actual)}; it should have {len(expected)}."
    return ""


def _describe_inequality(actual: Any, expected: Any, path: str) -> str:
    """The first place where a value does not equal the expected one, as a sentence; "" for equals.

    Args:
        path: the indices and keys that lead to the value, as Python has them.
    """
    where = f" at {path}" if path else ""
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        for index, pair in enumerate(zip(actual, expected, strict=False)):
            if problem := _describe_inequality(*pair, f"{path}[{index}]"):
                return problem
        if len(actual) == len(expected):
            return ""
        entries = count_entries(actual)
        return f"yours has {entries}{where}, not as many as expected ({len(expected)})."
    if isinstance(expected, dict) and isinstance(actual, dict):
        if missing := [key for key in expected if key not in actual]:
            return f"the key {missing[0]!r} is missing{where}."
        if extra := [key for key in actual if key not in expected]:
            return f"there should be no key {extra[0]!r}{where}."
        for key in expected:
            if problem := _describe_inequality(
                actual[key], expected[key], f"{path}[{key!r}]"
            ):
                return problem
        return ""
    if isinstance(expected, np.generic):
        expected = expected.item()
    if is_array(expected) and is_array(actual):
        noun = "tensor" if is_tensor(expected) else "numpy array"
        return (
            ""
            if _same_numbers(actual, expected)
            else f"yours is another {noun}{where}."
        )
    if not _is_comparable(actual, expected):
        kind = "None" if actual is None and none_may_be_right() else kind_of(actual)
        right_kind = "None" if expected is None else kind_of(expected)
        return f"yours is {kind}{where}, where {right_kind} is expected."
    return (
        ""
        if actual == expected
        else f"yours is {_short(actual)}{where}, and that is not right."
    )


def _is_comparable(actual: Any, expected: Any) -> bool:
    """Whether two values have the same type, or are numbers."""
    if isinstance(actual, bool) != isinstance(expected, bool):
        return False
    if isinstance(expected, (int, float)):
        return isinstance(actual, (int, float))
    return isinstance(actual, type(expected))


def _short(value: Any) -> str:
    """A value's text, shortened to 80 characters.

    A set's elements are sorted: the order of a set of texts is another in each process, and the
    same submission must give the same message.
    """
    text = repr(value)
    if isinstance(value, set) and value:
        text = f"{{{', '.join(sorted(map(repr, value)))}}}"
    return text if len(text) <= 80 else text[:77] + "…"
