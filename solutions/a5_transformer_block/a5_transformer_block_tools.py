"""What visible checks are made of: you need not read it.

Made by `autograder build`; the notebook a5_transformer_block.ipynb imports it.
"""

def expect(actual, expected, atol=1e-6, hint=""):
    """Compare your answer with the expected one and say what differs.

    Args:
        actual: what your function returned.
        expected: a tensor or an array (shape and dtype count too), a number, or anything that ==
            compares.
        atol: how far apart two numbers may be.
        hint: what to look at when they differ.
    """

    def kind(value):
        classes = {base.__name__ for base in type(value).__mro__}
        if "Tensor" in classes:
            return "a tensor"
        return "an array" if "ndarray" in classes else ""

    def plain(value):
        if isinstance(value, (list, tuple)):
            return tuple(map(plain, value))  # [4, 0] is as good as (4, 0)
        is_numpy_number = "generic" in {base.__name__ for base in type(value).__mro__}
        return value.item() if is_numpy_number else value  # np.int64(3) is as good as 3

    def near(actual, expected):
        if isinstance(expected, list):
            return all(map(near, actual, expected))
        if actual == expected:
            return True
        if actual != actual and expected != expected:  # NaN is not equal to itself
            return True
        return str not in (type(actual), type(expected)) and abs(actual - expected) <= atol

    def difference_of_tensors(actual, expected):
        shape, expected_shape = list(actual.shape), list(expected.shape)
        if shape != expected_shape:
            return f"expected shape {expected_shape}, got {shape}"
        if not near(actual.tolist(), expected.tolist()):
            return f"expected\n{expected}\ngot\n{actual}"
        dtype, expected_dtype = str(actual.dtype), str(expected.dtype)
        if dtype.removeprefix("torch.") != expected_dtype.removeprefix("torch."):
            return f"the numbers are right, and their dtype should be {expected_dtype}, not {dtype}"
        return ""

    def difference(actual, expected):
        if isinstance(expected, (list, tuple)) and any(map(kind, expected)):
            if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
                return f"expected {len(expected)} values, got {actual!r}"
            return next(filter(None, map(difference, actual, expected)), "")
        if isinstance(expected, dict) and any(map(kind, expected.values())):
            if not isinstance(actual, dict):
                return f"expected the keys {list(expected)}, got {actual!r}"
            if actual.keys() != expected.keys():
                return f"expected the keys {list(expected)}, got {list(actual)}"
            parts = (difference(actual[key], expected[key]) for key in expected)
            return next(filter(None, parts), "")
        if kind(expected) and not kind(actual):
            shape = list(expected.shape)
            return f"expected {kind(expected)} of shape {shape}, got {type(actual).__name__}"
        if kind(expected):
            return difference_of_tensors(actual, expected)
        if isinstance(plain(expected), float):
            right = isinstance(plain(actual), (int, float)) and near(plain(actual), expected)
        else:
            right = not kind(actual) and plain(actual) == plain(expected)
        return "" if right else f"expected {expected!r}, got {actual!r}"

    if problem := difference(actual, expected):
        raise AssertionError(f"Not yet: {problem}.\n{hint}")
    print("as expected")


import contextlib
import functools
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode


class _Refusal(TorchFunctionMode):
    """A mode in which these functions and modules of torch may not be called, under whatever
    name.
    """

    def __init__(self, names):
        super().__init__()
        self.names = names

    def refuse(self, name):
        if name in self.names:
            raise AssertionError(
                f"Not allowed here: {name}. Write out what it does: that is the question."
            )

    def replaced(self, path):
        """A context in which torch.<path> refuses: not every function of torch asks a mode."""
        return mock.patch(f"torch.{path}", side_effect=lambda *args, **kwargs: self.refuse(path))

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "").strip("_")
        self.refuse(name.removeprefix("native_").removeprefix("special_"))
        return function(*args, **(kwargs or {}))


def refusing(function, *names):
    """Wrap a function, so that a call of what is not allowed in this question fails."""

    @functools.wraps(function)
    def refuses(*args, **kwargs):
        refusal = _Refusal(names)
        hook = torch.nn.modules.module.register_module_forward_pre_hook(
            lambda module, inputs: refusal.refuse(type(module).__name__)
        )
        with refusal, contextlib.ExitStack() as replacements:
            for path in filter(lambda name: "." in name, names):
                replacements.enter_context(refusal.replaced(path))
            try:
                return function(*args, **kwargs)
            finally:
                hook.remove()

    return refuses
