"""Exchanges functions of Triton's language and rewrites a kernel's text for the interpreter, with
the meaning that both have on a GPU.
"""

import ast
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
from triton.runtime import interpreter

from autograder.kernels.compiler import is_library
from autograder.kernels.phrases import Phrases
from autograder.kernels.tape import Recorder


class Language:
    """Triton's language as kernels see it in the interpreter.

    The interpreter exchanges some hundred functions at each launch, and at each call of a function
    like tl.max, and the latter stay exchanged. Here they are found once, and stand exchanged while
    a launch lasts.
    """

    def __init__(self, recorder: Recorder) -> None:
        language = types.FunctionType(
            (lambda: None).__code__, {"tl": triton.language, "core": triton.language.core}
        )
        scope = interpreter._patch_lang(language)
        phrases, during = Phrases(recorder), {}
        for owner, name, _ in scope._changes:
            value = recorder.followed(owner, name, vars(owner)[name])
            # the method that the interpreter's function replaces
            member = (getattr(value, "__kwdefaults__", None) or {}).get("member")
            if member:
                function = _with_semantic(member)
                value = phrases.of(
                    recorder.unasked(function) if name in ("load", "store") else function
                )
            during[id(owner), name] = value
        self._changes = [
            (owner, name, original, during[id(owner), name])
            for owner, name, original in scope._changes
        ]
        scope.restore()
        tensor = triton.language.tensor
        # methods such as x.exp(), which the interpreter has forgotten
        for name, member in vars(tensor).items():
            if (id(tensor), name) not in during and "_semantic" in _parameters(member):
                self._changes.append((tensor, name, member, phrases.of(_with_semantic(member))))
        # from Triton 3.8 on a class; its methods need the interpreter's semantic
        block_pointer = getattr(triton.language.core, "_block_ptr", None)
        for name in ("advance", "load", "store") if block_pointer else ():
            method = getattr(block_pointer, name)
            original = vars(block_pointer).get(name, interpreter._MISSING)
            self._changes.append((block_pointer, name, original, _with_semantic(method)))
        self._phrases, self._library = phrases, dict[Any, Callable[..., Any]]()
        self._depth = 0
        self._dtypes: dict[str, Any] = {}
        self._np_dtype = interpreter._get_np_dtype
        interpreter._get_np_dtype = self._get_np_dtype
        interpreter._patch_lang = self._exchange
        interpreter.FunctionRewriter.ast_transformer = _AsCompiled()
        interpreter.FunctionRewriter._compile_and_exec = _compile_and_exec
        # from Triton 3.8 on block pointers are made of other operations
        if hasattr(interpreter, "BlockPointerHandle"):
            interpreter.BlockPointerHandle.materialize_pointers = _pointers_of_a_block
        interpreter.TensorHandle.__init__ = _make_handle
        interpreter.InterpretedFunction.__call__ = lambda kernel, *args, **kwargs: self._call(
            kernel, args, kwargs
        )

    def _exchange(self, _: Any) -> "Language":
        self._depth += 1
        if self._depth == 1:
            for owner, name, _original, during in self._changes:
                setattr(owner, name, during)
        return self

    def restore(self) -> None:
        """Put the original functions back; the interpreter calls this at the end of a launch."""
        self._depth -= 1
        if self._depth:
            return
        for owner, name, original, _ in reversed(self._changes):
            if original is interpreter._MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, original)

    def _call(self, kernel: Any, args: Any, kwargs: Any) -> Any:
        """A function of @triton.jit that a kernel calls."""
        self._exchange(None)
        try:
            function = self._library.get(kernel)
            if function is None:
                function = kernel.rewrite()
                if is_library(kernel):
                    function = self._library[kernel] = self._phrases.of(function)
            return function(*args, **kwargs)
        except Exception as error:
            raise interpreter.InterpreterError(repr(error)) from error
        finally:
            self.restore()

    def _get_np_dtype(self, kind: Any) -> Any:
        """numpy's type for one of Triton's. The interpreter asks some thousand times a launch."""
        name = kind.name
        dtype = self._dtypes.get(name)
        if dtype is None:
            dtype = self._dtypes[name] = self._np_dtype(kind)
        return dtype


def _parameters(member: Any) -> tuple[str, ...]:
    """The parameters of a function that tensors have as a method; none for anything else."""
    signature = getattr(member, "signature", None) or getattr(member, "__signature__", None)
    return tuple(signature.parameters) if signature is not None else ()


def _with_semantic(method: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments, **named: method(
        *arguments, **{**named, "_semantic": interpreter.interpreter_semantic}
    )


def _make_handle(
    handle: Any, data: np.ndarray[Any, Any], dtype: Any, attr: dict[str, Any] | None = None
) -> None:
    """Make and check a tile as Triton's own method does, and sooner: the smallest program makes
    some twenty.
    """
    handle.data, handle.dtype, handle.attr = data, dtype, {} if attr is None else attr
    pointer = isinstance(dtype, triton.language.pointer_type)
    if not pointer and data.itemsize > 1 and data.itemsize * 8 > dtype.primitive_bitwidth:
        raise ValueError(f"{data.dtype} holds no {dtype}")


@functools.lru_cache(maxsize=1024)
def _tile(shape: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Distances in bytes from a tile's first element to each element.

    Args:
        steps: bytes from one element to the next along each axis.
    """
    places = np.indices(shape, dtype=np.int64)
    distances: np.ndarray[Any, Any] = np.tensordot(
        np.array(steps, dtype=np.int64), places, axes=1
    ).view(np.uint64)
    return distances


@functools.lru_cache(maxsize=1024)
def _within(shape: tuple[int, ...], axis: int, first: int, end: int) -> np.ndarray[Any, Any]:
    """A mask of the elements of a tile that lie within an axis.

    Args:
        first: where the tile begins on the axis.
        end: the length of the axis.
    """
    places: np.ndarray[Any, Any] = first + np.indices(shape, dtype=np.int64)[axis]
    return (places >= 0) & (places < end)


def _pointers_of_a_block(block: Any, boundary_check: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    """The addresses of a block pointer's elements, and a mask of elements within the checked
    axes.
    """
    size, shape = block.base.get_element_ty().primitive_bitwidth // 8, tuple(block.block_shape)
    firsts = [int(offset.data.item()) for offset in block.offsets]
    steps = [size * int(stride.data.item()) for stride in block.strides]
    start = int(block.base.data.item()) + sum(
        first * step for first, step in zip(firsts, steps, strict=True)
    )
    addresses = _tile(shape, tuple(steps)) + np.uint64(start % (1 << 64))
    inside = _within(shape, 0, 0, shape[0])
    for axis in boundary_check:
        inside = inside & _within(shape, axis, firsts[axis], int(block.shape[axis].data.item()))
    return interpreter.TensorHandle(addresses, block.base.dtype.scalar), inside


class _AsCompiled(interpreter.ASTTransformer):  # type: ignore[misc]  # Triton has no types
    """`and`, `or` and `not` of tiles, element by element. For Python a whole tile is true."""

    def visit_Assign(self, node: ast.Assign) -> Any:  # noqa: N802
        node.value = self.visit(node.value)  # Triton's transformer leaves the value as it is
        return super().visit_Assign(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:  # noqa: N802
        self.generic_visit(node)
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        parts: list[ast.expr] = [ast.Lambda(args=nothing, body=value) for value in node.values]
        word = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        return _calling("attention_kit_logical", node, ast.Constant(word), *parts)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:  # noqa: N802
        self.generic_visit(node)
        return (
            _calling("attention_kit_not", node, node.operand)
            if isinstance(node.op, ast.Not)
            else node
        )


def _calling(name: str, node: ast.expr, *arguments: ast.expr) -> ast.expr:
    function = ast.Name(id=name, ctx=ast.Load())
    return ast.copy_location(ast.Call(func=function, args=list(arguments), keywords=[]), node)


def _logical(word: str, *parts: Callable[[], Any]) -> Any:
    """`and` or `or`, as on a GPU: all tiles and scalars are combined, constants decide in their
    order.
    """
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
    result, *later = tensors
    for tensor in later:
        result = getattr(result, word)(tensor)
    return result


def _not(value: Any) -> Any:
    return value.__not__() if isinstance(value, triton.language.tensor) else not value


_HELPERS = {"attention_kit_logical": _logical, "attention_kit_not": _not}


def _compile_and_exec(rewriter: Any, tree: ast.Module) -> Any:
    """Compile a rewritten kernel. The notebook gets only the names that the rewriting has put into
    the text: Triton's method would add all names of the interpreter, and a kernel could use names
    that no GPU knows.
    """
    names, scope = rewriter.fn.__globals__, dict(rewriter.kwargs)
    student_names = set(rewriter.fn.__code__.co_names)
    helpers = {**vars(interpreter), **_HELPERS}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in helpers and node.id not in student_names:
            names.setdefault(node.id, helpers[node.id])
    exec(compile(tree, rewriter.filename, "exec"), names, scope)
    return scope[rewriter.fn.__name__]
