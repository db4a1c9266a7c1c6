"""Objects that live in the student's process: a test may call them and pass them on, and not
compute with them.

Such an object's methods are the student's code. An object whose `==` is always true, or whose
`sum()` returns the expected number, would earn points for nothing; so a test that treats it as data
fails.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from autograder.wire.libraries import loaded_torch

_DATA_NAMES = frozenset(
    name
    for kind in (np.ndarray, list, tuple, dict, set, str, int, float, complex)
    for name in dir(kind)
)


def is_data_name(name: str) -> bool:
    """Whether data has an attribute or a method of that name.

    A test that looks such a name up on an object expects data in the object's place.
    """
    torch = loaded_torch()
    return name in _DATA_NAMES or (torch is not None and hasattr(torch.Tensor, name))


_BINARY = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
)
_OPERATIONS = (
    "bool",
    "len",
    "iter",
    "next",
    "reversed",
    "contains",
    "getitem",
    "setitem",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "neg",
    "pos",
    "abs",
    "invert",
    "float",
    "int",
    "complex",
    "index",
    "round",
    *_BINARY,
    *(f"r{name}" for name in _BINARY),
)
"""Special methods of data, without their underscores."""


class NotData:
    """Base class of objects that are no data: to compare, count, add, index or test them for truth
    is an AssertionError.
    """

    name: str

    def describe_kind(self) -> str:
        """The kind of the object, as after "is": "an object of class Duck"."""
        raise NotImplementedError

    def as_data(self, *_: Any) -> NoReturn:
        """Refuse to be data: stands in for every operation of data.

        Raises:
            AssertionError: always, with a message for the student.
        """
        raise AssertionError(
            f"`{self.name}` is {self.describe_kind()}, where data is expected."
        )

    def __repr__(self) -> str:
        return self.describe_kind()


for _operation in _OPERATIONS:
    # Python looks a special method up in the class, so `as_data` of a subclass needs this detour
    setattr(
        NotData, f"__{_operation}__", lambda self, *operands: self.as_data(*operands)
    )
