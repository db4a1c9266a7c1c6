"""Mutants whose checks come late: a call is refused, and something has been written by then.

Each check of a function moves behind each of its writes to what outlives the call: its own object,
and its arguments. Of a check with several conditions each condition moves alone, as in an answer
that stores the keys before it looks at the values.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

from autograder.proof.code_mutants import Variant

_WRITERS = frozenset(
    [
        "add",
        "advance",
        "allocate",
        "append",
        "clear",
        "evict",
        "extend",
        "fork",
        "free",
        "hold",
        "insert",
        "pop",
        "release",
        "remove",
        "start",
        "update",
    ]
)
"""Methods that change their object. A method of torch that does so ends in an underscore."""
_Function = ast.FunctionDef


def late_checks(question: str, source: str) -> list[Variant]:
    """The mutants of a question's cell in which one check, or one condition of it, comes late."""
    tree = ast.parse(source)
    variants = []
    for place, function in enumerate(_functions(tree)):
        for name, body in _late_bodies(function):
            changed = copy.deepcopy(tree)
            _functions(changed)[place].body = list(body)
            ast.fix_missing_locations(changed)
            variants.append(Variant(question, name, ast.unparse(changed)))
    return variants


def _functions(tree: ast.AST) -> list[_Function]:
    """The functions and methods of a cell. An object that could not be made has no traces."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, _Function) and node.name != "__init__"
    ]


def _late_bodies(function: _Function) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The name of each mutant, and the function's new body."""
    body = function.body
    outliving = _names_of_what_stays(function)
    writes = [
        place
        for place, statement in enumerate(body)
        if not isinstance(statement, ast.Return) and _writes(statement, outliving)
    ]
    for place, check in enumerate(body):
        for late, remaining in _conditions(check):
            for write in writes:
                if write <= place:
                    continue
                between = body[place + 1 : write + 1]
                rest = body[write + 1 :]
                name = (
                    f"{function.name}: {_head(late)} comes behind {_head(body[write])}"
                )
                yield name, [*body[:place], *remaining, *between, late, *rest]


def _conditions(check: ast.stmt) -> Iterator[tuple[ast.stmt, list[ast.stmt]]]:
    """The part of a check that can come late, and the checks that stay in its place. Nothing where
    the statement is no check.
    """
    if isinstance(check, ast.For) and all(map(_is_check, check.body)):
        yield check, []
    if not isinstance(check, ast.If) or not _is_check(check):
        return
    yield check, []
    if isinstance(check.test, ast.BoolOp) and isinstance(check.test.op, ast.Or):
        for condition in check.test.values:
            others = [value for value in check.test.values if value is not condition]
            test = ast.BoolOp(ast.Or(), others) if len(others) > 1 else others[0]
            yield ast.If(condition, check.body, []), [ast.If(test, check.body, [])]


def _is_check(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.If)
        and not statement.orelse
        and isinstance(statement.body[-1], ast.Raise)
    )


def _names_of_what_stays(function: _Function) -> set[str]:
    """The parameters, and the names of their parts."""
    arguments = function.args
    names = {argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            names |= _parts_named(node.targets, node.value, names)
        elif isinstance(node, ast.For):
            names |= _parts_named([node.target], node.iter, names)
    return names


def _parts_named(
    targets: Sequence[ast.expr],
    value: ast.expr,
    names: set[str],
) -> set[str]:
    """The names that an assignment gives to parts of what `names` stand for."""
    values = value.elts if isinstance(value, ast.Tuple) else [value]
    if not all(_root(part) in names for part in values):
        return set()
    bound = [part for target in targets for part in ast.walk(target)]
    return {part.id for part in bound if isinstance(part, ast.Name)}


def _root(node: ast.expr) -> str:
    """The name that an expression of parts begins with: `self` for `self._keys[layer]`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _writes(statement: ast.stmt, outliving: set[str]) -> bool:
    """Whether a statement changes something that outlives the call."""
    for node in ast.walk(statement):
        targets: Sequence[ast.expr] = ()
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        for target in targets:
            is_part = isinstance(target, ast.Attribute | ast.Subscript)
            if is_part and _root(target) in outliving:
                return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func.attr
            is_writer = method in _WRITERS or method.endswith("_")
            if is_writer and _root(node.func.value) in outliving:
                return True
    return False


def _head(statement: ast.stmt) -> str:
    """The first line of a statement, without its colon."""
    return ast.unparse(statement).partition("\n")[0].removesuffix(":")
