"""Compiles kernels as far as that goes without a GPU, and words what no GPU would compile."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure
from triton.runtime.jit import JITFunction

from autograder.kernels.faults import KernelFault, StaticAssertion
from autograder.kernels.triton_versions import FrontEnd, constants_of, signature_of

_MOST_TEXTS = 4096


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A kernel, compiled for the types and constants of a launch.

    Attributes:
        arguments: names and values of those parameters that are no constants, tuples flat.
    """

    text: str
    arguments: list[tuple[str, Any]]


class Compiler:
    """Compiles each kernel once for each combination of types and constants."""

    def __init__(self) -> None:
        self._front_end = FrontEnd()
        self._texts: dict[Any, str | KernelFault] = {}
        # by identity: Triton makes a function's hash of all functions that it calls, each time
        self._kernels: dict[int, JITFunction[Any]] = {}

    def compile(
        self, kernel: JITFunction[Any], args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> CompiledKernel:
        """Compile a kernel for the arguments of a launch.

        Raises:
            KernelFault: the kernel does not compile; the message says which line, and why.
        """
        unknown = keywords.keys() - {p.name for p in kernel.params}
        if unknown := unknown - self._front_end.launch_options:
            raise KernelFault(
                f"{kernel.__name__} has no parameter {sorted(unknown)[0]}, and no launch has such "
                "an option"
            )
        values = list(self.bind(kernel, args, keywords).values())
        signature = _signature(kernel, values)
        constants = constants_of(signature, values)
        self._kernels[id(kernel)] = kernel
        key = (id(kernel), str(signature), repr(constants))
        if key not in self._texts:
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            self._texts[key] = self._text_or_fault(kernel, signature, constants)
        text = self._texts[key]
        if isinstance(text, KernelFault):
            raise text
        arguments = []
        for (name, kind), value in zip(signature.items(), values, strict=True):
            arguments += list(_flat(name, kind, value))
        return CompiledKernel(text, arguments)

    @staticmethod
    def bind(
        kernel: JITFunction[Any], args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> dict[str, Any]:
        """The kernel's parameters and their values."""
        own = {p.name for p in kernel.params}
        named = {name: value for name, value in keywords.items() if name in own}
        bound = kernel.signature.bind(*args, **named)
        bound.apply_defaults()
        return dict(bound.arguments)

    def _text_or_fault(
        self,
        kernel: JITFunction[Any],
        signature: dict[str, Any],
        constants: dict[Any, Any],
    ) -> str | KernelFault:
        try:
            for function in own_functions(kernel):
                _refuse_print(function)
            return self._front_end.text_of(kernel, signature, constants)
        except CompilationError as error:
            return _describe(kernel, error)
        except KernelFault as fault:
            return fault


def _signature(kernel: JITFunction[Any], values: list[Any]) -> dict[str, Any]:
    try:
        return signature_of(kernel, values)
    except (
        Exception
    ) as error:  # of any kind, where Triton does not know the value's type
        name, value = error.args[-2:]
        raise KernelFault(
            f"{kernel.__name__} is given {name} = {str(value)[:60]} ({type(value).__name__}), "
            "which cannot be passed to a kernel: tensors and numbers can, anything else only as "
            "tl.constexpr"
        ) from error


def _flat(name: str, kind: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """The arguments that the compiled kernel takes for a parameter."""
    if kind == "constexpr":
        return
    if isinstance(kind, tuple | list):
        for part_kind, part in zip(kind, value, strict=True):
            yield from _flat(name, part_kind, part)
        return
    yield name, value


def is_library(function: JITFunction[Any]) -> bool:
    """Whether a function of @triton.jit is Triton's own."""
    return str(function.fn.__module__).startswith("triton.")


def own_functions(kernel: JITFunction[Any]) -> list[JITFunction[Any]]:
    """A kernel, and the functions of @triton.jit that it calls, but for Triton's own."""
    functions = [kernel]
    for function in functions:
        scope = function.fn.__globals__
        for name in sorted(_names_in(function)):
            value = scope.get(name)
            if not isinstance(value, JITFunction) or is_library(value):
                continue
            if all(value is not known for known in functions):
                functions.append(value)
    return functions


def _names_in(function: JITFunction[Any]) -> frozenset[str]:
    """Names that a function's text mentions."""
    return _names_in_text(function.src)


@functools.lru_cache(maxsize=_MOST_TEXTS)
def _names_in_text(source: str) -> frozenset[str]:
    nodes = ast.walk(ast.parse(source))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name))


def _refuse_print(function: JITFunction[Any]) -> None:
    if "print" not in _names_in(function):
        return
    for node in ast.walk(function.parse()):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "print"
        ):
            raise KernelFault(
                f"{_line_of(function.src, node)}: `print` belongs to Python. On a GPU it is "
                "refused, or prints a line for each element of each program: take it out "
                "(tl.device_print is there while you look for an error)"
            )


def _describe(kernel: JITFunction[Any], error: CompilationError) -> KernelFault:
    """The compiler's refusal in our words, with the student's line that led to it last."""
    chain: list[BaseException] = [error]
    while isinstance(chain[-1].__cause__, CompilationError):
        chain.append(chain[-1].__cause__)
    errors = [link for link in chain if isinstance(link, CompilationError)]
    own_texts = {function.src for function in own_functions(kernel)}
    last = next(
        link for link in reversed(errors) if link.src in own_texts or link is error
    )
    reason = next(
        (link.error_message for link in reversed(errors) if link.error_message), ""
    )
    kind = (
        StaticAssertion
        if isinstance(errors[-1], CompileTimeAssertionFailure)
        else KernelFault
    )
    return kind(f"{_line_of(last.src, last.node)}: {_reason(str(reason), last.node)}")


def _line_of(source: str, node: Any) -> str:
    """Where in the student's text a node stands: "no GPU would compile line 5 of softmax_kernel
    (`break`)".
    """
    lines, line = source.splitlines(), getattr(node, "lineno", 1)
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    match = re.search(r"^\s*def\s+(\w+)", source, re.MULTILINE)
    name = match[1] if match else "a kernel"
    return f"no GPU would compile line {line} of {name} (`{text[:80]}`)"


_REASONS: tuple[tuple[str, Callable[..., str]], ...] = (
    (
        r"Cannot access global variable (\w+) from",
        lambda name: (
            f"`{name}` is neither an argument, nor a tl.constexpr, nor a function of "
            "@triton.jit or of tl"
        ),
    ),
    (
        r"unsupported AST node type: (\w+)",
        lambda name: f"kernels know no `{name.lower()}`",
    ),
    (
        r"^NameError\(['\"](\w+) is not defined['\"]\)$",
        lambda name: f"`{name}` is not defined",
    ),
    (
        r"^\w+\((['\"])(.*)\1,?\)$",
        lambda _, text: str(text),
    ),  # the repr of an exception
)


def _reason(text: str, node: Any) -> str:
    for pattern, words in _REASONS:
        if match := re.search(pattern, text, re.DOTALL):
            return words(*match.groups())
    return text or f"kernels know no `{type(node).__name__.lower()}`"
