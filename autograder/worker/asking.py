"""Functions of the questions, compiled so that each asks first whether another is to answer in its
place.

They are so in every worker, whether anything is stood in for there or not. A prerequisite that is
stood in for stays the function that the student wrote: nothing in its name, code, signature or text
tells the one from the other.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Collection
from types import CodeType, FunctionType
from typing import Any

_ASKED, _ANSWER = "__stood_in__", "__stand_in_answer__"
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


class Asked:
    """The functions that ask in this process, and who answers in their place."""

    def __init__(self) -> None:
        self._answering: dict[int, tuple[CodeType, Callable[..., Any]]] = {}
        setattr(builtins, _ASKED, self._is_stood_in)
        setattr(builtins, _ANSWER, self._answer)

    def stand_in(self, function: Any, answer: Callable[..., Any]) -> bool:
        """Let `answer` answer the calls of a function from now on. False where the function does
        not ask.
        """
        if not isinstance(function, FunctionType) or _ASKED not in function.__code__.co_names:
            return False
        self._answering[id(function.__code__)] = function.__code__, answer
        return True

    def _is_stood_in(self) -> bool:
        """Whether another answers for the function that calls this."""
        return bool(self._answering) and id(sys._getframe(1).f_code) in self._answering

    def _answer(self, *arguments: Any, **keywords: Any) -> Any:
        return self._answering[id(sys._getframe(1).f_code)][1](*arguments, **keywords)


def compile_asking(source: str, file: str, flags: int, names: Collection[str]) -> CodeType:
    """Compile a cell. The functions of these names in it, `def` or `lambda`, ask before they do
    anything.

    Decorated functions do not (what is stood in for then is what the decorator made), nor do
    generators.

    Raises:
        SyntaxError, ValueError: as `compile`.
    """
    code: CodeType = compile(source, file, "exec", flags, dont_inherit=True)
    if not any(
        f"def {name}" in source or (name in source and "lambda" in source) for name in names
    ):
        return code
    try:
        tree = compile(source, file, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        asking = _Asking(names)
        tree = asking.visit(tree)
        if asking.count:
            code = compile(ast.fix_missing_locations(tree), file, "exec", flags, dont_inherit=True)
    except RecursionError:  # a cell of a thousand levels runs as it is
        pass
    return code


class _Asking(ast.NodeTransformer):
    """Lets functions of some names ask, where the cell defines them at its own level."""

    def __init__(self, names: Collection[str]) -> None:
        self.names, self.count = names, 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.name not in self.names or node.decorator_list or _yields(node.body):
            return node
        self.count += 1
        at = int(ast.get_docstring(node, clean=False) is not None)
        asks = ast.If(_call(_ASKED), [ast.Return(_forwarded(node.args))], [])
        for part in ast.walk(asks):
            ast.copy_location(part, node)
        # the line of the `def`, and no other: what a cell's own lines are called in messages stays
        # as it is
        node.body.insert(at, asks)
        return node

    def visit_Assign(self, node: ast.Assign | ast.AnnAssign) -> ast.AST:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        named = [target.id for target in targets if isinstance(target, ast.Name)]
        if len(targets) == 1 and set(named) & set(self.names) and node.value is not None:
            node.value = self._asking_lambda(node.value)
        return node

    visit_AnnAssign = visit_Assign  # noqa: N815

    def _asking_lambda(self, value: ast.expr) -> ast.expr:
        if not isinstance(value, ast.Lambda) or _yields([value.body]):
            return value
        self.count += 1
        body = ast.IfExp(_call(_ASKED), _forwarded(value.args), value.body)
        for part in (body, *ast.walk(body.test), *ast.walk(body.body)):
            ast.copy_location(part, value.body)
        value.body = body
        return value

    def _stay_outside(self, node: ast.AST) -> ast.AST:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _stay_outside  # noqa: N815


def _yields(body: list[Any]) -> bool:
    """Whether these statements make a generator of the function that they stand in."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, _Scope):
            waiting += ast.iter_child_nodes(node)
    return False


def _call(name: str) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [], [])


def _forwarded(parameters: ast.arguments) -> ast.Call:
    """A call of the answering function with what the function itself was called with."""
    call = _call(_ANSWER)
    call.args = [
        ast.Name(parameter.arg, ast.Load())
        for parameter in (*parameters.posonlyargs, *parameters.args)
    ]
    if parameters.vararg is not None:
        call.args.append(ast.Starred(ast.Name(parameters.vararg.arg, ast.Load()), ast.Load()))
    call.keywords = [
        ast.keyword(each.arg, ast.Name(each.arg, ast.Load())) for each in parameters.kwonlyargs
    ]
    if parameters.kwarg is not None:
        call.keywords.append(ast.keyword(None, ast.Name(parameters.kwarg.arg, ast.Load())))
    return call
