"""All that depends on the version of Triton: what a new version would need is in this file.

Triton's own front end turns a kernel into a module, and its passes inline functions and fold what
is constant. The text of the module is all that anything else here knows of Triton.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import triton
from triton import knobs
from triton._C.libtriton import ir, passes
from triton._utils import find_paths_if, get_iterable_path
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend
from triton.runtime import autotuner
from triton.runtime.jit import JITFunction, mangle_type

TESTED = ((3, 6), (3, 9))
TARGET = ("cuda", 90, 32)  # an H100 or H200
_OPTIONS = {
    "arch": "sm90",
    "debug": True,  # device_assert is checked
    # a check of each operation on integers would be most of the text
    "sanitize_overflow": False,
    "enable_fp_fusion": True,  # the default, about which Triton 3.9 warns
}
_PASSES = ("add_inliner", "add_canonicalizer", "add_cse", "add_licm")
_MOST_TREES = 1024


class UnknownTriton(ImportError):
    """This version of Triton has no front end that is known here."""


def triton_version() -> tuple[int, ...]:
    """The version of Triton, two numbers."""
    return tuple(int(part) for part in triton.__version__.split(".")[:2])


def refuse_version(reason: str = "") -> UnknownTriton:
    """The error for a version that is not known here."""
    return UnknownTriton(
        "strict Triton knows Triton 3.6 to 3.9, and this is "
        f"{triton.__version__}{reason}: pip install triton==3.7.1"
    )


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """The front end makes many objects at once, and a collection in between is a tenth of its
    time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class FrontEnd:
    """Triton's front end. One for a process: it loads its dialects once."""

    def __init__(self) -> None:
        self._target = GPUTarget(*TARGET)
        self._backend = make_backend(self._target)
        self._options = self._backend.parse_options(dict(_OPTIONS))
        self._context = ir.context()
        ir.load_dialects(self._context)
        self._backend.load_dialects(self._context)

    @property
    def launch_options(self) -> set[str]:
        """Keywords of a launch that are no parameters of the kernel, such as num_warps."""
        return {*vars(self._options), "grid", "warmup"}

    def text_of(
        self,
        kernel: JITFunction[Any],
        signature: dict[str, Any],
        constants: dict[Any, Any],
    ) -> str:
        """A kernel in TTIR, for the types and constants of a launch."""
        with warnings.catch_warnings(), _without_garbage_collection():
            warnings.simplefilter("ignore")
            source = ASTSource(kernel, signature, constants, {})
            module = source.make_ir(
                self._target,
                self._options,
                self._backend.get_codegen_implementation(self._options),
                self._backend.get_module_map(),
                self._context,
            )
        manager = ir.pass_manager(
            self._context
        )  # for one run: a second one aborts the process
        for name in _PASSES:
            getattr(passes.common, name)(manager)
        manager.run(module, "strict_triton")
        text: str = module.str()
        return text


def signature_of(kernel: JITFunction[Any], values: list[Any]) -> dict[str, Any]:
    """The types of a launch's arguments, by parameter: "constexpr" for a constant.

    Raises:
        Exception: of any kind, where Triton does not know the type of a value; the parameter is
            its last argument.
    """
    signature = {}
    for parameter, value in zip(kernel.params, values, strict=True):
        if parameter.is_constexpr:
            signature[parameter.name] = "constexpr"
            continue
        try:
            signature[parameter.name] = mangle_type(
                value, not parameter.do_not_specialize
            )
        except Exception as error:
            error.args = (*error.args, parameter.name, value)
            raise
    return signature


def constants_of(signature: dict[str, Any], values: list[Any]) -> dict[Any, Any]:
    """The constants of a launch; in tuples, too, an integer that is 1 is a constant."""
    paths = find_paths_if(list(signature.values()), lambda _, kind: kind == "constexpr")
    return {path: get_iterable_path(values, path) for path in paths}


def hook_launches(
    owner: Any, run: Callable[..., Any], run_tuned: Callable[..., Any]
) -> None:
    """Have all launches of this process go to functions of ours.

    Args:
        owner: whom `owner_of_launches` gives from now on.
        run: in place of `JITFunction.run`.
        run_tuned: in place of `Autotuner.run`.
    """
    # kernels would be made for Triton's own interpreter, where a student sets TRITON_INTERPRET
    knobs.runtime.interpret = False
    JITFunction.run = run
    JITFunction.parse = _parse_once
    JITFunction.owner_of_launches = owner
    autotuner.Autotuner.run = run_tuned


def _parse_once(function: JITFunction[Any]) -> ast.Module:
    """The tree of a function's text. The front end asks for it at each compilation, and for each
    function that the kernel calls; what it notes in a tree is the same each time.
    """
    return _tree_of(function.src)


@functools.lru_cache(maxsize=_MOST_TREES)
def _tree_of(source: str) -> ast.Module:
    return ast.parse(source)


def owner_of_launches() -> Any:
    """The owner that `hook_launches` was given, by whichever copy of this module; None for none."""
    return getattr(JITFunction, "owner_of_launches", None)


def is_interpreting() -> bool:
    """Whether Triton was imported with TRITON_INTERPRET=1: its library is then not compilable."""
    return not isinstance(triton.language.max, JITFunction)
