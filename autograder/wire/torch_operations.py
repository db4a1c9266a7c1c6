"""Names of torch's operations, sorted by what they may do around a kernel."""

from __future__ import annotations

EMPTY = frozenset(
    {
        "empty",
        "empty_like",
        "empty_strided",
        "empty_permuted",
        "new_empty",
        "new_empty_strided",
    }
)
COPIES = frozenset(
    {
        "clone",
        "copy_",
        "_to_copy",
        "constant_pad_nd",
        "cat",
        "stack",
        "index_select",
        "repeat",
        "lift_fresh_copy",
    }
)
FILLS = frozenset({"full", "full_like", "new_full", "scalar_tensor"})
CONSTANTS = frozenset(
    {
        "zeros",
        "zeros_like",
        "new_zeros",
        "ones",
        "ones_like",
        "new_ones",
        "fill_",
        "zero_",
    }
)
MAKES = frozenset(
    {
        *EMPTY,
        *COPIES,
        *FILLS,
        *CONSTANTS,
        "set_",
        "resize_",
        "lift_fresh",
        "alias",
        "detach",
        "view",
        "_unsafe_view",
        "_reshape_alias",
        "as_strided",
        "expand",
        "permute",
        "transpose",
        "t",
        "slice",
        "select",
        "squeeze",
        "unsqueeze",
        "unbind",
        "split",
        "split_with_sizes",
        "diagonal",
        "unfold",
        "view_as_real",
        "is_pinned",
    }
)
"""Operations that compute nothing: they make, copy or rearrange."""
_ONE_BY_ONE = (
    "add sub rsub mul div neg abs exp exp2 log log2 log1p sqrt rsqrt reciprocal pow square sign "
    "sigmoid tanh sin cos erf relu gelu silu clamp clamp_min clamp_max maximum minimum where "
    "eq ne lt le gt ge logical_and logical_or logical_not bitwise_and bitwise_or bitwise_not "
    "floor ceil round trunc remainder floor_divide isnan isinf isfinite masked_fill nan_to_num"
)
_OF_ROWS = (
    "sum mean amax amin max min argmax argmin prod cumsum logsumexp _softmax _log_softmax sort "
    "argsort topk any all var flip roll tril triu gather mm bmm addmm baddbmm mv dot"
)
_SERIES = "arange linspace eye"
REPLAYED = frozenset(
    {
        *COPIES,
        *FILLS,
        *CONSTANTS,
        *(_ONE_BY_ONE + " " + _OF_ROWS + " " + _SERIES).split(),
        *(f"{name}_" for name in _ONE_BY_ONE.split()),
    }
)
"""Operations that the trusted side makes again, on memory of its own. All of them check their
arguments, and none reaches anything but its tensors.
"""
