"""What can be wrong in one place of a program: the mutations of a node of its syntax tree.

Each function takes a node of one kind and yields `(part, text)`: a part of the program and what
stands there instead. `code_mutants.py` decides which of them are made.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

Mutation = tuple[ast.AST, str]
Parents = Mapping[ast.AST, ast.AST]

_Node = TypeVar("_Node", bound=ast.AST)
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_SYMMETRIC = (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)
_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
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
EXCHANGED = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
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
_MAKES_VALUES = (
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
"""Calls without which nothing of the program is left to run, or whose arguments are no stand-in for
their result.
"""
_ORDER_IS_NOTHING = (
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
_GRADIENT_FLOWS = (
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


def mutations(node: ast.AST, parents: Parents) -> Iterator[Mutation]:
    """The mutations of one node; those of what stands in it are not among them."""
    for kind, of_kind in _OF_KIND:
        if isinstance(node, kind):
            yield from of_kind(node, parents)


def exchanged(node: _Node, **fields: Any) -> _Node:
    """The node with other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _operator(node: ast.BinOp, parents: Parents) -> Iterator[Mutation]:
    kind = type(node.op)
    if kind in _OPERATORS:
        yield node, ast.unparse(exchanged(node, op=_OPERATORS[kind]()))
    yield node, ast.unparse(node.left)
    if kind in _SYMMETRIC:
        yield node, ast.unparse(node.right)
    else:
        yield node, ast.unparse(exchanged(node, left=node.right, right=node.left))
    if kind is ast.MatMult:
        yield node, f"({ast.unparse(node)}).detach()"


def _sign(node: ast.UnaryOp, parents: Parents) -> Iterator[Mutation]:
    if not _is_number(node):
        yield node, ast.unparse(node.operand)


def _comparison(node: ast.Compare, parents: Parents) -> Iterator[Mutation]:
    for place, op in enumerate(node.ops):
        kinds: tuple[type[ast.cmpop], ...] = _COMPARISONS[type(op)]
        if isinstance(op, ast.NotEq | ast.Eq) and _guards(node, parents):
            kinds += (ast.Lt, ast.Gt)
        for kind in kinds:
            yield node, ast.unparse(exchanged(node, ops=_with(node.ops, place, kind())))
    if len(node.ops) == 1 and isinstance(node.comparators[0], ast.Tuple):
        yield from _fewer(node, node.comparators[0], parents)


def _fewer(node: ast.Compare, of: ast.Tuple, parents: Parents) -> Iterator[Mutation]:
    """A check of a whole shape that looks at all sizes but one; a choice with one possibility
    less.
    """
    for place in range(len(of.elts)):
        rest = exchanged(of, elts=[*of.elts[:place], *of.elts[place + 1 :]])
        if isinstance(node.ops[0], ast.In | ast.NotIn) and rest.elts:
            yield of, ast.unparse(rest)
        elif isinstance(node.ops[0], ast.Eq | ast.NotEq) and _guards(node, parents) and rest.elts:
            of_left = ast.unparse(node.left)
            relation = "!=" if isinstance(node.ops[0], ast.NotEq) else "=="
            left = f"(*{of_left}[:{place}], *{of_left}[{place + 1}:])"
            yield (
                node,
                f"{left} {relation} {ast.unparse(rest)}",
            )


def _choice(node: ast.BoolOp, parents: Parents) -> Iterator[Mutation]:
    yield (
        node,
        ast.unparse(exchanged(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())),
    )
    for place in range(len(node.values)):
        rest = [*node.values[:place], *node.values[place + 1 :]]
        yield node, ast.unparse(rest[0] if len(rest) == 1 else exchanged(node, values=rest))


def _number(node: ast.expr, parents: Parents) -> Iterator[Mutation]:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, repr(not node.value)
    elif _is_number(node) and not _is_number(parents[node]):
        value = ast.literal_eval(node)
        others = (value + 1, value - 1, 2 * value, 0.0 if isinstance(value, float) else 0)
        yield from ((node, repr(other)) for other in dict.fromkeys(others) if other != value)


def _infinity(node: ast.Attribute | ast.Call, parents: Parents) -> Iterator[Mutation]:
    if isinstance(node, ast.Attribute) and node.attr == "inf":
        yield from ((node, number) for number in ("1e4", "1e9"))
    elif isinstance(node, ast.Call) and ast.unparse(node) in ("float('inf')", "float('-inf')"):
        sign = "-" if "-" in ast.unparse(node) else ""
        yield from ((node, sign + number) for number in ("1e4", "1e9"))


def _name(node: ast.Name | ast.Attribute, parents: Parents) -> Iterator[Mutation]:
    parent = parents[node]
    name = node.id if isinstance(node, ast.Name) else node.attr
    called = isinstance(parent, ast.Call) and parent.func is node
    if name in EXCHANGED and (called or (isinstance(node, ast.Attribute) and "float" in name)):
        yield (
            node,
            ast.unparse(
                exchanged(node, **{"id" if isinstance(node, ast.Name) else "attr": EXCHANGED[name]})
            ),
        )


def _call(node: ast.Call, parents: Parents) -> Iterator[Mutation]:
    name, method = called_name(node), is_method(node)
    if isinstance(node.func, ast.Name) and not name.islower():
        return  # a class: what it makes has no stand-in
    if name not in _MAKES_VALUES:
        if method and isinstance(node.func, ast.Attribute):
            yield node, ast.unparse(node.func.value)
        elif node.args and not isinstance(node.args[0], ast.Starred):
            yield node, ast.unparse(node.args[1 if name == "where" and len(node.args) == 3 else 0])
    if name == "where" and len(node.args) == 3:
        yield node, ast.unparse(node.args[2])
    if name in _GRADIENT_FLOWS and not ast.unparse(node.func).startswith("math."):
        yield node, f"{ast.unparse(node)}.detach()"
    if name in ("tril", "triu") and len(node.args) == (0 if method else 1) and not node.keywords:
        yield from (
            (node, ast.unparse(exchanged(node, args=[*node.args, ast.Constant(n)])))
            for n in (-1, 1)
        )
    if name in ("range", "arange"):
        yield from _off_by_one(node.args[-1] if len(node.args) < 3 else node.args[1])


def _arguments(node: ast.Call, parents: Parents) -> Iterator[Mutation]:
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return
    if called_name(node) not in _ORDER_IS_NOTHING:
        for place in range(len(node.args) - 1):
            args = [
                *node.args[:place],
                node.args[place + 1],
                node.args[place],
                *node.args[place + 2 :],
            ]
            yield node, ast.unparse(exchanged(node, args=args))
    for keyword in node.keywords:
        if keyword.arg is not None:
            yield (
                node,
                ast.unparse(
                    exchanged(node, keywords=[k for k in node.keywords if k is not keyword])
                ),
            )


def _slice(node: ast.Slice, parents: Parents) -> Iterator[Mutation]:
    for bound in (node.lower, node.upper):
        if bound is not None:
            yield from _off_by_one(bound)
    for part in ("lower", "upper", "step"):
        if getattr(node, part) is not None:
            yield node, ast.unparse(exchanged(node, **{part: None}))


def _off_by_one(node: ast.expr) -> Iterator[Mutation]:
    if not _is_number(node):
        yield from ((node, f"{ast.unparse(node)} {step} 1") for step in "+-")


def _alternative(node: ast.IfExp, parents: Parents) -> Iterator[Mutation]:
    yield node, ast.unparse(node.body)
    yield node, ast.unparse(node.orelse)


def _if(node: ast.If, parents: Parents) -> Iterator[Mutation]:
    yield node.test, f"not ({ast.unparse(node.test)})"
    yield node.test, "False"
    if not isinstance(node.body[-1], ast.Raise):
        yield node.test, "True"


def _filter(node: ast.comprehension, parents: Parents) -> Iterator[Mutation]:
    for test in node.ifs:
        yield test, "True"
        yield test, f"not ({ast.unparse(test)})"


def _statement(node: ast.stmt, parents: Parents) -> Iterator[Mutation]:
    """The statement is left out, where names stay bound without it."""
    if isinstance(node, ast.Assign):
        names = [
            name.id
            for target in node.targets
            for name in ast.walk(target)
            if isinstance(name, ast.Name)
        ]
        kept = not isinstance(node.targets[0], ast.Name | ast.Tuple) or all(
            _bound_else(n, node, parents) for n in names
        )
        if not kept:
            return
    yield node, "pass"


def _bound_else(name: str, node: ast.AST, parents: Parents) -> bool:
    """Whether the function that `node` stands in binds a name elsewhere too."""
    function = parents[node]
    while not isinstance(function, ast.FunctionDef | ast.ClassDef | ast.Module):
        function = parents[function]
    inside = set(ast.walk(node))
    stored = (other for other in ast.walk(function) if other not in inside)
    return any(
        (isinstance(other, ast.arg) and other.arg == name)
        or (isinstance(other, ast.Name) and other.id == name and isinstance(other.ctx, ast.Store))
        for other in stored
    )


def _step(node: ast.AugAssign, parents: Parents) -> Iterator[Mutation]:
    if type(node.op) in _OPERATORS:
        yield node, ast.unparse(exchanged(node, op=_OPERATORS[type(node.op)]()))


def _return(node: ast.Return, parents: Parents) -> Iterator[Mutation]:
    if isinstance(node.value, ast.Tuple):
        for place in range(len(node.value.elts) - 1):
            elts = node.value.elts
            swapped = [*elts[:place], elts[place + 1], elts[place], *elts[place + 2 :]]
            yield node.value, ast.unparse(exchanged(node.value, elts=swapped))


def _raise(node: ast.Raise, parents: Parents) -> Iterator[Mutation]:
    if isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
        yield node.exc.func, "RuntimeError"


def called_name(node: ast.Call) -> str:
    """The last part of the name of what is called; "" where it has none."""
    return getattr(node.func, "attr", "") or getattr(node.func, "id", "")


def is_method(node: ast.Call) -> bool:
    """Whether it calls a method of a value, and not a function of a module."""
    if not isinstance(node.func, ast.Attribute):
        return False
    root: ast.expr = node.func
    while isinstance(root, ast.Attribute):
        root = root.value
    return not (isinstance(root, ast.Name) and root.id in MODULES)


def _is_number(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return isinstance(node.operand, ast.Constant) and _is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _guards(node: ast.AST, parents: Parents) -> bool:
    """Whether a comparison is part of a check: an `if` under which something is raised."""
    while isinstance(node, ast.expr):
        child, node = node, parents[node]
        if isinstance(node, ast.If):
            return node.test is child and isinstance(node.body[-1], ast.Raise)
    return False


def _with(items: Sequence[Any], place: int, item: Any) -> list[Any]:
    return [*items[:place], item, *items[place + 1 :]]


_OF_KIND: tuple[tuple[Any, Callable[[Any, Parents], Iterator[Mutation]]], ...] = (
    (ast.BinOp, _operator),
    (ast.UnaryOp, _sign),
    (ast.Compare, _comparison),
    (ast.BoolOp, _choice),
    ((ast.Constant, ast.UnaryOp), _number),
    ((ast.Attribute, ast.Call), _infinity),
    ((ast.Name, ast.Attribute), _name),
    (ast.Call, _call),
    (ast.Call, _arguments),
    (ast.Slice, _slice),
    (ast.IfExp, _alternative),
    (ast.If, _if),
    (ast.comprehension, _filter),
    ((ast.Assign, ast.AugAssign, ast.Expr, ast.For, ast.Break, ast.Continue), _statement),
    (ast.AugAssign, _step),
    (ast.Return, _return),
    (ast.Raise, _raise),
)
