"""Triton's language and a kernel's text, as the interpreter sees them: exchanged once, and as a GPU would read them."""

import ast
import types
from collections.abc import Callable
from typing import Any

import triton
from triton.runtime import interpreter


class Language:
    """Triton's language as kernels see it in the interpreter.

    The interpreter exchanges some hundred functions at each launch, and at each call of a function like tl.max, and
    the latter stay exchanged. Here they are found once, and stand exchanged while a launch lasts.
    """

    def __init__(self) -> None:
        language = types.FunctionType((lambda: None).__code__, {"tl": triton.language, "core": triton.language.core})
        scope = interpreter._patch_lang(language)
        self._changes = [(owner, name, before, getattr(owner, name)) for owner, name, before in scope._changes]
        scope.restore()
        self._depth = 0
        self._dtypes: dict[str, Any] = {}
        self._np_dtype = interpreter._get_np_dtype
        interpreter._get_np_dtype = self._get_np_dtype
        interpreter._patch_lang = self._exchange
        interpreter.FunctionRewriter.ast_transformer = _AsCompiled()
        interpreter.FunctionRewriter._compile_and_exec = _compile_and_exec
        interpreter.InterpretedFunction.__call__ = lambda kernel, *args, **kwargs: self._call(kernel, args, kwargs)

    def _exchange(self, _: Any) -> "Language":
        self._depth += 1
        if self._depth == 1:
            for owner, name, _before, during in self._changes:
                setattr(owner, name, during)
        return self

    def restore(self) -> None:
        """What the interpreter calls at the end of a launch."""
        self._depth -= 1
        if self._depth:
            return
        for owner, name, before, _ in reversed(self._changes):
            if before is interpreter._MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

    def _call(self, kernel: Any, args: Any, kwargs: Any) -> Any:
        """A function of @triton.jit that a kernel calls."""
        self._exchange(None)
        try:
            return kernel.rewrite()(*args, **kwargs)
        except Exception as error:
            raise interpreter.InterpreterError(repr(error)) from error
        finally:
            self.restore()

    def _get_np_dtype(self, kind: Any) -> Any:
        """numpy's type for one of Triton's. The interpreter asks some thousand times a launch."""
        name = kind.name
        known = self._dtypes.get(name)
        if known is None:
            known = self._dtypes[name] = self._np_dtype(kind)
        return known


class _AsCompiled(interpreter.ASTTransformer):  # type: ignore[misc]  # Triton has no types
    """`and`, `or` and `not` of tiles, element by element. For Python a whole tile is true."""

    def visit_Assign(self, node: ast.Assign) -> Any:  # noqa: N802
        node.value = self.visit(node.value)  # Triton's own leaves it as it is
        return super().visit_Assign(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:  # noqa: N802
        self.generic_visit(node)
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        parts: list[ast.expr] = [ast.Lambda(args=nothing, body=value) for value in node.values]
        word = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        return _calling("attention_kit_logical", node, ast.Constant(word), *parts)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:  # noqa: N802
        self.generic_visit(node)
        return _calling("attention_kit_not", node, node.operand) if isinstance(node.op, ast.Not) else node


def _calling(name: str, node: ast.expr, *arguments: ast.expr) -> ast.expr:
    function = ast.Name(id=name, ctx=ast.Load())
    return ast.copy_location(ast.Call(func=function, args=list(arguments), keywords=[]), node)


def _logical(word: str, *parts: Callable[[], Any]) -> Any:
    """Tiles and scalars all count, as on a GPU; of constants the first that decides."""
    tensors: list[Any] = []
    value: Any = None
    for part in parts:
        value = part()
        if isinstance(value, triton.language.tensor):
            tensors.append(value)
        elif bool(value) == (word == "logical_or"):
            return value
    if not tensors:
        return value
    result, *others = tensors
    for other in others:
        result = getattr(result, word)(other)
    return result


def _not(value: Any) -> Any:
    return value.__not__() if isinstance(value, triton.language.tensor) else not value


_GIVEN = {"attention_kit_logical": _logical, "attention_kit_not": _not}


def _compile_and_exec(rewriter: Any, tree: ast.Module) -> Any:
    """The function that a kernel was rewritten to. Only names that the rewriting has put there are given to its
    notebook: Triton's own would give it all of the interpreter's, and names would be known that no GPU knows."""
    names, own = rewriter.fn.__globals__, dict(rewriter.kwargs)
    known = set(rewriter.fn.__code__.co_names)
    given = {**vars(interpreter), **_GIVEN}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in given and node.id not in known:
            names.setdefault(node.id, given[node.id])
    exec(compile(tree, rewriter.filename, "exec"), names, own)
    return own[rewriter.fn.__name__]
