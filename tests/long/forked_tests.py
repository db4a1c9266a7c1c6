"""Runs tests of a copied tree in forks of this process, which has loaded what they import.

A start of pytest with torch and the kit takes four seconds, a fork none. Where a module of the tree
is changed, its fork imports that module anew, and all that import it.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_LIBRARIES = (
    "torch",
    "safetensors.torch",
    "hypothesis",
    "jinja2",
    "msgspec",
    "nbconvert",
    "nbformat",
    "pytest",
    "rich",
    "sqlalchemy",
    "starlette.applications",
)
_ROOMS_APART = ("worker", "kernels", "student_tools", "templates")
"""They run in other processes, or load Triton, whose settings are a test's business."""
TIMED_OUT = -1


def load_libraries() -> None:
    """Load what every fork needs. One thread: a fork of a process with more can hang."""
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    for name in _LIBRARIES:
        importlib.import_module(name)


def load_kit(tree: Path) -> None:
    """Load a tree's modules in place of those that this process was started with."""
    forget_modules(kit_modules())
    sys.path.insert(0, str(tree))
    for path in sorted((tree / "autograder").rglob("*.py")):
        if path.stem != "__main__" and not set(path.parts).intersection(_ROOMS_APART):
            importlib.import_module(_module_name(tree, path))


def kit_modules() -> set[str]:
    """Names of the kit's modules that this process has loaded."""
    return {name for name in sys.modules if name.partition(".")[0] == "autograder"}


def forget_modules(names: set[str]) -> None:
    """Have the next import of these modules run their files."""
    for name in names:
        sys.modules.pop(name, None)
        package, _, attribute = name.rpartition(".")
        if package in sys.modules:
            vars(sys.modules[package]).pop(attribute, None)


def find_importers(tree: Path) -> dict[str, set[str]]:
    """Module → the modules that import it, themselves or through others, and itself."""
    paths = sorted((tree / "autograder").rglob("*.py"))
    imports = {_module_name(tree, path): _imported_names(path) for path in paths}
    importers = {}
    for name in imports:
        reached = {name}
        waiting = [name]
        while waiting:
            module = waiting.pop()
            nearest = {
                other for other, names in imports.items() if module in names
            } - reached
            reached |= nearest
            waiting += nearest
        importers[name] = reached
    return importers


def _module_name(tree: Path, path: Path) -> str:
    parts = path.relative_to(tree).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _imported_names(path: Path) -> set[str]:
    """Every name that may be a module's, of all import statements."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {
                f"{node.module}.{alias.name}" for alias in node.names
            }
    return names


def copy_tree(target: Path) -> None:
    """Copy the files of this working tree that git tracks or would track."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    for name in filter(None, listing.stdout.split("\0")):
        source = ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    # by the hash of the source: a mutant can have its original's size and time
    command = [
        sys.executable,
        "-m",
        "compileall",
        "-qq",
        "--invalidation-mode",
        "checked-hash",
    ]
    subprocess.run(
        [*command, "autograder", "tests/autograder"], cwd=target, check=False
    )


def run_tests(
    tree: Path,
    tests: list[str],
    seconds: float,
    prepare: Callable[[], list[object]] = list,
) -> int:
    """Run tests of a tree in a fork until the first fails; its output is in `tree`.log.

    Args:
        tests: files or node ids, as pytest takes them.
        prepare: called in the fork; the pytest plugins that it returns take part.

    Returns:
        pytest's exit status; TIMED_OUT after so many seconds.
    """
    child = os.fork()
    if child == 0:
        status = 70
        try:
            status = run_here(tree, tests, prepare)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return _await_child(child, seconds)


def run_here(
    tree: Path,
    tests: list[str],
    prepare: Callable[[], list[object]],
) -> int:
    """As `run_tests`, in this process, which is of no other use afterwards."""
    import pytest

    os.setsid()  # one signal ends the tests and what they started
    scratch = tree.with_suffix(".tmp")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    output = os.open(tree.with_suffix(".log"), os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    paths = [str(tree), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ.update(
        PYTHONPATH=os.pathsep.join(paths),
        TMPDIR=str(scratch),
    )
    sys.path.insert(0, str(tree))
    sys.modules["__main__"] = ModuleType(
        "__main__"
    )  # a spawned process runs this one's again
    os.chdir(tree)
    options = ["-x", "-q", "--no-header", "--tb=short"]
    options += [
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ]  # libraries are loaded
    return int(pytest.main([*options, *tests], plugins=prepare()))


def _await_child(child: int, seconds: float) -> int:
    end = time.monotonic() + seconds
    status = None
    while status is None and time.monotonic() < end:
        process, wait_status = os.waitpid(child, os.WNOHANG)
        if process:
            status = os.waitstatus_to_exitcode(wait_status)
        else:
            time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
        return TIMED_OUT
    return status
