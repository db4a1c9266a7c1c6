"""The visible check that stands in every notebook: `build` copies this function's source into the release."""

import torch


def expect(actual, expected, atol=1e-6, hint=""):  # type: ignore[no-untyped-def]  # students read this: no annotations
    """Compare your answer with the expected one and say what differs.

    Args:
        actual: what your function returned.
        expected: a tensor (shape and dtype count too), a number, or anything that == compares.
        atol: how far apart two numbers may be.
        hint: what to look at when they differ.
    """

    def plain(value):  # type: ignore[no-untyped-def]  # as above
        return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value  # [4, 0] is as good as (4, 0)

    problem = ""
    if isinstance(expected, torch.Tensor):
        if not isinstance(actual, torch.Tensor):
            problem = f"expected a tensor of shape {list(expected.shape)}, got {type(actual).__name__}"
        elif actual.shape != expected.shape:
            problem = f"expected shape {list(expected.shape)}, got {list(actual.shape)}"
        elif not torch.allclose(actual.double(), expected.double(), rtol=0, atol=atol, equal_nan=True):
            problem = f"expected\n{expected}\ngot\n{actual}"
        elif actual.dtype != expected.dtype:
            problem = f"the numbers are right, and their dtype should be {expected.dtype}, not {actual.dtype}"
    elif isinstance(expected, float):
        if not isinstance(actual, (int, float)) or abs(actual - expected) > atol:
            problem = f"expected {expected}, got {actual!r}"
    elif isinstance(actual, torch.Tensor) or plain(actual) != plain(expected):  # type: ignore[no-untyped-call]
        problem = f"expected {expected!r}, got {actual!r}"
    if problem:
        raise AssertionError(f"Not yet: {problem}.\n{hint}")
    print("as expected")
