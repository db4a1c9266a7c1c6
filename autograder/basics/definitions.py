"""Which names a piece of Python defines, and which it uses. Asked in two ways, since there are two
kinds of text:

`defined_functions` and `defined_names` look at text alone, by what stands in the first column. They
are for students' cells, which may not parse, and which may be made to crash Python's parser in the
grader.

`top_level_names` and `used_globals` parse. They are for our own text (sources, suites, answer
keys), and for a student's on the student's own machine.
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
    """The names that a module or a cell has at its top level once it has run: definitions, imports,
    variables.

    Raises:
        SyntaxError: the text is no Python.
    """
    return bound_names(ast.parse(source))


def bound_names(node: ast.AST) -> frozenset[str]:
    """The names that a piece of code binds where it stands; those inside a function, a class, a
    comprehension stay there.
    """
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return frozenset({node.name})
        case ast.Import() | ast.ImportFrom():
            return frozenset((alias.asname or alias.name).split(".")[0] for alias in node.names)
        case ast.Name(ctx=ast.Store()):
            return frozenset({node.id})
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return frozenset()
    captured = (
        {node.name} if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name else set[str]()
    )
    return frozenset(captured).union(*map(bound_names, ast.iter_child_nodes(node)))


def used_globals(source: str) -> frozenset[str]:
    """The names that a cell looks up and does not define itself, at its top level and in its
    functions.

    Raises:
        SyntaxError: the text is no Python.
    """
    used: set[str] = set()
    tables = [symtable.symtable(source, "cell", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        at_top = table.get_type() == "module"
        used.update(
            s.get_name()
            for s in table.get_symbols()
            if s.is_referenced() and (at_top or s.is_global())
        )
    return frozenset(used) - top_level_names(source)
