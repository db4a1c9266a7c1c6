"""Tables of mutations: operators and functions with their counterparts, and functions with special
rules.
"""

from __future__ import annotations

OPERATORS = {
    "Add": "Sub",
    "Sub": "Add",
    "Mult": "Div",
    "Div": "Mult",
    "FloorDiv": "Div",
    "Mod": "FloorDiv",
    "Pow": "Mult",
    "BitAnd": "BitOr",
    "BitOr": "BitAnd",
}
"""An arithmetic operator, and the one that a mutant has in its place."""
COMPARISONS = {
    "Lt": ("LtE", "GtE"),
    "LtE": ("Lt", "Gt"),
    "Gt": ("GtE", "LtE"),
    "GtE": ("Gt", "Lt"),
    "Eq": ("NotEq",),
    "NotEq": ("Eq",),
    "Is": ("IsNot",),
    "IsNot": ("Is",),
    "In": ("NotIn",),
    "NotIn": ("In",),
}
"""A comparison, and those that mutants have in its place."""
_PAIRS = (
    ("min", "max"),
    ("amin", "amax"),
    ("argmin", "argmax"),
    ("minimum", "maximum"),
    ("floor", "ceil"),
    ("sin", "cos"),
    ("any", "all"),
    ("sum", "mean"),
    ("triu", "tril"),
    ("zeros", "ones"),
    ("zeros_like", "ones_like"),
    ("float32", "float64"),
    ("cumsum", "cumprod"),
    ("repeat", "repeat_interleave"),
)
COUNTERPARTS = dict(_PAIRS) | {second: first for first, second in _PAIRS}
"""A function or dtype, and the one that a mutant has in its place."""
MODULES = (
    "torch",
    "math",
    "np",
    "numpy",
    "nn",
    "F",
    "tl",
    "triton",
    "functools",
    "itertools",
    "random",
)
"""Names of modules in notebooks: a call of their attributes is no call of a method."""
SOURCES_OF_VALUES = (
    "range",
    "len",
    "enumerate",
    "zip",
    "isinstance",
    "super",
    "getattr",
    "hasattr",
    "next",
    "iter",
    "id",
    "zeros",
    "ones",
    "empty",
    "full",
    "arange",
    "eye",
    "rand",
    "randn",
    "randint",
    "randperm",
    "tensor",
    "Generator",
    "program_id",
    "broadcast_shapes",
    "item",
    "tolist",
    "size",
    "stride",
    "numel",
    "dim",
    "append",
    "get",
    "items",
)
"""Calls that no argument of theirs can replace: the rest of the program would have nothing to work
on.
"""
COMMUTATIVE = (
    "transpose",
    "swapaxes",
    "min",
    "max",
    "minimum",
    "maximum",
    "add",
    "mul",
    "zip",
    "dot",
)
"""Functions whose arguments may stand in any order."""
DIFFERENTIABLE = (
    "exp",
    "softmax",
    "masked_softmax",
    "tanh",
    "sigmoid",
    "relu",
    "sqrt",
    "masked_fill",
    "where",
)
"""Functions whose result a mutant detaches from the graph."""
