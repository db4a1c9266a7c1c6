# mypy: disable-error-code="no-untyped-def, no-untyped-call"
# Students read the function, so that it has no annotations.
"""The visible check that stands in every notebook: `build` copies this function's source into the
release.

It imports nothing, so that it stands in a notebook without torch, or without numpy, too.
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
        names = {base.__name__ for base in type(value).__mro__}
        return "a tensor" if "Tensor" in names else "an array" if "ndarray" in names else ""

    def is_numpy_number(value):
        return "generic" in {base.__name__ for base in type(value).__mro__}

    def plain(value):
        if isinstance(value, (list, tuple)):
            return tuple(map(plain, value))  # [4, 0] is as good as (4, 0)
        return value.item() if is_numpy_number(value) else value  # np.int64(3) is as good as 3

    def near(mine, theirs):
        if isinstance(theirs, list):
            return all(map(near, mine, theirs))
        if mine == theirs or (mine != mine and theirs != theirs):  # NaN is not equal to itself
            return True
        return str not in (type(mine), type(theirs)) and abs(mine - theirs) <= atol

    def difference(mine, theirs):
        if isinstance(theirs, (list, tuple)) and any(map(kind, theirs)):
            if not isinstance(mine, (list, tuple)) or len(mine) != len(theirs):
                return f"expected {len(theirs)} values, got {mine!r}"
            return next(filter(None, map(difference, mine, theirs)), "")
        if isinstance(theirs, dict) and any(map(kind, theirs.values())):
            if not isinstance(mine, dict) or mine.keys() != theirs.keys():
                return (
                    f"expected the keys {list(theirs)}, got "
                    f"{list(mine) if isinstance(mine, dict) else mine!r}"
                )
            return next(filter(None, (difference(mine[key], theirs[key]) for key in theirs)), "")
        if kind(theirs) and not kind(mine):
            return (
                f"expected {kind(theirs)} of shape {list(theirs.shape)}, got {type(mine).__name__}"
            )
        if kind(theirs):
            dtypes = [str(mine.dtype), str(theirs.dtype)]
            if mine.shape != theirs.shape:
                return f"expected shape {list(theirs.shape)}, got {list(mine.shape)}"
            if not near(mine.tolist(), theirs.tolist()):
                return f"expected\n{theirs}\ngot\n{mine}"
            right = dtypes[0].removeprefix("torch.") == dtypes[1].removeprefix("torch.")
            return (
                ""
                if right
                else f"the numbers are right, and their dtype should be {dtypes[1]}, "
                f"not {dtypes[0]}"
            )
        if isinstance(plain(theirs), float):
            right = isinstance(plain(mine), (int, float)) and near(plain(mine), theirs)
        else:
            right = not kind(mine) and plain(mine) == plain(theirs)
        return "" if right else f"expected {theirs!r}, got {mine!r}"

    if problem := difference(actual, expected):
        raise AssertionError(f"Not yet: {problem}.\n{hint}")
    print("as expected")
