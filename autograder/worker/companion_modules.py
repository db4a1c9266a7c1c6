"""Imports the companions of a notebook: modules that the course wrote, from their released text.

No file is read: what lies under such a name in a student's folder, or in `sys.modules` after a
student's cell has run, is not what a given cell imports.
"""

from __future__ import annotations

import contextlib
import dis
import importlib
import linecache
import sys
import types
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType

from autograder.kernels import CARRIES

_compiled_ahead: dict[tuple[str, str], CodeType] = {}


def compile_companions_ahead(companions: Mapping[str, str]) -> None:
    """Compile companions (path to text) before the first worker is forked, and import what they
    import of Python's own library: `html` alone takes a worker 4 ms.
    """
    for path, text in companions.items():
        with contextlib.suppress(SyntaxError, ValueError):  # the import reports them
            code = _compile(path, text)
            _compiled_ahead[path, text] = code
            for name in _standard_modules(code):
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)


def _standard_modules(code: CodeType) -> list[str]:
    """The modules of Python's own library that a compiled text imports outside of functions."""
    instructions = dis.get_instructions(code)
    names = [step.argval for step in instructions if step.opname == "IMPORT_NAME"]
    return [name for name in names if name.partition(".")[0] in sys.stdlib_module_names]


def _compile(path: str, text: str) -> CodeType:
    code: CodeType = compile(text, _file(path), "exec", dont_inherit=True)
    return code


def _file(path: str) -> str:
    """The file name of a companion in tracebacks, which is no path on any machine."""
    return f"<{path}>"


def is_companion_file(file: str) -> bool:
    """Whether code with this file name was compiled from a companion."""
    return file.startswith("<") and file.endswith(".py>")


class CompanionModules(MetaPathFinder, Loader):
    """Imports companions, in front of everything else.

    Attributes:
        texts: path of each companion beside the notebook → text.
    """

    def __init__(self, companions: Mapping[str, str]) -> None:
        self.texts = dict(companions)
        self._paths = {_module_name(path): path for path in companions}
        packages = {name.rpartition(".")[0] for name in self._paths} - {""}
        self._packages = packages | {
            name for name, path in self._paths.items() if path.endswith("/__init__.py")
        }
        self._made: dict[str, types.ModuleType] = {}

    def restore(self) -> None:
        """Let the next import of a companion give the released one, whatever ran before."""
        if not self.texts:
            return
        with contextlib.suppress(
            Exception
        ):  # a cell may have broken the import system itself
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            sys.meta_path.insert(0, self)
            for name in self._paths.keys() | self._packages:
                sys.modules.pop(name, None)
            sys.modules.update(self._made)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: object = None
    ) -> ModuleSpec | None:
        """Find a companion, or the package that some lie in."""
        if fullname not in self._paths and fullname not in self._packages:
            return None
        return ModuleSpec(fullname, self, is_package=fullname in self._packages)

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the text of a companion."""
        path = self._paths.get(module.__name__)
        self._made[module.__name__] = module
        if path is None:  # a package without a file of its own
            return
        text = self.texts[path]
        if loaded := _names_of_the_host(text):
            vars(module).update(loaded)
            return
        file = _file(path)
        # inspect.getsource, and with it triton.jit, reads functions from here: there is no file
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        try:
            exec(
                _compiled_ahead.get((path, text)) or _compile(path, text), vars(module)
            )
        except BaseException:
            del self._made[module.__name__]
            raise


def _names_of_the_host(text: str) -> dict[str, object]:
    """The names of the modules of `kernels/` that a companion carries, where the host has loaded
    them: to run the text takes longer than most questions.
    """
    match = CARRIES.search(text)
    names = match[1].split() if match else []
    modules = [sys.modules.get(name) for name in names]
    if None in modules:
        return {}
    return {name: value for module in modules for name, value in vars(module).items()}


def _module_name(path: str) -> str:
    """The name under which a notebook imports the file beside it."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
