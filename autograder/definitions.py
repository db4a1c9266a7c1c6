"""Which names a piece of our own Python defines. A student's code is never parsed: `intake/text.py` looks at it."""

from __future__ import annotations

import ast
import dis
import types


def names_defined(source: str) -> frozenset[str]:
    """The names that a module or a cell has at its top level once it has run: definitions, imports, variables.

    Raises:
        SyntaxError: the text is no Python.
    """
    return names_bound(ast.parse(source))


def names_bound(node: ast.AST) -> frozenset[str]:
    """The names that a piece of code binds where it stands; those inside a function, a class, a comprehension stay
    there."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return frozenset({node.name})
        case ast.Import() | ast.ImportFrom():
            return frozenset((alias.asname or alias.name).split(".")[0] for alias in node.names)
        case ast.Name(ctx=ast.Store()):
            return frozenset({node.id})
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return frozenset()
    return frozenset().union(*map(names_bound, ast.iter_child_nodes(node)))


def globals_used(source: str) -> frozenset[str]:
    """The names that a cell looks up and does not define itself, at its top level and in its functions.

    Raises:
        SyntaxError: the text is no Python.
    """
    code = compile(source, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return _globals_of(code) - names_defined(source)


def _globals_of(code: types.CodeType) -> frozenset[str]:
    steps = list(dis.get_instructions(code))
    stored = {step.argval for step in steps if step.opname == "STORE_NAME"}
    read = {step.argval for step in steps if step.opname == "LOAD_NAME"} - stored
    read |= {step.argval for step in steps if step.opname.startswith("LOAD_") and step.opname.endswith("GLOBAL")}
    inner = (_globals_of(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(read).union(*inner)
