"""The answer key, executed in the trusted process: the names of `reference`, and the functions that
answer for stand-ins.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import linecache
import sys
import types
from collections.abc import Mapping
from typing import Any

from autograder.basics.errors import BadSuite, KitError
from autograder.course import Assignment
from autograder.intake.built_json import read_built_json
from autograder.intake.companion_files import load_companions
from autograder.kernels import CARRIES


def load_reference(assignment: Assignment) -> dict[str, Any]:
    """Names that the answer key's given and question cells define.

    Raises:
        KitError: the answer key is not built, or is no notebook.
        BadSuite: the answer key does not run.
    """
    path = assignment.solution
    remedy = f"run `autograder build {assignment.name}`"
    if not path.exists():
        raise KitError(f"{path}: the answer key is not built; {remedy}")
    try:
        cells = read_built_json(path)["cells"]
    except (OSError, ValueError) as error:
        raise KitError(
            f"{path}: the answer key is no notebook ({error}); {remedy}"
        ) from error
    names: dict[str, Any] = vars(types.ModuleType(f"reference_{assignment.name}"))
    names["__builtins__"] = _Importer(load_companions(path)).builtins
    for number, cell in enumerate(cells):
        role = cell["metadata"].get("attention_kit", {}).get("role")
        if cell["cell_type"] != "code" or role not in ("given", "question"):
            continue
        file = f"<answer key {assignment.name}, cell {number}>"
        try:
            run_cell(cell["source"], file, names)
        except Exception as error:
            raise BadSuite(
                f"{path}: cell {number} of the answer key does not run: {error!r}"
            ) from error
    return names


def run_cell(source: str, file: str, names: dict[str, Any]) -> None:
    """Run the text of a cell; raises what the text raises.

    Args:
        file: the file name in tracebacks. There is no such file: tracebacks, and what asks for the
            text of a function as triton.jit does, are given the lines of the cell.
        names: what the cell sees, and where its names go.
    """
    lines = source.splitlines(keepends=True)
    linecache.cache[file] = (len(source), None, lines, file)
    exec(compile(source, file, "exec", dont_inherit=True), names)


class _Importer:
    """Imports companions for one answer key: another course's key, in the same process, may have
    companions of the same names.

    Attributes:
        builtins: the builtins of code that imports through this object.
    """

    def __init__(self, companions: Mapping[str, str]) -> None:
        self._companions = companions
        self._modules: dict[str, types.ModuleType] = {}
        self.builtins = {**vars(builtins), "__import__": self._import}

    def _import(
        self,
        name: str,
        names_of_caller: Mapping[str, object] | None = None,
        locals_: Mapping[str, object] | None = None,
        fromlist: tuple[str, ...] = (),
        level: int = 0,
    ) -> types.ModuleType:
        path = f"{name}.py"
        if path not in self._companions:
            return builtins.__import__(name, names_of_caller, locals_, fromlist, level)
        if name not in self._modules:
            self._modules[name] = self._run(name, self._companions[path])
        return self._modules[name]

    def _run(self, name: str, text: str) -> types.ModuleType:
        # a dataclass looks its module up by name, which must be that of this text alone
        unique = f"{name}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        module = types.ModuleType(unique)
        sys.modules[unique] = module
        if match := CARRIES.search(
            text
        ):  # the kit's own modules serve the trusted side too
            for carried in match[1].split():
                vars(module).update(vars(importlib.import_module(carried)))
            return module
        vars(module)["__builtins__"] = self.builtins
        run_cell(text, f"<answer key, {name}.py>", vars(module))
        return module
