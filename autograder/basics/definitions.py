"""Find the names that a piece of Python defines, and the names that it uses.

`defined_functions` and `defined_names` read the first column of the text. They are for students'
cells, which may not parse, and which may be made to crash Python's parser in the grader.

`top_level_names` and `used_globals` parse. They are for the course's text (sources, suites, answer
keys), and for a student's text on the student's machine.
"""

from __future__ import annotations

import ast
import re
import symtable

DEFINITION = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
ASSIGNMENT = re.compile(r"^(\w+)[ \t]*(?::[^=\n]{0,200})?=(?!=)", re.MULTILINE)


def defined_functions(source: str) -> frozenset[str]:
    """Names of the functions and classes defined in the first column."""
    return frozenset(DEFINITION.findall(source))


def defined_names(source: str) -> frozenset[str]:
    """Names of functions, classes and plain variables defined in the first column."""
    return defined_functions(source) | frozenset(ASSIGNMENT.findall(source))


def top_level_names(source: str) -> frozenset[str]:
    """The names that a module or a cell binds at its top level: definitions, imports, variables.

    Raises:
        SyntaxError: the text is no Python.
    """
    return bound_names(ast.parse(source))


def bound_names(node: ast.AST) -> frozenset[str]:
    """The names that a piece of code binds in its own scope, without those in the scopes of its
    functions, classes and comprehensions.
    """
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return frozenset({node.name})
        case ast.Import() | ast.ImportFrom():
            names = [alias.asname or alias.name for alias in node.names]
            return frozenset(name.split(".")[0] for name in names)
        case ast.Name(ctx=ast.Store()):
            return frozenset({node.id})
        case (
            ast.Lambda()
            | ast.ListComp()
            | ast.SetComp()
            | ast.DictComp()
            | ast.GeneratorExp()
        ):
            return frozenset()
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            captured = {name}
        case _:
            captured = set[str]()
    return frozenset(captured).union(*map(bound_names, ast.iter_child_nodes(node)))


def used_globals(source: str) -> frozenset[str]:
    """The names that a cell uses and does not define, at its top level and in its functions.

    Raises:
        SyntaxError: the text is no Python.
    """
    used: set[str] = set()
    tables = [symtable.symtable(source, "cell", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        is_module = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (is_module or symbol.is_global()):
                used.add(symbol.get_name())
    return frozenset(used) - top_level_names(source)
