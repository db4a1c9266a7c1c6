"""Compiles each kernel with Triton's own compiler, as far as that goes without a GPU, and refuses
kernels that no GPU would compile.

The interpreter runs a kernel as Python, and Python knows `print`, `break`, numpy and every global
name. So each kernel is first turned into Triton's intermediate code, for the types and constants of
the launch: code that the compiler refuses, no GPU would run.
"""

import ast
import functools
import re
import warnings
from collections.abc import Callable
from typing import Any

import triton
from triton._C.libtriton import ir
from triton._utils import find_paths_if, get_iterable_path
from triton.backends.compiler import GPUTarget
from triton.compiler import code_generator
from triton.compiler.compiler import ASTSource, make_backend
from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure
from triton.language.core import base_value
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction, mangle_type

from autograder.kernels.memory import KernelFault

_TARGET = ("cuda", 80, 32)  # an A100; later GPUs refuse nothing more
_MOST_KEPT = 4096


class StaticAssertion(KernelFault):
    """tl.static_assert fails for the constants of a launch."""


class Compiler:
    """Compiles kernels that were made for the interpreter. One for a process, made before any
    kernel has run.
    """

    def __init__(self) -> None:
        self._twins: dict[Any, JITFunction[Any]] = {}
        self._known: dict[Any, KernelFault | None] = {}
        target = GPUTarget(*_TARGET)
        self._backend = make_backend(target)
        # an overflow check beside each operation on integers refuses nothing, and is a quarter of
        # the work
        options = {"arch": "sm80", "enable_fp_fusion": True, "sanitize_overflow": False}
        self._options = self._backend.parse_options(options)
        # one context for all modules: loading dialects takes as long as compiling a small kernel
        self._context = ir.context()
        ir.load_dialects(self._context)
        self._backend.load_dialects(self._context)
        members = {
            name: getattr(triton.language, name, None) for name in vars(triton.language.tensor)
        }
        self.members = {
            getattr(triton.language.tensor, name): function
            for name, function in members.items()
            if isinstance(function, InterpretedFunction)
        }
        compiler = self

        class Generator(code_generator.CodeGenerator):  # type: ignore[misc]  # Triton has no types
            """Triton's generator, for functions that were made to be interpreted."""

            def __init__(
                self,
                context: Any,
                prototype: Any,
                gscope: dict[str, Any],
                *arguments: Any,
                **named: Any,
            ) -> None:
                names = _names_in(named["jit_fn"]) & gscope.keys()
                super().__init__(
                    context,
                    prototype,
                    {n: compiler.twin(gscope[n]) for n in names},
                    *arguments,
                    **named,
                )
                # by the loop's body: the initial values of variables that the loop carries
                self._loops: dict[int, dict[str, Any]] = {}

            def _find_carries(
                self, node: Any, liveins: dict[str, Any], ignore: Any = frozenset()
            ) -> Any:
                """The variables that a loop carries from one turn to the next. Triton's generator
                compiles the body to find them, and then once more. Here every name that the body
                assigns is carried, also where its value does not change.
                """
                if not isinstance(node, ast.For):
                    return super()._find_carries(node, liveins, ignore)
                assigned = _assigned_in(node) - set(ignore)
                carried = {name: value for name, value in liveins.items() if name in assigned}
                names, handles, types = [], [], []
                for name, value in carried.items():
                    if isinstance(value, base_value) and (
                        parts := code_generator.flatten_values_to_ir([value])
                    ):
                        names.append(name)
                        handles += parts
                        types.append(value.type)
                self._loops[id(node.body)] = carried
                self.lscope, self.local_defs = liveins.copy(), dict[str, Any]()
                return names, handles, types

            def visit_compound_statement(self, stmts: Any) -> None:
                super().visit_compound_statement(stmts)
                for name, initial in self._loops.pop(id(stmts), {}).items():
                    if isinstance(initial, base_value):
                        self._verify_loop_carried_variable(name, self.lscope[name], initial)
                    else:
                        assert name not in self.local_defs, (
                            f"Loop carried variable {name} is not a triton value"
                        )

            def call_Function(self, node: Any, fn: Any, args: list[Any], kws: Any) -> Any:  # noqa: N802
                member = compiler.members.get(getattr(fn, "__func__", None))
                if member is not None:  # x.sum(0) for tl.sum(x, 0)
                    fn, args = member, [fn.__self__, *args]
                return super().call_Function(node, compiler.twin(fn), args, kws)

            def call_JitFunction(self, fn: Any, *arguments: Any, **named: Any) -> Any:  # noqa: N802
                twin = compiler.twin(fn)
                _refuse_print(twin)
                return super().call_JitFunction(twin, *arguments, **named)

        code_generator.CodeGenerator = Generator

    def twin(self, value: Any) -> Any:
        """The compilable form of an interpreted function; any other value stays as it is."""
        if not isinstance(value, InterpretedFunction):
            return value
        if value not in self._twins:
            twin = self._twins[value] = JITFunction(value.fn, **value.kwargs)
            # Triton would make a hash of all functions that this one calls, twins or not
            twin.hash = f"{twin.__qualname__} {len(self._twins)}"
            # each compilation reads the syntax tree, and none changes it
            twin.parse = functools.cache(twin.parse)
        return self._twins[value]

    def check(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """Compile a kernel for this launch, unless that has been done for an equal launch.

        Raises:
            KernelFault: the kernel does not compile; the message says which line, and why.
        """
        kernel = self.twin(function)
        bound = kernel.signature.bind(
            *arguments,
            **{name: value for name, value in keywords.items() if name in function.arg_names},
        )
        bound.apply_defaults()
        values = list(bound.arguments.values())
        signature = {
            parameter.name: "constexpr"
            if parameter.is_constexpr
            else _type_of(value, parameter, kernel.__name__)
            for parameter, value in zip(kernel.params, values, strict=True)
        }
        # constants stand inside of tuples, too: a stride of 1 is a constant
        paths = find_paths_if(list(signature.values()), lambda _, kind: kind == "constexpr")
        constants = {path: get_iterable_path(values, path) for path in paths}
        key = (function, str(signature), repr(constants))
        if key not in self._known:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[key] = self._compile(kernel, signature, constants)
        fault = self._known[key]
        if fault is not None:
            raise fault

    def _compile(
        self, kernel: Any, signature: dict[str, Any], constants: dict[Any, Any]
    ) -> KernelFault | None:
        functions, modules = (
            self._backend.get_codegen_implementation(self._options),
            self._backend.get_module_map(),
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _refuse_print(kernel)
                source = ASTSource(kernel, signature, constants, {})
                source.make_ir(
                    GPUTarget(*_TARGET), self._options, functions, modules, self._context
                )
        except CompilationError as error:
            return self._describe(kernel, error)
        except KernelFault as fault:
            return fault
        return None

    def _describe(self, kernel: Any, error: CompilationError) -> KernelFault:
        """The refusal in our words, with the student's line that led to it last."""
        chain: list[BaseException] = [error]
        while isinstance(chain[-1].__cause__, CompilationError | KernelFault):
            chain.append(chain[-1].__cause__)
        if isinstance(chain[-1], KernelFault):
            return chain[-1]
        errors = [link for link in chain if isinstance(link, CompilationError)]
        student_twins = {twin.src: twin for twin in self._twins.values() if not is_library(twin)}
        last = next(link for link in reversed(errors) if link.src in student_twins or link is error)
        reason = next((link.error_message for link in reversed(errors) if link.error_message), "")
        kind = (
            StaticAssertion if isinstance(errors[-1], CompileTimeAssertionFailure) else KernelFault
        )
        line = _line_of(student_twins.get(last.src, kernel), last.node)
        return kind(f"{line}: {_reason(str(reason), last.node)}")


def is_library(function: Any) -> bool:
    """Whether a function of @triton.jit is Triton's own."""
    return str(function.fn.__module__).startswith("triton.")


@functools.lru_cache(maxsize=_MOST_KEPT)
def _names_in(function: Any) -> set[str]:
    """Names that a function's text mentions: only these globals are converted."""
    return {node.id for node in ast.walk(function.parse()) if isinstance(node, ast.Name)}


@functools.lru_cache(maxsize=_MOST_KEPT)
def _assigned_in(loop: ast.For) -> set[str]:
    """Names that the body of a loop assigns."""
    nodes = (node for statement in loop.body for node in ast.walk(statement))
    return {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _refuse_print(function: Any) -> None:
    if is_library(function) or "print" not in _names_in(function):
        return
    for node in ast.walk(function.parse()):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "print"
        ):
            raise KernelFault(
                f"{_line_of(function, node)}: `print` belongs to Python. On a GPU it is refused, "
                "or prints a line for "
                "each element of each program: take it out (tl.device_print is there while you "
                "look for an error)"
            )


def _type_of(value: Any, parameter: Any, kernel: str) -> Any:
    try:
        return mangle_type(value, not parameter.do_not_specialize)
    except Exception as error:  # of any kind, where Triton does not know the value's type
        raise KernelFault(
            f"{kernel} is given {parameter.name} = {str(value)[:60]} ({type(value).__name__}), "
            "which cannot be passed "
            "to a kernel: tensors and numbers can, anything else only as tl.constexpr"
        ) from error


def _line_of(function: Any, node: Any) -> str:
    """Where in the student's text a node stands: "no GPU would compile line 5 of softmax_kernel
    (`break`)".
    """
    lines, line = function.src.splitlines(), getattr(node, "lineno", 1)
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    return f"no GPU would compile line {line} of {function.__name__} (`{text[:80]}`)"


_REASONS: tuple[tuple[str, Callable[..., str]], ...] = (
    (
        r"Cannot access global variable (\w+) from",
        lambda name: (
            f"`{name}` is neither an argument, nor a tl.constexpr, nor a function of "
            "@triton.jit or of tl"
        ),
    ),
    (r"unsupported AST node type: (\w+)", lambda name: f"kernels know no `{name.lower()}`"),
    (r"^NameError\(['\"](\w+) is not defined['\"]\)$", lambda name: f"`{name}` is not defined"),
    (r"^\w+\((['\"])(.*)\1,?\)$", lambda _, text: str(text)),  # the repr of an exception
)


def _reason(text: str, node: Any) -> str:
    for pattern, words in _REASONS:
        if match := re.search(pattern, text, re.DOTALL):
            return words(*match.groups())
    return text or f"kernels know no `{type(node).__name__.lower()}`"
