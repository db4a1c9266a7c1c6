"""Mutations of a node of a syntax tree: the mistakes that one place of a program can have.

Each function takes a node of one kind and yields `(part, text)`: a part of the program and the text
that replaces it. `code_mutants.py` decides which mutations become mutants.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from autograder.proof.mutation_tables import (
    COMMUTATIVE,
    COMPARISONS,
    COUNTERPARTS,
    DIFFERENTIABLE,
    MODULES,
    OPERATORS,
    SOURCES_OF_VALUES,
)

Mutations = Iterator[tuple[ast.AST, str]]
Parents = Mapping[ast.AST, ast.AST]

_SYMMETRIC = (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)


def mutations(node: ast.AST, parents: Parents) -> Mutations:
    """Mutations of the node itself, not of its children."""
    for kinds, mutate in _MUTATORS:
        if isinstance(node, kinds):
            yield from mutate(node)
    for kinds, mutate_within in _CONTEXT_MUTATORS:
        if isinstance(node, kinds):
            yield from mutate_within(node, parents)


def _text(node: ast.AST, **changes: Any) -> str:
    """The node as source, with some of its fields changed."""
    changed = copy.copy(node)
    for field, value in changes.items():
        setattr(changed, field, value)
    return ast.unparse(changed)


def _operator(node: ast.BinOp) -> Mutations:
    yield from _other_operator(node)
    yield node, _text(node.left)
    if isinstance(node.op, _SYMMETRIC):
        yield node, _text(node.right)
    else:
        yield node, _text(node, left=node.right, right=node.left)
    if isinstance(node.op, ast.MatMult):
        yield node, f"({_text(node)}).detach()"


def _other_operator(node: ast.BinOp | ast.AugAssign) -> Mutations:
    name = type(node.op).__name__
    if name in OPERATORS:
        operator = getattr(ast, OPERATORS[name])
        yield node, _text(node, op=operator())


def _sign(node: ast.UnaryOp) -> Mutations:
    if not _is_number(node):
        yield node, _text(node.operand)


def _comparison(node: ast.Compare, parents: Parents) -> Mutations:
    for place, operator in enumerate(node.ops):
        names = COMPARISONS[type(operator).__name__]
        if isinstance(operator, ast.NotEq | ast.Eq) and _is_check(node, parents):
            names += ("Lt", "Gt")
        for name in names:
            operators = list(node.ops)
            operators[place] = getattr(ast, name)()
            yield node, _text(node, ops=operators)
    sizes = node.comparators[0]
    if len(node.ops) == 1 and isinstance(sizes, ast.Tuple):
        yield from _shorter_tuple(node, sizes, parents)


def _shorter_tuple(
    node: ast.Compare,
    sizes: ast.Tuple,
    parents: Parents,
) -> Mutations:
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
            yield (
                node,
                f"(*{shape}[:{place}], *{shape}[{place + 1}:]) {relation} {shorter}",
            )


def _condition(node: ast.BoolOp) -> Mutations:
    if isinstance(node.op, ast.And):
        yield node, _text(node, op=ast.Or())
    else:
        yield node, _text(node, op=ast.And())
    for values in _each_left_out(node.values):
        if len(values) == 1:
            yield node, _text(values[0])
        else:
            yield node, _text(node, values=values)


def _number(node: ast.expr, parents: Parents) -> Mutations:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, repr(not node.value)
    elif _is_number(node) and not _is_number(parents[node]):
        value = ast.literal_eval(node)
        zero = type(value)()
        candidates = [value + 1, value - 1, 2 * value, zero]
        if value == -1 and not isinstance(parents[node], ast.Subscript):
            candidates.append(1)  # the last axis of a matrix
        for number in dict.fromkeys(candidates):
            if number != value:
                yield node, repr(number)


def _infinity(node: ast.Attribute | ast.Call) -> Mutations:
    text = _text(node)
    if text in ("float('inf')", "float('-inf')") or getattr(node, "attr", "") == "inf":
        sign = "-" if "-" in text else ""
        yield node, f"{sign}1e4"
        yield node, f"{sign}1e9"


def _name(
    node: ast.Name | ast.Attribute,
    parents: Parents,
) -> Mutations:
    parent = parents[node]
    field = "id" if isinstance(node, ast.Name) else "attr"
    name = getattr(node, field)
    is_called = isinstance(parent, ast.Call) and parent.func is node
    is_dtype = isinstance(node, ast.Attribute) and "float" in name
    if name in COUNTERPARTS and (is_called or is_dtype):
        yield node, _text(node, **{field: COUNTERPARTS[name]})


def _call(node: ast.Call) -> Mutations:
    name, arguments = _called_name(node), node.args
    if isinstance(node.func, ast.Name) and not name.islower():
        return  # a class: nothing can stand in for its object
    is_choice = name == "where" and len(arguments) == 3
    if name not in SOURCES_OF_VALUES:
        if isinstance(node.func, ast.Attribute) and _is_method(node):
            yield node, _text(node.func.value)
        elif arguments and not isinstance(arguments[0], ast.Starred):
            yield node, _text(arguments[1] if is_choice else arguments[0])
    if is_choice:
        yield node, _text(arguments[2])
    if name in DIFFERENTIABLE and not _text(node.func).startswith("math."):
        yield node, f"{_text(node)}.detach()"
    tensors = 0 if _is_method(node) else 1
    if name in ("tril", "triu") and len(arguments) == tensors and not node.keywords:
        for diagonal in (-1, 1):
            yield node, _text(node, args=[*arguments, ast.Constant(diagonal)])
    if name in ("range", "arange"):
        stop = arguments[1] if len(arguments) > 1 else arguments[0]
        yield from _off_by_one(stop)


def _arguments(node: ast.Call) -> Mutations:
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return
    if _called_name(node) not in COMMUTATIVE:
        for arguments in _neighbours_swapped(node.args):
            yield node, _text(node, args=arguments)
    for place, keywords in enumerate(_each_left_out(node.keywords)):
        if node.keywords[place].arg is not None:
            yield node, _text(node, keywords=keywords)


def _for_all_at_once(node: ast.Call) -> Mutations:
    """A choice for each element becomes one for all of them together."""
    name = _called_name(node)
    is_choice = name == "where" and len(node.args) == 3
    is_fill = name == "masked_fill" and len(node.args) == 2
    if (is_choice or is_fill) and not _text(node.func).startswith("tl."):
        condition = node.args[0]
        yield condition, f"({_text(condition)}).all()"


def _for_one_alone(node: ast.Call) -> Mutations:
    """`any` and `all` look at the first element alone, or at the last one."""
    is_question = _called_name(node) in ("any", "all") and len(node.args) == 1
    if is_question and isinstance(node.args[0], ast.GeneratorExp):
        elements = node.args[0].generators[0].iter
        for part in ("[:1]", "[-1:]"):
            yield elements, f"list({_text(elements)}){part}"


def _slice(node: ast.Slice) -> Mutations:
    for bound in (node.lower, node.upper):
        if bound is not None:
            yield from _off_by_one(bound)
    for part in ("lower", "upper", "step"):
        if getattr(node, part) is not None:
            yield node, _text(node, **{part: None})


def _off_by_one(node: ast.expr) -> Mutations:
    if not _is_number(node):
        yield node, f"{_text(node)} + 1"
        yield node, f"{_text(node)} - 1"


def _alternative(node: ast.IfExp) -> Mutations:
    yield node, _text(node.body)
    yield node, _text(node.orelse)


def _if(node: ast.If) -> Mutations:
    yield node.test, f"not ({_text(node.test)})"
    yield node.test, "False"
    if not isinstance(node.body[-1], ast.Raise):
        yield node.test, "True"


def _filter(node: ast.comprehension) -> Mutations:
    for test in node.ifs:
        yield test, "True"
        yield test, f"not ({_text(test)})"


def _statement(node: ast.stmt, parents: Parents) -> Mutations:
    """The statement is left out, unless a name would be unbound without it."""
    if isinstance(node, ast.Assign) and isinstance(
        node.targets[0], ast.Name | ast.Tuple
    ):
        names = set()
        for target in node.targets:
            names |= {
                part.id for part in ast.walk(target) if isinstance(part, ast.Name)
            }
        if not names <= _names_bound_beside(node, parents):
            return
    yield node, "pass"
    if isinstance(node, ast.AugAssign):
        yield from _other_operator(node)


def _names_bound_beside(node: ast.AST, parents: Parents) -> set[str]:
    """Names that the function around `node` binds outside of `node`."""
    function = parents[node]
    while not isinstance(function, ast.FunctionDef | ast.ClassDef | ast.Module):
        function = parents[function]
    names = set()
    parts_beside = set(ast.walk(function)).difference(ast.walk(node))
    for part in parts_beside:
        if isinstance(part, ast.arg):
            names.add(part.arg)
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            names.add(part.id)
    return names


def _return(node: ast.Return) -> Mutations:
    if isinstance(node.value, ast.Tuple):
        for elements in _neighbours_swapped(node.value.elts):
            yield node.value, _text(node.value, elts=elements)


def _raise(node: ast.Raise) -> Mutations:
    error = node.exc
    if isinstance(error, ast.Call) and isinstance(error.func, ast.Name):
        yield error.func, "RuntimeError"


def _called_name(node: ast.Call) -> str:
    """The last part of the called function's name; "" where the function has no name."""
    return getattr(node.func, "attr", "") or getattr(node.func, "id", "")


def _is_method(node: ast.Call) -> bool:
    """Whether the call is of a value's method, not of a module's function."""
    root: ast.expr = node.func
    while isinstance(root, ast.Attribute):
        root = root.value
    is_module = isinstance(root, ast.Name) and root.id in MODULES
    return isinstance(node.func, ast.Attribute) and not is_module


def _is_number(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    if not isinstance(node, ast.Constant):
        return False
    return type(node.value) in (int, float)  # a bool is no number here


def _is_check(node: ast.AST, parents: Parents) -> bool:
    """Whether a comparison belongs to the test of an `if` that raises an error."""
    while isinstance(node, ast.expr):
        child, node = node, parents[node]
        if isinstance(node, ast.If):
            return node.test is child and isinstance(node.body[-1], ast.Raise)
    return False


def _each_left_out(items: Sequence[Any]) -> Iterator[list[Any]]:
    """The items without the first, without the second, and so on."""
    for place in range(len(items)):
        remaining = list(items)
        del remaining[place]
        yield remaining


def _neighbours_swapped(items: Sequence[Any]) -> Iterator[list[Any]]:
    """The items with the first and second exchanged, then the second and third, and so on."""
    for place in range(len(items) - 1):
        swapped = list(items)
        swapped[place : place + 2] = swapped[place + 1], swapped[place]
        yield swapped


_MUTATORS: tuple[tuple[Any, Callable[[Any], Mutations]], ...] = (
    (ast.BinOp, _operator),
    (ast.UnaryOp, _sign),
    (ast.BoolOp, _condition),
    ((ast.Attribute, ast.Call), _infinity),
    (ast.Call, _call),
    (ast.Call, _arguments),
    (ast.Call, _for_all_at_once),
    (ast.Call, _for_one_alone),
    (ast.Slice, _slice),
    (ast.IfExp, _alternative),
    (ast.If, _if),
    (ast.comprehension, _filter),
    (ast.Return, _return),
    (ast.Raise, _raise),
)
_STATEMENTS = (
    ast.Assign,
    ast.AugAssign,
    ast.Expr,
    ast.For,
    ast.Break,
    ast.Continue,
)
_CONTEXT_MUTATORS: tuple[tuple[Any, Callable[[Any, Parents], Mutations]], ...] = (
    (ast.Compare, _comparison),
    ((ast.Constant, ast.UnaryOp), _number),
    ((ast.Name, ast.Attribute), _name),
    (_STATEMENTS, _statement),
)
