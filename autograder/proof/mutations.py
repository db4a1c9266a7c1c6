"""Mutations of a node of a syntax tree: the mistakes that one place of a program can have.

Each function takes a node of one kind and yields `(part, text)`: a part of the program and the text
that replaces it. `code_mutants.py` decides which mutations become mutants.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

Mutation = tuple[ast.AST, str]
Parents = Mapping[ast.AST, ast.AST]

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
_COUNTERPARTS = dict(_PAIRS) | {second: first for first, second in _PAIRS}
_MODULES = (
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
_SOURCES_OF_VALUES = (
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
_COMMUTATIVE = (
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
_DIFFERENTIABLE = (
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
    """Mutations of the node itself, not of its children."""
    for kinds, mutate in _MUTATORS:
        if isinstance(node, kinds):
            yield from mutate(node, parents)


def _text(node: ast.AST, **changes: Any) -> str:
    """The node as source, with some of its fields changed."""
    changed = copy.copy(node)
    for field, value in changes.items():
        setattr(changed, field, value)
    return ast.unparse(changed)


def _operator(node: ast.BinOp, parents: Parents) -> Iterator[Mutation]:
    kind = type(node.op)
    if kind in _OPERATORS:
        yield node, _text(node, op=_OPERATORS[kind]())
    yield node, _text(node.left)
    if kind in _SYMMETRIC:
        yield node, _text(node.right)
    else:
        yield node, _text(node, left=node.right, right=node.left)
    if kind is ast.MatMult:
        yield node, f"({_text(node)}).detach()"


def _sign(node: ast.UnaryOp, parents: Parents) -> Iterator[Mutation]:
    if not _is_number(node):
        yield node, _text(node.operand)


def _comparison(node: ast.Compare, parents: Parents) -> Iterator[Mutation]:
    for place, operator in enumerate(node.ops):
        kinds: tuple[type[ast.cmpop], ...] = _COMPARISONS[type(operator)]
        if isinstance(operator, ast.NotEq | ast.Eq) and _is_check(node, parents):
            kinds += (ast.Lt, ast.Gt)
        for kind in kinds:
            operators = list(node.ops)
            operators[place] = kind()
            yield node, _text(node, ops=operators)
    if len(node.ops) == 1 and isinstance(node.comparators[0], ast.Tuple):
        yield from _shorter_tuple(node, node.comparators[0], parents)


def _shorter_tuple(node: ast.Compare, sizes: ast.Tuple, parents: Parents) -> Iterator[Mutation]:
    """A check of a whole shape that skips one size; a choice with one possibility less."""
    operator = node.ops[0]
    if len(sizes.elts) < 2:
        return
    for place, elements in enumerate(_each_left_out(sizes.elts)):
        shorter = _text(sizes, elts=elements)
        if isinstance(operator, ast.In | ast.NotIn):
            yield sizes, shorter
        elif isinstance(operator, ast.Eq | ast.NotEq) and _is_check(node, parents):
            shape = _text(node.left)
            relation = "!=" if isinstance(operator, ast.NotEq) else "=="
            yield node, f"(*{shape}[:{place}], *{shape}[{place + 1}:]) {relation} {shorter}"


def _condition(node: ast.BoolOp, parents: Parents) -> Iterator[Mutation]:
    operator = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield node, _text(node, op=operator)
    for values in _each_left_out(node.values):
        yield node, _text(values[0]) if len(values) == 1 else _text(node, values=values)


def _number(node: ast.expr, parents: Parents) -> Iterator[Mutation]:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, repr(not node.value)
    elif _is_number(node) and not _is_number(parents[node]):
        value = ast.literal_eval(node)
        zero = 0.0 if isinstance(value, float) else 0
        for number in dict.fromkeys((value + 1, value - 1, 2 * value, zero)):
            if number != value:
                yield node, repr(number)


def _infinity(node: ast.Attribute | ast.Call, parents: Parents) -> Iterator[Mutation]:
    text = _text(node)
    if text in ("float('inf')", "float('-inf')") or getattr(node, "attr", "") == "inf":
        sign = "-" if "-" in text else ""
        yield node, f"{sign}1e4"
        yield node, f"{sign}1e9"


def _name(node: ast.Name | ast.Attribute, parents: Parents) -> Iterator[Mutation]:
    parent = parents[node]
    field = "id" if isinstance(node, ast.Name) else "attr"
    name = getattr(node, field)
    is_called = isinstance(parent, ast.Call) and parent.func is node
    is_dtype = isinstance(node, ast.Attribute) and "float" in name
    if name in _COUNTERPARTS and (is_called or is_dtype):
        yield node, _text(node, **{field: _COUNTERPARTS[name]})


def _call(node: ast.Call, parents: Parents) -> Iterator[Mutation]:
    name, arguments = _called_name(node), node.args
    if isinstance(node.func, ast.Name) and not name.islower():
        return  # a class: nothing can stand in for its object
    is_choice = name == "where" and len(arguments) == 3
    if name not in _SOURCES_OF_VALUES:
        if isinstance(node.func, ast.Attribute) and _is_method(node):
            yield node, _text(node.func.value)
        elif arguments and not isinstance(arguments[0], ast.Starred):
            yield node, _text(arguments[1] if is_choice else arguments[0])
    if is_choice:
        yield node, _text(arguments[2])
    if name in _DIFFERENTIABLE and not _text(node.func).startswith("math."):
        yield node, f"{_text(node)}.detach()"
    tensors = 0 if _is_method(node) else 1
    if name in ("tril", "triu") and len(arguments) == tensors and not node.keywords:
        for diagonal in (-1, 1):
            yield node, _text(node, args=[*arguments, ast.Constant(diagonal)])
    if name in ("range", "arange"):
        yield from _off_by_one(arguments[-1] if len(arguments) < 3 else arguments[1])


def _arguments(node: ast.Call, parents: Parents) -> Iterator[Mutation]:
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return
    if _called_name(node) not in _COMMUTATIVE:
        for arguments in _neighbours_swapped(node.args):
            yield node, _text(node, args=arguments)
    for keyword, keywords in zip(node.keywords, _each_left_out(node.keywords), strict=True):
        if keyword.arg is not None:
            yield node, _text(node, keywords=keywords)


def _slice(node: ast.Slice, parents: Parents) -> Iterator[Mutation]:
    for bound in (node.lower, node.upper):
        if bound is not None:
            yield from _off_by_one(bound)
    for part in ("lower", "upper", "step"):
        if getattr(node, part) is not None:
            yield node, _text(node, **{part: None})


def _off_by_one(node: ast.expr) -> Iterator[Mutation]:
    if not _is_number(node):
        yield node, f"{_text(node)} + 1"
        yield node, f"{_text(node)} - 1"


def _alternative(node: ast.IfExp, parents: Parents) -> Iterator[Mutation]:
    yield node, _text(node.body)
    yield node, _text(node.orelse)


def _if(node: ast.If, parents: Parents) -> Iterator[Mutation]:
    yield node.test, f"not ({_text(node.test)})"
    yield node.test, "False"
    if not isinstance(node.body[-1], ast.Raise):
        yield node.test, "True"


def _filter(node: ast.comprehension, parents: Parents) -> Iterator[Mutation]:
    for test in node.ifs:
        yield test, "True"
        yield test, f"not ({_text(test)})"


def _statement(node: ast.stmt, parents: Parents) -> Iterator[Mutation]:
    """The statement is left out, unless a name would be unbound without it."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name | ast.Tuple):
        bound = [name for target in node.targets for name in ast.walk(target)]
        names = {name.id for name in bound if isinstance(name, ast.Name)}
        if not names <= _names_bound_beside(node, parents):
            return
    yield node, "pass"


def _names_bound_beside(node: ast.AST, parents: Parents) -> set[str]:
    """Names that the function around `node` binds outside of `node`."""
    function = parents[node]
    while not isinstance(function, ast.FunctionDef | ast.ClassDef | ast.Module):
        function = parents[function]
    names = set()
    for part in set(ast.walk(function)) - set(ast.walk(node)):
        if isinstance(part, ast.arg):
            names.add(part.arg)
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            names.add(part.id)
    return names


def _step(node: ast.AugAssign, parents: Parents) -> Iterator[Mutation]:
    if type(node.op) in _OPERATORS:
        yield node, _text(node, op=_OPERATORS[type(node.op)]())


def _return(node: ast.Return, parents: Parents) -> Iterator[Mutation]:
    if isinstance(node.value, ast.Tuple):
        for elements in _neighbours_swapped(node.value.elts):
            yield node.value, _text(node.value, elts=elements)


def _raise(node: ast.Raise, parents: Parents) -> Iterator[Mutation]:
    if isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
        yield node.exc.func, "RuntimeError"


def _called_name(node: ast.Call) -> str:
    """The last part of the called function's name; "" where the function has no name."""
    return getattr(node.func, "attr", "") or getattr(node.func, "id", "")


def _is_method(node: ast.Call) -> bool:
    """Whether the call is of a value's method, not of a module's function."""
    root: ast.expr = node.func
    while isinstance(root, ast.Attribute):
        root = root.value
    is_module = isinstance(root, ast.Name) and root.id in _MODULES
    return isinstance(node.func, ast.Attribute) and not is_module


def _is_number(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _is_check(node: ast.AST, parents: Parents) -> bool:
    """Whether a comparison belongs to the test of an `if` that raises an error."""
    while isinstance(node, ast.expr):
        child, node = node, parents[node]
        if isinstance(node, ast.If):
            return node.test is child and isinstance(node.body[-1], ast.Raise)
    return False


def _each_left_out(items: Sequence[Any]) -> Iterable[list[Any]]:
    """The items without the first, without the second, and so on."""
    return ([*items[:place], *items[place + 1 :]] for place in range(len(items)))


def _neighbours_swapped(items: Sequence[Any]) -> Iterator[list[Any]]:
    """The items with the first and second exchanged, then the second and third, and so on."""
    for place in range(len(items) - 1):
        swapped = list(items)
        swapped[place : place + 2] = swapped[place + 1], swapped[place]
        yield swapped


_MUTATORS: tuple[tuple[Any, Callable[[Any, Parents], Iterator[Mutation]]], ...] = (
    (ast.BinOp, _operator),
    (ast.UnaryOp, _sign),
    (ast.Compare, _comparison),
    (ast.BoolOp, _condition),
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
