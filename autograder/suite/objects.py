"""What a test may call and pass on, and not compute with: objects that live in the student's
process.

Such an object answers for itself. One whose `==` is always true, or whose `sum()` is what the test
hopes for, would earn points for nothing; so whatever treats it as data fails the test.
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
    """Whether data has an attribute or a method of that name. On an object that nobody asked for, a
    test means the data that should be there.
    """
    torch = loaded_torch()
    return name in _DATA_NAMES or (torch is not None and hasattr(torch.Tensor, name))


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
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "floordiv",
    "rfloordiv",
    "mod",
    "rmod",
    "pow",
    "rpow",
    "matmul",
    "rmatmul",
    "and",
    "rand",
    "or",
    "ror",
    "xor",
    "rxor",
    "lshift",
    "rlshift",
    "rshift",
    "rrshift",
)


class NotData:
    """Base of what is no data. Comparing, counting, adding, indexing or asking for its truth is an
    AssertionError.
    """

    name: str

    def described(self) -> str:
        """What it is, after "is": "an object of class Duck"."""
        raise NotImplementedError

    def as_data(self, *_: Any) -> NoReturn:
        """Say that it was taken for data.

        Raises:
            AssertionError: always, with a message for the student.
        """
        raise AssertionError(f"`{self.name}` is {self.described()}, where data is expected.")

    def __repr__(self) -> str:
        return self.described()


for _operation in _OPERATIONS:
    # a special method is looked up in the class; each calls the method of the object's own class
    setattr(NotData, f"__{_operation}__", lambda self, *others: self.as_data(*others))
