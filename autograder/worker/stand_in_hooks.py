"""Compiles the functions of questions with a hook in front: each first asks whether a stand-in
answers its call.

They are compiled so in every worker, whether it has stand-ins or not. A prerequisite that is stood
in for stays the function that the student wrote: nothing in its name, code, signature or text
tells that a stand-in answers.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Callable, Collection, Iterator
from types import CodeType, FunctionType
from typing import Any

_HAS_STAND_IN = "__stood_in__"
_ANSWER = "__stand_in_answer__"
"""With the name above, what hooks call: functions among the builtins."""


class StandInHooks:
    """What the hooks of this process call: which functions have a stand-in, and its answers."""

    def __init__(self) -> None:
        self._stand_ins: dict[int, tuple[CodeType, Callable[..., Any]]] = {}
        setattr(builtins, _HAS_STAND_IN, self._has_stand_in)
        setattr(builtins, _ANSWER, self._answer)

    def stand_in(self, function: Any, answer: Callable[..., Any]) -> bool:
        """Let `answer` answer the calls of a function from now on. False where the function has no
        hook.
        """
        if not isinstance(function, FunctionType):
            return False
        code = function.__code__
        if _HAS_STAND_IN not in code.co_names:
            return False
        self._stand_ins[id(code)] = code, answer
        return True

    def _has_stand_in(self) -> bool:
        """Whether a stand-in answers for the function that calls this method."""
        return bool(self._stand_ins) and id(sys._getframe(1).f_code) in self._stand_ins

    def _answer(self, *arguments: Any, **keywords: Any) -> Any:
        _, answer = self._stand_ins[id(sys._getframe(1).f_code)]
        return answer(*arguments, **keywords)


def compile_with_hooks(
    source: str, file: str, flags: int, names: Collection[str]
) -> CodeType:
    """Compile a cell, with a hook in each of its functions of these names, `def` or `lambda`.

    Decorated functions get none (the stand-in takes the place of what the decorator made), nor do
    generators.

    Raises:
        SyntaxError, ValueError: as `compile`.
    """
    code: CodeType = compile(source, file, "exec", flags, dont_inherit=True)
    has_lambda = "lambda" in source
    if not any(
        f"def {name}" in source or (has_lambda and name in source) for name in names
    ):
        return code
    try:
        tree = compile(
            source, file, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True
        )
        inserter = _HookInserter(names, code)
        tree = inserter.visit(tree)
        if inserter.count:
            code = compile(tree, file, "exec", flags, dont_inherit=True)
    except RecursionError:  # a cell of a thousand levels runs as it is
        pass
    return code


class _HookInserter(ast.NodeTransformer):
    """Inserts hooks into functions of some names, where the cell defines them at its own level.

    Args:
        code: the cell, compiled.
    """

    def __init__(self, names: Collection[str], code: CodeType) -> None:
        self.names = names
        self.generators = set(_generators(code))
        self.count = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if (
            node.name not in self.names
            or node.decorator_list
            or (node.name, node.lineno) in self.generators
        ):
            return node
        self.count += 1
        hook = ast.parse(
            f"if {_HAS_STAND_IN}(): return {_forwarded_call(node.args)}"
        ).body[0]
        # the hook stands in the line of the `def`: the numbers of the cell's own lines in messages
        # stay as they are
        for part in ast.walk(hook):
            ast.copy_location(part, node)
        has_docstring = ast.get_docstring(node, clean=False) is not None
        node.body.insert(int(has_docstring), hook)
        return node

    def visit_Assign(self, node: ast.Assign | ast.AnnAssign) -> ast.AST:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if len(targets) != 1 or node.value is None:
            return node
        target = targets[0]
        if isinstance(target, ast.Name) and target.id in self.names:
            node.value = self._with_hook(node.value)
        return node

    visit_AnnAssign = visit_Assign  # noqa: N815

    def _with_hook(self, value: ast.expr) -> ast.expr:
        if not isinstance(value, ast.Lambda):
            return value
        if ("<lambda>", value.lineno) in self.generators:
            return value
        self.count += 1
        hook = f"{_forwarded_call(value.args)} if {_HAS_STAND_IN}() else None"
        body = ast.parse(hook, mode="eval").body
        assert isinstance(body, ast.IfExp)
        for part in ast.walk(body):
            ast.copy_location(part, value.body)
        body.orelse = value.body
        value.body = body
        return value

    def _skip(self, node: ast.AST) -> ast.AST:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _skip  # noqa: N815


def _generators(code: CodeType) -> Iterator[tuple[str, int]]:
    """The names and first lines of all generators in compiled code: to look for `yield` in its tree
    takes longer than to compile it.
    """
    for part in code.co_consts:
        if isinstance(part, CodeType):
            if part.co_flags & inspect.CO_GENERATOR:
                yield part.co_name, part.co_firstlineno
            yield from _generators(part)


def _forwarded_call(parameters: ast.arguments) -> str:
    """The text of a call of the stand-in with all arguments of the function."""
    arguments = [
        parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)
    ]
    if parameters.vararg is not None:
        arguments.append(f"*{parameters.vararg.arg}")
    for parameter in parameters.kwonlyargs:
        arguments.append(f"{parameter.arg}={parameter.arg}")
    if parameters.kwarg is not None:
        arguments.append(f"**{parameters.kwarg.arg}")
    return f"{_ANSWER}({', '.join(arguments)})"
