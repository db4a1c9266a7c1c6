"""Cells import the released companions, whatever a student put in their place."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.worker.companion_modules import (
    CompanionModules,
    compile_companions_ahead,
)

TEXTS = {
    "hw_tools.py": "import inspect\n\ndef double(x):\n    return 2 * x\n",
    "hw_kernels/__init__.py": "from hw_kernels.parts import one\n",
    "hw_kernels/parts.py": "one = 1\n",
}


@pytest.fixture
def companions() -> Iterator[CompanionModules]:
    """Installed, as before the first cell."""
    before = dict(sys.modules)
    modules = CompanionModules(TEXTS)
    modules.restore()
    yield modules
    sys.meta_path.remove(modules)
    for name in sys.modules.keys() - before.keys():
        del sys.modules[name]


def run(source: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(source, names)
    return names


@pytest.mark.usefixtures("companions")
def test_modules_and_packages_are_imported_from_their_text() -> None:
    import inspect

    names = run(
        "from hw_tools import double\nfrom hw_kernels import one\nimport hw_kernels.parts"
    )
    double = names["double"]
    assert isinstance(double, types.FunctionType)
    assert double(4) == 8
    assert names["one"] == 1
    assert inspect.getsource(double) == "def double(x):\n    return 2 * x\n"


def test_a_module_of_the_students_is_not_what_is_imported(
    companions: CompanionModules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hw_tools.py").write_text("def double(x):\n    return 'forged'\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert run("from hw_tools import double\nd = double(1)")["d"] == 2

    released = sys.modules["hw_tools"]
    run(
        "import sys, types\nsys.modules['hw_tools'] = types.SimpleNamespace(double=print)"
    )
    run("import sys\nsys.meta_path.reverse()")
    companions.restore()
    assert run("import hw_tools")["hw_tools"] is released


def test_a_module_that_fails_is_tried_again(companions: CompanionModules) -> None:
    companions.texts["hw_tools.py"] = "1 / 0"
    with pytest.raises(ZeroDivisionError):
        run("import hw_tools")
    companions.texts["hw_tools.py"] = TEXTS["hw_tools.py"]
    companions.restore()
    assert run("from hw_tools import double\nd = double(1)")["d"] == 2


def test_python_s_own_modules_of_a_text_are_imported_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("colorsys", "json.tool", "this", "nowhere")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    text = """
import colorsys, nowhere
from json.tool import main

def late():
    import this
"""
    compile_companions_ahead({"helpers.py": text, "broken.py": "import ("})
    imported = [name for name in names if name in sys.modules]
    assert imported == ["colorsys", "json.tool"]
